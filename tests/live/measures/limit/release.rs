//! What comes before what: losses, a shaper and a small window before cores that others fill; a neighbour that does not answer and
//! messages that wait for answers are no want of anything.

use super::{FIRST, NEAR, PROGRAMS, Plant, alone, holds, of_kind, spawned, told};
use crate::ground::{Kept, await_that, listening, needs, pid};
use serde_json::Value;
use std::process::{Child, Command, Stdio};

impl Plant {
    /// Fills every core with work that gives way to the test, and hides nothing of what else holds it.
    fn crowd(&mut self) {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            let mut command = Command::new("nice");
            command.args(["-n", "10", "sh", "-c", "while :; do :; done"]);
            self.kept.push(Kept(spawned(command)));
        }
    }

    /// One in so many of the larger packets is dropped where they come in; what only controls the test is small.
    fn drops(&self, rule: &str) {
        let chain = "add table ip t; add chain ip t c { type filter hook input priority 0; }; add rule ip t c";
        self.far.run(&format!("nft '{chain} {rule} drop'"));
    }

    /// A client whose test has begun.
    fn begun(&self, more: &[&str]) -> Child {
        let client = self.client("0-1", NEAR, more);
        let sockets = if more.contains(&"-u") { "ss -Hun" } else { "ss -Htn state established" };
        let count = || self.near.output(&format!("{sockets} dport = 5201")).lines().count();
        let wanted = if more.contains(&"-u") { 1 } else { 2 };
        await_that("the test begins", 10, || count() >= wanted);
        client
    }

    /// The other end answers nobody's question for its MAC address, and has another one.
    fn falls_silent(&self) {
        self.far.run("ip link set v1 arp off; ip link set v1 address 02:00:00:00:00:77");
        self.near.run("ip neigh flush dev v0");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn segments_that_are_lost_however_few_are_left() {
    needs(PROGRAMS);
    let _alone = alone();
    for percent in [1, 3, 7] {
        let plant = || {
            let mut plant = Plant::new();
            plant.crowd();
            plant.drops(&format!("meta length > 1000 numgen random mod 100 < {percent}"));
            let server = plant.serve("0-1");
            told(&server, plant.client("0-1", NEAR, &["-C", "cubic"]), &[])
        };
        holds(&format!("{percent} % of segments"), plant, |limit| {
            limit["kind"] == "loss" && (limit["name"] == "firewall" || limit["name"] == "unknown")
        });
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn datagrams_that_are_lost_beside_full_cores() {
    needs(PROGRAMS);
    let _alone = alone();
    for (what, rule) in [("a fifth", "udp dport 5201 numgen inc mod 5 0"), ("all", "meta length > 1000")] {
        let plant = || {
            let mut plant = Plant::new();
            plant.crowd();
            let server = plant.serve("0-1");
            let client = plant.begun(&["-u", "-b", "20M", "-l", "1400"]);
            plant.drops(rule);
            told(&server, client, &[])
        };
        holds(&format!("{what} of the datagrams"), plant, of_kind("loss"));
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_shaper_and_a_small_receive_window_beside_full_cores() {
    needs(PROGRAMS);
    let _alone = alone();
    let plain = |plant: &Plant, more: &[&str]| {
        let mut client = plant.near.command("iperf3");
        client.args(["-t", "5", "-c", NEAR]).args(more);
        spawned(client)
    };
    for (what, how) in [("TCP", &[][..]), ("UDP", &["-u", "-b", "20M", "-l", "1400"])] {
        let plant = || {
            let mut plant = Plant::new();
            plant.crowd();
            plant.near.run("tc qdisc add dev v0 root tbf rate 10mbit burst 32k latency 50ms");
            let server = listening(plant.far.command("iperf3"), &[]);
            told(&server, plain(&plant, how), &[])
        };
        holds(&format!("tbf beside others, {what}"), plant, |limit| {
            limit["kind"] == "qdisc" && limit["name"] == "tbf on v0"
        });
    }
    let plant = || {
        let mut plant = Plant::new();
        plant.crowd();
        plant.far.run("sysctl -qw net.ipv4.tcp_rmem='4096 8192 8192'");
        let server = listening(plant.far.command("iperf3"), &[]);
        told(&server, plain(&plant, &[]), &[])
    };
    holds("receive window beside others", plant, of_kind("receive_window"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_neighbour_that_does_not_answer() {
    needs(PROGRAMS);
    let _alone = alone();
    for (what, how) in [("TCP", &[][..]), ("UDP", &["-u", "-b", "20M", "-l", "1400"])] {
        let plant = || {
            let plant = Plant::new();
            let server = plant.serve("0-1");
            let client = plant.begun(how);
            plant.falls_silent();
            told(&server, client, &[])
        };
        holds(&format!("no ARP, {what}"), plant, |limit| limit["kind"] == "loss" && limit["name"] == "neighbour");
    }
}

/// A server that answers each message with itself, and a client that sends the next one when it has the answer to the last.
const ANSWERS: &str = "
import socket, sys
listener = socket.socket()
listener.bind((sys.argv[1], 5201))
listener.listen()
print('Server listening', flush=True)
one = listener.accept()[0]
one.setsockopt(6, 1, 1)
while message := one.recv(64):
    one.send(message)";
const ASKS: &str = "
import socket, sys, time
one = socket.create_connection((sys.argv[1], 5201))
one.setsockopt(6, 1, 1)
end = time.monotonic() + 6
while time.monotonic() < end:
    one.send(b'x')
    one.recv(64)";

#[test]
#[ignore = "on the real kernel: tests/run"]
fn messages_that_wait_for_answers() {
    needs(PROGRAMS);
    let _alone = alone();
    let plant = || {
        let plant = Plant::new();
        let python = |command: &mut Command, script: &str| {
            command.args(FIRST).args(["python3", "-c", script, NEAR]).stderr(Stdio::null());
        };
        let (mut answers, mut asks) = (plant.far.command("env"), plant.near.command("env"));
        python(&mut answers, ANSWERS);
        python(&mut asks, ASKS);
        let server = listening(answers, &[]);
        let client = spawned(asks);
        let watched = [pid(&server), client.id()].map(|pid| pid.to_string());
        told(&server, client, &["--watch", &watched[0], "--watch", &watched[1]])
    };
    let is = |limit: &Value| {
        let sentence = limit["sentence"].as_str().unwrap_or_default();
        limit["kind"] == "nothing" && sentence.contains("each message waits for an answer; the round trip takes")
    };
    holds("ping-pong", plant, is);
}
