//! The benchmark tests that run, as JSON.

use super::{JsonObject, Metrics};
use crate::derive::BenchmarkMetrics;
use crate::sample::{Direction, Proto, Reported, Unread, Whole, Word};
use serde::Serialize;
use serde::ser::SerializeMap;

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

/// One benchmark program; what its command line and its connections do not tell is null.
impl JsonObject for BenchmarkMetrics {
    fn fields<M: SerializeMap>(&self, _: &Metrics, object: &mut M) -> Result<(), M::Error> {
        let (test, direction) = (&self.test, self.direction);
        object.serialize_entry("pid", &test.pid)?;
        object.serialize_entry("program", test.program.word())?;
        object.serialize_entry("side", &test.side)?;
        object.serialize_entry("target", &test.target)?;
        object.serialize_entry("port", &test.port)?;
        object.serialize_entry("proto", &self.proto.map(Proto::word))?;
        object.serialize_entry("streams", &self.streams)?;
        object.serialize_entry("reverse", &direction.map(|direction| direction == Direction::Reverse))?;
        object.serialize_entry("bidir", &direction.map(|direction| direction == Direction::Both))?;
        object.serialize_entry("json_stream", &test.json_stream)?;
        object.serialize_entry("omit_s", &test.omit_ms.map(seconds))?;
        object.serialize_entry("time_s", &test.time_ms.map(seconds))?;
        object.serialize_entry("asked_bits_per_s", &test.bitrate)?;
        object.serialize_entry("length_bytes", &test.length)?;
        object.serialize_entry("affinity", &test.affinity)?;
        object.serialize_entry("reported", &test.reported.map(IntervalObject::of))?;
        object.serialize_entry("reported_gap", &test.unread.map(Unread::sentence))
    }
}
