//! `RTM_GETSTATS` → counters, scanned by hand. Asked for and parsed every tick, so it reads the eight numbers it needs
//! and nothing else. Measured by crates/source/benches/links.rs at 2,000 links against the bare dump: a whole tick with this scan 1.03
//! times, the dump parsed by netlink-packet-route 1.34 times.

use crate::netlink::message::{DUMP, Message, Request, aligned, attribute, u16_at, u32_at, u64_at};
use vnettop_sample::{Ifindex, LinkCounters};

/// `RTM_NEWSTATS`, Linux 4.7.
const NEWSTATS: u16 = 92;
/// `RTM_GETSTATS`.
const GETSTATS: u16 = 94;
/// `IFLA_STATS_LINK_64`: a `struct rtnl_link_stats64`.
const LINK_64: u16 = 1;
/// `struct if_stats_msg`, bytes: family, padding, ifindex at 4, filter mask at 8.
const FIXED: usize = 12;

/// Asks for one link's counters, or for those of all, and for nothing more.
pub(super) fn request(link: Option<Ifindex>) -> Request {
    let mut fixed = [0; FIXED];
    fixed[4..8].copy_from_slice(&link.unwrap_or_default().0.to_ne_bytes());
    fixed[8..12].copy_from_slice(&(1_u32 << (LINK_64 - 1)).to_ne_bytes());
    Request::new(GETSTATS, if link.is_none() { DUMP } else { 0 }, &fixed)
}

/// One link's counters; none if the message is something else.
pub(super) fn row(message: &Message<'_>, netns: u64, at_ns: u64) -> Option<LinkCounters> {
    if message.kind != NEWSTATS {
        return None;
    }
    let ifindex = Ifindex(u32_at(message.body, 4).filter(|&index| index != 0)?);
    // Eight of the 24 or 25 (Linux 5.19) numbers, and these have been the first eight since the struct exists.
    let numbers: &[u8; 64] = stats(message.body.get(FIXED..)?)?.first_chunk()?;
    let number = |at: usize| u64_at(numbers, at * 8).unwrap_or_default();
    Some(LinkCounters {
        netns,
        ifindex,
        at_ns,
        rx_packets: number(0),
        tx_packets: number(1),
        rx_bytes: number(2),
        tx_bytes: number(3),
        rx_errors: number(4),
        tx_errors: number(5),
        rx_dropped: number(6),
        tx_dropped: number(7),
    })
}

/// The value of `IFLA_STATS_LINK_64`: nearly always the first attribute or the one after four bytes of padding.
fn stats(attributes: &[u8]) -> Option<&[u8]> {
    let (length, kind) = (usize::from(u16_at(attributes, 0)?), u16_at(attributes, 2)?);
    match kind {
        LINK_64 => attributes.get(4..length),
        _ => attribute(attributes.get(aligned(length.max(4))..)?, LINK_64),
    }
}
