//! Each limiter planted with real tools: from its third second on, LIMIT names it and nothing else, with whose it is.
//! `VNETTOP_LIMIT_RUNS=10` plants each ten times.

mod release;

use crate::ground::group::Group;
use crate::ground::turn::alone;
use crate::ground::{Kept, Netns, VNETTOP, Watching, listening, needs, pid, veth_pair};
use serde_json::Value;
use std::process::{Child, Command, Stdio};

const PROGRAMS: &[&str] = &["iperf3", "ip", "tc", "nft", "nsenter", "taskset", "python3"];

/// Where the server is, through the veth pair and through the long line.
const NEAR: &str = "198.18.0.2";
const LONG: &str = "198.18.1.2";

/// The highest priority that is no real-time one, also among the sessions that the kernel shares cores between
/// (`sched_autogroup`).
const FIRST: [&str; 5] =
    ["setsid", "sh", "-c", "echo -20 2>&- >/proc/self/autogroup; exec nice -n -20 \"$@\"", "first"];

/// What is looked at of a test, s: before, its rate is not settled, and who else uses its cores is not known.
const FROM_S: f64 = 2.5;
const TO_S: f64 = 4.5;

/// A line of 10 ms each way: a program that holds what it reads from one tun, and writes it to the other later.
const DELAY: &str = "
import ctypes, fcntl, heapq, os, select, struct, sys, time
libc = ctypes.CDLL(None)
def tun(pid, name, address):
    with open(f'/proc/{pid}/ns/net') as space:
        assert libc.setns(space.fileno(), 0x40000000) == 0
    fd = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, 0x400454ca, struct.pack('16sH22x', name, 0x1001))
    name = name.decode()
    assert os.system(f'ip addr add {address}/24 dev {name} && ip link set {name} mtu 9000 up') == 0
    return fd
near, far = tun(sys.argv[1], b'd0', '198.18.1.1'), tun(sys.argv[2], b'd1', '198.18.1.2')
print('ready', flush=True)
other, held, count = {near: far, far: near}, [], 0
while True:
    wait = max(0, held[0][0] - time.monotonic()) if held else None
    for fd in select.select([near, far], [], [], wait)[0]:
        try:
            while True:
                packet = os.read(fd, 65536)
                count += 1
                heapq.heappush(held, (time.monotonic() + 0.01, count, other[fd], packet))
        except BlockingIOError:
            pass
    while held and held[0][0] <= time.monotonic():
        _, _, fd, packet = heapq.heappop(held)
        try:
            os.write(fd, packet)
        except BlockingIOError:
            pass
";

/// Runs a program with more sockets than one has that is watched as another one's other end.
const CROWDED: &str = "
import os, socket, sys
held = [socket.socket() for _ in range(200)]
for one in held:
    os.set_inheritable(one.fileno(), True)
os.execvp(sys.argv[1], sys.argv[1:])";

/// Two namespaces, and what has to live as long as a test in them.
struct Plant {
    near: Netns,
    far: Netns,
    kept: Vec<Kept>,
}

impl Plant {
    fn new() -> Self {
        let (near, far) = veth_pair();
        Self { near, far, kept: Vec::new() }
    }

    /// A second way between the two, with 20 ms round trip.
    fn long_line(&mut self) {
        let ends = [&self.near, &self.far].map(|netns| netns.pid().to_string());
        let mut command = Command::new("python3");
        let mut line = Kept(command.args(["-c", DELAY]).args(ends).stdout(Stdio::piped()).spawn().expect("it starts"));
        let mut ready = [0; 6];
        std::io::Read::read_exact(line.0.stdout.as_mut().expect("piped"), &mut ready).expect("the line comes up");
        self.kept.push(line);
    }

    /// An iperf3 server on this core. Everything that is planted goes before what others do on this machine.
    fn serve(&self, core: &str) -> Kept {
        let mut command = self.far.command("taskset");
        command.args(["-c", core]).args(FIRST).arg("iperf3");
        listening(command, &[])
    }

    /// A client of five seconds on this core.
    fn client(&self, core: &str, address: &str, more: &[&str]) -> Child {
        let mut command = self.near.command("taskset");
        command.args(["-c", core]).args(FIRST).args(["iperf3", "-t", "5", "-c", address]).args(more);
        spawned(command)
    }
}

fn spawned(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}

fn runs() -> usize {
    std::env::var("VNETTOP_LIMIT_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(1)
}

/// What every object says of the test of this server while it was looked at.
fn told(server: &Kept, client: Child, more: &[&str]) -> Vec<Value> {
    let mut client = Kept(client);
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.25"]).args(more);
    let mut watching = Watching::start(command);
    let (mut ran_s, mut limits) = (0.0, Vec::new());
    while ran_s < TO_S {
        let object = watching.next();
        let tests = object["tests"].as_array().expect("a list");
        let own = tests.iter().find(|test| test["server"]["pid"] == pid(server) && test["ended_t_ns"].is_null());
        match own {
            Some(test) if ran_s >= FROM_S => limits.push(test["limit"].clone()),
            _ => {}
        }
        // The test may have begun a moment before it was seen.
        ran_s += if own.is_some() { object["elapsed_s"].as_f64().unwrap_or(0.0) } else { 0.0 };
        assert!(own.is_some() || client.0.try_wait().is_ok_and(|ended| ended.is_none()), "the test is seen");
    }
    limits
}

/// Plants it as often as was asked for; `is` says whether the limit is the one that was planted.
fn holds(what: &str, plant: impl Fn() -> Vec<Value>, is: impl Fn(&Value) -> bool) {
    let (mut right, mut wrong) = (0, Vec::new());
    for _ in 0..runs() {
        let limits = plant();
        assert!(limits.len() >= 4, "{what}: it was looked at often enough: {limits:?}");
        match limits.iter().find(|limit| !is(limit)) {
            None => right += 1,
            Some(limit) => wrong.push(limit.to_string()),
        }
        eprintln!("{what}: {}", limits.last().map_or("", |limit| limit["sentence"].as_str().unwrap_or("none")));
    }
    eprintln!("{what}: {right} of {}", runs());
    assert!(wrong.is_empty(), "{what}: {right} of {} right, but: {wrong:#?}", runs());
}

fn of_kind(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |limit| limit["kind"] == kind
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_core_full_of_the_tests_own_thread() {
    needs(PROGRAMS);
    let _alone = alone();
    // Small writes: next to nothing of it is the way's work.
    let plant = || {
        let plant = Plant::new();
        let server = plant.serve("1");
        told(&server, plant.client("0", NEAR, &["-l", "128"]), &[])
    };
    let named = |limit: &Value| limit["name"].as_str().is_some_and(|name| name.starts_with("iperf3 "));
    holds("own thread", plant, |limit| limit["kind"] == "own_thread" && limit["core"].is_u64() && named(limit));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_core_full_of_the_tests_own_softirqs() {
    needs(PROGRAMS);
    let _alone = alone();
    // A firewall that looks at every datagram through thousands of rules, on the core that sent it.
    let rules = "{ echo 'add table ip t'; echo 'add chain ip t c { type filter hook input priority 0; }'; \
                 seq 10000 15999 | sed 's/.*/add rule ip t c udp dport & drop/'; } | nft -f -";
    let plant = || {
        let plant = Plant::new();
        plant.far.run(rules);
        let server = plant.serve("1");
        told(&server, plant.client("0", NEAR, &["-u", "-b", "0", "-l", "1000"]), &[])
    };
    holds("own softirq", plant, |limit| limit["kind"] == "own_softirq" && limit["core"] == 0);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_core_that_a_stranger_spins_on() {
    needs(PROGRAMS);
    let _alone = alone();
    // Large writes: the server has so little to do for them that nobody waits for its core, also where the sender has all of its own.
    let plant = || {
        let plant = Plant::new();
        let mut spinner = Command::new("taskset");
        spinner.args(["-c", "0"]).args(FIRST).args(["sh", "-c", "while :; do :; done"]);
        let spinner = Kept(spawned(spinner));
        let server = plant.serve("1");
        let mut limits = told(&server, plant.client("0", NEAR, &[]), &[]);
        for limit in &mut limits {
            limit["planted"] = pid(&spinner).into();
        }
        limits
    };
    let named = |limit: &Value| limit["name"] == "sh" && limit["pid"] == limit["planted"];
    holds("stranger", plant, |limit| limit["kind"] == "others" && limit["core"] == 0 && named(limit));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_small_receive_window() {
    needs(PROGRAMS);
    let _alone = alone();
    let plant = || {
        let mut plant = Plant::new();
        plant.long_line();
        plant.far.run("sysctl -qw net.ipv4.tcp_rmem='4096 65536 65536'");
        let server = plant.serve("0-1");
        told(&server, plant.client("0-1", LONG, &[]), &[])
    };
    holds("receive window", plant, of_kind("receive_window"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_small_send_buffer() {
    needs(PROGRAMS);
    let _alone = alone();
    let plant = || {
        let mut plant = Plant::new();
        plant.long_line();
        plant.near.run("sysctl -qw net.ipv4.tcp_wmem='4096 65536 65536'");
        let server = plant.serve("0-1");
        told(&server, plant.client("0-1", LONG, &[]), &[])
    };
    holds("send buffer", plant, of_kind("send_buffer"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_rate_that_the_sender_is_paced_at() {
    needs(PROGRAMS);
    let _alone = alone();
    let plant = || {
        let plant = Plant::new();
        let server = plant.serve("0-1");
        told(&server, plant.client("0-1", NEAR, &["--fq-rate", "100M"]), &[])
    };
    holds("pacing", plant, of_kind("pacing"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_sender_that_was_asked_for_no_more() {
    needs(PROGRAMS);
    let _alone = alone();
    for (what, how) in [("TCP", &["-b", "300M"][..]), ("UDP", &["-u", "-b", "20M", "-l", "1400"])] {
        let plant = || {
            let plant = Plant::new();
            let server = plant.serve("0-1");
            told(&server, plant.client("0-1", NEAR, how), &[])
        };
        let is = |limit: &Value| limit["kind"] == "application" && limit["name"] == "iperf3";
        holds(&format!("application, {what}"), plant, is);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_shaper_on_the_way() {
    needs(PROGRAMS);
    let _alone = alone();
    for (what, how) in [("TCP", &[][..]), ("UDP", &["-u", "-b", "20M", "-l", "1400"])] {
        let plant = || {
            let plant = Plant::new();
            plant.near.run("tc qdisc add dev v0 root tbf rate 10mbit burst 32k latency 50ms");
            let server = plant.serve("0-1");
            told(&server, plant.client("0-1", NEAR, how), &[])
        };
        holds(&format!("tbf, {what}"), plant, |limit| limit["kind"] == "qdisc" && limit["name"] == "tbf on v0");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_receive_buffer_that_is_too_small() {
    needs(PROGRAMS);
    let _alone = alone();
    let plant = || {
        let plant = Plant::new();
        let server = plant.serve("0-1");
        told(&server, plant.client("0-1", NEAR, &["-u", "-b", "200M", "-l", "1400", "-w", "4K"]), &[])
    };
    holds("receive buffer", plant, |limit| limit["kind"] == "loss" && limit["name"] == "receive_buffer");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_quota_of_its_cgroup() {
    needs(PROGRAMS);
    let _alone = alone();
    let plant = || {
        let fifth = Group::fifth();
        let plant = Plant::new();
        // On one core with it the server would be what holds the test back, now and then.
        let server = plant.serve("1");
        let run = format!("exec nice -n -20 taskset -c 0 iperf3 -t 5 -c {NEAR}");
        let script = format!("echo $$ > {}/cgroup.procs; {run}", fifth.path().display());
        let mut client = plant.near.command("sh");
        client.args(["-c", &script]);
        told(&server, spawned(client), &[])
    };
    holds("quota", plant, of_kind("quota"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_limit_that_is_elsewhere() {
    needs(PROGRAMS);
    let _alone = alone();
    // Only the receiver is watched, as if the sender were on another machine.
    let plant = || {
        let plant = Plant::new();
        let server = plant.serve("1");
        let watched = pid(&server).to_string();
        let mut client = plant.near.command("taskset");
        client.args(["-c", "0"]).args(FIRST).args(["python3", "-c", CROWDED, "iperf3"]);
        client.args(["-t", "5", "-c", NEAR, "-b", "300M"]);
        told(&server, spawned(client), &["--watch", &watched])
    };
    holds("nothing", plant, of_kind("nothing"));
}
