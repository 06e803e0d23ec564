//! Captures the fixtures of tests/fixtures/netlink: real messages of this kernel, one file each, byte for byte.
//! Ignored: it rewrites files. `cargo test --test live -- --ignored --exact measures::links::capture::capture` as root.

use super::zoo;
use crate::ground::namespace::{ip, live, run};
use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_ROUTE};
use netlink_sys::{Socket, SocketAddr};
use std::path::Path;

pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/netlink");
pub const DUMP: u16 = 0x301;
/// The body of an `RTM_GETLINK` of every link, with `RTEXT_FILTER_SKIP_STATS`.
pub const LINKS: [&[u8]; 2] = [&[0; 16], &[8, 0, 29, 0, 8, 0, 0, 0]];

#[test]
#[ignore = "it rewrites the fixtures"]
fn capture() {
    live(|| {
        zoo();
        ip("link set pair0 alias uplink");
        traffic();
        let route = Socket::new(NETLINK_ROUTE).unwrap();
        let links = ask(&route, 18, DUMP, &LINKS.concat());
        for message in links.iter().flat_map(|datagram| split(datagram)).filter(|message| message[4] == 16) {
            keep(&format!("newlink-{}", name(message)), message);
        }
        for (n, datagram) in ask(&route, 94, DUMP, &[0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]).iter().enumerate() {
            keep(&format!("getstats-{n}"), datagram);
        }
        notifications();
        speeds();
    });
}

/// Ten datagrams of 100 bytes out of one end of a pair and into the other.
fn traffic() {
    ip("addr add 198.18.0.1/24 dev pair0");
    ip("neigh add 198.18.0.2 lladdr 02:00:00:00:00:02 dev pair0");
    let socket = std::net::UdpSocket::bind("198.18.0.1:0").unwrap();
    for _ in 0..10 {
        socket.send_to(&[0; 100], "198.18.0.2:9").unwrap();
    }
}

/// What `RTNLGRP_LINK` says when a port leaves its bridge and when a link is deleted.
fn notifications() {
    let mut news = Socket::new(NETLINK_ROUTE).unwrap();
    news.bind_auto().unwrap();
    news.add_membership(1).unwrap();
    ip("link set tap1 nomaster");
    keep("notifications-port-leaves-bridge", &pending(&news));
    ip("link del fb0");
    keep("notifications-link-deleted", &pending(&news));
}

/// The ethtool family, every claim, and what its monitor group says when a speed is set.
fn speeds() {
    let generic = Socket::new(NETLINK_GENERIC).unwrap();
    let (id, group) = family(&generic);
    keep("ethtool-family", &asked_family(&generic));
    keep("linkmodes", &claims(&generic, id));
    let mut monitor = Socket::new(NETLINK_GENERIC).unwrap();
    monitor.bind_auto().unwrap();
    monitor.add_membership(group).unwrap();
    run("ethtool", "-s tap0 speed 25000");
    keep("notifications-speed-set", &pending(&monitor));
}

/// The ethtool family's number here, and that of its group `monitor`.
pub fn family(generic: &Socket) -> (u16, u32) {
    let family = asked_family(generic);
    let id = u16::from_ne_bytes([family[16 + 4 + 16], family[16 + 4 + 17]]);
    let at = family.windows(8).position(|bytes| bytes == b"monitor\0").unwrap();
    (id, u32::from_ne_bytes(family[at - 8..at - 4].try_into().unwrap()))
}

fn asked_family(generic: &Socket) -> Vec<u8> {
    ask(generic, 16, 1, b"\x03\x01\0\0\x0c\0\x02\0ethtool\0").concat()
}

/// The dump of every claim.
pub fn claims(generic: &Socket, family: u16) -> Vec<u8> {
    ask(generic, family, DUMP, b"\x04\x01\0\0\x0c\0\x01\x80\x08\0\x03\0\x01\0\0\0").concat()
}

/// Sends one request and returns the datagrams of the answer.
pub fn ask(socket: &Socket, kind: u16, flags: u16, body: &[u8]) -> Vec<Vec<u8>> {
    let length = u32::try_from(16 + body.len()).unwrap();
    let head = [length.to_ne_bytes().as_slice(), &kind.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 8]].concat();
    socket.send_to(&[&head, body].concat(), &SocketAddr::new(0, 0), 0).unwrap();
    socket.set_non_blocking(true).unwrap();
    std::iter::from_fn(|| socket.recv_from_full().ok().map(|(datagram, _)| datagram)).collect()
}

fn pending(socket: &Socket) -> Vec<u8> {
    socket.set_non_blocking(true).unwrap();
    std::iter::from_fn(|| socket.recv_from_full().ok().map(|(datagram, _)| datagram)).flatten().collect()
}

pub fn split(mut datagram: &[u8]) -> Vec<&[u8]> {
    let mut messages = Vec::new();
    while !datagram.is_empty() {
        let length = u32::from_ne_bytes(datagram[..4].try_into().unwrap()) as usize;
        let (message, rest) = datagram.split_at(length.next_multiple_of(4).min(datagram.len()));
        messages.push(message);
        datagram = rest;
    }
    messages
}

/// The first attribute of a link is its name.
fn name(message: &[u8]) -> String {
    let length = usize::from(u16::from_ne_bytes([message[32], message[33]]));
    String::from_utf8(message[36..32 + length - 1].to_vec()).unwrap()
}

pub fn keep(name: &str, bytes: &[u8]) {
    assert!(!bytes.is_empty(), "{name} has something in it");
    std::fs::write(Path::new(FOLDER).join(name).with_extension("bin"), bytes).unwrap();
}
