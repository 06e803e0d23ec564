//! What `vnettop convert` writes, read by others: a trace by Perfetto's own classes (`convert/compare.py`), a table by Python's.

use crate::ground::{VNETTOP, needs, turn};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const COMPARE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/convert/compare.py");
const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/kunpeng.vnettop.zst");

/// The Python that has Perfetto's classes.
fn python() -> PathBuf {
    turn::take();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/perfetto/bin/python3");
    let knows = |python: &Path| {
        let asked =
            Command::new(python).args(["-c", "import perfetto.protos.perfetto.trace.perfetto_trace_pb2"]).output();
        asked.is_ok_and(|out| out.status.success())
    };
    let found = [own, PathBuf::from("python3")].into_iter().find(|python| knows(python));
    found.expect("a Python with Perfetto's classes: tests/run installs them in target/perfetto")
}

fn run(arguments: &[&str]) -> Output {
    Command::new(VNETTOP).args(arguments).output().expect("vnettop runs")
}

fn succeeds(arguments: &[&str]) -> Vec<u8> {
    let out = run(arguments);
    assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

/// How much of a recording was compared with its trace, by name.
fn compared(recording: &str) -> Vec<(String, u64)> {
    let python = python();
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name).display().to_string();
    let [trace, plain, replayed, report] = ["a.pftrace", "a.jsonl", "replayed", "report.json"].map(file);
    succeeds(&["convert", recording, "-o", &trace]);
    succeeds(&["cut", recording, "-o", &plain]);
    fs::write(&replayed, succeeds(&["replay", recording, "--json"])).expect("writable");
    succeeds(&["report", recording, "-o", &report]);
    let out = Command::new(python).args([COMPARE, &trace, &plain, &replayed, &report]).output().expect("python runs");
    assert!(out.status.success(), "{recording}: {}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).expect("text");
    let count =
        |line: &str| line.rsplit_once(' ').map(|(name, count)| (name.to_owned(), count.parse().expect("a count")));
    text.lines().filter_map(count).collect()
}

fn assert_compared(recording: &str, least: &[(&str, u64)]) {
    let counts = compared(recording);
    println!("{recording}: {counts:?}");
    for (name, least) in least {
        let count = counts.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count);
        assert!(count >= *least, "{recording}: {count} {name} compared, at least {least} are there: {counts:?}");
    }
}

#[test]
#[ignore = "with Perfetto's classes: tests/run"]
fn perfetto_reads_the_trace_of_the_built_in_recording_as_it_is() {
    let least = [
        ("slices", 90),
        ("migrations", 90),
        ("bins", 500),
        ("link values", 1000),
        ("core values", 1000),
        ("events", 1),
    ];
    assert_compared(SHIPPED, &least);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn perfetto_reads_the_trace_of_a_test_that_has_just_run() {
    needs(&["python3"]);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("run.zst").display().to_string();
    succeeds(&["demo", "--json", "-d", "0.1", "-n", "120", "--latency", "--exact-softirqs", "--record", &file]);
    let least = [("slices", 2), ("bins", 50), ("link values", 1000), ("core values", 100), ("findings", 1)];
    assert_compared(&file, &least);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_full_disk_is_one_sentence_and_leaves_nothing() {
    needs(&["mount", "umount"]);
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().display().to_string();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=32k", "vnettop-full", &place]).status();
    assert!(mounted.is_ok_and(|status| status.success()), "a small disk");
    let output = directory.path().join("a.pftrace");
    let full = run(&["convert", SHIPPED, "-o", &output.display().to_string()]);
    let is_left = output.exists();
    let read_only = Command::new("mount").args(["-o", "remount,ro", &place]).status();
    let refused = run(&["convert", SHIPPED, "-o", &output.display().to_string()]);
    let unmounted = Command::new("umount").arg(&place).status();
    assert!(read_only.is_ok_and(|status| status.success()) && unmounted.is_ok_and(|status| status.success()));
    for (out, says) in [(full, "No space left on device"), (refused, "Read-only file system")] {
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), text.lines().count()), (Some(1), 1), "{text}");
        assert!(text.contains("cannot write ") && text.contains(says), "{text}");
    }
    assert!(!is_left, "nothing half done is left");
}
