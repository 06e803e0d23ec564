//! The benchmark tests that run, as JSON.

use super::JsonRow;
use crate::derive::{BenchmarkMetrics, Metrics};
use crate::sample::{Direction, Reported, Side, Unread, Whole, Word};
use serde::Serialize;

/// One benchmark program; what its command line and its connections do not tell is null.
#[derive(Serialize)]
pub(super) struct BenchmarkObject<'a> {
    pid: u32,
    program: &'a str,
    side: Side,
    target: Option<&'a str>,
    port: u16,
    proto: Option<&'a str>,
    streams: Option<u32>,
    reverse: Option<bool>,
    bidir: Option<bool>,
    json_stream: bool,
    omit_s: Option<f64>,
    time_s: Option<f64>,
    asked_bits_per_s: Option<u64>,
    length_bytes: Option<u64>,
    affinity: Option<&'a str>,
    reported: Option<IntervalObject>,
    reported_gap: Option<&'a str>,
}

/// What iperf 3 reported last itself.
#[derive(Serialize)]
pub(super) struct IntervalObject {
    at_s: f64,
    length_s: f64,
    bits_per_s: u64,
    retransmits: Option<u64>,
    lost_packets: Option<u64>,
    packets: Option<u64>,
}

impl IntervalObject {
    pub(super) fn of(reported: Reported) -> Self {
        let Reported { at_ms, length_ms, bits_per_s, retransmits, lost_packets, packets } = reported;
        Self { at_s: seconds(at_ms), length_s: seconds(length_ms), bits_per_s, retransmits, lost_packets, packets }
    }
}

/// A whole test as iperf 3 reported it at its end.
#[derive(Serialize)]
pub(crate) struct WholeTest {
    length_s: f64,
    sent_bits_per_s: Option<u64>,
    received_bits_per_s: Option<u64>,
    retransmits: Option<u64>,
    lost_packets: Option<u64>,
    packets: Option<u64>,
    jitter_s: Option<f64>,
}

impl WholeTest {
    pub(crate) fn of(whole: Whole) -> Self {
        let Whole { length_ms, sent_bits_per_s, received_bits_per_s, retransmits, lost_packets, packets, jitter_ns } =
            whole;
        let (length_s, jitter_s) = (seconds(length_ms), jitter_ns.map(|ns| ns as f64 / 1e9));
        Self { length_s, sent_bits_per_s, received_bits_per_s, retransmits, lost_packets, packets, jitter_s }
    }
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

impl JsonRow for BenchmarkMetrics {
    type Out<'a> = BenchmarkObject<'a>;

    fn row<'a>(&'a self, _: &'a Metrics) -> BenchmarkObject<'a> {
        let test = &self.test;
        BenchmarkObject {
            pid: test.pid,
            program: test.program.word(),
            side: test.side,
            target: test.target.as_deref(),
            port: test.port,
            proto: self.proto.map(Into::into),
            streams: self.streams,
            reverse: self.direction.map(|direction| direction == Direction::Reverse),
            bidir: self.direction.map(|direction| direction == Direction::Both),
            json_stream: test.json_stream,
            omit_s: test.omit_ms.map(seconds),
            time_s: test.time_ms.map(seconds),
            asked_bits_per_s: test.bitrate,
            length_bytes: test.length,
            affinity: test.affinity.as_deref(),
            reported: test.reported.map(IntervalObject::of),
            reported_gap: test.unread.map(Unread::sentence),
        }
    }
}
