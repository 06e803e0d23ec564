//! Sockets that are given every frame of a link (`AF_PACKET`): those of switches in user space, which drop what they have no
//! room for, and no event of the kernel tells of it, because the frame goes on to others. It decides nothing about a drop.

use crate::netlink::client::NetlinkClient;
use crate::netlink::message::{DUMP, Message, Request, attributes, u32_at};
use crate::netlink::sock_diag::{BY_FAMILY, meminfo};
use crate::netlink::socket::protocols;
use std::io;
use vnettop_sample::{Ifindex, LinkKey, PacketSocket};

/// `AF_PACKET`.
const PACKET: u8 = 17;
/// `PACKET_SHOW_INFO`, `PACKET_SHOW_MEMINFO` (Linux 3.10).
const SHOWN: u32 = 1 | 1 << 4;
/// `struct packet_diag_msg`, bytes: family, type, protocol, inode at 4, cookie.
const FIXED: usize = 16;
const INODE: usize = 4;
/// `PACKET_DIAG_INFO`, whose first number is the link's index, and `PACKET_DIAG_MEMINFO`.
const INFO: u16 = 0;
const MEMINFO: u16 = 6;
/// Sockets of one namespace that are told at most.
const MOST: usize = 256;

/// One namespace's list.
#[derive(Debug)]
pub(super) struct PacketSockets {
    netlink: NetlinkClient,
    request: Request,
}

impl PacketSockets {
    /// Of the namespace of the calling thread.
    pub fn open() -> io::Result<Self> {
        let mut fixed = [0; 20];
        fixed[0] = PACKET;
        fixed[8..12].copy_from_slice(&SHOWN.to_ne_bytes());
        let netlink = NetlinkClient::open(protocols::NETLINK_SOCK_DIAG)?;
        Ok(Self { netlink, request: Request::new(BY_FAMILY, DUMP, &fixed) })
    }

    /// Adds the packet sockets on `links` (sorted), or on all when that is empty; false when the kernel lists none (no `packet_diag`).
    pub fn list(&mut self, netns: u64, links: &[Ifindex], into: &mut Vec<PacketSocket>) -> bool {
        let first = into.len();
        let received = self.netlink.dump(&mut self.request, "list packet sockets", |message, _| {
            let is_wanted = |ifindex| links.is_empty() || links.binary_search(&ifindex).is_ok();
            let reported = parse(message, netns).filter(|reported| is_wanted(reported.link.ifindex));
            if into.len() - first < MOST {
                into.extend(reported);
            }
        });
        into[first..].sort_by_key(PacketSocket::key);
        received.is_ok()
    }
}

pub(super) fn parse(message: &Message<'_>, netns: u64) -> Option<PacketSocket> {
    let body = message.body;
    if message.kind != BY_FAMILY || *body.first()? != PACKET {
        return None;
    }
    let inode = u32_at(body, INODE)?;
    let (mut index, mut drops) = (None, None);
    for (kind, value) in attributes(body.get(FIXED..)?) {
        match kind {
            INFO => index = u32_at(value, 0),
            MEMINFO => drops = u32_at(value, meminfo::DROPS),
            _ => {}
        }
    }
    let link = LinkKey { netns, ifindex: Ifindex(index.filter(|&index| index != 0)?) };
    Some(PacketSocket { link, inode, drops: drops?, holder: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(index: u32, drops: u32, attribute: u16) -> Vec<u8> {
        let mut fixed = [0; FIXED];
        (fixed[0], fixed[INODE]) = (PACKET, 77);
        let memory: Vec<u8> = (0..8).chain([drops]).flat_map(u32::to_ne_bytes).collect();
        let info = [index.to_ne_bytes(), [0; 4]].concat();
        let mut request = Request::new(BY_FAMILY, 0, &fixed).with(INFO, &info).with(attribute, &memory);
        request.numbered(1)[16..].to_vec()
    }

    #[test]
    fn a_socket_has_its_link_and_its_drops() {
        let reported = |body: &[u8]| parse(&Message { kind: BY_FAMILY, flags: 0, sequence: 0, body }, 5);
        let link = LinkKey { netns: 5, ifindex: Ifindex(3) };
        let socket = PacketSocket { link, inode: 77, drops: 9, holder: None };
        assert_eq!(reported(&message(3, 9, MEMINFO)), Some(socket));
        assert_eq!(reported(&message(0, 9, MEMINFO)), None, "one of all links is a capture");
        assert_eq!(reported(&message(3, 9, 5)), None, "a kernel that does not tell its drops");
        assert_eq!(reported(&[PACKET; 7]), None, "cut");
    }
}
