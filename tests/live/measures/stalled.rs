//! Readers that stand still: vnettop reads no more than somebody takes, keeps nothing alive meanwhile, and ends by one signal.

use crate::ground::{Kept, Netns, UDP_SENDER, VNETTOP, await_that, needs, turn};
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A pipe that takes nothing more, as it is when its reader stands still.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (from, to) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    let writer = rustix::fs::open(
        format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&to)),
        rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    );
    let mut writer = File::from(writer.expect("the own pipe may be opened again"));
    while writer.write(&[b'\n'; 4096]).is_ok() {}
    (from, to)
}

/// A vnettop whose objects nobody reads.
fn unread(mut command: Command, to: OwnedFd) -> Kept {
    Kept(command.stdin(Stdio::null()).stdout(to).stderr(Stdio::null()).spawn().expect("vnettop starts"))
}

fn terminate(kept: &Kept) {
    let sent = Command::new("kill").args(["-TERM", &kept.0.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "it runs");
}

/// A named namespace at the other end of a pair of links; gone with the value.
struct Named(String);

impl Named {
    fn beside(near: &Netns) -> Self {
        let named = Self(format!("kq-{}", std::process::id()));
        near.run(&format!("ip netns add {0}; ip link add kq0 type veth peer name kq1 netns {0}", named.0));
        named
    }

    fn path(&self) -> String {
        format!("/run/netns/{}", self.0)
    }

    fn delete(&self) {
        let _gone_already = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.delete();
    }
}

/// Whether a process has a namespace open.
fn holds(pid: u32, namespace: &str) -> bool {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|link| link.to_string_lossy() == namespace)
}

/// In that time a queue of 1,024 samples is full at a hundred ticks a second.
const FULL: Duration = Duration::from_secs(13);

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_pipe_that_nobody_reads_keeps_no_deleted_namespace_and_leaves_no_wrong_rate() {
    needs(&["ip", "python3"]);
    let near = Netns::new();
    let named = Named::beside(&near);
    let _sender = near.keep("python3", &["-c", UDP_SENDER]);
    let (from, to) = full_pipe();
    let mut command = near.command(VNETTOP);
    command.args(["--json", "-d", "0.01", "--netns", "all"]);
    let vnettop = unread(command, to);
    await_that("the namespace is held open", 10, || holds(vnettop.0.id(), &named.path()));
    std::thread::sleep(FULL);
    named.delete();
    let begin = Instant::now();
    await_that("the pair goes with the deleted namespace", 5, || !near.output("ip -o link").contains("kq0"));
    eprintln!("a deleted namespace was gone after {:?}", begin.elapsed());
    // Somebody reads again: what was left out is told, and what comes after counts from what came before.
    let objects = BufReader::new(File::from(from)).lines().map_while(Result::ok).filter(|line| !line.is_empty());
    let mut before: Option<Value> = None;
    let mut gap = None;
    for line in objects {
        let object: Value = serde_json::from_str(&line).expect("an object");
        if object["own"]["left_out"].as_u64() > Some(0) {
            gap = Some(object);
            break;
        }
        before = Some(object);
    }
    let (before, gap) = (before.expect("objects from before"), gap.expect("the gap is told"));
    let (left_out, elapsed_s) =
        (gap["own"]["left_out"].as_u64().expect("a count"), gap["elapsed_s"].as_f64().expect("a time"));
    eprintln!("{left_out} ticks were left out, elapsed_s {elapsed_s}, waited {}", before["own"]["behind_s"]);
    assert!((left_out as f64 * 0.01 - elapsed_s).abs() < 0.5, "the gap is as long as what was left out");
    assert!(before["own"]["behind_s"].as_f64() > Some(1.0), "and what had waited says how old it was");
    let here = std::fs::metadata(format!("/proc/{}/ns/net", near.pid())).expect("it lives");
    let here = std::os::unix::fs::MetadataExt::ino(&here);
    let count = |object: &Value, field: &str| {
        let links = object["links"].as_array().expect("a list");
        let lo = links.iter().find(|link| link["netns"] == here && link["name"] == "lo").expect("it is there");
        lo[field].as_f64().expect("a number")
    };
    let rose = (count(&gap, "rx_bytes") - count(&before, "rx_bytes")) * 8.0 / elapsed_s;
    let rate = count(&gap, "rx_bits_per_s");
    assert!(
        rose > 100_000.0 && (rate / rose - 1.0).abs() < 0.02,
        "the rate over the gap is what was counted in it: {rate}, {rose}"
    );
    terminate(&vnettop);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn one_signal_ends_a_recorded_stream_that_nobody_reads_and_the_recording_is_whole() {
    needs(&["ip"]);
    let near = Netns::new();
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("x.jsonl");
    let (_from, to) = full_pipe();
    let mut command = near.command(VNETTOP);
    command.args(["--json", "-d", "0.05", "--record"]).arg(&file);
    let mut vnettop = unread(command, to);
    // The second sample gives the first object, which goes nowhere.
    let samples = || {
        std::fs::read_to_string(&file)
            .unwrap_or_default()
            .lines()
            .filter(|line| line.starts_with("{\"sample\""))
            .count()
    };
    await_that("it records", 10, || samples() >= 2);
    let stuck =
        || std::fs::read_to_string(format!("/proc/{}/stat", vnettop.0.id())).is_ok_and(|stat| stat.contains(") S "));
    await_that("it waits for the reader", 10, stuck);
    terminate(&vnettop);
    let begin = Instant::now();
    let mut ended = None;
    await_that("one SIGTERM ends it", 5, || {
        ended = vnettop.0.try_wait().expect("a child");
        ended.is_some()
    });
    eprintln!("it ended {:?} after SIGTERM", begin.elapsed());
    assert_eq!(ended.and_then(|status| status.code()), Some(128 + 15), "with the code of the signal");
    let replayed = Command::new(VNETTOP).args(["--json", "--replay"]).arg(&file).output().expect("vnettop runs");
    let said = String::from_utf8_lossy(&replayed.stderr);
    assert!(replayed.status.success() && !said.contains("its writer was stopped"), "the recording was closed: {said}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn one_signal_ends_a_stream_that_nobody_reads() {
    needs(&["ip"]);
    let near = Netns::new();
    let (_from, to) = full_pipe();
    let mut command = near.command(VNETTOP);
    command.args(["--json", "-d", "0.05"]);
    let mut vnettop = unread(command, to);
    let comms = || std::fs::read_dir(format!("/proc/{}/task", vnettop.0.id())).into_iter().flatten().flatten();
    let sampler = |task: std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "sampler\n")
    };
    await_that("its sampler runs", 10, || comms().any(sampler));
    terminate(&vnettop);
    let status = vnettop.0.wait().expect("a child");
    assert_eq!(status.signal(), Some(15), "as the signal ends any program");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_object_that_is_begun_is_finished_for_whoever_reads_on_after_the_signal() {
    needs(&["ip"]);
    let near = Netns::new();
    // So many links do not fit.
    near.run("for at in $(seq 30); do ip link add kl$at type veth peer name km$at; done");
    let (from, to) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    rustix::pipe::fcntl_setpipe_size(&to, 4096).expect("the own pipe may be smaller");
    let mut command = near.command(VNETTOP);
    let recorded = tempfile::tempdir().expect("a directory");
    command.args(["--json", "-d", "0.05", "--record"]).arg(recorded.path().join("half.zst"));
    let mut vnettop = unread(command, to);
    await_that("an object is begun", 10, || rustix::io::ioctl_fionread(&from).is_ok_and(|bytes| bytes == 4096));
    terminate(&vnettop);
    let lines: Vec<String> = BufReader::new(File::from(from)).lines().map(|line| line.expect("text")).collect();
    assert!(!lines.is_empty(), "what was begun is there");
    for line in lines {
        serde_json::from_str::<Value>(&line).expect("every line is an object");
    }
    assert_eq!(vnettop.0.wait().expect("a child").code(), Some(128 + 15), "and it ends by the signal");
}

/// Starts vnettop with a terminal that nobody looks at, resizes it until nothing goes into it any more, ends vnettop with one SIGTERM, and
/// says with what it ended, whether the terminal's modes are as before, and what somebody who looks at last is shown in the end.
const STALLED: &str = r"
import fcntl, os, pty, select, signal, struct, subprocess, sys, termios, time
master, slave = pty.openpty()
def size(rows, columns): fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
size(200, 500)
before = termios.tcgetattr(slave)
child = subprocess.Popen(sys.argv[1:], stdin=slave, stdout=slave, stderr=subprocess.DEVNULL, start_new_session=True)
def takes(): return bool(select.select([], [slave], [], 0)[1])
end = time.monotonic() + 20
turn = 0
while takes() and time.monotonic() < end:
    turn += 1
    size(200 - turn % 2, 500); child.send_signal(signal.SIGWINCH); time.sleep(0.02)
print('stalled', not takes())
time.sleep(0.3)
child.send_signal(signal.SIGTERM)
begin = time.monotonic()
try: print('ended', child.wait(5))
except subprocess.TimeoutExpired: child.kill(); print('ended never')
print('after', round(time.monotonic() - begin, 2), file=sys.stderr)
print('modes', termios.tcgetattr(slave) == before)
os.close(slave)
shown = b''
try:
    while piece := os.read(master, 65536): shown += piece
except OSError: pass
print('left', shown.rfind(b'\x1b[?1049l') > shown.rfind(b'\x1b[?1049h') and shown.endswith(b'\x1b[?25h'))
";

#[test]
#[ignore = "on the real kernel: tests/run"]
fn one_signal_ends_a_screen_whose_terminal_stands_still_and_gives_it_back() {
    needs(&["python3"]);
    let out = Command::new("python3")
        .args(["-c", STALLED, VNETTOP, "-d", "0.1"])
        .env("TERM", "xterm")
        .output()
        .expect("python runs");
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(said, "stalled True\nended 143\nmodes True\nleft True\n", "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn one_signal_ends_a_run_whose_output_nobody_reads() {
    turn::take();
    let folder = tempfile::tempdir().expect("a directory");
    let program = folder.path().join("iperf3");
    let endless = "#!/bin/sh\necho $$ > \"$0.pid\"\nwhile :; do echo '{\"event\":\"interval\",\"data\":{}}'; done\n";
    std::fs::write(&program, endless).expect("writable");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, executable).expect("the own file");
    let (_from, to) = full_pipe();
    let mut command = Command::new(VNETTOP);
    command.args(["run", "--"]).arg(&program).args(["-c", "198.18.0.1", "--json-stream"]);
    let mut vnettop = unread(command, to);
    let pid = folder.path().join("iperf3.pid");
    await_that("the command runs", 10, || pid.metadata().is_ok_and(|meta| meta.len() > 1));
    terminate(&vnettop);
    let mut ended = None;
    await_that("one SIGTERM ends it", 10, || {
        ended = vnettop.0.try_wait().expect("a child");
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(128 + 15), "with the command's own code");
}
