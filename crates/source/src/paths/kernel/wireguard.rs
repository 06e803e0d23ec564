//! Generic netlink's family `wireguard` (`WG_CMD_GET_DEVICE`): the peers of one link; and `sock_diag`, which tells in which
//! namespace its socket is. Private and preshared keys come along with the peers, and are passed over.

use super::route::address;
use crate::flows::diag;
use crate::netlink::generic::FIXED as GENERIC;
use crate::netlink::message::{DUMP, Message, Request, attribute, attributes, u16_at, u32_at};
use crate::paths::lookups::{PublicKey, Wireguard, WireguardPeer};
use std::net::{IpAddr, SocketAddr};
use vnettop_sample::Ifindex;

/// The family's name.
pub(super) const FAMILY: &str = "wireguard";
/// `WG_CMD_GET_DEVICE` and `WG_GENL_VERSION`.
pub(super) const GET_DEVICE: u8 = 0;
const VERSION: u8 = 1;
/// `WGDEVICE_A_*`.
const IFINDEX: u16 = 1;
const OWN_KEY: u16 = 4;
const LISTEN_PORT: u16 = 6;
const FWMARK: u16 = 7;
const PEERS: u16 = 8;
/// `WGPEER_A_*`.
const PEER_KEY: u16 = 1;
const ENDPOINT: u16 = 4;
const ALLOWED: u16 = 9;
/// `WGALLOWEDIP_A_*`.
const IP: u16 = 2;
const BITS: u16 = 3;

/// Asks for one link with its peers.
pub(super) fn request(family: u16, link: Ifindex) -> Request {
    Request::new(family, DUMP, &[GET_DEVICE, VERSION, 0, 0]).with(IFINDEX, &link.0.to_ne_bytes())
}

/// Takes what a message of the answer says: only the first has the link's own, and what a peer has may go on in the next.
pub(super) fn parse(message: &Message<'_>, into: &mut Wireguard) {
    let Some(body) = message.body.get(GENERIC..) else { return };
    for (kind, value) in attributes(body) {
        match kind {
            OWN_KEY => into.key = key(value),
            LISTEN_PORT => into.port = u16_at(value, 0).unwrap_or(0),
            FWMARK => into.mark = u32_at(value, 0).unwrap_or(0),
            PEERS => attributes(value).for_each(|(_, peer)| self::peer(peer, &mut into.peers)),
            _ => {}
        }
    }
}

fn key(value: &[u8]) -> Option<PublicKey> {
    value.try_into().ok()
}

fn peer(bytes: &[u8], into: &mut Vec<WireguardPeer>) {
    let Some(key) = attribute(bytes, PEER_KEY).and_then(key) else { return };
    if into.last().is_none_or(|last| last.key != key) {
        into.push(WireguardPeer { key, ..WireguardPeer::default() });
    }
    let Some(peer) = into.last_mut() else { return };
    if let Some(endpoint) = attribute(bytes, ENDPOINT).and_then(endpoint) {
        peer.endpoint = Some(endpoint);
    }
    let allowed = attributes(attribute(bytes, ALLOWED).unwrap_or_default());
    peer.allowed.extend(allowed.filter_map(|(_, one)| {
        let ip = attribute(one, IP).and_then(address)?;
        let bits = *attribute(one, BITS)?.first()?;
        Some((ip, bits))
    }));
}

/// `struct sockaddr_in` or `struct sockaddr_in6`: family, port in network order, address at 4 or 8.
fn endpoint(bytes: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let ip = match i32::from(u16_at(bytes, 0)?) {
        libc::AF_INET => IpAddr::from(*bytes.get(4..)?.first_chunk::<4>()?),
        libc::AF_INET6 => IpAddr::from(*bytes.get(8..)?.first_chunk::<16>()?),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// What wireguard gives its sockets (`set_sock_opts`), and no process can: `SO_SNDBUF` makes even numbers.
const MOST: u32 = i32::MAX.unsigned_abs();

/// It is the socket of a wireguard on that port.
pub(super) fn is_its_socket(message: &Message<'_>, port: u16) -> bool {
    let on_port = diag::parse(message).is_some_and(|socket| socket.id.local().port() == port);
    on_port && diag::send_limit(message) == Some(MOST)
}
