//! A flow's path as JSON: a hop an object, in the order of the packets.

use super::{InJson, JsonObject};
use crate::derive::paths::{CarrierMetrics, HopMetrics};
use crate::derive::{TestMetrics, Worker};
use crate::sample::{Offloads, Word};
use serde::ser::SerializeMap;

/// One link of a path.
impl JsonObject for HopMetrics<'_> {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let facts = self.link.map(|link| &*link.facts);
        let softirq = self.softirq.as_ref();
        object.serialize_entry("netns", &self.hop.link.netns)?;
        object.serialize_entry("ifindex", &self.hop.link.ifindex)?;
        object.serialize_entry("name", &facts.map(|facts| &facts.name))?;
        object.serialize_entry("kind", &facts.map(|facts| facts.kind.word()))?;
        object.serialize_entry("way", self.hop.way.word())?;
        object.serialize_entry("by", self.hop.by.word())?;
        object.serialize_entry("bits_per_s", &self.bits_per_s)?;
        object.serialize_entry("packets_per_s", &self.packets_per_s)?;
        object.serialize_entry("dropped_per_s", &self.dropped_per_s)?;
        object.serialize_entry("qdisc_drops_per_s", &self.qdisc_drops_per_s)?;
        object.serialize_entry("upcalls_lost_per_s", &self.upcalls_lost_per_s)?;
        // Of the flows' own packets, as the kernel says; null where it is not asked.
        object.serialize_entry("lost_per_s", &self.lost_per_s)?;
        object.serialize_entry("mtu", &self.mtu())?;
        object.serialize_entry("claim_mbps", &facts.and_then(|facts| facts.speed_mbps))?;
        object.serialize_entry("claim_basis", &self.link.map(|link| link.basis.word()))?;
        object.serialize_entry("offloads", &self.offloads.map(|offloads| InJson(offloads, metrics)))?;
        object.serialize_entry("offloads_unknown", &offloads_unknown(self))?;
        // In the kernel's syntax, what puts the packets onto these cores, and why neither is known.
        object.serialize_entry("softirq_cores", &softirq.ok().map(|softirq| &softirq.cores))?;
        object.serialize_entry("softirq_by", &softirq.ok().map(|softirq| softirq.by.word()))?;
        object.serialize_entry("softirq_unknown", &softirq.err().map(ToString::to_string))?;
        // Of the flow's own packets, each core with its share, while that is counted.
        let flow = self.flow.as_ref();
        object.serialize_entry("flow_cores", &flow.map(|flow| &flow.shares))?;
        object.serialize_entry("flow_packets_per_s", &flow.map(|flow| flow.packets_per_s))?;
        object.serialize_entry("core_switches_per_s", &flow.map(|flow| flow.switches_per_s))?;
        object.serialize_entry("flow_counted_s", &flow.map(|flow| flow.over_s))?;
        object.serialize_entry("flow_counted_to_t_ns", &flow.map(|flow| flow.at_ns))
    }
}

/// A program between two links: what the link before it gave it, what it gave the link behind it, and its threads.
impl JsonObject for CarrierMetrics<'_> {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let threads: Vec<u32> = self.workers.iter().map(|worker| worker.id().tid).collect();
        object.serialize_entry("at", &self.carrier.at)?;
        object.serialize_entry("kind", self.carrier.kind.word())?;
        object.serialize_entry("pid", &self.carrier.pid)?;
        object.serialize_entry("name", &self.carrier.name)?;
        object.serialize_entry("packets_in", &self.went_in.map(|passed| passed.packets))?;
        object.serialize_entry("packets_out", &self.came_out.map(|passed| passed.packets))?;
        object.serialize_entry("packets_in_per_s", &self.went_in.and_then(|passed| passed.per_s))?;
        object.serialize_entry("packets_out_per_s", &self.came_out.and_then(|passed| passed.per_s))?;
        object.serialize_entry("threads", &threads)
    }
}

/// A thread that carries packets between the ends.
impl JsonObject for Worker {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let (sample, fixed) = (&self.thread.sample, self.unplaceable());
        object.serialize_entry("pid", &sample.id.pid)?;
        object.serialize_entry("tid", &sample.id.tid)?;
        object.serialize_entry("name", &sample.name)?;
        object.serialize_entry("role", sample.role())?;
        object.serialize_entry("of", &self.carrier)?;
        object.serialize_entry("hop", &self.at)?;
        object.serialize_entry("place", &self.between(&metrics.machine, &metrics.paths))?;
        object.serialize_entry("core", &sample.core)?;
        object.serialize_entry("cpu", &self.thread.cpu)?;
        object.serialize_entry("wait", &self.thread.wait)?;
        object.serialize_entry("moves", &self.thread.moves)?;
        object.serialize_entry("moves_per_s", &self.thread.moves_per_s)?;
        object.serialize_entry("pinned", &self.thread.pinned)?;
        object.serialize_entry("fixed", &fixed.as_ref().map(|fixed| &fixed.why))?;
        object.serialize_entry("fixed_line", &fixed.as_ref().map(|fixed| &fixed.line))
    }
}

/// What is on, and what it depends on.
impl JsonObject for Offloads {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("tso", &self.tso)?;
        object.serialize_entry("gso", &self.gso)?;
        object.serialize_entry("gro", &self.gro)?;
        object.serialize_entry("tx_checksum", &self.tx_checksum)?;
        object.serialize_entry("rx_checksum", &self.rx_checksum)?;
        object.serialize_entry("gso_max_size", &self.gso_limits.map(|limits| limits.size))?;
        object.serialize_entry("gso_ipv4_max_size", &self.gso_limits.and_then(|limits| limits.ipv4_size))?;
        object.serialize_entry("gso_max_segs", &self.gso_limits.map(|limits| limits.segments))?;
        // By its number; null also where several run there.
        object.serialize_entry("xdp_program", &self.xdp.and_then(|program| program.id))
    }
}

/// Why a hop's offloads are not known.
fn offloads_unknown(hop: &HopMetrics<'_>) -> Option<&'static str> {
    let only_ovs = hop.hop.link.ifindex.kernel().is_none();
    let why = if only_ovs {
        "only Open vSwitch knows this link"
    } else {
        "its driver or this kernel does not say, or its namespace cannot be entered"
    };
    hop.offloads.is_none().then_some(why)
}
