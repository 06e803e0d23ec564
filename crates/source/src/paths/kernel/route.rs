//! `RTM_GETROUTE`: which way one packet goes, with the namespace's rules and tables applied by the kernel. Of several next hops it
//! answers one, which is not always the one that a stream takes (measured on Linux 6.18), so the entry is asked for too. Marks that netfilter puts on packets are not known here: see [`super::marks`].

use crate::netlink::message::{DUMP, Message, Request, aligned, attribute, u16_at, u32_at};
use crate::paths::lookups::{Packet, PacketOrigin, RouteHop, RouteResult};
use std::io;
use std::net::IpAddr;
use vnettop_sample::Ifindex;

/// `struct rtmsg`, bytes: family, lengths of destination and source at 1 and 2, type at 7, flags at 8.
const FIXED: usize = 12;
const DST: u16 = 1;
const SRC: u16 = 2;
const IIF: u16 = 3;
const OIF: u16 = 4;
const GATEWAY: u16 = 5;
/// `RTA_PREFSRC`.
const PREFERRED: u16 = 7;
/// `RTA_MARK`.
const MARK: u16 = 16;
/// `RTA_VIA`: a gateway of the other family (Linux 5.2 for IPv4 routes).
const VIA: u16 = 18;
/// `RTA_IP_PROTO`, `RTA_SPORT`, `RTA_DPORT`: Linux 4.17; older kernels pass over them.
const IP_PROTO: u16 = 27;
const SOURCE_PORT: u16 = 28;
const DESTINATION_PORT: u16 = 29;
/// `RTA_MULTIPATH`: `struct rtnexthop`, 8 bytes with the length at 0, flags at 2 and the link at 4, and its attributes, for each;
/// `RTNH_F_DEAD`.
const MULTIPATH: u16 = 9;
const NEXT_HOP: usize = 8;
const DEAD: u8 = 1;
/// `RTM_F_FIB_MATCH`.
const FIB_MATCH: u32 = 0x2000;
/// `RTN_UNICAST` and `RTN_LOCAL`.
const UNICAST: u8 = 1;
const LOCAL: u8 = 2;

/// Asks for a packet's route.
pub(super) fn request(packet: &Packet, origin: PacketOrigin) -> Request {
    asked(packet, origin, 0)
}

fn asked(packet: &Packet, origin: PacketOrigin, flags: u32) -> Request {
    let (dst, src) = (packet.to.ip(), packet.from.ip());
    let bits = if dst.is_ipv4() { 32 } else { 128 };
    let mut fixed = [0; FIXED];
    fixed[0] = family(dst);
    fixed[1] = bits;
    let with_source = !src.is_unspecified() && src.is_ipv4() == dst.is_ipv4();
    fixed[2] = if with_source { bits } else { 0 };
    fixed[8..12].copy_from_slice(&flags.to_ne_bytes());
    let mut request = Request::new(libc::RTM_GETROUTE, 0, &fixed).with(DST, &octets(dst));
    if with_source {
        request = request.with(SRC, &octets(src));
    }
    match origin {
        PacketOrigin::Own => {}
        PacketOrigin::In(link) => request = request.with(IIF, &link.0.to_ne_bytes()),
        PacketOrigin::By(link) => request = request.with(OIF, &link.0.to_ne_bytes()),
    }
    if let Some(mark) = packet.mark.filter(|&mark| mark != 0) {
        request = request.with(MARK, &mark.to_ne_bytes());
    }
    request = request.with(IP_PROTO, &[packet.proto.number()]);
    for (kind, port) in [(SOURCE_PORT, packet.from.port()), (DESTINATION_PORT, packet.to.port())] {
        if port != 0 {
            request = request.with(kind, &port.to_be_bytes());
        }
    }
    request
}

/// Asks for the entry of the table that the packet's route is of, with all its next hops (Linux 4.13).
pub(super) fn entry_request(packet: &Packet, origin: PacketOrigin) -> Request {
    asked(packet, origin, FIB_MATCH)
}

/// The next hops of a multipath route that are not dead; none of another one.
pub(super) fn next_hops(message: &Message<'_>) -> Option<Vec<RouteHop>> {
    let attributes = message.body.get(FIXED..).filter(|_| message.kind == libc::RTM_NEWROUTE)?;
    let mut rest = attribute(attributes, MULTIPATH)?;
    let mut hops = Vec::new();
    while let Some((length, link)) = u16_at(rest, 0).map(usize::from).zip(u32_at(rest, 4)) {
        let Some(own) = rest.get(NEXT_HOP..length) else { break };
        let via = || address(attribute(own, VIA)?.get(2..)?);
        if rest[2] & DEAD == 0 {
            hops.push((Ifindex(link), attribute(own, GATEWAY).and_then(address).or_else(via)));
        }
        rest = rest.get(aligned(length)..).unwrap_or_default();
    }
    Some(hops)
}

/// What the answer says; none if it is something else.
pub(super) fn route(message: &Message<'_>) -> Option<Result<RouteResult, String>> {
    let kind = *message.body.get(7)?;
    if message.kind != libc::RTM_NEWROUTE {
        return None;
    }
    let attributes = message.body.get(FIXED..)?;
    match kind {
        LOCAL => Some(Ok(RouteResult::Here)),
        UNICAST => {
            let link = Ifindex(u32_at(attribute(attributes, OIF)?, 0)?);
            let via = || address(attribute(attributes, VIA)?.get(2..)?);
            let gateway = attribute(attributes, GATEWAY).and_then(address).or_else(via);
            let source = attribute(attributes, PREFERRED).and_then(address);
            Some(Ok(RouteResult::Out { link, gateway, source }))
        }
        3 | 5 => Some(Err("it is multicast or broadcast, which has no single path".to_owned())),
        other => Some(Err(format!("the route is of type {other}, which leads nowhere"))),
    }
}

/// Why there is no route, for people.
pub(super) fn refusal(packet: &Packet, error: &io::Error) -> String {
    let to = packet.to.ip();
    match error.raw_os_error() {
        Some(libc::ENETUNREACH) => format!("there is no route to {to}"),
        Some(libc::EHOSTUNREACH) => {
            format!("{to} is not reachable from here: unreachable by a route, or not forwarded")
        }
        Some(libc::EACCES) => format!("a route prohibits {to}"),
        Some(libc::EINVAL) => {
            format!("the path to {to} is a blackhole route, or its source address is not accepted")
        }
        Some(libc::EXDEV) => {
            format!("packets for {to} arrive on a link that their answers would not use (rp_filter)")
        }
        _ => format!("the route to {to} cannot be read ({error})"),
    }
}

/// `struct ifaddrmsg`, bytes: the link at 4; `IFA_ADDRESS`, which is the other end's where there is an `IFA_LOCAL`.
const ADDRESS: usize = 8;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

/// Asks for all addresses of the namespace.
pub(super) fn own_addresses() -> Request {
    Request::new(libc::RTM_GETADDR, DUMP, &[0; ADDRESS])
}

/// An address, and the link that has it; none if the message is something else.
pub(super) fn own_address(message: &Message<'_>) -> Option<(Ifindex, IpAddr)> {
    let attributes = message.body.get(ADDRESS..).filter(|_| message.kind == libc::RTM_NEWADDR)?;
    let own = attribute(attributes, IFA_LOCAL).or_else(|| attribute(attributes, IFA_ADDRESS))?;
    Some((Ifindex(u32_at(message.body, 4)?), address(own)?))
}

pub(super) fn family(ip: IpAddr) -> u8 {
    u8::try_from(if ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }).unwrap_or_default()
}

pub(super) fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// An address of 4 or 16 octets.
pub(super) fn address(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => Some(IpAddr::from(*octets.first_chunk::<4>()?)),
        16 => Some(IpAddr::from(*octets.first_chunk::<16>()?)),
        _ => None,
    }
}
