//! `sock_diag`: requests for TCP and UDP sockets, and what an answer says of one. Every byte is treated as hostile: what
//! does not fit is no socket, nothing panics. It knows no process.

use crate::SourceError;
use crate::netlink::client::NetlinkClient;
use crate::netlink::message::{DUMP, Message, Request, attribute, attributes, u32_at, u64_at};
use crate::netlink::sock_diag::{BY_FAMILY, meminfo};
use crate::netlink::socket::Transport;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use vnettop_sample::{Busy, Congestion, Disorder, Proto, TcpState, UdpState};

/// `AF_INET`.
const IPV4: u8 = 2;
/// `AF_INET6`.
const IPV6: u8 = 10;
/// `TCP_ESTABLISHED`: also of UDP sockets that are connected; the others are closed.
const ESTABLISHED: u8 = 1;
/// `TCP_SYN_SENT`: about to be established.
const CONNECTING: u8 = 2;
/// `TCP_TIME_WAIT` and `TCP_CLOSE`: nothing moves any more.
const OVER: [u8; 2] = [6, 7];
/// `INET_DIAG_INFO`: a `struct tcp_info`.
const INFO: u16 = 2;
/// `INET_DIAG_CONG`: the name of the congestion control.
const CONG: u16 = 4;
/// `INET_DIAG_SKMEMINFO`: `SK_MEMINFO_VARS` numbers of 32 bits (Linux 3.4).
const SKMEMINFO: u16 = 7;
/// `INET_DIAG_SKV6ONLY`: a byte, of a socket of IPv6 that listens or is connected to nobody (Linux 4.3).
const ONLY_IPV6: u16 = 11;
/// `INET_DIAG_MARK`: 32 bits, for who has `CAP_NET_ADMIN` (Linux 4.9).
const MARK: u16 = 15;
/// `INET_DIAG_ULP_INFO` (Linux 5.4), within it `INET_ULP_INFO_MPTCP` and `MPTCP_SUBFLOW_ATTR_TOKEN_LOC` (Linux 5.6), 32 bits.
const ULP: u16 = 19;
const ULP_MPTCP: u16 = 3;
const TOKEN_LOCAL: u16 = 2;
/// `MPTCP_SUBFLOW_ATTR_FLAGS`, 32 bits, with `MPTCP_SUBFLOW_FLAG_JOIN_REM` and `…_JOIN_LOC`.
const SUBFLOW_FLAGS: u16 = 8;
const JOINS: u32 = 1 << 2 | 1 << 3;
/// Offset of `tcpi_bytes_acked` in `struct tcp_info` of `linux/tcp.h`, the same since it was added (Linux 4.1).
const ACKED: usize = 120;
/// Offset of `tcpi_bytes_received` in `struct tcp_info` (Linux 4.1).
const RECEIVED: usize = 128;
/// `tcpi_snd_mss`, `tcpi_rtt`, `tcpi_snd_cwnd`, `tcpi_total_retrans`: of 32 bits, as long as the structure is known.
const MSS: usize = 16;
const RTT: usize = 68;
const CWND: usize = 80;
const TOTAL_RETRANS: usize = 100;
/// `tcpi_unacked`, of 32 bits; and the bit of a byte that is `tcpi_delivery_rate_app_limited` (Linux 4.9).
const UNACKED: usize = 24;
const APP_LIMITED: usize = 7;
/// `tcpi_min_rtt` (Linux 4.6), of 32 bits; all ones before it was measured.
const MIN_RTT: usize = 148;
/// `tcpi_data_segs_in` and `tcpi_data_segs_out` (Linux 4.6), of 32 bits.
const DATA_IN: usize = 152;
const DATA_OUT: usize = 156;
/// `tcpi_pacing_rate`, `tcpi_max_pacing_rate` (both Linux 3.15) and `tcpi_delivery_rate` (Linux 4.9), of 64 bits.
const PACING: usize = 104;
const PACING_ALLOWED: usize = 112;
const DELIVERY: usize = 160;
/// `tcpi_segs_out` (Linux 4.2), of 32 bits.
const SEGMENTS_OUT: usize = 136;
/// `tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited` (Linux 4.10), of 64 bits.
const BUSY: usize = 168;
const RWND: usize = 176;
const SNDBUF: usize = 184;
/// `tcpi_dsack_dups` and `tcpi_reord_seen` (Linux 4.19), `tcpi_rcv_ooopack` (Linux 5.4), of 32 bits.
const DSACK_DUPS: usize = 216;
const REORD_SEEN: usize = 220;
const RCV_OOOPACK: usize = 224;
/// `struct inet_diag_sockid`, bytes: ports at 0 and 2, addresses at 4 and 20, interface at 36, cookie at 40.
const ID: usize = 48;
/// `struct inet_diag_msg`, bytes: family, state, timer, retransmits, the id at 4, `idiag_rqueue`, `idiag_wqueue`, inode.
const FIXED: usize = 72;
const RX_QUEUE: usize = 56;
const TX_QUEUE: usize = 60;
const INODE: usize = 68;

/// A socket as the kernel finds it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SocketId {
    family: u8,
    bytes: [u8; ID],
}

/// What an answer says of one socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SocketInfo {
    pub id: SocketId,
    state: u8,
    /// Of sockfs, as `/proc/PID/fd` names it; 0 when no process holds the socket any more.
    pub inode: u32,
    /// Of a subflow of MPTCP, the token of its connection here.
    pub mptcp: Option<u32>,
    /// It has joined that later.
    pub joined: bool,
    /// `SO_MARK`; none where it may not be told.
    pub mark: Option<u32>,
    /// It is of IPv6 and takes no IPv4 (`IPV6_V6ONLY`).
    pub only_ipv6: bool,
    /// Bytes acknowledged and received; none where they were not asked for or the kernel does not count them.
    pub bytes: Option<(u64, u64)>,
    /// How a TCP connection stands, where it was asked for.
    pub tcp: Option<TcpState>,
    /// How a socket's buffers stand, where they were asked for.
    pub udp: Option<UdpState>,
}

impl SocketInfo {
    /// Data may flow.
    pub fn is_established(&self) -> bool {
        self.state == ESTABLISHED
    }

    /// It has been asked to connect and has no answer yet.
    pub fn is_connecting(&self) -> bool {
        self.state == CONNECTING
    }

    /// A process holds it, and it has not ended.
    pub fn lives(&self) -> bool {
        self.inode != 0 && !OVER.contains(&self.state)
    }
}

impl SocketId {
    /// A socket by its two ends, whatever its cookie (`INET_DIAG_NOCOOKIE`). One of IPv6 that speaks IPv4 is found by its IPv4
    /// addresses; where none is connected so, the kernel tells one that listens.
    pub fn between(local: SocketAddr, remote: SocketAddr) -> Self {
        let mut bytes = [0; ID];
        for (address, port, at) in [(local, 0, 4), (remote, 2, 20)] {
            bytes[port..port + 2].copy_from_slice(&address.port().to_be_bytes());
            match address.ip() {
                IpAddr::V4(ip) => bytes[at..at + 4].copy_from_slice(&ip.octets()),
                IpAddr::V6(ip) => bytes[at..at + 16].copy_from_slice(&ip.octets()),
            }
        }
        bytes[40..].fill(0xff);
        Self { family: if local.is_ipv4() { IPV4 } else { IPV6 }, bytes }
    }

    /// `idiag_cookie`.
    pub fn cookie(&self) -> u64 {
        let half = |at| u64::from(u32_at(&self.bytes, at).unwrap_or_default());
        half(44) << 32 | half(40)
    }

    /// Its own end.
    pub fn local(&self) -> SocketAddr {
        self.address(0, 4)
    }

    /// The other end.
    pub fn remote(&self) -> SocketAddr {
        self.address(2, 20)
    }

    /// An address and port in network order. IPv4 within IPv6, as a server that listens on `::` has it, is IPv4.
    fn address(&self, port: usize, address: usize) -> SocketAddr {
        let port = u16::from_be_bytes([self.bytes[port], self.bytes[port + 1]]);
        let mut octets = [0; 16];
        octets.copy_from_slice(&self.bytes[address..address + 16]);
        let ip = match self.family {
            IPV4 => IpAddr::V4(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3])),
            _ => IpAddr::V6(Ipv6Addr::from(octets)).to_canonical(),
        };
        SocketAddr::new(ip, port)
    }
}

/// Lists every TCP socket of the client's namespace that is connected or about to be, or every UDP socket that has a port.
///
/// # Errors
/// The kernel refused or broke off a dump.
pub(crate) fn list<W: Transport>(
    netlink: &mut NetlinkClient<W>,
    proto: Proto,
    mut each: impl FnMut(&SocketInfo),
) -> Result<(), SourceError> {
    let operation = match proto {
        Proto::Tcp => "list TCP sockets",
        Proto::Udp => "list UDP sockets",
    };
    for family in [IPV4, IPV6] {
        let mut request = Request::new(BY_FAMILY, DUMP, &fixed(proto, family, &[0; ID]));
        netlink.dump(&mut request, operation, |message, _| {
            if let Some(reported) = parse(message) {
                each(&reported);
            }
        })?;
    }
    Ok(())
}

/// One socket: of TCP with its `tcp_info`, of UDP with its buffers.
pub(crate) fn one(proto: Proto, id: &SocketId) -> Request {
    let mut bytes = id.bytes;
    if proto == Proto::Udp {
        // `udp_dump_one` looks the socket up with source and destination swapped, for historical reasons.
        bytes[..2].copy_from_slice(&id.bytes[2..4]);
        bytes[2..4].copy_from_slice(&id.bytes[..2]);
        bytes[4..20].copy_from_slice(&id.bytes[20..36]);
        bytes[20..36].copy_from_slice(&id.bytes[4..20]);
    }
    Request::new(BY_FAMILY, 0, &fixed(proto, id.family, &bytes))
}

/// Asks for the UDP sockets of IPv4 that have that port.
pub(crate) fn udp_on(port: u16) -> Request {
    let mut id = [0; ID];
    id[..2].copy_from_slice(&port.to_be_bytes());
    Request::new(BY_FAMILY, DUMP, &fixed(Proto::Udp, IPV4, &id))
}

/// The limit of the send buffer of a socket that was asked for with its buffers.
pub(crate) fn send_limit(message: &Message<'_>) -> Option<u32> {
    u32_at(attribute(message.body.get(FIXED..)?, SKMEMINFO)?, meminfo::SNDBUF)
}

/// `struct inet_diag_req_v2`.
fn fixed(proto: Proto, family: u8, id: &[u8; ID]) -> [u8; 8 + ID] {
    let bit = |extension: u16| 1_u8 << (extension - 1);
    let is_dump = id == &[0; ID];
    let (extensions, states) = match proto {
        Proto::Tcp if is_dump => (0, 1_u32 << ESTABLISHED | 1 << CONNECTING),
        Proto::Tcp => (bit(INFO) | bit(CONG) | bit(SKMEMINFO), 1 << ESTABLISHED | 1 << CONNECTING),
        Proto::Udp => (bit(SKMEMINFO), u32::MAX),
    };
    let mut fixed = [0; 8 + ID];
    fixed[..3].copy_from_slice(&[family, proto.number(), extensions]);
    fixed[4..8].copy_from_slice(&states.to_ne_bytes());
    fixed[8..].copy_from_slice(id);
    fixed
}

/// What the message says of a socket; none if it is something else.
pub(crate) fn parse(message: &Message<'_>) -> Option<SocketInfo> {
    let body = message.body;
    let (family, state) = (*body.first()?, *body.get(1)?);
    if message.kind != BY_FAMILY || ![IPV4, IPV6].contains(&family) {
        return None;
    }
    let bytes = *body.get(4..)?.first_chunk::<ID>()?;
    let inode = u32_at(body, INODE)?;
    let queues = (u32_at(body, RX_QUEUE)?, u32_at(body, TX_QUEUE)?);
    let (mut info, mut congestion, mut memory, mut mark, mut mptcp) = (None, None, None, None, (None, false));
    let mut only_ipv6 = false;
    for (kind, value) in attributes(body.get(FIXED..)?) {
        match kind {
            INFO => info = Some(value),
            CONG => congestion = Some(Congestion::new(value)),
            SKMEMINFO => memory = Some(value),
            MARK => mark = u32_at(value, 0),
            ONLY_IPV6 => only_ipv6 = value.first().is_some_and(|&is| is != 0),
            ULP => mptcp = subflow(value),
            _ => {}
        }
    }
    Some(SocketInfo {
        id: SocketId { family, bytes },
        state,
        inode,
        mptcp: mptcp.0,
        joined: mptcp.1,
        mark,
        only_ipv6,
        bytes: info.and_then(|info| Some((u64_at(info, ACKED)?, u64_at(info, RECEIVED)?))),
        tcp: info.and_then(|info| {
            let rcvbuf = memory.and_then(|memory| u32_at(memory, meminfo::RCVBUF));
            Some(TcpState { congestion, rcvbuf, ..tcp_state(info, queues)? })
        }),
        udp: memory.filter(|_| info.is_none()).and_then(|memory| udp_state(memory, queues)),
    })
}

/// The token of the connection that a subflow belongs to, and whether it has joined that later.
fn subflow(ulp: &[u8]) -> (Option<u32>, bool) {
    let Some(reported) = attribute(ulp, ULP_MPTCP) else { return (None, false) };
    let number = |wanted| attribute(reported, wanted).and_then(|value| u32_at(value, 0));
    (number(TOKEN_LOCAL), number(SUBFLOW_FLAGS).is_some_and(|flags| flags & JOINS != 0))
}

fn tcp_state(info: &[u8], (rx_queue, tx_queue): (u32, u32)) -> Option<TcpState> {
    let delivery = u64_at(info, DELIVERY).filter(|&rate| rate != 0);
    let busy =
        || Some(Busy { all_us: u64_at(info, BUSY)?, rwnd_us: u64_at(info, RWND)?, sndbuf_us: u64_at(info, SNDBUF)? });
    Some(TcpState {
        mss: u32_at(info, MSS)?,
        cwnd: u32_at(info, CWND)?,
        rtt_us: u32_at(info, RTT)?,
        min_rtt_us: u32_at(info, MIN_RTT).filter(|&least| least != u32::MAX),
        retransmits: u32_at(info, TOTAL_RETRANS)?,
        // All ones: as fast as it goes.
        pacing: u64_at(info, PACING).filter(|&rate| rate != 0 && rate != u64::MAX),
        delivery,
        unacked: u32_at(info, UNACKED),
        pacing_allowed: u64_at(info, PACING_ALLOWED).filter(|&rate| rate != 0 && rate != u64::MAX),
        app_limited: delivery.and_then(|_| info.get(APP_LIMITED)).map(|&byte| is_app_limited(byte)),
        busy: busy(),
        segments_out: u32_at(info, SEGMENTS_OUT),
        rx_queue,
        tx_queue,
        congestion: None,
        data_out: u32_at(info, DATA_OUT),
        data_in: u32_at(info, DATA_IN),
        rcvbuf: None,
        disorder: u32_at(info, DSACK_DUPS).zip(u32_at(info, REORD_SEEN)).map(|(dsack_dups, reord_seen)| Disorder {
            dsack_dups,
            reord_seen,
            rcv_ooopack: u32_at(info, RCV_OOOPACK),
        }),
    })
}

/// A bit field of one bit at the start of a byte: the lowest bit, on a machine of big ends the highest.
fn is_app_limited(byte: u8) -> bool {
    byte & if cfg!(target_endian = "big") { 0x80 } else { 1 } != 0
}

fn udp_state(memory: &[u8], (rx_queue, tx_queue): (u32, u32)) -> Option<UdpState> {
    let (rcvbuf, drops) = (u32_at(memory, meminfo::RCVBUF)?, u32_at(memory, meminfo::DROPS)?);
    Some(UdpState { rx_queue, tx_queue, rcvbuf, drops, counts: None })
}

#[cfg(test)]
mod tests;
