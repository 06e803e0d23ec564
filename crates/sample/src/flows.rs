//! The connections of the watched processes (`sock_diag`), and how far each had come at several instants of a tick.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// How far a connection had come at one instant; absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowProgress {
    /// `CLOCK_MONOTONIC` at which it was read, ns.
    #[serde(rename = "t")]
    pub at_ns: u64,
    /// Bytes sent and acknowledged (`tcpi_bytes_acked` of `struct tcp_info`, Linux 4.1).
    #[serde(rename = "a")]
    pub acked: u64,
    /// Bytes received (`tcpi_bytes_received`).
    #[serde(rename = "r")]
    pub received: u64,
}

/// What carries a flow.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Proto {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

impl Proto {
    /// `IPPROTO_TCP` or `IPPROTO_UDP`.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
    fn is_tcp(&self) -> bool {
        *self == Self::Tcp
    }
}

/// State of a TCP connection in this tick (`struct tcp_info`). Figures that an older kernel lacks are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpState {
    /// `tcpi_snd_mss`, bytes.
    pub mss: u32,
    /// `tcpi_snd_cwnd`, segments of `mss`.
    pub cwnd: u32,
    /// `tcpi_rtt`, smoothed, us; 0 before the first measurement.
    pub rtt_us: u32,
    /// `tcpi_min_rtt` (Linux 4.6), us: the least in the last five minutes (`net.ipv4.tcp_min_rtt_wlen`); none before the first
    /// measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_us: Option<u32>,
    /// `tcpi_total_retrans`, segments since the connection began.
    pub retransmits: u32,
    /// `tcpi_pacing_rate`, bytes/s (Linux 3.15); none where it is not paced.
    pub pacing: Option<u64>,
    /// `tcpi_delivery_rate`, bytes/s (Linux 4.9); none before the first measurement.
    pub delivery: Option<u64>,
    /// `idiag_rqueue`: bytes that the process has not read yet.
    #[serde(default)]
    pub rx_queue: u32,
    /// `idiag_wqueue`: bytes that are not acknowledged yet, sent or not.
    #[serde(default)]
    pub tx_queue: u32,
    /// `tcpi_unacked`: segments under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unacked: Option<u32>,
    /// `tcpi_max_pacing_rate`, bytes/s (Linux 3.15): what `SO_MAX_PACING_RATE` allows; none where nothing was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_allowed: Option<u64>,
    /// `tcpi_delivery_rate_app_limited` (Linux 4.9): TCP had no more to send when that rate was measured; none before it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_limited: Option<bool>,
    /// What it was busy with (Linux 4.10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<Busy>,
    /// `tcpi_segs_out` (Linux 4.2): segments sent since the connection was made, those sent again and bare acknowledgements
    /// among them, mod 2^32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_out: Option<u32>,
    /// `INET_DIAG_CONG`; none where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<Congestion>,
    /// `tcpi_data_segs_out` (Linux 4.6): segments with data that it has sent, those sent again too, mod 2^32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_out: Option<u32>,
    /// `tcpi_data_segs_in` (Linux 4.6): segments with data that it has received, mod 2^32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_in: Option<u32>,
    /// `SK_MEMINFO_RCVBUF` (Linux 3.4), bytes: room for what was received, with what the kernel adds to each packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcvbuf: Option<u32>,
    /// What it saw of packets that overtook each other (Linux 4.19).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disorder: Option<Disorder>,
}

/// Packets that overtook each other, as TCP noticed them, since the connection was made; each mod 2^32.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disorder {
    /// `tcpi_dsack_dups`: segments that the receiver says it got twice (DSACK), because one sent again for nothing.
    #[serde(rename = "dsacks")]
    pub dsack_dups: u32,
    /// `tcpi_reord_seen`: how often the sender found that segments had overtaken others.
    #[serde(rename = "reorderings")]
    pub reord_seen: u32,
    /// `tcpi_rcv_ooopack` (Linux 5.4): segments received out of order.
    #[serde(rename = "out_of_order", default, skip_serializing_if = "Option::is_none")]
    pub rcv_ooopack: Option<u32>,
}

/// How long a connection had something to send, and waited meanwhile, us since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// `tcpi_busy_time`: data were in flight or waited for any reason.
    pub all_us: u64,
    /// `tcpi_rwnd_limited`: part of `all_us` in which the receiver's window was full.
    pub rwnd_us: u64,
    /// `tcpi_sndbuf_limited`: part of `all_us` in which the send buffer was full and all of it in flight.
    pub sndbuf_us: u64,
}

/// The name of a congestion control, as `cubic`: up to 15 bytes of printable ASCII, anything else is `?`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Congestion {
    bytes: [u8; 15],
    length: u8,
}

impl Congestion {
    /// A name without its closing NUL and what follows it.
    #[must_use]
    pub fn new(name: &[u8]) -> Self {
        let mut bytes = [0; 15];
        let mut length = 0;
        for (to, &from) in bytes.iter_mut().zip(name.split(|&byte| byte == 0).next().unwrap_or_default()) {
            *to = if from.is_ascii_graphic() { from } else { b'?' };
            length += 1;
        }
        Self { bytes, length }
    }

    /// The name.
    #[must_use]
    pub fn word(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl Serialize for Congestion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for Congestion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Ok(Self::new(name.as_bytes()))
    }
}

/// How a UDP socket stands (`sock_diag`), this tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpState {
    /// `idiag_rqueue`: bytes of the receive buffer in use.
    pub rx_queue: u32,
    /// `idiag_wqueue`: bytes of the send buffer in use.
    pub tx_queue: u32,
    /// `SK_MEMINFO_RCVBUF`, bytes.
    pub rcvbuf: u32,
    /// `SK_MEMINFO_DROPS`: datagrams dropped at this socket since it was opened, mod 2^32.
    pub drops: u32,
    /// What its program has sent and read, by BPF; none where the kernel cannot be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<DatagramCounts>,
}

/// What the program of a UDP socket has sent and read (`sock:sock_send_length`, `sock_recv_length`, by BPF, Linux 6.3), since the programs were attached;
/// absolute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramCounts {
    /// `CLOCK_MONOTONIC` at which it was read, ns.
    #[serde(rename = "t")]
    pub at_ns: u64,
    /// `CLOCK_MONOTONIC` of the first send or read that was counted, ns; 0 before there was one.
    #[serde(rename = "since")]
    pub since_ns: u64,
    /// Payload sent, bytes.
    #[serde(rename = "sb")]
    pub sent_bytes: u64,
    /// Datagrams sent; what a send is cut into is several where `UDP_SEGMENT` was set for the socket, one where a control message says so.
    #[serde(rename = "s")]
    pub sent: u64,
    /// Payload read, bytes.
    #[serde(rename = "rb")]
    pub received_bytes: u64,
    /// Reads.
    #[serde(rename = "r")]
    pub received: u64,
    /// Reads that may have returned several datagrams (`UDP_GRO`).
    #[serde(rename = "m", default, skip_serializing_if = "is_zero")]
    pub merged: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Identity of a socket: its cookie is unique on the machine from Linux 5.4, before that only in its network namespace, so both
/// ends of a veth pair may have the same one. Recordings are sorted by the cookie first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketKey {
    /// The socket's cookie (`idiag_cookie`).
    pub cookie: u64,
    /// Inode of its network namespace.
    pub netns: u64,
}

/// One TCP connection, established or about to be, or one UDP socket, of a watched process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSample {
    /// What it speaks.
    #[serde(default, skip_serializing_if = "Proto::is_tcp")]
    pub proto: Proto,
    /// The socket's cookie (`idiag_cookie`): unique in its namespace, from Linux 5.4 on the machine.
    pub cookie: u64,
    /// Inode of its network namespace.
    pub netns: u64,
    /// The process that holds it.
    pub pid: u32,
    /// Its own end.
    pub local: SocketAddr,
    /// The other end; of a UDP socket that is not connected the unspecified address and port 0.
    pub remote: SocketAddr,
    /// A TCP connection that has no answer yet (`TCP_SYN_SENT`): its bytes are 0 by then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub connecting: bool,
    /// Of a subflow of MPTCP, the connection it is a part of: its token at this end (`MPTCP_SUBFLOW_ATTR_TOKEN_LOC` of
    /// `INET_DIAG_ULP_INFO`, Linux 5.6), unique in its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mptcp: Option<u32>,
    /// A subflow that has joined its connection later (`MPTCP_SUBFLOW_FLAG_JOIN_LOC`): the first one has the addresses that the
    /// programs know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
    /// The socket's mark (`SO_MARK`, by `INET_DIAG_MARK`, Linux 4.9); none where it is not told, which needs
    /// `CAP_NET_ADMIN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<u32>,
    /// How a TCP connection stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpState>,
    /// How a UDP socket stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpState>,
    /// Oldest first, about every 100 ms; the last one is this tick's. Empty for UDP, which
    /// counts no bytes.
    pub pulses: Vec<FlowProgress>,
}

impl FlowSample {
    /// Which socket it is.
    #[must_use]
    pub fn key(&self) -> SocketKey {
        SocketKey { cookie: self.cookie, netns: self.netns }
    }

    /// Sender and receiver of each direction: both directions of a connected socket; for an unconnected one, from any sender to
    /// it. IPv4 is written as such.
    pub fn directions(&self) -> impl Iterator<Item = DropFlow> + use<> {
        let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        let (proto, local, remote) = (self.proto, plain(self.local), plain(self.remote));
        let is_connected = remote.port() != 0;
        let anybody = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let there = is_connected.then_some(DropFlow { proto, from: local, to: remote });
        let here = DropFlow { proto, from: if is_connected { remote } else { anybody }, to: local };
        [Some(here), there].into_iter().flatten()
    }

    /// A TCP connection by its cookie, the namespace and process that hold it, its own and its other end; everything else unknown.
    #[must_use]
    pub fn new(cookie: u64, (netns, pid): (u64, u32), (local, remote): (SocketAddr, SocketAddr)) -> Self {
        let (proto, connecting, mptcp, joined, mark) = (Proto::Tcp, false, None, false, None);
        let (tcp, udp, pulses) = (None, None, Vec::new());
        Self { proto, cookie, netns, pid, local, remote, connecting, mptcp, joined, mark, tcp, udp, pulses }
    }
}

/// A flow's packets in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DropFlow {
    /// What carries it.
    pub proto: Proto,
    /// The sender; unspecified when the receiving socket is not connected.
    pub from: SocketAddr,
    /// The receiver's address.
    pub to: SocketAddr,
}
