//! Where vnettop itself sits: beside a benchmark, on a core that no busy watched thread runs on, where one is allowed.
//! It moves this process' own two threads and nobody else; children are started with the mask from before
//! ([`crate::sched::unseated`]), and with the benchmark's end that mask comes back.

use crate::sched;
use std::collections::BTreeMap;
use vnettop_sample::{CoreCounters, CoreId, CorePlace, CoreSet, Sample, Topology, row_of};

/// How often the seat is thought over.
const EVERY_NS: u64 = 1_000_000_000;
/// A watched thread that takes a smaller share of a core is not disturbed.
const BUSY_THREAD: f64 = 0.05;
/// Shares of softirq from which on a core is avoided, and from which on it is no seat at all: packets wait there.
const SOME_SOFTIRQ: f64 = 0.1;
const MUCH_SOFTIRQ: f64 = 0.5;
/// Shares of work from which on a core is avoided, and from which on the seat itself is left: later, so that it does not go to and fro.
const BUSY_CORE: f64 = 0.5;
const BUSY_SEAT: f64 = 0.8;
/// Without real-time priority vnettop would starve on a core as full as this.
const FULL_CORE: f64 = 0.9;
/// Seconds without a busy watched thread after which it may run anywhere again.
const QUIET: u32 = 3;

/// The seat, and what is known since it was last thought over.
#[derive(Debug, Default)]
pub(super) struct OwnCore {
    /// The core that vnettop keeps itself on; none while it runs anywhere.
    pub core: Option<CoreId>,
    /// Where vnettop may run at all; none before the first look.
    home: Option<CoreSet>,
    since_ns: u64,
    cores: Vec<CoreCounters>,
    /// By thread: its CPU time then, and the cores it has been on since.
    threads: BTreeMap<u32, Trail>,
    quiet: u32,
}

#[derive(Debug, Default)]
struct Trail {
    cpu_ns: u64,
    now_cpu_ns: u64,
    cores: CoreSet,
}

impl OwnCore {
    /// Notes where the watched threads are; once a second chooses and takes the seat.
    pub fn choose(&mut self, sample: &Sample) {
        if sample.threads.is_empty() && self.core.is_none() {
            (self.since_ns, self.quiet) = (0, 0);
            self.threads.clear();
            return;
        }
        self.note(sample);
        let elapsed_ns = sample.at_ns.saturating_sub(self.since_ns);
        if self.since_ns > 0 && elapsed_ns < EVERY_NS {
            return;
        }
        if self.since_ns > 0 {
            self.think_over(sample, elapsed_ns);
        }
        self.since_ns = sample.at_ns;
        self.cores.clone_from(&sample.cores);
        self.threads.clear();
        self.note(sample);
    }

    fn note(&mut self, sample: &Sample) {
        for thread in &sample.threads {
            let new = || Trail { cpu_ns: thread.cpu_ns, ..Trail::default() };
            let trail = self.threads.entry(thread.id.tid).or_insert_with(new);
            trail.now_cpu_ns = thread.cpu_ns;
            trail.cores.insert(thread.core);
        }
    }

    fn think_over(&mut self, sample: &Sample, elapsed_ns: u64) {
        let taken = self.taken(elapsed_ns);
        self.quiet = if taken.is_empty() { self.quiet + 1 } else { 0 };
        if taken.is_empty() && (self.core.is_none() || self.quiet < QUIET) {
            return;
        }
        let Some(home) = self.find_home() else { return };
        let chosen = if taken.is_empty() {
            None
        } else {
            let load = |core| load(&self.cores, &sample.cores, core);
            best(&home, &taken, self.core, &sample.facts.topology, sample.own.realtime, load)
        };
        if chosen != self.core {
            self.core = chosen.filter(|&core| sit(&CoreSet::single(core)));
            if self.core.is_none() {
                sit(&home);
            }
        }
        self.home = Some(home);
    }

    /// The cores that busy watched threads have been on.
    fn taken(&self, elapsed_ns: u64) -> CoreSet {
        let is_busy =
            |trail: &&Trail| trail.now_cpu_ns.saturating_sub(trail.cpu_ns) as f64 >= BUSY_THREAD * elapsed_ns as f64;
        self.threads.values().filter(is_busy).flat_map(|trail| trail.cores.iter()).collect()
    }

    /// Where vnettop may run. When somebody else has given it another mask than its seat, that one counts from now on.
    fn find_home(&mut self) -> Option<CoreSet> {
        let now = || sched::get_affinity(own_tid(), &mut Vec::new());
        let is = sched::kept_affinity("thread-self").or_else(|_| now()).ok()?;
        let known = self.home.take().unwrap_or_else(|| sched::started_with().clone());
        let set = self.core.map_or_else(|| known.clone(), CoreSet::single);
        if is == set {
            return Some(known);
        }
        self.core = None;
        Some(is)
    }
}

/// Both threads: the sampler, which calls this, and the one that shows.
fn sit(cores: &CoreSet) -> bool {
    let _shows_from_anywhere = sched::set_affinity(std::process::id(), cores);
    sched::set_affinity(own_tid(), cores).is_ok()
}

fn own_tid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// What a core does: share of its time in softirq, and busy at all.
#[derive(Debug, Clone, Copy, Default)]
struct OwnCoreLoad {
    softirq: f64,
    busy: f64,
}

/// That of a core between two readings; nothing where it is not known.
fn load(before: &[CoreCounters], now: &[CoreCounters], core: CoreId) -> OwnCoreLoad {
    let row = |rows| row_of(rows, &core, |row: &CoreCounters| row.core);
    let (Some(before), Some(now)) = (row(before), row(now)) else { return OwnCoreLoad::default() };
    let rise = |field: fn(&CoreCounters) -> u64| field(now).saturating_sub(field(before)) as f64;
    let (softirq, idle) = (rise(|row| row.softirq), rise(|row| row.idle));
    let busy = rise(|row| row.user) + rise(|row| row.system) + rise(|row| row.irq) + softirq;
    let whole = (busy + idle + rise(|row| row.steal)).max(1.0);
    OwnCoreLoad { softirq: softirq / whole, busy: busy / whole }
}

/// The best core for vnettop; none where every allowed one is taken.
fn best(
    home: &CoreSet,
    taken: &CoreSet,
    current: Option<CoreId>,
    topology: &Topology,
    realtime: bool,
    load: impl Fn(CoreId) -> OwnCoreLoad,
) -> Option<CoreId> {
    let shares = |place: &CorePlace, level: fn(&CorePlace) -> Option<u32>| {
        let theirs = |core: CoreId| topology.place(core).and_then(level);
        level(place).is_some_and(|own| taken.iter().any(|core| theirs(core) == Some(own)))
    };
    let rank = |place: &&CorePlace| {
        let (load, is_seat) = (load(place.core), current == Some(place.core));
        let is_busy = load.busy >= if is_seat { BUSY_SEAT } else { BUSY_CORE };
        let is_close = (shares(place, |place| place.physical), shares(place, |place| place.cluster));
        (is_close.0, load.softirq >= SOME_SOFTIRQ, is_busy, is_close.1, !is_seat, place.core)
    };
    let is_free = |place: &&CorePlace| {
        let (core, load) = (place.core, load(place.core));
        let is_allowed = place.online && home.contains(core) && !topology.isolated.contains(core);
        is_allowed && !taken.contains(core) && load.softirq < MUCH_SOFTIRQ && (realtime || load.busy < FULL_CORE)
    };
    topology.cores.iter().filter(is_free).min_by_key(rank).map(|place| place.core)
}

#[cfg(test)]
mod tests;
