//! Which process lives in which network namespace: all of them at first, the new ones on the tick they appear, everybody
//! in turns every few seconds, because a process may enter another namespace at any time.

use crate::clock::SECOND_NS;
use crate::threads::parse_stat;
use crate::{Roots, proc_file, scan};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};
use std::collections::VecDeque;
use std::path::PathBuf;

/// A new process is looked at on every tick for so long: `unshare` and container runtimes change namespace right after
/// they were started.
const YOUNG_NS: u64 = SECOND_NS;
/// How often everybody's turn comes.
const ROUND_NS: u64 = 5 * SECOND_NS;
/// Most processes that one tick looks at in turn.
const MOST_LOOKS: usize = 64;
/// More new numbers than this are found faster by listing.
const MOST_NEW: u32 = 1024;
/// A `stat` is no longer than this, bytes.
const STAT: usize = 1024;

/// Looks at the processes of a /proc.
#[derive(Debug)]
pub(super) struct NetnsProcesses {
    proc: PathBuf,
    directory: Option<OwnedFd>,
    newest: Option<u32>,
    young: VecDeque<(u32, u64)>,
    in_turn: VecDeque<u32>,
    round_due_ns: u64,
    /// A process' namespace may not be looked at, for want of `CAP_SYS_PTRACE`. (Of a process that has just ended the
    /// kernel says EACCES too.)
    pub denied: bool,
}

impl NetnsProcesses {
    pub fn new(roots: &Roots) -> Self {
        Self {
            proc: roots.proc.clone(),
            directory: proc_file::open_directory(&roots.proc).ok(),
            newest: None,
            young: VecDeque::new(),
            in_turn: VecDeque::new(),
            round_due_ns: 0,
            denied: false,
        }
    }

    /// Everybody's turn comes now: a namespace may have more inhabitants than were known.
    pub fn ask_soon(&mut self) {
        self.round_due_ns = 0;
    }

    /// Knows nobody, as at the start: everybody is looked at on the next tick.
    pub fn forget(&mut self) {
        (self.newest, self.round_due_ns) = (None, 0);
        self.young.clear();
        self.in_turn.clear();
    }

    /// One tick; `newest` is the number the kernel gave last, none where that is not known. Hands over each process looked
    /// at with the inode of its namespace.
    pub fn look(&mut self, newest: Option<u32>, now_ns: u64, mut each: impl FnMut(u32, u64)) {
        let first = self.newest.is_none() && self.round_due_ns == 0;
        self.meet(newest, now_ns);
        for _ in 0..self.young.len() {
            let Some((pid, until_ns)) = self.young.pop_front() else { break };
            if let Some(netns) = self.of(pid) {
                each(pid, netns);
            }
            if now_ns < until_ns {
                self.young.push_back((pid, until_ns));
            }
        }
        if now_ns >= self.round_due_ns {
            self.round_due_ns = now_ns + ROUND_NS;
            self.in_turn = proc_file::processes(&self.proc).into();
        }
        let share = if first { self.in_turn.len() } else { MOST_LOOKS };
        for _ in 0..share {
            let Some(pid) = self.in_turn.pop_front() else { break };
            if let Some(netns) = self.of(pid) {
                each(pid, netns);
            }
        }
    }

    /// The numbers given since the last tick are young processes, or threads, which are none.
    fn meet(&mut self, newest: Option<u32>, now_ns: u64) {
        let seen = std::mem::replace(&mut self.newest, newest);
        let Some((newest, seen)) = newest.zip(seen).filter(|(newest, seen)| newest != seen) else { return };
        if newest.checked_sub(seen).is_none_or(|born| born > MOST_NEW) {
            self.ask_soon();
            return;
        }
        self.young.extend((seen + 1..=newest).map(|pid| (pid, now_ns + YOUNG_NS)));
    }

    /// Inode of the namespace of a process; none when it is gone or may not be looked at.
    pub fn of(&mut self, pid: u32) -> Option<u64> {
        let read = rustix::fs::readlinkat(self.directory.as_ref()?, format!("{pid}/ns/net"), Vec::new());
        if let Err(Errno::ACCESS | Errno::PERM) = read
            && !self.denied
        {
            self.denied = capabilities(None).is_ok_and(|own| !own.effective.contains(CapabilitySet::SYS_PTRACE));
        }
        scan::netns(read.ok()?.to_bytes())
    }

    /// When a process was started, clock ticks since boot; none when it is gone.
    pub fn started(&self, pid: u32) -> Option<u64> {
        let file = proc_file::open_below(self.directory.as_ref()?, &format!("{pid}/stat")).ok()?;
        Some(parse_stat(proc_file::once(&file, &mut [0; STAT]).ok()?)?.start)
    }

    /// The namespace of a process, as a file.
    pub fn file_of(&self, pid: u32) -> PathBuf {
        self.proc.join(pid.to_string()).join("ns/net")
    }
}
