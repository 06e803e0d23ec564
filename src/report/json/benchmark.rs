//! The benchmark tests that run, as JSON.

use super::{JsonObject, Metrics};
use crate::sample::{Benchmark, Direction, Proto, Reported, Unread, Whole, Word};
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
impl JsonObject for Benchmark {
    fn fields<M: SerializeMap>(&self, _: &Metrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("pid", &self.pid)?;
        object.serialize_entry("program", self.program.word())?;
        object.serialize_entry("side", &self.side)?;
        object.serialize_entry("target", &self.target)?;
        object.serialize_entry("port", &self.port)?;
        object.serialize_entry("proto", &self.proto.map(Proto::word))?;
        object.serialize_entry("streams", &self.streams)?;
        object.serialize_entry("reverse", &self.direction.map(|direction| direction == Direction::Reverse))?;
        object.serialize_entry("bidir", &self.direction.map(|direction| direction == Direction::Both))?;
        object.serialize_entry("json_stream", &self.json_stream)?;
        object.serialize_entry("omit_s", &self.omit_ms.map(seconds))?;
        object.serialize_entry("time_s", &self.time_ms.map(seconds))?;
        object.serialize_entry("asked_bits_per_s", &self.bitrate)?;
        object.serialize_entry("length_bytes", &self.length)?;
        object.serialize_entry("affinity", &self.affinity)?;
        object.serialize_entry("reported", &self.reported.map(IntervalObject::of))?;
        object.serialize_entry("reported_gap", &self.unread.map(Unread::sentence))
    }
}
