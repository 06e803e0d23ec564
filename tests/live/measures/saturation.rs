//! Every core full of benchmark: the sampler keeps its pace where it may, and the rates are right where it may not.

use crate::ground::{Kept, VNETTOP, iperf3_server, link, needs, objects, pid, veth_pair};
use serde_json::Value;
use std::process::{Child, Command, Stdio};

fn spin(core: usize) -> Kept {
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string(), "sh", "-c", "while :; do :; done"]);
    Kept(command.spawn().expect("taskset runs"))
}

/// A bare program with real-time priority that wakes 80 times every 100 ms and says how often it woke more than 20 ms late: what the
/// machine itself is late with, because a virtual one is stopped at times.
const BARE: &str = "import time
begin, late = time.monotonic(), 0
for nth in range(1, 81):
    time.sleep(max(0, begin + nth / 10 - time.monotonic()))
    late += time.monotonic() > begin + nth / 10 + 0.02
print(late)";

fn bare() -> Child {
    let mut command = Command::new("chrt");
    command.args(["-f", "1", "python3", "-c", BARE]).stdout(Stdio::piped());
    command.spawn().expect("chrt runs")
}

fn late_of(bare: Child) -> u64 {
    let out = bare.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&out.stdout).trim().parse().expect("a count")
}

/// 8 s at 10 Hz on a machine whose every core is pinned full of iperf3 and busy loops; also iperf3's own report.
fn saturated(more: &[&str]) -> (Vec<Value>, Value) {
    let cores = std::thread::available_parallelism().expect("cores").get();
    let (near, far) = veth_pair();
    let server = iperf3_server(&near, &["-1"]);
    Command::new("taskset").args(["-acp", "0", &pid(&server).to_string()]).output().expect("taskset runs");
    let _spinning: Vec<Kept> = (0..cores).flat_map(|core| [spin(core), spin(core)]).collect();
    let client = far
        .command("taskset")
        .args(["-c", &(cores - 1).to_string(), "iperf3", "-c", "198.18.0.1", "-J", "-t", "8"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("iperf3 starts");
    let out =
        near.command(VNETTOP).args(["--json", "-d", "0.1", "-n", "120"]).args(more).output().expect("vnettop runs");
    let report = client.wait_with_output().expect("iperf3 ends");
    (objects(&out), serde_json::from_slice(&report.stdout).expect("iperf3 prints JSON"))
}

fn sum_rx(objects: &[Value], field: &str) -> f64 {
    let of = |object: &Value| link(object, "v0").and_then(|link| link[field].as_f64()).unwrap_or(0.0);
    objects.iter().map(|object| of(object) * object["elapsed_s"].as_f64().expect("a time")).sum()
}

/// vnettop starts after iperf3, so the first counters hold what came before.
fn assert_rate_is_iperf3s(objects: &[Value], report: &Value) {
    let last = link(objects.last().expect("objects"), "v0").expect("v0");
    let first = link(&objects[0], "v0").expect("v0");
    let rise = last["rx_bytes"].as_f64().expect("bytes") - first["rx_bytes"].as_f64().expect("bytes");
    let summed = sum_rx(&objects[1..], "rx_bits_per_s") / 8.0;
    assert!((summed / rise - 1.0).abs() < 0.01, "the rates are the counters' rise: {summed:.0} against {rise:.0}");
    let total = last["rx_bytes"].as_f64().expect("bytes") - last["rx_packets"].as_f64().expect("packets") * 66.0;
    // What crossed the link lies between what one end was given to send and what the other took in time.
    let theirs = |sum: &str| report["end"][sum]["bytes"].as_f64().expect("bytes");
    let (received, sent) = (theirs("sum_received"), theirs("sum_sent"));
    assert!(
        total > received * 0.99 && total < sent * 1.01,
        "and iperf3's own: {total:.0}, received {received:.0}, sent {sent:.0}"
    );
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn with_real_time_priority_78_of_80_ticks_are_on_time() {
    needs(&["iperf3", "taskset", "nsenter", "chrt", "python3"]);
    let bare = bare();
    let (objects, report) = saturated(&[]);
    let machine = late_of(bare);
    let under_load = &objects[..80];
    assert_eq!(under_load[79]["own"]["realtime"], true, "as root the sampler runs at real-time priority");
    let late = under_load[79]["own"]["late_ticks"].as_u64().expect("a count");
    let irregular =
        under_load.iter().filter(|object| (object["elapsed_s"].as_f64().expect("a time") - 0.1).abs() > 0.02).count();
    let told =
        format!("{late} of 80 late, {irregular} intervals off by more than 20 ms; a bare program: {machine} late");
    assert!(late <= 2 + machine && irregular as u64 <= 4 + 2 * machine, "at least 78 of 80 on time: {told}");
    eprintln!("real-time: {told}");
    assert_rate_is_iperf3s(&objects, &report);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn without_it_late_ticks_are_counted_and_the_rate_is_right() {
    needs(&["iperf3", "taskset", "nsenter"]);
    let (objects, report) = saturated(&["--no-realtime"]);
    let last = objects.last().expect("objects");
    assert_eq!(last["own"]["realtime"], false, "it was turned off, and says so");
    let off = objects.iter().filter(|object| object["elapsed_s"].as_f64().expect("a time") > 0.13).count();
    let late = last["own"]["late_ticks"].as_u64().expect("a count");
    assert!(late >= off as u64, "every late tick is counted: {late} counted, {off} intervals above 130 ms");
    eprintln!("ordinary priority: {late} late of {}", objects.len());
    assert_rate_is_iperf3s(&objects, &report);
}
