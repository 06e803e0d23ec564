//! Per-core counters of two samples → shares of time, softirqs a second, backlog trouble.

use super::rate::{per_second, seconds};
use super::share;
use vnettop_sample::{CoreCounters, CoreId, CorePlace, Sample, SoftirqTime, Softnet, row_of};

/// One core: where it sits and what it did between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoreMetrics {
    /// Where it sits; `online` is in here.
    pub place: CorePlace,
    /// What it did; none while offline, in the first sample and in the tick it came online.
    pub load: Option<CoreLoad>,
}

/// What a core did between two samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CoreLoad {
    /// Shares of its time; none when the clock ticks did not advance (an interval below one tick).
    pub shares: Option<Shares>,
    /// By [`vnettop_sample::SOFTIRQ_KINDS`], a second.
    pub softirqs_per_s: [Option<f64>; 10],
    /// Packets taken from the backlog a second.
    pub softnet_processed_per_s: Option<f64>,
    /// Packets the full backlog dropped, a second.
    pub softnet_dropped_per_s: Option<f64>,
    /// Times the softirq ran out of budget, a second.
    pub softnet_squeezed_per_s: Option<f64>,
    /// Share of its time in each kind of softirq, from entry to exit, by [`vnettop_sample::SOFTIRQ_KINDS`]; none where it is not
    /// measured.
    pub softirqs_exact: Option<[f64; 10]>,
    /// Share of the time that `ksoftirqd` ran: softirqs have left interrupt context.
    pub ksoftirqd: Option<f64>,
}

/// Shares of one core's time; they sum to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[allow(missing_docs, reason = "the words of /proc/stat; user has nice in it, idle has iowait in it")]
pub struct Shares {
    pub user: f64,
    pub system: f64,
    pub irq: f64,
    pub softirq: f64,
    pub steal: f64,
    pub idle: f64,
}

impl Shares {
    /// Everything but idle and steal.
    #[must_use]
    pub fn busy(&self) -> f64 {
        self.user + self.system + self.irq + self.softirq
    }
}

impl CoreMetrics {
    /// Shares of its time, where known. Where softirqs are measured from entry to exit, their share is that, and what is left
    /// is shared out as it was sampled at clock ticks.
    #[must_use]
    pub fn shares(&self) -> Option<Shares> {
        let load = self.load?;
        let Some(kinds) = load.softirqs_exact else { return load.shares };
        let (sampled, softirq) = (load.shares?, kinds.iter().sum::<f64>());
        let others = 1.0 - sampled.softirq;
        let part = |share: f64| if others > 0.0 { share / others * (1.0 - softirq) } else { 0.0 };
        let [user, system, irq, steal] = [sampled.user, sampled.system, sampled.irq, sampled.steal].map(part);
        Some(Shares { user, system, irq, softirq, steal, idle: (1.0 - user - system - irq - steal - softirq).max(0.0) })
    }
}

/// Every present core of the newer sample.
#[must_use]
pub fn between<'a>(previous: Option<&'a Sample>, next: &'a Sample) -> Vec<CoreMetrics> {
    let elapsed = previous.and_then(|prev| seconds(prev.cores_at_ns, next.cores_at_ns));
    let load = |place: &CorePlace| {
        let counters = |sample: &'a Sample| row_of(&sample.cores, &place.core, |row| row.core);
        let old = counters(previous?)?;
        let exact = previous.and_then(|previous| exact(previous, next, place.core));
        Some(CoreLoad { softirqs_exact: exact, ..load(old, counters(next)?, elapsed?) })
    };
    next.facts.topology.cores.iter().map(|place| CoreMetrics { place: *place, load: load(place) }).collect()
}

fn load(old: &CoreCounters, new: &CoreCounters, seconds: f64) -> CoreLoad {
    let rate = |from: Option<u64>, to: Option<u64>| per_second(from?, to?, seconds);
    let wrapping = |field: fn(&Softnet) -> u32| {
        let (from, to) = (field(&old.softnet?), field(&new.softnet?));
        Some(f64::from(to.wrapping_sub(from)) / seconds)
    };
    CoreLoad {
        shares: shares(old, new),
        softirqs_per_s: std::array::from_fn(|kind| rate(old.softirqs[kind], new.softirqs[kind])),
        softnet_processed_per_s: wrapping(|row| row.processed),
        softnet_dropped_per_s: wrapping(|row| row.dropped),
        softnet_squeezed_per_s: wrapping(|row| row.squeezed),
        softirqs_exact: None,
        ksoftirqd: rate(old.ksoftirqd_ns, new.ksoftirqd_ns).and_then(|ns| share::share(ns, 1e9)),
    }
}

fn softirqs(sample: &Sample) -> Option<&[SoftirqTime]> {
    sample.kernel.as_ref()?.softirqs.as_deref()
}

/// Shares of a core's time in each kind of softirq, as the kernel's programs measured them; a core in which none was measured
/// yet has spent no time in any.
fn exact(previous: &Sample, next: &Sample, core: CoreId) -> Option<[f64; 10]> {
    let (old, new) = (softirqs(previous)?, softirqs(next)?);
    let Some(new) = row_of(new, &core, |time| time.core) else { return Some([0.0; 10]) };
    let from_ns = old.first().map_or(previous.at_ns, |time| time.at_ns);
    let before = row_of(old, &core, |time| time.core).map_or([0; 10], |time| time.ns);
    let elapsed = seconds(from_ns, new.at_ns)?;
    let mut kinds = [0.0; 10];
    for (kind, seconds) in kinds.iter_mut().enumerate() {
        *seconds = new.ns[kind].checked_sub(before[kind])? as f64 / 1e9;
    }
    // A softirq is booked when it is over: one that began before this time may make it longer than it seems to be.
    let elapsed = elapsed.max(kinds.iter().sum());
    Some(kinds.map(|seconds| seconds / elapsed))
}

/// Shares over the ticks that the core itself counted. `idle` may step back by a tick (the kernel estimates it on idle
/// cores); such a step counts as none. Any other counter going backwards means the core was offline in between.
fn shares(old: &CoreCounters, new: &CoreCounters) -> Option<Shares> {
    let user = new.user.checked_sub(old.user)?;
    let system = new.system.checked_sub(old.system)?;
    let irq = new.irq.checked_sub(old.irq)?;
    let softirq = new.softirq.checked_sub(old.softirq)?;
    let steal = new.steal.checked_sub(old.steal)?;
    let idle = new.idle.saturating_sub(old.idle);
    let total: f64 = [user, system, irq, softirq, steal, idle].iter().map(|&ticks| ticks as f64).sum();
    let share = |ticks: u64| ticks as f64 / total;
    (total > 0.0).then(|| Shares {
        user: share(user),
        system: share(system),
        irq: share(irq),
        softirq: share(softirq),
        steal: share(steal),
        idle: share(idle),
    })
}
