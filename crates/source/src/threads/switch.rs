//! The threads of Open vSwitch that carry packets: the main one of each ovs-vswitchd and its poll-mode threads (`pmd-…`).
//! They are read beside the watched ones and are no part of the benchmark; its many sleeping helpers are left out.

use super::groups::GroupLimits;
use super::task::{Known, Lost, Reading, Task};
use super::visibility::{self, Namespace};
use crate::{Roots, now_ns};
use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{Duty, ThreadSample};

/// How often its threads are listed, ns.
const LISTING_NS: u64 = 1_000_000_000;
/// How the name of a poll-mode thread begins.
const POLLING: &[u8] = b"pmd";

/// Reads the threads of Open vSwitch that carry packets; opens nothing before there is one.
#[derive(Debug, Default)]
pub struct SwitchReader {
    roots: Roots,
    reading: Option<Reading>,
    limits: GroupLimits,
    /// By process and thread.
    tasks: BTreeMap<(u32, u32), Task>,
    known: BTreeMap<u32, Known>,
    /// Threads with another name, seen once, and seen twice: those are not looked at again.
    others: [BTreeSet<u32>; 2],
    listed_at_ns: u64,
}

impl SwitchReader {
    /// Nothing is opened yet.
    #[must_use]
    pub fn new(roots: &Roots) -> Self {
        Self { roots: roots.clone(), ..Self::default() }
    }

    /// Adds the threads of these processes to the watched ones; a thread that is watched already stays as it is.
    pub fn read(&mut self, processes: impl Iterator<Item = u32>, watched: &mut Vec<ThreadSample>) {
        let mut processes = processes.peekable();
        if processes.peek().is_none() {
            if !self.tasks.is_empty() {
                *self = Self::new(&self.roots);
            }
            return;
        }
        let open = || Reading::open(&self.roots, visibility::namespace(&self.roots.proc) == Namespace::Own);
        let Some(mut reading) = self.reading.take().or_else(|| open().ok()) else { return };
        let now_ns = now_ns();
        if now_ns.saturating_sub(self.listed_at_ns) >= LISTING_NS {
            self.listed_at_ns = now_ns;
            self.list(&processes.collect(), &mut reading, now_ns);
        }
        let benchmark = watched.len();
        self.tasks.retain(|(pid, tid), task| {
            let Some(known) = self.known.get(pid) else { return false };
            match task.read(&mut reading, known) {
                Ok(sample) => {
                    let id = |thread: &ThreadSample| (thread.id.pid, thread.id.tid);
                    if watched[..benchmark].binary_search_by_key(&(*pid, *tid), id).is_err() {
                        watched.push(ThreadSample { duty: Duty::Switch, ..sample });
                    }
                    true
                }
                Err(Lost::Ended) => true,
                Err(Lost::Gone) => false,
            }
        });
        watched.sort_by_key(|thread| (thread.id.pid, thread.id.tid));
        self.reading = Some(reading);
    }

    fn list(&mut self, processes: &BTreeSet<u32>, reading: &mut Reading, now_ns: u64) {
        self.tasks.retain(|(pid, _), _| processes.contains(pid));
        self.known.retain(|pid, _| processes.contains(pid));
        let [mut once, twice] = std::mem::take(&mut self.others);
        for &pid in processes {
            let limits = self.limits.of(&self.roots, pid, now_ns);
            self.known.insert(pid, Known { limits, ..Known::default() });
            for tid in reading.proc.tasks(pid) {
                if self.tasks.contains_key(&(pid, tid)) {
                    continue;
                }
                if twice.contains(&tid) {
                    self.others[1].insert(tid);
                } else if tid == pid || reading.proc.stat(pid, tid).is_some_and(|stat| stat.comm.starts_with(POLLING)) {
                    let mut task = Task::new(pid, tid, false);
                    if task.keep(&mut reading.proc) {
                        self.tasks.insert((pid, tid), task);
                    }
                } else {
                    // It may not have taken its name yet.
                    let seen = usize::from(once.remove(&tid));
                    self.others[seen].insert(tid);
                }
            }
        }
    }
}
