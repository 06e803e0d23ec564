//! What the card has counted: limits, the rate of UDP, and drops of the first and the last tick.

use super::*;
use crate::ground::needs;

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_broken_limit_is_three() {
    needs(&["iperf3"]);
    let _alone = IPERF3.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().expect("a directory");
    let (code, printed, ..) = iperf3(dir.path(), &["--max-cv", "0.0001%"], "5");
    assert_eq!(code, Some(3), "no benchmark is as steady as that: {printed}");
    assert_eq!(json(&printed)["limits"][0]["broken"], true, "{printed}");
    let dir = tempfile::tempdir().expect("a directory");
    let (code, printed, ..) = iperf3(dir.path(), &["--max-cv", "500%", "--settle", "0.5"], "3");
    assert_eq!(code, Some(0), "a wide limit is kept: {printed}");
}

/// `vnettop run` from outside of two namespaces, on `iperf3 -u` in the second of them with these arguments: the card, and
/// what iperf3 printed. The server in the first one is watched by its pid.
pub fn udp_from_outside(ends: &(Netns, Netns), server: &Kept, interval: &str, arguments: &[&str]) -> (Value, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let card = dir.path().join("card.json");
    let (pid, inside) = (server.0.id().to_string(), ends.1.pid().to_string());
    let client = ["nsenter", "-t", &inside, "-n", "iperf3", "-u", "-c", "198.18.0.1", "-f", "k"];
    let options = ["-d", interval, "--settle", "0.5", "--watch", &pid, "--format", "json", "--card"];
    let options = [&options[..], &[card.to_str().expect("text")]].concat();
    let (code, out, err) = output(run(&options, &[&client[..], arguments].concat()));
    assert_eq!(code, Some(0), "iperf3 ran: {out}{err}");
    (json(&fs::read_to_string(card).expect("a card")), out)
}

/// The rate in the last line of iperf3 that ends so, bits/s.
pub fn printed_rate(out: &str, end: &str) -> f64 {
    let line = out.lines().rfind(|line| line.trim_end().ends_with(end)).unwrap_or_else(|| panic!("{end}: {out}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "Kbits/sec").expect("a rate");
    words[at - 1].parse::<f64>().expect("a number") * 1e3
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_udp_test_in_other_namespaces_has_a_rate_and_its_own_name() {
    needs(&["iperf3", "ip", "nsenter"]);
    let ends = veth_pair();
    let server = iperf3_server(&ends.0, &[]);
    let (card, out) = udp_from_outside(&ends, &server, "0.1", &["-b", "5M", "-l", "500", "-t", "6"]);
    assert_eq!(card["basis"], serde_json::json!({ "of": "datagrams", "connections": 1, "link": null }), "{card}");
    assert_eq!(card["missing"], Value::Array(Vec::new()), "nothing is missing: {card}");
    let mean = card["jitter"]["mean_bits_per_s"].as_f64().expect("a rate");
    let theirs = printed_rate(&out, "receiver");
    let off = (mean / theirs - 1.0) * 100.0;
    eprintln!("card {mean:.0}, iperf3 {theirs:.0} bits/s, {off:+.2} %");
    assert!(off.abs() < 1.0, "it is iperf3's own: {off:+.2} %");
    // Busy enough to be named.
    let (card, _) = udp_from_outside(&ends, &server, "0.1", &["-b", "0", "-l", "200", "-t", "3"]);
    let watched = card["watched"].as_array().expect("a list");
    assert!(!watched.is_empty() && watched.iter().all(|one| one["name"] == "iperf3"), "nobody is nsenter: {card}");
    assert!(watched.iter().all(|one| one["role"] != "worker"), "and each has its role: {card}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_is_dropped_in_the_first_and_the_last_tick_counts() {
    needs(&["iperf3", "ip", "nsenter", "tc"]);
    let ends = veth_pair();
    let server = iperf3_server(&ends.0, &[]);
    // The kernel's own counters: of a qdisc in the sender's namespace, of socket buffers in the receiver's.
    let number = |text: String| text.trim().parse::<f64>().unwrap_or_else(|_| panic!("a number: {text}"));
    let by_qdisc =
        || number(ends.1.output("tc -s qdisc show dev v1 | grep -o 'dropped [0-9]*' | head -1 | cut -d' ' -f2"));
    let by_sockets = || number(ends.0.output("awk '/^Udp:/ { dropped = $6 } END { print dropped }' /proc/net/snmp"));
    let near = |what: &str, ours: &Value, theirs: f64| {
        let ours = ours.as_f64().expect("a count");
        eprintln!("{what}: {ours}, the kernel {theirs}");
        assert!(theirs > 1000.0, "{what}: there is something to count: {theirs}");
        assert!((ours / theirs - 1.0).abs() <= 0.005, "{what} within 0.5 %: {ours}, the kernel {theirs}");
    };
    ends.1.run("tc qdisc add dev v1 root tbf rate 10mbit burst 16k limit 30k");
    let before = by_qdisc();
    let (card, _) = udp_from_outside(&ends, &server, "0.5", &["-b", "40M", "-l", "1000", "-t", "3"]);
    near("drops of the qdisc", &card["drops"]["qdiscs"], by_qdisc() - before);
    ends.1.run("tc qdisc del dev v1 root");
    let before = by_sockets();
    // A small buffer at both ends.
    let (card, _) = udp_from_outside(&ends, &server, "0.5", &["-b", "200M", "-l", "500", "-t", "3", "-w", "3K"]);
    near("drops of socket buffers", &card["drops"]["sockets"], by_sockets() - before);
}

/// iperf3 reads the same `tcp_info` at the end of each of its intervals.
#[test]
#[ignore = "on the real kernel: tests/run"]
fn answers_take_as_long_as_iperf3_says() {
    needs(&["iperf3", "ip", "nsenter", "tc"]);
    let ends = veth_pair();
    let _server = iperf3_server(&ends.0, &[]);
    // A queue in which the sender keeps some milliseconds: answers take much longer than on the idle path.
    ends.1.run("tc qdisc add dev v1 root tbf rate 200mbit burst 64k limit 625k");
    let dir = tempfile::tempdir().expect("a directory");
    let card = dir.path().join("card.json");
    let inside = ends.1.pid().to_string();
    let client = ["nsenter", "-t", &inside, "-n", "iperf3", "-c", "198.18.0.1", "-t", "8", "-i", "0.5", "--json"];
    let options = ["-d", "0.1", "--settle", "1", "--format", "json", "--card", card.to_str().expect("text")];
    let (code, out, err) = output(run(&options, &client));
    assert_eq!(code, Some(0), "iperf3 ran: {out}{err}");
    let (card, theirs) = (json(&fs::read_to_string(card).expect("a card")), json(&out));
    let (ours, stream) = (&card["round_trips"], &theirs["end"]["streams"][0]["sender"]);
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("a number: {card} {stream}"));
    let mut of_intervals: Vec<f64> = theirs["intervals"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|one| number(&one["sum"]["start"]) >= 1.0)
        .map(|one| number(&one["streams"][0]["rtt"]))
        .collect();
    of_intervals.sort_by(f64::total_cmp);
    let (p50, median) = (number(&ours["p50_us"]), of_intervals[of_intervals.len() / 2]);
    eprintln!("{ours}, iperf3's median {median}, least {}", stream["min_rtt"]);
    assert!((p50 / median - 1.0).abs() < 0.25, "the median of iperf3's readings: {ours} {of_intervals:?}");
    assert!(p50 > 1000.0 && number(&ours["least_us"]) < 0.2 * p50, "the queue is not in the least: {ours}");
    assert!(number(&ours["least_us"]) <= number(&stream["min_rtt"]), "nobody saw less: {ours} {stream}");
}
