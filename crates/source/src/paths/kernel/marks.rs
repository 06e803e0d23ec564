//! Marks and routes: whether a namespace has rules that look at marks (`RTM_GETRULE`), and whether netfilter there sets
//! marks, which no lookup of ours can know. Marks set by `tc` or by BPF programs are not looked for.

use super::route;
use crate::netlink::message::{DUMP, Message, Request, attribute, attributes, text, u32_at};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

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

/// `NFNL_SUBSYS_NFTABLES << 8` with `NFT_MSG_NEWRULE` and `NFT_MSG_GETRULE`; `struct nfgenmsg`, bytes.
const NEW: u16 = 0x0a06;
const GET: u16 = 0x0a07;
const NFGENMSG: usize = 4;
/// `NFTA_RULE_EXPRESSIONS`; `NFTA_EXPR_NAME` and `NFTA_EXPR_DATA`.
const EXPRESSIONS: u16 = 4;
const NAME: u16 = 1;
const DATA: u16 = 2;
/// `NFTA_META_KEY` and, where it is set and not read, `NFTA_META_SREG`; `NFT_META_MARK`.
const META_KEY: u16 = 2;
const META_SOURCE: u16 = 3;
const META_MARK: u32 = 3;
/// `NFTA_TARGET_NAME`: what iptables over nftables calls by name.
const TARGET_NAME: u16 = 1;
const TARGETS: [&[u8]; 3] = [b"MARK", b"CONNMARK", b"TPROXY"];

/// Asks for every rule of nftables.
pub(super) fn filters() -> Request {
    Request::new(GET, DUMP, &[0; NFGENMSG])
}

/// The rule sets the mark of packets.
pub(super) fn sets_marks(message: &Message<'_>) -> bool {
    let body = message.body.get(NFGENMSG..).filter(|_| message.kind == NEW).unwrap_or_default();
    let expressions = attributes(attribute(body, EXPRESSIONS).unwrap_or_default());
    expressions.into_iter().any(|(_, expression)| {
        let data = attribute(expression, DATA).unwrap_or_default();
        match attribute(expression, NAME).map(text) {
            Some(b"meta") => {
                let key = attribute(data, META_KEY).and_then(|value| u32_at(value, 0)).map(u32::from_be);
                key == Some(META_MARK) && attribute(data, META_SOURCE).is_some()
            }
            Some(b"target") => attribute(data, TARGET_NAME).is_some_and(|name| TARGETS.contains(&text(name))),
            _ => false,
        }
    })
}

/// Asking for rules would load the module that has none: it is on disk and not in the kernel.
pub(super) fn would_load() -> bool {
    let Ok(modules) = std::fs::read_to_string("/proc/modules") else { return false };
    let Ok(release) = std::fs::read_to_string("/proc/sys/kernel/osrelease") else { return false };
    let file = Path::new("/lib/modules").join(release.trim()).join("kernel/net/netfilter");
    let on_disk = ["", ".xz", ".zst", ".gz"].iter().any(|end| file.join(format!("nf_tables.ko{end}")).exists());
    on_disk && !modules.lines().any(|line| line.starts_with("nf_tables "))
}

/// The calling thread's namespace uses the table of the older iptables that marks are set in; only root may read that.
pub(super) fn has_mangle_table(is_ipv6: bool) -> bool {
    let file = if is_ipv6 { "ip6_tables_names" } else { "ip_tables_names" };
    let names = std::fs::read_to_string(Path::new("/proc/thread-self/net").join(file));
    names.is_ok_and(|names| names.lines().any(|name| name == "mangle"))
}
