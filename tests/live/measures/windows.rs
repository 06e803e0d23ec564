//! A figure covers the time that it is said of, whatever the interval: the share of lost datagrams in LIMIT, what a test lost in
//! its last interval, the mean rate over a standstill.

use crate::ground::{Kept, Netns, VNETTOP, Watching, listening, needs, pid, veth_pair};
use crate::release::dropped::trial::ruled;
use serde_json::Value;
use std::process::{Command, Stdio};

const PROGRAMS: &[&str] = &["iperf3", "ip", "nft", "nsenter"];
const FAR: &str = "198.18.0.2";

/// A client whose report is read at its end.
fn client(near: &Netns, more: &[&str]) -> Kept {
    let mut command = near.command("iperf3");
    command.args(["-J", "-c", FAR]).args(more);
    Kept(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"))
}

/// What an object says of the test of this server.
fn own<'a>(object: &'a Value, server: &Kept) -> Option<&'a Value> {
    object["tests"].as_array()?.iter().find(|test| test["server"]["pid"] == pid(server))
}

/// Every fifth datagram is dropped by a rule, set after the test has begun: what LIMIT says at each object, and what the test has
/// lost in the end by the rule's counter and as told.
fn dropped(interval_s: f64, seconds: &str) -> (Vec<f64>, f64, f64) {
    let (near, far) = veth_pair();
    let server = listening(far.command("iperf3"), &[]);
    let mut command = Command::new(VNETTOP);
    command.args(["-d", &interval_s.to_string()]);
    let mut watching = Watching::start(command);
    watching.next();
    let mut client = client(&near, &["-u", "-b", "16M", "-l", "1000", "-t", seconds]);
    let (mut since_s, mut shares, mut told) = (None, Vec::new(), 0.0);
    loop {
        let object = watching.next();
        let Some(test) = own(&object, &server) else {
            assert!(client.0.try_wait().is_ok_and(|ended| ended.is_none()), "the test is seen");
            continue;
        };
        let lost = test["losses"].as_array().into_iter().flatten().filter(|loss| loss["place"] == "firewall");
        told += lost.filter_map(|loss| loss["packets"].as_f64()).sum::<f64>();
        if !test["ended_t_ns"].is_null() {
            break;
        }
        match &mut since_s {
            // What a rule drops before the kernel is asked has no counter, and `tracer` says so.
            None if object["tracer"]["state"] != "attached" => {}
            None => {
                far.run(
                    "nft add table ip planted; nft 'add chain ip planted here { type filter hook input priority 0; }'; \
                     nft add rule ip planted here udp dport 5201 numgen inc mod 5 == 0 counter drop",
                );
                since_s = Some(0.0);
            }
            Some(since_s) => {
                *since_s += object["elapsed_s"].as_f64().unwrap_or(0.0);
                let limit = &test["limit"];
                // The window and the interval in which the rule was set are over, and what waited in the pipe while it was set.
                if *since_s > interval_s + 2.0 && limit["kind"] == "loss" {
                    shares.extend(limit["numbers"]["share"].as_f64());
                }
            }
        }
    }
    let rest: Vec<Value> = watching.stop();
    let late = rest.iter().filter_map(|object| own(object, &server)).filter_map(|test| test["losses"].as_array());
    let late = late.flatten().filter(|loss| loss["place"] == "firewall");
    told += late.filter_map(|loss| loss["packets"].as_f64()).sum::<f64>();
    (shares, ruled(&far), told)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn limit_says_the_share_that_a_rule_drops_and_no_last_loss_is_forgotten() {
    limit_says_the_share(&[(0.5, "8", 4)]);
}

mod release {
    #[test]
    #[ignore = "on the real kernel: tests/run"]
    fn limit_says_the_share_that_a_rule_drops_at_every_interval() {
        super::limit_says_the_share(&[(0.1, "8", 10), (1.0, "9", 2), (2.0, "15", 2), (4.0, "22", 1)]);
    }
}

/// Each by its interval, how long the client sends, and in how many ticks LIMIT says it at least.
fn limit_says_the_share(each: &[(f64, &str, usize)]) {
    needs(PROGRAMS);
    for &(interval_s, seconds, least) in each {
        let (shares, counted, told) = dropped(interval_s, seconds);
        assert!(shares.len() >= least, "-d {interval_s}: LIMIT tells the losses: {shares:?}");
        // The counters of one sample are read one after the other.
        let wrong = shares.iter().find(|share| (**share / 0.2 - 1.0).abs() > 0.1);
        assert_eq!(wrong, None, "-d {interval_s}: 20 % are lost: {shares:?}");
        assert!(counted > 1000.0 && (told - counted).abs() < 1e-6, "-d {interval_s}: {told} told, {counted} counted");
    }
}

/// vnettop and the client stand still, as a machine does whose hypervisor takes all its cores.
#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_standstill_of_the_machine_leaves_the_mean_as_the_client_has_it_and_is_a_dip() {
    needs(PROGRAMS);
    let (near, far) = veth_pair();
    let server = listening(far.command("iperf3"), &[]);
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.5"]);
    let mut watching = Watching::start(command);
    watching.next();
    let client = client(&near, &["-b", "200M", "-t", "9"]);
    let (mut ran_s, mut last) = (0.0, None);
    loop {
        let object = watching.next();
        let Some(test) = own(&object, &server) else { continue };
        if !test["ended_t_ns"].is_null() {
            break;
        }
        last = Some(test.clone());
        let elapsed_s = object["elapsed_s"].as_f64().unwrap_or(0.0);
        if ran_s < 3.0 && ran_s + elapsed_s >= 3.0 {
            let (client, vnettop) = (pid(&client), watching.pid());
            // vnettop goes on first, so that what the client catches up with is not within the same gap.
            near.run(&format!(
                "kill -STOP {client} {vnettop}; sleep 1.5; kill -CONT {vnettop}; sleep 0.5; kill -CONT {client}"
            ));
        }
        ran_s += elapsed_s;
    }
    let last = last.expect("the test was seen");
    let (mean, dip_s) = (last["mean_bits_per_s"].as_f64(), last["jitter"]["longest_dip_s"].as_f64());
    let off = mean.map(|mean| mean / 200e6 - 1.0);
    assert!(off.is_some_and(|off| off.abs() < 0.02), "bytes over time, with the standstill: {mean:?}, {off:?}");
    assert!(dip_s.is_some_and(|dip_s| dip_s > 1.0), "nothing moved for 1.5 s: {dip_s:?}");
}
