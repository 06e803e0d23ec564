//! The HTTP side of `vnettop export`: one thread that listens, checks who asks, and hands each scrape on. It knows nothing of
//! what is measured; what it answers with comes from whoever holds the [`Exporter`].
//!
//! Nobody who connects can make it keep much: connections have an end to their number, the one whose
//! answers are not read, that asks without end, or has asked for nothing for the longest gives way to the next, all answers of one sample share their bytes, and who does not read them is given up.

#[cfg(feature = "export")]
mod access;
#[cfg(feature = "export")]
mod connections;
#[cfg(feature = "export")]
mod exporter;
#[cfg(feature = "export")]
mod listener;
mod place;
#[cfg(feature = "export")]
mod scrape;
#[cfg(feature = "export")]
mod web_config;

#[cfg(feature = "export")]
pub use exporter::{ExportError, Exporter};
pub use place::Place;
#[cfg(feature = "export")]
pub use scrape::{Scrape, ScrapeAnswer};
#[cfg(feature = "export")]
pub use web_config::WebConfigError;

#[cfg(all(test, feature = "export"))]
mod tests;
