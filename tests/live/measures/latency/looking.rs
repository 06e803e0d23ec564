//! What looks at latency is in the kernel while somebody asks for it, and not otherwise.

use super::{FAR, PROGRAMS, Part, alone, latency_of, watch};
use crate::ground::tmux::Tmux;
use crate::ground::{Netns, VNETTOP, Watching, await_that, needs, needs_two_cores, veth_pair};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// The programs of `bpf/latency.bpf.c`, as the kernel calls them: 15 letters.
const NAMES: [&str; 10] = [
    "thread_wakes",
    "threads_switch",
    "thread_sends",
    "receiving_is_ra",
    "receiving_begin",
    "packet_is_recei",
    "packet_is_sent",
    "packet_is_queue",
    "data_are_read",
    "datagram_is_dro",
];

/// Every program of the kernel: its number and its name.
fn in_the_kernel() -> Vec<(u64, String)> {
    let out = Command::new("bpftool").args(["-j", "prog", "show"]).output().expect("bpftool runs");
    let all: Value = serde_json::from_slice(&out.stdout).expect("bpftool prints JSON");
    let one = |program: &Value| {
        let name: String = program["name"].as_str()?.chars().take(15).collect();
        Some((program["id"].as_u64()?, name))
    };
    all.as_array().expect("a list").iter().filter_map(one).collect()
}

/// Numbers of programs that a process holds: attached ones, or all.
fn held(pid: u32, is_attached: bool) -> BTreeSet<u64> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("it runs").flatten();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let texts = texts.filter(|text| !is_attached || text.contains("link_type:"));
    let number = |text: String| text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok());
    texts.filter_map(number).collect()
}

/// Of the programs that look at latency, those that a process has attached, or only loaded.
fn of(pid: u32, is_attached: bool) -> BTreeSet<String> {
    let held = held(pid, is_attached);
    let own = in_the_kernel().into_iter().filter(|(number, name)| held.contains(number) && NAMES.contains(&&**name));
    own.map(|(_, name)| name).collect()
}

/// Without the one for qdiscs: these links have none.
fn all_of_them() -> BTreeSet<String> {
    NAMES.iter().filter(|name| **name != "packet_is_queue").map(|name| (*name).to_owned()).collect()
}

/// A reader and a sender of datagrams.
struct Line {
    sender: Part,
    reader: Part,
    _namespaces: (Netns, Netns),
}

impl Line {
    fn start() -> Self {
        let (near, far) = veth_pair();
        let reader = Part::on(&far, "1", &format!("read {FAR} 7000"));
        let sender = Part::on(&near, "0", &format!("send {FAR} 7000 200"));
        Self { sender, reader, _namespaces: (near, far) }
    }

    fn pids(&self) -> [u32; 2] {
        [self.sender.pid(), self.reader.pid()]
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn nothing_looks_at_latency_that_is_not_asked_for() {
    needs(&[PROGRAMS, &["bpftool"]].concat());
    needs_two_cores();
    let _alone = alone();
    let line = Line::start();
    let [sender, reader] = line.pids().map(|pid| pid.to_string());
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.2", "--watch", &sender, "--watch", &reader]);
    let mut watching = Watching::start(command);
    await_that("what looks at moves is attached", 20, || {
        watching.next()["tracer"]["state"] == "attached" && !held(watching.pid(), true).is_empty()
    });
    for _ in 0..5 {
        let object = watching.next();
        assert_eq!(latency_of(&object, line.sender.pid()), None, "its latency is not measured");
        assert_eq!(of(watching.pid(), false), BTreeSet::new(), "nothing of it is even loaded");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_looks_at_latency_ends_with_vnettop() {
    needs(&[PROGRAMS, &["bpftool"]].concat());
    needs_two_cores();
    let _alone = alone();
    let line = Line::start();
    for signal in ["-TERM", "-KILL"] {
        let mut watching = watch(&line.pids());
        await_that("all of it is attached", 20, || {
            watching.next();
            of(watching.pid(), true) == all_of_them()
        });
        let own = held(watching.pid(), false);
        let is_left = || in_the_kernel().iter().any(|(number, _)| own.contains(number));
        assert!(is_left(), "the kernel has what its descriptors say");
        let sent = Command::new("kill").args([signal, &watching.pid().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "it runs");
        await_that(&format!("after kill {signal} nothing of it is left"), 10, || !is_left());
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_list_of_stages_looks_at_latency_while_it_is_open() {
    needs(&[PROGRAMS, &["bpftool", "tmux"]].concat());
    needs_two_cores();
    let _alone = alone();
    let line = Line::start();
    let [sender, reader] = line.pids();
    let tmux = Tmux::start("latency", 120, 40, &format!("exec {VNETTOP} -d 0.2 --watch {sender} --watch {reader}"));
    let pid: u32 = tmux.tmux(&["list-panes", "-F", "#{pane_pid}"]).trim().parse().expect("a number");
    await_that("what looks at moves is attached", 20, || !held(pid, true).is_empty());
    assert_eq!(of(pid, true), BTreeSet::new(), "nothing is asked for yet");
    tmux.press("L");
    await_that("all of it is attached", 20, || of(pid, true) == all_of_them());
    tmux.await_shown("the stages are shown", 20, "in the receiver's socket");
    tmux.press("L");
    await_that("nothing of it is attached any more", 20, || of(pid, true).is_empty());
}
