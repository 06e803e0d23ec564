//! What the watched threads and their cores suffered tick by tick, beside the rate of the same ticks: for the question
//! what a rate follows that does not follow the moves. A correlation is all it claims.

use crate::derive::cause::permute;
use crate::derive::cause::series::{centred, correlation, dot, mean};
use crate::derive::ledger::{Bin, Ledger, Ticked, TimeSpan};
use crate::derive::placement::BUSY;
use crate::derive::{Mean, TestMetrics};

/// What a rate may follow instead of moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OtherCause {
    /// Time the hypervisor took from the watched threads' cores.
    Steal,
    /// Interrupts and softirqs of others on those cores.
    Softirq,
    /// Run-queue wait of the watched threads.
    Wait,
    /// Softirq rounds cut short on those cores.
    Squeezed,
    /// CPU time that a thread of the test did not get, one that could always run.
    Starved,
}

/// The suspect that the rate follows best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CauseCandidate {
    /// Which.
    pub suspect: OtherCause,
    /// Pearson's correlation with the rate, below 0.
    pub correlation: f64,
    /// Its mean: a share, or times a second for [`OtherCause::Squeezed`].
    pub mean: f64,
}

const SUSPECTS: [OtherCause; 5] =
    [OtherCause::Steal, OtherCause::Softirq, OtherCause::Wait, OtherCause::Squeezed, OtherCause::Starved];
/// Index of `Starved` in [`SUSPECTS`]. It is a suspect only if the busiest thread ran or waited to run for at least `ALWAYS` of
/// the time: a thread that sleeps by choice is not starved.
const STARVED: usize = 4;
const ALWAYS: f64 = 0.8;
/// Least ticks for a correlation worth a word.
const LEAST_TICKS: usize = 20;
/// A correlation weaker than this is none.
const LEAST_CORRELATION: f64 = -0.4;
/// A correlation that shifting makes as strong more often than this is none.
const CHANCE: f64 = 0.05;
/// What `recent` means, ns.
const RECENT_NS: u64 = 5_000_000_000;

#[derive(Debug, Clone, Default)]
pub(in crate::derive) struct Surroundings {
    ticks: Ledger<SurroundingsTick>,
}

#[derive(Debug, Clone, Copy)]
struct SurroundingsTick {
    span: TimeSpan,
    /// Mean of the bins that ended in it, bits/s.
    rate: Option<f64>,
    /// By [`SUSPECTS`].
    suffered: [f64; 5],
    /// Share of the time that the busiest thread ran or waited to run.
    could_run: f64,
}

impl Ticked for SurroundingsTick {
    fn span(&self) -> TimeSpan {
        self.span
    }
}

impl Surroundings {
    pub(super) fn observe(&mut self, metrics: &TestMetrics, bins: &Ledger<Bin>, keep_ns: u64) {
        let Some(from_ns) = metrics.machine.began_ns() else {
            self.ticks.clear();
            return;
        };
        let mut rate = Mean::default();
        bins.iter().rev().take_while(|bin| bin.to_ns > from_ns).for_each(|bin| rate.add(bin.bits_per_s, 1.0));
        let Some((suffered, could_run)) = suffered(metrics) else { return };
        let span = TimeSpan { from_ns, to_ns: metrics.machine.at_ns };
        self.ticks.add(SurroundingsTick { span, rate: rate.value(), suffered, could_run });
        self.ticks.forget(span.to_ns.saturating_sub(keep_ns));
    }

    /// Share of the time that the hypervisor took from the watched threads' cores, over the last seconds.
    pub(in crate::derive) fn recent_steal(&self) -> Option<f64> {
        let recent = TimeSpan::until(self.ticks.last()?.span.to_ns, RECENT_NS);
        let mut steal = Mean::default();
        self.ticks.reaching_in(recent).for_each(|tick| steal.add(Some(tick.suffered[0]), 1.0));
        steal.value()
    }

    /// What the rate followed since that instant.
    pub(super) fn rival(&self, from_ns: u64) -> Option<CauseCandidate> {
        let known: Vec<(f64, [f64; 5], f64)> = self
            .ticks
            .iter()
            .filter(|tick| tick.span.to_ns > from_ns)
            .filter_map(|tick| Some((tick.rate?, tick.suffered, tick.could_run)))
            .collect();
        if known.len() < LEAST_TICKS {
            return None;
        }
        let rates: Vec<f64> = known.iter().map(|(rate, ..)| *rate).collect();
        let could_run: Vec<f64> = known.iter().map(|(.., could_run)| *could_run).collect();
        let of = |suspect: usize| known.iter().map(|(_, suffered, _)| suffered[suspect]).collect::<Vec<f64>>();
        let suspects = (0..SUSPECTS.len()).filter(|&suspect| suspect != STARVED || mean(&could_run) >= ALWAYS);
        let correlated = suspects.filter_map(|suspect| Some((suspect, correlation(&rates, &of(suspect))?)));
        let (suspect, correlation) = correlated.min_by(|one, other| one.1.total_cmp(&other.1))?;
        if correlation > LEAST_CORRELATION {
            return None;
        }
        let suffered = of(suspect);
        let (rates, centred) = (centred(&rates), centred(&suffered));
        let scale = dot(&centred, &centred).sqrt();
        let by_chance = permute::shifted(&rates, &[centred], &[scale], 0);
        (by_chance <= CHANCE).then(|| CauseCandidate { suspect: SUSPECTS[suspect], correlation, mean: mean(&suffered) })
    }
}

/// Means over the busy watched threads and their cores, and what the one that wants most CPU time did not get and could have used;
/// none without any.
fn suffered(metrics: &TestMetrics) -> Option<([f64; 5], f64)> {
    let (mut sums, mut threads) = ([0.0; 5], 0.0);
    for thread in metrics.threads.iter().filter(|thread| thread.cpu.is_some_and(|cpu| cpu > BUSY)) {
        threads += 1.0;
        sums[2] += thread.wait.unwrap_or(0.0);
        let Some(core) = metrics.machine.core(thread.sample.core) else { continue };
        let Some((load, shares)) = core.load.and_then(|load| Some((load, load.shares?))) else { continue };
        let own = thread.cpu.unwrap_or(0.0) / (shares.user + shares.system).max(0.01);
        sums[0] += shares.steal;
        sums[1] += shares.irq + shares.softirq * (1.0 - own.min(1.0));
        sums[3] += load.softnet_squeezed_per_s.unwrap_or(0.0);
    }
    let wants = metrics.threads.iter().filter_map(|thread| Some((thread.cpu?, thread.wait?)));
    let (cpu, wait) = wants.max_by(|one, other| (one.0 + one.1).total_cmp(&(other.0 + other.1))).unwrap_or_default();
    sums[STARVED] = threads * (1.0 - cpu).max(0.0);
    (threads > 0.0).then(|| (sums.map(|sum| sum / threads), cpu + wait))
}
