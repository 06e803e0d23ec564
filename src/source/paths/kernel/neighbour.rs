//! `RTM_GETNEIGH`: the Ethernet address of a neighbour, and the forwarding tables of bridges and of vxlan
//! (`AF_BRIDGE`). Single entries can be asked for from Linux 5.0.

use super::route::{address, family, octets};
use crate::sample::Ifindex;
use crate::source::netlink::message::{Message, Request, attribute, u32_at};
use crate::source::paths::lookups::{Bridged, Mac};
use std::net::IpAddr;

/// `struct ndmsg`, bytes: family, ifindex at 4, state at 8, flags at 10.
const FIXED: usize = 12;
const DST: u16 = 1;
const LLADDR: u16 = 2;
const VLAN: u16 = 5;
const MASTER: u16 = 9;
/// `NUD_PERMANENT`: in a bridge's table an address of the bridge itself or of a port.
const PERMANENT: u8 = 0x80;
/// `NTF_SELF`: the device's own table.
const SELF: u8 = 0x02;
const AF_BRIDGE: u8 = 7;
/// `NLM_F_ROOT | NLM_F_MATCH`.
const DUMP: u16 = 0x300;

/// Asks for one neighbour.
pub(super) fn request(link: Ifindex, ip: IpAddr) -> Request {
    Request::new(libc::RTM_GETNEIGH, 0, &fixed(family(ip), link.0, 0)).with(DST, &octets(ip))
}

/// Asks for all of that family.
pub(super) fn list(ip: IpAddr) -> Request {
    Request::new(libc::RTM_GETNEIGH, DUMP, &fixed(family(ip), 0, 0))
}

/// Asks a bridge for an address.
pub(super) fn bridged(bridge: Ifindex, mac: Mac, vlan: Option<u16>) -> Request {
    let request = Request::new(libc::RTM_GETNEIGH, 0, &fixed(AF_BRIDGE, 0, 0)).with(LLADDR, &mac);
    let request = request.with(MASTER, &bridge.0.to_ne_bytes());
    match vlan {
        Some(vlan) => request.with(VLAN, &vlan.to_ne_bytes()),
        None => request,
    }
}

/// Asks a vxlan for an address.
pub(super) fn tunnelled(tunnel: Ifindex, mac: Mac) -> Request {
    Request::new(libc::RTM_GETNEIGH, 0, &fixed(AF_BRIDGE, tunnel.0, SELF)).with(LLADDR, &mac)
}

fn fixed(family: u8, link: u32, flags: u8) -> [u8; FIXED] {
    let mut fixed = [0; FIXED];
    fixed[0] = family;
    fixed[4..8].copy_from_slice(&link.to_ne_bytes());
    fixed[10] = flags;
    fixed
}

fn attributes<'a>(message: &Message<'a>) -> Option<&'a [u8]> {
    if message.kind == libc::RTM_NEWNEIGH { message.body.get(FIXED..) } else { None }
}

/// The neighbour's address.
pub(super) fn mac(message: &Message<'_>) -> Option<Mac> {
    let mac = attribute(attributes(message)?, LLADDR)?;
    if mac.len() == 6 { mac.first_chunk().copied() } else { None }
}

/// The same out of a list.
pub(super) fn listed(message: &Message<'_>, link: Ifindex, ip: IpAddr) -> Option<Mac> {
    let is_it = u32_at(message.body, 4)? == link.0 && address(attribute(attributes(message)?, DST)?)? == ip;
    if is_it { mac(message) } else { None }
}

/// Where a bridge has it.
pub(super) fn bridge_port(message: &Message<'_>) -> Option<Bridged> {
    attributes(message)?;
    let port = Ifindex(u32_at(message.body, 4).filter(|&port| port != 0)?);
    let state = *message.body.get(8)?;
    Some(if state & PERMANENT == 0 { Bridged::Port(port) } else { Bridged::Here })
}

/// The far end that a vxlan has for it.
pub(super) fn far_end(message: &Message<'_>) -> Option<IpAddr> {
    address(attribute(attributes(message)?, DST)?)
}
