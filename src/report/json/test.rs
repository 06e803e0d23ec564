//! The tests as JSON: each with its two ends, its flows, and what was found of it alone.

use super::flow::Relay;
use super::{Each, InJson, JsonObject};
use crate::derive::{Test, TestMean, TestMetrics};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The time that a mean covers.
struct MeanOver(TestMean);

impl Serialize for MeanOver {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(3))?;
        object.serialize_entry("from_t_ns", &self.0.from_ns)?;
        object.serialize_entry("to_t_ns", &self.0.to_ns)?;
        object.serialize_entry("known_s", &self.0.known_s)?;
        object.end()
    }
}

/// One test; of one that has ended there are no losses, no findings and no rate of now, and the rest is as it was last.
impl JsonObject for Test {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let (metrics, runs) = (&*self.metrics, self.ended_ns.is_none());
        let [client, server] = self.ends();
        let threads: Vec<_> = metrics.threads.iter().map(|thread| thread.sample.id.tid).collect();
        object.serialize_entry("number", &self.number)?;
        object.serialize_entry("client", &client.as_ref().map(|end| InJson(end, metrics)))?;
        object.serialize_entry("server", &server.as_ref().map(|end| InJson(end, metrics)))?;
        // Between the two.
        object.serialize_entry("relay", &metrics.flow.copied().and_then(|copied| Relay::of(metrics, copied)))?;
        object.serialize_entry("began_t_ns", &self.began_ns)?;
        object.serialize_entry("ended_t_ns", &self.ended_ns)?;
        object.serialize_entry("bits_per_s", &metrics.flow.bits_per_s.filter(|_| runs))?;
        object.serialize_entry("mean_bits_per_s", &self.mean.map(|mean| mean.bits_per_s))?;
        object.serialize_entry("mean_over", &self.mean.map(MeanOver))?;
        object.serialize_entry("lost_packets", &self.lost)?;
        object.serialize_entry("threads", &threads)?;
        object.serialize_entry("workers", &Each(if runs { &metrics.workers } else { &[] }, metrics))?;
        object.serialize_entry("flows", &Each(&metrics.flow.connections, metrics))?;
        object.serialize_entry("datagrams", &Each(&metrics.flow.tests, metrics))?;
        object.serialize_entry("jitter", &metrics.jitter.as_ref().map(|jitter| InJson(jitter, metrics)))?;
        let latency = metrics.latency.as_deref().filter(|one| runs && one.measured_ago_s.is_none());
        object.serialize_entry("latency", &latency.map(|latency| InJson(latency, metrics)))?;
        object.serialize_entry("losses", &Each(&metrics.losses.places, metrics))?;
        object.serialize_entry("findings", &Each(&self.conclusions.findings, metrics))?;
        object.serialize_entry("limit", &self.conclusions.limit.as_ref().map(|limit| InJson(limit, metrics)))?;
        object.serialize_entry("card", &metrics.card.as_ref().map(|card| InJson(card, metrics)))
    }
}
