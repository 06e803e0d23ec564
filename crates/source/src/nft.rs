//! What nftables says of its rules and chains by netlink (`linux/netfilter/nf_tables.h`). Every question needs
//! `CAP_NET_ADMIN` in the namespace.

mod met;

use crate::netlink::message::{DUMP, Message, Request, attribute, attributes, text, u32_at};
pub(crate) use met::{Hook, MetRules, PassedHooks};
use std::path::Path;

/// `NFNL_SUBSYS_NFTABLES << 8` with `NFT_MSG_NEWCHAIN`, `NFT_MSG_GETCHAIN`, `NFT_MSG_NEWRULE`, `NFT_MSG_GETRULE`;
/// `struct nfgenmsg`, bytes.
const NEW_CHAIN: u16 = 0x0a03;
const GET_CHAIN: u16 = 0x0a04;
const NEW_RULE: u16 = 0x0a06;
const GET_RULE: u16 = 0x0a07;
const NFGENMSG: usize = 4;
/// `NFTA_CHAIN_TABLE`, `NFTA_CHAIN_NAME`, `NFTA_CHAIN_HOOK`; those of a rule; `NFTA_RULE_EXPRESSIONS`.
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
/// `NFTA_HOOK_HOOKNUM`, `NFTA_HOOK_DEV`, `NFTA_HOOK_DEVS`.
const HOOK_NUMBER: u16 = 1;
const HOOK_DEVICE: u16 = 3;
const HOOK_DEVICES: u16 = 4;
/// `NFTA_EXPR_NAME` and `NFTA_EXPR_DATA`.
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
/// `NFTA_IMMEDIATE_DATA` of a verdict: `NFTA_DATA_VERDICT`, and in it `NFTA_VERDICT_CHAIN`.
const IMMEDIATE_DATA: u16 = 2;
const DATA_VERDICT: u16 = 2;
const VERDICT_CHAIN: u16 = 2;
/// `NFTA_LOOKUP_DREG`; the register of verdicts is number 0 (`NFT_REG_VERDICT`).
const LOOKUP_TARGET: u16 = 3;

/// Which chain: its protocol family (`NFPROTO_*`), table and name.
pub(crate) type ChainKey = (u8, Vec<u8>, Vec<u8>);

/// A chain, and where packets enter it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain {
    pub key: ChainKey,
    /// The number of its hook, and the devices that it is bound to; none of a chain that only rules lead to.
    pub hook: Option<(u32, Vec<Vec<u8>>)>,
}

/// Asks for every chain.
pub(crate) fn chains() -> Request {
    Request::new(GET_CHAIN, DUMP, &[0; NFGENMSG])
}

/// Asks for every rule.
pub(crate) fn rules() -> Request {
    Request::new(GET_RULE, DUMP, &[0; NFGENMSG])
}

/// Reads a chain.
pub(crate) fn chain(message: &Message<'_>) -> Option<Chain> {
    let (family, body) = body(message, NEW_CHAIN)?;
    let key = (family, owned(body, CHAIN_TABLE)?, owned(body, CHAIN_NAME)?);
    let hook = attribute(body, CHAIN_HOOK).and_then(|hook| {
        let one = attribute(hook, HOOK_DEVICE).map(|name| text(name).to_vec());
        let more = attributes(attribute(hook, HOOK_DEVICES).unwrap_or_default()).map(|(_, name)| text(name).to_vec());
        Some((big_endian(hook, HOOK_NUMBER)?, one.into_iter().chain(more).collect()))
    });
    Some(Chain { key, hook })
}

/// The chain that a rule is in.
pub(crate) fn chain_of_rule(message: &Message<'_>) -> Option<ChainKey> {
    let (family, body) = body(message, NEW_RULE)?;
    Some((family, owned(body, RULE_TABLE)?, owned(body, RULE_CHAIN)?))
}

/// The expressions of a rule, each by its name with its attributes.
pub(crate) fn expressions<'a>(message: &Message<'a>) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let (_, body) = body(message, NEW_RULE).unwrap_or_default();
    attributes(attribute(body, RULE_EXPRESSIONS).unwrap_or_default()).filter_map(|(_, expression)| {
        let data = attribute(expression, EXPRESSION_DATA).unwrap_or_default();
        Some((text(attribute(expression, EXPRESSION_NAME)?), data))
    })
}

/// The chain that an expression jumps or goes to.
pub(crate) fn target<'a>((name, data): (&[u8], &'a [u8])) -> Option<&'a [u8]> {
    let data = attribute(data, IMMEDIATE_DATA).filter(|_| name == b"immediate")?;
    attribute(attribute(data, DATA_VERDICT)?, VERDICT_CHAIN).map(text)
}

/// An expression looks up in a map what to do, which may lead to any chain of its table.
pub(crate) fn is_verdict_map((name, data): (&[u8], &[u8])) -> bool {
    name == b"lookup" && big_endian(data, LOOKUP_TARGET) == Some(0)
}

/// A number of nftables, which writes them as a network does.
pub(crate) fn big_endian(attributes: &[u8], kind: u16) -> Option<u32> {
    attribute(attributes, kind).and_then(|value| u32_at(value, 0)).map(u32::from_be)
}

fn body<'a>(message: &Message<'a>, kind: u16) -> Option<(u8, &'a [u8])> {
    let family = message.body.first().filter(|_| message.kind == kind)?;
    Some((*family, message.body.get(NFGENMSG..)?))
}

fn owned(attributes: &[u8], kind: u16) -> Option<Vec<u8>> {
    attribute(attributes, kind).map(|value| text(value).to_vec())
}

/// Asking for rules would load the module that has none: it is on disk and not in the kernel.
pub(crate) fn would_load() -> bool {
    let Ok(modules) = std::fs::read_to_string("/proc/modules") else { return false };
    let Ok(release) = std::fs::read_to_string("/proc/sys/kernel/osrelease") else { return false };
    let file = Path::new("/lib/modules").join(release.trim()).join("kernel/net/netfilter");
    let on_disk = ["", ".xz", ".zst", ".gz"].iter().any(|end| file.join(format!("nf_tables.ko{end}")).exists());
    on_disk && !modules.lines().any(|line| line.starts_with("nf_tables "))
}

/// The tables of the older iptables in the calling thread's namespace, a line each; only root may read that.
pub(crate) fn older_tables(is_ipv6: bool) -> String {
    let file = if is_ipv6 { "ip6_tables_names" } else { "ip_tables_names" };
    std::fs::read_to_string(Path::new("/proc/thread-self/net").join(file)).unwrap_or_default()
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    let mut rules = MetRules::default();
    for message in crate::netlink::message::messages(bytes) {
        rules.take_chain(&message);
        rules.take_rule(&message);
    }
    let every = std::collections::BTreeSet::from([
        Hook::Prerouting,
        Hook::Input,
        Hook::Forward,
        Hook::Output,
        Hook::Postrouting,
    ]);
    rules.count(&PassedHooks { ip: [every.clone(), every.clone()], bridge: every, ..PassedHooks::default() });
}

#[cfg(test)]
mod tests;
