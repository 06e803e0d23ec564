//! Loss forced at four places in turn, with real iperf3: vnettop names the place and as many packets as iperf3 misses.
//! `VNETTOP_LOSS_RUNS=10` repeats each; nine of ten must be right.

mod live;

use live::line::{Line, Place, inode, lost};
use live::{can_run, pid};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PROGRAMS: &[&str] = &["iperf3", "ip", "tc", "nsenter", "taskset"];
/// Rules that a packet walks in the router, so that one core passes on some 10,000 packets a second.
const RULES: usize = 5_000;

/// Runs one place as often as asked, and tells in which runs the place and the number were right.
fn assert_found(what: &str, mut run: impl FnMut() -> (Value, Vec<Value>), is_it: impl Fn(&Place) -> bool) {
    let runs = std::env::var("VNETTOP_LOSS_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut right = 0;
    for _ in 0..runs {
        let (report, objects) = run();
        let sum = &report["end"]["sum"];
        let missed = sum["lost_packets"].as_f64().unwrap_or_else(|| panic!("iperf3 ends well: {report}"));
        let places = lost(&objects);
        let found: f64 = places.iter().filter(|(place, _)| is_it(place)).map(|(_, packets)| packets).sum::<f64>() + 0.0;
        let elsewhere: f64 =
            places.iter().filter(|(place, _)| !is_it(place)).map(|(_, packets)| packets).sum::<f64>() + 0.0;
        let told = objects.iter().filter(|object| {
            object["findings"].as_array().expect("a list").iter().any(|finding| finding["id"] == "loss")
        });
        let told = told.count();
        let (off, all_off) = (found / missed - 1.0, (found + elsewhere) / missed - 1.0);
        // On a loaded machine some packets are truly lost elsewhere too: all of them must be accounted for.
        let is_right = missed > 500.0 && all_off.abs() < 0.1 && elsewhere < 0.3 * found && told >= 3;
        right += usize::from(is_right);
        eprintln!(
            "{what}: iperf3 lost {missed:.0} of {}, vnettop {found:.0} there ({:+.1} %), {elsewhere:.0} elsewhere, said {told} times{}",
            sum["packets"],
            off * 100.0,
            if is_right { String::new() } else { format!(" WRONG {places:?}") }
        );
    }
    assert!(right * 10 >= runs * 9, "{what} is named with its packets in {right} of {runs} runs");
}

/// Arguments for 64 bytes and for 1,470 bytes at about 8,000 packets/s.
const SIZES: [(&str, &[&str], &str); 2] = [
    ("64 bytes", &["-u", "-l", "64", "-b", "4M"], "4mbit"),
    ("1470 bytes", &["-u", "-l", "1470", "-b", "94M"], "60mbit"),
];

#[test]
fn loss_in_the_senders_qdisc_is_found_there() {
    if !can_run("loss_in_the_senders_qdisc_is_found_there", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let _server = line.serve();
    let netns = inode(&line.near);
    for (size, arguments, rate) in SIZES {
        line.near.run(&format!("tc qdisc replace dev a0 root tbf rate {rate} burst 10k limit 10k"));
        let is_it = |place: &Place| *place == ("qdisc".into(), netns, "tbf on a0".into());
        assert_found(&format!("sender's qdisc, {size}"), || line.observe(arguments, |_| ()), is_it);
    }
}

#[test]
fn a_flow_s_own_figure_of_loss_names_the_socket_and_counts_nothing_of_the_way() {
    if !can_run("a_flow_s_own_figure_of_loss_names_the_socket_and_counts_nothing_of_the_way", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let _server = line.serve();
    line.near.run("tc qdisc replace dev a0 root tbf rate 60mbit burst 10k limit 10k");
    let (_, objects) = line.observe(&["-u", "-l", "1470", "-b", "94M"], |_| ());
    let flows = objects.iter().flat_map(|object| object["flows"].as_array().expect("a list"));
    let known: Vec<&Value> = flows.filter(|flow| !flow["lost_per_s"].is_null()).collect();
    assert!(known.len() > 5, "the datagrams' flow tells it: {}", known.len());
    assert!(known.iter().all(|flow| flow["lost_per_s_source"] == "receive_buffer"), "and of which place: {}", known[0]);
    // On a loaded machine some are truly lost at the socket too.
    let own = objects.iter().map(|object| {
        let flows = object["flows"].as_array().expect("a list").iter();
        flows.filter_map(|flow| flow["lost_per_s"].as_f64()).sum::<f64>() * object["elapsed_s"].as_f64().unwrap_or(0.0)
    });
    let own: f64 = own.sum();
    let places = lost(&objects);
    let at =
        |word: &str| -> f64 { places.iter().filter(|(place, _)| place.0 == word).map(|(_, packets)| packets).sum() };
    let (queue, socket) = (at("qdisc"), at("receive_buffer"));
    eprintln!("{queue:.0} packets lost in the queue, {socket:.0} at the socket, of which the flow tells {own:.0}");
    assert!(queue > 1_000.0, "the queue's are in losses: {places:?}");
    assert!(own <= 1.1 * socket + 50.0, "the flow's are the socket's {socket:.0} and nothing of the way, not {own:.0}");
}

#[test]
fn loss_on_a_hop_in_the_middle_is_found_there() {
    if !can_run("loss_on_a_hop_in_the_middle_is_found_there", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let _server = line.serve();
    let netns = inode(&line.router);
    // Not every kernel has netem.
    let netem = line.router.output("tc qdisc add dev r1 root netem loss 20% && echo yes").contains("yes");
    for (size, arguments, rate) in SIZES {
        if !netem {
            line.router.run(&format!("tc qdisc replace dev r1 root tbf rate {rate} burst 10k limit 10k"));
        }
        let name = if netem { "netem on r1" } else { "tbf on r1" };
        let is_it = |place: &Place| *place == ("qdisc".into(), netns, name.into());
        assert_found(&format!("hop in the middle, {size}"), || line.observe(arguments, |_| ()), is_it);
    }
}

#[test]
fn loss_in_a_full_backlog_is_found_there() {
    if !can_run("loss_in_a_full_backlog_is_found_there", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let _server = line.serve();
    // No setting of the machine is touched: one core gets all packets of the router, and each takes it long, so that its
    // backlog of 1,000 fills. Many streams, because what waits there still counts against a sender's own buffer.
    let rules: Vec<String> =
        (1..=RULES).map(|rule| format!("rule add from 203.0.113.9 iif r1 table 100 priority {rule}")).collect();
    let file = line.directory.path().join("rules");
    fs::write(&file, rules.join("\n")).expect("writable");
    line.router.run(&format!("ip -batch {}", file.display()));
    let router = line.router.pid().to_string();
    let set = "mount -t sysfs none /sys; for queue in /sys/class/net/r0/queues/rx-*; do echo 2 > $queue/rps_cpus; done";
    let out = Command::new("nsenter").args(["-t", &router, "-n", "--", "unshare", "-m", "sh", "-ec", set]).output();
    let out = out.expect("nsenter runs");
    assert!(out.status.success(), "RPS can be set: {}", String::from_utf8_lossy(&out.stderr));
    for (size, length, rate) in [("64 bytes", "64", "400K"), ("1470 bytes", "1470", "9M")] {
        let arguments = ["-u", "-l", length, "-b", rate, "-P", "32"];
        let is_it = |place: &Place| place.0 == "backlog";
        assert_found(&format!("backlog, {size}"), || line.observe(&arguments, |_| ()), is_it);
    }
}

#[test]
fn loss_in_the_receivers_buffer_is_found_there() {
    if !can_run("loss_in_the_receivers_buffer_is_found_there", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let server = line.serve();
    let netns = inode(&line.far);
    let signal = |name: &str| {
        let _sent = Command::new("kill").args([name, &pid(&server).to_string()]).status();
    };
    // A receiver that does not keep up: it sleeps three quarters of the time.
    let sleepy = |runs: &AtomicBool| {
        while runs.load(Ordering::Relaxed) {
            signal("-STOP");
            std::thread::sleep(Duration::from_millis(150));
            signal("-CONT");
            std::thread::sleep(Duration::from_millis(50));
        }
        signal("-CONT");
    };
    for (size, arguments, _) in SIZES {
        let is_it = |place: &Place| place.0 == "receive_buffer" && place.1 == netns;
        assert_found(&format!("receive buffer, {size}"), || line.observe(arguments, sleepy), is_it);
    }
}
