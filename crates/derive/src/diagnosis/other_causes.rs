//! What the watched threads and their cores suffered tick by tick, beside the rate of the same ticks: for the question
//! what a rate follows that does not follow the moves. A correlation is all it claims.

use crate::ledger::{Bin, Ledger, Ticked, TimeSpan};
use crate::migration_cost::permute;
use crate::migration_cost::series::{centred, correlation, dot, mean};
use crate::placement::BUSY;
use crate::{Mean, TestMetrics, ThreadMetrics};
use strum::IntoEnumIterator;

/// What a rate may follow instead of moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::EnumIter)]
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
    /// The same of a thread that carries the packets between the ends.
    Worker,
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

/// What the rate was compared with, so that nothing is denied that was not looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ComparedCauses {
    /// Ticks with a rate. Of fewer than [`LEAST_TICKS`] nothing is compared.
    pub ticks: usize,
    /// [`OtherCause::Starved`] was compared too, because the busiest thread could always run.
    pub starved: bool,
    /// [`OtherCause::Worker`] was compared too, for the same reason.
    pub worker: bool,
}

impl ComparedCauses {
    /// There were enough ticks.
    #[must_use]
    pub fn is_any(self) -> bool {
        self.ticks >= LEAST_TICKS
    }
}

/// A thread could always run that ran or waited to run for this share of the time. One that sleeps by choice is not starved.
const ALWAYS: f64 = 0.8;
/// Least ticks for a correlation worth a word.
pub const LEAST_TICKS: usize = 20;
/// A correlation weaker than this is none.
const LEAST_CORRELATION: f64 = -0.4;
/// A correlation that shifting makes as strong more often than this is none.
const CHANCE: f64 = 0.05;
/// What `recent` means, ns.
const RECENT_NS: u64 = 5_000_000_000;

#[derive(Debug, Clone, Default)]
pub(crate) struct OtherCauses {
    ticks: Ledger<OtherCausesTick>,
}

/// What the watched threads and their cores suffered in a tick: shares of the time, squeezes a second.
#[derive(Debug, Clone, Copy, Default)]
struct Suffered {
    steal: f64,
    softirq: f64,
    wait: f64,
    squeezed: f64,
    starved: f64,
    worker: f64,
}

impl Suffered {
    fn from(self, suspect: OtherCause) -> f64 {
        match suspect {
            OtherCause::Steal => self.steal,
            OtherCause::Softirq => self.softirq,
            OtherCause::Wait => self.wait,
            OtherCause::Squeezed => self.squeezed,
            OtherCause::Starved => self.starved,
            OtherCause::Worker => self.worker,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct OtherCausesTick {
    span: TimeSpan,
    /// Mean of the bins that ended in it, bits/s.
    rate: Option<f64>,
    suffered: Suffered,
    /// Share of the time that the busiest thread ran or waited to run: at the ends, and between them.
    could_run: [f64; 2],
}

impl Ticked for OtherCausesTick {
    fn span(&self) -> TimeSpan {
        self.span
    }
}

impl OtherCauses {
    pub(super) fn observe(&mut self, metrics: &TestMetrics, bins: &Ledger<Bin>, keep_ns: u64) {
        let Some(from_ns) = metrics.machine.began_ns() else {
            self.ticks.clear();
            return;
        };
        let mut rate = Mean::default();
        bins.iter().rev().take_while(|bin| bin.to_ns > from_ns).for_each(|bin| rate.add(bin.bits_per_s, 1.0));
        let Some((suffered, could_run)) = suffered(metrics) else { return };
        let span = TimeSpan { from_ns, to_ns: metrics.machine.at_ns };
        self.ticks.add(OtherCausesTick { span, rate: rate.value(), suffered, could_run });
        self.ticks.forget(span.to_ns.saturating_sub(keep_ns));
    }

    /// Share of the time that the hypervisor took from the watched threads' cores, over the last seconds.
    pub(crate) fn recent_steal(&self) -> Option<f64> {
        let recent = TimeSpan::until(self.ticks.last()?.span.to_ns, RECENT_NS);
        let mut steal = Mean::default();
        self.ticks.reaching_in(recent).for_each(|tick| steal.add(Some(tick.suffered.steal), 1.0));
        steal.value()
    }

    /// What the rate followed since that instant, and with what it was compared.
    pub(super) fn rival(&self, from_ns: u64) -> (Option<CauseCandidate>, ComparedCauses) {
        let known: Vec<(f64, Suffered, [f64; 2])> = self
            .ticks
            .iter()
            .filter(|tick| tick.span.to_ns > from_ns)
            .filter_map(|tick| Some((tick.rate?, tick.suffered, tick.could_run)))
            .collect();
        let always =
            |end: usize| mean(&known.iter().map(|(.., could_run)| could_run[end]).collect::<Vec<_>>()) >= ALWAYS;
        let compared = ComparedCauses { ticks: known.len(), starved: always(0), worker: always(1) };
        let rates: Vec<f64> = known.iter().map(|(rate, ..)| *rate).collect();
        let of = |suspect| known.iter().map(|(_, suffered, _)| suffered.from(suspect)).collect::<Vec<f64>>();
        let best = || {
            let suspects = OtherCause::iter().filter(|suspect| match suspect {
                OtherCause::Starved => compared.starved,
                OtherCause::Worker => compared.worker,
                _ => true,
            });
            let correlated = suspects.filter_map(|suspect| Some((suspect, correlation(&rates, &of(suspect))?)));
            let strongest = correlated.min_by(|one, other| one.1.total_cmp(&other.1));
            let (suspect, correlation) = strongest.filter(|(_, correlation)| *correlation <= LEAST_CORRELATION)?;
            let suffered = of(suspect);
            let (rates, centred) = (centred(&rates), centred(&suffered));
            let scale = dot(&centred, &centred).sqrt();
            let by_chance = permute::shifted(&rates, &[centred], &[scale], 0);
            (by_chance <= CHANCE).then(|| CauseCandidate { suspect, correlation, mean: mean(&suffered) })
        };
        (if compared.is_any() { best() } else { None }, compared)
    }
}

/// Means over the busy watched threads and their cores, and what the one that wants most CPU time did not get and could have used;
/// none without any.
fn suffered(metrics: &TestMetrics) -> Option<(Suffered, [f64; 2])> {
    let (mut sums, mut threads) = (Suffered::default(), 0.0_f64);
    for thread in metrics.threads.iter().filter(|thread| thread.cpu.is_some_and(|cpu| cpu > BUSY)) {
        threads += 1.0;
        sums.wait += thread.wait.unwrap_or(0.0);
        let Some(core) = metrics.machine.core(thread.sample.core) else { continue };
        let Some((load, shares)) = core.load.and_then(|load| Some((load, load.shares?))) else { continue };
        let own = thread.cpu.unwrap_or(0.0) / (shares.user + shares.system).max(0.01);
        sums.steal += shares.steal;
        sums.softirq += shares.irq + shares.softirq * (1.0 - own.min(1.0));
        sums.squeezed += load.softnet_squeezed_per_s.unwrap_or(0.0);
    }
    let (cpu, wait) = most_wanted(metrics.threads.iter());
    let workers = metrics.workers.iter().filter(|worker| !worker.polls());
    let (worker_cpu, worker_wait) = most_wanted(workers.map(|worker| &worker.thread));
    let each = |sum: f64| sum / threads;
    let means = Suffered {
        steal: each(sums.steal),
        softirq: each(sums.softirq),
        wait: each(sums.wait),
        squeezed: each(sums.squeezed),
        starved: (1.0 - cpu).max(0.0),
        worker: (1.0 - worker_cpu).max(0.0),
    };
    (threads > 0.0).then_some((means, [cpu + wait, worker_cpu + worker_wait]))
}

/// CPU time and wait of the thread that could have run most.
fn most_wanted<'a>(threads: impl Iterator<Item = &'a ThreadMetrics>) -> (f64, f64) {
    let wants = threads.filter_map(|thread| Some((thread.cpu?, thread.wait?)));
    wants.max_by(|one, other| (one.0 + one.1).total_cmp(&(other.0 + other.1))).unwrap_or_default()
}
