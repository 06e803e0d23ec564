//! The last seconds of every core and of every watched thread: means that follow the present and forget the past, so
//! that one odd tick proposes nothing. It also tells what others put on a core from what the watched threads put there.

use super::cores::CoreMetrics;
use super::machine::MachineMetrics;
use super::share;
use super::threads::ThreadMetrics;
use super::traffic::{carrier, sends, servers_send};
use vnettop_sample::{Benchmark, CoreId, ThreadId, row_of};

/// Seconds over which a load fades.
const MEMORY_S: f64 = 3.0;

/// Means over the last seconds; fed with every metrics.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecentLoad {
    /// As many as the metrics have cores, in the same order.
    cores: Vec<CoreMean>,
    /// In the order of the metrics' threads.
    threads: Vec<(ThreadId, ThreadMean)>,
    /// Seconds of load behind the means: since the first of an unbroken stream.
    pub seconds: f64,
    /// What others than the watched threads used of the machine since the sample before, cores' worth; none where it is not
    /// known.
    pub others: Option<f64>,
}

/// What a core did over the last seconds; shares of its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoreRecent {
    /// Everything but idle and steal.
    pub busy: f64,
    /// `irq` and `softirq`.
    pub interrupts: f64,
    /// The part of `busy` that the watched threads did not cause.
    pub others: f64,
    /// The part of `interrupts` that the watched threads did not cause.
    pub others_interrupts: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct CoreMean {
    core: CoreId,
    /// Seconds behind the means.
    seconds: f64,
    process: f64,
    irq: f64,
    softirq: f64,
    /// CPU time of the watched threads while they were seen here.
    watched: f64,
    /// The part of it that is of threads which only receive what a card brings: the softirq work here is the card's.
    receiving: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct ThreadMean {
    seconds: f64,
    cpu: f64,
    wait: f64,
    core: CoreId,
}

impl RecentLoad {
    /// Takes one more tick into account; one without an elapsed time begins anew.
    pub fn observe(&mut self, machine: &MachineMetrics, threads: &[ThreadMetrics], benchmarks: &[Benchmark]) {
        let Some(elapsed) = machine.elapsed_s else {
            *self = Self::default();
            return;
        };
        self.seconds += elapsed;
        let same = self.cores.len() == machine.cores.len()
            && self.cores.iter().zip(&machine.cores).all(|(mean, core)| mean.core == core.place.core);
        if !same {
            let fresh = |core: &CoreMetrics| CoreMean { core: core.place.core, ..CoreMean::default() };
            self.cores = machine.cores.iter().map(fresh).collect();
        }
        let from_card = !threads.is_empty() && carrier(&machine.links).is_some();
        let servers_send = from_card.then(|| servers_send(threads, benchmarks));
        let mut watched = vec![(0.0, 0.0); self.cores.len()];
        self.observe_threads(threads, servers_send, elapsed, &mut watched);
        self.others = None;
        for ((mean, core), watched) in self.cores.iter_mut().zip(&machine.cores).zip(watched) {
            mean.observe(core, watched, elapsed);
            let mut tick = CoreMean::default();
            tick.observe(core, watched, elapsed);
            if tick.seconds > 0.0 {
                *self.others.get_or_insert_default() += tick.recent().others;
            }
        }
    }

    /// A watched thread's CPU time, share of one core; none before its second sample.
    #[must_use]
    pub fn thread_cpu(&self, thread: ThreadId) -> Option<f64> {
        mean_of(&self.threads, thread).filter(|mean| mean.seconds > 0.0).map(|mean| mean.cpu)
    }

    /// The same with the time that the thread waited for a core: what it would use if it could always run.
    #[must_use]
    pub fn thread_need(&self, thread: ThreadId) -> Option<f64> {
        mean_of(&self.threads, thread).filter(|mean| mean.seconds > 0.0).map(|mean| mean.cpu + mean.wait)
    }

    /// From now on what these threads do is others' work.
    pub(crate) fn give_to_others(&mut self, threads: impl Iterator<Item = ThreadId>) {
        for id in threads {
            let Some(mean) = mean_of(&self.threads, id) else { continue };
            if let Ok(at) = self.cores.binary_search_by_key(&mean.core, |core| core.core) {
                self.cores[at].watched = (self.cores[at].watched - mean.cpu).max(0.0);
            }
        }
    }

    /// What the core did; none where it is not known.
    #[must_use]
    pub fn core(&self, core: CoreId) -> Option<CoreRecent> {
        row_of(&self.cores, &core, |mean| mean.core).filter(|mean| mean.seconds > 0.0).map(CoreMean::recent)
    }

    /// Follows every watched thread and adds up, core by core, what they used in this tick. Of a thread that moved, half
    /// goes to either core: when in between it moved is not known. Where a card brings what they receive, `servers_send` says who
    /// receives.
    fn observe_threads(
        &mut self,
        threads: &[ThreadMetrics],
        servers_send: Option<bool>,
        elapsed: f64,
        watched: &mut [(f64, f64)],
    ) {
        let old = std::mem::take(&mut self.threads);
        self.threads.reserve(old.len());
        for thread in threads {
            let receives = servers_send.is_some_and(|servers_send| sends(thread, servers_send) == Some(false));
            let now = thread.sample.core;
            let fresh = ThreadMean { seconds: 0.0, cpu: 0.0, wait: 0.0, core: now };
            let mut mean = mean_of(&old, thread.sample.id).unwrap_or(fresh);
            let before = std::mem::replace(&mut mean.core, now);
            let Some(cpu) = thread.cpu else {
                self.threads.push((thread.sample.id, mean));
                continue;
            };
            mean.cpu += weight(mean.seconds, elapsed) * (cpu - mean.cpu);
            mean.wait += weight(mean.seconds, elapsed) * (thread.wait.unwrap_or(0.0) - mean.wait);
            mean.seconds += elapsed;
            self.threads.push((thread.sample.id, mean));
            for core in [before, now] {
                if let Ok(at) = self.cores.binary_search_by_key(&core, |mean| mean.core) {
                    watched[at].0 += cpu / 2.0;
                    watched[at].1 += if receives { cpu / 2.0 } else { 0.0 };
                }
            }
        }
    }
}

impl CoreMean {
    fn observe(&mut self, core: &CoreMetrics, (watched, receiving): (f64, f64), elapsed: f64) {
        let Some(shares) = core.shares() else { return };
        let weight = weight(self.seconds, elapsed);
        self.seconds += elapsed;
        self.process += weight * (shares.user + shares.system - self.process);
        self.irq += weight * (shares.irq - self.irq);
        self.softirq += weight * (shares.softirq - self.softirq);
        self.watched += weight * (watched - self.watched);
        self.receiving += weight * (receiving - self.receiving);
    }

    /// Softirq time is shared between the watched threads and others as the process time is: what a sender sends is
    /// carried on in softirq on its own core. A thread that only receives what a card brings causes none where it runs:
    /// its time is left out of that sharing. Interrupts of devices are never the watched threads'. Whether a thread's
    /// CPU time has softirq time in it depends on the kernel's configuration, so the larger reading counts as theirs.
    fn recent(&self) -> CoreRecent {
        let busy = self.process + self.irq + self.softirq;
        let sending = (self.watched - self.receiving).max(0.0);
        let rest = (self.process - self.receiving).max(f64::EPSILON);
        let part = if sending > f64::EPSILON { (sending / rest).min(1.0) } else { 0.0 };
        let own_softirq = self.softirq * part;
        let (_, others) = share::own_and_others([self.process, self.irq + self.softirq], [self.watched, own_softirq]);
        CoreRecent {
            busy,
            interrupts: self.irq + self.softirq,
            others: others.max(self.irq),
            others_interrupts: self.irq + self.softirq - own_softirq,
        }
    }
}

fn mean_of(threads: &[(ThreadId, ThreadMean)], thread: ThreadId) -> Option<ThreadMean> {
    row_of(threads, &thread, |(id, _)| *id).map(|(_, mean)| *mean)
}

/// The weight of a new observation: the plain mean at first, fading later.
fn weight(seconds: f64, elapsed: f64) -> f64 {
    elapsed / (seconds.min(MEMORY_S) + elapsed).max(f64::MIN_POSITIVE)
}
