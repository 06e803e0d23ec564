//! The watched threads' own traffic against iperf3's figures; and vnettop out of their way.

mod datagrams;

use crate::ground::{self, Kept, Netns, VNETTOP, Watching, await_that, needs, pid, veth_pair};
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
#[ignore = "on the real kernel: tests/run"]
fn one_streams_bins_are_iperf3s_own_rate() {
    needs(&["iperf3", "ip", "nsenter"]);
    assert_iperf3s_own(1);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn four_streams_bins_are_iperf3s_own_rate() {
    needs(&["iperf3", "ip", "nsenter"]);
    assert_iperf3s_own(4);
}

/// Stops or continues a process.
fn signal(kept: &Kept, signal: &str) {
    let sent = Command::new("kill").args([signal, &pid(kept).to_string()]).status();
    assert!(sent.expect("kill runs").success(), "{signal} is sent");
}

/// vnettop in that namespace, watching these two.
fn watching(netns: &Netns, server: &Kept, client: &Kept, interval: &str) -> Watching {
    let mut command = netns.command(VNETTOP);
    let (server, client) = (pid(server).to_string(), pid(client).to_string());
    command.args(["-d", interval, "--watch", &server, "--watch", &client]);
    Watching::start(command)
}

fn list<'a>(object: &'a Value, name: &str) -> &'a Vec<Value> {
    object[name].as_array().expect("a list")
}

/// The number behind a word of what ss prints, as in `cwnd:10` and `pacing_rate 5bps`.
fn number(text: &str, word: &str) -> Option<f64> {
    let rest = &text[text.find(word)? + word.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// What ss prints of the socket with that port at this end, on one line.
fn ss(netns: &Netns, options: &str, port: &Value) -> String {
    let all = netns.output(&format!("ss {options}OHn sport = :{port}"));
    all.lines().find(|line| !line.contains("LISTEN")).unwrap_or_else(|| panic!("ss shows {port}: {all}")).to_owned()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_connections_state_is_what_ss_says_and_the_reversed_test_is_named() {
    needs(&["iperf3", "ip", "nsenter", "ss", "tc"]);
    let (near, far) = veth_pair();
    // What the server sends too fast is lost.
    near.run("tc qdisc add dev v0 root tbf rate 50mbit burst 16k limit 30k");
    let server = ground::iperf3_server(&near, &[]);
    let client = far.keep("iperf3", &["-c", "198.18.0.1", "-RP2", "-t", "60"]);
    let mut vnettop = watching(&near, &server, &client, "0.3");
    let retransmits = |object: &Value| -> f64 {
        list(object, "flows").iter().filter_map(|flow| flow["retransmits_per_s"].as_f64()).sum()
    };
    // A stream whose segments are lost stands still now and then: a tick is awaited in which both run.
    let carrying = |object: &Value| -> Vec<Value> {
        let carries = |flow: &&Value| flow["bits_per_s"].as_f64() > Some(1e6);
        list(object, "flows").iter().filter(carries).cloned().collect()
    };
    let object = (0..60).map(|_| vnettop.next()).find(|object| {
        let mut ends = list(object, "benchmarks").iter();
        let streams = ends.find(|one| one["side"] == "server").map(|one| &one["streams"]);
        retransmits(object) > 0.0 && carrying(object).len() == 2 && streams.is_some_and(|streams| streams == 2)
    });
    let object = object.expect("segments are sent again within 18 s, and the server's streams are known");
    let benchmarks = list(&object, "benchmarks");
    for (side, process) in [("server", &server), ("client", &client)] {
        let one = benchmarks.iter().find(|one| one["side"] == side).expect("both ends are recognised");
        let told = [&one["program"], &one["pid"], &one["port"], &one["proto"], &one["streams"], &one["reverse"]];
        let expected: [Value; 6] =
            ["iperf3".into(), pid(process).into(), 5201.into(), "tcp".into(), 2.into(), true.into()];
        assert!(told.into_iter().eq(&expected), "the {side} by its command line or its sockets: {one}");
    }
    let sides = carrying(&object);
    for flow in &sides {
        assert_eq!(flow["from"]["pid"], pid(&server), "the server sends: {flow}");
        assert_eq!(flow["to"]["pid"], pid(&client), "and the client receives: {flow}");
    }
    // Both stand still: what ss says stands still too.
    signal(&server, "-STOP");
    signal(&client, "-STOP");
    let port = sides[0]["to"]["port"].clone();
    let shown = || near.output(&format!("ss -tminOH dport = :{port}"));
    let mut last = String::new();
    await_that("the connection rests", 20, || {
        std::thread::sleep(std::time::Duration::from_millis(500));
        let now = shown();
        let still = |text: &str| text.split("lastsnd").next().map(str::to_owned);
        still(&std::mem::replace(&mut last, now.clone())) == still(&now)
    });
    // What was written meanwhile waits in the pipe, and is of before.
    let now = jiff::Timestamp::now();
    let is_new =
        |object: &Value| object["ts"].as_str().expect("a time").parse::<jiff::Timestamp>().expect("a time") > now;
    let object = (0..200).map(|_| vnettop.next()).find(is_new).expect("a tick from after that");
    let flow = list(&object, "flows").iter().find(|flow| flow["to"]["port"] == port).expect("it is still there");
    let equal = |field: &str, word: &str, times: f64| {
        let (ours, theirs) = (flow[field].as_f64(), number(&last, word).map(|number| number * times));
        let close = ours.zip(theirs).is_some_and(|(ours, theirs)| (ours - theirs).abs() <= theirs * 1e-6 + 0.5);
        assert!(close, "{field} is ss' {word}: {ours:?}, {theirs:?}\n{flow}\n{last}");
    };
    let mss = number(&last, " mss:").expect("ss tells it");
    equal("mss_bytes", " mss:", 1.0);
    equal("cwnd_bytes", " cwnd:", mss);
    equal("rtt_us", " rtt:", 1000.0);
    equal("pacing_bits_per_s", "pacing_rate ", 1.0);
    equal("delivery_bits_per_s", "delivery_rate ", 1.0);
    let columns: Vec<&str> = last.split_whitespace().collect();
    assert_eq!(flow["tx_queue_bytes"].to_string(), columns[2], "the sender's queue is ss' Send-Q: {last}");
    assert!(columns.iter().any(|word| flow["congestion"] == *word), "{} is in {last}", flow["congestion"]);
    let receiver = ss(&far, "-tmi", &port);
    let queue = receiver.split_whitespace().nth(1);
    assert_eq!(Some(&*flow["rx_queue_bytes"].to_string()), queue, "the receiver's is its Recv-Q: {receiver}");
    signal(&client, "-CONT");
    signal(&server, "-CONT");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn iperf_2_is_watched_and_recognised_unasked() {
    needs(&["iperf", "ip", "nsenter"]);
    let (near, far) = veth_pair();
    let server = near.keep("iperf", &["-s", "-p", "5011"]);
    await_that("the server listens", 10, || near.output("cat /proc/net/tcp6 /proc/net/tcp").contains(":1393 "));
    let client = far.keep("iperf", &["-c", "198.18.0.1", "--port=5011", "-P3", "-t60", "-b5m"]);
    let mut command = near.command(VNETTOP);
    command.args(["-d", "0.3"]);
    let mut vnettop = Watching::start(command);
    let find = |object: &Value, kept: &Kept| {
        list(object, "benchmarks").iter().find(|one| one["pid"] == pid(kept)).filter(|one| one["streams"] == 3).cloned()
    };
    let both = (0..40).find_map(|_| {
        let object = vnettop.next();
        find(&object, &server).zip(find(&object, &client))
    });
    let (one, asked) = both.expect("both ends with three streams within 12 s");
    assert_eq!((&one["program"], &one["side"], &one["reverse"]), (&"iperf".into(), &"server".into(), &false.into()));
    assert_eq!(
        (&asked["target"], &asked["port"], &asked["proto"]),
        (&"198.18.0.1".into(), &5011.into(), &"tcp".into())
    );
    assert_eq!((&asked["time_s"], &asked["asked_bits_per_s"]), (&60.0.into(), &5_000_000.into()), "as asked: {asked}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_iperf3_reports_itself_stands_beside_it() {
    needs(&["sh"]);
    // A shell under iperf3's name and with its arguments waits for a line: not every iperf3 has --json-stream.
    let (directory, netns) = (tempfile::tempdir().expect("a directory"), Netns::new());
    let program = directory.path().join("iperf3");
    std::os::unix::fs::symlink("/bin/sh", &program).expect("writable");
    let mut command = Command::new(&program);
    command.args(["-c", "read line", "--json-stream", "-u"]).stdin(Stdio::piped());
    let client = Kept(command.spawn().expect("sh starts"));
    let file = directory.path().join("out.json");
    let path = file.display().to_string();
    let mut command = netns.command(VNETTOP);
    command.args(["-d", "0.2", "--watch", &pid(&client).to_string(), "--iperf3-json", &path]);
    let mut vnettop = Watching::start(command);
    let object = vnettop.next();
    let problems = list(&object, "problems");
    assert!(
        problems.iter().any(|problem| problem["source"] == "benchmarks"),
        "no file yet, and that is said: {object}"
    );
    let interval = r#"{"event":"interval","data":{"sum":{"end":2.5,"seconds":1,"bits_per_second":5e6,"lost_packets":3,"packets":90}}}"#;
    fs::write(&file, format!("{interval}\n")).expect("writable");
    let reported = (0..30).find_map(|_| {
        let object = vnettop.next();
        let one = list(&object, "benchmarks").first().filter(|one| one["reported"].is_object()).cloned()?;
        Some((one, list(&object, "problems").clone()))
    });
    let (one, problems) = reported.expect("the interval is told within 6 s");
    assert_eq!((&one["json_stream"], &one["proto"], &one["pid"]), (&true.into(), &"udp".into(), &pid(&client).into()));
    let told = &one["reported"];
    let expected: [Value; 4] = [2.5.into(), 5_000_000.into(), 3.into(), 90.into()];
    let figures = [&told["at_s"], &told["bits_per_s"], &told["lost_packets"], &told["packets"]];
    assert!(figures.into_iter().eq(&expected), "as iperf3 wrote it: {told}");
    assert!(
        problems.iter().all(|problem| problem["source"] != "benchmarks"),
        "nothing is missing any more: {problems:?}"
    );
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
#[ignore = "on the real kernel: tests/run"]
fn a_pulse_costs_little() {
    needs(&["iperf3", "ip", "nsenter"]);
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
    // Ten of them a second: 0.3 % of a core, and what a build without optimisation makes of that.
    let most_us = if cfg!(debug_assertions) { 1_500.0 } else { 300.0 };
    assert!(each_us < most_us, "a pulse takes less than {most_us} µs of CPU: {each_us:.1}");
}

fn allowed(pid: u32, tid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).expect("status is readable");
    let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list")).expect("it has a mask");
    line.split_whitespace().nth(1).expect("a list").to_owned()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn vnettop_sits_away_from_a_busy_watched_thread_and_says_where() {
    needs(&["taskset"]);
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
