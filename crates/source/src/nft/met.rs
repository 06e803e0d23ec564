//! Hooks that packets pass → the rules that they may meet: those of the chains there, and of the chains that these
//! lead to.

use super::{ChainKey, chain, chain_of_rule, expressions, is_verdict_map, target};
use crate::netlink::message::Message;
use std::collections::{BTreeMap, BTreeSet};

/// Families (`NFPROTO_*`).
const INET: u8 = 1;
const IPV4: u8 = 2;
const NETDEV: u8 = 5;
const BRIDGE: u8 = 7;
const IPV6: u8 = 10;
/// `NF_INET_INGRESS`; `NF_NETDEV_EGRESS`.
const INET_INGRESS: u32 = 5;
const NETDEV_EGRESS: u32 = 1;

/// Where packets pass the chains of a network namespace; a bridge's hooks have the same numbers (`NF_INET_*`,
/// `NF_BR_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hook {
    Prerouting = 0,
    Input = 1,
    Forward = 2,
    Output = 3,
    Postrouting = 4,
}

/// The hooks that packets pass in one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PassedHooks {
    /// Of IPv4 and of IPv6.
    pub ip: [BTreeSet<Hook>; 2],
    /// Hooks of IPv4 and of IPv6 that a bridge has its packets pass, where it is told to (`br_netfilter`).
    pub ip_of_bridge: [BTreeSet<Hook>; 2],
    pub bridge: BTreeSet<Hook>,
    /// Names of links that they come in by, and that they leave by.
    pub links: [BTreeSet<Vec<u8>>; 2],
}

impl PassedHooks {
    /// Bridges here have their packets pass the hooks of IP: of IPv4, of IPv6.
    pub fn call_ip(&mut self, called: [bool; 2]) {
        for at in (0..2).filter(|&at| called[at]) {
            self.ip[at].append(&mut self.ip_of_bridge[at]);
        }
    }

    fn has(&self, family: u8, number: u32, devices: &[Vec<u8>]) -> bool {
        let passes = |hooks: &BTreeSet<Hook>| hooks.iter().any(|&hook| hook as u32 == number);
        // The name of a device may end with `*`.
        let is_there = |names: &BTreeSet<Vec<u8>>, device: &[u8]| match device.strip_suffix(b"*") {
            Some(begin) => names.iter().any(|name| name.starts_with(begin)),
            None => names.contains(device),
        };
        let bound = |at: usize| devices.iter().any(|device| is_there(&self.links[at], device));
        match family {
            INET if number == INET_INGRESS => bound(0),
            INET => self.ip.iter().any(passes),
            IPV4 => passes(&self.ip[0]),
            IPV6 => passes(&self.ip[1]),
            BRIDGE => passes(&self.bridge),
            NETDEV => bound(usize::from(number == NETDEV_EGRESS)),
            _ => false,
        }
    }
}

/// Counts the rules of each chain of a namespace, and finds which of them packets may meet.
#[derive(Debug, Default)]
pub(crate) struct MetRules {
    chains: BTreeMap<ChainKey, MetChain>,
}

#[derive(Debug, Default)]
struct MetChain {
    hook: Option<(u32, Vec<Vec<u8>>)>,
    rules: u32,
    leads_to: BTreeSet<Vec<u8>>,
    has_map: bool,
}

impl MetRules {
    /// Takes a message of the list of chains.
    pub fn take_chain(&mut self, message: &Message<'_>) {
        if let Some(chain) = chain(message) {
            self.chains.entry(chain.key).or_default().hook = chain.hook;
        }
    }

    /// Takes a message of the list of rules.
    pub fn take_rule(&mut self, message: &Message<'_>) {
        let Some(key) = chain_of_rule(message) else { return };
        let chain = self.chains.entry(key).or_default();
        chain.rules = chain.rules.saturating_add(1);
        for expression in expressions(message) {
            chain.has_map |= is_verdict_map(expression);
            if let Some(name) = target(expression).filter(|&name| !chain.leads_to.contains(name)) {
                chain.leads_to.insert(name.to_vec());
            }
        }
    }

    /// How many rules packets that pass these hooks may meet, and whether a map may lead them to more.
    pub fn count(&self, hooks: &PassedHooks) -> (u32, bool) {
        let is_passed = |(key, chain): &(&ChainKey, &MetChain)| {
            chain.hook.as_ref().is_some_and(|(number, devices)| hooks.has(key.0, *number, devices))
        };
        let mut next: Vec<ChainKey> = self.chains.iter().filter(is_passed).map(|(key, _)| key.clone()).collect();
        let (mut met, mut rules, mut has_map) = (BTreeSet::new(), 0_u32, false);
        while let Some(key) = next.pop() {
            let Some(chain) = self.chains.get(&key).filter(|_| !met.contains(&key)) else { continue };
            rules = rules.saturating_add(chain.rules);
            has_map |= chain.has_map;
            next.extend(chain.leads_to.iter().map(|name| (key.0, key.1.clone(), name.clone())));
            met.insert(key);
        }
        (rules, has_map)
    }
}
