//! What datapaths of Open vSwitch count while a flow crosses them: a userspace one beside `ovs-appctl dpctl/show`, the
//! kernel's beside `ovs-dpctl show` and what iperf3 misses while nobody can be asked about its packets.

use crate::ground::machine::{HOST, Machine};
use crate::ground::needs;
use crate::ground::switch::{PROGRAMS, Switch, has_kernel_datapath, pod};
use crate::ground::{self, Watching, await_that, listening};
use serde_json::Value;
use std::time::{Duration, Instant};

/// The problems of Open vSwitch.
fn told(object: &Value) -> String {
    let problems = object["problems"].as_array().expect("a list").iter().filter(|problem| problem["source"] == "ovs");
    problems.filter_map(|problem| problem["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// Hit, missed and lost of the only datapath, as vnettop says.
fn counted(object: &Value) -> Option<[u64; 3]> {
    let datapath = &object["ovs"][0]["datapaths"][0];
    let count = |field: &str| datapath[field].as_u64();
    Some([count("hit")?, count("missed")?, count("lost")?])
}

/// The same as a program of Open vSwitch prints it.
fn printed(text: &str) -> [u64; 3] {
    let lookups = text.lines().find(|line| line.contains("lookups:")).unwrap_or_else(|| panic!("it counts: {text}"));
    ["hit:", "missed:", "lost:"].map(|word| {
        let number = lookups.split_whitespace().find_map(|told| told.strip_prefix(word)).expect("a counter");
        number.parse().expect("a number")
    })
}

/// How many packets each object tells lost in upcalls.
fn unasked(objects: &[Value]) -> Vec<f64> {
    let of = |object: &Value| {
        let losses = object["losses"].as_array().expect("a list").iter().filter(|loss| loss["place"] == "ovs_upcall");
        losses.map(|loss| loss["packets"].as_f64().expect("packets")).sum::<f64>() + 0.0
    };
    objects.iter().map(of).collect()
}

/// A bridge of this kind with two pods on it.
fn two_pods<'a>(machine: &'a Machine, bridge: fn(&Switch<'a>, &str)) -> (Switch<'a>, [String; 2]) {
    let switch = Switch::start(machine, HOST, "openvswitch");
    bridge(&switch, "br0");
    let pods = [1, 2].map(|number| pod(machine, number, HOST));
    switch.set("add-port br0 veth1 -- add-port br0 veth2");
    (switch, pods)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_userspace_datapath_counts_what_dpctl_show_counts() {
    needs(PROGRAMS);
    let machine = Machine::new();
    let (switch, pods) = two_pods(&machine, Switch::bridge);
    let shown = || printed(&machine.run("ovs-appctl --timeout 10 dpctl/show netdev@ovs-netdev"));
    let server = listening(machine.inside(&pods[1], "iperf3"), &[]);
    let mut watching = machine.watch();
    assert_eq!(
        watching.next()["ovs"][0]["datapaths"].as_array().map_or(0, Vec::len),
        0,
        "without flows nobody is asked"
    );
    let mut client = machine.inside(&pods[0], "iperf3");
    client.args(["-u", "-l", "500", "-b", "4M", "-t", "60", "-c", "198.19.0.2"]);
    let client = machine.keep("client", client);
    await_that("the datapath on the way is read", 20, || counted(&watching.next()).is_some());
    let mut readings = Vec::new();
    for _ in 0..2 {
        // What is printed is read as it comes: the next object is of now.
        let end = Instant::now() + Duration::from_secs(4);
        while Instant::now() < end {
            watching.next();
        }
        // Both ends stand still, so the counters do.
        machine.run("kill -STOP $(pidof iperf3)");
        let mut before = None;
        await_that("it is what dpctl/show says", 30, || {
            let now = counted(&watching.next());
            let stands = now.is_some() && std::mem::replace(&mut before, now) == now;
            let is_right = stands && now == Some(shown());
            readings.extend(now.filter(|_| is_right));
            is_right
        });
        machine.run("kill -CONT $(pidof iperf3)");
        [&server, &client].into_iter().for_each(ground::Kept::go_on);
    }
    assert!(readings[1][0] > readings[0][0] + 1_000, "the test's packets were counted meanwhile: {readings:?}");
    switch.run("kill -STOP $(cat /run/openvswitch/ovs-vswitchd.pid)");
    await_that("that ovs-vswitchd stands still is told", 20, || {
        told(&watching.next()).contains("s: datapath drops unknown; see its log")
    });
    switch.run("kill -CONT $(cat /run/openvswitch/ovs-vswitchd.pid)");
    switch.go_on();
    await_that("it is over when it goes on", 10, || {
        let object = watching.next();
        told(&object).is_empty() && counted(&object).is_some()
    });
    drop(client);
    await_that("without flows nobody is asked any more", 10, || counted(&watching.next()).is_none());
    watching.was_never_held_up();
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_the_kernels_datapath_cannot_ask_about_is_lost_there() {
    let test = "what_the_kernels_datapath_cannot_ask_about_is_lost_there";
    needs(PROGRAMS);
    let machine = Machine::new();
    if !has_kernel_datapath(test, &machine) {
        return;
    }
    let (switch, pods) = two_pods(&machine, Switch::kernel_bridge);
    let shown = || printed(&machine.run("ovs-dpctl show system@ovs-system"));
    let _server = listening(machine.inside(&pods[1], "iperf3"), &[]);
    let mut watching = Watching::start(machine.vnettop(&["-d", "1"]));
    watching.next();
    let before = shown();
    // One core's queue to ovs-vswitchd is soon full; what waits in it is late, not lost.
    let mut client = machine.inside(&pods[0], "taskset");
    client.args(["-c", "1", "iperf3", "-J", "-u", "-l", "1400", "-b", "4M", "-t", "40", "-c", "198.19.0.2"]);
    let client = std::thread::spawn(move || client.output().expect("iperf3 runs"));
    let mut objects = Vec::new();
    await_that("the datapath on the way is read", 30, || {
        objects.push(watching.next());
        objects.last().and_then(counted).is_some()
    });
    let mut see = |seconds: u64| {
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            objects.push(watching.next());
        }
    };
    see(2);
    switch.run("kill -STOP $(cat /run/openvswitch/ovs-vswitchd.pid); ovs-dpctl del-flows system@ovs-system");
    see(10);
    switch.run("kill -CONT $(cat /run/openvswitch/ovs-vswitchd.pid)");
    switch.go_on();
    while !client.is_finished() {
        see(1);
    }
    see(2);
    let rise = shown()[2] - before[2];
    let out = client.join().expect("it ends").stdout;
    let report: Value = serde_json::from_slice(&out).expect("iperf3 prints its figures as JSON");
    let missed = report["end"]["sum"]["lost_packets"].as_f64().unwrap_or_else(|| panic!("iperf3 ends well: {report}"));
    let last = objects.iter().rev().find_map(counted).expect("it was read");
    let own = last[2] - before[2];
    let unasked = unasked(&objects);
    eprintln!("lost: ovs-dpctl {rise}, vnettop {own}, iperf3 {missed}; told {unasked:.0?}");
    assert!(rise > 1_000, "ovs-vswitchd could not be asked: {rise}");
    assert_eq!(own, rise, "it counts what ovs-dpctl counts");
    // On a full machine some are lost elsewhere, too; the last ones before the end no receiver can miss.
    assert!(missed > 0.9 * rise as f64, "the flow misses them: {missed} of {rise}");
    let told: f64 = unasked.iter().sum();
    assert!((told / missed - 1.0).abs() < 0.1, "and they are told as its own: {told} of {missed}");
    let said = objects.iter().flat_map(|object| object["findings"].as_array().expect("a list"));
    let said: Vec<&str> =
        said.filter(|finding| finding["id"] == "loss").filter_map(|finding| finding["text"].as_str()).collect();
    let expected = "in upcalls of Open vSwitch's datapath system@ovs-system";
    assert!(
        said.iter().any(|text| text.contains(expected) && text.contains("dropped, because ovs-vswitchd is too slow")),
        "{said:?}"
    );
}

/// Frames that packet sockets of this namespace had no room for, as `ss` prints them (`d9` at the end of `skmem`).
fn no_room(machine: &Machine) -> f64 {
    let text = machine.run("ss -0 -m -n");
    let drops = text.split(",d").skip(1).filter_map(|rest| rest.split(')').next()?.parse::<f64>().ok());
    drops.sum()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_userspace_switch_has_no_room_for_is_lost_in_its_packet_socket() {
    needs(PROGRAMS);
    let machine = Machine::new();
    let (_switch, pods) = two_pods(&machine, Switch::bridge);
    let _server = listening(machine.inside(&pods[1], "iperf3"), &[]);
    let mut watching = machine.watch();
    watching.next();
    assert!(no_room(&machine) < 0.5, "nothing yet");
    let mut client = machine.inside(&pods[0], "iperf3");
    client.args(["-u", "-l", "64", "-b", "0", "-t", "6", "-c", "198.19.0.2"]);
    let client = std::thread::spawn(move || client.output().expect("iperf3 runs"));
    let (mut lost, mut name, mut sentences) = (0.0, String::new(), Vec::new());
    await_that("the test is over", 60, || {
        let object = watching.next();
        let losses = object["losses"].as_array().expect("a list").iter();
        for loss in losses.filter(|loss| loss["place"] == "packet_socket") {
            lost += loss["packets"].as_f64().unwrap_or(0.0);
            name = loss["name"].as_str().map_or(std::mem::take(&mut name), str::to_owned);
            sentences.extend(object["tests"][0]["limit"]["sentence"].as_str().map(str::to_owned));
        }
        !object["tests"][0]["ended_t_ns"].is_null()
    });
    let report = client.join().expect("it ends").stdout;
    let report = String::from_utf8_lossy(&report);
    assert!(no_room(&machine) > 1000.0, "the switch was too slow at all: {report}");
    assert!((lost - no_room(&machine)).abs() < 0.5, "{lost}, as ss counts them: {} {report}", no_room(&machine));
    assert!(name.starts_with("ovs-vswitchd "), "and whose: {name}");
    // The program that is too slow, and where that is seen.
    let named = sentences.iter().filter(|text| text.contains("in the packet socket of ovs-vswitchd")).count();
    assert!(sentences.len() > 10 && named * 2 > sentences.len(), "it is what limits: {sentences:?}");
    let is_named = |text: &&String| text.starts_with("ovs-vswitchd is the limit: its datapath thread ");
    let named = sentences.iter().filter(is_named).count();
    assert!(named * 2 > sentences.len(), "by its thread: {sentences:?}");
}
