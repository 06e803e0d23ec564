//! One watched thread: its three files kept open, read into one sample. A dead thread's descriptors give ESRCH, also
//! when its number has been given again, so a kept thread is never mistaken for another.

use super::groups::Limits;
use super::parse::{self, Sched, Schedstat};
use super::proc_dir::ProcDir;
use crate::sched;
use crate::{Roots, SourceError, now_ns, proc_file};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use vnettop_sample::text;
use vnettop_sample::{Benchmark, CoreSet, Duty, Quota, ThreadId, ThreadSample};

/// The three files, in the order in which they are read.
const FILES: [&str; 3] = ["schedstat", "sched", "stat"];
const SCHEDSTAT: usize = 0;
const SCHED: usize = 1;
const STAT: usize = 2;

/// How long `stat` is taken for true while nothing hints at a change: others may rename a thread while it sleeps, and the
/// kernel may wake it on another core, where it still waits for its turn. Up to twice as long for some. Sleepers looked
/// at every second were a twentieth of a tick's cost with 20 threads.
const TRUSTED_NS: u64 = 3_000_000_000;
/// How long the mask of a thread that has not run since is taken for true: a system call a thread and tick otherwise.
const ASLEEP_NS: u64 = 1_000_000_000;
/// How long the offline cores of a mask are trusted, ns: `sched_getaffinity`, which is asked far more often, leaves them out. The
/// file is read again at once where its answer changes.
const OFFLINE_NS: u64 = 30_000_000_000;
/// How long a thread may still take its name, from when it was met.
const YOUNG_NS: u64 = 3_000_000_000;

/// What a watched thread's process is known by.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub benchmark: Option<Benchmark>,
    pub limits: Limits,
    /// How often the narrowest quota has stopped it.
    pub quota: Option<Quota>,
}

/// How a thread is read on this machine.
#[derive(Debug)]
pub(super) struct TaskReading {
    pub proc: ProcDir,
    /// The numbers of this /proc are those of our system calls.
    pub is_own: bool,
    pub mask: Vec<u64>,
    pub tick_ns: u64,
}

impl TaskReading {
    /// `is_own`: the numbers of this /proc are those of our system calls.
    pub(super) fn open(roots: &Roots, is_own: bool) -> Result<Self, SourceError> {
        let tick_ns = 1_000_000_000 / procfs::ticks_per_second().max(1);
        Ok(Self { proc: ProcDir::open(roots)?, is_own, mask: Vec::new(), tick_ns })
    }
}

/// One watched thread.
#[derive(Debug, Default)]
pub(super) struct Task {
    pid: u32,
    tid: u32,
    /// It is watched for its own name or number, not for its process'.
    pub for_itself: bool,
    /// `None` when descriptors are scarce: the files are opened on every reading.
    kept: Option<[Option<OwnedFd>; 3]>,
    /// The command name as last read.
    pub comm: Vec<u8>,
    met_at_ns: Option<u64>,
    last: Option<Last>,
    mask: Option<TaskMask>,
    /// When the mask was asked for.
    asked_at_ns: u64,
}

/// Its affinity mask. The system call is cheap and leaves out cores that are offline now; the whole mask stands in a file
/// that is read when the call tells something new, and now and then.
#[derive(Debug)]
struct TaskMask {
    reported: CoreSet,
    whole: Option<CoreSet>,
    read_at_ns: u64,
    /// The mask was the same when it was read before: a core that has just gone offline is taken out of a cpuset a moment later.
    is_settled: bool,
}

/// What was last read of a thread.
#[derive(Debug)]
struct Last {
    sample: ThreadSample,
    schedstat: Option<Schedstat>,
    /// When `stat` was read.
    stat_at_ns: u64,
    /// The thread had not run since the reading before: what was read stays true until it runs.
    is_settled: bool,
}

/// Which files have something new to tell, beside `schedstat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Nothing,
    Sched,
    SchedAndStat,
}

impl Last {
    fn wanted(&self, schedstat: Option<Schedstat>, now_ns: u64, is_young: bool) -> Wanted {
        let counts = schedstat.is_some_and(|times| times.slices > 0);
        let is_quiet = counts && schedstat == self.schedstat;
        if now_ns.saturating_sub(self.stat_at_ns) >= trusted_ns(self.sample.id.tid) || (is_quiet && !self.is_settled) {
            Wanted::SchedAndStat
        } else if is_quiet {
            Wanted::Nothing
        } else if is_young || !counts {
            Wanted::SchedAndStat
        } else {
            Wanted::Sched
        }
    }
}

/// Why there is nothing to be read of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// It has ended and waits for its parent: it runs nowhere.
    Ended,
    /// There is no such thread.
    Gone,
    /// No descriptor was left to open its files with.
    Unread,
}

impl Task {
    pub(super) fn new(pid: u32, tid: u32, for_itself: bool) -> Self {
        Self { pid, tid, for_itself, ..Self::default() }
    }

    /// Opens the files and keeps them; false when there is no such thread (any more).
    pub(super) fn keep(&mut self, proc: &mut ProcDir) -> bool {
        // A kernel may lack one of them; all that there are stay open, or none.
        let files = FILES.map(|file| proc.open_file(self.pid, self.tid, file).ok());
        let has_room = files.iter().flatten().all(proc_file::leaves_room);
        self.kept = (has_room && files[STAT].is_some()).then_some(files);
        self.kept.is_some()
    }

    /// Opens the files anew when the thread they belonged to is gone: its number may have been given again.
    pub(super) fn renew(&mut self, proc: &mut ProcDir) -> bool {
        (self.last, self.met_at_ns, self.mask) = (None, None, None);
        self.kept.is_some() && self.keep(proc)
    }

    /// Closes the files, to open them at each reading.
    pub(super) fn release(&mut self) {
        self.kept = None;
    }

    /// How many descriptors it holds.
    pub(super) fn descriptors(&self) -> usize {
        self.kept.as_ref().map_or(0, |files| files.iter().flatten().count())
    }

    /// Reads the thread, and of its files only those that may tell something new: one that `schedstat` says nothing new
    /// of has not run, and one that was not moved is on the core it was on.
    pub(super) fn read(&mut self, reading: &mut TaskReading, known: &Known) -> Result<ThreadSample, Lost> {
        let at_ns = now_ns();
        let schedstat = match self.file(SCHEDSTAT, &mut reading.proc) {
            Ok(text) => parse::parse_schedstat(text),
            Err(Errno::SRCH) => return Err(Lost::Gone),
            Err(_) => None,
        };
        let is_young = at_ns.saturating_sub(*self.met_at_ns.get_or_insert(at_ns)) < YOUNG_NS;
        // Only a kept descriptor is surely the same thread's as before.
        let last = self.last.take().filter(|_| self.kept.is_some());
        let last = last.map(|last| (last.wanted(schedstat, at_ns, is_young), last));
        let has_run = !matches!(last, Some((Wanted::Nothing, _)));
        let mut last = self.renewed(last, reading, schedstat, at_ns)?;
        last.sample.at_ns = at_ns;
        last.sample.side = known.benchmark.as_ref().map(|test| test.side);
        last.sample.direction = known.benchmark.as_ref().and_then(|test| test.direction);
        last.sample.cpuset.clone_from(&known.limits.cores);
        last.sample.memory_nodes.clone_from(&known.limits.memory_nodes);
        last.sample.quota = known.quota;
        // A sleeper's mask is asked for now and then: others may set it, and it acts when the thread wakes.
        if has_run || at_ns.saturating_sub(self.asked_at_ns) >= ASLEEP_NS {
            last.sample.allowed = self.allowed(reading, at_ns);
            self.asked_at_ns = at_ns;
        }
        let sample = last.sample.clone();
        self.last = Some(last);
        Ok(sample)
    }

    fn renewed(
        &mut self,
        last: Option<(Wanted, Last)>,
        reading: &mut TaskReading,
        schedstat: Option<Schedstat>,
        at_ns: u64,
    ) -> Result<Last, Lost> {
        if let Some((Wanted::Nothing, last)) = last {
            return Ok(last);
        }
        let sched = self.file(SCHED, &mut reading.proc).map(parse::parse_sched).unwrap_or_default();
        match (last, schedstat) {
            (Some((Wanted::Sched, mut last)), Some(times))
                if sched.migrations.is_some() && sched.migrations == last.sample.migrations =>
            {
                last.sample.cpu_ns = times.cpu_ns;
                last.sample.wait_ns = Some(times.wait_ns);
                last.sample.voluntary = sched.voluntary;
                last.sample.involuntary = sched.involuntary;
                Ok(Last { schedstat, is_settled: false, ..last })
            }
            (last, _) => {
                let is_settled = last.is_some_and(|(_, last)| schedstat.is_some() && last.schedstat == schedstat);
                let sample = self.sample(reading, sched, schedstat)?;
                Ok(Last { sample, schedstat, stat_at_ns: at_ns, is_settled })
            }
        }
    }

    /// All that the three files tell.
    fn sample(
        &mut self,
        reading: &mut TaskReading,
        sched: Sched,
        schedstat: Option<Schedstat>,
    ) -> Result<ThreadSample, Lost> {
        let text = self.file(STAT, &mut reading.proc).map_err(|error| match error {
            Errno::MFILE | Errno::NFILE => Lost::Unread,
            _ => Lost::Gone,
        })?;
        let stat = parse::parse_stat(text).ok_or(Lost::Gone)?;
        if matches!(stat.state, b'Z' | b'X' | b'x') {
            return Err(Lost::Ended);
        }
        self.comm.clear();
        self.comm.extend_from_slice(stat.comm);
        // All zero although it has run: this kernel keeps no schedstat.
        let schedstat = schedstat.filter(|times| *times != Schedstat::default() || stat.cpu_ticks == 0);
        Ok(ThreadSample {
            id: ThreadId { pid: self.pid, tid: self.tid, start: stat.start },
            at_ns: 0,
            name: text::clean(stat.comm).into(),
            side: None,
            direction: None,
            work: None,
            duty: if self.tid == self.pid && stat.threads > 1 { Duty::Control } else { Duty::Worker },
            core: stat.core,
            allowed: None,
            cpuset: None,
            memory_nodes: None,
            quota: None,
            cpu_ns: schedstat.map_or(stat.cpu_ticks.saturating_mul(reading.tick_ns), |times| times.cpu_ns),
            wait_ns: schedstat.map(|times| times.wait_ns),
            migrations: sched.migrations,
            voluntary: sched.voluntary,
            involuntary: sched.involuntary,
        })
    }

    /// The text of one of the three files.
    fn file<'a>(&self, which: usize, proc: &'a mut ProcDir) -> Result<&'a [u8], Errno> {
        match &self.kept {
            None => proc.read_file(self.pid, self.tid, FILES[which]),
            Some(files) => proc.read(files[which].as_ref().ok_or(Errno::NOENT)?),
        }
    }

    /// The affinity mask, cores that are offline now included.
    fn allowed(&mut self, reading: &mut TaskReading, at_ns: u64) -> Option<CoreSet> {
        // The number means the same thread to a system call only where this /proc is ours.
        if !reading.is_own {
            return self.whole_mask(reading);
        }
        let reported = sched::get_affinity(self.tid, &mut reading.mask).ok()?;
        let is_known = |mask: &&TaskMask| {
            let for_ns = trusted_ns(self.tid) + if mask.is_settled { OFFLINE_NS } else { 0 };
            mask.reported == reported && at_ns.saturating_sub(mask.read_at_ns) < for_ns
        };
        if let Some(mask) = self.mask.as_ref().filter(is_known) {
            return mask.whole.clone().or(Some(reported));
        }
        let whole = self.whole_mask(reading);
        // Only a kept descriptor is surely the same thread's as before.
        let before = self.mask.as_ref().filter(|_| self.kept.is_some());
        let is_settled = before.is_some_and(|before| before.reported == reported && before.whole == whole);
        self.mask = Some(TaskMask { reported: reported.clone(), whole: whole.clone(), read_at_ns: at_ns, is_settled });
        whole.or(Some(reported))
    }

    fn whole_mask(&self, reading: &mut TaskReading) -> Option<CoreSet> {
        parse::parse_allowed(reading.proc.read_file(self.pid, self.tid, "status").ok()?)
    }
}

/// Not all threads in the same tick.
fn trusted_ns(tid: u32) -> u64 {
    TRUSTED_NS + u64::from(tid % 8) * TRUSTED_NS / 8
}
