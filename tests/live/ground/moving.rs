//! What happens to threads beside what vnettop shows of it: an ftrace instance of the test's own, the kernel's count, programs
//! that are moved, vnettop with fewer rights.

use crate::ground::{Kept, VNETTOP, Watching, await_that, needs, pid};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use vnettop::source::now_ns;

const TRACEFS: &str = "/sys/kernel/tracing";
const MILLISECOND: u64 = 1_000_000;

/// What [`ground::needs`] of a test that asks ftrace.
pub fn needs_tracing(programs: &[&str]) {
    needs(programs);
    assert!(Path::new(TRACEFS).join("instances").is_dir(), "it needs tracefs, which tests/run mounts");
}

/// One move: monotonic ns (microseconds from ftrace's text), thread, from, to.
pub type Moved = (u64, u32, u32, u32);

/// An ftrace instance that records every move of the machine.
pub struct Reference(PathBuf);

impl Reference {
    pub fn start(name: &str) -> Self {
        let instance = Path::new(TRACEFS).join("instances").join(format!("live-moves-{name}-{}", std::process::id()));
        fs::create_dir(&instance).expect("an instance can be made");
        let reference = Self(instance);
        for (file, text) in
            [("trace_clock", "mono"), ("buffer_size_kb", "8192"), ("events/sched/sched_migrate_task/enable", "1")]
        {
            fs::write(reference.0.join(file), text).expect("the instance takes it");
        }
        reference
    }

    /// Everything so far.
    pub fn moves(&self) -> Vec<Moved> {
        let text = fs::read(self.0.join("trace")).expect("the trace is readable");
        let text = String::from_utf8_lossy(&text);
        text.lines().filter(|line| line.contains(": sched_migrate_task: ")).map(moved).collect()
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("events/sched/sched_migrate_task/enable"), "0");
        let _ = fs::remove_dir(&self.0);
    }
}

/// `sh-812 [001] d..2. 15664.144058: sched_migrate_task: comm=sh pid=812 prio=120 orig_cpu=1 dest_cpu=0`; names may hold
/// anything, so it is read from the end.
fn moved(line: &str) -> Moved {
    let (head, fields) = line.split_once(": sched_migrate_task: ").expect("it is a move");
    let seconds: f64 = head.rsplit(' ').next().and_then(|time| time.parse().ok()).expect("a time");
    let field = |name: &str| -> u32 {
        let after = fields.rsplit(name).next().expect("a field");
        after.split_whitespace().next().and_then(|value| value.parse().ok()).expect("a number")
    };
    let at_ns = std::time::Duration::from_secs_f64(seconds).as_nanos();
    (u64::try_from(at_ns).expect("fits"), field(" pid="), field(" orig_cpu="), field(" dest_cpu="))
}

/// The events of kind "move" of an object.
pub fn shown(object: &Value) -> Vec<Moved> {
    let events = object["events"].as_array().expect("events");
    let number = |event: &Value, name: &str| event[name].as_u64().expect("a number");
    let short = |event: &Value, name: &str| u32::try_from(number(event, name)).expect("small");
    events
        .iter()
        .filter(|event| event["kind"] == "move")
        .map(|event| (number(event, "t_ns"), short(event, "tid"), short(event, "from"), short(event, "to")))
        .collect()
}

pub fn threads(object: &Value) -> &Vec<Value> {
    object["threads"].as_array().expect("threads")
}

pub fn tids(object: &Value) -> impl Iterator<Item = u32> {
    threads(object).iter().map(|thread| u32::try_from(thread["tid"].as_u64().expect("a tid")).expect("small"))
}

pub fn all_have(object: &Value, evidence: &str) -> bool {
    !threads(object).is_empty() && threads(object).iter().all(|thread| thread["moves_evidence"] == evidence)
}

pub fn migrations(tid: u32) -> Option<u64> {
    let sched = fs::read_to_string(format!("/proc/{tid}/sched")).ok()?;
    let line = sched.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// Twice as many loops as there are cores: whoever works beside them is moved again and again.
pub fn busy_loops() -> Vec<Kept> {
    let cores = std::thread::available_parallelism().expect("it is known").get();
    let start = |_| Kept(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh starts"));
    (0..cores * 2).map(start).collect()
}

/// The same moves in both, each at the same time within a millisecond.
pub fn assert_same(ours: &[Moved], theirs: &[Moved], what: &str) {
    let bare = |moves: &[Moved]| {
        let mut bare: Vec<_> = moves.iter().map(|&(_, tid, from, to)| (tid, from, to)).collect();
        bare.sort_unstable();
        bare
    };
    assert_eq!(bare(ours), bare(theirs), "{what}: the same moves as ftrace's");
    let by_thread = |moves: &[Moved]| {
        let mut times: BTreeMap<(u32, u32, u32), Vec<u64>> = BTreeMap::new();
        for &(at_ns, tid, from, to) in moves {
            times.entry((tid, from, to)).or_default().push(at_ns);
        }
        for times in times.values_mut() {
            times.sort_unstable();
        }
        times
    };
    let (ours, theirs) = (by_thread(ours), by_thread(theirs));
    let apart = ours.iter().flat_map(|(key, times)| times.iter().zip(&theirs[key]).map(|(a, b)| a.abs_diff(*b))).max();
    assert!(apart.unwrap_or(0) < MILLISECOND, "{what}: times are within 1 ms, not {apart:?} ns apart");
    eprintln!("{what}: {} moves, times at most {apart:?} ns apart", ours.values().map(Vec::len).sum::<usize>());
}

/// A run of vnettop beside a reference: what it showed, and the threads it showed.
pub struct OtherTraffic {
    watching: Watching,
    pub reference: Reference,
    from_ns: u64,
    pub moves: Vec<Moved>,
    pub tids: BTreeSet<u32>,
    pub lost: u64,
    pub last: Value,
}

impl OtherTraffic {
    /// Starts both; the comparison begins when every thread's moves are traced.
    pub fn start(name: &str, command: Command) -> Self {
        let reference = Reference::start(name);
        let mut watching = Watching::start(command);
        let traced = (0..100).map(|_| watching.next()).find(|object| all_have(object, "traced"));
        let last = traced.expect("the watched threads are traced within ten seconds");
        let tids = tids(&last).collect();
        Self { watching, reference, from_ns: now_ns(), moves: Vec::new(), tids, lost: 0, last }
    }

    pub fn next(&mut self) -> &Value {
        self.last = self.watching.next();
        self.moves.extend(shown(&self.last));
        self.tids.extend(tids(&self.last));
        let lost = self.last["trace"]["lost"].as_u64();
        self.lost = lost.unwrap_or_else(|| panic!("it is traced to the end: {}", self.watching.next()["problems"]));
        &self.last
    }

    pub fn watch_for(&mut self, seconds: u64) {
        let end_ns = now_ns() + seconds * 1_000_000_000;
        while now_ns() < end_ns {
            self.next();
        }
    }

    /// Both lists from the beginning of the comparison until now, once everything of that time has been shown.
    pub fn compare(&mut self) -> (Vec<Moved>, Vec<Moved>) {
        let until_ns = now_ns();
        (0..15).for_each(|_| {
            self.next();
        });
        let within = |one: &&Moved| one.0 > self.from_ns && one.0 < until_ns && self.tids.contains(&one.1);
        let theirs = self.reference.moves().iter().filter(within).copied().collect();
        (self.moves.iter().filter(within).copied().collect(), theirs)
    }
}

pub fn seconds() -> u64 {
    std::env::var("VNETTOP_MOVES_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

pub fn signal(name: &str, target: &str) {
    assert!(
        Command::new("kill").args([name, "--", target]).status().expect("kill runs").success(),
        "kill {name} {target}"
    );
}

/// Stops processes, and waits until each thread really stands still: it may be moved until then.
pub fn stop<'a>(processes: impl IntoIterator<Item = &'a Kept>) {
    for process in processes {
        let pid = pid(process);
        signal("-STOP", &pid.to_string());
        let stands =
            |task: fs::DirEntry| fs::read_to_string(task.path().join("stat")).is_ok_and(|stat| stat.contains(") T "));
        let all = || fs::read_dir(format!("/proc/{pid}/task")).expect("it is there").flatten().all(stands);
        await_that("every thread has stopped", 10, all);
    }
}

/// A copy that another user may run.
pub fn copy_for_others() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let copy = directory.path().join("vnettop");
    fs::copy(VNETTOP, &copy).expect("it can be copied");
    fs::set_permissions(copy, fs::Permissions::from_mode(0o755)).expect("it is ours");
    directory
}

/// vnettop as nobody, with these capabilities only.
pub fn as_nobody(directory: &tempfile::TempDir, capability: Option<&str>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    if let Some(capability) = capability {
        command.args(["--inh-caps", capability, "--ambient-caps", capability]);
    }
    command.arg(directory.path().join("vnettop"));
    command
}
