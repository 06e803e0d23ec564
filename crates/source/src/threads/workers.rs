//! The threads that carry packets between the ends of a test: of the programs on its paths, of Open vSwitch, and the kernel's own
//! for them (vhost, NAPI). They are read beside the watched ones and are no part of the benchmark. What a process holds says
//! what its threads are; only the busy ones are read, and nothing is opened where no path has such a program.

mod kernel_threads;
mod roles;

use super::groups::GroupLimits;
use super::task::{Known, Lost, Task, TaskReading};
use super::visibility::{self, Namespace};
use crate::{Roots, now_ns};
use kernel_threads::KernelThreads;
use roles::{Glance, role};
use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{CarrierKind, Duty, FlowPath, LinkKey, PathWork, Steering, ThreadSample, WorkerRole};

/// How often the threads of these processes are listed, ns; the second time sooner, because one look shows no load.
const LISTING_NS: u64 = 1_000_000_000;
const SECOND_LISTING_NS: u64 = 200_000_000;
/// Share of a core, used and waited for, from which on a thread carries packets.
const BUSY: f64 = 0.02;
/// Listings for which a thread that was busy stays.
const KEPT: u8 = 10;
/// Threads of one process that are looked at, and that are read.
const MOST_LOOKED_AT: usize = 256;
const MOST_READ: usize = 32;

/// Whose threads are wanted.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Carriers {
    /// Programs, and as what they take packets.
    pub programs: BTreeMap<u32, CarrierKind>,
    /// Threads of NAPI, and whose packets they receive.
    pub napi: BTreeMap<u32, LinkKey>,
}

impl Carriers {
    /// The programs of these paths, the NAPI threads of their links, and the processes of Open vSwitch.
    pub fn of(paths: &[FlowPath], steering: &[Steering], switches: impl Iterator<Item = u32>) -> Self {
        let switches = switches.map(|pid| (pid, CarrierKind::Switch));
        let programs = paths.iter().flat_map(|path| &path.carriers).map(|one| (one.pid, one.kind));
        let napi = steering.iter().flat_map(|of| of.napi.iter().map(|thread| (thread.pid, of.link)));
        Self { programs: programs.chain(switches).collect(), napi: napi.collect() }
    }

    fn is_empty(&self) -> bool {
        self.programs.is_empty() && self.napi.is_empty()
    }
}

/// Reads the workers; opens nothing before there is one.
#[derive(Debug, Default)]
pub struct WorkerReader {
    roots: Roots,
    reading: Option<TaskReading>,
    limits: GroupLimits,
    carriers: Carriers,
    /// By process and thread.
    workers: BTreeMap<(u32, u32), ReadWorker>,
    known: BTreeMap<u32, Known>,
    /// What each thread of these programs had used at the last listing.
    glances: BTreeMap<(u32, u32), Glance>,
    kernel: KernelThreads,
    listed_at_ns: u64,
    is_young: bool,
}

#[derive(Debug)]
struct ReadWorker {
    task: Task,
    work: PathWork,
    /// Listings since it was busy.
    idle_for: u8,
}

impl WorkerReader {
    /// Nothing is opened yet.
    #[must_use]
    pub fn new(roots: &Roots) -> Self {
        Self { roots: roots.clone(), ..Self::default() }
    }

    /// Adds the threads that carry packets to the watched ones. One that is watched already stays part of the benchmark.
    pub fn read(&mut self, carriers: Carriers, watched: &mut Vec<ThreadSample>) {
        if carriers.is_empty() {
            if !self.carriers.is_empty() {
                *self = Self::new(&self.roots);
            }
            return;
        }
        let open = || TaskReading::open(&self.roots, visibility::namespace(&self.roots.proc) == Namespace::Own);
        let Some(mut reading) = self.reading.take().or_else(|| open().ok()) else { return };
        let now_ns = now_ns();
        let is_new = carriers != self.carriers;
        let age_ns = now_ns.saturating_sub(self.listed_at_ns);
        if is_new || age_ns >= if self.is_young { SECOND_LISTING_NS } else { LISTING_NS } {
            (self.carriers, self.listed_at_ns, self.is_young) = (carriers, now_ns, is_new);
            self.list(&mut reading, now_ns);
        }
        self.add(&mut reading, watched);
        self.reading = Some(reading);
    }

    fn add(&mut self, reading: &mut TaskReading, watched: &mut Vec<ThreadSample>) {
        let benchmark = watched.len();
        self.workers.retain(|&(pid, tid), worker| {
            let Some(known) = self.known.get(&pid) else { return false };
            match worker.task.read(reading, known) {
                Ok(sample) => {
                    let id = |thread: &ThreadSample| (thread.id.pid, thread.id.tid);
                    match watched[..benchmark].binary_search_by_key(&(pid, tid), id) {
                        Ok(at) => watched[at].work = Some(worker.work),
                        Err(_) => watched.push(ThreadSample { duty: Duty::Carrier, work: Some(worker.work), ..sample }),
                    }
                    true
                }
                Err(Lost::Ended | Lost::Unread) => true,
                Err(Lost::Gone) => false,
            }
        });
        watched.sort_by_key(|thread| (thread.id.pid, thread.id.tid));
    }

    /// Looks which threads carry packets by now.
    fn list(&mut self, reading: &mut TaskReading, now_ns: u64) {
        let programs = std::mem::take(&mut self.carriers.programs);
        let before = std::mem::take(&mut self.glances);
        let mut kept = BTreeSet::new();
        for (&pid, &kind) in &programs {
            self.list_program((pid, kind), &before, reading, now_ns, &mut kept);
        }
        let guests = programs.iter().filter(|(_, kind)| **kind == CarrierKind::Guest).map(|(&pid, _)| pid);
        for (tid, carrier) in self.kernel.vhosts(guests, &mut reading.proc) {
            self.meet_kernel(tid, PathWork { role: WorkerRole::Vhost, carrier, link: None }, reading, &mut kept);
        }
        let napi = std::mem::take(&mut self.carriers.napi);
        for (&tid, &link) in &napi {
            self.meet_kernel(
                tid,
                PathWork { role: WorkerRole::Napi, carrier: tid, link: Some(link) },
                reading,
                &mut kept,
            );
        }
        (self.carriers.programs, self.carriers.napi) = (programs, napi);
        self.workers.retain(|key, _| kept.contains(key));
        self.known.retain(|pid, _| kept.range((*pid, 0)..=(*pid, u32::MAX)).next().is_some());
    }

    /// The threads of one program: those that are busy, those that always count, those that were busy lately.
    fn list_program(
        &mut self,
        (pid, kind): (u32, CarrierKind),
        before: &BTreeMap<(u32, u32), Glance>,
        reading: &mut TaskReading,
        now_ns: u64,
        kept: &mut BTreeSet<(u32, u32)>,
    ) {
        let tids = reading.proc.tasks(pid).into_iter().take(MOST_LOOKED_AT);
        let glances: Vec<Glance> =
            tids.filter_map(|tid| Glance::of(&mut reading.proc, (pid, tid), reading.tick_ns, now_ns)).collect();
        let share = |glance: &Glance| before.get(&(pid, glance.tid)).map_or(0.0, |before| glance.share_since(before));
        let has_guest_time = glances.iter().any(|glance| glance.guest_ticks > 0);
        let mut found: Vec<(f64, &Glance)> = glances.iter().map(|glance| (share(glance), glance)).collect();
        found.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut left = MOST_READ;
        for (share, glance) in found {
            let key = (pid, glance.tid);
            let is_busy = share >= BUSY || glance.always_counts(pid, kind, glances.len());
            let idle_for = match self.workers.get(&key) {
                _ if is_busy => 0,
                Some(worker) if worker.idle_for < KEPT => worker.idle_for + 1,
                _ => continue,
            };
            if left == 0 || !self.meet(key, reading) {
                continue;
            }
            left -= 1;
            if let Some(worker) = self.workers.get_mut(&key) {
                let role = role(glance, pid, kind, has_guest_time);
                (worker.work, worker.idle_for) = (PathWork { role, carrier: pid, link: None }, idle_for);
            }
            kept.insert(key);
        }
        let limits = self.limits.of(&self.roots, pid, now_ns);
        self.known.insert(pid, Known { limits, ..Known::default() });
        self.glances.extend(glances.into_iter().map(|glance| ((pid, glance.tid), glance)));
    }

    fn meet_kernel(&mut self, tid: u32, work: PathWork, reading: &mut TaskReading, kept: &mut BTreeSet<(u32, u32)>) {
        if self.meet((tid, tid), reading) {
            if let Some(worker) = self.workers.get_mut(&(tid, tid)) {
                worker.work = work;
            }
            self.known.entry(tid).or_default();
            kept.insert((tid, tid));
        }
    }

    /// Opens a thread's files, if that is not done yet; false when there is no such thread.
    fn meet(&mut self, (pid, tid): (u32, u32), reading: &mut TaskReading) -> bool {
        if self.workers.contains_key(&(pid, tid)) {
            return true;
        }
        let mut task = Task::new(pid, tid, false);
        let is_there = task.keep(&mut reading.proc);
        if is_there {
            let work = PathWork { role: WorkerRole::Relay, carrier: pid, link: None };
            self.workers.insert((pid, tid), ReadWorker { task, work, idle_for: 0 });
        }
        is_there
    }
}
