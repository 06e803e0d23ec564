//! The trace of moves itself: where it is reached, that nothing of it stays behind in tracefs, what it costs.

#[path = "live_moves/beside.rs"]
mod beside;
mod live;

use beside::{all_have, as_nobody, can_trace, copy_for_others, instance, seconds, shown, signal};
use live::{Kept, VNETTOP, Watching, await_that, pid};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use vnettop::source::now_ns;

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
