//! Samples → Metrics. Pure: no clock, no file, no terminal; the same two samples always give the same numbers.
//! It knows `sample` and nothing else of ours. Unknown is `None` from here to the last cell: a first sample, a counter
//! that went backwards, a core that came online have no rate.
//!
//! From a recording to what its busiest link carried:
//!
//! ```
//! use vnettop_derive::Derivation;
//! use vnettop_record::{Recording, StoredIn};
//!
//! let mut recording = Recording::open_stored(&StoredIn::Program)?;
//! let mut derivation = Derivation::default();
//! let mut most: f64 = 0.0;
//! while let Some(item) = recording.next_item()? {
//!     let Some(metrics) = derivation.advance(item) else { continue };
//!     // Unknown in the first sample: a rate needs two.
//!     most = metrics.machine.links.iter().filter_map(|link| link.rates?.peak_bits_per_s()).fold(most, f64::max);
//! }
//! assert!((30e9..40e9).contains(&most), "{most} bit/s");
//! # Ok::<(), vnettop_record::RecordError>(())
//! ```

pub mod benchmarks;
mod busiest_link;
pub mod comparison;
mod conclusions;
pub mod cores;
pub mod denial;
mod derivation;
pub mod diagnosis;
pub mod doctor;
pub mod drops;
pub mod end_to_end;
pub mod experiment;
mod figure;
pub mod finding;
mod first_backlog;
pub mod fleet;
pub mod flow;
pub mod held_back;
pub mod highlights;
pub mod history;
pub mod jitter;
mod late_booked;
pub mod latency;
pub mod ledger;
pub mod limit;
pub mod links;
pub mod losses;
mod machine;
mod machine_stage;
mod metrics;
pub mod migration_cost;
pub mod moves;
pub mod ovs;
pub mod owners;
pub mod passing_traffic;
pub mod paths;
pub mod pins;
pub mod placement;
mod plural;
pub mod profile;
mod program_name;
mod rate;
mod recent_load;
pub mod run;
pub mod saved;
mod scope;
mod share;
mod short_lives;
mod spare_core;
mod spoken_lines;
pub mod steers;
pub mod summary;
pub mod test;
mod test_metrics;
mod test_stages;
pub mod threads;
pub mod timeline;
pub mod totals;
mod traffic;
pub mod triggers;
pub mod workers;

pub use conclusions::Conclusions;
pub use cores::CoreMetrics;
pub use derivation::Derivation;
pub use drops::Drop;
pub use end_to_end::{EndToEnd, HostEnd, HostHop, HostLoss, HostMetrics, end_to_end};
pub use experiment::Card;
pub use finding::{Finding, FindingId, FindingParts};
pub use flow::FlowMetrics;
pub use highlights::{Highlight, HighlightKind, Highlights};
pub use jitter::Jitter;
pub use latency::TestLatency;
pub(crate) use ledger::Mean;
pub use ledger::{Bin, FlowBasis, Ledger};
pub use limit::{Limit, LimitKind};
pub use links::{Basis, LinkMetrics, OvsPlace};
pub use losses::{Loss, LossPlace, Losses};
pub use machine::MachineMetrics;
pub use metrics::Metrics;
pub use migration_cost::{Cause, Crossing};
pub use moves::{Evidence, MoveClass, MovesByClass, TracedMove};
pub use ovs::DatapathMetrics;
pub use passing_traffic::{PassingTraffic, TrafficState};
pub use pins::OverriddenPin;
pub use plural::plural;
pub use profile::CoreActivity;
pub use short_lives::ShortLivedGroup;
pub use spoken_lines::SpokenLines;
pub use steers::{StandingSteer, SteerEffect};
pub use summary::{RecordingSummary, SummaryRoom, SummaryTrack, TestSummary};
pub use test::{Test, TestKey, TestMean};
pub use test_metrics::TestMetrics;
pub use threads::ThreadMetrics;
pub use timeline::Timeline;
pub use totals::Totals;
pub use triggers::{Trigger, TriggerKind, TriggerPlan, TriggerWatch, TriggeredEvent};
pub use workers::{Unplaceable, Worker};
