//! The watched threads: found on the tick after they are born, read from descriptors that stay open, dropped on the tick
//! after they die. It computes no rate, and moves nothing.

mod discovery;
mod groups;
mod kernel;
mod parse;
mod proc_dir;
mod quota;
mod runners;
mod task;
mod visibility;
mod watch;
mod workers;

use super::moves::ThreadLookup;
use super::{Roots, SourceError, benchmarks, now_ns, proc_file};
use crate::bpf::moves::MovedProcess;
use discovery::{Change, ProcessFinder};
use groups::GroupLimits;
use quota::Group;
use runners::Runners;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use task::{Known, Lost, Task, TaskReading};
use visibility::Namespace;
use vnettop_sample::{Benchmark, Problem, ProblemSource, Quota, Runner, ThreadSample};
use watch::Watched;

pub(crate) use kernel::napi_thread;
pub(crate) use parse::parse_stat;
pub use watch::Watch;
pub use workers::{Carriers, WorkerReader};

/// How often the limits of a watched process' groups are read again: some 30 system calls, so seldom and one process a tick.
const KNOWN_FOR_NS: u64 = 15_000_000_000;
/// How soon the limits and the command line are read for the second time, ns: a process has its new name a moment before its
/// new command line, which does not change after that.
const FIRST_KNOWN_FOR_NS: u64 = 300_000_000;
/// How many processes one tick reads again at most.
const MOST_RENEWED: usize = 1;

/// Reads the watched threads again and again.
#[derive(Debug)]
pub struct ThreadReader {
    roots: Roots,
    reading: TaskReading,
    finder: ProcessFinder,
    /// By process and thread.
    tasks: BTreeMap<(u32, u32), Task>,
    /// By process.
    known: BTreeMap<u32, ProcessInfo>,
    limits: GroupLimits,
    quotas_at_ns: u64,
    runners: Runners,
    benchmarks: Arc<Vec<Benchmark>>,
    /// How many descriptors may be kept.
    most_kept: usize,
    lasting: Vec<Problem>,
    problems: Vec<Problem>,
    /// What the problems behind those of `lasting` were made from.
    reported: ProblemFacts,
}

/// What the problems are made from: some thread whose moves the kernel does not count, a process asked for that is not there, and how
/// many threads no descriptor was left for.
type ProblemFacts = (bool, Option<u32>, usize);

/// What is known of a process, when it has to be read again, and whether its command line is its last.
#[derive(Debug)]
struct ProcessInfo {
    known: Known,
    due_ns: u64,
    settled: bool,
    /// The main thread's name when its command line was read: another one is another program's (`exec`).
    comm: Vec<u8>,
}

impl ProcessInfo {
    /// Another name is another program's, with another command line.
    fn is_called(&mut self, comm: &[u8]) {
        if self.comm == comm {
            return;
        }
        if !self.comm.is_empty() {
            (self.due_ns, self.settled) = (0, false);
        }
        self.comm.clear();
        self.comm.extend_from_slice(comm);
    }
}

impl ThreadReader {
    /// Opens /proc; nothing is looked for before the first reading.
    ///
    /// # Errors
    /// When /proc cannot be listed.
    pub fn open(roots: &Roots, watches: Vec<Watch>) -> Result<Self, SourceError> {
        let namespace = visibility::namespace(&roots.proc);
        let lasting = visibility::problems(roots, namespace);
        Ok(Self {
            reading: TaskReading::open(roots, namespace == Namespace::Own)?,
            finder: ProcessFinder::new(roots, namespace, Watched::new(watches)),
            roots: roots.clone(),
            tasks: BTreeMap::new(),
            known: BTreeMap::new(),
            limits: GroupLimits::default(),
            quotas_at_ns: 0,
            runners: Runners::default(),
            benchmarks: Arc::default(),
            // Where few are allowed, what loads the BPF programs needs some for a moment.
            most_kept: (proc_file::descriptor_room() / 2).saturating_sub(12),
            problems: lasting.clone(),
            lasting,
            reported: (false, None, 0),
        })
    }

    /// Watches this process too, instead of the one named so before, `with_descendants` also those that descend from it.
    pub fn watch(&mut self, pid: u32, with_descendants: bool) {
        self.finder.watch(&mut self.reading.proc, pid, with_descendants);
    }

    /// Watches these processes too, whatever they are called, and those named so before no longer.
    pub fn set_extra_pids(&mut self, pids: BTreeSet<u32>) {
        self.finder.set_extra_pids(&mut self.reading.proc, pids);
    }

    /// The process or thread number that the kernel had given last when the threads were read; none where that is not
    /// known.
    #[must_use]
    pub fn newest(&self) -> Option<u32> {
        self.finder.newest
    }

    /// The command's process and its descendants, as of the last reading; none where no command was started or its processes
    /// are not to be seen.
    #[must_use]
    pub fn family(&self) -> Option<Arc<Vec<u32>>> {
        self.finder.family()
    }

    /// Reads every watched thread there is, sorted by process and thread.
    pub fn read(&mut self) -> Vec<ThreadSample> {
        let now_ns = now_ns();
        let changes: Vec<Change> = self.finder.look(&mut self.reading.proc, now_ns).collect();
        for change in changes {
            self.follow(change);
        }
        self.renew(now_ns);
        self.read_quotas(now_ns);
        let (samples, uncounted, unread) = self.read_tasks();
        let missing = self.finder.missing_pid(|tid| self.tasks.keys().any(|(_, watched)| *watched == tid));
        self.report((uncounted, missing, unread));
        if unread > 0 {
            // Files that are kept open save time; a thread that is not read is lost.
            self.most_kept = 0;
            self.tasks.values_mut().for_each(Task::release);
        }
        samples
    }

    /// Which threads of the machine use its cores while one of these waits for one, or somebody asks; the same `Arc` until that was
    /// looked at again.
    pub fn runners(&mut self, threads: &[ThreadSample], is_asked: bool) -> Arc<Vec<Runner>> {
        let TaskReading { proc, tick_ns, .. } = &mut self.reading;
        self.runners.look(proc, (threads, is_asked), *tick_ns, now_ns())
    }

    /// The benchmarks among the watched processes, sorted by pid; the same `Arc` until that changes.
    pub fn benchmarks(&mut self) -> Arc<Vec<Benchmark>> {
        let now = || self.known.values().filter_map(|process| process.known.benchmark.as_ref());
        if !now().eq(self.benchmarks.iter()) {
            self.benchmarks = Arc::new(now().cloned().collect());
        }
        Arc::clone(&self.benchmarks)
    }

    /// What could not be read; empty is the normal case.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn follow(&mut self, change: Change) {
        match change {
            Change::Unwatch(pid) => {
                self.tasks.retain(|key, task| key.0 != pid || task.for_itself);
            }
            Change::Watch { pid, tid, for_itself } => match self.tasks.get_mut(&(pid, tid)) {
                Some(task) => task.for_itself &= for_itself,
                None => self.add_task(pid, tid, for_itself),
            },
        }
    }

    fn add_task(&mut self, pid: u32, tid: u32, for_itself: bool) {
        let mut task = Task::new(pid, tid, for_itself);
        // Where descriptors are scarce (or there are none left to open), the files are opened on every reading.
        let kept: usize = self.tasks.values().map(Task::descriptors).sum();
        let _ = kept + 3 <= self.most_kept && task.keep(&mut self.reading.proc);
        self.tasks.insert((pid, tid), task);
    }

    /// Learns what is known of each watched process, and forgets processes without watched threads.
    fn renew(&mut self, now_ns: u64) {
        self.known.retain(|pid, _| self.tasks.range((*pid, 0)..=(*pid, u32::MAX)).next().is_some());
        let mut renewed = 0;
        let mut last = None;
        for pid in self.tasks.keys().map(|(pid, _)| *pid) {
            if last.replace(pid) == Some(pid) {
                continue;
            }
            match self.known.get(&pid) {
                Some(process) if process.due_ns > now_ns => continue,
                Some(_) if renewed >= MOST_RENEWED => continue,
                known => renewed += usize::from(known.is_some()),
            }
            let limits = self.limits.of(&self.roots, pid, now_ns);
            match self.known.get_mut(&pid) {
                None => {
                    let benchmark = benchmarks::of(&self.roots, pid).ok().flatten();
                    let quota = limits.quota.as_ref().and_then(Group::read);
                    let known = Known { benchmark, limits, quota };
                    let due_ns = now_ns + FIRST_KNOWN_FOR_NS;
                    self.known.insert(pid, ProcessInfo { known, due_ns, settled: false, comm: Vec::new() });
                }
                Some(process) => {
                    if !process.settled
                        && let Ok(benchmark) = benchmarks::of(&self.roots, pid)
                    {
                        (process.known.benchmark, process.settled) = (benchmark, true);
                    }
                    (process.known.limits, process.due_ns) = (limits, now_ns + KNOWN_FOR_NS);
                }
            }
        }
    }

    /// Reads how often the groups with a quota were stopped; no system call where there are none.
    fn read_quotas(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.quotas_at_ns) < quota::EVERY_NS {
            return;
        }
        self.quotas_at_ns = now_ns;
        let mut last: Option<(Group, Option<Quota>)> = None;
        for ProcessInfo { known, .. } in self.known.values_mut() {
            known.quota = known.limits.quota.as_ref().and_then(|group| match &last {
                // The processes of a test are mostly of one group.
                Some((same, quota)) if same == group => *quota,
                _ => last.insert((group.clone(), group.read())).1,
            });
        }
    }

    /// The samples, whether there is a thread whose moves the kernel does not count, and how many there was no descriptor for.
    fn read_tasks(&mut self) -> (Vec<ThreadSample>, bool, usize) {
        let mut samples = Vec::with_capacity(self.tasks.len());
        let (mut uncounted, mut unread) = (false, 0);
        self.tasks.retain(|&(pid, tid), task| {
            let Some(process) = self.known.get_mut(&pid) else { return true };
            let mut read = task.read(&mut self.reading, &process.known);
            if read == Err(Lost::Gone) && task.renew(&mut self.reading.proc) {
                read = task.read(&mut self.reading, &process.known);
            }
            match read {
                // It took another name, and was watched for the one it had.
                Ok(_) if task.for_itself && !self.finder.answers(pid, tid, &task.comm) => return false,
                Ok(sample) => {
                    if pid == tid {
                        process.is_called(&task.comm);
                    }
                    uncounted |= sample.migrations.is_none();
                    samples.push(sample);
                }
                Err(Lost::Ended) => {}
                Err(Lost::Unread) => unread += 1,
                Err(Lost::Gone) => return false,
            }
            true
        });
        (samples, uncounted, unread)
    }

    fn report(&mut self, reported: ProblemFacts) {
        if std::mem::replace(&mut self.reported, reported) == reported {
            return;
        }
        let uncounted = reported.0.then(|| {
            "this kernel does not count migrations (no /proc/PID/sched); they are only sampled, so each figure \
             is too low; a kernel with CONFIG_SCHED_DEBUG counts them"
                .to_owned()
        });
        let missing = reported.1.map(|pid| {
            format!("no process {pid} is visible: it has exited or is hidden; watch a command name instead")
        });
        let unread = (reported.2 > 0).then(|| {
            format!(
                "{} watched threads were not read: all {} open files were in use; raise the limit (ulimit -n)",
                reported.2,
                proc_file::descriptor_limit()
            )
        });
        self.problems.clone_from(&self.lasting);
        let problem = |text| Problem { source: ProblemSource::Threads, text };
        self.problems.extend(uncounted.into_iter().chain(missing).chain(unread).map(problem));
    }
}

impl ThreadLookup for ThreadReader {
    fn would_watch(&self, tid: u32, process: &MovedProcess) -> bool {
        let MovedProcess { pid, parent, .. } = *process;
        self.finder.would_watch(tid, process.name(), parent) || self.finder.would_watch(pid, process.name(), parent)
    }

    fn has_ended(&self, tid: u32) -> bool {
        match std::fs::read(self.roots.proc.join(tid.to_string()).join("stat")) {
            Ok(stat) => parse::parse_stat(&stat).is_some_and(|stat| matches!(stat.state, b'Z' | b'X')),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH),
        }
    }
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    let _ = (parse::parse_stat(bytes), parse::parse_sched(bytes), parse::parse_schedstat(bytes));
    let _ = (parse::parse_tgid(bytes), parse::parse_allowed(bytes));
}

#[cfg(test)]
mod tests;
