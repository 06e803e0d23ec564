//! One watched thread: its three files kept open, read into one sample. A dead thread's descriptors give ESRCH, also
//! when its number has been given again, so a kept thread is never mistaken for another.

use super::parse::{self, Sched};
use super::proc_dir::ProcDir;
use crate::sample::{CoreSet, Duty, Side, ThreadId, ThreadSample};
use crate::sched;
use crate::source::{now_ns, text};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// The three files, in the order in which they are read.
const FILES: [&str; 3] = ["schedstat", "sched", "stat"];
const SCHEDSTAT: usize = 0;
const SCHED: usize = 1;
const STAT: usize = 2;

/// What a watched thread's process is known by.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub side: Option<Side>,
    pub cpuset: Option<CoreSet>,
}

/// How a thread is read on this machine.
#[derive(Debug)]
pub(super) struct Reading {
    pub proc: ProcDir,
    /// The numbers of this /proc are those of our system calls.
    pub is_own: bool,
    pub mask: Vec<u64>,
    pub tick_ns: u64,
}

/// One watched thread.
#[derive(Debug)]
pub(super) struct Task {
    pid: u32,
    tid: u32,
    /// It is watched for its own name or number, not for its process'.
    pub for_itself: bool,
    /// None: opened on every reading, because descriptors are scarce.
    kept: Option<[Option<OwnedFd>; 3]>,
    comm: Vec<u8>,
    name: String,
}

/// What a reading of a thread gave.
#[derive(Debug)]
pub(super) enum Seen {
    /// A sample; `counted` is false where the kernel does not count moves.
    Sample { sample: ThreadSample, counted: bool },
    /// It has ended and waits for its parent: it runs nowhere.
    Ended,
    /// There is no such thread.
    Gone,
}

impl Task {
    pub(super) fn new(pid: u32, tid: u32, for_itself: bool) -> Self {
        Self { pid, tid, for_itself, kept: None, comm: Vec::new(), name: String::new() }
    }

    /// Opens the files and keeps them; false when there is no such thread (any more).
    pub(super) fn keep(&mut self, proc: &mut ProcDir) -> bool {
        let files = FILES.map(|file| proc.open_file(self.pid, self.tid, file).ok());
        self.kept = files[STAT].is_some().then_some(files);
        self.kept.is_some()
    }

    /// Opens the files anew when the thread they belonged to is gone: its number may have been given again.
    pub(super) fn renew(&mut self, proc: &mut ProcDir) -> bool {
        self.kept.is_some() && self.keep(proc)
    }

    /// How many descriptors it holds.
    pub(super) fn descriptors(&self) -> usize {
        self.kept.as_ref().map_or(0, |files| files.iter().flatten().count())
    }

    /// The command name as last read.
    pub(super) fn comm(&self) -> &[u8] {
        &self.comm
    }

    /// Reads the thread.
    pub(super) fn read(&mut self, reading: &mut Reading, known: &Known) -> Seen {
        let at_ns = now_ns();
        let schedstat = self.file(SCHEDSTAT, &mut reading.proc).ok().and_then(parse::parse_schedstat);
        let sched = self.file(SCHED, &mut reading.proc).map(parse::parse_sched);
        let counted = sched.is_ok_and(|sched| sched.migrations.is_some());
        let Sched { migrations, voluntary, involuntary } = sched.unwrap_or_default();
        let Some(stat) = self.file(STAT, &mut reading.proc).ok().and_then(parse::parse_stat) else { return Seen::Gone };
        if matches!(stat.state, b'Z' | b'X' | b'x') {
            return Seen::Ended;
        }
        let ticks_ns = stat.cpu_ticks.saturating_mul(reading.tick_ns);
        // All zero although it has run: this kernel keeps no schedstat.
        let schedstat = schedstat.filter(|times| *times != (0, 0) || stat.cpu_ticks == 0);
        let id = ThreadId { pid: self.pid, tid: self.tid, start: stat.start };
        let core = stat.core;
        let duty = if self.tid == self.pid && stat.threads > 1 { Duty::Control } else { Duty::Worker };
        if self.comm != stat.comm {
            self.comm = stat.comm.to_vec();
            self.name = text::clean(stat.comm);
        }
        let sample = ThreadSample {
            id,
            at_ns,
            name: self.name.clone(),
            side: known.side,
            duty,
            core,
            allowed: self.allowed(reading),
            cpuset: known.cpuset.clone(),
            cpu_ns: schedstat.map_or(ticks_ns, |(cpu_ns, _)| cpu_ns),
            wait_ns: schedstat.map(|(_, wait_ns)| wait_ns),
            migrations,
            voluntary,
            involuntary,
        };
        Seen::Sample { sample, counted }
    }

    /// The text of one of the three files.
    fn file<'a>(&self, which: usize, proc: &'a mut ProcDir) -> Result<&'a [u8], Errno> {
        match &self.kept {
            None => proc.read_file(self.pid, self.tid, FILES[which]),
            Some(files) => proc.read(files[which].as_ref().ok_or(Errno::NOENT)?),
        }
    }

    /// The affinity mask: from the kernel where the number means the same thread there, else from `status`.
    fn allowed(&self, reading: &mut Reading) -> Option<CoreSet> {
        if reading.is_own {
            return sched::get_affinity(self.tid, &mut reading.mask).ok();
        }
        parse::parse_allowed(reading.proc.read_file(self.pid, self.tid, "status").ok()?)
    }
}
