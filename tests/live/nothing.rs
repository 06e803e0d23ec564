//! Tests that get nothing, beside one that runs well: each is told, with what waits and where it was lost last.

use crate::ground::line::until_it_traces;
use crate::ground::{Kept, Netns, VNETTOP, Watching, iperf3_server, needs, pid, veth_pair};
use serde_json::Value;
use std::process::{Command, Stdio};

const TOOLS: [&str; 4] = ["iperf3", "ip", "nft", "nsenter"];

/// A client that goes on until it is stopped.
fn client(netns: &Netns, arguments: &str) -> Kept {
    let mut command = netns.command("iperf3");
    command.args(["-c", "198.18.0.1", "-t", "60"]).args(arguments.split(' ')).stdin(Stdio::null());
    Kept(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("iperf3 starts"))
}

/// The running test of this client, once a finding `nothing_arrives` is told of it; and that the other one is told too.
fn told(watching: &mut Watching, of: u32, beside: u32) -> Value {
    let test = |object: &Value, pid: u32| {
        object["tests"].as_array().expect("a list").iter().find(|test| test["client"]["pid"] == pid).cloned()
    };
    let has_finding = |test: &Value| {
        let mut findings = test["findings"].as_array().expect("a list").iter();
        findings.any(|finding| finding["id"] == "nothing_arrives")
    };
    for _ in 0..150 {
        let object = watching.next();
        if let Some(found) = test(&object, of).filter(has_finding) {
            assert!(test(&object, beside).is_some_and(|test| test["bits_per_s"].as_f64() > Some(1e6)), "it runs well");
            return found;
        }
    }
    panic!("the test that gets nothing is told within half a minute");
}

/// What the finding says.
fn sentence(test: &Value) -> String {
    let mut findings = test["findings"].as_array().expect("a list").iter();
    let found = findings.find(|finding| finding["id"] == "nothing_arrives").expect("it is found");
    found["text"].as_str().expect("a text").to_owned()
}

/// A healthy test, and one whose packets a rule drops at its server; what is told of the second one.
fn beside_a_healthy_one(rule: &str, arguments: &str) -> Value {
    let ((near, far), (other_near, other_far)) = (veth_pair(), veth_pair());
    let _servers = [iperf3_server(&near, &[]), iperf3_server(&other_near, &[])];
    let hook = if rule.starts_with("oif") { "output" } else { "input" };
    other_near.run(&format!(
        "nft 'add table inet t; add chain inet t c {{ type filter hook {hook} priority 0; }}; add rule inet t c {rule} drop'"
    ));
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.2", "--netns", "all"]);
    let mut watching = Watching::start(command);
    let mut seen = vec![watching.next()];
    until_it_traces(&mut watching, &mut seen);
    let (healthy, stuck) = (client(&far, "-b 100M"), client(&other_far, arguments));
    let test = told(&mut watching, pid(&stuck), pid(&healthy));
    drop(watching.stop());
    assert_eq!(test["bits_per_s"], 0.0, "nothing arrives, and that is known");
    test
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_connection_through_which_no_segment_comes_is_a_test_beside_a_healthy_one() {
    needs(&TOOLS);
    let test = beside_a_healthy_one("tcp dport 5201 meta length > 300", "-P 1");
    let said = sentence(&test);
    assert!(said.contains("connected, but nothing has arrived at 198.18.0.1:5201"), "{said}");
    assert!(said.contains("by a firewall rule"), "and why: {said}");
    let limit = test["limit"]["sentence"].as_str().expect("a sentence");
    assert!(limit.starts_with("losses: "), "{limit}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_client_whose_request_to_connect_is_not_answered_is_a_test_beside_a_healthy_one() {
    needs(&TOOLS);
    let test = beside_a_healthy_one("tcp dport 5201", "-P 1");
    let said = sentence(&test);
    assert!(said.contains("198.18.0.1:5201 does not answer the request to connect"), "{said}");
    assert!(said.contains("by a firewall rule"), "and why: {said}");
    assert!(test["flows"][0]["connecting"] == true, "{test}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_test_that_pauses_has_sent_something() {
    needs(&TOOLS);
    let (near, far) = veth_pair();
    let _server = iperf3_server(&near, &[]);
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.1", "--netns", "all"]);
    let mut watching = Watching::start(command);
    let client = client(&far, "-u -b 20M");
    let own = |object: &Value| {
        object["tests"].as_array().expect("a list").iter().find(|test| test["client"]["pid"] == pid(&client)).cloned()
    };
    let mut next = |seconds: f64, check: &dyn Fn(&Value)| {
        let mut ran_s = 0.0;
        while ran_s < seconds {
            let object = watching.next();
            // As long as its control connection is silent, too.
            ran_s += own(&object).map_or(0.0, |test| {
                check(&test);
                object["elapsed_s"].as_f64().unwrap_or(0.0)
            });
        }
    };
    next(3.5, &|_| {});
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid(&client).to_string()]).status().expect("kill runs");
        assert!(sent.success());
    };
    signal("-STOP");
    let never = |test: &Value| {
        let said = format!("{} {}", test["findings"], test["limit"]);
        assert!(!said.contains("neither end"), "it has sent for seconds: {said}");
    };
    next(0.5, &never);
    signal("-CONT");
    next(1.0, &never);
}
