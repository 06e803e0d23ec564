//! Which bins of a run count, and for which side: those with traffic, inside a stretch, after its settling time.

use super::Ran;
use crate::derive::flow::{Bin, FlowBasis};
use crate::sample::StretchSide;

/// A part of a run with one treatment; `CLOCK_MONOTONIC`, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stretch {
    pub(super) side: StretchSide,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

/// The bins of one side, and in how many stretches they lie.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Counted {
    pub(super) bins: Vec<Bin>,
    pub(super) stretches: usize,
}

/// A bin below this part of the median rate is no traffic yet, or no more.
const TRAFFIC: f64 = 0.05;

/// The bins of a side, over all runs.
pub(super) fn counted(
    side: StretchSide,
    runs: &[Ran],
    stretches: &[Stretch],
    bins: &[Bin],
    basis: Option<&FlowBasis>,
    settle_ns: u64,
) -> Counted {
    let mut counted = Counted::default();
    for run in runs {
        let run_to_ns = run.to_ns.unwrap_or(u64::MAX);
        let Some((first_ns, last_ns)) = traffic(within(bins, run.from_ns, run_to_ns), basis) else { continue };
        let own =
            |stretch: &&Stretch| stretch.side == side && stretch.from_ns >= run.from_ns && stretch.from_ns <= run_to_ns;
        for stretch in stretches.iter().filter(own) {
            let from_ns = stretch.from_ns.max(first_ns).saturating_add(settle_ns);
            let part = within(bins, from_ns, stretch.to_ns.min(last_ns));
            if part.iter().any(|bin| bin.bits_per_s.is_some()) {
                counted.bins.extend_from_slice(part);
                counted.stretches += 1;
            }
        }
    }
    counted
}

/// The bins that lie wholly between two instants.
pub(super) fn within(bins: &[Bin], from_ns: u64, to_ns: u64) -> &[Bin] {
    let from = bins.partition_point(|bin| bin.from_ns < from_ns);
    let to = bins.partition_point(|bin| bin.to_ns <= to_ns);
    bins.get(from..to).unwrap_or_default()
}

/// From when to when there is traffic: a program starts before its first byte and ends after its last. The first
/// and last bins of a link and of datagrams are only partly filled; those of connections are whole.
pub(super) fn traffic(bins: &[Bin], basis: Option<&FlowBasis>) -> Option<(u64, u64)> {
    let mut rates: Vec<f64> = bins.iter().filter_map(|bin| bin.bits_per_s).filter(|rate| *rate > 0.0).collect();
    rates.sort_by(f64::total_cmp);
    let threshold = TRAFFIC * rates.get(rates.len() / 2)?;
    let flows = |bin: &Bin| bin.bits_per_s.is_some_and(|rate| rate >= threshold);
    let (first, last) = (bins.iter().position(flows)?, bins.iter().rposition(flows)?);
    match basis {
        Some(FlowBasis::Link(_) | FlowBasis::Datagrams(_)) if last > first => {
            Some((bins[first].to_ns, bins[last].from_ns))
        }
        _ => Some((bins[first].from_ns, bins[last].to_ns)),
    }
}
