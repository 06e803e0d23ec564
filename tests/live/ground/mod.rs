//! What the tests on the real kernel share: namespaces of their own, programs in them, vnettop beside them.
//! A namespace is held by a child process and is gone with it, so a failed test leaves nothing behind.

pub mod docker;
pub mod forwarder;
pub mod group;
pub mod line;
pub mod machine;
pub mod moving;
pub mod namespace;
pub mod ovs;
pub mod pair;
pub mod shapes;
pub mod switch;
pub mod threaded;
pub mod tmux;
pub mod traffic;
pub mod truth;
pub mod turn;
pub mod unseen;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The vnettop under test.
pub const VNETTOP: &str = env!("CARGO_BIN_EXE_vnettop");

/// Settings with which the panes of the machine are shown while a test runs, too.
pub const PANES_CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/ground/panes.toml");

/// Ticks of the tests are a quarter of a second at most; on a full machine one may be late, but not by a second.
const HELD_UP_S: f64 = 1.5;

/// Waits for the test's turn; it fails where it cannot run. `cargo test` leaves such a test out, `tests/run` installs what it needs.
pub fn needs(programs: &[&str]) {
    turn::take();
    assert!(rustix::process::geteuid().is_root(), "it needs root for namespaces of its own");
    let missing = programs.iter().find(|program| !has(program));
    assert_eq!(missing, None, "a program that is not installed: tests/run installs it");
}

/// The same of one that pins.
pub fn needs_two_cores() {
    needs(&["taskset"]);
    assert!(std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1), "it needs two cores");
}

/// Says past the captured output of a test that passes which part of it was left out, for want of what this kernel has not.
pub fn left_out(part: &str, why: &str) {
    std::io::stderr().write_all(format!("NOT RUN: {part}: {why}\n").as_bytes()).expect("standard error is open");
}

pub fn has(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program}")]).output().is_ok_and(|out| out.status.success())
}

/// Python: 1,000 bytes of UDP to a closed port of lo, every 10 ms.
pub const UDP_SENDER: &str = "
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    out.sendto(b'x' * 1000, ('127.0.0.1', 9)); time.sleep(0.01)";

/// A child that is stopped when the test ends, however it ends.
pub struct Kept(pub Child);

impl Kept {
    /// Lets it go on after its program stood still: the one that waits for the program stands still with it.
    pub fn go_on(&self) {
        let sent = Command::new("kill").args(["-CONT", &self.0.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "it runs");
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A network namespace, held by a sleeping child.
pub struct Netns {
    holder: Kept,
}

impl Netns {
    /// A new one, with `lo` up.
    pub fn new() -> Self {
        let mut holder = Kept(
            Command::new("unshare")
                .args(["--net", "--kill-child", "sh", "-c", "ip link set lo up && echo ready && exec sleep 3600"])
                .stdout(Stdio::piped())
                .spawn()
                .expect("unshare runs"),
        );
        let mut ready = [0; 6];
        holder.0.stdout.as_mut().expect("piped").read_exact(&mut ready).expect("the namespace comes up");
        Self { holder }
    }

    /// The process that holds it.
    pub fn pid(&self) -> u32 {
        // unshare --kill-child forks: the sleeping child is the one inside.
        let children = format!("/proc/{0}/task/{0}/children", self.holder.0.id());
        std::fs::read_to_string(children)
            .ok()
            .and_then(|text| text.split_whitespace().next()?.parse().ok())
            .unwrap_or(self.holder.0.id())
    }

    /// A command inside.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.pid().to_string(), "-n", "--", program]);
        command
    }

    /// Runs shell lines inside; every one must succeed.
    pub fn run(&self, script: &str) {
        let out = self.command("sh").args(["-ec", script]).output().expect("sh runs");
        assert!(out.status.success(), "{script}\n{}", String::from_utf8_lossy(&out.stderr));
    }

    /// What a shell line prints inside.
    pub fn output(&self, script: &str) -> String {
        let out = self.command("sh").args(["-c", script]).output().expect("sh runs");
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
    }

    /// A program that runs inside until the test ends.
    pub fn keep(&self, program: &str, arguments: &[&str]) -> Kept {
        let command = &mut self.command(program);
        Kept(
            command
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it starts"),
        )
    }
}

/// Two namespaces and a veth pair between them: `v0` 198.18.0.1 in the first, `v1` 198.18.0.2 in the second.
pub fn veth_pair() -> (Netns, Netns) {
    let (near, far) = (Netns::new(), Netns::new());
    near.run(&format!("ip link add v0 type veth peer name v1 netns {}", far.pid()));
    near.run("ip addr add 198.18.0.1/24 dev v0; ip link set v0 up");
    far.run("ip addr add 198.18.0.2/24 dev v1; ip link set v1 up");
    (near, far)
}

/// An iperf3 server that listens.
pub fn iperf3_server(netns: &Netns, more: &[&str]) -> Kept {
    listening(netns.command("iperf3"), more)
}

/// An iperf3 server that listens; `command` is iperf3, inside something.
pub fn listening(mut command: Command, more: &[&str]) -> Kept {
    command.args(["-s", "--forceflush"]).args(more).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Kept(command.spawn().expect("iperf3 starts"));
    let mut out = BufReader::new(server.0.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("Server listening") {
        line.clear();
        assert!(out.read_line(&mut line).expect("iperf3 prints") > 0, "the iperf3 server listens");
    }
    // Keep reading, so that it never blocks on a full pipe.
    std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    server
}

/// The pid of the program itself, where it was started through nsenter (which execs it).
pub fn pid(kept: &Kept) -> u32 {
    kept.0.id()
}

/// Every JSON object that vnettop printed.
pub fn objects(out: &Output) -> Vec<Value> {
    assert!(out.status.success(), "vnettop ends well: {}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout.clone()).expect("JSON is UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("every line is an object")).collect()
}

/// A vnettop that prints JSON lines, read one by one.
pub struct Watching {
    child: Kept,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    longest_s: f64,
    began: Instant,
}

/// No test looks on for longer: what it waits for does not come.
const MOST_WATCHED: Duration = Duration::from_mins(10);

impl Watching {
    /// Starts it; `command` is vnettop, perhaps inside a namespace.
    pub fn start(mut command: Command) -> Self {
        let mut child =
            Kept(command.arg("--json").stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("vnettop starts"));
        let lines = BufReader::new(child.0.stdout.take().expect("piped")).lines();
        Self { child, lines, longest_s: 0.0, began: Instant::now() }
    }

    /// The next object.
    pub fn next(&mut self) -> Value {
        assert!(self.began.elapsed() < MOST_WATCHED, "what is waited for comes within ten minutes");
        let line = self.lines.next().expect("vnettop goes on").expect("its output is readable");
        let object: Value = serde_json::from_str(&line).expect("every line is an object");
        self.longest_s = self.longest_s.max(object["elapsed_s"].as_f64().unwrap_or(0.0));
        object
    }

    /// No sample until now came late, as it would where vnettop waited for something that hangs.
    pub fn was_never_held_up(&self) {
        assert!(self.longest_s < HELD_UP_S, "no sample comes later than {HELD_UP_S} s, not after {} s", self.longest_s);
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Ends it, and gives every object it still printed.
    pub fn stop(self) -> Vec<Value> {
        let _ = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status();
        self.rest()
    }

    /// Every object that it still prints before its end.
    pub fn rest(mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.lines.next()?.ok())
            .map(|line| serde_json::from_str(&line).expect("an object"))
            .collect()
    }
}

/// The link of that name in an object.
pub fn link<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object["links"].as_array()?.iter().find(|link| link["name"] == name)
}

/// Waits for something that becomes true, asking again every 20 ms; fails with the sentence after the time.
pub fn await_that(what: &str, seconds: u64, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(seconds);
    while !is() {
        assert!(Instant::now() < end, "{what} within {seconds} s");
        std::thread::sleep(Duration::from_millis(20));
    }
}
