//! What a test loses beside somebody else's test of 5 Gbit/s: the place, the packets as the tool there counts them, and a share
//! that is one of the test's own packets.

use crate::ground::line::{Line, TICKS_OF_A_SECOND, until_it_traces};
use crate::ground::unseen::{Unseen, is_all};
use crate::ground::{self, Kept, Netns, VNETTOP, Watching, iperf3_server, needs, veth_pair};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

const PROGRAMS: &[&str] = &["iperf3", "ip", "tc", "nsenter", "taskset", "nft"];

/// Datagrams of 1,000 bytes, 5,000 a second.
const DATAGRAMS: [&str; 6] = ["-u", "-l", "1000", "-b", "40M", "-J"];

/// How often each loss is planted.
fn runs() -> usize {
    std::env::var("VNETTOP_LOSS_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// A place where a tenth of the test is lost, and the counter of that.
struct Plant {
    place: &'static str,
    netns: fn(&Line) -> &Netns,
    script: &'static str,
    counter: &'static str,
}

const RULES: &str = "nft list ruleset | sed -n 's/.*counter packets \\([0-9]*\\) .*/\\1/p'";

const PLANTS: [Plant; 5] = [
    Plant {
        place: "firewall",
        netns: |line| &line.router,
        script: "nft 'add table ip t; add chain ip t c { type filter hook forward priority 0; }; \
                add rule ip t c udp dport 5201 numgen inc mod 10 == 5 counter drop'",
        counter: RULES,
    },
    Plant {
        place: "firewall",
        netns: |line| &line.far,
        script: "nft 'add table inet t; add chain inet t c { type filter hook input priority 0; }; \
                add rule inet t c udp dport 5201 numgen inc mod 10 == 5 counter drop'",
        counter: RULES,
    },
    Plant {
        place: "firewall",
        netns: |line| &line.router,
        script: "nft 'add table netdev t; add chain netdev t c { type filter hook ingress device r0 priority 0; }; \
                add rule netdev t c udp dport 5201 numgen inc mod 10 == 5 counter drop'",
        counter: RULES,
    },
    Plant {
        place: "qdisc",
        netns: |line| &line.router,
        // 40 Mbit/s of payload are 41.7 with the headers.
        script: "tc qdisc replace dev r1 root tbf rate 37500kbit burst 20k limit 20k",
        counter: "tc -s qdisc show dev r1 root | sed -n 's/.*dropped \\([0-9]*\\),.*/\\1/p'",
    },
    Plant {
        place: "receive_buffer",
        netns: |line| &line.far,
        script: "true",
        counter: "awk '/^Udp:/ { if (seen++) print $6 }' /proc/net/snmp",
    },
];

fn number(netns: &Netns, script: &str) -> f64 {
    let said = netns.output(script);
    said.trim().parse().unwrap_or_else(|_| panic!("a number from {script}: {said}"))
}

fn figure(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a figure: {value}"))
}

/// The test of this client, as of one object.
fn test_of(object: &Value, pid: u32) -> Option<&Value> {
    object["tests"].as_array().expect("a list").iter().find(|test| test["client"]["pid"] == pid)
}

/// The server does not read for longer than its buffer lasts, once in every interval.
fn pause(server: u32) {
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &server.to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "it runs");
    };
    for _ in 0..22 {
        std::thread::sleep(Duration::from_millis(100));
        signal("-STOP");
        std::thread::sleep(Duration::from_millis(70));
        signal("-CONT");
    }
}

/// One test with its loss, beside the stranger's.
fn lose(plant: &Plant, line: &Line, server: &Kept) {
    let netns = (plant.netns)(line);
    netns.run(plant.script);
    let mut command = line.near.command(VNETTOP);
    command.args(["-d", "0.2", "--netns", "all", "--watch", line.name(), "--watch", "iperf3"]);
    let mut watching = Watching::start(command);
    let mut seen = vec![watching.next()];
    until_it_traces(&mut watching, &mut seen);
    let (unseen, before) = (Unseen::begin(), number(netns, plant.counter));
    let mut client = line.near.command(line.program());
    client.args(["-c", "198.18.2.1", "-t", "4"]).args(DATAGRAMS).stdin(Stdio::null()).stdout(Stdio::piped());
    let client = client.spawn().expect("iperf3 starts");
    let pid = client.id();
    if plant.place == "receive_buffer" {
        pause(ground::pid(server));
    }
    let out = client.wait_with_output().expect("iperf3 ends");
    let report: Value = serde_json::from_slice(&out.stdout).expect("iperf3 prints its figures as JSON");
    let has_ended = |object: &Value| test_of(object, pid).is_some_and(|test| !test["ended_t_ns"].is_null());
    for _ in 0..60 * TICKS_OF_A_SECOND {
        if has_ended(&seen[seen.len() - 1]) {
            break;
        }
        seen.push(watching.next());
    }
    let last = &seen[seen.len() - 1];
    assert!(has_ended(last), "the test of client {pid} is over: {} {}", last["tests"], last["problems"]);
    seen.extend((0..2 * TICKS_OF_A_SECOND).map(|_| watching.next()));
    drop(watching.stop());

    let counted = number(netns, plant.counter) - before;
    let own = seen.iter().filter_map(|object| test_of(object, pid)).collect::<Vec<_>>();
    let losses: Vec<&Value> = own.iter().flat_map(|test| test["losses"].as_array().expect("a list")).collect();
    let here: Vec<&&Value> = losses.iter().filter(|loss| loss["place"] == plant.place).collect();
    let told: f64 = here.iter().map(|loss| figure(&loss["packets"])).sum();
    let hidden: f64 = unseen.by_reason().values().sum();
    let sent = figure(&report["end"]["sum"]["packets"]);
    let known = || here.iter().filter_map(|loss| Some((figure(&loss["packets"]), loss["share"].as_f64()?)));
    let reached: f64 = known().map(|(packets, share)| packets / share).sum();
    let share = known().map(|(packets, _)| packets).sum::<f64>() / reached;
    let elsewhere: f64 =
        losses.iter().filter(|loss| loss["place"] != plant.place).map(|loss| figure(&loss["packets"])).sum();
    let text = format!(
        "{} {}: counted {counted}, told {told} ({hidden} hidden, {elsewhere} elsewhere), of {sent} sent {:.4}, share {share:.4}",
        plant.place,
        plant.script,
        counted / sent
    );
    eprintln!("{text}");
    assert!(counted > 0.02 * sent, "enough is lost: {text}");
    assert!(is_all(told, counted, hidden), "as the tool counts: {text}");
    // Intervals without a loss have no share.
    let off = if plant.place == "receive_buffer" { 0.03 } else { 0.01 };
    assert!((share - counted / sent).abs() < off, "a share of its own packets: {text}");
    netns.run("nft flush ruleset; tc qdisc del dev r1 root 2>/dev/null || true");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_loss_beside_somebody_elses_test_is_a_share_of_its_own() {
    needs(PROGRAMS);
    let line = Line::new();
    let server = line.serve();
    let (there, here) = veth_pair();
    let _strangers = iperf3_server(&there, &[]);
    let _stranger = here.keep("iperf3", &["-c", "198.18.0.1", "-b", "5G", "-t", "600"]);
    for plant in &PLANTS {
        (0..runs()).for_each(|_| lose(plant, &line, &server));
    }
}
