//! `RTM_GETNEIGH`: the MAC address of a neighbour, and the forwarding tables of bridges and of vxlan
//! (`AF_BRIDGE`). Single entries can be asked for from Linux 5.0; before it there are only lists.

use super::route::{address, family, octets};
use crate::netlink::client::NetlinkClient;
use crate::netlink::message::{DUMP, Message, Request, attribute, u16_at, u32_at};
use crate::netlink::socket::Transport;
use crate::paths::lookups::{Bridged, Mac, Neighbour};
use std::net::IpAddr;
use vnettop_sample::Ifindex;

/// `struct ndmsg`, bytes: family, ifindex at 4, state at 8, flags at 10.
const FIXED: usize = 12;
/// `struct ifinfomsg`, bytes: family, ifindex at 4.
const LISTING: usize = 16;
const DST: u16 = 1;
const LLADDR: u16 = 2;
const VLAN: u16 = 5;
const MASTER: u16 = 9;
/// `NUD_INCOMPLETE`: it was asked and has not answered yet; `NUD_FAILED`: it has not answered.
const INCOMPLETE: u8 = 0x01;
const FAILED: u8 = 0x20;
/// `NUD_PERMANENT`: in a bridge's table an address of the bridge itself or of a port.
const PERMANENT: u8 = 0x80;
/// `NTF_SELF`: the device's own table.
const SELF: u8 = 0x02;
const AF_BRIDGE: u8 = 7;

/// An entry of a table, and how it is asked for: alone, or where the kernel cannot be asked so (before Linux 5.0), among all.
#[derive(Debug, Clone)]
pub(super) struct TableEntry {
    one: Request,
    list: Request,
    /// The attribute that it has.
    named: (u16, Vec<u8>),
    vlan: Option<u16>,
    /// A bridge's, else a link's own.
    bridge: Option<Ifindex>,
    link: Option<Ifindex>,
}

impl TableEntry {
    /// A neighbour on a link.
    pub fn of_neighbour(link: Ifindex, ip: IpAddr) -> Self {
        let one = Request::new(libc::RTM_GETNEIGH, 0, &fixed(family(ip), link.0, 0)).with(DST, &octets(ip));
        let list = Request::new(libc::RTM_GETNEIGH, DUMP, &fixed(family(ip), 0, 0));
        Self { one, list, named: (DST, octets(ip)), vlan: None, bridge: None, link: Some(link) }
    }

    /// A bridge's for an address.
    pub fn of_bridge(bridge: Ifindex, mac: Mac, vlan: Option<u16>) -> Self {
        let index = bridge.0.to_ne_bytes();
        let one = Request::new(libc::RTM_GETNEIGH, 0, &fixed(AF_BRIDGE, 0, 0)).with(LLADDR, &mac).with(MASTER, &index);
        let one = match vlan {
            Some(vlan) => one.with(VLAN, &vlan.to_ne_bytes()),
            None => one,
        };
        let list = Request::new(libc::RTM_GETNEIGH, DUMP, &listing(Ifindex(0))).with(libc::IFLA_MASTER, &index);
        Self { one, list, named: (LLADDR, mac.to_vec()), vlan, bridge: Some(bridge), link: None }
    }

    /// A vxlan's for an address.
    pub fn of_tunnel(tunnel: Ifindex, mac: Mac) -> Self {
        let one = Request::new(libc::RTM_GETNEIGH, 0, &fixed(AF_BRIDGE, tunnel.0, SELF)).with(LLADDR, &mac);
        let list = Request::new(libc::RTM_GETNEIGH, DUMP, &listing(tunnel));
        Self { one, list, named: (LLADDR, mac.to_vec()), vlan: None, bridge: None, link: Some(tunnel) }
    }

    /// Asks for it.
    pub fn ask<W: Transport, T>(
        mut self,
        netlink: &mut NetlinkClient<W>,
        answer: impl Fn(&Message<'_>) -> Option<T>,
    ) -> Option<T> {
        match netlink.get(&mut self.one, &answer) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => self.find(netlink, answer),
            reported => reported.ok().flatten(),
        }
    }

    /// Finds it among all.
    pub(super) fn find<W: Transport, T>(
        &self,
        netlink: &mut NetlinkClient<W>,
        answer: impl Fn(&Message<'_>) -> Option<T>,
    ) -> Option<T> {
        let mut found = None;
        let each = |message: &Message<'_>, _: u64| {
            if found.is_none() && self.is_it(message) {
                found = answer(message);
            }
        };
        netlink.dump(&mut self.list.clone(), "list neighbours", each).ok()?;
        found
    }

    fn is_it(&self, message: &Message<'_>) -> bool {
        let Some(attributes) = attributes(message) else { return false };
        let of = |kind| attribute(attributes, kind);
        let bridge = of(MASTER).and_then(|value| u32_at(value, 0)).map(Ifindex);
        let link = u32_at(message.body, 4).map(Ifindex);
        of(self.named.0) == Some(&self.named.1)
            && of(VLAN).and_then(|value| u16_at(value, 0)) == self.vlan
            && bridge == self.bridge
            && (self.link.is_none() || self.link == link)
    }
}

/// `struct ifinfomsg`, with which Linux of before 5.0 takes a list's narrowing.
fn listing(link: Ifindex) -> [u8; LISTING] {
    let mut listing = [0; LISTING];
    listing[0] = AF_BRIDGE;
    listing[4..8].copy_from_slice(&link.0.to_ne_bytes());
    listing
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

/// The neighbour's address, and whether it answers.
pub(super) fn reported(message: &Message<'_>) -> Option<Neighbour> {
    let mac = attribute(attributes(message)?, LLADDR).filter(|mac| mac.len() == 6);
    let is_silent = message.body.get(8).is_some_and(|state| state & (INCOMPLETE | FAILED) != 0);
    Some(Neighbour { mac: mac.and_then(|mac| mac.first_chunk().copied()), is_silent })
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
