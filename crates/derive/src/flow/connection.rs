//! One connection as a tick shows it.

use super::datagrams::DatagramRate;
use super::disorder::DisorderRates;
use super::rate_gap::RateGap;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use vnettop_sample::{Congestion, Proto};

/// A connection that has moved less carries no benchmark: it controls one (iperf3's first connection).
pub(crate) const CARRIES: u64 = 16 * 1024;

/// A segment that is lost is sent again within 0.2 to 1 s.
const STUCK_S: f64 = 1.0;

/// How many connections these are, each by its token of MPTCP, `None` of plain TCP: the subflows of one are one.
pub(crate) fn connections(tokens: impl Iterator<Item = Option<u32>>) -> usize {
    let (mut plain, mut of_mptcp) = (0, BTreeSet::new());
    for token in tokens {
        match token {
            Some(token) => drop(of_mptcp.insert(token)),
            None => plain += 1,
        }
    }
    plain + of_mptcp.len()
}

/// One connection of the watched processes in one tick, or two UDP sockets that send to each other. Figures of an end that no
/// watched process has are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Connection {
    /// What it speaks, and what is known of that alone.
    pub speaks: Speaks,
    /// The end that sends more.
    pub from: End,
    /// The end that receives more.
    pub to: End,
    /// It carries data, and does not only control a test.
    pub carries: bool,
    /// Its data are those of another connection, on the other side of a program that copies them (socat, haproxy, Docker's
    /// proxy): they count once.
    pub relayed: bool,
    /// Process of the program that copies data, where this connection goes to such a program or comes from one.
    pub relay: Option<u32>,
    /// Payload over the tick in that direction, bits/s: what arrived, or where that is not known what was sent; none for a
    /// connection that is new.
    pub bits_per_s: Option<f64>,
    /// What waits at the sender, sent and not acknowledged (TCP) or not sent (UDP), bytes.
    pub tx_queue_bytes: Option<u64>,
    /// Time in which the sender had something to send, or waited for an answer, and nothing has moved, s; none of UDP.
    pub stuck_s: Option<f64>,
    /// What waits at the receiver to be read, bytes.
    pub rx_queue_bytes: Option<u64>,
    /// How much the receiver's socket may hold, with what the kernel adds to each packet, bytes.
    pub rx_buffer_bytes: Option<u64>,
}

/// What a connection speaks, with the figures that only this has.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "most are of TCP, and a box would be a place of its own for each in every tick"
)]
pub enum Speaks {
    /// A connection of TCP, or a subflow of MPTCP.
    Tcp(TcpFigures),
    /// Two UDP sockets, or one whose other end is not watched.
    Udp(UdpFigures),
}

impl Default for Speaks {
    fn default() -> Self {
        Self::Tcp(TcpFigures::default())
    }
}

/// What TCP says of a connection (`tcp_info`); of its sender unless something else is said.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TcpFigures {
    /// It has been asked for, and nobody has answered yet.
    pub connecting: bool,
    /// Time in which no payload has moved in either direction, s, since the last byte or since the connection was first seen.
    pub silent_s: Option<f64>,
    /// Of a subflow of MPTCP the token of its connection, at the sender where that is known.
    pub mptcp: Option<u32>,
    /// It is an MPTCP subflow that joined its connection later.
    pub joined: bool,
    /// Payload since the connection was made, in that direction, bytes: what arrived, or where that is not known what was
    /// acknowledged.
    pub moved_bytes: Option<u64>,
    /// Segments that the sender has sent again since then.
    pub retransmits: Option<u32>,
    /// Segments that the sender sent again, a second.
    pub retransmits_per_s: Option<f64>,
    /// The sender's segment size, bytes.
    pub mss_bytes: Option<u32>,
    /// The sender's congestion window, bytes: segments of `mss_bytes`.
    pub cwnd_bytes: Option<u64>,
    /// The sender's smoothed round-trip time, us; none before it was measured.
    pub rtt_us: Option<u32>,
    /// The sender's least round-trip time in the last five minutes (Linux 4.6), us.
    pub min_rtt_us: Option<u32>,
    /// Rate at which the sender paces itself, bits/s.
    pub pacing_bits_per_s: Option<f64>,
    /// Rate at which data was delivered last, as the sender measured, bits/s.
    pub delivery_bits_per_s: Option<f64>,
    /// Rate that `SO_MAX_PACING_RATE` allows the sender, bits/s; none where nothing was set.
    pub allowed_bits_per_s: Option<f64>,
    /// What the sender's TCP was busy with over the tick; none where its kernel does not tell (before Linux 4.10).
    pub busy: Option<BusyShares>,
    /// The sender gave TCP no more to send when it measured that rate (Linux 4.9).
    pub app_limited: Option<bool>,
    /// Share of the congestion window that is under way at the end of the tick.
    pub under_way: Option<f64>,
    /// Segments with data over the tick, a second: those that the sender sent, sent again ones too, and those that came back to it
    /// from the receiver (Linux 4.6).
    pub segments_per_s: Option<[f64; 2]>,
    /// The sender's congestion control.
    pub congestion: Option<Congestion>,
    /// Its packets that overtook each other over the last seconds; none where the sender's end is not watched, its kernel does
    /// not tell (before Linux 4.19), or it is watched for less than a second.
    pub disorder: Option<DisorderRates>,
}

/// What is counted of datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UdpFigures {
    /// The connection's rate in datagrams a second.
    pub packets_per_s: Option<f64>,
    /// What the sender gave to the kernel.
    pub sent: Option<DatagramRate>,
    /// Datagrams that it has sent in the tick, as its sockets say; none where that is not known.
    pub sent_datagrams: Option<f64>,
    /// The connection's rate is what its sockets say themselves, and not its namespaces.
    pub by_socket: bool,
    /// Why the connection's rate is not known.
    pub rate_gap: Option<RateGap>,
    /// Datagrams dropped at the receiver's socket, a second.
    pub drops_per_s: Option<f64>,
}

impl Connection {
    /// One of TCP of which nothing else is known.
    #[must_use]
    pub fn between(from: End, to: End) -> Self {
        Self { from, to, ..Self::default() }
    }

    /// What it speaks.
    #[must_use]
    pub fn proto(&self) -> Proto {
        match self.speaks {
            Speaks::Tcp(_) => Proto::Tcp,
            Speaks::Udp(_) => Proto::Udp,
        }
    }

    /// What TCP says of it; none of UDP.
    #[must_use]
    pub fn tcp(&self) -> Option<&TcpFigures> {
        if let Speaks::Tcp(tcp) = &self.speaks { Some(tcp) } else { None }
    }

    /// What is counted of its datagrams; none of TCP.
    #[must_use]
    pub fn udp(&self) -> Option<&UdpFigures> {
        if let Speaks::Udp(udp) = &self.speaks { Some(udp) } else { None }
    }

    /// Time in which no payload has moved in either direction, s; not known of UDP.
    #[must_use]
    pub fn silent_s(&self) -> Option<f64> {
        self.tcp()?.silent_s
    }

    /// Of a subflow of MPTCP the token of its connection.
    #[must_use]
    pub fn mptcp(&self) -> Option<u32> {
        self.tcp()?.mptcp
    }

    /// Nobody has answered yet.
    #[must_use]
    pub fn is_connecting(&self) -> bool {
        self.tcp().is_some_and(|tcp| tcp.connecting)
    }

    /// It only controls a test. More unacknowledged bytes than a control connection ever sends are data: a test whose path
    /// swallows them.
    #[must_use]
    pub fn controls(&self) -> bool {
        !self.carries && self.tx_queue_bytes.is_none_or(|waiting| waiting < CARRIES) && !self.is_stuck()
    }

    /// It waits for an answer, or has something to send, and has moved nothing since then for longer than segments are usually
    /// late. One that was idle before begins to wait with what it has to send.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        let waits = self.is_connecting() || self.tx_queue_bytes.is_some_and(|waiting| waiting > 0);
        waits && self.stuck_s().is_some_and(|stuck_s| stuck_s >= STUCK_S)
    }

    /// Time for which it waits for an answer, or has something to send, and has moved nothing, s; not known of UDP.
    #[must_use]
    pub fn stuck_s(&self) -> Option<f64> {
        Some(self.stuck_s?.min(self.silent_s()?))
    }
}

/// Shares of a tick in which a connection had something to send, and in which it could not.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BusyShares {
    /// Share of the time in which data were in flight or waited for any reason (`tcpi_busy_time`).
    pub all: f64,
    /// Share of the time in which the receiver's window was full (`tcpi_rwnd_limited`).
    pub rwnd: f64,
    /// Share of the time in which the send buffer was full and all of it in flight (`tcpi_sndbuf_limited`).
    pub sndbuf: f64,
}

impl BusyShares {
    /// Each share by itself; none where one is not known.
    pub(crate) fn each(of: impl Fn(fn(&Self) -> f64) -> Option<f64>) -> Option<Self> {
        Some(Self { all: of(|busy| busy.all)?, rwnd: of(|busy| busy.rwnd)?, sndbuf: of(|busy| busy.sndbuf)? })
    }
}

/// One end of a connection; whose it is is known only of a watched process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the JSON")]
pub struct End {
    pub netns: Option<u64>,
    pub address: SocketAddr,
    pub pid: Option<u32>,
}

impl Default for End {
    fn default() -> Self {
        Self { netns: None, address: SocketAddr::from(([0; 4], 0)), pid: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_on_its_way_leaves_a_control_connection_one_and_a_blocked_test_is_none() {
        let end = End { netns: None, address: SocketAddr::from(([10, 0, 0, 1], 5201)), pid: None };
        let with = |waiting, carries| {
            Connection { tx_queue_bytes: waiting, carries, ..Connection::between(end, end) }.controls()
        };
        assert!(with(None, false) && with(Some(0), false) && with(Some(300), false), "iperf3's first connection");
        assert!(!with(Some(128 * 1024), false), "a block of iperf3's that is never acknowledged");
        assert!(!with(Some(0), true), "what has carried data does so");
    }
}
