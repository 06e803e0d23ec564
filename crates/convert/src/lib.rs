//! Metrics → a file that other programs open: a trace for Perfetto, a table of comma-separated values, or the stacks of
//! profiled cores. It writes sample by sample, keeps no more than the last seconds (of stacks a bounded number), and computes
//! nothing that `derive` could.
//!
//! From a recording to a trace:
//!
//! ```
//! use vnettop_convert::{Conversion, ConvertedTo, StartedAt};
//! use vnettop_derive::Derivation;
//! use vnettop_record::{Recording, StoredIn};
//!
//! let mut recording = Recording::open_stored(&StoredIn::Program)?;
//! let (mut derivation, mut trace) = (Derivation::default(), Vec::new());
//! let mut conversion = Conversion::new(ConvertedTo::Perfetto, StartedAt::default(), &mut trace)?;
//! while let Some(item) = recording.next_item()? {
//!     if let Some(metrics) = derivation.advance(item) {
//!         conversion.observe(&metrics)?;
//!     }
//! }
//! conversion.finish(&[])?;
//! assert!(trace.len() > 100_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bin_follower;
mod conversion;
mod core_lanes;
mod counter_track;
mod csv;
mod events;
mod folded_stacks;
mod machine_tracks;
mod perfetto;
mod protobuf;
mod tables;
mod test_tracks;
mod thread_tracks;
mod trace_writer;
mod whereabouts;

pub use conversion::{Conversion, ConvertedTo, StartedAt};
pub use tables::TableKind;
