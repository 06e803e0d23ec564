//! One JSON object a sample, on one line. Field names, units and nulls are the contract of JSON.md.

mod benchmark;
mod events;
mod finding;
mod flow;
mod loss;
mod ovs;
mod owner;
mod path;
mod peer;
mod space;
mod test;

pub(super) use benchmark::WholeTest;

use super::timestamp;
use crate::derive::flow::{Connection, DatagramTest};
use crate::derive::links::LinkRates;
use crate::derive::losses::QdiscDrops;
use crate::derive::{BenchmarkMetrics, CoreMetrics, Finding, LinkMetrics, Loss, Metrics, ThreadMetrics};
use crate::sample::{Ifindex, Ordinary, Problem, SOFTIRQ_KINDS, Space, Word};
use events::{Happened, Tracing};
use finding::HeldBack;
use flow::SpreadObject;
use owner::BelongsTo;
use peer::{PeerObject, link_named, peer};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// Raised when a field changes its meaning or goes away; new fields do not raise it.
const SCHEMA_VERSION: u32 = 1;

/// Writes one object and its end of line.
///
/// # Errors
/// The output cannot be written; a closed pipe is an error of kind `BrokenPipe`.
pub fn write(out: &mut impl Write, metrics: &Metrics) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Object::of(metrics))?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct Object<'a> {
    schema_version: u32,
    ts: String,
    elapsed_s: Option<f64>,
    host: HostObject<'a>,
    own: Own,
    trace: Option<Tracing>,
    namespaces: Each<'a, Space>,
    links: Each<'a, LinkMetrics>,
    ovs: Vec<ovs::Switch<'a>>,
    cores: Each<'a, CoreMetrics>,
    threads: Each<'a, ThreadMetrics>,
    test: Option<u32>,
    flows: Each<'a, Connection>,
    datagrams: Each<'a, DatagramTest>,
    benchmarks: Each<'a, BenchmarkMetrics>,
    losses: Each<'a, Loss>,
    drops: Option<Vec<loss::Dropped<'a>>>,
    jitter: Option<SpreadObject>,
    events: Vec<Happened<'a>>,
    findings: Each<'a, Finding>,
    limit: Option<HeldBack<'a>>,
    card: Option<super::card::Proof<'a>>,
    tests: Vec<test::One<'a>>,
    problems: &'a [Problem],
}

#[derive(Serialize)]
struct HostObject<'a> {
    name: &'a str,
    kernel: &'a str,
    arch: &'a str,
    cores: usize,
    nodes: u32,
}

#[derive(Serialize)]
struct Own {
    cpu: Option<f64>,
    interval_s: f64,
    late_ticks: u64,
    left_out: u64,
    behind_s: Option<f64>,
    realtime: bool,
    realtime_gap: Option<Ordinary>,
    seat: Option<u32>,
}

/// A list whose rows are made while they are written, so that thousands of links need no second copy.
struct Each<'a, T> {
    rows: &'a [T],
    metrics: &'a Metrics,
}

impl<'a> Object<'a> {
    fn of(metrics: &'a Metrics) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            ts: timestamp(metrics.wall_ms),
            elapsed_s: metrics.elapsed_s,
            host: HostObject {
                name: &metrics.facts.host.name,
                kernel: &metrics.facts.host.kernel,
                arch: &metrics.facts.host.arch,
                cores: metrics.cores.len(),
                nodes: metrics.facts.topology.nodes,
            },
            own: Own {
                cpu: metrics.own_cpu,
                interval_s: metrics.own.interval_ns as f64 / 1e9,
                late_ticks: metrics.own.late_ticks,
                left_out: metrics.own.left_out,
                behind_s: metrics.own.behind_ns.map(|ns| ns as f64 / 1e9),
                realtime: metrics.own.realtime,
                realtime_gap: metrics.own.ordinary,
                seat: metrics.own.seat,
            },
            trace: Tracing::of(metrics),
            namespaces: Each { rows: &metrics.facts.spaces, metrics },
            links: Each { rows: &metrics.links, metrics },
            ovs: ovs::Switch::all(metrics),
            cores: Each { rows: &metrics.cores, metrics },
            threads: Each { rows: &metrics.threads, metrics },
            test: metrics.test,
            flows: Each { rows: &metrics.flow.connections, metrics },
            datagrams: Each { rows: &metrics.flow.tests, metrics },
            benchmarks: Each { rows: &metrics.benchmarks, metrics },
            losses: Each { rows: &metrics.losses.places, metrics },
            drops: loss::Dropped::all(metrics),
            jitter: SpreadObject::of(metrics),
            events: Happened::all(metrics),
            findings: Each { rows: &metrics.findings, metrics },
            limit: metrics.limit.as_ref().map(HeldBack::by),
            card: metrics.card.as_ref().map(super::card::Proof::of),
            tests: metrics.tests.iter().map(|test| test::One::of(test)).collect(),
            problems: &metrics.facts.problems,
        }
    }
}

trait JsonRow {
    type Out<'a>: Serialize
    where
        Self: 'a;
    fn row<'a>(&'a self, metrics: &'a Metrics) -> Self::Out<'a>;
}

impl<T: JsonRow> Serialize for Each<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.rows.len()))?;
        for row in self.rows {
            list.serialize_element(&row.row(self.metrics))?;
        }
        list.end()
    }
}

#[derive(Serialize)]
struct Link<'a> {
    netns: u64,
    netns_name: Option<&'a str>,
    ifindex: Ifindex,
    name: &'a str,
    alias: Option<&'a str>,
    kind: &'a str,
    state: &'a str,
    mtu: Option<u32>,
    tx_queues: Option<u32>,
    rx_queues: Option<u32>,
    master: Option<&'a str>,
    slave_kind: Option<&'a str>,
    peer: Option<PeerObject<'a>>,
    lower: Option<PeerObject<'a>>,
    owner: Option<BelongsTo<'a>>,
    ovs: Option<ovs::PortObject<'a>>,
    claim_mbps: Option<u32>,
    claim_basis: &'a str,
    rx_bits_per_s: Option<f64>,
    tx_bits_per_s: Option<f64>,
    rx_packets_per_s: Option<f64>,
    tx_packets_per_s: Option<f64>,
    mean_packet_bytes: Option<f64>,
    wire_packet_bytes: Option<f64>,
    wire_share: Option<f64>,
    rx_dropped_per_s: Option<f64>,
    tx_dropped_per_s: Option<f64>,
    rx_errors_per_s: Option<f64>,
    tx_errors_per_s: Option<f64>,
    qdisc_drops_per_s: Option<f64>,
    rx_bytes: Option<u64>,
    tx_bytes: Option<u64>,
    rx_packets: Option<u64>,
    tx_packets: Option<u64>,
    rx_dropped: Option<u64>,
    tx_dropped: Option<u64>,
    rx_errors: Option<u64>,
    tx_errors: Option<u64>,
}

impl JsonRow for LinkMetrics {
    type Out<'a> = Link<'a>;

    fn row<'a>(&'a self, metrics: &'a Metrics) -> Link<'a> {
        let (facts, rates, counters) = (&*self.facts, self.rates.as_ref(), self.counters.as_ref());
        let drops = counters.filter(|_| self.counts_drops());
        Link {
            netns: facts.netns,
            netns_name: metrics.space(facts.netns).and_then(|space| space.name.as_deref()),
            ifindex: facts.ifindex,
            name: &facts.name,
            alias: facts.alias.as_deref(),
            kind: facts.kind.word(),
            state: facts.state.word(),
            mtu: Some(facts.mtu).filter(|_| facts.tells_mtu()),
            tx_queues: facts.tx_queues,
            rx_queues: facts.rx_queues,
            master: facts.master.and_then(|master| link_named(metrics, facts.beside(master))),
            slave_kind: facts.slave_kind.as_deref(),
            peer: facts.peer.map(|of| peer(metrics, of)),
            lower: facts.lower.map(|of| peer(metrics, of)),
            owner: metrics.owner(facts.key()).map(BelongsTo::of),
            ovs: self.ovs.as_deref().map(ovs::PortObject::of),
            claim_mbps: facts.speed_mbps,
            claim_basis: self.basis.word(),
            rx_bits_per_s: rates.and_then(|rates| rates.rx_bits_per_s),
            tx_bits_per_s: rates.and_then(|rates| rates.tx_bits_per_s),
            rx_packets_per_s: rates.and_then(|rates| rates.rx_packets_per_s),
            tx_packets_per_s: rates.and_then(|rates| rates.tx_packets_per_s),
            mean_packet_bytes: rates.and_then(LinkRates::mean_packet_bytes),
            wire_packet_bytes: self.wire_packet_bytes(),
            wire_share: self.wire_share(),
            rx_dropped_per_s: rates.and_then(|rates| rates.rx_dropped_per_s),
            tx_dropped_per_s: rates.and_then(|rates| rates.tx_dropped_per_s),
            rx_errors_per_s: rates.and_then(|rates| rates.rx_errors_per_s),
            tx_errors_per_s: rates.and_then(|rates| rates.tx_errors_per_s),
            qdisc_drops_per_s: metrics.losses.of_qdiscs(facts.key()).and_then(QdiscDrops::packets_per_s),
            rx_bytes: counters.map(|row| row.rx_bytes),
            tx_bytes: counters.map(|row| row.tx_bytes),
            rx_packets: counters.map(|row| row.rx_packets),
            tx_packets: counters.map(|row| row.tx_packets),
            rx_dropped: drops.map(|row| row.rx_dropped),
            tx_dropped: drops.map(|row| row.tx_dropped),
            rx_errors: drops.map(|row| row.rx_errors),
            tx_errors: drops.map(|row| row.tx_errors),
        }
    }
}

#[derive(Serialize)]
#[allow(clippy::struct_field_names, reason = "the names of the JSON")]
struct CoreObject {
    core: u32,
    cluster: Option<u32>,
    llc: Option<u32>,
    node: Option<u32>,
    socket: Option<u32>,
    physical: Option<u32>,
    capacity: Option<u32>,
    online: bool,
    isolated: bool,
    user: Option<f64>,
    system: Option<f64>,
    irq: Option<f64>,
    softirq: Option<f64>,
    steal: Option<f64>,
    idle: Option<f64>,
    net_rx_per_s: Option<f64>,
    net_tx_per_s: Option<f64>,
    softirqs_per_s: Softirqs,
    softirqs_exact: Softirqs,
    softnet_processed_per_s: Option<f64>,
    softnet_dropped_per_s: Option<f64>,
    softnet_squeezed_per_s: Option<f64>,
    ksoftirqd: Option<f64>,
}

/// Every kind by the kernel's label; all null while nothing is known.
struct Softirqs([Option<f64>; 10]);

impl Serialize for Softirqs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for ((_, label), rate) in SOFTIRQ_KINDS.iter().zip(&self.0) {
            map.serialize_entry(label, rate)?;
        }
        map.end()
    }
}

const NET_TX: usize = 2;
const NET_RX: usize = 3;

impl JsonRow for CoreMetrics {
    type Out<'a> = CoreObject;

    fn row<'a>(&'a self, metrics: &'a Metrics) -> CoreObject {
        let (place, load) = (&self.place, self.load.as_ref());
        let (shares, exact) = (load.and_then(|load| load.shares), load.and_then(|load| load.softirqs_exact));
        let softirqs = load.map_or([None; 10], |load| load.softirqs_per_s);
        CoreObject {
            core: place.core,
            cluster: place.cluster,
            llc: place.llc,
            node: place.node,
            socket: place.socket,
            physical: place.physical,
            capacity: place.capacity,
            online: place.online,
            isolated: metrics.facts.topology.isolated.contains(place.core),
            user: shares.map(|shares| shares.user),
            system: shares.map(|shares| shares.system),
            irq: shares.map(|shares| shares.irq),
            softirq: shares.map(|shares| shares.softirq),
            steal: shares.map(|shares| shares.steal),
            idle: shares.map(|shares| shares.idle),
            net_rx_per_s: softirqs[NET_RX],
            net_tx_per_s: softirqs[NET_TX],
            softirqs_per_s: Softirqs(softirqs),
            softirqs_exact: Softirqs(exact.map_or([None; 10], |kinds| kinds.map(Some))),
            softnet_processed_per_s: load.and_then(|load| load.softnet_processed_per_s),
            softnet_dropped_per_s: load.and_then(|load| load.softnet_dropped_per_s),
            softnet_squeezed_per_s: load.and_then(|load| load.softnet_squeezed_per_s),
            ksoftirqd: load.and_then(|load| load.ksoftirqd),
        }
    }
}

#[derive(Serialize)]
struct ThreadObject<'a> {
    pid: u32,
    tid: u32,
    start: u64,
    name: &'a str,
    role: &'a str,
    core: u32,
    allowed: Option<String>,
    cpuset: Option<String>,
    cpu: Option<f64>,
    moves: u64,
    moves_per_s: Option<f64>,
    moves_by_class: ByClass,
    moves_evidence: &'a str,
    voluntary_per_s: Option<f64>,
    involuntary_per_s: Option<f64>,
    wait: Option<f64>,
    pinned: bool,
    test: Option<u32>,
}

#[derive(Serialize)]
struct ByClass {
    smt: u64,
    cluster: u64,
    llc: u64,
    node: u64,
    socket: u64,
}

impl JsonRow for ThreadMetrics {
    type Out<'a> = ThreadObject<'a>;

    fn row<'a>(&'a self, _: &'a Metrics) -> ThreadObject<'a> {
        let (sample, by) = (&self.sample, self.by_class);
        ThreadObject {
            pid: sample.id.pid,
            tid: sample.id.tid,
            start: sample.id.start,
            name: &sample.name,
            role: sample.role(),
            core: sample.core,
            allowed: sample.allowed.as_ref().map(ToString::to_string),
            cpuset: sample.cpuset.as_ref().map(ToString::to_string),
            cpu: self.cpu,
            moves: self.moves,
            moves_per_s: self.moves_per_s,
            moves_by_class: ByClass { smt: by.smt, cluster: by.cluster, llc: by.llc, node: by.node, socket: by.socket },
            moves_evidence: self.evidence.word(),
            voluntary_per_s: self.voluntary_per_s,
            involuntary_per_s: self.involuntary_per_s,
            wait: self.wait,
            pinned: self.pinned,
            test: self.test,
        }
    }
}
