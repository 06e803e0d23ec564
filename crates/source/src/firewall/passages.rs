//! Paths → which hooks of netfilter their packets pass in each namespace.

use crate::nft::{Hook, PassedHooks};
use std::collections::BTreeMap;
use std::sync::Arc;
use vnettop_sample::{FlowPath, Hop, HopBy, HopWay, LinkFacts, LinkKey, row_of};

const ARRIVES: [Hook; 2] = [Hook::Prerouting, Hook::Input];
const LEAVES: [Hook; 2] = [Hook::Output, Hook::Postrouting];
const CROSSES: [Hook; 3] = [Hook::Prerouting, Hook::Forward, Hook::Postrouting];

/// What packets pass in one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passage {
    /// The first link of a path there.
    pub link: LinkKey,
    pub hooks: PassedHooks,
}

/// One for each namespace, sorted by link; `links` are all links, sorted by key.
pub(super) fn passages(links: &[Arc<LinkFacts>], paths: &[FlowPath]) -> Vec<Passage> {
    let mut found: BTreeMap<u64, Passage> = BTreeMap::new();
    for path in paths {
        for (at, hop) in path.hops.iter().enumerate() {
            let new = || Passage { link: hop.link, hooks: PassedHooks::default() };
            let hooks = &mut found.entry(hop.link.netns).or_insert_with(new).hooks;
            pass(hooks, path, at);
            if let Some(facts) = row_of(links, &hop.link, |link: &Arc<LinkFacts>| link.key()) {
                let names = match hop.way {
                    HopWay::Received => &mut hooks.links[0],
                    HopWay::Sent => &mut hooks.links[1],
                    HopWay::Passed => continue,
                };
                names.insert(facts.name.as_bytes().to_vec());
            }
        }
    }
    found.into_values().collect()
}

/// The hooks that packets pass between this hop of a path and those beside it.
fn pass(hooks: &mut PassedHooks, path: &FlowPath, at: usize) {
    let hop = &path.hops[at];
    let is_ipv6 = usize::from(path.to.ip().to_canonical().is_ipv6());
    let before = at.checked_sub(1).map(|before| &path.hops[before]);
    let after = path.hops.get(at + 1);
    let came_in = |before: &Hop| before.link.netns == hop.link.netns && before.way == HopWay::Received;
    let ip = &mut hooks.ip[is_ipv6];
    match (hop.by, hop.way) {
        (HopBy::Route, HopWay::Sent | HopWay::Passed) if before.is_some_and(came_in) => ip.extend(CROSSES),
        (HopBy::Route, HopWay::Sent | HopWay::Passed) => ip.extend(LEAVES),
        // A program copies from one connection to another; packets within a namespace leave and arrive.
        (HopBy::Proxy | HopBy::Local, _) => ip.extend(ARRIVES.into_iter().chain(LEAVES)),
        // What carried them arrives.
        (HopBy::Tunnel, _) => ip.extend(ARRIVES),
        (HopBy::Bridge, HopWay::Passed) if after.is_some_and(|after| after.by == HopBy::Fdb) => {
            hooks.bridge.extend(CROSSES);
            hooks.ip_of_bridge[is_ipv6].extend(CROSSES);
        }
        (HopBy::Bridge, HopWay::Received) => hooks.bridge.extend(ARRIVES),
        (HopBy::Fdb, _) if before.is_some_and(|before| before.way == HopWay::Sent) => hooks.bridge.extend(LEAVES),
        _ => {}
    }
    if after.is_none() && path.gap.is_none() && hop.way == HopWay::Received {
        hooks.ip[is_ipv6].extend(ARRIVES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use vnettop_sample::{Ifindex, Proto};

    /// Hops as `NETNS:IFINDEX way by`.
    fn path(hops: &[(u64, u32, HopWay, HopBy)]) -> FlowPath {
        let hop = |&(netns, ifindex, way, by): &(u64, u32, HopWay, HopBy)| Hop {
            link: LinkKey { netns, ifindex: Ifindex(ifindex) },
            way,
            by,
        };
        FlowPath {
            netns: 1,
            proto: Proto::Udp,
            from: "198.18.1.2:1".parse().expect("an address"),
            to: "198.18.2.2:2".parse().expect("an address"),
            hops: hops.iter().map(hop).collect(),
            gap: None,
            note: None,
            ends: None,
            outside: None,
            silent: None,
            neighbours: Vec::new(),
            carriers: Vec::new(),
        }
    }

    /// By namespace: hooks of IPv4, those that a bridge may call, those of a bridge.
    fn passed(path: FlowPath) -> Vec<(u64, [BTreeSet<Hook>; 3])> {
        let passed = passages(&[], &[path]);
        let hooks = |passage: Passage| {
            let PassedHooks { ip: [ip, _], ip_of_bridge: [called, _], bridge, .. } = passage.hooks;
            (passage.link.netns, [ip, called, bridge])
        };
        passed.into_iter().map(hooks).collect()
    }

    const NONE: BTreeSet<Hook> = BTreeSet::new();

    #[test]
    fn a_router_forwards_between_the_ends() {
        use HopBy::{Peer, Route};
        use HopWay::{Received, Sent};
        let all = [(1, 2, Sent, Route), (2, 2, Received, Peer), (2, 3, Sent, Route), (3, 2, Received, Peer)];
        let expected =
            [(1, [LEAVES.into(), NONE, NONE]), (2, [CROSSES.into(), NONE, NONE]), (3, [ARRIVES.into(), NONE, NONE])];
        assert_eq!(passed(path(&all)), expected);
        let cut = FlowPath { gap: Some("it goes on elsewhere".to_owned()), ..path(&all[..2]) };
        assert_eq!(passed(cut)[1], (2, [NONE, NONE, NONE]), "where it goes is not known");
    }

    #[test]
    fn a_bridge_is_no_router_and_open_vswitch_no_bridge() {
        use HopBy::{Bridge, Fdb, Ovs, Peer, Route};
        use HopWay::{Passed, Received, Sent};
        let over = |by| {
            let all = [(1, 2, Sent, Route), (2, 2, Received, Peer), (2, 9, Passed, Bridge), (2, 3, Sent, by)];
            passed(path(&all)).remove(1)
        };
        assert_eq!(over(Fdb), (2, [NONE, CROSSES.into(), CROSSES.into()]));
        assert_eq!(over(Ovs), (2, [NONE, NONE, NONE]));
        let host = [(1, 2, Sent, Route), (2, 2, Received, Peer), (2, 9, Received, Bridge), (2, 3, Sent, Route)];
        assert_eq!(passed(path(&host))[1], (2, [CROSSES.into(), NONE, ARRIVES.into()]), "a container to the outside");
        let back = [(2, 9, Sent, Route), (2, 2, Sent, Fdb), (1, 2, Received, Peer)];
        assert_eq!(passed(path(&back))[1], (2, [LEAVES.into(), NONE, LEAVES.into()]));
    }
}
