//! Sticky mode: which processes had workers pinned, and which of their workers were born since and have no pin yet. It
//! only keeps count; what is asked for is `update`'s business. Off until somebody turns it on.

use crate::derive::{Metrics, ThreadMetrics};
use crate::sample::{CoreSet, Duty, Event, LinkKey, ThreadId};
use std::collections::{BTreeMap, BTreeSet};

/// A clock tick, ns: the kernel's for programs is 100 a second everywhere.
const TICK_NS: u64 = 10_000_000;

/// Whether new workers of pinned processes get a pin as well, and what that takes to know.
#[derive(Debug, Default)]
pub struct Sticky {
    /// New workers get a pin.
    pub on: bool,
    /// Processes with a pin of vnettop's, each with the threads that are not (or no longer) new.
    processes: BTreeMap<u32, BTreeSet<ThreadId>>,
    /// When each of them was pinned first, in clock ticks since boot, as threads are born.
    pinned_at: BTreeMap<u32, u64>,
    /// Links with a pinned thread of NAPI: the kernel makes a new one whenever the link comes up.
    napi: BTreeMap<LinkKey, NapiPlace>,
    /// New workers that no core was left for, each reported once.
    refused: BTreeSet<ThreadId>,
}

/// The place of a link's thread, whichever it is.
#[derive(Debug)]
struct NapiPlace {
    /// Threads for which nothing more is to be tried.
    known: BTreeSet<ThreadId>,
    /// Where the last one was pinned.
    cores: CoreSet,
}

impl Sticky {
    /// Follows pins and restores. A thread that existed when its process got its first pin is not new; a thread that the user
    /// put back is left alone. `newest` is what the pins were decided by.
    pub(super) fn done(&mut self, events: &[Event], newest: &Metrics) {
        for event in events {
            match event {
                Event::Pinned { thread, got, .. } if let Some(link) = napi_of(newest, *thread) => {
                    let place = NapiPlace { known: BTreeSet::new(), cores: got.clone() };
                    let place = self.napi.entry(link).or_insert(place);
                    place.known.insert(*thread);
                    place.cores.clone_from(got);
                }
                Event::Pinned { thread, .. } if is_worker(newest, *thread) => {
                    self.pinned_at.entry(thread.pid).or_insert(newest.machine.at_ns / TICK_NS);
                    let known = self.processes.entry(thread.pid).or_insert_with(|| everyone(newest, thread.pid));
                    known.insert(*thread);
                }
                Event::Restored { thread, .. } => {
                    self.processes.remove(&thread.pid);
                    self.pinned_at.remove(&thread.pid);
                    self.napi.retain(|_, place| !place.known.contains(thread));
                }
                _ => {}
            }
        }
    }

    /// Every process is the user's own again; the mode itself stays as it is.
    pub(crate) fn forget(&mut self) {
        self.processes.clear();
        self.pinned_at.clear();
        self.napi.clear();
        self.refused.clear();
    }

    /// Forgets processes and threads that have ended.
    pub(super) fn observe(&mut self, metrics: &Metrics) {
        self.processes.retain(|&pid, known| {
            let alive = everyone(metrics, pid);
            known.retain(|id| alive.contains(id));
            self.refused.retain(|id| id.pid != pid || alive.contains(id));
            !alive.is_empty()
        });
    }

    /// Workers born since their process was pinned, which nothing has been tried for yet.
    #[must_use]
    pub fn new_workers(&self, metrics: &Metrics) -> Vec<ThreadId> {
        let is_new = |thread: &&ThreadMetrics| {
            let id = thread.sample.id;
            let link = thread.sample.work.and_then(|work| work.link);
            let of_link = link.and_then(|link| self.napi.get(&link)).is_some_and(|place| !place.known.contains(&id));
            let of_process = self.processes.get(&id.pid).is_some_and(|known| !known.contains(&id));
            // Threads between the ends are read while they are busy: an old one is none that was born.
            let is_born = |since: &u64| thread.sample.duty == Duty::Worker || id.start > *since;
            of_link || of_process && self.pinned_at.get(&id.pid).is_none_or(is_born)
        };
        let workers = metrics.threads.iter().filter(|thread| works(thread));
        workers.filter(is_new).map(|thread| thread.sample.id).collect()
    }

    /// Where the thread of this link was that a new one stands for: it may have shared its core, which is given to no other one.
    #[must_use]
    pub(crate) fn place_of(&self, link: LinkKey) -> Option<&CoreSet> {
        self.napi.get(&link).map(|place| &place.cores)
    }

    /// Notes that no core is left for these threads; true when one of them is refused for the first time.
    pub(crate) fn refuse(&mut self, threads: &[ThreadId]) -> bool {
        let before = self.refused.len();
        self.refused.extend(threads);
        self.refused.len() > before
    }

    /// Nothing more is to be tried for it.
    pub(crate) fn settle(&mut self, thread: ThreadId) {
        if let Some(known) = self.processes.get_mut(&thread.pid) {
            known.insert(thread);
        }
    }

    /// Nothing more is to be tried for this thread of NAPI.
    pub(crate) fn settle_napi(&mut self, link: LinkKey, thread: ThreadId) {
        if let Some(place) = self.napi.get_mut(&link) {
            place.known.insert(thread);
        }
    }
}

fn everyone(metrics: &Metrics, pid: u32) -> BTreeSet<ThreadId> {
    metrics.threads.iter().map(|thread| thread.sample.id).filter(|id| id.pid == pid).collect()
}

fn is_worker(metrics: &Metrics, thread: ThreadId) -> bool {
    metrics.threads.iter().any(|other| other.sample.id == thread && works(other))
}

/// It carries traffic, at an end or between them.
fn works(thread: &ThreadMetrics) -> bool {
    matches!(thread.sample.duty, Duty::Worker | Duty::Carrier)
}

/// The link whose packets a thread receives, of one of NAPI.
pub(crate) fn napi_of(metrics: &Metrics, thread: ThreadId) -> Option<LinkKey> {
    let thread = metrics.threads.iter().find(|other| other.sample.id == thread)?;
    thread.sample.work.and_then(|work| work.link)
}
