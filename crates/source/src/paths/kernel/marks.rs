//! Marks and routes: whether a namespace has rules that look at marks (`RTM_GETRULE`), and whether netfilter there sets
//! marks, which no lookup of ours can know. Marks set by `tc` or by BPF programs are not looked for.

use super::route;
use crate::netlink::message::{DUMP, Message, Request, attribute, text};
use crate::nft;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `RTM_NEWRULE`, `RTM_GETRULE`; `struct fib_rule_hdr`, bytes; `FRA_FWMARK` and `FRA_FWMASK`.
const NEWRULE: u16 = 32;
const GETRULE: u16 = 34;
const FIXED: usize = 12;
const FWMARK: u16 = 10;
const FWMASK: u16 = 16;

/// Asks for the rules of a family.
pub(super) fn rules(is_ipv6: bool) -> Request {
    let any: IpAddr = if is_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let mut fixed = [0; FIXED];
    fixed[0] = route::family(any);
    Request::new(GETRULE, DUMP, &fixed)
}

/// The rule looks at marks.
pub(super) fn looks_at_marks(message: &Message<'_>) -> bool {
    let attributes = message.body.get(FIXED..).filter(|_| message.kind == NEWRULE).unwrap_or_default();
    [FWMARK, FWMASK].iter().any(|&kind| attribute(attributes, kind).is_some())
}

/// `NFTA_META_KEY` and, where it is set and not read, `NFTA_META_SREG`; `NFT_META_MARK`.
const META_KEY: u16 = 2;
const META_SOURCE: u16 = 3;
const META_MARK: u32 = 3;
/// `NFTA_TARGET_NAME`: what iptables over nftables calls by name.
const TARGET_NAME: u16 = 1;
const TARGETS: [&[u8]; 3] = [b"MARK", b"CONNMARK", b"TPROXY"];

/// The rule of nftables sets the mark of packets.
pub(super) fn sets_marks(message: &Message<'_>) -> bool {
    nft::expressions(message).any(|(name, data)| match name {
        b"meta" => nft::big_endian(data, META_KEY) == Some(META_MARK) && attribute(data, META_SOURCE).is_some(),
        b"target" => attribute(data, TARGET_NAME).is_some_and(|name| TARGETS.contains(&text(name))),
        _ => false,
    })
}

/// The calling thread's namespace uses the table of the older iptables that marks are set in; only root may read that.
pub(super) fn has_mangle_table(is_ipv6: bool) -> bool {
    nft::older_tables(is_ipv6).lines().any(|name| name == "mangle")
}
