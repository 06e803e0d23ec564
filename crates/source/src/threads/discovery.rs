//! Finds the processes and threads that `--watch` asks for, one tick after they start; it lists `/proc` only when a pid
//! was assigned.
//!
//! The kernel numbers tasks one after the other, and `/proc/loadavg` (field 5) has the last number: only the numbers
//! after the last one seen are looked at. Threads that take another name later are found by `comm_changes`.

mod comm_changes;
mod descendants;

use super::proc_dir::ProcDir;
use super::visibility::Namespace;
use super::watch::Watched;
use crate::clock::{SECOND_NS, clock_ns};
use crate::{Roots, proc_file};
use descendants::Family;
use rustix::time::ClockId;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::fs::File;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// How often everything is listed anyway: numbers may be given out of order (checkpoint and restore).
const LISTING_NS: u64 = 5 * SECOND_NS;
/// In how many ticks a number may turn up in /proc after the kernel gave it; a starved creator can take a while.
const TRIES: u8 = 3;
/// More new numbers than this are found faster by listing.
const MOST_NEW: u32 = 1024;
/// More of the command's processes are not watched: what builds or serves something starts them by the thousand.
const MOST_DESCENDANTS: usize = 64;

/// What a look at the tasks brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// To be watched: a thread, and whether it is for its own name or number rather than for its process'.
    Watch { pid: u32, tid: u32, for_itself: bool },
    /// No longer to be watched: a process.
    Unwatch(u32),
}

/// A process that is known, by its number.
#[derive(Debug)]
struct Process {
    start: u64,
    /// Whose child it was when it was met.
    parent: u32,
    watched: bool,
    /// Its `comm`, opened when it is looked at for the second time: most processes do not live that long.
    comm: Option<OwnedFd>,
}

/// What one look at a task tells.
#[derive(Debug, Clone, Copy)]
struct ProcessGlance {
    start: u64,
    parent: u32,
    threads: u64,
    kernel: bool,
    answers: bool,
}

/// Everyone seen so far.
#[derive(Debug, Default)]
pub(super) struct ProcessFinder {
    watched: Watched,
    /// `None` when this /proc is not of vnettop's own process namespace: then processes are listed on every tick.
    loadavg: Option<File>,
    /// The number that the kernel gave last, as of the last look.
    pub(super) newest: Option<u32>,
    processes: BTreeMap<u32, Process>,
    family: Family,
    /// The family is watched, and not the command alone.
    with_descendants: bool,
    /// Processes that are watched by any name, besides the family.
    also: BTreeSet<u32>,
    /// Kernel threads never execute anything: old ones are not looked at again.
    kernel: HashSet<u32>,
    /// Process, thread and start of those that may still change their name.
    young: VecDeque<(u32, u32, u64)>,
    unborn: Vec<(u32, u8)>,
    swept_to: u32,
    swept_at_ns: u64,
    /// How many `comm` are open, and how many may be.
    kept: usize,
    most_kept: usize,
    listed_at_ns: Option<u64>,
    boot_ns: u64,
    tick_ns: u64,
    changes: Vec<Change>,
}

impl ProcessFinder {
    pub(super) fn new(roots: &Roots, namespace: Namespace, watched: Watched) -> Self {
        let is_own = namespace == Namespace::Own;
        Self {
            watched,
            loadavg: is_own.then(|| File::open(roots.proc.join("loadavg")).ok()).flatten(),
            family: Family::new(roots, is_own),
            most_kept: proc_file::descriptor_room() / 8,
            tick_ns: SECOND_NS / procfs::ticks_per_second().max(1),
            ..Self::default()
        }
    }

    /// Whether a thread of this process, number and command name is asked for.
    pub(super) fn answers(&self, pid: u32, id: u32, comm: &[u8]) -> bool {
        self.watched.answers(id, comm, self.processes.get(&pid).map_or(0, |process| process.parent))
    }

    /// Whether a thread or process that was not found would be asked for, by number, command name and parent.
    pub(super) fn would_watch(&self, id: u32, comm: &[u8], parent: u32) -> bool {
        self.watched.answers(id, comm, parent)
    }

    /// Watches this process too from now on, whether it was seen already or not, and with `with_descendants` its family.
    pub(super) fn watch(&mut self, proc: &mut ProcDir, pid: u32, with_descendants: bool) {
        self.watched.command(pid);
        self.with_descendants = with_descendants;
        self.family.begin();
        if self.processes.get(&pid).is_none_or(|process| !process.watched) {
            self.forget(pid);
            self.meet(proc, pid);
        }
    }

    /// Replaces the set of extra processes to watch.
    pub(super) fn set_extra_pids(&mut self, proc: &mut ProcDir, pids: BTreeSet<u32>) {
        if self.also != pids {
            self.also = pids;
            self.ask_for_others(proc);
        }
    }

    /// The youngest of the family, and the others whose names do not matter.
    fn ask_for_others(&mut self, proc: &mut ProcDir) {
        let family = self.family.pids().filter(|_| self.with_descendants).unwrap_or_default();
        let descendants = family.iter().rev().take(MOST_DESCENDANTS);
        let pids = descendants.chain(&self.also).copied().collect();
        for pid in self.watched.set_extra_pids(pids) {
            self.look_at_process(proc, pid);
        }
    }

    /// The command's process and its descendants, as of the last look.
    pub(super) fn family(&self) -> Option<Arc<Vec<u32>>> {
        self.family.pids()
    }

    /// The first number asked for that is neither a process nor a watched thread.
    pub(super) fn missing_pid(&self, is_thread: impl Fn(u32) -> bool) -> Option<u32> {
        let known = |pid: &u32| self.processes.contains_key(pid) || self.kernel.contains(pid) || is_thread(*pid);
        self.watched.pids().find(|pid| !known(pid))
    }

    /// Looks once; the changes are in the order in which they have to be followed.
    pub(super) fn look(&mut self, proc: &mut ProcDir, now_ns: u64) -> std::vec::Drain<'_, Change> {
        self.boot_ns = clock_ns(ClockId::Boottime);
        let newest = self.loadavg.as_ref().and_then(proc_file::newest_number);
        let born = newest.zip(self.newest).and_then(|(newest, seen)| newest.checked_sub(seen));
        let born = born.filter(|&born| born <= MOST_NEW);
        let is_due = self.listed_at_ns.is_none_or(|listed| now_ns.saturating_sub(listed) >= LISTING_NS);
        let everyone = if newest.is_some() { born.is_none() } else { is_due };
        if everyone || is_due || newest.is_none() {
            self.list(proc, everyone);
        }
        if is_due {
            self.listed_at_ns = Some(now_ns);
        }
        if let Some((newest, born)) = newest.zip(born) {
            self.probe(proc, newest - born + 1..=newest);
        }
        self.newest = newest;
        self.look_at_young(proc);
        self.sweep(proc, now_ns);
        if self.family.look(&self.processes) {
            self.ask_for_others(proc);
        }
        self.changes.drain(..)
    }

    /// Lists the processes, and the threads of those that are watched; with `everyone`, the threads of all.
    fn list(&mut self, proc: &mut ProcDir, everyone: bool) {
        let listed = proc.processes();
        let is_gone = |pid: u32| listed.binary_search(&pid).is_err();
        self.kernel.retain(|&pid| !is_gone(pid));
        let gone: Vec<u32> = self.processes.keys().copied().filter(|&pid| is_gone(pid)).collect();
        for pid in gone {
            self.forget(pid);
        }
        for pid in listed {
            match self.processes.get(&pid) {
                Some(process) if process.watched => self.watch_all(proc, pid),
                Some(_) if everyone => self.meet_threads(proc, pid),
                Some(_) => {}
                None if self.kernel.contains(&pid) => {}
                None => {
                    if let Some(glance) = self.glance(proc, pid, pid) {
                        self.meet_process(proc, pid, glance);
                    }
                }
            }
        }
    }

    /// Looks at the numbers given since the last tick, and again at those that had nobody behind them yet.
    fn probe(&mut self, proc: &mut ProcDir, given: RangeInclusive<u32>) {
        let mut ids = std::mem::take(&mut self.unborn);
        ids.extend(given.map(|id| (id, TRIES)));
        ids.retain_mut(|(id, tries)| {
            *tries -= 1;
            !self.meet(proc, *id) && *tries > 0
        });
        self.unborn = ids;
    }

    /// Meets whoever has this number; false when nobody has.
    fn meet(&mut self, proc: &mut ProcDir, id: u32) -> bool {
        let Some(glance) = self.glance(proc, id, id) else { return false };
        // Only a process of several threads can have one whose number is not its own.
        let process = if glance.threads > 1 { proc.process_of(id) } else { Some(id) };
        match process {
            Some(pid) if pid != id => self.meet_thread(pid, id, glance),
            Some(pid) => self.meet_process(proc, pid, glance),
            None => return false,
        }
        true
    }

    fn meet_process(&mut self, proc: &mut ProcDir, pid: u32, glance: ProcessGlance) {
        // A number given again is another process.
        self.kernel.remove(&pid);
        if self.processes.get(&pid).is_some_and(|known| known.start == glance.start) {
            return;
        }
        self.forget(pid);
        self.remember_young(pid, pid, glance.start);
        if glance.kernel {
            self.kernel.insert(pid);
        } else {
            let ProcessGlance { start, parent, answers, .. } = glance;
            self.processes.insert(pid, Process { start, parent, watched: answers, comm: None });
            self.family.has_grown();
        }
        if glance.answers {
            self.watch_all(proc, pid);
        } else if glance.threads > 1 {
            self.meet_threads(proc, pid);
        }
    }

    fn meet_threads(&mut self, proc: &mut ProcDir, pid: u32) {
        let tasks = proc.tasks(pid);
        for tid in tasks.into_iter().filter(|&tid| tid != pid) {
            if let Some(glance) = self.glance(proc, pid, tid) {
                self.meet_thread(pid, tid, glance);
            }
        }
    }

    fn meet_thread(&mut self, pid: u32, tid: u32, glance: ProcessGlance) {
        let for_itself = !self.processes.get(&pid).is_some_and(|process| process.watched);
        if glance.answers || !for_itself {
            self.changes.push(Change::Watch { pid, tid, for_itself });
        }
        // A thread that is watched for its process may call itself what it likes.
        if for_itself {
            self.remember_young(pid, tid, glance.start);
        }
    }

    fn watch_all(&mut self, proc: &mut ProcDir, pid: u32) {
        let watch = |tid| Change::Watch { pid, tid, for_itself: false };
        self.changes.extend(proc.tasks(pid).into_iter().map(watch));
    }

    fn forget(&mut self, pid: u32) {
        let Some(process) = self.processes.remove(&pid) else { return };
        self.kept -= usize::from(process.comm.is_some());
        if process.watched {
            self.changes.push(Change::Unwatch(pid));
        }
    }

    fn glance(&self, proc: &mut ProcDir, pid: u32, tid: u32) -> Option<ProcessGlance> {
        let stat = proc.stat(pid, tid)?;
        let answers = self.watched.answers(tid, stat.comm, stat.parent);
        Some(ProcessGlance {
            start: stat.start,
            parent: stat.parent,
            threads: stat.threads,
            kernel: stat.kernel,
            answers,
        })
    }
}

#[cfg(test)]
mod tests;
