//! Moves as events, against an ftrace instance of the test's own and against the kernel's own count; what other rights give;
//! that nothing stays behind in tracefs; what the tracing costs.

mod live;

use live::{Kept, Netns, VNETTOP, Watching, await_that, can_run, iperf3_server, pid, veth_pair};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use vnettop::source::now_ns;

const TRACEFS: &str = "/sys/kernel/tracing";
const MILLISECOND: u64 = 1_000_000;

fn can_trace(test: &str, programs: &[&str]) -> bool {
    if !can_run(test, programs) {
        return false;
    }
    let is_there = Path::new(TRACEFS).join("instances").is_dir();
    assert!(is_there || std::env::var_os("VNETTOP_REQUIRE_LIVE").is_none(), "{test} must run here: mount tracefs");
    if !is_there {
        eprintln!("NOT RUN: {test}: tracefs is not mounted");
    }
    is_there
}

/// One move: monotonic ns (microseconds from ftrace's text), thread, from, to.
type Moved = (u64, u32, u32, u32);

/// An ftrace instance that records every move of the machine.
struct Reference(PathBuf);

impl Reference {
    fn start(name: &str) -> Self {
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
    fn moves(&self) -> Vec<Moved> {
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
fn shown(object: &Value) -> Vec<Moved> {
    let events = object["events"].as_array().expect("events");
    let number = |event: &Value, name: &str| event[name].as_u64().expect("a number");
    let short = |event: &Value, name: &str| u32::try_from(number(event, name)).expect("small");
    events
        .iter()
        .filter(|event| event["kind"] == "move")
        .map(|event| (number(event, "t_ns"), short(event, "tid"), short(event, "from"), short(event, "to")))
        .collect()
}

fn threads(object: &Value) -> &Vec<Value> {
    object["threads"].as_array().expect("threads")
}

fn tids(object: &Value) -> impl Iterator<Item = u32> {
    threads(object).iter().map(|thread| u32::try_from(thread["tid"].as_u64().expect("a tid")).expect("small"))
}

fn all_have(object: &Value, evidence: &str) -> bool {
    !threads(object).is_empty() && threads(object).iter().all(|thread| thread["moves_evidence"] == evidence)
}

fn migrations(tid: u32) -> Option<u64> {
    let sched = fs::read_to_string(format!("/proc/{tid}/sched")).ok()?;
    let line = sched.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// Twice as many loops as there are cores: whoever works beside them is moved again and again.
fn busy_loops() -> Vec<Kept> {
    let cores = std::thread::available_parallelism().expect("it is known").get();
    let start = |_| Kept(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh starts"));
    (0..cores * 2).map(start).collect()
}

/// The same moves in both, each at the same time within a millisecond.
fn assert_same(ours: &[Moved], theirs: &[Moved], what: &str) {
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
struct Beside {
    watching: Watching,
    reference: Reference,
    from_ns: u64,
    moves: Vec<Moved>,
    tids: BTreeSet<u32>,
    lost: u64,
    last: Value,
}

impl Beside {
    /// Starts both; the comparison begins when every thread's moves are traced.
    fn start(name: &str, command: Command) -> Self {
        let reference = Reference::start(name);
        let mut watching = Watching::start(command);
        let traced = (0..100).map(|_| watching.next()).find(|object| all_have(object, "traced"));
        let last = traced.expect("the watched threads are traced within ten seconds");
        let tids = tids(&last).collect();
        Self { watching, reference, from_ns: now_ns(), moves: Vec::new(), tids, lost: 0, last }
    }

    fn next(&mut self) -> &Value {
        self.last = self.watching.next();
        self.moves.extend(shown(&self.last));
        self.tids.extend(tids(&self.last));
        let lost = self.last["trace"]["lost"].as_u64();
        self.lost = lost.unwrap_or_else(|| panic!("it is traced to the end: {}", self.watching.next()["problems"]));
        &self.last
    }

    fn watch_for(&mut self, seconds: u64) {
        let end_ns = now_ns() + seconds * 1_000_000_000;
        while now_ns() < end_ns {
            self.next();
        }
    }

    /// Both lists from the beginning of the comparison until now, once everything of that time has been shown.
    fn compare(&mut self) -> (Vec<Moved>, Vec<Moved>) {
        let until_ns = now_ns();
        (0..15).for_each(|_| {
            self.next();
        });
        let within = |one: &&Moved| one.0 > self.from_ns && one.0 < until_ns && self.tids.contains(&one.1);
        let theirs = self.reference.moves().iter().filter(within).copied().collect();
        (self.moves.iter().filter(within).copied().collect(), theirs)
    }
}

fn seconds() -> u64 {
    std::env::var("VNETTOP_MOVES_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

fn signal(name: &str, target: &str) {
    assert!(
        Command::new("kill").args([name, "--", target]).status().expect("kill runs").success(),
        "kill {name} {target}"
    );
}

/// Stops processes, and waits until each thread really stands still: it may be moved until then.
fn stop<'a>(processes: impl IntoIterator<Item = &'a Kept>) {
    for process in processes {
        let pid = pid(process);
        signal("-STOP", &pid.to_string());
        let stands =
            |task: fs::DirEntry| fs::read_to_string(task.path().join("stat")).is_ok_and(|stat| stat.contains(") T "));
        let all = || fs::read_dir(format!("/proc/{pid}/task")).expect("it is there").flatten().all(stands);
        await_that("every thread has stopped", 10, all);
    }
}

#[test]
fn the_events_of_iperf3_are_those_of_ftrace() {
    if !can_trace("the_events_of_iperf3_are_those_of_ftrace", &["iperf3", "nsenter"]) {
        return;
    }
    let (near, far) = veth_pair();
    let server = iperf3_server(&near, &[]);
    let client = far.keep("iperf3", &["-c", "198.18.0.1", "-t", "600"]);
    let _busy = busy_loops();
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.1", "--watch", &pid(&server).to_string(), "--watch", &pid(&client).to_string()]);
    let mut beside = Beside::start("iperf3", command);
    beside.watch_for(seconds());
    let (ours, theirs) = beside.compare();
    assert!(!theirs.is_empty(), "iperf3 was moved at all");
    assert_eq!(beside.lost, 0, "nothing was lost");
    assert_same(&ours, &theirs, "iperf3");
    stop([&server, &client]);
    (0..3).for_each(|_| {
        beside.next();
    });
    for thread in threads(&beside.last) {
        let tid = u32::try_from(thread["tid"].as_u64().expect("a tid")).expect("small");
        assert_eq!(thread["moves"].as_u64(), migrations(tid), "the count is se.nr_migrations");
        assert_eq!(thread["moves_evidence"], "traced", "and each of the last interval came as an event");
    }
}

#[test]
fn threads_born_later_are_traced_from_their_first_move() {
    if !can_trace("threads_born_later_are_traced_from_their_first_move", &["nsenter"]) {
        return;
    }
    let netns = Netns::new();
    let stand_in = |more: &[&str]| {
        let mut command = netns.command(VNETTOP);
        command.arg("demo-child").args(more).args(["--name", "moved-standin"]).stdout(Stdio::piped());
        Kept(command.spawn().expect("the stand-in starts"))
    };
    let mut server = stand_in(&["standin-server", "--bind", "127.0.0.1:0"]);
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().expect("piped")).read_line(&mut line).expect("it says where it listens");
    let address = line.trim().rsplit(' ').next().expect("an address").to_owned();
    let _busy = busy_loops();
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.1", "--watch", "moved-standin"]);
    let mut beside = Beside::start("born", command);
    let client = stand_in(&["standin-client", "--connect", &address, "--seconds", "600", "--streams", "4"]);
    beside.watch_for(seconds());
    stop([&server, &client]);
    let (ours, theirs) = beside.compare();
    assert!(beside.tids.len() >= 10, "both mains and four workers each were seen: {:?}", beside.tids);
    assert_eq!(beside.lost, 0, "nothing was lost");
    assert_same(&ours, &theirs, "stand-in");
    for thread in threads(&beside.last) {
        let tid = u32::try_from(thread["tid"].as_u64().expect("a tid")).expect("small");
        assert_eq!(thread["moves"].as_u64(), migrations(tid), "the count is se.nr_migrations");
        let events = ours.iter().filter(|one| one.1 == tid).count() as u64;
        let born_later = tid != pid(&server);
        assert!(!born_later || Some(events) == migrations(tid), "thread {tid}: {events} events, {thread}");
    }
}

/// A copy that another user may run.
fn copy_for_others() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let copy = directory.path().join("vnettop");
    fs::copy(VNETTOP, &copy).expect("it can be copied");
    fs::set_permissions(copy, fs::Permissions::from_mode(0o755)).expect("it is ours");
    directory
}

/// vnettop as nobody, with these capabilities only.
fn as_nobody(directory: &tempfile::TempDir, capability: Option<&str>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    if let Some(capability) = capability {
        command.args(["--inh-caps", capability, "--ambient-caps", capability]);
    }
    command.arg(directory.path().join("vnettop"));
    command
}

#[test]
fn without_rights_moves_are_counted_and_it_says_which_right_would_help() {
    if !can_run("without_rights_moves_are_counted_and_it_says_which_right_would_help", &["setpriv"]) {
        return;
    }
    let directory = copy_for_others();
    let busy = busy_loops();
    let mut command = as_nobody(&directory, None);
    command.args(["-d", "0.1"]).stderr(Stdio::null());
    for one in &busy {
        command.args(["--watch", &pid(one).to_string()]);
    }
    let mut watching = Watching::start(command);
    let mut objects: Vec<Value> = (0..seconds() * 10).map(|_| watching.next()).collect();
    stop(&busy);
    (0..3).for_each(|_| objects.push(watching.next()));
    assert!(objects.iter().all(|object| all_have(object, "counted")), "the evidence is the kernel's count");
    assert!(objects.iter().all(|object| shown(object).is_empty()), "nothing is claimed to be traced");
    let last = objects.last().expect("there are objects");
    assert!(last["trace"].is_null(), "there is no trace");
    for (thread, tid) in threads(last).iter().zip(tids(last)) {
        assert_eq!(thread["moves"].as_u64(), migrations(tid), "the count is se.nr_migrations");
    }
    let told: Vec<_> =
        last["problems"].as_array().expect("problems").iter().filter(|one| one["source"] == "moves").collect();
    assert_eq!(told.len(), 1, "it is told once");
    assert!(told[0]["text"].as_str().is_some_and(|text| text.contains("CAP_PERFMON")), "and which right would help");
}

/// The same where the kernel shows no counts: /dev/null lies over each thread's `sched`.
fn without_counts(directory: &tempfile::TempDir, tids: &[u32]) -> Command {
    let cover = |tid: &u32| format!("mount --bind /dev/null /proc/{tid}/task/{tid}/sched; ");
    let covered: String = tids.iter().map(cover).collect();
    let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let vnettop = directory.path().join("vnettop");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", &format!("{covered} exec {nobody} {} \"$@\"", vnettop.display()), "sh"]);
    command
}

#[test]
fn without_counts_moves_are_sampled_and_never_above_the_truth() {
    if !can_run("without_counts_moves_are_sampled_and_never_above_the_truth", &["setpriv", "unshare"]) {
        return;
    }
    let directory = copy_for_others();
    let busy = busy_loops();
    let tids: Vec<u32> = busy.iter().map(pid).collect();
    let before: BTreeMap<u32, u64> = tids.iter().map(|&tid| (tid, migrations(tid).expect("counted"))).collect();
    let mut command = without_counts(&directory, &tids);
    command.args(["-d", "0.1"]).stderr(Stdio::null());
    for tid in &tids {
        command.args(["--watch", &tid.to_string()]);
    }
    let mut watching = Watching::start(command);
    let objects: Vec<Value> = (0..seconds() * 10).map(|_| watching.next()).collect();
    let last = objects.last().expect("there are objects");
    assert!(objects.iter().all(|object| all_have(object, "sampled")), "the evidence is what was seen: {last}");
    let mut total = 0;
    for (thread, tid) in threads(last).iter().zip(self::tids(last)) {
        let seen = thread["moves"].as_u64().expect("a number");
        let happened = migrations(tid).expect("counted") - before[&tid];
        assert!(seen <= happened, "thread {tid}: {seen} seen, {happened} happened");
        total += seen;
    }
    assert!(total > 0, "some were seen");
    let frame = without_counts(&directory, &tids)
        .args(["-d", "0.1", "-n", "20", "--print", "160x50", "--watch", &tids[0].to_string()])
        .output()
        .expect("vnettop runs");
    let frame = String::from_utf8_lossy(&frame.stdout);
    assert!(frame.contains("≥ sampled"), "the screen marks them as an under-count:\n{frame}");
}

#[test]
fn with_cap_perfmon_alone_moves_come_as_events_and_the_loss_is_told() {
    if !can_trace("with_cap_perfmon_alone_moves_come_as_events_and_the_loss_is_told", &["setpriv"]) {
        return;
    }
    let directory = copy_for_others();
    let busy = busy_loops();
    let mut command = as_nobody(&directory, Some("+perfmon"));
    command.args(["-d", "0.1"]);
    for one in &busy {
        command.args(["--watch", &pid(one).to_string()]);
    }
    let mut beside = Beside::start("perf", command);
    assert_eq!(beside.last["trace"]["source"], "perf", "tracefs is closed to nobody");
    beside.watch_for(seconds());
    let (ours, theirs) = beside.compare();
    let (seen, happened) = (ours.len() as u64, theirs.len() as u64);
    eprintln!("perf: {seen} shown, {} told as lost, {happened} happened", beside.lost);
    assert!(seen <= happened, "no move is made up: {seen} shown of {happened}");
    // Lost moves of threads that nobody watches yet are told too.
    let strangers = beside.reference.moves().len() as u64 - happened;
    assert!(seen + beside.lost >= happened, "what is missing is told: {seen} + {} of {happened}", beside.lost);
    assert!(beside.lost <= happened - seen + strangers, "and no more than that");
}

#[test]
fn where_sys_was_mounted_anew_every_move_is_traced_all_the_same() {
    let test = "where_sys_was_mounted_anew_every_move_is_traced_all_the_same";
    if !can_trace(test, &["unshare"]) {
        return;
    }
    let spinner = Kept(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh starts"));
    // As ip netns exec does it.
    let within =
        format!("umount -l /sys; mount -t sysfs sysfs /sys && exec {VNETTOP} -d 0.1 --watch {} \"$@\"", pid(&spinner));
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "sh", "-c", &within, "sh"]);
    let mut watching = Watching::start(command);
    let traced = (0..100).map(|_| watching.next()).find(|object| all_have(object, "traced"));
    let traced = traced.expect("the watched thread is traced within ten seconds");
    assert_eq!(
        (&traced["trace"]["source"], &traced["trace"]["lost"]),
        (&"ftrace".into(), &0.into()),
        "and none is lost"
    );
    let instance = instance(watching.pid());
    assert!(instance.is_dir(), "by an instance of vnettop's own");
    drop(watching);
    await_that("which is gone though it was killed", 5, || !instance.exists());
}

fn instance(pid: u32) -> PathBuf {
    Path::new(TRACEFS).join(format!("instances/vnettop-{pid}"))
}

#[test]
fn nothing_is_left_in_tracefs_however_it_ends() {
    if !can_trace("nothing_is_left_in_tracefs_however_it_ends", &[]) {
        return;
    }
    let stale = instance(4_194_999);
    fs::create_dir(&stale).expect("an instance can be made");
    let watched = Kept(Command::new("sleep").arg("3600").spawn().expect("sleep starts"));
    for (name, whole_group) in [("-INT", false), ("-TERM", true), ("-KILL", false), ("-KILL", true)] {
        let mut command = Command::new(VNETTOP);
        command.args(["--json", "-d", "0.1", "--watch", &pid(&watched).to_string()]).process_group(0);
        let mut vnettop = Kept(command.stdout(Stdio::null()).spawn().expect("vnettop starts"));
        let own = instance(pid(&vnettop));
        await_that("the instance is made", 5, || own.is_dir());
        assert!(!stale.exists(), "what a dead vnettop left is removed at the start");
        let group = if whole_group { "-" } else { "" };
        signal(name, &format!("{group}{}", pid(&vnettop)));
        vnettop.0.wait().expect("it ends");
        await_that(&format!("after kill {name} {group}PID the instance is gone"), 2, || !own.exists());
    }
}

/// The process that will remove the instance.
fn keeper_of(vnettop: u32) -> Option<u32> {
    let tasks = fs::read_dir(format!("/proc/{vnettop}/task")).ok()?;
    let children = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    let pids: Vec<u32> =
        children.flat_map(|text| text.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect();
    let is_keeper =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "vnettop-keeper\n");
    pids.into_iter().find(is_keeper)
}

#[test]
fn a_killed_keeper_is_replaced_and_nothing_is_left_in_tracefs() {
    if !can_trace("a_killed_keeper_is_replaced_and_nothing_is_left_in_tracefs", &[]) {
        return;
    }
    let watched = Kept(Command::new("sleep").arg("3600").spawn().expect("sleep starts"));
    let mut command = Command::new(VNETTOP);
    command.args(["--json", "-d", "0.1", "--watch", &pid(&watched).to_string()]);
    let mut vnettop = Kept(command.stdout(Stdio::null()).spawn().expect("vnettop starts"));
    let (number, own) = (pid(&vnettop), instance(pid(&vnettop)));
    await_that("it traces", 5, || own.is_dir() && keeper_of(number).is_some());
    for _ in 0..2 {
        let killed = keeper_of(number).expect("a keeper");
        signal("-KILL", &killed.to_string());
        await_that("another keeper takes its place", 5, || keeper_of(number).is_some_and(|keeper| keeper != killed));
        assert!(own.is_dir(), "the trace goes on meanwhile");
    }
    signal("-TERM", &number.to_string());
    vnettop.0.wait().expect("it ends");
    await_that("the instance is gone", 5, || !own.exists());
}

/// CPU time of every thread of a process, ns.
fn spent_ns(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let of = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    tasks.flatten().filter_map(of).sum()
}

/// Python: moves a process to the other core 1,000 times a second.
const FLIPPER: &str = "
import os, sys, time
pid, due, at = int(sys.argv[1]), time.monotonic(), 0
while True:
    at ^= 1; os.sched_setaffinity(pid, {at}); due += 0.001
    time.sleep(max(0, due - time.monotonic()))";

#[test]
fn tracing_a_thousand_moves_a_second_costs_little() {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if !can_trace("tracing_a_thousand_moves_a_second_costs_little", &["setpriv", "python3"]) || cores < 2 {
        return;
    }
    let directory = copy_for_others();
    let busy = Kept(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh starts"));
    let tid = pid(&busy).to_string();
    let _flipper = Kept(Command::new("python3").args(["-c", FLIPPER, &tid]).spawn().expect("python3 starts"));
    let start = |mut command: Command| {
        command.args(["-d", "0.5", "--no-realtime", "--watch", &tid]).stderr(Stdio::null());
        let mut watching = Watching::start(command);
        (0..4).for_each(|_| drop(watching.next()));
        watching
    };
    // Side by side, so that whatever else the machine does weighs on both.
    let (mut with, mut without) = (start(Command::new(VNETTOP)), start(as_nobody(&directory, None)));
    let (with_pid, without_pid) = (with.pid(), without.pid());
    let (began_ns, before) = (now_ns(), [spent_ns(with_pid), spent_ns(without_pid)]);
    let mut moves = 0;
    while now_ns() < began_ns + seconds() * 1_000_000_000 {
        moves += shown(&with.next()).len();
        without.next();
    }
    let elapsed_ns = now_ns() - began_ns;
    let share = |pid, before| (spent_ns(pid) - before) as f64 / elapsed_ns as f64 * 100.0;
    let (traced, counted) = (share(with_pid, before[0]), share(without_pid, before[1]));
    let moves_per_s = moves as f64 * 1e9 / elapsed_ns as f64;
    eprintln!("{moves_per_s:.0} moves/s: {traced:.3} % of a core with tracing, {counted:.3} % without");
    assert!(moves_per_s > 200.0, "the helper moves it often enough: {moves_per_s:.0} a second");
    // A debug build writes its JSON ten times slower than the one that is shipped.
    let most = if cfg!(debug_assertions) { 5.0 } else { 1.5 };
    assert!(traced - counted < most, "tracing costs {:.3} % of a core", traced - counted);
}
