//! What the real iperf 3 wrote, and what nobody would.

use super::*;
use proptest::prelude::*;

const START: &str = r#"{"event":"start","data":{"connected":[]}}"#;
const TCP: &str = r#"{"event":"interval","data":{"streams":[],"sum":{"start":1,"end":2.0001,"seconds":1.0001,"bytes":125000000,"bits_per_second":999900009.9,"retransmits":7,"omitted":false,"sender":true}}}"#;
const UDP: &str = r#"{"event":"interval","data":{"sum":{"start":0,"end":1,"seconds":1,"bits_per_second":1e6,"jitter_ms":0.1,"lost_packets":3,"packets":90,"lost_percent":3.3,"sender":false}}}"#;

#[test]
fn the_last_interval_is_taken_however_the_bytes_come() {
    let text = format!("{START}\n{UDP}\n{TCP}\n");
    let expected = Reported {
        at_ms: 2000,
        length_ms: 1000,
        bits_per_s: 999_900_010,
        retransmits: Some(7),
        lost_packets: None,
        packets: None,
    };
    for piece in [1, 7, 1000] {
        let mut lines = Lines::default();
        text.as_bytes().chunks(piece).for_each(|bytes| lines.take(bytes, true));
        assert_eq!(lines.last, Some(expected), "in pieces of {piece}");
    }
    let mut lines = Lines::default();
    lines.take(format!("{TCP}\n{UDP}\n").as_bytes(), true);
    let udp = lines.last.expect("an interval");
    assert_eq!((udp.lost_packets, udp.packets, udp.retransmits), (Some(3), Some(90), None), "what UDP tells");
    lines.take(format!("{START}\n").as_bytes(), true);
    assert_eq!(lines.last, None, "another test begins");
    lines.take(TCP.as_bytes(), true);
    assert_eq!(lines.last, None, "half a line is none");
}

#[test]
fn a_test_is_told_from_one_that_another_process_wrote_into_the_same_file() {
    let start = |ms: u64| format!(r#"{{"event":"start","data":{{"timestamp":{{"timesecs":{}}}}}}}"#, ms / 1000) + "\n";
    let began = 1_767_323_045_678;
    let mut lines = Lines::since(Some(began));
    lines.take((start(began - 2000) + TCP + "\n").as_bytes(), false);
    assert_eq!(lines.last_of_its_own(), None, "that test began before the process did");
    lines.take((start(began) + TCP + "\n").as_bytes(), false);
    assert!(lines.last_of_its_own().is_some(), "this one is its own, though nobody listened yet");
    let mut lines = Lines::since(None);
    lines.take((TCP.to_owned() + "\n").as_bytes(), false);
    assert_eq!(lines.last_of_its_own(), None, "whose it is is not known");
    lines.take((TCP.to_owned() + "\n").as_bytes(), true);
    assert!(lines.last_of_its_own().is_some(), "what comes while one listens is of the process");
}

/// What is told of the test in a captured file.
fn captured(text: &str) -> (Option<Side>, Whole) {
    let mut lines = Lines::default();
    lines.take(text.as_bytes(), true);
    assert!(lines.speaks && !lines.is_strange(), "every line is an event");
    let [reported] = lines.ended()[..] else { panic!("one test has ended") };
    reported
}

#[test]
fn a_whole_test_is_told_as_the_real_one_ends_it() {
    let (side, tcp) = captured(include_str!("../../../../../../tests/fixtures/iperf3/tcp-client.jsonl"));
    let expected = Whole {
        length_ms: 3002,
        sent_bits_per_s: Some(200_212_947),
        received_bits_per_s: Some(200_157_655),
        retransmits: Some(0),
        ..Whole::default()
    };
    assert_eq!((side, tcp), (Some(Side::Client), expected), "TCP has no datagrams");
    let (_, udp) = captured(include_str!("../../../../../../tests/fixtures/iperf3/udp-client.jsonl"));
    let expected = Whole {
        length_ms: 2002,
        sent_bits_per_s: Some(19_998_122),
        received_bits_per_s: Some(19_995_784),
        lost_packets: Some(0),
        packets: Some(5004),
        jitter_ns: Some(7339),
        ..Whole::default()
    };
    assert_eq!(udp, expected, "UDP sends nothing again");
    let (side, both) = captured(include_str!("../../../../../../tests/fixtures/iperf3/bidir-server.jsonl"));
    let rates = (both.sent_bits_per_s, both.received_bits_per_s, both.retransmits);
    assert_eq!(
        (side, rates),
        (Some(Side::Server), (None, None, None)),
        "a server knows half of either sum, which is none"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>, new: bool) {
        Lines::default().take(&bytes, new);
    }

    #[test]
    fn any_numbers_are_survived(end: f64, rate: f64, lost: i64) {
        let sum = serde_json::json!({"end": end, "seconds": 1, "bits_per_second": rate, "lost_packets": lost});
        interval(&serde_json::json!({"sum": sum}));
        whole(&serde_json::json!({"sum_sent": sum, "sum_received": sum}), None);
    }
}
