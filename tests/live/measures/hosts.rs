//! `vnettop --host` against the real thing: two machines with an sshd and a journal each, joined by a wire, bridges with containers
//! behind both, and a third one that watches both of them over ssh.

mod agents;

use crate::ground::machine::HOST;
use crate::ground::pair::{Host, PROGRAMS, Pair};
use crate::ground::tmux::Tmux;
use crate::ground::{Kept, Watching, await_that, listening, needs, objects};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

const BOTH: [&str; 4] = ["--host", "kp1", "--host", "kp2"];

/// A test of so many seconds from the container of `kp1` to that of `kp2`; iperf3's own figures are its output.
struct Load {
    _server: Kept,
    client: std::process::Child,
}

impl Load {
    fn start(pair: &Pair, seconds: u32, more: &[&str]) -> Self {
        let server = pair.server(Host::B, &[]);
        let time = seconds.to_string();
        let mut client = pair.client(Host::A, &[&["-J", "-t", &time], more].concat());
        let client = client.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("iperf3 starts");
        Self { _server: server, client }
    }

    /// Waits for its end; what iperf3 says.
    fn report(self) -> Value {
        let out = self.client.wait_with_output().expect("it ends");
        serde_json::from_slice(&out.stdout).expect("iperf3 prints its figures as JSON")
    }
}

/// Takes objects until one has a test of both ends, with its path known on both sides.
fn await_both_ends(watching: &mut Watching) -> Value {
    for _ in 0..200 {
        let object = watching.next();
        let tests = object["end_to_end"].as_array().expect("a list");
        if let Some(test) = tests.iter().find(|test| test["path"].as_array().is_some_and(|path| path.len() >= 6)) {
            return test.clone();
        }
    }
    panic!("both ends of the test are recognised");
}

/// The path, each hop with its host.
fn path(test: &Value) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let hops = test["path"].as_array().expect("a path");
    hops.iter().map(|hop| (word(&hop["from"]), word(&hop["name"]))).collect()
}

fn both_ends(nat: bool) {
    let pair = Pair::new(nat);
    let mut watching = pair.watch(&BOTH);
    // Steady, so that the first and the last moment, which iperf3 counts otherwise, make no difference.
    let load = Load::start(&pair, 10, &["-b", "2G"]);
    let test = await_both_ends(&mut watching);
    assert_eq!((&test["sender"]["from"], &test["receiver"]["from"]), (&"kp1".into(), &"kp2".into()));
    let expected = [
        ("kp1", "eth0"),
        ("kp1", "vethc1"),
        ("kp1", "docker0"),
        ("kp1", "wire0"),
        ("kp2", "wire0"),
        ("kp2", "docker0"),
        ("kp2", "vethc1"),
        ("kp2", "eth0"),
    ];
    let expected: Vec<_> = expected.map(|(host, link)| (host.to_owned(), link.to_owned())).to_vec();
    assert_eq!(path(&test), expected, "hop by hop over the wire");
    for (end, host) in [("sender", Host::A), ("receiver", Host::B)] {
        let pid = test[end]["pid"].as_u64().expect("a process");
        let name = pair.host(host).run(&format!("cat /proc/{pid}/comm"));
        assert_eq!(name.trim(), "iperf3", "the process of the {end} is one of its own host");
        let threads = test[end]["threads"].as_array().expect("threads");
        assert!(!threads.is_empty() && threads.iter().all(|thread| thread["pid"] == pid), "its threads: {threads:?}");
    }
    // Each end's rate, second by second while the test runs, by that host's own clock.
    let mut rates: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..24 {
        let object = watching.next();
        for test in object["end_to_end"].as_array().expect("a list") {
            for end in ["sender", "receiver"] {
                // An object tells of both; its own host's figures are new.
                if test[end]["from"] == object["from"] {
                    rates
                        .entry(end.to_owned())
                        .or_default()
                        .extend(object["tests"].as_array().and_then(|tests| tests.last()?["mean_bits_per_s"].as_f64()));
                }
            }
        }
    }
    // The mean of the whole test, once it is over, is iperf3's.
    let report = load.report();
    let mut means: BTreeMap<String, f64> = BTreeMap::new();
    for _ in 0..200 {
        let object = watching.next();
        let ended = object["tests"]
            .as_array()
            .and_then(|tests| tests.iter().find(|test| !test["ended_t_ns"].is_null()).cloned());
        if let Some(mean) = ended.and_then(|test| test["mean_bits_per_s"].as_f64()) {
            means.insert(object["from"].as_str().expect("a name").to_owned(), mean);
        }
        if means.len() == 2 {
            break;
        }
    }
    let sent = report["end"]["sum_sent"]["bits_per_second"].as_f64().expect("iperf3's rate");
    let received = report["end"]["sum_received"]["bits_per_second"].as_f64().expect("iperf3's rate");
    assert!((means["kp1"] / sent - 1.0).abs() < 0.01, "sent {} against iperf3's {sent}", means["kp1"]);
    assert!((means["kp2"] / received - 1.0).abs() < 0.01, "received {} against iperf3's {received}", means["kp2"]);
    assert!(rates.values().all(|rates| rates.len() > 4), "rates at both ends while it ran: {rates:?}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn both_ends_of_a_test_and_the_path_between_them_are_one() {
    needs(PROGRAMS);
    both_ends(false);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn both_ends_are_recognised_behind_address_translation() {
    needs(PROGRAMS);
    both_ends(true);
}

/// Where packets are lost, packets by host and name of the place.
fn lost(watching: &mut Watching, objects: usize) -> BTreeMap<(String, String), f64> {
    let mut all = BTreeMap::new();
    for _ in 0..objects {
        let object = watching.next();
        for loss in object["end_to_end"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|test| test["losses"].as_array().cloned().unwrap_or_default())
        {
            if loss["from"] == object["from"] {
                let word = |field: &str| loss[field].as_str().unwrap_or("?").to_owned();
                *all.entry((word("from"), word("name"))).or_insert(0.0) += loss["packets"].as_f64().unwrap_or(0.0);
            }
        }
    }
    all
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_is_lost_is_told_at_the_host_and_the_place_where_it_is() {
    needs(PROGRAMS);
    let pair = Pair::new(true);
    for (host, link) in [(Host::A, "wire0"), (Host::B, "vethc1")] {
        let mut watching = pair.watch(&BOTH);
        pair.host(host).run(&format!("tc qdisc replace dev {link} root tbf rate 20mbit burst 20kb limit 20kb"));
        let load = Load::start(&pair, 6, &["-u", "-b", "40M", "-l", "1200"]);
        await_both_ends(&mut watching);
        let lost = lost(&mut watching, 24);
        drop(watching);
        load.report();
        pair.host(host).run(&format!("tc qdisc del dev {link} root"));
        let (place, packets) = lost.iter().max_by(|one, other| one.1.total_cmp(other.1)).expect("packets are lost");
        assert_eq!(place.0, host.name(), "at the host where they are dropped: {lost:?}");
        assert!(place.1.contains(link) && *packets > 1000.0, "at the qdisc of {link}: {lost:?}");
    }
}

/// The masks of every iperf3 on a host, as taskset reads them.
fn masks(pair: &Pair, host: Host) -> Vec<String> {
    let script = "for pid in $(pgrep -x iperf3); do taskset -apc $pid; done | sed 's/.*: //'";
    pair.host(host).run(script).lines().map(str::to_owned).collect()
}

fn pinned(masks: &[String]) -> usize {
    masks.iter().filter(|mask| mask.parse::<u32>().is_ok()).count()
}

/// A placement is proposed for both hosts, and applied.
fn pin_both(screen: &Tmux) {
    let is_open = || screen.shows("Esc closes");
    await_that("a placement is proposed for both hosts", 30, || {
        screen.press("p");
        await_that("p is answered", 5, is_open);
        let frame = screen.frame();
        let proposed = frame.contains("pin on these hosts") && frame.matches("taskset -cp").count() == 2;
        if !proposed {
            screen.press("Escape");
            await_that("Esc is obeyed", 5, || !is_open());
        }
        proposed
    });
    screen.press("p");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn one_key_pins_both_ends_and_one_undoes_both() {
    needs(&[PROGRAMS, &["tmux", "taskset"]].concat());
    let pair = Pair::new(false);
    let load = Load::start(&pair, 40, &[]);
    let before = Host::BOTH.map(|host| masks(&pair, host));
    let screen = Tmux::start("hosts", 140, 60, &pair.line(&[&["-d", "0.25"], &BOTH[..]].concat()));
    screen.await_shown("both ends are on one screen", 20, "receiver");
    await_that("both hosts are in the list of ends", 10, || screen.frame().matches("iperf3").count() >= 2);
    pin_both(&screen);
    for host in Host::BOTH {
        await_that(&format!("the busy thread on {} is pinned", host.name()), 10, || pinned(&masks(&pair, host)) == 1);
        let journals = pair.host(host).run("ls /run/vnettop-state/vnettop | wc -l");
        assert_eq!(journals.trim(), "1", "{} has a journal of its own", host.name());
    }
    screen.press("U");
    await_that("every mask is as it was", 10, || Host::BOTH.map(|host| masks(&pair, host)) == before);

    // An agent that is killed leaves its pins, which is said here: undo there restores them, or the one key once it is live again.
    pin_both(&screen);
    await_that("both are pinned again", 10, || Host::BOTH.iter().all(|&host| pinned(&masks(&pair, host)) == 1));
    for host in Host::BOTH {
        let name = host.name();
        pair.host(host).run("pkill -KILL -x vnettop");
        screen.await_shown("what stays pinned is said", 10, &format!("ssh {name} vnettop undo"));
        assert_eq!(pinned(&masks(&pair, host)), 1, "nobody undoes it by itself");
        screen.await_shown("the agent is there again", 20, &format!("{name} is live again"));
    }
    let said = pair.ssh(Host::A, "vnettop undo");
    assert!(said.contains("back on"), "{said}");
    assert_eq!(pinned(&masks(&pair, Host::A)), 0, "as it was");
    assert_eq!(pinned(&masks(&pair, Host::B)), 1, "the other host's pin is its own");
    screen.press("U");
    await_that("every mask is as it was before", 10, || Host::BOTH.map(|host| masks(&pair, host)) == before);
    drop(load.client);
    screen.press("q");
    await_that("the agents end with the screen", 10, || Host::BOTH.iter().all(|&host| pair.vnettops(host) == 0));
}

/// Takes objects until one of this host comes; how many of the other came meanwhile. It fails after so many.
fn until(watching: &mut Watching, host: Host, most: usize) -> usize {
    for others in 0..most {
        if watching.next()["from"] == host.name() {
            return others;
        }
    }
    panic!("{} comes back", host.name());
}

/// Takes objects, as whoever reads them would, until this was said so often.
fn until_said(watching: &mut Watching, pair: &Pair, times: usize, what: &str) {
    for _ in 0..120 {
        if pair.said().matches(what).count() >= times {
            return;
        }
        watching.next();
    }
    panic!("'{what}' is said: {}", pair.said());
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn whatever_becomes_of_one_host_the_other_goes_on() {
    needs(PROGRAMS);
    let pair = Pair::new(false);
    let mut watching = pair.watch_errors(&BOTH);
    let both = |watching: &mut Watching| Host::BOTH.map(|host| until(watching, host, 100));
    both(&mut watching);

    pair.desk.run("pkill -KILL -f '[s]sh .* kp1 vnettop'");
    until_said(&mut watching, &pair, 1, "ssh to kp1 was killed by signal 9");
    assert!(until(&mut watching, Host::A, 100) < 40, "it is tried again at once, and the other goes on");

    pair.host(Host::A).run("pkill -KILL -x vnettop");
    until_said(&mut watching, &pair, 1, "the connection to kp1 is lost, or its agent was killed");
    until(&mut watching, Host::A, 100);

    // Nothing arrives for ten seconds: an interruption, which the connection outlives.
    pair.wire_silent(Host::A);
    let mut others = 0;
    for _ in 0..60 {
        let object = watching.next();
        others += usize::from(object["from"] == "kp2");
    }
    assert!(others > 35, "ten seconds of the other host: {others}");
    until_said(&mut watching, &pair, 1, "kp1 is silent");
    pair.wire_heard(Host::A);
    until(&mut watching, Host::A, 200);
    assert!(!pair.said().contains("kp1 cannot be reached"), "the same connection: {}", pair.said());

    // An agent that stands still is silent too, and neither side grows.
    pair.stand_still(Host::A);
    until_said(&mut watching, &pair, 2, "kp1 is silent");
    until(&mut watching, Host::B, 20);
    pair.go_on(Host::A);
    until(&mut watching, Host::A, 100);
    drop(watching);
    await_that("agents end with what started them", 10, || Host::BOTH.iter().all(|&host| pair.vnettops(host) == 0));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_recording_holds_both_hosts() {
    needs(PROGRAMS);
    let pair = Pair::new(true);
    let file = pair.desk.folder().join("both.vnettop.zst");
    let name = file.to_str().expect("ASCII");
    let load = Load::start(&pair, 6, &[]);
    let live = pair.vnettop(&[&["--json", "-n", "12", "-d", "0.25", "--record", name], &BOTH[..]].concat()).output();
    let live = objects(&live.expect("it runs"));
    load.report();
    let replayed = Command::new(crate::ground::VNETTOP).args(["--replay", name, "--json"]).output();
    let replayed = objects(&replayed.expect("it runs"));
    let of = |objects: &[Value], host: Host| -> Vec<Value> {
        let own = objects.iter().filter(|object| object["from"] == host.name());
        own.map(|object| serde_json::json!([object["ts"], object["links"], object["flows"], object["tests"]])).collect()
    };
    for host in Host::BOTH {
        assert_eq!(of(&live, host).len(), 12, "{}", host.name());
        assert_eq!(of(&live, host), of(&replayed, host), "what is replayed of {} is what was seen", host.name());
    }
    let joined = |objects: &[Value]| {
        objects.iter().any(|object| object["end_to_end"].as_array().is_some_and(|all| !all.is_empty()))
    };
    assert!(joined(&live) && joined(&replayed), "with the test of both ends");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_run_pins_the_other_end_in_the_same_phases() {
    needs(&[PROGRAMS, &["taskset"]].concat());
    let pair = Pair::new(false);
    let _server = listening(pair.b.inside(HOST, "iperf3"), &[]);
    let before = masks(&pair, Host::B);
    let run = ["run", "--host", "kp2", "--pin", "compare", "--phase", "1", "--format", "json", "--"];
    let command = ["iperf3", "-c", Host::B.address(), "-t", "12", "-i", "0"];
    let mut run = pair.vnettop(&[&run[..], &command].concat());
    let run = Kept(run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs"));
    await_that("the other end is pinned", 12, || pinned(&masks(&pair, Host::B)) == 1);
    await_that("and unpinned", 5, || pinned(&masks(&pair, Host::B)) == 0);
    await_that("and pinned again", 8, || pinned(&masks(&pair, Host::B)) == 1);
    let said = ended(run);
    assert!(said.contains("kp2 was pinned in the same phases as this machine"), "{said}");
    assert!(said.contains("\"verdict\""), "the card is there: {said}");
    assert_eq!(masks(&pair, Host::B), before, "every mask is as it was");
    await_that("its agent has ended", 5, || pair.vnettops(Host::B) == 0);
}

/// Waits for its end; what it has said on standard error.
fn ended(mut run: Kept) -> String {
    let mut said = String::new();
    run.0.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert!(run.0.wait().expect("it ends").success(), "{said}");
    said
}
