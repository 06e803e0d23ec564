//! Several tests on one machine, on the real kernel: each has the figures that it would have alone, live and from the recording.

use crate::ground::line::{TICKS_OF_A_SECOND, until_it_traces};
use crate::ground::unseen::{Unseen, is_all};
use crate::ground::{Kept, Netns, VNETTOP, Watching, iperf3_server, needs, objects, veth_pair};
use serde_json::Value;
use std::io::Read;
use std::process::{Command, Stdio};

/// One of ten datagrams of data is refused, and counted; iperf3's first word, without which it waits for half a minute, is shorter.
const ONE_OF_TEN: &str = "nft 'add table inet t; add chain inet t c { type filter hook input priority 0; }; \
                          add rule inet t c udp dport 5201 udp length 1008 numgen random mod 10 == 0 counter drop'";

/// A client that runs.
fn client(netns: &Netns, arguments: &str) -> Kept {
    let mut command = netns.command("iperf3");
    command.args(["-c", "198.18.0.1", "-J"]).args(arguments.split(' ')).stdin(Stdio::null()).stdout(Stdio::piped());
    Kept(command.spawn().expect("iperf3 starts"))
}

/// What it reports at its end.
fn report(client: &mut Kept) -> Value {
    let mut text = String::new();
    client.0.stdout.take().expect("piped").read_to_string(&mut text).expect("readable");
    serde_json::from_str::<Value>(&text).expect("iperf3 prints its figures as JSON")["end"].clone()
}

/// A whole test, its process and its report; a server that is not through with the one before refuses for a moment.
fn accepted(netns: &Netns, arguments: &str) -> (u32, Value) {
    let mut tries = (0..50).map(|_| {
        let mut client = client(netns, arguments);
        (client.0.id(), report(&mut client))
    });
    tries.find(|(_, report)| !report["sum_received"].is_null()).expect("the server takes it")
}

fn figure(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a figure: {value}"))
}

/// The test of this client, as of one object.
fn test_of(object: &Value, pid: u32) -> Option<&Value> {
    object["tests"].as_array().expect("a list").iter().find(|test| test["client"]["pid"] == pid)
}

/// What was lost of it, summed over the objects.
fn lost(objects: &[Value], pid: u32) -> f64 {
    let losses = |object: &Value| -> f64 {
        let losses = test_of(object, pid).map(|test| test["losses"].as_array().expect("a list").clone());
        losses.into_iter().flatten().map(|loss| figure(&loss["packets"])).sum()
    };
    objects.iter().map(losses).sum()
}

/// Takes objects until these clients' tests have all ended and a second longer: the kernel may tell something late.
fn until_ended(watching: &mut Watching, seen: &mut Vec<Value>, pids: &[u32]) {
    let has_ended = |object: &Value, pid: u32| test_of(object, pid).is_some_and(|test| !test["ended_t_ns"].is_null());
    let mut ticks = 0;
    while !pids.iter().all(|&pid| has_ended(&seen[seen.len() - 1], pid)) {
        ticks += 1;
        assert!(ticks < 60 * TICKS_OF_A_SECOND, "the tests of {pids:?} have ended: {}", seen[seen.len() - 1]["tests"]);
        seen.push(watching.next());
    }
    seen.extend((0..2 * TICKS_OF_A_SECOND).map(|_| watching.next()));
}

/// A test that has ended, against its own client's report.
fn check(object: &Value, (pid, report): &(u32, Value), seconds: f64) {
    let test = test_of(object, *pid).expect("it is kept");
    let theirs = figure(&report["sum_received"]["bits_per_second"]);
    let off = figure(&test["mean_bits_per_s"]) / theirs - 1.0;
    assert!(off.abs() < 0.01, "its rate is iperf3's {theirs:.0} within 1 %: {off:+.4}: {}", test["mean_bits_per_s"]);
    let window = test["jitter"]["window_s"].as_f64().unwrap_or(0.0);
    assert!(window > 0.0 && window < seconds + 0.25, "its window is its own time of {seconds} s: {}", test["jitter"]);
    assert_eq!((&test["bits_per_s"], &test["losses"]), (&Value::Null, &Value::Array(vec![])), "nothing of it is now");
    assert_eq!(test["findings"], Value::Array(vec![]), "nothing of it is now");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn two_tests_at_once_and_a_third_have_each_their_own_figures() {
    needs(&["iperf3", "ip", "nsenter", "nft"]);
    let ((near, far), (other_near, other_far)) = (veth_pair(), veth_pair());
    let _servers = [iperf3_server(&near, &[]), iperf3_server(&other_near, &[])];
    other_near.run(ONE_OF_TEN);
    let directory = tempfile::tempdir().expect("a directory");
    let recording = directory.path().join("tests.jsonl.zst");
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.2", "--netns", "all", "--record"]).arg(&recording);
    let mut watching = Watching::start(command);
    let mut seen = vec![watching.next()];
    until_it_traces(&mut watching, &mut seen);
    let unseen = Unseen::begin();

    let mut stream = client(&far, "-b 300M -t 8");
    let mut datagrams = client(&other_far, "-u -b 40M -l 1000 -t 3");
    let datagrams = (datagrams.0.id(), report(&mut datagrams));
    // Begins as soon as the second has ended, with the same server, while the first goes on.
    let third = accepted(&other_far, "-b 100M -t 3");
    let stream = (stream.0.id(), report(&mut stream));
    until_ended(&mut watching, &mut seen, &[stream.0, datagrams.0, third.0]);
    let last = seen[seen.len() - 1].clone();
    drop(watching.stop());

    for (of, seconds) in [(&stream, 8.0), (&datagrams, 3.0), (&third, 3.0)] {
        check(&last, of, seconds);
    }
    // What a reader that gets no core loses is lost as well.
    let full: f64 =
        other_near.output("nstat -asz UdpRcvbufErrors | awk 'END{print $2}'").trim().parse().expect("a number");
    let counted = refused(&other_near) + full;
    let total = figure(&test_of(&last, datagrams.0).expect("it is kept")["lost_packets"]);
    let hidden = unseen.by_reason().values().sum();
    assert!(is_all(total, counted, hidden), "{total} told of {counted}, {hidden} could not be seen");
    assert!((total - lost(&seen, datagrams.0)).abs() < 0.5, "what was told tick by tick is the same");
    for pid in [stream.0, third.0] {
        assert_eq!(test_of(&last, pid).map(|test| figure(&test["lost_packets"])), Some(0.0), "a stranger's loss");
    }
    let shares = seen.iter().filter_map(|object| test_of(object, datagrams.0)?["losses"][0]["share"].as_f64());
    let shares: Vec<f64> = shares.collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!(shares.len() > 5 && (mean - 0.1).abs() < 0.01, "a tenth of its own packets: {shares:?}");
    let numbers = [&stream, &datagrams, &third].map(|of| test_of(&last, of.0).expect("kept")["number"].as_u64());
    assert!(numbers.is_sorted(), "in the order in which they began: {numbers:?}");
    let both = seen.iter().find(|object| [stream.0, datagrams.0].iter().all(|&pid| test_of(object, pid).is_some()));
    let threads = |pid| test_of(both.expect("both ran"), pid).expect("it ran")["threads"].to_string();
    assert!(threads(stream.0).contains(&stream.0.to_string()), "its own threads: {}", threads(stream.0));
    assert!(!threads(stream.0).contains(&datagrams.0.to_string()), "and nobody else's: {}", threads(stream.0));

    let mut replay = Command::new(VNETTOP);
    let replayed = replay.args(["--json", "--replay"]).arg(&recording).output().expect("vnettop runs");
    let replayed = objects(&replayed);
    let at = |object: &&Value| object["ts"] == last["ts"];
    assert_eq!(
        replayed.iter().find(at).expect("it was recorded")["tests"],
        last["tests"],
        "the same from the recording"
    );
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn tests_between_the_same_addresses_and_ports_in_two_networks_are_two() {
    needs(&["iperf3", "ip", "nsenter"]);
    let networks = [veth_pair(), veth_pair()];
    let servers = networks.each_ref().map(|(near, _)| iperf3_server(near, &[]));
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.2", "--netns", "all"]);
    let mut watching = Watching::start(command);
    let mut seen = vec![watching.next()];
    let rates = ["-b 300M -t 3 --cport 40000", "-b 100M -t 3 --cport 40000"];
    let mut clients = [0, 1].map(|at| client(&networks[at].1, rates[at]));
    let told = clients.each_mut().map(|client| (client.0.id(), report(client)));
    until_ended(&mut watching, &mut seen, &told.each_ref().map(|of| of.0));
    drop(watching.stop());
    for of in &told {
        check(&seen[seen.len() - 1], of, 3.0);
    }
    for ((pid, _), server) in told.iter().zip(&servers) {
        let flows = seen.iter().filter_map(|object| test_of(object, *pid)).filter_map(|test| test["flows"].as_array());
        let data = flows.flatten().filter(|flow| flow["from"]["port"] == 40000 && flow["to"]["pid"].is_u64());
        let servers: Vec<&Value> = data.map(|flow| &flow["to"]["pid"]).collect();
        let own = servers.iter().all(|pid| **pid == server.0.id());
        assert!(own && servers.len() > TICKS_OF_A_SECOND, "its data go to its own server: {servers:?}");
    }
}

/// The rule's own count.
fn refused(netns: &Netns) -> f64 {
    let counted = netns.output("nft list ruleset | sed -n 's/.*counter packets \\([0-9]*\\).*/\\1/p'");
    counted.trim().parse().expect("a count")
}

/// The card of `vnettop run` about this client, and what the rule refused meanwhile.
fn card(server: &Netns, netns: &Netns, arguments: &str) -> (Value, f64) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("card.json");
    let before = refused(server);
    let mut command = netns.command(VNETTOP);
    command.args(["run", "--format", "json", "--card"]).arg(&file);
    command.args(["--", "iperf3", "-c", "198.18.0.1"]).args(arguments.split(' '));
    let out = command.stdin(Stdio::null()).output().expect("vnettop runs");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("a card: {out:?}"));
    (serde_json::from_str(&text).expect("JSON"), refused(server) - before)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_card_of_a_run_beside_another_test_is_that_of_the_run_alone() {
    let programs = ["iperf3", "ip", "nsenter", "nft"];
    needs(&programs);
    let ((near, far), (other_near, other_far)) = (veth_pair(), veth_pair());
    let _servers = [iperf3_server(&near, &[]), iperf3_server(&other_near, &[])];
    near.run(ONE_OF_TEN);
    let unseen = Unseen::begin();
    let run = || card(&near, &far, "-u -b 40M -l 1000 -t 4");
    let alone = run();
    let _other = client(&other_far, "-b 300M -t 60");
    let beside = run();
    let hidden = unseen.by_reason().values().sum();
    for (card, counted) in [&alone, &beside] {
        let told = figure(&card["drops"]["protocols"]);
        assert!(is_all(told, *counted, hidden), "{told} told of {counted}, {hidden} could not be seen");
    }
    let of = |field: &str| [&alone, &beside].map(|(card, _)| figure(&card["jitter"][field]));
    let [mean, near_it] = of("mean_bits_per_s");
    assert!((near_it / mean - 1.0).abs() < 0.01, "the same rate: {near_it} beside, {mean} alone");
    assert!((mean / 36e6 - 1.0).abs() < 0.02, "nine tenths of what was sent: {mean}");
    let [window, near_it] = of("window_s");
    // A bin at either end, which data did not fill, may be the other run's.
    assert!((window - near_it).abs() < 0.25, "the same window: {near_it} s beside, {window} s alone");
    assert_eq!(alone.0["measured"]["of"], "command");
    assert_eq!(beside.0["measured"], alone.0["measured"], "of the same");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_demo_shows_its_own_test_beside_those_of_strangers() {
    needs(&["iperf3", "ip", "nsenter", "unshare"]);
    let (near, far) = veth_pair();
    let server = iperf3_server(&near, &[]);
    let stranger = client(&far, "-b 100M -t 20");
    let strangers = [server.0.id(), stranger.0.id()];
    let mut command = Command::new(VNETTOP);
    command.args(["demo", "-d", "0.2"]);
    let mut watching = Watching::start(command);
    let runs = |object: &Value| object["tests"].as_array().is_some_and(|tests| tests.len() == 1);
    let seen: Vec<Value> = (0..50).map(|_| watching.next()).collect();
    assert!(seen.iter().any(runs), "the demo's test is told");
    for object in &seen {
        let threads = object["threads"].as_array().expect("a list");
        let is_strange = |thread: &Value| strangers.iter().any(|&pid| thread["pid"] == pid);
        assert!(!threads.iter().any(is_strange), "no stranger's thread: {threads:?}");
        assert!(object["tests"].as_array().is_some_and(|tests| tests.len() < 2), "no stranger's test");
    }
}
