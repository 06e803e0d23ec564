//! Datagrams of a small sender to a small receiver, for what iperf3 cannot do: one way, with any header.

use super::counts::{Counts, Rise, missing};
use super::trial::{Planted, Spot, assert_told, told};
use crate::ground::line::{Line, TICKS_OF_A_SECOND, until_it_traces};
use crate::ground::unseen::{Unseen, is_all};
use crate::ground::{Kept, VNETTOP, Watching, await_that};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where the receiver listens, and in hexadecimal as the kernel lists it.
pub const PORT: &str = "7777";
const LISTED: &str = ":1E61 ";

/// Takes whatever comes to the port that is its argument.
const RECEIVER: &str = "
import socket, sys
into = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
into.bind(('0.0.0.0', int(sys.argv[1])))
while True:
    into.recv(2000)";

/// 1,000 datagrams/s: to whom, to which port, how many, with which time to live. What was said of an earlier one, as that
/// nobody is there, keeps none from being sent.
pub const PLAIN: &str = "
import socket, sys, time
host, port, count, ttl = sys.argv[1], *map(int, sys.argv[2:5])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
out.connect((host, port))
due = time.monotonic()
for number in range(count):
    while True:
        try:
            out.send(b'x' * 100)
            break
        except (ConnectionRefusedError, PermissionError, OSError):
            pass
    if number % 10 == 9:
        due += 0.01
        time.sleep(max(0, due - time.monotonic()))";

/// The same with a header of its own, whose checksum is wrong in one of four.
pub const DAMAGED: &str = "
import socket, struct, sys, time
host, port, count, _ttl = sys.argv[1], *map(int, sys.argv[2:5])
out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
due = time.monotonic()
for number in range(count):
    # No checksum at all is right.
    out.sendto(struct.pack('!HHHH', 4000, port, 108, 0x1234 if number % 4 == 0 else 0) + b'x' * 100, (host, 0))
    if number % 10 == 9:
        due += 0.01
        time.sleep(max(0, due - time.monotonic()))";

/// A receiver at the far end of a line that listens.
pub struct Pair<'a> {
    line: &'a Line,
    program: PathBuf,
    _receiver: Kept,
}

/// What a sender's datagrams came to.
pub struct Sent {
    pub objects: Vec<Value>,
    near: Rise,
    far: Rise,
    pub unseen: BTreeMap<String, f64>,
}

impl<'a> Pair<'a> {
    /// Only this test's processes have the name that is watched.
    pub fn new(line: &'a Line) -> Self {
        let python = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let python = String::from_utf8(python.expect("it runs").stdout).expect("text");
        let program = line.directory.path().join(line.name().replace("ip", "py"));
        if !program.exists() {
            std::os::unix::fs::symlink(python.trim(), &program).expect("writable");
        }
        let receiver = line.far.keep(&program.display().to_string(), &["-c", RECEIVER, PORT]);
        await_that("the receiver listens", 10, || line.far.output("cat /proc/net/udp").contains(LISTED));
        Self { line, program, _receiver: receiver }
    }

    /// Sends from the near end; `meanwhile` goes on beside it.
    pub fn send(&self, sender: &str, arguments: &[&str], meanwhile: impl FnOnce() + Send) -> Sent {
        let ends = [&self.line.near, &self.line.far];
        let mut command = self.line.near.command(VNETTOP);
        let name = self.program.file_name().expect("a name").display().to_string();
        command.args(["-d", "0.2", "--netns", "all", "--watch", &name]);
        let mut watching = Watching::start(command);
        let mut objects = Vec::new();
        until_it_traces(&mut watching, &mut objects);
        let before = ends.map(Counts::of);
        let unseen = Unseen::begin();
        std::thread::scope(|scope| {
            scope.spawn(meanwhile);
            let mut sending = self.line.near.command(&self.program.display().to_string());
            sending.args(["-c", sender]).args(arguments).stdin(Stdio::null());
            let out = sending.output().expect("it runs");
            assert!(out.status.success(), "the sender ends well: {}", String::from_utf8_lossy(&out.stderr));
        });
        // What waits for an address is given up after three seconds.
        objects.extend((0..5 * TICKS_OF_A_SECOND).map(|_| watching.next()));
        let after = ends.map(Counts::of);
        let [near, far] = [0, 1].map(|end| Rise::between(before[end].clone(), after[end].clone()));
        Sent { objects, near, far, unseen: unseen.by_reason() }
    }
}

impl Sent {
    /// By how much a counter of the far end rose.
    pub fn far(&self, name: &str) -> f64 {
        self.far.of(name)
    }

    /// Packets that arrived nowhere.
    pub fn missing(&self) -> f64 {
        missing(&[&self.near, &self.far])
    }

    /// All that is told is what arrived nowhere.
    pub fn sums(&self, what: &str) {
        let (told, truth) = (told(&self.objects), self.missing());
        let all: f64 = told.values().sum();
        eprintln!("{what}: the kernel misses {truth}; vnettop {all}: {told:?}");
        assert!(truth > 50.0, "{what}: enough is lost");
        let unseen = self.unseen.values().sum();
        assert!(
            is_all(all, truth, unseen),
            "{what}: all together is what the kernel misses: {all} of {truth}, {unseen} unseen"
        );
    }

    /// The same, and most of it at one spot: what was on its way when something went down, or came up before a neighbour has
    /// answered again, is lost elsewhere.
    pub fn holds_mostly(&self, what: &str, main: &Spot) {
        self.sums(what);
        let there = told(&self.objects).get(main).copied().unwrap_or(0.0);
        assert!(there > 0.5 * self.missing(), "{what}: {there} of {} at {main:?}", self.missing());
    }

    /// The same, and each spot has what its own counter says.
    pub fn holds(&self, what: &str, planted: &[Planted]) {
        self.sums(what);
        assert_told(what, &self.objects, planted, &self.unseen);
    }
}
