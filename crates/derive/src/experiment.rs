//! An experiment: a benchmark gets one treatment after the other while it runs (unpinned and pinned, or placements by turns), and their rates
//! are compared. Who has the next phase is decided in `order`, what counts of each in `phases`, and what is to be said by the interval
//! of a ratio: of two treatments a card with a verdict, of many a ranking. `run --pin compare` and `--pin search`, `compare` and the
//! card of the key `p` are uses of it. It compares and says what it found; it pins nothing, and it takes nothing back.

mod card;
mod interval;
mod latency_change;
mod order;
mod other_load;
mod phases;
mod pin_trial;
mod ranking;
mod words;

pub use card::{Card, CardSide, LEAST_BINS, LEAST_PAIRS, Pair, Phase, Verdict};
pub use interval::{CONFIDENCE, Difference, Significance};
pub(crate) use interval::{LEAST, PairedRatio};
pub use latency_change::{LatencyChange, QuantileChange};
pub use order::{Rounds, Turn, side_of};
pub use other_load::OtherLoad;
pub(crate) use phases::{CountedPhase, PhaseLog, of_side, pairs, traffic};
pub use pin_trial::{LEAST_AFTER_NS, MOST_AFTER_NS, PinTrial, SETTLING_NS, needed_ns, piece_ns};
pub use ranking::{LEAST_ROUNDS, PhaseMeans, PlacementStanding};
pub(crate) use ranking::{RankedPlacement, are_alike, ranking};

#[cfg(test)]
mod tests;
