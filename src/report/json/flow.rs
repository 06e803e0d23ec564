//! The watched flow as JSON: its connections, and the spread of its rate.

use super::{Each, InJson, JsonObject};
use crate::derive::flow::{Connection, DATAGRAM_SOURCE, DatagramTest, DisorderRates, End, Speaks};
use crate::derive::{FlowBasis, Jitter, LossPlace, TestMetrics, paths};
use crate::sample::Word;
use serde::Serialize;
use serde::ser::SerializeMap;

/// A connection; what is not known of it is null. The rate is payload, what arrived where that is known; `control` is one that
/// has carried next to nothing; `relayed` carries another one's data once more, behind the program `relay` that copies.
impl JsonObject for Connection {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let path = paths::of(metrics, self);
        let source = match self.speaks {
            Speaks::Tcp(_) => "tcp_info",
            Speaks::Udp(udp) => DATAGRAM_SOURCE[usize::from(!udp.by_socket)],
        };
        // What only the other one has is null, and nobody of UDP is connecting.
        let tcp = self.tcp().copied().unwrap_or_default();
        let udp = self.udp().copied().unwrap_or_default();
        object.serialize_entry("proto", self.proto().word())?;
        object.serialize_entry("from", &InJson(&self.from, metrics))?;
        object.serialize_entry("to", &InJson(&self.to, metrics))?;
        object.serialize_entry("control", &self.controls())?;
        object.serialize_entry("connecting", &tcp.connecting)?;
        object.serialize_entry("silent_s", &tcp.silent_s)?;
        object.serialize_entry("mptcp_token", &tcp.mptcp)?;
        object.serialize_entry("relayed", &self.relayed)?;
        object.serialize_entry("relay", &Relay::of(metrics, self))?;
        object.serialize_entry("bits_per_s", &self.bits_per_s)?;
        object.serialize_entry("bits_per_s_source", &self.bits_per_s.map(|_| source))?;
        object.serialize_entry("bits_per_s_gap", &udp.rate_gap.map(|gap| gap.to_string()))?;
        object.serialize_entry("packets_per_s", &udp.packets_per_s)?;
        object.serialize_entry("sent_bits_per_s", &udp.sent.map(|rate| rate.bits_per_s))?;
        object.serialize_entry("sent_packets_per_s", &udp.sent.and_then(|rate| rate.packets_per_s))?;
        object.serialize_entry("retransmits_per_s", &tcp.retransmits_per_s)?;
        object.serialize_entry("disorder", &tcp.disorder.as_ref().map(|disorder| InJson(disorder, metrics)))?;
        object.serialize_entry("mss_bytes", &tcp.mss_bytes)?;
        object.serialize_entry("cwnd_bytes", &tcp.cwnd_bytes)?;
        object.serialize_entry("rtt_us", &tcp.rtt_us)?;
        object.serialize_entry("pacing_bits_per_s", &tcp.pacing_bits_per_s)?;
        object.serialize_entry("delivery_bits_per_s", &tcp.delivery_bits_per_s)?;
        object.serialize_entry("allowed_bits_per_s", &tcp.allowed_bits_per_s)?;
        object.serialize_entry("busy", &tcp.busy.map(|busy| busy.all))?;
        object.serialize_entry("rwnd_limited", &tcp.busy.map(|busy| busy.rwnd))?;
        object.serialize_entry("sndbuf_limited", &tcp.busy.map(|busy| busy.sndbuf))?;
        object.serialize_entry("app_limited", &tcp.app_limited)?;
        object.serialize_entry("congestion", &tcp.congestion)?;
        object.serialize_entry("rx_queue_bytes", &self.rx_queue_bytes)?;
        object.serialize_entry("tx_queue_bytes", &self.tx_queue_bytes)?;
        object.serialize_entry("rx_buffer_bytes", &self.rx_buffer_bytes)?;
        object.serialize_entry("lost_per_s", &udp.drops_per_s)?;
        // The one place that it counts, in the words of `losses`.
        object.serialize_entry("lost_per_s_source", &udp.drops_per_s.map(|_| LossPlace::ReceiveBuffer.word()))?;
        object.serialize_entry("path", &Each(path.as_ref().map_or(&[], |path| &path.hops), metrics))?;
        object.serialize_entry("path_gap", &path.as_ref().and_then(|path| path.gap))?;
        object.serialize_entry("path_carriers", &Each(path.as_ref().map_or(&[], |path| &path.carriers), metrics))?;
        // Which packets go it, where rules route by marks.
        object.serialize_entry("path_note", &path.as_ref().and_then(|path| path.note))
    }
}

/// Packets that overtook each other, over the last seconds.
impl JsonObject for DisorderRates {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("over_s", &self.over_s)?;
        object.serialize_entry("retransmits_per_s", &self.retransmits_per_s)?;
        object.serialize_entry("dsack_dups_per_s", &self.dsack_dups_per_s)?;
        object.serialize_entry("reord_seen_per_s", &self.reord_seen_per_s)?;
        object.serialize_entry("out_of_order_per_s", &self.out_of_order_per_s)
    }
}

/// One end; its namespace and process are known only of a watched process, its address not where nobody is called.
impl JsonObject for End {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let address = Some(self.address).filter(|address| address.port() != 0);
        object.serialize_entry("netns", &self.netns)?;
        object.serialize_entry("addr", &address.map(|address| address.ip()))?;
        object.serialize_entry("port", &address.map(|address| address.port()))?;
        object.serialize_entry("pid", &self.pid)
    }
}

/// A program that copies from one connection to another.
#[derive(Serialize)]
pub(super) struct Relay<'a> {
    pid: u32,
    name: Option<&'a str>,
}

impl<'a> Relay<'a> {
    pub fn of(metrics: &'a TestMetrics, connection: &Connection) -> Option<Self> {
        let pid = connection.relay?;
        Some(Self { pid, name: paths::holder(metrics, pid).map(|holder| &*holder.name) })
    }
}

/// A UDP test: the streams of two processes together.
impl JsonObject for DatagramTest {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("from", &ProcessObject::of(self.from))?;
        object.serialize_entry("to", &ProcessObject::of(self.to))?;
        object.serialize_entry("streams", &self.streams)?;
        object.serialize_entry("length_bytes", &self.length_bytes)?;
        object.serialize_entry("sent_bits_per_s", &self.sent.map(|rate| rate.bits_per_s))?;
        object.serialize_entry("sent_packets_per_s", &self.sent.and_then(|rate| rate.packets_per_s))?;
        object.serialize_entry("received_bits_per_s", &self.received.map(|rate| rate.bits_per_s))?;
        object.serialize_entry("received_packets_per_s", &self.received.and_then(|rate| rate.packets_per_s))?;
        object.serialize_entry("lost_share", &self.lost())?;
        object.serialize_entry("source", self.source())?;
        object.serialize_entry("gap", &self.gap.map(|gap| gap.to_string()))
    }
}

/// Null where it is not a watched one.
#[derive(Serialize)]
struct ProcessObject {
    pid: Option<u32>,
    netns: Option<u64>,
}

impl ProcessObject {
    fn of(end: Option<(u32, u64)>) -> Self {
        Self { pid: end.map(|(pid, _)| pid), netns: end.map(|(_, netns)| netns) }
    }
}

/// The spread of the watched flow's rate.
impl JsonObject for Jitter {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("basis", &metrics.flow.basis.as_ref().map(FlowBasis::word))?;
        object.serialize_entry("bin_s", &self.bin_s)?;
        object.serialize_entry("window_s", &self.window_s)?;
        object.serialize_entry("mean_bits_per_s", &self.mean)?;
        object.serialize_entry("cv", &self.cv)?;
        object.serialize_entry("p5", &self.p5)?;
        object.serialize_entry("p50", &self.p50)?;
        object.serialize_entry("p95", &self.p95)?;
        object.serialize_entry("longest_dip_s", &self.longest_dip_s)
    }
}
