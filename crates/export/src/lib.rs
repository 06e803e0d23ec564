//! The HTTP side of `vnettop export`: one thread that listens, checks who asks, and hands each scrape on. It knows nothing of
//! what is measured; what it answers with comes from whoever holds the [`Exporter`].
//!
//! Nobody who connects can make it keep much: connections have an end to their number, the one whose
//! answers are not read, that asks without end, or has asked for nothing for the longest gives way to the next, all answers of one sample share their bytes, and who does not read them is given up.
//!
//! ```no_run
//! use std::time::Duration;
//! use vnettop_export::{Exporter, Place, ScrapeAnswer};
//!
//! let exporter = Exporter::start(&Place::Address("127.0.0.1:9709".parse()?), (None, |news| eprintln!("{news}")), Duration::from_secs(1))?;
//! println!("{}", exporter.welcome);
//! // `ready` can be waited for with poll; a scrape that nobody answers is given up.
//! while let Some(scrapes) = exporter.waiting() {
//!     for scrape in scrapes {
//!         scrape.answer(ScrapeAnswer { content_type: "text/plain; version=0.0.4", text: "up 1\n".into() });
//!     }
//! #   break;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "server")]
mod access;
#[cfg(feature = "server")]
mod connections;
#[cfg(feature = "server")]
mod exporter;
#[cfg(feature = "server")]
mod freshness;
#[cfg(feature = "server")]
mod gate;
#[cfg(feature = "server")]
mod listener;
mod place;
#[cfg(feature = "server")]
mod scrape;
#[cfg(feature = "server")]
mod web_config;

#[cfg(feature = "server")]
pub use exporter::{ExportError, Exporter};
pub use place::Place;
#[cfg(feature = "server")]
pub use scrape::{Scrape, ScrapeAnswer};
#[cfg(feature = "server")]
pub use web_config::WebConfigError;

#[cfg(all(test, feature = "server"))]
mod tests;
