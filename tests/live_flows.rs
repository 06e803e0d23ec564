//! The watched threads' own traffic against iperf3's figures; and vnettop out of their way.

mod live;

use live::{Kept, Netns, VNETTOP, Watching, await_that, can_run, pid, veth_pair};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

/// iperf3 under a name that no other test's has, so that only this one's processes are watched.
struct Iperf3 {
    directory: tempfile::TempDir,
    name: String,
}

impl Iperf3 {
    fn new() -> Self {
        let out = Command::new("sh").args(["-c", "command -v iperf3"]).output().expect("sh runs");
        let program = String::from_utf8(out.stdout).expect("a path is text");
        let directory = tempfile::tempdir().expect("a temporary directory");
        // A command is called as the link that it was started by.
        let inode = fs::metadata(directory.path()).expect("it is there").ino();
        let name = format!("ip{}", inode % 1_000_000_000);
        std::os::unix::fs::symlink(program.trim(), directory.path().join(&name)).expect("writable");
        Self { directory, name }
    }

    fn path(&self) -> String {
        self.directory.path().join(&self.name).display().to_string()
    }

    /// A server that listens.
    fn serve(&self, netns: &Netns) -> Kept {
        let server = netns.keep(&self.path(), &["-s"]);
        // Port 5201 in state LISTEN.
        let listens = || netns.output("cat /proc/net/tcp6 /proc/net/tcp").contains(":1451 ");
        await_that("the server listens", 10, listens);
        server
    }

    /// vnettop that watches these processes.
    fn watched(&self, netns: &Netns, interval: &str) -> Watching {
        let mut command = netns.command(VNETTOP);
        command.args(["-d", interval, "--watch", &self.name]);
        Watching::start(command)
    }
}

/// An iperf3 test between two namespaces: its own end figures, every object of vnettop from before to after it. It sends at
/// a rate of its own choice, because the first tick of a test has no bins: a mean over the rest is comparable only then.
fn observed(arguments: &[&str]) -> (Value, Vec<Value>) {
    let ((near, far), iperf3) = (veth_pair(), Iperf3::new());
    let _server = iperf3.serve(&near);
    let mut watching = iperf3.watched(&near, "0.5");
    let mut objects = vec![watching.next()];
    let client = far.command(&iperf3.path()).args(["-c", "198.18.0.1", "-J", "-t", "8"]).args(arguments).output();
    let report: Value =
        serde_json::from_slice(&client.expect("iperf3 runs").stdout).expect("iperf3 prints its figures as JSON");
    // What was printed meanwhile waits in the pipe; the end of the test is an object without connections.
    let flows = |object: &Value| object["flows"].as_array().expect("a list").len();
    let mut had_some = false;
    while !(had_some && flows(&objects[objects.len() - 1]) == 0) {
        objects.push(watching.next());
        had_some |= flows(&objects[objects.len() - 1]) > 0;
    }
    (report["end"].clone(), objects)
}

/// Bytes of all connections of an object's tick.
fn moved(object: &Value) -> f64 {
    let rates = object["flows"].as_array().expect("a list").iter().filter_map(|flow| flow["bits_per_s"].as_f64());
    rates.sum::<f64>() / 8.0 * object["elapsed_s"].as_f64().expect("a time")
}

fn assert_iperf3s_own(streams: usize) {
    let (count, rate) = (streams.to_string(), format!("{}M", 1000 / streams));
    let (end, objects) = observed(&["-P", &count, "-b", &rate]);
    let received = end["sum_received"]["bits_per_second"].as_f64().expect("a rate");
    let jitters: Vec<&Value> = objects.iter().map(|object| &object["jitter"]).filter(|it| it.is_object()).collect();
    let jitter = jitters.last().expect("there is a spread");
    let mean = jitter["mean_bits_per_s"].as_f64().expect("a mean");
    let off = (mean / received - 1.0) * 100.0;
    let bytes: f64 = objects.iter().map(moved).sum();
    eprintln!(
        "-P {streams}: bins' mean {mean:.0}, iperf3 {received:.0} bits/s, {off:+.2} %; ticks' bytes {bytes:.0} of {}; {jitter}",
        end["sum_received"]["bytes"]
    );
    assert!(off.abs() < 1.0, "the mean of the bins is within 1 % of iperf3's own: {off:+.2} %");
    assert_eq!(jitter["basis"], "sockets", "the rate is that of the connections themselves");
    assert_eq!(jitter["bin_s"], 0.1, "bins of 100 ms, although ticks are 500 ms");
    let window = jitter["window_s"].as_f64().expect("a window");
    assert!((6.5..8.5).contains(&window), "the bins cover the test of 8 s, but for its ends: {window}");
    let busy = objects.iter().filter(|object| moved(object) > 1e6);
    let counts: Vec<usize> = busy.map(|object| object["flows"].as_array().expect("a list").len()).collect();
    assert!(
        counts.iter().all(|&count| count <= streams + 1) && counts.contains(&(streams + 1)),
        "each stream and the control connection count once, though both ends are here: {counts:?}"
    );
    let flows = objects.iter().flat_map(|object| object["flows"].as_array().expect("a list"));
    let full = flows
        .max_by(|a, b| a["bits_per_s"].as_f64().unwrap_or(0.0).total_cmp(&b["bits_per_s"].as_f64().unwrap_or(0.0)));
    let full = full.expect("a connection");
    assert_eq!(
        (&full["proto"], &full["to"]["addr"], &full["to"]["port"]),
        (&"tcp".into(), &"198.18.0.1".into(), &5201.into())
    );
    assert!(full["from"]["pid"].is_u64() && full["to"]["pid"].is_u64(), "both processes are named: {full}");
    assert_ne!(full["from"]["netns"], full["to"]["netns"], "and both namespaces: {full}");
    let problems = objects.iter().flat_map(|object| object["problems"].as_array().expect("a list"));
    assert!(problems.clone().all(|problem| problem["source"] != "flows"), "nothing stays unseen");
}

#[test]
fn one_streams_bins_are_iperf3s_own_rate() {
    if can_run("one_streams_bins_are_iperf3s_own_rate", &["iperf3", "ip", "nsenter"]) {
        assert_iperf3s_own(1);
    }
}

#[test]
fn four_streams_bins_are_iperf3s_own_rate() {
    if can_run("four_streams_bins_are_iperf3s_own_rate", &["iperf3", "ip", "nsenter"]) {
        assert_iperf3s_own(4);
    }
}

#[test]
fn udp_has_no_connection_so_the_busiest_link_stands_for_it() {
    if !can_run("udp_has_no_connection_so_the_busiest_link_stands_for_it", &["iperf3", "ip", "nsenter"]) {
        return;
    }
    let (end, objects) = observed(&["-u", "-b", "200M"]);
    let mut jitters = objects.iter().map(|object| &object["jitter"]).filter(|jitter| jitter.is_object());
    let jitter = jitters.next_back().expect("there is a spread");
    assert_eq!(jitter["basis"], "link:v0", "it is said which link's rate it is");
    assert!((jitter["bin_s"].as_f64().expect("a length") - 0.5).abs() < 0.1, "bins are the ticks: {jitter}");
    let (median, sent) = (jitter["p50"].as_f64(), end["sum"]["bits_per_second"].as_f64());
    let times = median.expect("a median") / sent.expect("a rate");
    // 42 bytes of headers on 1,448 of data.
    assert!((0.98..1.1).contains(&times), "the link moves what iperf3 sends, and headers: {times:.3}");
}

/// The number of a process' thread of that name.
fn thread_named(pid: u32, name: &str) -> Option<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let tids = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let comm = |tid: u32| fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    tids.into_iter().find(|&tid| comm(tid).trim() == name)
}

/// CPU time of a thread and how often it ran, from schedstat: ns, times.
fn spent(pid: u32, tid: u32) -> (u64, u64) {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).expect("schedstat is readable");
    let mut numbers = text.split_whitespace().map(|word| word.parse().expect("a number"));
    let (cpu, _wait, times) = (numbers.next(), numbers.next(), numbers.next());
    (cpu.expect("CPU time"), times.expect("a count"))
}

#[test]
fn a_pulse_costs_little() {
    if !can_run("a_pulse_costs_little", &["iperf3", "ip", "nsenter"]) {
        return;
    }
    let ((near, far), iperf3) = (veth_pair(), Iperf3::new());
    let _server = iperf3.serve(&near);
    let _client = far.keep(&iperf3.path(), &["-c", "198.18.0.1", "-t", "60", "-b", "100M"]);
    let mut watching = iperf3.watched(&near, "3");
    let vnettop = watching.pid();
    let has_flows = |object: &Value| object["flows"].as_array().expect("a list").len() == 2;
    (0..5).find(|_| has_flows(&watching.next())).expect("the connections are found");
    let sampler = thread_named(vnettop, "sampler").expect("vnettop has a sampler");
    // Between two ticks there are only pulses: the first of them begins the measurement, 20 more end it.
    let (_, ran) = spent(vnettop, sampler);
    await_that("the next pulse", 2, || spent(vnettop, sampler).1 > ran);
    let from = spent(vnettop, sampler);
    await_that("20 pulses", 10, || spent(vnettop, sampler).1 >= from.1 + 20);
    let to = spent(vnettop, sampler);
    let each_us = (to.0 - from.0) as f64 / 1e3 / (to.1 - from.1) as f64;
    eprintln!(
        "a pulse of 2 connections with both ends here: {each_us:.1} µs of CPU (debug build: {})",
        cfg!(debug_assertions)
    );
    assert!(each_us < 300.0, "a pulse is a matter of microseconds: {each_us:.1}");
}

fn allowed(pid: u32, tid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).expect("status is readable");
    let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list")).expect("it has a mask");
    line.split_whitespace().nth(1).expect("a list").to_owned()
}

#[test]
fn vnettop_sits_away_from_a_busy_watched_thread_and_says_where() {
    if !can_run("vnettop_sits_away_from_a_busy_watched_thread_and_says_where", &["taskset"]) {
        return;
    }
    let busy = |core: &str| {
        let mut command = Command::new("taskset");
        command.args(["-c", core, "sh", "-c", "while :; do :; done"]).stdin(Stdio::null());
        Kept(command.spawn().expect("taskset starts"))
    };
    let loop_ = busy("0");
    let mut command = Command::new("taskset");
    command.args(["-c", "0,1", VNETTOP, "-d", "0.2", "--watch", &pid(&loop_).to_string()]);
    let mut watching = Watching::start(command);
    let vnettop = watching.pid();
    let seated = (0..60).map(|_| watching.next()).find(|object| object["own"]["seat"].is_u64());
    assert_eq!(seated.expect("a seat within 12 s")["own"]["seat"], 1, "JSON says the core beside the busy one");
    let sampler = thread_named(vnettop, "sampler").expect("vnettop has a sampler");
    assert_eq!(allowed(vnettop, sampler), "1", "the sampler sits there");
    assert_eq!(allowed(vnettop, vnettop), "1", "so does the thread that shows");
    assert_eq!(allowed(pid(&loop_), pid(&loop_)), "0", "the watched thread is where it was");
    // The benchmark ends: vnettop runs anywhere again.
    drop(loop_);
    let left = (0..60).map(|_| watching.next()).find(|object| object["own"]["seat"].is_null());
    left.expect("the seat is given up within 12 s");
    assert_eq!(allowed(vnettop, sampler), "0-1", "the mask from before is back");
}
