//! The kernel's programs themselves: where they can be had, that nothing of them stays behind, what they cost.

use crate::ground::moving::{all_have, as_nobody, copy_for_others, needs_tracing, seconds, shown, signal};
use crate::ground::{Kept, VNETTOP, Watching, await_that, needs_two_cores, pid};
use std::fs;
use std::process::{Command, Stdio};
use vnettop::source::now_ns;

#[test]
#[ignore = "on the real kernel: tests/run"]
fn where_sys_was_mounted_anew_every_move_is_traced_all_the_same() {
    needs_tracing(&["unshare"]);
    traced_with("mount -t sysfs sysfs /sys");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn without_btf_every_move_is_traced_where_sys_was_mounted_anew() {
    needs_tracing(&["unshare"]);
    // As before Linux 5.4: then tracefs is needed, which that /sys has not.
    traced_with("mount -t sysfs sysfs /sys && mount -t tmpfs none /sys/kernel/btf");
}

/// A spinning thread is traced by a vnettop whose /sys is made by this.
fn traced_with(sys: &str) {
    let spinner = Kept(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh starts"));
    // As ip netns exec does it.
    let within = format!("umount -l /sys; {sys} && exec {VNETTOP} -d 0.1 --watch {} \"$@\"", pid(&spinner));
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "sh", "-c", &within, "sh"]);
    let mut watching = Watching::start(command);
    let traced = (0..100).map(|_| watching.next()).find(|object| all_have(object, "traced"));
    let traced = traced.expect("the watched thread is traced within ten seconds");
    let (source, lost) = (&traced["trace"]["source"], &traced["trace"]["lost"]);
    assert_eq!((source, lost), (&"bpf".into(), &0.into()), "and none is lost");
}

/// The BPF programs and maps that a process holds, by kind and number (`prog_id`, `map_id` of its descriptors).
fn held(pid: u32) -> Vec<(&'static str, String)> {
    let infos = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let texts = infos.filter_map(|info| fs::read_to_string(info.path()).ok());
    let number = |text: &str, field: &str| {
        text.lines().find_map(|line| line.strip_prefix(field).map(str::trim).map(str::to_owned))
    };
    let of = |text: String| {
        let kinds = [("prog", "prog_id:"), ("map", "map_id:"), ("link", "link_id:")];
        kinds.into_iter().filter_map(|(kind, field)| Some((kind, number(&text, field)?))).collect::<Vec<_>>()
    };
    texts.flat_map(of).collect()
}

/// The kernel still has it.
fn exists((kind, number): &(&str, String)) -> bool {
    Command::new("bpftool").args([*kind, "show", "id", number]).output().expect("bpftool runs").status.success()
}

/// The instances in tracefs and the children of a process: there were some once.
fn traces() -> usize {
    fs::read_dir("/sys/kernel/tracing/instances").expect("tracefs is mounted").count()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn nothing_is_left_in_the_kernel_however_it_ends() {
    needs_tracing(&["bpftool"]);
    let watched = Kept(Command::new("sleep").arg("3600").spawn().expect("sleep starts"));
    let before = traces();
    for signals in [&["-INT"][..], &["-TERM"], &["-KILL"], &["-STOP", "-KILL"]] {
        let mut command = Command::new(VNETTOP);
        command.args(["--json", "-d", "0.1", "--watch", &pid(&watched).to_string()]);
        let mut vnettop = Kept(command.stdout(Stdio::null()).spawn().expect("vnettop starts"));
        let number = pid(&vnettop);
        await_that("the programs are attached", 10, || {
            let all = held(number);
            all.iter().filter(|(kind, _)| *kind == "prog").count() >= 2 && all.iter().any(|(kind, _)| *kind == "map")
        });
        let all = held(number);
        assert!(all.iter().all(exists), "the kernel has what its descriptors say: {all:?}");
        assert_eq!(traces(), before, "it makes nothing in tracefs");
        let children = fs::read_to_string(format!("/proc/{number}/task/{number}/children")).unwrap_or_default();
        assert_eq!(children.trim(), "", "it needs no second process");
        for name in signals {
            signal(name, &number.to_string());
        }
        vnettop.0.wait().expect("it ends");
        await_that(&format!("after kill {signals:?} they are gone"), 5, || !all.iter().any(exists));
    }
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
#[ignore = "on the real kernel: tests/run"]
fn tracing_a_thousand_moves_a_second_costs_little() {
    needs_tracing(&["setpriv", "python3"]);
    needs_two_cores();
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
