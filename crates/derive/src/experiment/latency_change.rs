//! How long packets took without and with the pins: the quantiles of the seconds within each phase, compared as rates are.

use super::Difference;
use super::interval::PairedRatio;
use crate::latency::{LatencySecond, Spread};
use std::collections::VecDeque;
use vnettop_sample::StretchSide;

/// Which side a phase is of, and from when to when it lasts, monotonic ns.
type PhaseTime = (StretchSide, u64, u64);

/// The whole path's latency on both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyChange {
    /// Medians.
    pub p50: QuantileChange,
    /// 99th percentiles.
    pub p99: QuantileChange,
}

/// A quantile on both sides, s: the mean of those of the seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileChange {
    /// Without pins.
    pub before_s: f64,
    /// With them.
    pub after_s: f64,
    /// After less before, s; `None` where there are too few phases.
    pub change: Option<Difference>,
}

impl LatencyChange {
    /// Of phases that take turns or stand in pairs; `None` where latency was not looked at in two of them.
    pub(crate) fn of(phases: &[PhaseTime], seconds: &VecDeque<LatencySecond>) -> Option<Self> {
        let of = |quantile: fn(Spread) -> f64| {
            let of_side = |side: StretchSide| {
                let own = phases.iter().filter(move |phase| phase.0 == side);
                own.map(|phase| mean(*phase, seconds, quantile))
            };
            // A pair without one of its sides is none.
            let both = of_side(StretchSide::Pinned).zip(of_side(StretchSide::Unpinned));
            let pairs: Vec<[f64; 2]> = both.filter_map(|(after, before)| Some([after?, before?])).collect();
            QuantileChange::of(&pairs)
        };
        Some(Self { p50: of(|spread| spread.p50_s)?, p99: of(|spread| spread.p99_s)? })
    }
}

impl QuantileChange {
    /// Of pairs of phases, with pins and without, s; `None` of no pair.
    pub(crate) fn of(pairs: &[[f64; 2]]) -> Option<Self> {
        let side = |at: usize| pairs.iter().map(|pair| pair[at]).sum::<f64>() / pairs.len() as f64;
        let [after_s, before_s] = [side(0), side(1)];
        let change = PairedRatio::of([after_s, before_s], pairs).in_units();
        (!pairs.is_empty()).then_some(Self { before_s, after_s, change })
    }
}

/// The mean of a quantile over the seconds that lie within a phase.
fn mean((_, from_ns, to_ns): PhaseTime, seconds: &VecDeque<LatencySecond>, quantile: fn(Spread) -> f64) -> Option<f64> {
    let is_within = |one: &&LatencySecond| one.at_ns <= to_ns && one.at_ns.saturating_sub(one.for_ns) >= from_ns;
    let values: Vec<f64> = seconds.iter().filter(is_within).filter_map(|one| one.whole.map(quantile)).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
