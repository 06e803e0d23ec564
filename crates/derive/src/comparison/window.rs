//! One load while it runs: what the machine and the load's threads did in each interval, added up over the time that was measured.

use crate::cores::Shares;
use crate::ledger::{Bin, Ledger, Ticked, TimeSpan};
use crate::{CoreMetrics, Jitter, Metrics};

impl Ticked for LoadTick {
    fn span(&self) -> TimeSpan {
        self.span
    }
}

/// Collects while a load runs.
#[derive(Debug, Default)]
pub struct LoadWindow {
    ticks: Ledger<LoadTick>,
    bins: Ledger<Bin>,
}

/// One interval.
#[derive(Debug, Clone, Copy)]
struct LoadTick {
    span: TimeSpan,
    moves: Option<f64>,
    busy: Option<f64>,
    softirq: Option<f64>,
    /// Segments sent again.
    again: Option<f64>,
}

/// What happened in a window. Each is none where it is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LoadFigures {
    /// Rate of payload as seen from outside, bits/s.
    pub bits_per_s: Option<f64>,
    /// Coefficient of variation of it.
    pub cv: Option<f64>,
    /// Migrations of the load's threads, a second.
    pub moves_per_s: Option<f64>,
    /// Cores' worth that the machine used, without vnettop.
    pub busy_cores: Option<f64>,
    /// Part of `busy_cores` spent in softirqs, cores' worth.
    pub softirq_cores: Option<f64>,
}

impl LoadWindow {
    /// Segments that were sent again between two moments, monotonic ns, as far as connections were there to tell; none where no
    /// kernel told. It is not of whole intervals alone: what was sent again at an edge counts with its part.
    #[must_use]
    pub fn retransmits(&self, from_ns: u64, to_ns: u64) -> Option<u64> {
        let window = TimeSpan { from_ns, to_ns };
        let counted = window.counted(self.ticks.reaching_in(window), |tick| tick.again);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of segments, made whole")]
        let segments = counted.sum.round() as u64;
        (counted.weight > 0.0).then_some(segments)
    }

    /// Takes an interval in.
    pub fn observe(&mut self, metrics: &Metrics) {
        let Some(from_ns) = metrics.machine.began_ns() else { return };
        let elapsed_s = metrics.machine.elapsed_s.unwrap_or(0.0);
        let moves: Vec<f64> = metrics.subject.threads.iter().filter_map(|thread| thread.moves_per_s).collect();
        let shares: Option<Vec<_>> =
            metrics.machine.cores.iter().filter(|core| core.place.online).map(CoreMetrics::shares).collect();
        let busy = shares.as_ref().map(|shares| shares.iter().map(Shares::busy).sum::<f64>());
        self.ticks.add(LoadTick {
            span: TimeSpan { from_ns, to_ns: metrics.machine.at_ns },
            moves: (!moves.is_empty()).then(|| moves.iter().sum::<f64>() * elapsed_s),
            busy: busy.map(|busy| ((busy - metrics.machine.own_cpu.unwrap_or(0.0)) * elapsed_s).max(0.0)),
            again: again(metrics, elapsed_s),
            softirq: shares.map(|shares| shares.iter().map(|one| one.softirq).sum::<f64>() * elapsed_s),
        });
        self.bins.follow(metrics.subject.timeline.bins.iter(), 0);
    }

    /// What happened between two moments, monotonic ns; an interval or a bin that reaches over one of them counts with its part
    /// within.
    #[must_use]
    pub fn figures(&self, from_ns: u64, to_ns: u64) -> LoadFigures {
        let window = TimeSpan { from_ns, to_ns };
        let ticks = || self.ticks.reaching_in(window);
        let total = |of: fn(&LoadTick) -> Option<f64>| {
            window.counted(ticks(), of).value().filter(|_| ticks().all(|tick| of(tick).is_some()))
        };
        let jitter = Jitter::of(self.bins.within(from_ns, to_ns));
        let softirq_cores = total(|tick| tick.softirq);
        // vnettop's own time is measured, the cores' may be counted in ticks: what is left of them may be too little to be true.
        let is_possible = |busy: &f64| softirq_cores.is_none_or(|softirq| *busy >= softirq);
        LoadFigures {
            bits_per_s: window.mean(self.bins.reaching_in(window), |bin| bin.bits_per_s),
            cv: jitter.and_then(|jitter| jitter.cv),
            moves_per_s: total(|tick| tick.moves),
            busy_cores: total(|tick| tick.busy).filter(is_possible),
            softirq_cores,
        }
    }
}

/// What all senders sent again over an interval; a proxy's two connections are two senders.
fn again(metrics: &Metrics, elapsed_s: f64) -> Option<f64> {
    let connections = metrics.subject.flow.connections.iter().filter(|one| !one.relayed);
    let rates = connections.filter_map(|one| one.tcp()?.retransmits_per_s);
    rates.reduce(|sum, one| sum + one).map(|per_s| per_s * elapsed_s)
}
