//! One load while it runs: what the machine and the load's threads did in each interval, added up over the time that was measured.

use crate::derive::cores::Shares;
use crate::derive::{Bin, CoreMetrics, Jitter, Metrics};

/// Collects while a load runs.
#[derive(Debug, Default)]
pub struct LoadWindow {
    ticks: Vec<LoadTick>,
    bins: Vec<Bin>,
}

/// One interval.
#[derive(Debug, Clone, Copy)]
struct LoadTick {
    from_ns: u64,
    to_ns: u64,
    moves: Option<f64>,
    busy: Option<f64>,
    softirq: Option<f64>,
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
    /// Of it in softirqs.
    pub softirq_cores: Option<f64>,
}

impl LoadWindow {
    /// Takes an interval in.
    pub fn observe(&mut self, metrics: &Metrics) {
        let Some(from_ns) = metrics.began_ns() else { return };
        let elapsed_s = metrics.elapsed_s.unwrap_or(0.0);
        let moves: Vec<f64> = metrics.benchmark().filter_map(|thread| thread.moves_per_s).collect();
        let shares: Option<Vec<_>> =
            metrics.cores.iter().filter(|core| core.place.online).map(CoreMetrics::shares).collect();
        let busy = shares.as_ref().map(|shares| shares.iter().map(Shares::busy).sum::<f64>());
        self.ticks.push(LoadTick {
            from_ns,
            to_ns: metrics.at_ns,
            moves: (!moves.is_empty()).then(|| moves.iter().sum::<f64>() * elapsed_s),
            busy: busy.map(|busy| ((busy - metrics.own_cpu.unwrap_or(0.0)) * elapsed_s).max(0.0)),
            softirq: shares.map(|shares| shares.iter().map(|one| one.softirq).sum::<f64>() * elapsed_s),
        });
        // The newest minute of bins is always there; what was taken before and is there again is the same bin, more settled.
        let Some(first) = metrics.timeline.bins.first() else { return };
        self.bins.truncate(self.bins.partition_point(|bin| bin.from_ns < first.from_ns));
        self.bins.extend_from_slice(&metrics.timeline.bins);
    }

    /// What happened between two moments, monotonic ns: of the intervals and bins that lie wholly within.
    #[must_use]
    pub fn figures(&self, from_ns: u64, to_ns: u64) -> LoadFigures {
        let ticks: Vec<&LoadTick> =
            self.ticks.iter().filter(|tick| tick.from_ns >= from_ns && tick.to_ns <= to_ns).collect();
        let length_s = ticks.iter().map(|tick| (tick.to_ns - tick.from_ns) as f64 / 1e9).sum::<f64>();
        let total = |of: fn(&LoadTick) -> Option<f64>| {
            let all: Option<Vec<f64>> = ticks.iter().map(|tick| of(tick)).collect();
            all.filter(|_| length_s > 0.0).map(|all| all.iter().sum::<f64>() / length_s)
        };
        let within: Vec<&Bin> = self.bins.iter().filter(|bin| bin.from_ns >= from_ns && bin.to_ns <= to_ns).collect();
        let jitter = Jitter::of(within.iter().copied());
        let rates: Vec<f64> = within.iter().filter_map(|bin| bin.bits_per_s).collect();
        let softirq_cores = total(|tick| tick.softirq);
        // vnettop's own time is measured, the cores' may be counted in ticks: what is left of them may be too little to be true.
        let is_possible = |busy: &f64| softirq_cores.is_none_or(|softirq| *busy >= softirq);
        LoadFigures {
            bits_per_s: (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64),
            cv: jitter.and_then(|jitter| jitter.cv),
            moves_per_s: total(|tick| tick.moves),
            busy_cores: total(|tick| tick.busy).filter(is_possible),
            softirq_cores,
        }
    }
}
