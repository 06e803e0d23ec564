//! The watched flow as JSON: its connections, and the spread of its rate.

use super::JsonRow;
use super::path::HopObject;
use crate::derive::flow::{Connection, DATAGRAM_SOURCE, DatagramTest, End};
use crate::derive::{FlowBasis, LossPlace, Metrics, paths};
use crate::sample::{Congestion, Proto, Word};
use serde::Serialize;
use std::net::IpAddr;

/// A connection; what is not known of it is null. The rate is payload, what arrived where that is known; `control` is one that
/// has carried next to nothing; `relayed` carries another one's data once more, behind the program `relay` that copies.
#[derive(Serialize)]
pub(super) struct FlowObject<'a> {
    proto: &'a str,
    from: FlowEnd,
    to: FlowEnd,
    control: bool,
    relayed: bool,
    relay: Option<Relay<'a>>,
    bits_per_s: Option<f64>,
    bits_per_s_source: Option<&'static str>,
    bits_per_s_gap: Option<&'static str>,
    packets_per_s: Option<f64>,
    sent_bits_per_s: Option<f64>,
    sent_packets_per_s: Option<f64>,
    retransmits_per_s: Option<f64>,
    mss_bytes: Option<u32>,
    cwnd_bytes: Option<u64>,
    rtt_us: Option<u32>,
    pacing_bits_per_s: Option<f64>,
    delivery_bits_per_s: Option<f64>,
    allowed_bits_per_s: Option<f64>,
    busy: Option<f64>,
    rwnd_limited: Option<f64>,
    sndbuf_limited: Option<f64>,
    app_limited: Option<bool>,
    congestion: Option<&'a str>,
    rx_queue_bytes: Option<u64>,
    tx_queue_bytes: Option<u64>,
    rx_buffer_bytes: Option<u64>,
    lost_per_s: Option<f64>,
    /// The one place that it counts, in the words of `losses`.
    lost_per_s_source: Option<&'static str>,
    path: Vec<HopObject<'a>>,
    path_gap: Option<&'a str>,
    /// Which packets go it, where rules route by marks.
    path_note: Option<&'a str>,
}

/// One end; its namespace and process are known only of a watched process, its address not where nobody is called.
#[derive(Serialize)]
pub(super) struct FlowEnd {
    netns: Option<u64>,
    addr: Option<IpAddr>,
    port: Option<u16>,
    pid: Option<u32>,
}

/// A program that copies from one connection to another.
#[derive(Serialize)]
pub(super) struct Relay<'a> {
    pid: u32,
    name: Option<&'a str>,
}

impl<'a> Relay<'a> {
    pub fn of(metrics: &'a Metrics, connection: &Connection) -> Option<Self> {
        let pid = connection.relay?;
        Some(Self { pid, name: paths::holder(metrics, pid).map(|holder| &*holder.name) })
    }
}

impl FlowEnd {
    pub fn of(end: &End) -> Self {
        let address = Some(end.address).filter(|address| address.port() != 0);
        Self {
            netns: end.netns,
            addr: address.map(|address| address.ip()),
            port: address.map(|address| address.port()),
            pid: end.pid,
        }
    }
}

impl JsonRow for Connection {
    type Out<'a> = FlowObject<'a>;

    fn row<'a>(&'a self, metrics: &'a Metrics) -> FlowObject<'a> {
        let path = paths::of(metrics, self);
        FlowObject {
            proto: self.proto.word(),
            from: FlowEnd::of(&self.from),
            to: FlowEnd::of(&self.to),
            control: self.controls(),
            relayed: self.relayed,
            relay: Relay::of(metrics, self),
            bits_per_s: self.bits_per_s,
            bits_per_s_source: self.bits_per_s.map(|_| match self.proto {
                Proto::Tcp => "tcp_info",
                Proto::Udp => DATAGRAM_SOURCE,
            }),
            bits_per_s_gap: self.rate_gap,
            packets_per_s: self.packets_per_s,
            sent_bits_per_s: self.sent.map(|rate| rate.bits_per_s),
            sent_packets_per_s: self.sent.map(|rate| rate.packets_per_s),
            retransmits_per_s: self.retransmits_per_s,
            mss_bytes: self.mss_bytes,
            cwnd_bytes: self.cwnd_bytes,
            rtt_us: self.rtt_us,
            pacing_bits_per_s: self.pacing_bits_per_s,
            delivery_bits_per_s: self.delivery_bits_per_s,
            allowed_bits_per_s: self.allowed_bits_per_s,
            busy: self.busy.map(|busy| busy.all),
            rwnd_limited: self.busy.map(|busy| busy.rwnd),
            sndbuf_limited: self.busy.map(|busy| busy.sndbuf),
            app_limited: self.app_limited,
            congestion: self.congestion.as_ref().map(Congestion::word),
            rx_queue_bytes: self.rx_queue_bytes,
            tx_queue_bytes: self.tx_queue_bytes,
            rx_buffer_bytes: self.rx_buffer_bytes,
            lost_per_s: self.drops_per_s,
            lost_per_s_source: self.drops_per_s.map(|_| LossPlace::ReceiveBuffer.word()),
            path: HopObject::all(path.as_ref()),
            path_gap: path.as_ref().and_then(|path| path.gap),
            path_note: path.as_ref().and_then(|path| path.note),
        }
    }
}

/// A UDP test: the streams of two processes together.
#[derive(Serialize)]
pub(super) struct DatagramsObject {
    from: ProcessObject,
    to: ProcessObject,
    streams: usize,
    length_bytes: Option<u64>,
    sent_bits_per_s: Option<f64>,
    sent_packets_per_s: Option<f64>,
    received_bits_per_s: Option<f64>,
    received_packets_per_s: Option<f64>,
    lost_share: Option<f64>,
    source: &'static str,
    gap: Option<&'static str>,
}

/// Null where it is not a watched one.
#[derive(Serialize)]
struct ProcessObject {
    pid: Option<u32>,
    netns: Option<u64>,
}

impl JsonRow for DatagramTest {
    type Out<'a> = DatagramsObject;

    fn row<'a>(&'a self, _: &'a Metrics) -> DatagramsObject {
        let process =
            |end: Option<(u32, u64)>| ProcessObject { pid: end.map(|end| end.0), netns: end.map(|end| end.1) };
        DatagramsObject {
            from: process(self.from),
            to: process(self.to),
            streams: self.streams,
            length_bytes: self.length_bytes,
            sent_bits_per_s: self.sent.map(|rate| rate.bits_per_s),
            sent_packets_per_s: self.sent.map(|rate| rate.packets_per_s),
            received_bits_per_s: self.received.map(|rate| rate.bits_per_s),
            received_packets_per_s: self.received.map(|rate| rate.packets_per_s),
            lost_share: self.lost(),
            source: DATAGRAM_SOURCE,
            gap: self.gap,
        }
    }
}

/// The spread of the watched flow's rate.
#[derive(Serialize)]
pub(super) struct SpreadObject {
    basis: Option<String>,
    bin_s: f64,
    window_s: f64,
    mean_bits_per_s: f64,
    cv: Option<f64>,
    p5: f64,
    p50: f64,
    p95: f64,
    longest_dip_s: f64,
}

impl SpreadObject {
    pub fn of(metrics: &Metrics) -> Option<Self> {
        let jitter = metrics.jitter.as_ref()?;
        Some(Self {
            basis: metrics.flow.basis.as_ref().map(FlowBasis::word),
            bin_s: jitter.bin_s,
            window_s: jitter.window_s,
            mean_bits_per_s: jitter.mean,
            cv: jitter.cv,
            p5: jitter.p5,
            p50: jitter.p50,
            p95: jitter.p95,
            longest_dip_s: jitter.longest_dip_s,
        })
    }
}
