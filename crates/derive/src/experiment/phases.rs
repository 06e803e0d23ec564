//! The phases of an experiment: which treatment the benchmark had when, and which bins of its rate count for it: those with traffic,
//! inside the phase, after its settling time.

use super::{LEAST_BINS, Pair};
use crate::ledger::{Bin, FlowBasis, Ledger, known};
use vnettop_sample::StretchSide;

/// Every phase so far, in the order of time.
#[derive(Debug, Clone)]
pub(crate) struct PhaseLog<T>(Vec<LoggedPhase<T>>);

/// A part of a run with one treatment; `CLOCK_MONOTONIC`, ns.
#[derive(Debug, Clone, Copy)]
struct LoggedPhase<T> {
    treatment: T,
    from_ns: u64,
    to_ns: u64,
}

/// What counts of a phase.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CountedPhase<T> {
    pub treatment: T,
    pub bins: Vec<Bin>,
}

/// A bin below this part of the median rate is no traffic yet, or no more.
const TRAFFIC: f64 = 0.05;

impl<T: Copy> PhaseLog<T> {
    /// A treatment begins.
    pub fn begin(&mut self, at_ns: u64, treatment: T) {
        self.0.push(LoggedPhase { treatment, from_ns: at_ns, to_ns: u64::MAX });
    }

    /// A phase ends with whatever comes next.
    pub fn end(&mut self, at_ns: u64) {
        if let Some(last) = self.0.last_mut() {
            last.to_ns = last.to_ns.min(at_ns);
        }
    }

    /// The treatment that has lasted since before `from_ns`, its settling dropped; none between phases.
    pub fn settled(&self, from_ns: u64, settle_ns: u64) -> Option<T> {
        let last = self.0.last().filter(|last| last.to_ns == u64::MAX)?;
        (from_ns >= last.from_ns.saturating_add(settle_ns)).then_some(last.treatment)
    }

    /// What counts of the phases that began between two moments, in which the command ran; those without a known rate are left out.
    pub fn counted(
        &self,
        (from_ns, to_ns): (u64, u64),
        (bins, basis): (&Ledger<Bin>, Option<&FlowBasis>),
        settle_ns: u64,
    ) -> Vec<CountedPhase<T>> {
        let Some((first_ns, last_ns)) = traffic(bins.within(from_ns, to_ns), basis) else { return Vec::new() };
        let counted = |phase: &LoggedPhase<T>| {
            let settled_ns = phase.from_ns.max(first_ns).saturating_add(settle_ns);
            let bins = bins.within(settled_ns, phase.to_ns.min(last_ns)).copied().collect();
            CountedPhase { treatment: phase.treatment, bins }
        };
        let own = self.0.iter().filter(|phase| phase.from_ns >= from_ns && phase.from_ns <= to_ns);
        own.map(counted).filter(|phase| known(&phase.bins) > 0).collect()
    }
}

impl<T> Default for PhaseLog<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// The bins of one side.
pub(crate) fn of_side(phases: &[CountedPhase<StretchSide>], side: StretchSide) -> Vec<Bin> {
    phases.iter().filter(|phase| phase.treatment == side).flat_map(|phase| &phase.bins).copied().collect()
}

/// Neighbouring phases of different sides, unpinned first. A phase cut short to less than half of the usual length has no
/// neighbour.
pub(crate) fn pairs(phases: &[CountedPhase<StretchSide>]) -> Vec<Pair> {
    let mut lengths: Vec<usize> = phases.iter().map(|phase| known(&phase.bins)).collect();
    lengths.sort_unstable();
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let mut pairs = Vec::new();
    let mut alone: Option<&CountedPhase<StretchSide>> = None;
    for phase in phases.iter().filter(|phase| known(&phase.bins) >= LEAST_BINS.max(usual / 2)) {
        alone = match alone.filter(|one| one.treatment != phase.treatment) {
            None => Some(phase),
            Some(one) => {
                let is_first = one.treatment == StretchSide::Unpinned;
                let (unpinned, pinned) = if is_first { (one, phase) } else { (phase, one) };
                pairs.push([unpinned.bins.clone(), pinned.bins.clone()]);
                None
            }
        };
    }
    pairs
}

/// From when to when there is traffic: a program starts before its first byte and ends after its last. The first
/// and last bins of a link and of datagrams are only partly filled; those of connections are whole.
pub(crate) fn traffic<'a>(
    bins: impl DoubleEndedIterator<Item = &'a Bin> + Clone,
    basis: Option<&FlowBasis>,
) -> Option<(u64, u64)> {
    let mut rates: Vec<f64> = bins.clone().filter_map(|bin| bin.bits_per_s).filter(|rate| *rate > 0.0).collect();
    rates.sort_by(f64::total_cmp);
    let threshold = TRAFFIC * rates.get(rates.len() / 2)?;
    let mut flows = bins.filter(|bin| bin.bits_per_s.is_some_and(|rate| rate >= threshold));
    let first = flows.next()?;
    match (basis, flows.next_back()) {
        (Some(FlowBasis::Link(_) | FlowBasis::Datagrams(_)), Some(last)) => Some((first.to_ns, last.from_ns)),
        (_, last) => Some((first.from_ns, last.unwrap_or(first).to_ns)),
    }
}
