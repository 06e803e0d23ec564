//! Connection tracking (`IPCTNL_MSG_CT_GET`): what NAT makes of one packet. One entry is asked for, by its addresses and
//! ports; either direction of a connection finds it.

use super::route::{address, family, octets};
use crate::netlink::message::{Message, NLA_F_NESTED, Request, attribute, nested};
use crate::paths::lookups::Packet;
use std::net::{IpAddr, SocketAddr};

/// `NFNL_SUBSYS_CTNETLINK << 8` with `IPCTNL_MSG_CT_GET` and `IPCTNL_MSG_CT_NEW`.
const GET: u16 = 0x0101;
const NEW: u16 = 0x0100;
/// `struct nfgenmsg`, bytes: family, version, resource.
const FIXED: usize = 4;
/// `CTA_TUPLE_ORIG` and `CTA_TUPLE_REPLY`.
const ORIGINAL: u16 = 1;
const REPLY: u16 = 2;
/// Within a tuple: `CTA_TUPLE_IP` and `CTA_TUPLE_PROTO`.
const IP: u16 = 1;
const PROTO: u16 = 2;
/// Within the addresses: source and destination, IPv4 then IPv6.
const V4: (u16, u16) = (1, 2);
const V6: (u16, u16) = (3, 4);
/// Within the protocol: number, ports.
const NUMBER: u16 = 1;
const SOURCE_PORT: u16 = 2;
const DESTINATION_PORT: u16 = 3;

/// Source and destination.
type AddressPair = (SocketAddr, SocketAddr);

/// Asks for the connection that a packet belongs to.
pub(super) fn request(packet: &Packet) -> Request {
    let (from, to) = (packet.from, packet.to);
    let (source, destination) = if from.is_ipv4() { V4 } else { V6 };
    let addresses = nested(&[(source, &octets(from.ip())), (destination, &octets(to.ip()))]);
    let ports = (from.port().to_be_bytes(), to.port().to_be_bytes());
    let protocol = nested(&[(NUMBER, &[packet.proto.number()]), (SOURCE_PORT, &ports.0), (DESTINATION_PORT, &ports.1)]);
    let tuple: [(u16, &[u8]); 2] = [(IP | NLA_F_NESTED, &addresses), (PROTO | NLA_F_NESTED, &protocol)];
    Request::new(GET, 0, &[family(from.ip()), 0, 0, 0]).with_nested(ORIGINAL, &tuple)
}

/// The connection as it began, and as its answers look.
pub(super) fn tracked(message: &Message<'_>) -> Option<(AddressPair, AddressPair)> {
    let attributes = message.body.get(FIXED..).filter(|_| message.kind == NEW)?;
    Some((ends(attribute(attributes, ORIGINAL)?)?, ends(attribute(attributes, REPLY)?)?))
}

fn ends(tuple: &[u8]) -> Option<AddressPair> {
    let (addresses, protocol) = (attribute(tuple, IP)?, attribute(tuple, PROTO)?);
    let ip = |v4, v6| attribute(addresses, v4).or_else(|| attribute(addresses, v6)).and_then(address);
    let port = |kind| Some(u16::from_be_bytes(*attribute(protocol, kind)?.first_chunk()?));
    let end = |ip: Option<IpAddr>, port: Option<u16>| Some(SocketAddr::new(ip?, port?));
    Some((end(ip(V4.0, V6.0), port(SOURCE_PORT))?, end(ip(V4.1, V6.1), port(DESTINATION_PORT))?))
}

/// What the packet is beyond the translation: the answers' ends turned round, or for an answer the original's.
pub(super) fn translated(packet: &Packet, (original, reply): (AddressPair, AddressPair)) -> Option<Packet> {
    let asked = (packet.from, packet.to);
    let (to, from) = match asked {
        _ if asked == original => reply,
        _ if asked == reply => original,
        _ => return None,
    };
    let translated = Packet { from, to, ..*packet };
    (translated != *packet).then_some(translated)
}
