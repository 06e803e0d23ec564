//! The bins of a whole run: kept apart by what they are the rate of, because before the first byte and after the last one a
//! link may stand for the flow, and its bins must not mix with those of the connections; and which of them count for which
//! side: those with traffic, inside a stretch, after its settling time.

use super::CommandRun;
use crate::derive::before_after::{LEAST_BINS, Pair};
use crate::derive::flow::{Bin, FlowBasis};
use crate::sample::StretchSide;
use std::collections::VecDeque;

/// A part of a run with one treatment; `CLOCK_MONOTONIC`, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stretch {
    pub(super) side: StretchSide,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

/// What counts of a stretch.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CountedStretch {
    pub(super) side: StretchSide,
    pub(super) bins: Vec<Bin>,
}

/// A bin below this part of the median rate is no traffic yet, or no more.
const TRAFFIC: f64 = 0.05;

/// The phases of all runs, in the order of time.
pub(super) fn phases(
    runs: &[CommandRun],
    stretches: &[Stretch],
    bins: &[Bin],
    basis: Option<&FlowBasis>,
    settle_ns: u64,
) -> Vec<CountedStretch> {
    let mut phases = Vec::new();
    for run in runs {
        let run_to_ns = run.to_ns.unwrap_or(u64::MAX);
        let Some((first_ns, last_ns)) = traffic(within(bins, run.from_ns, run_to_ns), basis) else { continue };
        let own = |stretch: &&Stretch| stretch.from_ns >= run.from_ns && stretch.from_ns <= run_to_ns;
        for stretch in stretches.iter().filter(own) {
            let from_ns = stretch.from_ns.max(first_ns).saturating_add(settle_ns);
            let part = within(bins, from_ns, stretch.to_ns.min(last_ns));
            if known(part) > 0 {
                phases.push(CountedStretch { side: stretch.side, bins: part.to_vec() });
            }
        }
    }
    phases
}

/// The bins of one side.
pub(super) fn of_side(phases: &[CountedStretch], side: StretchSide) -> Vec<Bin> {
    phases.iter().filter(|phase| phase.side == side).flat_map(|phase| &phase.bins).copied().collect()
}

/// Neighbours of different sides, unpinned first. What was cut short, to less than half of what is usual, is nobody's neighbour.
pub(super) fn pairs(phases: &[CountedStretch]) -> Vec<Pair> {
    let mut lengths: Vec<usize> = phases.iter().map(|phase| known(&phase.bins)).collect();
    lengths.sort_unstable();
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let mut pairs = Vec::new();
    let mut alone: Option<&CountedStretch> = None;
    for phase in phases.iter().filter(|phase| known(&phase.bins) >= LEAST_BINS.max(usual / 2)) {
        alone = match alone.filter(|one| one.side != phase.side) {
            None => Some(phase),
            Some(one) => {
                let (unpinned, pinned) = if one.side == StretchSide::Unpinned { (one, phase) } else { (phase, one) };
                pairs.push([unpinned.bins.clone(), pinned.bins.clone()]);
                None
            }
        };
    }
    pairs
}

pub(super) fn known(bins: &[Bin]) -> usize {
    bins.iter().filter(|bin| bin.bits_per_s.is_some()).count()
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

/// One track for each basis.
#[derive(Debug, Default)]
pub(super) struct BinStore(Vec<Track>);

#[derive(Debug)]
struct Track {
    basis: FlowBasis,
    bins: Vec<Bin>,
}

impl BinStore {
    /// Takes what is new or has changed of the flow's bins; all of them rest on this basis.
    pub(super) fn follow(&mut self, bins: &VecDeque<Bin>, basis: Option<&FlowBasis>) {
        let Some(basis) = basis.filter(|_| !bins.is_empty()) else { return };
        let at = self.0.iter().position(|track| track.basis.goes_on_as(basis)).unwrap_or_else(|| {
            self.0.push(Track { basis: basis.clone(), bins: Vec::new() });
            self.0.len() - 1
        });
        self.0[at].follow(bins, basis);
    }

    /// The run's bins and what they rest on: connections or datagrams where there are any, otherwise the link that carried most.
    pub(super) fn best(&self) -> (&[Bin], Option<&FlowBasis>) {
        let carried = |track: &Track| {
            let bits = |bin: &Bin| bin.bits_per_s.unwrap_or(0.0) * bin.length_ns() as f64;
            (!matches!(track.basis, FlowBasis::Link(_)), track.bins.iter().map(bits).sum::<f64>())
        };
        let best = self
            .0
            .iter()
            .map(|track| (carried(track), track))
            .max_by(|((a, x), _), ((b, y), _)| a.cmp(b).then(x.total_cmp(y)));
        best.map_or((&[], None), |(_, track)| (&track.bins, Some(&track.basis)))
    }
}

impl Track {
    fn follow(&mut self, bins: &VecDeque<Bin>, basis: &FlowBasis) {
        Bin::follow(&mut self.bins, bins.iter(), 0);
        // The most connections that there were at a time.
        if let (FlowBasis::Sockets(known), FlowBasis::Sockets(now))
        | (FlowBasis::Datagrams(known), FlowBasis::Datagrams(now)) = (&mut self.basis, basis)
        {
            *known = (*known).max(*now);
        }
    }
}
