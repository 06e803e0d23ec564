//! `sock_diag`: requests for TCP sockets, and what an answer says of one. Every byte is treated as hostile: what does not
//! fit is no socket, nothing panics. It knows no process.

use crate::source::netlink::message::{Message, Request, attribute, u32_at, u64_at};
use netlink_packet_core::NLM_F_DUMP;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// `AF_INET`.
pub(super) const IPV4: u8 = 2;
/// `AF_INET6`.
pub(super) const IPV6: u8 = 10;
/// `SOCK_DIAG_BY_FAMILY`: of requests and of answers.
const BY_FAMILY: u16 = 20;
/// `IPPROTO_TCP`.
const TCP: u8 = 6;
/// `TCP_ESTABLISHED`.
const ESTABLISHED: u8 = 1;
/// `TCP_SYN_SENT`: about to be established.
const CONNECTING: u8 = 2;
/// `TCP_TIME_WAIT` and `TCP_CLOSE`: nothing moves any more.
const OVER: [u8; 2] = [6, 7];
/// `INET_DIAG_INFO`: a `struct tcp_info`.
const INFO: u16 = 2;
/// Offset of `tcpi_bytes_acked` in `struct tcp_info`, the same since it was added (Linux 4.1).
const ACKED: usize = 120;
/// And of `tcpi_bytes_received` (Linux 4.1).
const RECEIVED: usize = 128;
/// `struct inet_diag_sockid`, bytes: ports at 0 and 2, addresses at 4 and 20, interface at 36, cookie at 40.
const ID: usize = 48;
/// `struct inet_diag_msg`, bytes: family, state, timer, retransmits, the id at 4, inode at 68.
const FIXED: usize = 72;
const INODE: usize = 68;

/// A socket as the kernel finds it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketId {
    family: u8,
    bytes: [u8; ID],
}

/// What an answer says of one socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    pub id: SocketId,
    state: u8,
    /// Of sockfs, as `/proc/PID/fd` names it; 0 when no process holds the socket any more.
    pub inode: u32,
    /// Bytes acknowledged and received; none where they were not asked for or the kernel does not count them.
    pub bytes: Option<(u64, u64)>,
}

impl Told {
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

/// The dump of a family's TCP sockets that are connected or about to be.
pub(super) fn dump(family: u8) -> Request {
    Request::new(BY_FAMILY, NLM_F_DUMP, &fixed(family, 0, &[0; ID]))
}

/// One socket with its `tcp_info`.
pub(super) fn one(id: &SocketId) -> Request {
    Request::new(BY_FAMILY, 0, &fixed(id.family, 1 << (INFO - 1), &id.bytes))
}

/// `struct inet_diag_req_v2`.
fn fixed(family: u8, extensions: u8, id: &[u8; ID]) -> [u8; 8 + ID] {
    let mut fixed = [0; 8 + ID];
    fixed[..3].copy_from_slice(&[family, TCP, extensions]);
    fixed[4..8].copy_from_slice(&(1_u32 << ESTABLISHED | 1 << CONNECTING).to_ne_bytes());
    fixed[8..].copy_from_slice(id);
    fixed
}

/// What the message says of a socket; none if it is something else.
pub(super) fn told(message: &Message<'_>) -> Option<Told> {
    let body = message.body;
    let (family, state) = (*body.first()?, *body.get(1)?);
    if message.kind != BY_FAMILY || ![IPV4, IPV6].contains(&family) {
        return None;
    }
    let bytes = *body.get(4..)?.first_chunk::<ID>()?;
    let inode = u32_at(body, INODE)?;
    let info = attribute(body.get(FIXED..)?, INFO);
    let counted = info.and_then(|info| Some((u64_at(info, ACKED)?, u64_at(info, RECEIVED)?)));
    Some(Told { id: SocketId { family, bytes }, state, inode, bytes: counted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::netlink::message::messages;
    use proptest::prelude::*;

    /// An answer as the kernel lays it out.
    fn answer(family: u8, state: u8, id: [u8; ID], inode: u32, info: &[u8]) -> Vec<u8> {
        let mut fixed = vec![family, state, 0, 0];
        fixed.extend_from_slice(&id);
        fixed.extend_from_slice(&[0; 16]);
        fixed.extend_from_slice(&inode.to_ne_bytes());
        let request = Request::new(BY_FAMILY, 0, &fixed);
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

    fn parsed(bytes: &[u8]) -> Vec<Told> {
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
