//! Rules as Linux 6.18 told of them after `nft -f` was given this:
//!
//! ```text
//! table ip filter {
//!   chain forward { type filter hook forward priority 0; policy accept; ip saddr 10.0.0.1 drop; ip saddr 10.0.0.2 drop; jump deep; goto deep; }
//!   chain deep { tcp dport 22 drop; tcp dport 23 drop; jump deeper; }
//!   chain deeper { counter; }
//!   chain input { type filter hook input priority 0; policy accept; ip protocol vmap { tcp : jump of_map, udp : accept }; }
//!   chain of_map { counter; counter; }
//!   chain unused { counter; }
//! }
//! table inet both {
//!   chain forward { type filter hook forward priority 10; policy accept; ct state established accept; }
//! }
//! table ip6 six {
//!   chain forward { type filter hook forward priority 0; policy accept; meta mark set 7; }
//! }
//! table bridge ports {
//!   chain forward { type filter hook forward priority 0; policy accept; counter; counter; }
//! }
//! table netdev early {
//!   chain in { type filter hook ingress device d0 priority 0; policy accept; counter; }
//! }
//! ```

use super::*;
use crate::netlink::message::messages;
use proptest::prelude::*;
use std::collections::BTreeSet;

const CHAINS: &[u8] = include_bytes!("../../../../tests/fixtures/netlink/nft-chains.bin");
const RULES: &[u8] = include_bytes!("../../../../tests/fixtures/netlink/nft-rules.bin");

fn met(chains: &[u8], rules: &[u8]) -> MetRules {
    let mut met = MetRules::default();
    messages(chains).for_each(|message| met.take_chain(&message));
    messages(rules).for_each(|message| met.take_rule(&message));
    met
}

#[test]
fn rules_of_the_chains_that_packets_pass_are_counted_with_those_that_they_lead_to() {
    let met = met(CHAINS, RULES);
    let only = |hook| BTreeSet::from([hook]);
    let none = PassedHooks::default;
    let forwarded = PassedHooks { ip: [only(Hook::Forward), BTreeSet::new()], ..none() };
    assert_eq!(met.count(&forwarded), (4 + 3 + 1 + 1, false), "each chain once, and that of both families");
    let forwarded = PassedHooks { ip: [BTreeSet::new(), only(Hook::Forward)], ..none() };
    assert_eq!(met.count(&forwarded), (1 + 1, false), "IPv6");
    let received = PassedHooks { ip: [only(Hook::Input), BTreeSet::new()], ..none() };
    assert_eq!(met.count(&received), (1, true), "where the map leads is not known");
    let sent = PassedHooks { ip: [only(Hook::Output), only(Hook::Postrouting)], ..none() };
    assert_eq!(met.count(&sent), (0, false));
    let mut bridged =
        PassedHooks { bridge: only(Hook::Forward), ip_of_bridge: [only(Hook::Forward), BTreeSet::new()], ..none() };
    assert_eq!(met.count(&bridged), (2, false), "a bridge alone");
    bridged.call_ip([false, true]);
    assert_eq!(met.count(&bridged), (2, false), "it calls the rules of IPv6 alone");
    bridged.call_ip([true, false]);
    assert_eq!(met.count(&bridged), (2 + 9, false), "it has the rules of IPv4 called, too");
    let named = |name: &str| BTreeSet::from([name.as_bytes().to_vec()]);
    let early = |names| met.count(&PassedHooks { links: names, ..none() });
    assert_eq!(early([named("d0"), BTreeSet::new()]), (1, false), "what comes in there");
    assert_eq!(early([named("d1"), named("d0")]), (0, false), "another link, another direction");
}

proptest! {
    #[test]
    fn a_dump_that_is_cut_or_changed_breaks_nothing(end in 0..RULES.len(), at in 0..RULES.len(), byte: u8) {
        let every = BTreeSet::from([Hook::Prerouting, Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting]);
        let all = PassedHooks { ip: [every.clone(), every.clone()], bridge: every, ..PassedHooks::default() };
        let mut bytes = RULES.to_vec();
        bytes[at] = byte;
        met(CHAINS, &bytes).count(&all);
        let whole = met(CHAINS, RULES).count(&all).0;
        prop_assert!(met(CHAINS, &RULES[..end]).count(&all).0 <= whole);
        let end = end % CHAINS.len();
        prop_assert!(met(&CHAINS[..end], RULES).count(&all).0 <= whole);
    }
}
