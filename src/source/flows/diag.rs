//! `sock_diag`: requests for TCP and UDP sockets, and what an answer says of one. Every byte is treated as hostile: what
//! does not fit is no socket, nothing panics. It knows no process.

use crate::sample::{Busy, Congestion, Proto, TcpState, UdpState};
use crate::source::netlink::message::{Message, Request, attributes, u32_at, u64_at};
use netlink_packet_core::NLM_F_DUMP;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// `AF_INET`.
pub(in crate::source) const IPV4: u8 = 2;
/// `AF_INET6`.
pub(in crate::source) const IPV6: u8 = 10;
/// `SOCK_DIAG_BY_FAMILY`: of requests and of answers.
const BY_FAMILY: u16 = 20;
/// `IPPROTO_TCP` and `IPPROTO_UDP`.
const NUMBERS: [u8; 2] = [6, 17];
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
/// `INET_DIAG_MARK`: 32 bits, for who has `CAP_NET_ADMIN` (Linux 4.9).
const MARK: u16 = 15;
/// Offset of `tcpi_bytes_acked` in `struct tcp_info` of `linux/tcp.h`, the same since it was added (Linux 4.1).
const ACKED: usize = 120;
/// And of `tcpi_bytes_received` (Linux 4.1).
const RECEIVED: usize = 128;
/// `tcpi_snd_mss`, `tcpi_rtt`, `tcpi_snd_cwnd`, `tcpi_total_retrans`: of 32 bits, as long as the structure is known.
const MSS: usize = 16;
const RTT: usize = 68;
const CWND: usize = 80;
const TOTAL_RETRANS: usize = 100;
/// `tcpi_unacked`, of 32 bits; and the bit of a byte that is `tcpi_delivery_rate_app_limited` (Linux 4.9).
const UNACKED: usize = 24;
const APP_LIMITED: usize = 7;
/// `tcpi_pacing_rate`, `tcpi_max_pacing_rate` (both Linux 3.15) and `tcpi_delivery_rate` (Linux 4.9), of 64 bits.
const PACING: usize = 104;
const PACING_ALLOWED: usize = 112;
const DELIVERY: usize = 160;
/// `tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited` (Linux 4.10), of 64 bits.
const BUSY: usize = 168;
const RWND: usize = 176;
const SNDBUF: usize = 184;
/// `SK_MEMINFO_RCVBUF` (Linux 2.6.29) and `SK_MEMINFO_DROPS` (Linux 4.7), in numbers of 32 bits.
const RCVBUF: usize = 4;
const DROPS: usize = 8 * 4;
/// `struct inet_diag_sockid`, bytes: ports at 0 and 2, addresses at 4 and 20, interface at 36, cookie at 40.
const ID: usize = 48;
/// `struct inet_diag_msg`, bytes: family, state, timer, retransmits, the id at 4, `idiag_rqueue`, `idiag_wqueue`, inode.
const FIXED: usize = 72;
const RX_QUEUE: usize = 56;
const TX_QUEUE: usize = 60;
const INODE: usize = 68;

/// A socket as the kernel finds it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) struct SocketId {
    family: u8,
    bytes: [u8; ID],
}

/// What an answer says of one socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) struct SocketInfo {
    pub id: SocketId,
    state: u8,
    /// Of sockfs, as `/proc/PID/fd` names it; 0 when no process holds the socket any more.
    pub inode: u32,
    /// `SO_MARK`; none where it may not be told.
    pub mark: Option<u32>,
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
    /// A socket by its two ends, whatever its cookie (`INET_DIAG_NOCOOKIE`).
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

/// The dump of a family's sockets: of TCP those that are connected or about to be, of UDP all.
pub(in crate::source) fn dump(proto: Proto, family: u8) -> Request {
    Request::new(BY_FAMILY, NLM_F_DUMP, &fixed(proto, family, &[0; ID]))
}

/// One socket: of TCP with its `tcp_info`, of UDP with its buffers.
pub(in crate::source) fn one(proto: Proto, id: &SocketId) -> Request {
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

/// The socket at the other end of a TCP connection, by the addresses alone: whoever has it, in the namespace that is asked. One
/// of IPv6 that speaks IPv4 is found by its IPv4 addresses; where none is connected so, the kernel tells one that listens.
pub(super) fn other_end(local: SocketAddr, remote: SocketAddr) -> Request {
    let mut bytes = [0; ID];
    bytes[..2].copy_from_slice(&remote.port().to_be_bytes());
    bytes[2..4].copy_from_slice(&local.port().to_be_bytes());
    for (at, ip) in [(4, remote.ip()), (20, local.ip())] {
        match ip {
            IpAddr::V4(ip) => bytes[at..at + 4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => bytes[at..at + 16].copy_from_slice(&ip.octets()),
        }
    }
    // INET_DIAG_NOCOOKIE: any.
    bytes[40..].fill(0xff);
    let family = if local.is_ipv4() && remote.is_ipv4() { IPV4 } else { IPV6 };
    Request::new(BY_FAMILY, 0, &fixed(Proto::Tcp, family, &bytes))
}

/// `struct inet_diag_req_v2`.
fn fixed(proto: Proto, family: u8, id: &[u8; ID]) -> [u8; 8 + ID] {
    let bit = |extension: u16| 1_u8 << (extension - 1);
    let is_dump = id == &[0; ID];
    let (number, extensions, states) = match proto {
        Proto::Tcp if is_dump => (NUMBERS[0], 0, 1_u32 << ESTABLISHED | 1 << CONNECTING),
        Proto::Tcp => (NUMBERS[0], bit(INFO) | bit(CONG), 1 << ESTABLISHED | 1 << CONNECTING),
        Proto::Udp => (NUMBERS[1], bit(SKMEMINFO), u32::MAX),
    };
    let mut fixed = [0; 8 + ID];
    fixed[..3].copy_from_slice(&[family, number, extensions]);
    fixed[4..8].copy_from_slice(&states.to_ne_bytes());
    fixed[8..].copy_from_slice(id);
    fixed
}

/// What the message says of a socket; none if it is something else.
pub(in crate::source) fn told(message: &Message<'_>) -> Option<SocketInfo> {
    let body = message.body;
    let (family, state) = (*body.first()?, *body.get(1)?);
    if message.kind != BY_FAMILY || ![IPV4, IPV6].contains(&family) {
        return None;
    }
    let bytes = *body.get(4..)?.first_chunk::<ID>()?;
    let inode = u32_at(body, INODE)?;
    let queues = (u32_at(body, RX_QUEUE)?, u32_at(body, TX_QUEUE)?);
    let (mut info, mut congestion, mut memory, mut mark) = (None, None, None, None);
    for (kind, value) in attributes(body.get(FIXED..)?) {
        match kind {
            INFO => info = Some(value),
            CONG => congestion = Some(Congestion::new(value)),
            SKMEMINFO => memory = Some(value),
            MARK => mark = u32_at(value, 0),
            _ => {}
        }
    }
    Some(SocketInfo {
        id: SocketId { family, bytes },
        state,
        inode,
        mark,
        bytes: info.and_then(|info| Some((u64_at(info, ACKED)?, u64_at(info, RECEIVED)?))),
        tcp: info.and_then(|info| tcp_state(info, queues, congestion)),
        udp: memory.and_then(|memory| udp_state(memory, queues)),
    })
}

fn tcp_state(info: &[u8], (rx_queue, tx_queue): (u32, u32), congestion: Option<Congestion>) -> Option<TcpState> {
    let delivery = u64_at(info, DELIVERY).filter(|&rate| rate != 0);
    let busy =
        || Some(Busy { all_us: u64_at(info, BUSY)?, rwnd_us: u64_at(info, RWND)?, sndbuf_us: u64_at(info, SNDBUF)? });
    Some(TcpState {
        mss: u32_at(info, MSS)?,
        cwnd: u32_at(info, CWND)?,
        rtt_us: u32_at(info, RTT)?,
        retransmits: u32_at(info, TOTAL_RETRANS)?,
        // All ones: as fast as it goes.
        pacing: u64_at(info, PACING).filter(|&rate| rate != 0 && rate != u64::MAX),
        delivery,
        unacked: u32_at(info, UNACKED),
        pacing_allowed: u64_at(info, PACING_ALLOWED).filter(|&rate| rate != 0 && rate != u64::MAX),
        app_limited: delivery.and_then(|_| info.get(APP_LIMITED)).map(|&byte| is_app_limited(byte)),
        busy: busy(),
        rx_queue,
        tx_queue,
        congestion,
    })
}

/// A bit field of one bit at the start of a byte: the lowest bit, on a machine of big ends the highest.
fn is_app_limited(byte: u8) -> bool {
    byte & if cfg!(target_endian = "big") { 0x80 } else { 1 } != 0
}

fn udp_state(memory: &[u8], (rx_queue, tx_queue): (u32, u32)) -> Option<UdpState> {
    let (rcvbuf, drops) = (u32_at(memory, RCVBUF)?, u32_at(memory, DROPS)?);
    Some(UdpState { rx_queue, tx_queue, rcvbuf, drops })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::netlink::message::messages;
    use proptest::prelude::*;

    /// `struct inet_diag_msg` with 300 bytes in the receive queue and 400 in the other.
    fn head(family: u8, state: u8, id: [u8; ID], inode: u32) -> Vec<u8> {
        let mut fixed = vec![family, state, 0, 0];
        fixed.extend_from_slice(&id);
        for number in [0, 300, 400, 0, inode] {
            fixed.extend_from_slice(&number.to_ne_bytes());
        }
        fixed
    }

    /// An answer as the kernel lays it out.
    fn answer(family: u8, state: u8, id: [u8; ID], inode: u32, info: &[u8]) -> Vec<u8> {
        let request = Request::new(BY_FAMILY, 0, &head(family, state, id, inode));
        let mut whole = if info.is_empty() { request } else { request.with(INFO, info) };
        whole.numbered(7).to_vec()
    }

    fn id(ports: (u16, u16), local: &[u8], remote: &[u8], cookie: u64) -> [u8; ID] {
        let mut id = [0; ID];
        id[..2].copy_from_slice(&ports.0.to_be_bytes());
        id[2..4].copy_from_slice(&ports.1.to_be_bytes());
        id[4..4 + local.len()].copy_from_slice(local);
        id[20..20 + remote.len()].copy_from_slice(remote);
        id[40..].copy_from_slice(&cookie.to_ne_bytes());
        id
    }

    fn parsed(bytes: &[u8]) -> Vec<SocketInfo> {
        messages(bytes).filter_map(|message| told(&message)).collect()
    }

    #[test]
    fn a_socket_is_told_with_its_ends_its_bytes_and_its_cookie() {
        let mut info = [0; 232];
        info[ACKED..ACKED + 8].copy_from_slice(&5_000_000_000_u64.to_ne_bytes());
        info[RECEIVED..RECEIVED + 8].copy_from_slice(&37_u64.to_ne_bytes());
        let ends = id((5201, 43210), &[198, 18, 0, 1], &[198, 18, 0, 2], 0x0001_0000_0042);
        let told = parsed(&answer(IPV4, ESTABLISHED, ends, 99, &info));
        let [told] = told[..] else { panic!("one socket: {told:?}") };
        assert_eq!(told.id.local(), "198.18.0.1:5201".parse().expect("an address"), "the own end");
        assert_eq!(told.id.remote(), "198.18.0.2:43210".parse().expect("an address"), "the other end");
        #[cfg(target_endian = "little")]
        assert_eq!(told.id.cookie(), 0x0001_0000_0042, "the cookie is whole");
        assert_eq!((told.inode, told.bytes), (99, Some((5_000_000_000, 37))), "inode and bytes");
        assert!(told.is_established() && told.lives());
    }

    #[test]
    fn how_a_connection_stands_is_read_from_as_much_as_the_kernel_tells() {
        let mut info = [0; 232];
        info[APP_LIMITED] = if cfg!(target_endian = "big") { 0x80 } else { 1 };
        for (at, value) in [(MSS, 1448_u32), (UNACKED, 9), (RTT, 41), (CWND, 10), (TOTAL_RETRANS, 7)] {
            info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        let wide = [(PACING, 5_000_000_u64), (PACING_ALLOWED, 6_000_000), (DELIVERY, 4_000_000)];
        for (at, value) in wide.into_iter().chain([(BUSY, 900), (RWND, 700), (SNDBUF, 100)]) {
            info[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let ends = id((1, 2), &[], &[], 1);
        let mut request = Request::new(BY_FAMILY, 0, &head(IPV4, ESTABLISHED, ends, 5)).with(INFO, &info);
        request = request.with(CONG, b"cubic\0");
        let told = parsed(request.numbered(7));
        let tcp = told[0].tcp.expect("it is told");
        assert_eq!((tcp.mss, tcp.rtt_us, tcp.cwnd, tcp.retransmits), (1448, 41, 10, 7), "as in linux/tcp.h");
        assert_eq!((tcp.pacing, tcp.delivery), (Some(5_000_000), Some(4_000_000)), "the rates too");
        assert_eq!((tcp.rx_queue, tcp.tx_queue), (300, 400), "the queues are of the answer itself");
        assert_eq!(
            (tcp.unacked, tcp.app_limited),
            (Some(9), Some(true)),
            "what is under way, and that there was no more"
        );
        let busy = Busy { all_us: 900, rwnd_us: 700, sndbuf_us: 100 };
        assert_eq!((tcp.busy, tcp.pacing_allowed), (Some(busy), Some(6_000_000)), "what it waited for");
        assert_eq!(tcp.congestion.expect("named").word(), "cubic", "without its closing NUL");
        let old = parsed(&answer(IPV4, ESTABLISHED, ends, 5, &info[..PACING]));
        let old = old[0].tcp.expect("it is told");
        assert_eq!((old.retransmits, old.pacing, old.delivery), (7, None, None), "a kernel before 3.15 tells no rates");
        assert_eq!((old.busy, old.app_limited), (None, None), "nor what it waits for");
        info[PACING..PACING + 8].fill(0xff);
        let free = parsed(&answer(IPV4, ESTABLISHED, ends, 5, &info));
        assert_eq!(free[0].tcp.expect("it is told").pacing, None, "all ones is no rate");
    }

    #[test]
    fn a_udp_sockets_buffers_are_told() {
        let mut memory = Vec::new();
        (0..9_u32).for_each(|at| memory.extend_from_slice(&(1000 + at).to_ne_bytes()));
        let ends = id((5201, 0), &[], &[], 1);
        let answer = |memory: &[u8]| {
            let mut request = Request::new(BY_FAMILY, 0, &head(IPV6, OVER[1], ends, 5)).with(SKMEMINFO, memory);
            parsed(request.numbered(7))[0].udp
        };
        let expected = UdpState { rx_queue: 300, tx_queue: 400, rcvbuf: 1001, drops: 1008 };
        assert_eq!(answer(&memory), Some(expected), "buffer and drops");
        assert_eq!(answer(&memory[..32]), None, "a kernel before 4.7 tells no drops");
    }

    #[test]
    fn ipv4_within_ipv6_is_ipv4_and_a_socket_without_a_holder_is_over() {
        let mut mapped = [0; 16];
        (mapped[10], mapped[11]) = (255, 255);
        mapped[12..].copy_from_slice(&[198, 18, 0, 1]);
        let told = parsed(&answer(IPV6, ESTABLISHED, id((1, 2), &mapped, &mapped, 1), 0, &[]));
        assert_eq!(told[0].id.local(), "198.18.0.1:1".parse().expect("an address"), "both ends show the same address");
        assert!(!told[0].lives(), "inode 0 is a socket that its process has closed");
        assert_eq!(told[0].bytes, None, "what was not asked for is not known");
        let waiting = parsed(&answer(IPV4, OVER[0], id((1, 2), &[], &[], 1), 5, &[]));
        assert!(!waiting[0].lives(), "TIME_WAIT is over");
    }

    #[test]
    fn a_shorter_tcp_info_has_no_bytes_and_another_family_is_no_socket() {
        let short = parsed(&answer(IPV4, ESTABLISHED, id((1, 2), &[], &[], 1), 5, &[1; RECEIVED + 7]));
        assert_eq!(short[0].bytes, None, "a kernel before 4.1 counts none");
        assert!(parsed(&answer(1, ESTABLISHED, [0; ID], 5, &[])).is_empty(), "a unix socket is none of ours");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            parsed(&bytes);
        }

        #[test]
        fn a_damaged_answer_is_survived(at in 0_usize..320, byte: u8, cut in 0_usize..320) {
            let mut bytes = answer(IPV6, ESTABLISHED, [7; ID], 5, &[9; 232]);
            let length = bytes.len();
            bytes[at % length] = byte;
            parsed(&bytes[..cut % length]);
            for told in parsed(&bytes) {
                let _ = (told.id.local(), told.id.remote(), told.id.cookie(), told.lives());
            }
        }
    }
}
