//! What waits on the way: in a qdisc, across a bridge, through a tunnel.

use super::{FAR, PROGRAMS, Part, Told, alone, assert_same, so_far, stages};
use crate::ground::threaded::{self, Threaded};
use crate::ground::{Kept, Netns, iperf3_server, needs, needs_two_cores, pid, veth_pair};
use serde_json::Value;
use std::process::{Command, Stdio};

/// 10 Mbit/s, bytes/s.
const RATE: f64 = 10e6 / 8.0;
const SHAPE: &str = "root tbf rate 10mbit burst 5kb limit 100kb";

/// How long what a link's qdisc holds takes at that rate, as tc tells it, µs.
fn backlog_us(netns: &Netns, link: &str) -> f64 {
    let said = netns.output(&format!("tc -s -j qdisc show dev {link}"));
    let qdiscs: Value = serde_json::from_str(&said).expect("tc prints JSON");
    let bytes = qdiscs[0]["backlog"].as_f64().unwrap_or_else(|| panic!("tc tells the backlog: {said}"));
    bytes / RATE * 1e6
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn datagrams_wait_in_a_qdisc_that_lets_less_through_than_comes() {
    needs(&[PROGRAMS, &["iperf3", "tc"]].concat());
    needs_two_cores();
    let _alone = alone();
    let (near, far) = veth_pair();
    near.run(&format!("tc qdisc add dev v0 {SHAPE}"));
    let server = iperf3_server(&far, &[]);
    let mut command = near.command("iperf3");
    command.args(["-c", FAR, "-u", "-b", "12M", "-l", "1000", "-t", "60"]).stdin(Stdio::null()).stdout(Stdio::null());
    let client = Kept(command.spawn().expect("iperf3 starts"));
    let mut waits = Vec::new();
    let told = Told::beside(&[pid(&client), pid(&server)], 16, || waits.push(backlog_us(&near, "v0")));
    let qdisc = told.only("qdisc");
    assert_eq!((&qdisc["from"]["name"], &qdisc["to"]["name"]), (&"v0".into(), &"v0".into()), "{qdisc}");
    assert_same("the mean in the qdisc", told.mean(qdisc).0, mean(&waits), 0.1);
    for elsewhere in stages(told.last(), "hop", false).into_iter().chain([told.only("socket")]) {
        assert!(so_far(elsewhere, "p50_us") < 1e3, "nothing waits elsewhere: {}", told.summary());
    }
    told.says(&["packets wait", "tbf of v0"]);
}

/// The whole path: as many of them as of the last hop, and as long as its parts together; the hops are between these links.
fn adds_up(told: &Told, links: &[&str]) {
    let hops = stages(told.last(), "hop", false);
    let names: Vec<(&Value, &Value)> = hops.iter().map(|hop| (&hop["from"]["name"], &hop["to"]["name"])).collect();
    let expected: Vec<(Value, Value)> = links.windows(2).map(|two| (two[0].into(), two[1].into())).collect();
    assert!(names.iter().copied().eq(expected.iter().map(|(from, to)| (from, to))), "hop by hop: {}", told.summary());
    let whole = &told.last()["whole"];
    let parts = hops.iter().copied().chain(stages(told.last(), "qdisc", false)).map(|stage| so_far(stage, "mean_us"));
    assert_same("the whole path", so_far(whole, "mean_us"), parts.sum(), 0.1);
    let count = so_far(whole, "count");
    let last = so_far(hops.last().expect("there is one"), "count");
    assert!(
        count > 1_000.0 && (last - count).abs() <= last * 0.02,
        "{count} over the whole path, {last} over its last hop"
    );
    assert_eq!(told.last()["unknown"], Value::Array(Vec::new()), "nothing is unknown");
}

/// Sender on core 0, reader on core 1, between these.
fn between(near: &Netns, far: &Netns, address: &str) -> (Told, [Part; 2]) {
    let reader = Part::on(far, "1", &format!("read {address} 7000"));
    let sender = Part::on(near, "0", &format!("send {address} 7000 500"));
    let told = Told::of(&[sender.pid(), reader.pid()], 14);
    (told, [sender, reader])
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_steps_through_a_bridge_add_up_over_ipv6() {
    needs(PROGRAMS);
    needs_two_cores();
    let _alone = alone();
    let (near, host, far) = (Netns::new(), Netns::new(), Netns::new());
    host.run("ip link add br0 type bridge; ip link set br0 up");
    for (end, port, number) in [(&near, "va", 1), (&far, "vb", 2)] {
        host.run(&format!(
            "ip link add {port} type veth peer name eth{number} netns {}; ip link set {port} master br0 up",
            end.pid()
        ));
        end.run(&format!("ip addr add fd00::{number}/64 dev eth{number} nodad; ip link set eth{number} up"));
    }
    let (told, _parts) = between(&near, &far, "fd00::2");
    adds_up(&told, &["eth1", "va", "vb", "eth2"]);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_steps_through_a_tunnel_add_up() {
    needs(PROGRAMS);
    needs_two_cores();
    let _alone = alone();
    let (near, far) = veth_pair();
    for (netns, link, own, other) in [(&near, "v0", 1, 2), (&far, "v1", 2, 1)] {
        netns.run(&format!(
            "ip link add vx0 type vxlan id 1 dstport 4789 local 198.18.0.{own} remote 198.18.0.{other} dev {link}
             ip link set vx0 mtu 1450 up; ip addr add 10.42.0.{own}/24 dev vx0"
        ));
    }
    let (told, _parts) = between(&near, &far, "10.42.0.2");
    adds_up(&told, &["vx0", "v0", "v1", "vx0"]);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn datagrams_wait_for_a_links_thread_whose_core_a_real_time_thread_has() {
    needs(&[PROGRAMS, &threaded::PROGRAMS].concat());
    needs_two_cores();
    let _alone = alone();
    let link = Threaded::start();
    let thread = link.thread().expect("it is there").to_string();
    let placed = Command::new("taskset").args(["-pc", "1", &thread]).stdout(Stdio::null()).status();
    assert!(placed.is_ok_and(|status| status.success()), "it is placed");
    let address = threaded::FAR;
    let reader = Part::on(&link.far, "0", &format!("arrive {address} 7000"));
    let sender = Part::on(&link.near, "0", &format!("send {address} 7000 1000"));
    let hog = Part::outside("1", "hog 20 200 50");
    let told = Told::of(&[sender.pid(), reader.pid()], 24);
    told.says(&["from na0 to nb0", &format!("{thread} of nb0 off core"), &format!("hog {} (real-time", hog.pid())]);
    let truth = reader.measured();
    let hop = told.hop_from("na0");
    assert_same("the mean of the hop", told.mean(hop).0, truth.within(&told.span_ns).mean(), 0.1);
    assert_same("its 99th percentile", so_far(hop, "p99_us"), truth.within(&told.whole_ns()).percentile(99), 0.15);
    assert!(so_far(told.only("socket"), "p50_us") < 1e3, "nothing waits in the socket: {}", told.summary());
}
