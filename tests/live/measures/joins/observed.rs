//! One iperf3 test, as vnettop and its recording tell it.

use crate::ground::line::TICKS_OF_A_SECOND;
use crate::ground::{Kept, Netns, VNETTOP, Watching, objects};
use serde_json::Value;
use std::io::Read;
use std::process::{Command, Stdio};

/// What was told of one test until it had ended.
pub struct Observed {
    pub client: u32,
    pub server: u32,
    /// What iperf3 says of the whole test, and of it without its first and its last fifth of a second, bits/s.
    pub reported: [f64; 2],
    pub objects: Vec<Value>,
}

/// Runs a client of that server.
pub fn observe(netns: &Netns, server: &Kept, arguments: &str) -> Observed {
    let directory = tempfile::tempdir().expect("a directory");
    let recording = directory.path().join("join.jsonl.zst");
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.2", "--netns", "all", "--record"]).arg(&recording);
    let mut watching = Watching::start(command);
    let mut seen = vec![watching.next()];
    let mut client = netns.command("iperf3");
    client.args(["-J", "-t", "4", "-i", "0.2"]).args(arguments.split(' ')).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut client = Kept(client.spawn().expect("iperf3 starts"));
    let pid = client.0.id();
    let mut text = String::new();
    client.0.stdout.take().expect("piped").read_to_string(&mut text).expect("readable");
    let report = serde_json::from_str::<Value>(&text).expect("iperf3 prints its figures as JSON");
    assert!(report["error"].is_null(), "iperf3 {arguments}: {report}");
    let has_ended = |object: &Value| of_client(object, pid).is_some_and(|test| !test["ended_t_ns"].is_null());
    while !has_ended(&seen[seen.len() - 1]) {
        seen.push(watching.next());
        let tests = || list(&seen[seen.len() - 1], "tests").iter().map(|test| [&test["client"], &test["server"]]);
        assert!(seen.len() < 20 * TICKS_OF_A_SECOND, "a test of {pid}: {:?}", tests().collect::<Vec<_>>());
    }
    let last = seen[seen.len() - 1].clone();
    drop(watching.stop());
    let mut replay = Command::new(VNETTOP);
    let replayed = objects(&replay.args(["--json", "--replay"]).arg(&recording).output().expect("vnettop runs"));
    let again = replayed.iter().find(|object| object["ts"] == last["ts"]).expect("it was recorded");
    assert_eq!(again["tests"], last["tests"], "the same from the recording");
    let intervals = list(&report, "intervals");
    let inner = &intervals[1..intervals.len() - 1];
    let sum = |field: &str| inner.iter().map(|interval| figure(&interval["sum"][field])).sum::<f64>();
    let whole = ["sum_received", "sum"].map(|sum| report["end"][sum]["bits_per_second"].as_f64());
    let reported = [whole[0].or(whole[1]).expect("a rate"), sum("bytes") * 8.0 / sum("seconds")];
    Observed { client: pid, server: server.0.id(), reported, objects: seen }
}

/// The test of this client, as of one object.
fn of_client(object: &Value, pid: u32) -> Option<&Value> {
    list(object, "tests").iter().find(|test| test["client"]["pid"] == pid)
}

pub fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object[name].as_array().expect("a list")
}

impl Observed {
    /// It is one test of these two processes, whose rate is iperf3's own.
    pub fn is_one(&self, what: &str) {
        let last = &self.objects[self.objects.len() - 1];
        let test = of_client(last, self.client).expect("it is kept");
        assert_eq!(test["server"]["pid"], self.server, "{what}: who serves is known: {test}");
        let ours = figure(&test["mean_bits_per_s"]);
        let off = self.reported.map(|theirs| (ours / theirs - 1.0) * 100.0);
        eprintln!("{what}: {ours:.0}, iperf3 {:.0?} bits/s, {off:+.3?} %", self.reported);
        // What starts slowly catches up in its first moments, of which each counts another part.
        let is_it = off.iter().any(|off| off.abs() < 1.0) || off[0] * off[1] < 0.0;
        assert!(is_it, "{what}: its rate is iperf3's {:?} within 1 %: {ours:.0}", self.reported);
        for object in &self.objects {
            let others = list(object, "tests").iter().filter(|test| test["client"]["pid"] != self.client);
            let mut others = others.filter(|test| test["server"]["pid"] == self.server);
            assert_eq!(others.next(), None, "{what}: the server has no other test");
        }
    }

    /// The connections of the two that carry data, at each instant; of what is copied only the first.
    pub fn carrying(&self) -> impl Iterator<Item = Vec<&Value>> {
        let carries = |flow: &&Value| flow["control"] == false && flow["relayed"] == false;
        self.tests().map(move |test| list(test, "flows").iter().filter(carries).collect())
    }

    /// Its test, at each instant.
    pub fn tests(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter_map(|object| of_client(object, self.client))
    }
}

pub fn figure(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a figure: {value}"))
}
