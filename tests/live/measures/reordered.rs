//! Packets of one flow that change cores and overtake each other: counted as ftrace counts them, found with their price, put in
//! order by `p`, and back by `U`, on a veth pair whose ends run on two cores.

use crate::ground::docker::{self, Docker};
use crate::ground::machine::{HOST, Machine};
use crate::ground::moving::needs_tracing;
use crate::ground::tmux::Tmux;
use crate::ground::{Kept, Netns, VNETTOP, Watching, await_that, listening, needs, needs_two_cores, pid, veth_pair};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: &[&str] = &["iperf3", "ip", "nsenter", "taskset", "unshare"];
const PINNED: [&str; 2] = ["0", "1"];

/// The two ends, the client on the first of two cores, the server on the second; both end with the test.
struct PinnedTest {
    near: Netns,
    _far: Netns,
    server: Kept,
    client: Kept,
}

impl PinnedTest {
    /// `v0`, which the server's end has, is called otherwise: every other test's link has that name too.
    fn start(link: &str) -> Self {
        let (near, far) = veth_pair();
        near.run(&format!("ip link set v0 down; ip link set v0 name {link}; ip link set {link} up"));
        let mut command = near.command("taskset");
        command.args(["-c", PINNED[1], "iperf3"]);
        let server = listening(command, &[]);
        let client = far.keep("taskset", &["-c", PINNED[0], "iperf3", "-c", "198.18.0.1", "-t", "600"]);
        Self { near, _far: far, server, client }
    }

    /// By pid: other tests run iperf3 at the same time.
    fn watched(&self) -> [String; 4] {
        ["--watch".to_owned(), pid(&self.server).to_string(), "--watch".to_owned(), pid(&self.client).to_string()]
    }

    /// The cores that RPS hands packets of a link to, as sysfs prints them.
    fn rps_cpus(&self, link: &str) -> String {
        let script = format!("mount -t sysfs sysfs /sys && cat /sys/class/net/{link}/queues/rx-*/rps_cpus");
        let out = self.near.command("unshare").args(["-m", "sh", "-ec", &script]).output().expect("unshare runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }
}

/// An ftrace instance that records on which core each packet of one link's name is received.
struct ReceivedPackets(PathBuf);

impl ReceivedPackets {
    fn start(link: &str) -> Self {
        let instance = Path::new("/sys/kernel/tracing/instances").join(format!("live-received-{}", std::process::id()));
        fs::create_dir(&instance).expect("an instance can be made");
        let filter = format!("name == \"{link}\"");
        let files = [
            ("trace_clock", "mono"),
            ("buffer_size_kb", "65536"),
            ("events/net/netif_receive_skb/filter", &filter),
            ("events/net/netif_receive_skb/enable", "1"),
        ];
        for (file, text) in files {
            fs::write(instance.join(file), text).expect("the instance takes it");
        }
        Self(instance)
    }

    /// Time, us, and core of each, in the order of time.
    fn all(&self) -> Vec<(u64, u32)> {
        fs::write(self.0.join("tracing_on"), "0").expect("it stops");
        let text = fs::read(self.0.join("trace")).expect("the trace is readable");
        let text = String::from_utf8_lossy(&text);
        let mut all: Vec<(u64, u32)> = text.lines().filter_map(received).collect();
        all.sort_unstable();
        all
    }
}

impl Drop for ReceivedPackets {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("events/net/netif_receive_skb/enable"), "0");
        let _ = fs::remove_dir(&self.0);
    }
}

/// `iperf3-812 [001] ..s1. 15664.144058: netif_receive_skb: dev=r1 skbaddr=…`
fn received(line: &str) -> Option<(u64, u32)> {
    let (head, _) = line.split_once(": netif_receive_skb: ")?;
    let time: f64 = head.rsplit(' ').next()?.parse().ok()?;
    let core = head.rsplit_once('[')?.1.split_once(']')?.0.parse().ok()?;
    Some((u64::try_from(std::time::Duration::from_secs_f64(time).as_micros()).ok()?, core))
}

/// What an object says of the flow's packets where they come in by a link.
fn hop<'a>(object: &'a Value, link: &str) -> Option<&'a Value> {
    let flows = object["flows"].as_array()?.iter().filter_map(|flow| flow["path"].as_array());
    let hops = flows.flatten().filter(|hop| hop["name"] == *link && hop["way"] == "received");
    hops.into_iter().find(|hop| !hop["flow_counted_to_t_ns"].is_null())
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn switches_of_core_are_those_that_ftrace_sees() {
    needs_tracing(PROGRAMS);
    needs_two_cores();
    let test = PinnedTest::start("reord0");
    let reference = ReceivedPackets::start("reord0");
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.5", "--hop-cores"]).args(test.watched());
    let mut watching = Watching::start(command);
    let mut windows: Vec<[f64; 3]> = Vec::new();
    for _ in 0..60 {
        let object = watching.next();
        let Some(hop) = hop(&object, "reord0") else { continue };
        let number = |name: &str| hop[name].as_f64().expect("a number");
        let window = [number("flow_counted_to_t_ns") / 1e3, number("flow_counted_s"), number("core_switches_per_s")];
        if windows.last() != Some(&window) {
            windows.push(window);
        }
        if windows.len() == 4 {
            break;
        }
    }
    watching.stop();
    assert!(windows.len() >= 3, "packets are counted where somebody looks: {windows:?}");
    let packets = reference.all();
    let (mut ours, mut theirs) = (0.0, 0.0);
    for [to_us, over_s, per_s] in windows {
        let within: Vec<u32> = packets
            .iter()
            .filter(|(at_us, _)| (to_us - over_s * 1e6..to_us).contains(&(*at_us as f64)))
            .map(|(_, core)| *core)
            .collect();
        ours += per_s * over_s;
        theirs += within.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
    }
    assert!(theirs > 50.0, "the packets did change cores: {theirs}");
    // A connection that controls the test has a few packets there too.
    assert!((ours / theirs - 1.0).abs() < 0.02, "{ours} counted, {theirs} seen by ftrace");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn p_puts_packets_onto_one_core_and_u_takes_it_back() {
    needs(PROGRAMS);
    needs_two_cores();
    let test = PinnedTest::start("reord1");
    let before = test.rps_cpus("reord1");
    let state = tempfile::tempdir().expect("a directory");
    let watched = test.watched().join(" ");
    let command = format!("XDG_STATE_HOME={} exec {VNETTOP} -d 0.5 {watched}", state.path().display());
    let screen = Tmux::start("reordered", 140, 45, &command);
    screen.await_shown("the finding", 30, "overtake");
    await_that("the steer is proposed", 20, || {
        screen.press("p");
        await_that("p is answered", 5, || screen.shows("Esc closes"));
        let is_offered = screen.frame().contains("[x] rps_cpus of reord1");
        if !is_offered {
            screen.press("Escape");
            await_that("Esc is obeyed", 5, || !screen.shows("Esc closes"));
        }
        is_offered
    });
    screen.press("p");
    screen.await_shown(
        "it is told where the packets went",
        10,
        "packets that come to reord1 are handled on core 1 now",
    );
    let during = test.rps_cpus("reord1");
    let mask = |text: &str| u64::from_str_radix(text.lines().next().unwrap_or_default().trim(), 16);
    assert_eq!(mask(&during), Ok(2), "core 1 alone, that of the server: {during}");
    assert_ne!(before, during);
    screen.press("U");
    screen.await_shown("it is undone", 10, "rps_cpus of reord1 is back to 0");
    assert_eq!(test.rps_cpus("reord1"), before, "byte for byte");
}

/// What a test's flow from outside of its receiver says: segments sent again a second; none before it is known.
fn retransmits(object: &Value) -> Option<f64> {
    let flows = object["flows"].as_array()?.iter().filter(|flow| flow["control"] == false);
    flows.filter_map(|flow| flow["retransmits_per_s"].as_f64()).reduce(f64::max)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn packets_over_a_docker_bridge_are_found_and_the_line_that_is_told_puts_them_in_order() {
    needs(docker::PROGRAMS);
    needs(&["taskset"]);
    needs_two_cores();
    let machine = Machine::new();
    let docker = Docker::start(&machine, HOST, "docker");
    let server = docker.server("server", &[]);
    let client = docker.idle("client", &[]);
    let pid = docker.cli(&["inspect", "-f", "{{.State.Pid}}", &server.name]);
    machine.run(&format!("taskset -acp {} {pid}", PINNED[1]));
    // A sysfs shows the links of the namespace that it is mounted in; Docker's own has cgroups below it.
    let with_sysfs = |line: &str| {
        let script = format!("mount -t sysfs sysfs /sys && {line}");
        let out = machine.inside(HOST, "unshare").args(["-m", "sh", "-ec", &script]).output().expect("unshare runs");
        assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let first_core = ["exec", "-d", &client.name, "busybox", "taskset", "1"];
    docker.cli(&[&first_core[..], &["iperf3", "-c", &server.address, "-t", "600"]].concat());
    let mut command = machine.inside(HOST, VNETTOP);
    command.args(["-d", "0.5", "--hop-cores"]);
    let mut watching = Watching::start(command);
    let line = (0..60).find_map(|_| {
        let object = watching.next();
        let finding = object["findings"].as_array()?.iter().find(|finding| finding["id"] == "reordered")?.clone();
        let text = finding["text"].as_str()?;
        assert!(text.contains(" at veth"), "the bridge's port of the sender is where they first wait: {text}");
        let line = text.rsplit_once('(')?.1.trim_end_matches(')').to_owned();
        Some(line)
    });
    let line = line.expect("the finding is there within 30 s");
    let before = with_sysfs("cat /sys/class/net/veth*/queues/rx-*/rps_cpus");
    with_sysfs(&line);
    assert_ne!(with_sysfs("cat /sys/class/net/veth*/queues/rx-*/rps_cpus"), before, "{line}");
    let quiet = |rates: &[f64]| rates.len() >= 6 && rates.iter().rev().take(6).all(|rate| *rate < 2.0);
    let mut rates = Vec::new();
    for _ in 0..60 {
        rates.extend(retransmits(&watching.next()));
        if quiet(&rates) {
            break;
        }
    }
    assert!(quiet(&rates), "for three seconds nothing is sent again: {rates:?}");
    watching.stop();
}
