//! Rates against iperf3's own figures, on a veth pair between two namespaces.

use crate::ground::{Netns, VNETTOP, Watching, iperf3_server, link, needs, veth_pair};
use serde_json::Value;
use std::process::Command;

/// Ethernet + IPv4 + TCP with timestamps; the kernel counts one such header for each (large) packet on a veth.
const TCP_HEADERS: f64 = 14.0 + 20.0 + 32.0;
/// Ethernet + IPv4 + UDP.
const UDP_HEADERS: f64 = 14.0 + 20.0 + 8.0;

struct Moved {
    bytes: f64,
    packets: f64,
}

/// What a link moved while iperf3 ran, summed from vnettop's rates over vnettop's own elapsed times.
fn moved(objects: &[Value], name: &str, direction: &str) -> Moved {
    let sum = |field: &str| -> f64 {
        let rate = |object: &Value| link(object, name).and_then(|link| link[field].as_f64()).unwrap_or(0.0);
        objects.iter().map(|object| rate(object) * object["elapsed_s"].as_f64().expect("a time")).sum()
    };
    Moved { bytes: sum(&format!("{direction}_bits_per_s")) / 8.0, packets: sum(&format!("{direction}_packets_per_s")) }
}

fn iperf3(client: &Netns, arguments: &[&str]) -> Value {
    let out = client
        .command("iperf3")
        .args(["-c", "198.18.0.1", "-J", "-t", "10"])
        .args(arguments)
        .output()
        .expect("iperf3 runs");
    serde_json::from_slice(&out.stdout).expect("iperf3 prints JSON")
}

/// Runs iperf3 under observation: its own end figures, and every object of vnettop from before to after.
fn observed(arguments: &[&str]) -> (Value, Vec<Value>) {
    let (near, far) = veth_pair();
    let _server = iperf3_server(&near, &["-1"]);
    let mut command = near.command(VNETTOP);
    command.args(["-d", "0.5"]);
    let mut watching = Watching::start(command);
    let mut objects = vec![watching.next()];
    let report = iperf3(&far, arguments);
    // What was printed meanwhile waits in the pipe; the interval in which iperf3 ended is followed by quiet ones.
    let rate = |object: &Value| link(object, "v0").and_then(|link| link["rx_bits_per_s"].as_f64()).unwrap_or(0.0);
    let mut moved_before = false;
    while !(moved_before && rate(&objects[objects.len() - 1]) < 1e6) {
        objects.push(watching.next());
        moved_before |= rate(&objects[objects.len() - 1]) > 1e7;
    }
    drop(watching);
    (report["end"].clone(), objects)
}

fn assert_within_one_percent(what: &str, ours: f64, theirs: f64) {
    let off = (ours / theirs - 1.0) * 100.0;
    assert!(off.abs() < 1.0, "{what}: vnettop says {ours:.0}, iperf3 says {theirs:.0}: {off:+.2} %");
    eprintln!("{what}: vnettop {ours:.0}, iperf3 {theirs:.0}, {off:+.3} %");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn tcp_rates_are_iperf3s_own() {
    needs(&["iperf3", "ip", "nsenter"]);
    let (end, objects) = observed(&[]);
    let rx = moved(&objects, "v0", "rx");
    let received = end["sum_received"]["bytes"].as_f64().expect("bytes");
    assert_within_one_percent("bytes received over TCP", rx.bytes - rx.packets * TCP_HEADERS, received);
    let claim = link(&objects[2], "v0").expect("v0 is there");
    assert_eq!(
        (&claim["claim_mbps"], &claim["claim_basis"]),
        (&10_000.into(), &"constant".into()),
        "veth's label is a constant"
    );
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn udp_rates_and_packets_are_iperf3s_own() {
    needs(&["iperf3", "ip", "nsenter"]);
    let (end, objects) = observed(&["-u", "-b", "200M", "-l", "64"]);
    let rx = moved(&objects, "v0", "rx");
    let sent = &end["streams"][0]["udp"];
    let packets = sent["packets"].as_f64().expect("packets");
    assert_within_one_percent("UDP packets", rx.packets, packets);
    assert_within_one_percent("UDP bytes", rx.bytes - rx.packets * UDP_HEADERS, sent["bytes"].as_f64().expect("bytes"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_pipe_that_closes_ends_it_quietly() {
    needs(&[]);
    let out = Command::new("sh")
        .args(["-c", &format!("{VNETTOP} --json -d 0.05 | head -n 2 | wc -l; echo ${{PIPESTATUS:-}}")])
        .output();
    let out = out.expect("sh runs");
    assert_eq!(String::from_utf8_lossy(&out.stdout).lines().next(), Some("2"), "two objects came through");
    assert!(out.stderr.is_empty(), "nothing is said about the closed pipe: {}", String::from_utf8_lossy(&out.stderr));
}
