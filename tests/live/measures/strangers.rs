//! Another user who lets whoever reads about his processes wait: vnettop's ticks go on, and it says who it is.

use crate::ground::{Kept, VNETTOP, Watching, await_that, needs};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const FUSE: &str = include_str!("../ground/fuse.py");
const FAULT: &str = include_str!("../ground/fault.py");

/// A user namespace with a file system that never answers, and a program in it.
struct Hostile {
    _server: Kept,
    pid: u32,
    says: Receiver<String>,
}

impl Hostile {
    /// None where this kernel lets nobody mount such a thing.
    fn start(directory: &Path, fails: u32, what: &str) -> Option<Self> {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "--kill-child", "python3", "-c", FUSE]);
        command
            .arg(directory)
            .args([&fails.to_string(), what])
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let mut server = Kept(command.spawn().expect("unshare runs"));
        let lines = BufReader::new(server.0.stdout.take().expect("piped")).lines();
        let (say, says) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| say.send(line)));
        let pid = says.recv_timeout(Duration::from_secs(20)).ok()?.parse().expect("its number");
        Some(Self { _server: server, pid, says })
    }

    fn waits(&self) {
        let line = self.says.recv_timeout(Duration::from_secs(20)).expect("it reads");
        assert_eq!(line, "waits");
    }
}

fn beside(pid: u32) -> Watching {
    let mut command = Command::new(VNETTOP);
    command.args(["--netns", "self", "-d", "0.1", "--watch", &pid.to_string()]);
    Watching::start(command)
}

/// What it says of a reader that waits.
fn told(object: &Value) -> Option<String> {
    let problems = object["problems"].as_array().expect("a list").iter();
    let of = problems.filter(|problem| problem["source"] == "processes").map(|problem| problem["text"].as_str());
    of.map(|text| text.expect("a sentence").to_owned()).next()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_overlay_of_a_file_system_that_never_answers_freezes_nobody() {
    needs(&["python3", "unshare"]);
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("iperf3");
    fs::write(&program, "#!/bin/sh\nwhile :; do sleep 0.2; done\n").expect("writable");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it may be run");
    let what = format!(
        "until [ -e OVER/file ]; do sleep 0.05; done; exec {} -c h --json-stream 1<OVER/file",
        program.display()
    );
    let hostile = Hostile::start(directory.path(), 0, &what).expect("FUSE and an overlay in a user namespace");
    let comm = format!("/proc/{}/comm", hostile.pid);
    await_that("it runs", 10, || fs::read_to_string(&comm).is_ok_and(|comm| comm == "iperf3\n"));
    let mut vnettop = beside(hostile.pid);
    let mut gap = Value::Null;
    for _ in 0..25 {
        let object = vnettop.next();
        assert_eq!(told(&object), None, "nothing of it was opened, so nobody waits");
        let of_it = |one: &&Value| one["pid"] == hostile.pid;
        if let Some(one) = object["benchmarks"].as_array().expect("a list").iter().find(of_it) {
            gap = one["reported_gap"].clone();
        }
    }
    vnettop.was_never_held_up();
    assert!(gap.is_string(), "that its output is not read is told: {gap}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_command_line_that_lets_its_reader_wait_holds_up_no_tick_and_is_told() {
    needs(&["python3", "unshare"]);
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("fault.py");
    fs::write(&script, FAULT).expect("writable");
    let what = format!("exec python3 {} FUSE/file", script.display());
    let hostile = Hostile::start(directory.path(), 1, &what).expect("FUSE in a user namespace");
    hostile.waits();
    std::thread::sleep(Duration::from_secs(1));
    let line = format!("/proc/{}/cmdline", hostile.pid);
    let mut cat = Kept(Command::new("cat").arg(&line).stdout(Stdio::null()).spawn().expect("cat runs"));
    std::thread::sleep(Duration::from_millis(300));
    assert!(cat.0.try_wait().expect("it was started").is_none(), "whoever reads that command line waits");
    let mut vnettop = beside(hostile.pid);
    let said: Vec<Option<String>> = (0..30).map(|_| told(&vnettop.next())).collect();
    vnettop.was_never_held_up();
    let said = said.last().cloned().flatten().expect("it is told");
    assert!(said.contains(&format!("process {}", hostile.pid)), "whose fault it is: {said}");
    let rest = vnettop.stop();
    assert!(rest.len() < 30, "and it ends when it is told to");
}
