//! One JSON object a sample, on one line. Field names, units and nulls are the contract of docs/json.md.

mod benchmark;
mod end_to_end;
mod events;
mod finding;
mod flow;
mod latency;
mod loss;
mod ovs;
mod path;
mod profile;
mod steer;
mod test;

pub(super) use finding::Numbers;

use super::timestamp;
use crate::derive::end_to_end::{EndToEnd, HostMetrics};
use crate::derive::losses::QdiscDrops;
use crate::derive::{CoreMetrics, LinkMetrics, Metrics, TestMetrics, ThreadMetrics, Worker};
use crate::sample::{Host, LinkKey, OwnCost, Owner, PeerRef, SOFTIRQ_KINDS, Space, ThreadId, Word};
use events::{Events, Tracing};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Raised when a field changes its meaning or goes away; new fields do not raise it.
const SCHEMA_VERSION: u32 = 1;

/// Writes one object and its end of line.
///
/// # Errors
/// The output cannot be written; a closed pipe is an error of kind `BrokenPipe`.
pub fn write(out: &mut impl Write, metrics: &Metrics) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &object(metrics))?;
    out.write_all(b"\n")
}

/// That object, for whatever writes it; `schemas/json.schema.json` is made of it.
#[must_use]
pub fn object(metrics: &Metrics) -> impl Serialize {
    InJson(metrics, &metrics.subject)
}

/// Writes the object of one of several hosts, by its place, with the tests that two of them see.
///
/// # Errors
/// As of [`write()`].
pub fn write_of_host(
    out: &mut impl Write,
    hosts: &[HostMetrics<'_>],
    at: usize,
    tests: &[EndToEnd<'_>],
) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &object_of_host(hosts, at, tests))?;
    out.write_all(b"\n")
}

/// That object.
#[must_use]
pub fn object_of_host<'a>(
    hosts: &'a [HostMetrics<'a>],
    at: usize,
    tests: &'a [EndToEnd<'a>],
) -> impl Serialize + use<'a> {
    end_to_end::OfHost { hosts, at, tests }
}

/// What is an object in JSON. A field stands at one place, where it is written; `metrics` are what it is part of.
pub(super) trait JsonObject {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error>;
}

/// Such an object.
pub(super) struct InJson<'a, T>(pub &'a T, pub &'a TestMetrics);

impl<T: JsonObject> Serialize for InJson<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        self.0.fields(self.1, &mut object)?;
        object.end()
    }
}

/// A list whose rows are made while they are written, so that thousands of links need no second copy.
struct Each<'a, T>(&'a [T], &'a TestMetrics);

impl<T: JsonObject> Serialize for Each<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|row| InJson(row, self.1)))
    }
}

/// Everything of one sample, of the test that it is about.
impl JsonObject for Metrics {
    fn fields<M: SerializeMap>(&self, of: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let (machine, concluded) = (&*self.machine, &*self.conclusions);
        object.serialize_entry("schema_version", &SCHEMA_VERSION)?;
        object.serialize_entry("ts", &timestamp(machine.wall_ms))?;
        object.serialize_entry("elapsed_s", &machine.elapsed_s)?;
        object.serialize_entry("host", &InJson(&*machine.facts.host, of))?;
        object.serialize_entry("own", &InJson(&machine.own, of))?;
        object.serialize_entry("trace", &Tracing::of(machine))?;
        object.serialize_entry("tracer", &machine.tracer)?;
        object.serialize_entry("namespaces", &Each(&machine.facts.spaces, of))?;
        object.serialize_entry("links", &Each(&machine.links, of))?;
        object.serialize_entry("ovs", &Each(&machine.facts.ovs, of))?;
        object.serialize_entry("cores", &Each(&machine.cores, of))?;
        let tests_of = self.tests_of_threads();
        let workers = self.workers();
        let threads: Vec<_> = self
            .threads
            .iter()
            .map(|thread| ThreadRow {
                worker: workers.get(&thread.sample.id).copied(),
                ..ThreadRow::of(thread, &tests_of)
            })
            .collect();
        object.serialize_entry("threads", &threads)?;
        object.serialize_entry("profile", &machine.profile.as_deref().map(|profile| InJson(profile, of)))?;
        object.serialize_entry("steers", &Each(&machine.steers, of))?;
        object.serialize_entry("short_lives", &machine.short_lives)?;
        object.serialize_entry("test", &self.test)?;
        object.serialize_entry("flows", &Each(&of.flow.connections, of))?;
        object.serialize_entry("datagrams", &Each(&of.flow.tests, of))?;
        object.serialize_entry("benchmarks", &Each(&of.benchmarks, of))?;
        object.serialize_entry("losses", &Each(&of.losses.places, of))?;
        object.serialize_entry("drops", &loss::everywhere(of).as_ref().map(|drops| Each(drops, of)))?;
        object.serialize_entry("jitter", &of.jitter.as_ref().map(|jitter| InJson(jitter, of)))?;
        object.serialize_entry("events", &Events(&self.moves, of))?;
        object.serialize_entry("findings", &Each(&concluded.findings, of))?;
        object.serialize_entry("limit", &concluded.limit.as_ref().map(|limit| InJson(limit, of)))?;
        object.serialize_entry("card", &of.card.as_ref().map(|card| InJson(card, of)))?;
        let tests: Vec<_> = self.tests.iter().map(|test| InJson(&**test, of)).collect();
        object.serialize_entry("tests", &tests)?;
        object.serialize_entry("problems", &machine.facts.problems)
    }
}

impl JsonObject for Host {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("kernel", &self.kernel)?;
        object.serialize_entry("arch", &self.arch)?;
        object.serialize_entry("cores", &metrics.machine.cores.len())?;
        object.serialize_entry("nodes", &metrics.machine.facts.topology.nodes)
    }
}

impl JsonObject for OwnCost {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("cpu", &metrics.machine.own_cpu)?;
        object.serialize_entry("interval_s", &(self.interval_ns as f64 / 1e9))?;
        object.serialize_entry("late_ticks", &self.late_ticks)?;
        object.serialize_entry("left_out", &self.left_out)?;
        object.serialize_entry("behind_s", &self.behind_ns.map(|ns| ns as f64 / 1e9))?;
        object.serialize_entry("realtime", &self.realtime)?;
        object.serialize_entry("realtime_gap", &self.ordinary)?;
        object.serialize_entry("seat", &self.seat)
    }
}

/// A namespace as it was found, and as people call it: the container, guest or part of a Docker network that it is, else its
/// file's name; what NETNS shows.
impl JsonObject for Space {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("netns", &self.netns)?;
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("pid", &self.pid)?;
        object.serialize_entry("rests", &self.rests)?;
        object.serialize_entry("known_as", &metrics.machine.space_name(self.netns))
    }
}

impl JsonObject for LinkMetrics {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let (facts, counters) = (&*self.facts, self.counters.as_ref());
        let rates = self.rates.unwrap_or_default();
        let drops = counters.filter(|_| self.counts_drops());
        let space = metrics.machine.space(facts.netns);
        object.serialize_entry("netns", &facts.netns)?;
        object.serialize_entry("netns_name", &space.and_then(|space| space.name.as_deref()))?;
        object.serialize_entry("ifindex", &facts.ifindex)?;
        object.serialize_entry("name", &facts.name)?;
        object.serialize_entry("alias", &facts.alias)?;
        object.serialize_entry("kind", facts.kind.word())?;
        object.serialize_entry("state", facts.state.word())?;
        object.serialize_entry("mtu", &Some(facts.mtu).filter(|_| facts.tells_mtu()))?;
        object.serialize_entry("tx_queues", &facts.tx_queues)?;
        object.serialize_entry("rx_queues", &facts.rx_queues)?;
        object.serialize_entry("master", &facts.master.and_then(|master| link_named(metrics, facts.beside(master))))?;
        object.serialize_entry("slave_kind", &facts.slave_kind)?;
        object.serialize_entry("peer", &facts.peer.as_ref().map(|of| InJson(of, metrics)))?;
        object.serialize_entry("lower", &facts.lower.as_ref().map(|of| InJson(of, metrics)))?;
        object.serialize_entry("owner", &metrics.machine.owner(facts.key()).map(|owner| InJson(owner, metrics)))?;
        object.serialize_entry("ovs", &self.ovs.as_deref().map(|place| InJson(place, metrics)))?;
        object.serialize_entry("claim_mbps", &facts.speed_mbps)?;
        object.serialize_entry("claim_basis", self.basis.word())?;
        object.serialize_entry("rx_bits_per_s", &rates.rx_bits_per_s)?;
        object.serialize_entry("tx_bits_per_s", &rates.tx_bits_per_s)?;
        object.serialize_entry("rx_packets_per_s", &rates.rx_packets_per_s)?;
        object.serialize_entry("tx_packets_per_s", &rates.tx_packets_per_s)?;
        object.serialize_entry("mean_packet_bytes", &rates.mean_packet_bytes())?;
        object.serialize_entry("wire_packet_bytes", &self.wire_packet_bytes())?;
        object.serialize_entry("wire_share", &self.wire_share())?;
        object.serialize_entry("rx_dropped_per_s", &rates.rx_dropped_per_s)?;
        object.serialize_entry("tx_dropped_per_s", &rates.tx_dropped_per_s)?;
        object.serialize_entry("rx_errors_per_s", &rates.rx_errors_per_s)?;
        object.serialize_entry("tx_errors_per_s", &rates.tx_errors_per_s)?;
        let qdiscs = metrics.losses.of_qdiscs(facts.key());
        object.serialize_entry("qdisc_drops_per_s", &qdiscs.and_then(QdiscDrops::packets_per_s))?;
        object.serialize_entry("rx_bytes", &counters.map(|row| row.rx_bytes))?;
        object.serialize_entry("tx_bytes", &counters.map(|row| row.tx_bytes))?;
        object.serialize_entry("rx_packets", &counters.map(|row| row.rx_packets))?;
        object.serialize_entry("tx_packets", &counters.map(|row| row.tx_packets))?;
        object.serialize_entry("rx_dropped", &drops.map(|row| row.rx_dropped))?;
        object.serialize_entry("tx_dropped", &drops.map(|row| row.tx_dropped))?;
        object.serialize_entry("rx_errors", &drops.map(|row| row.rx_errors))?;
        object.serialize_entry("tx_errors", &drops.map(|row| row.tx_errors))
    }
}

/// What a link is called.
fn link_named(metrics: &TestMetrics, key: LinkKey) -> Option<&str> {
    metrics.machine.link(key).map(|link| &*link.facts.name)
}

/// A link named by another; its namespace and name are null where they are not known.
impl JsonObject for PeerRef {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let key = self.netns.map(|netns| LinkKey { netns, ifindex: self.ifindex });
        object.serialize_entry("netns", &self.netns)?;
        object.serialize_entry("ifindex", &self.ifindex)?;
        object.serialize_entry("name", &key.and_then(|key| link_named(metrics, key)))
    }
}

/// Who a link belongs to; null where it is not known.
impl JsonObject for Owner {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("type", &self.kind)?;
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("id", &self.id)?;
        object.serialize_entry("by", &self.by)?;
        object.serialize_entry("guess", &self.guess)?;
        object.serialize_entry("pod_namespace", &self.pod_namespace)
    }
}

/// Every kind by the kernel's label; all null while nothing is known.
struct Softirqs([Option<f64>; 10]);

impl Serialize for Softirqs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(SOFTIRQ_KINDS.iter().zip(&self.0).map(|(kind, rate)| (kind.word(), rate)))
    }
}

const NET_TX: usize = 2;
const NET_RX: usize = 3;

impl JsonObject for CoreMetrics {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let (place, load) = (&self.place, self.load.unwrap_or_default());
        let softirqs = load.softirqs_per_s;
        object.serialize_entry("core", &place.core)?;
        object.serialize_entry("cluster", &place.cluster)?;
        object.serialize_entry("llc", &place.llc)?;
        object.serialize_entry("node", &place.node)?;
        object.serialize_entry("socket", &place.socket)?;
        object.serialize_entry("physical", &place.physical)?;
        object.serialize_entry("capacity", &place.capacity)?;
        object.serialize_entry("online", &place.online)?;
        object.serialize_entry("isolated", &metrics.machine.facts.topology.isolated.contains(place.core))?;
        object.serialize_entry("user", &load.shares.map(|shares| shares.user))?;
        object.serialize_entry("system", &load.shares.map(|shares| shares.system))?;
        object.serialize_entry("irq", &load.shares.map(|shares| shares.irq))?;
        object.serialize_entry("softirq", &load.shares.map(|shares| shares.softirq))?;
        object.serialize_entry("steal", &load.shares.map(|shares| shares.steal))?;
        object.serialize_entry("idle", &load.shares.map(|shares| shares.idle))?;
        object.serialize_entry("net_rx_per_s", &softirqs[NET_RX])?;
        object.serialize_entry("net_tx_per_s", &softirqs[NET_TX])?;
        object.serialize_entry("softirqs_per_s", &Softirqs(softirqs))?;
        let exact = load.softirqs_exact.map_or([None; 10], |kinds| kinds.map(Some));
        object.serialize_entry("softirqs_exact", &Softirqs(exact))?;
        object.serialize_entry("softnet_processed_per_s", &load.softnet_processed_per_s)?;
        object.serialize_entry("softnet_dropped_per_s", &load.softnet_dropped_per_s)?;
        object.serialize_entry("softnet_squeezed_per_s", &load.softnet_squeezed_per_s)?;
        object.serialize_entry("ksoftirqd", &load.ksoftirqd)
    }
}

/// A thread, and the running test that it works for.
struct ThreadRow<'a> {
    thread: &'a ThreadMetrics,
    test: Option<u32>,
    /// Where between the ends it is.
    worker: Option<(&'a Worker, &'a TestMetrics)>,
}

impl<'a> ThreadRow<'a> {
    fn of(thread: &'a ThreadMetrics, tests: &BTreeMap<ThreadId, u32>) -> Self {
        Self { thread, test: tests.get(&thread.sample.id).copied(), worker: None }
    }
}

impl Serialize for ThreadRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { thread, test, worker } = self;
        let (sample, mut object) = (&thread.sample, serializer.serialize_map(None)?);
        object.serialize_entry("pid", &sample.id.pid)?;
        object.serialize_entry("tid", &sample.id.tid)?;
        object.serialize_entry("start", &sample.id.start)?;
        object.serialize_entry("name", &sample.name)?;
        object.serialize_entry("role", sample.role())?;
        let place = worker.and_then(|(worker, metrics)| worker.between(&metrics.machine, &metrics.paths));
        object.serialize_entry("hop", &place)?;
        object.serialize_entry("core", &sample.core)?;
        object.serialize_entry("allowed", &sample.allowed)?;
        object.serialize_entry("cpuset", &sample.cpuset)?;
        object.serialize_entry("cpu", &thread.cpu)?;
        object.serialize_entry("moves", &thread.moves)?;
        object.serialize_entry("moves_per_s", &thread.moves_per_s)?;
        object.serialize_entry("moves_by_class", &thread.by_class)?;
        object.serialize_entry("moves_evidence", thread.evidence.word())?;
        object.serialize_entry("voluntary_per_s", &thread.voluntary_per_s)?;
        object.serialize_entry("involuntary_per_s", &thread.involuntary_per_s)?;
        object.serialize_entry("wait", &thread.wait)?;
        object.serialize_entry("pinned", &thread.pinned)?;
        object.serialize_entry("test", test)?;
        object.end()
    }
}
