//! The benchmark tests that run, as JSON.

use super::{InJson, JsonObject, TestMetrics};
use crate::sample::{Benchmark, Direction, Proto, Reported, Unread, Whole, Word};
use serde::ser::SerializeMap;

/// What iperf 3 reported last itself.
impl JsonObject for Reported {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("at_s", &seconds(self.at_ms))?;
        object.serialize_entry("length_s", &seconds(self.length_ms))?;
        object.serialize_entry("bits_per_s", &self.bits_per_s)?;
        object.serialize_entry("retransmits", &self.retransmits)?;
        object.serialize_entry("lost_packets", &self.lost_packets)?;
        object.serialize_entry("packets", &self.packets)
    }
}

/// A whole test as iperf 3 reported it at its end.
impl JsonObject for Whole {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("length_s", &seconds(self.length_ms))?;
        object.serialize_entry("sent_bits_per_s", &self.sent_bits_per_s)?;
        object.serialize_entry("received_bits_per_s", &self.received_bits_per_s)?;
        object.serialize_entry("retransmits", &self.retransmits)?;
        object.serialize_entry("lost_packets", &self.lost_packets)?;
        object.serialize_entry("packets", &self.packets)?;
        object.serialize_entry("jitter_s", &self.jitter_ns.map(|ns| ns as f64 / 1e9))
    }
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

/// One benchmark program; what its command line and its connections do not tell is null.
impl JsonObject for Benchmark {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
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
        object.serialize_entry("asked_bits_per_s", &self.asked_bits_per_s)?;
        object.serialize_entry("length_bytes", &self.length_bytes)?;
        object.serialize_entry("affinity", &self.affinity)?;
        object.serialize_entry("reported", &self.reported.as_ref().map(|last| InJson(last, metrics)))?;
        object.serialize_entry("reported_gap", &self.unread.map(Unread::sentence))
    }
}
