//! UDP tests, against what iperf3 reports and ss says of them.

use super::*;
use crate::ground;

/// A UDP test between two namespaces: what iperf3 says of it, when it ended (s since 1970), and every object of vnettop with its
/// rate. Both ends are watched by their pids and read twice a second.
fn datagrams(arguments: &[&str]) -> (Value, f64, Vec<Value>) {
    let (near, far) = veth_pair();
    let server = ground::iperf3_server(&near, &[]);
    let mut command = far.command("iperf3");
    command.args(["-u", "-c", "198.18.0.1", "-J", "-i", "0.1", "-t", "6"]).args(arguments).stdout(Stdio::piped());
    let mut client = Kept(command.spawn().expect("iperf3 starts"));
    let mut out = client.0.stdout.take().expect("piped");
    let report = std::thread::spawn(move || {
        let mut report = String::new();
        std::io::Read::read_to_string(&mut out, &mut report).expect("it is text");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        (report, now.as_secs_f64())
    });
    let mut vnettop = watching(&near, &server, &client, "0.5");
    let mut objects: Vec<Value> = Vec::new();
    let is_over = |object: &Value| list(object, "datagrams").is_empty();
    // From its first flow to its end.
    while objects.last().is_none_or(|object| !is_over(object)) {
        let object = vnettop.next();
        if !objects.is_empty() || !is_over(&object) {
            objects.push(object);
        }
    }
    let (report, ended_s) = report.join().expect("it is read");
    (serde_json::from_str(&report).expect("iperf3 prints its figures as JSON"), ended_s, objects)
}

/// Bytes that iperf3's client had counted at a time since its start, by its own intervals.
fn counted(report: &Value, at_s: f64) -> f64 {
    let sums = list(report, "intervals").iter().map(|interval| &interval["sum"]);
    let part = |sum: &Value| {
        let number = |field: &str| sum[field].as_f64().expect("a number");
        number("bytes") * ((at_s - number("start")) / (number("end") - number("start"))).clamp(0.0, 1.0)
    };
    sums.map(part).sum()
}

/// Until the kernel can be asked the counters of the namespaces stand for the sockets: nothing else is in them.
fn is_source(source: &Value) -> bool {
    source == "udp_sockets" || source == "udp_datagrams"
}

/// What iperf3 reports of the datagrams that it sent and received, against vnettop's own rates over the same seconds.
fn assert_datagrams_are_iperf3s_own(streams: usize, length: u64, arguments: &[&str]) {
    let (report, ended_s, objects) = datagrams(arguments);
    let (sent, received) = (&report["end"]["sum_sent"], &report["end"]["sum_received"]);
    let began_s = ended_s - sent["end"].as_f64().expect("a time");
    let at_s = |object: &Value| {
        let time: jiff::Timestamp = object["ts"].as_str().expect("a time").parse().expect("a time");
        time.as_duration().as_secs_f64() - began_s
    };
    // For a moment only one of both sockets may be there: then there is no whole test.
    let is_known = |object: &&Value| {
        let [test] = &list(object, "datagrams")[..] else { return false };
        test["sent_bits_per_s"].is_f64() && test["received_bits_per_s"].is_f64()
    };
    let known: Vec<&Value> = objects.iter().filter(is_known).collect();
    // The last one of them may be over within its interval.
    let whole = &known[..known.len() - 1];
    assert!(whole.len() >= 8, "every interval of the test but its ends has a rate: {objects:?}");
    let tests: Vec<&Value> = whole.iter().map(|object| &list(object, "datagrams")[0]).collect();
    let mean = |field: &str| {
        let amounts = whole.iter().zip(&tests).map(|(object, test)| {
            test[field].as_f64().expect("a rate") * object["elapsed_s"].as_f64().expect("a time")
        });
        amounts.sum::<f64>() / whole.iter().map(|object| object["elapsed_s"].as_f64().expect("a time")).sum::<f64>()
    };
    let (to_s, elapsed_s) = (at_s(whole[whole.len() - 1]), whole[0]["elapsed_s"].as_f64().expect("a time"));
    let from_s = at_s(whole[0]) - elapsed_s;
    let theirs = (counted(&report, to_s) - counted(&report, from_s)) * 8.0 / (to_s - from_s);
    let (near, other) = ("sent_bits_per_s", "received_bits_per_s");
    let (clients, servers) = if arguments.contains(&"-R") { (other, near) } else { (near, other) };
    let off = (mean(clients) / theirs - 1.0) * 100.0;
    // The client counts its own end in intervals, of the other one the sum is known.
    let share = received["bytes"].as_f64().expect("bytes") / sent["bytes"].as_f64().expect("bytes");
    let off_share = (mean(other) / mean(near) / share - 1.0) * 100.0;
    eprintln!(
        "{arguments:?} {clients} {:.0}, iperf3 {theirs:.0} bits/s, {off:+.2} %; {servers} {off_share:+.2} %",
        mean(clients)
    );
    assert!(off.abs() < 1.0, "{clients} is within 1 % of iperf3's own: {off:+.2} %");
    assert!(off_share.abs() < 1.0, "{servers} too: {off_share:+.2} %");
    let packets = mean("sent_packets_per_s") * 8.0 * length as f64 / mean("sent_bits_per_s");
    assert!((packets - 1.0).abs() < 1e-6, "datagrams are of {length} bytes: {packets}");
    for test in tests {
        assert_eq!((&test["streams"], &test["length_bytes"]), (&streams.into(), &length.into()), "{test}");
        assert!(is_source(&test["source"]) && test["gap"].is_null(), "{test}");
    }
    let flows = || objects[2..objects.len() - 2].iter().filter_map(|object| list(object, "flows").first());
    assert!(flows().all(|flow| flow["proto"] == "udp" && flow["control"] == false), "data come first");
    if streams == 1 {
        let says = |flow: &Value| is_source(&flow["bits_per_s_source"]) || flow["bits_per_s_gap"].is_string();
        assert!(flows().all(says), "and their rate says its source, or why it is not known");
    } else {
        let is_own = |flow: &Value| flow["bits_per_s"].is_f64() && flow["bits_per_s_source"] == "udp_sockets";
        let says_why = |flow: &Value| flow["bits_per_s"].is_null() && flow["bits_per_s_gap"].is_string();
        assert!(flows().all(|flow| is_own(flow) || says_why(flow)), "or why not");
        assert!(flows().any(is_own), "each stream has its own once the kernel can be asked");
    }
    let controls = objects.iter().flat_map(|object| list(object, "flows")).filter(|flow| flow["proto"] == "tcp");
    assert!(controls.into_iter().all(|flow| flow["control"] == true), "the idle connection is marked");
    let jitters = objects.iter().map(|object| &object["jitter"]).filter(|jitter| jitter.is_object());
    assert!(jitters.into_iter().all(|jitter| jitter["basis"] == "datagrams"), "the flow is the datagrams'");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_udp_test_has_iperf3s_own_rate_with_large_and_small_datagrams() {
    needs(&["iperf3", "ip", "nsenter"]);
    assert_datagrams_are_iperf3s_own(1, 1470, &["-b", "5M", "-l", "1470"]);
    assert_datagrams_are_iperf3s_own(1, 64, &["-b", "500K", "-l", "64"]);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_udp_test_without_a_length_has_the_one_that_iperf3_takes() {
    needs(&["iperf3", "ip", "nsenter"]);
    assert_datagrams_are_iperf3s_own(1, 1448, &["-b", "5M"]);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn four_udp_streams_have_iperf3s_own_rate_together_and_reversed_too() {
    needs(&["iperf3", "ip", "nsenter"]);
    assert_datagrams_are_iperf3s_own(4, 1470, &["-b", "1M", "-l", "1470", "-P", "4"]);
    assert_datagrams_are_iperf3s_own(4, 64, &["-b", "100K", "-l", "64", "-P", "4", "-R"]);
    assert_datagrams_are_iperf3s_own(1, 1470, &["-b", "5M", "-l", "1470", "-R"]);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn datagrams_lost_at_the_receivers_socket_are_what_ss_says() {
    needs(&["iperf3", "ip", "nsenter", "ss"]);
    let (near, far) = veth_pair();
    let server = ground::iperf3_server(&near, &[]);
    let client = far.keep("iperf3", &["-c", "198.18.0.1", "-u", "-b", "20M", "-t", "60"]);
    let mut vnettop = watching(&near, &server, &client, "0.3");
    let udp = |object: &Value| list(object, "flows").iter().find(|flow| flow["proto"] == "udp").cloned();
    let is_whole = |flow: &Value| flow["from"]["pid"] == pid(&client) && flow["to"]["pid"] == pid(&server);
    let flow =
        (0..30).find_map(|_| udp(&vnettop.next()).filter(is_whole)).expect("one flow, both ends known, within 9 s");
    assert_eq!(flow["to"]["addr"], "198.18.0.1", "the server's end: {flow}");
    assert!(flow["retransmits_per_s"].is_null() && flow["cwnd_bytes"].is_null(), "UDP has neither: {flow}");
    let before = number(&ss(&near, "-uam", &"5201".into()), ",d").expect("ss tells the drops");
    assert!(before.abs() < 0.5, "nothing is dropped yet");
    // The server reads nothing more: its buffer fills, and the rest is dropped.
    signal(&server, "-STOP");
    let dropping = (0..40)
        .map(|_| vnettop.next())
        .find(|object| udp(object).is_some_and(|flow| flow["lost_per_s"].as_f64() > Some(100.0)));
    let dropping = udp(&dropping.expect("the drops are told within 12 s")).expect("it is there");
    assert_eq!(dropping["lost_per_s_source"], "receive_buffer", "the place is named: {dropping}");
    let (lost, sent) = (dropping["lost_per_s"].as_f64().expect("a rate"), 20e6 / 8.0 / 1448.0);
    assert!(lost < sent * 1.5, "not more than is sent ({sent:.0}): {lost:.0}");
    // The client stops too: the socket stands still.
    signal(&client, "-STOP");
    vnettop.next();
    vnettop.next();
    let flow = udp(&vnettop.next()).expect("it is still there");
    let all = near.output("ss -uamnOH sport = :5201");
    let told = all.lines().find(|line| line.contains("198.18.0.2")).unwrap_or_else(|| panic!("ss shows it: {all}"));
    for (field, word) in [("rx_queue_bytes", "skmem:(r"), ("rx_buffer_bytes", ",rb")] {
        assert_eq!(flow[field].as_f64(), number(told, word), "{field} is ss' {word}: {flow}\n{told}");
    }
    assert_eq!(flow["lost_per_s"], 0.0, "nothing more is lost");
    let [told] =
        &list(&vnettop.next(), "benchmarks").iter().filter(|one| one["side"] == "server").cloned().collect::<Vec<_>>()
            [..]
    else {
        panic!("one server")
    };
    let expected: [Value; 3] = ["udp".into(), 1.into(), false.into()];
    assert!([&told["proto"], &told["streams"], &told["reverse"]].into_iter().eq(&expected), "its test: {told}");
    signal(&client, "-CONT");
    signal(&server, "-CONT");
}
