//! What root's vnettop may do: what watching needs, and no more.

use crate::ground::{VNETTOP, needs};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Bits of the capabilities in effect (capabilities(7), `CapEff` of `/proc/PID/task/TID/status`).
fn in_effect(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("every thread has them");
    u64::from_str_radix(mask.trim(), 16).expect("a mask")
}

/// `CAP_DAC_OVERRIDE` and `CAP_DAC_READ_SEARCH`.
const FILES: u64 = 1 << 1 | 1 << 2;
const SYS_MODULE: u64 = 1 << 16;
const SYS_PTRACE: u64 = 1 << 19;
const SYS_ADMIN: u64 = 1 << 21;
const SYS_BOOT: u64 = 1 << 22;
/// `CAP_NET_ADMIN`, `CAP_SYS_NICE`, `CAP_SYS_RESOURCE`, `CAP_SYSLOG`, `CAP_PERFMON`, `CAP_BPF`.
const OTHERS: u64 = 1 << 12 | 1 << 23 | 1 << 24 | 1 << 34 | 1 << 38 | 1 << 39;

/// What a thread has in effect, and whether what it starts may get more.
struct Held {
    in_effect: u64,
    no_new: bool,
}

/// The capabilities of every thread of a vnettop that has written its first line of JSON.
fn held_by(arguments: &[&str]) -> Vec<Held> {
    let mut json = Command::new(VNETTOP);
    let mut json = json.args(arguments).stdout(Stdio::piped()).spawn().expect("vnettop starts");
    let mut lines = BufReader::new(json.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("a line").expect("of text");
    assert!(first.contains("\"links\""), "it shows links: {first}");
    let tasks = fs::read_dir(format!("/proc/{}/task", json.id())).expect("its threads");
    let held = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
    let no_new = |status: &str| status.lines().any(|line| line == "NoNewPrivs:\t1");
    let held = held.map(|status| Held { in_effect: in_effect(&status), no_new: no_new(&status) }).collect();
    json.kill().expect("it can be stopped");
    json.wait().expect("it stops");
    held
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn whoever_watches_as_root_keeps_no_right_that_watching_does_not_need() {
    needs(&["sh"]);
    let held = held_by(&["--json", "-d", "0.1"]);
    assert!(held.len() > 1, "several threads were looked at");
    for Held { in_effect: held, .. } in held {
        assert_eq!(
            held & !(FILES | SYS_ADMIN | SYS_PTRACE | OTHERS),
            0,
            "nothing but what SECURITY.md lists: {held:x}"
        );
        assert_eq!(held & (SYS_MODULE | SYS_BOOT), 0, "no thread loads modules or restarts the machine: {held:x}");
        assert_eq!(held & (SYS_ADMIN | SYS_PTRACE), SYS_ADMIN | SYS_PTRACE, "it enters namespaces: {held:x}");
    }
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/kunpeng.vnettop.zst");
    for Held { in_effect: held, no_new } in held_by(&["--json", "--replay", recording]) {
        assert_eq!(held & !FILES, 0, "a replay reads files and nothing else: {held:x}");
        assert!(no_new, "and no program that it could start has more");
    }
    let own = in_effect(&fs::read_to_string("/proc/self/status").expect("the test's own"));
    let run =
        Command::new(VNETTOP).args(["run", "--", "grep", "CapEff", "/proc/self/status"]).output().expect("it runs");
    assert_eq!(in_effect(&String::from_utf8_lossy(&run.stdout)), own, "a command that is run has all of root's");
}
