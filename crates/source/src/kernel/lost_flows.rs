//! Which flows' drops are asked for, and what those lost that have ended.

use crate::bpf::drops::FlowKey;
use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{DropCount, DropFlow, FlowSample};

/// A flow's drops are counted for at least so long after its socket was last seen, ns, and through the first reading without
/// the socket, which has the flow's last losses.
const LINGER_NS: u64 = 3_000_000_000;
/// Most directions of flows whose drops are counted apart.
const MOST_FLOWS: usize = 4096;
/// A flow's socket.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenFlow {
    /// When it was seen last, ns.
    at_ns: u64,
    /// The namespace it is in.
    netns: u64,
    /// The socket was missing at the last reading, which has what its flow lost at the end.
    missing: bool,
}

/// Adds the flows of these sockets, in both directions, to `known`; takes those that are gone out of it and gives them back.
pub(super) fn remember(
    known: &mut BTreeMap<FlowKey, SeenFlow>,
    flows: &[FlowSample],
    now_ns: u64,
) -> BTreeMap<FlowKey, SeenFlow> {
    for flow in flows {
        for DropFlow { proto, from, to } in flow.directions() {
            let seen = SeenFlow { at_ns: now_ns, netns: flow.netns, missing: false };
            known.insert(FlowKey { proto: proto.number(), from, to }, seen);
        }
    }
    // A flow is kept for one reading without its socket, however long ago it was seen: that reading has its last losses.
    let is_gone = |seen: &mut SeenFlow| {
        std::mem::replace(&mut seen.missing, seen.at_ns < now_ns) && seen.at_ns.saturating_add(LINGER_NS) < now_ns
    };
    let mut gone: BTreeMap<FlowKey, SeenFlow> = known.extract_if(.., |_, seen| is_gone(seen)).collect();
    while known.len() > MOST_FLOWS {
        gone.extend(known.pop_last());
    }
    gone
}

/// Adds the drops of a flow that is gone to those of the flows that ended before.
pub(super) fn end(row: &DropCount, gone: &BTreeMap<FlowKey, SeenFlow>, ended: &mut Vec<DropCount>) {
    let key = row.flow.map(|flow| FlowKey { proto: flow.proto.number(), from: flow.from, to: flow.to });
    let Some((key, seen)) = key.and_then(|key| gone.get_key_value(&key)) else { return };
    // A flow known by a port alone counts in its own namespace only.
    if key.from.port() == 0 && row.netns.is_some_and(|netns| netns != seen.netns) {
        return;
    }
    add_to(DropCount { flow: None, ..row.clone() }, ended);
}

fn add_to(row: DropCount, ended: &mut Vec<DropCount>) {
    match ended.binary_search_by(|one| one.key().cmp(&row.key())) {
        Ok(at) => ended[at].packets = ended[at].packets.saturating_add(row.packets),
        Err(at) if ended.len() < MOST_FLOWS => ended.insert(at, row),
        Err(_) => {}
    }
}

/// Takes link and namespace off the drops in namespaces with these inodes: other namespaces have the inodes now.
pub(super) fn release(ended: &mut Vec<DropCount>, inodes: &BTreeSet<u32>) {
    let is_of =
        |row: &DropCount| row.netns.and_then(|netns| u32::try_from(netns).ok()).is_some_and(|n| inodes.contains(&n));
    for row in ended.extract_if(.., |row| is_of(row)).collect::<Vec<_>>() {
        add_to(DropCount { netns: None, ifindex: None, ..row }, ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_flow_loses_in_its_last_interval_is_read_however_long_that_is() {
        let address = |text: &str| text.parse().expect("an address");
        let flow = FlowSample::new(1, (2, 7), (address("10.0.0.1:40000"), address("10.0.0.2:5201")));
        let mut known = BTreeMap::new();
        let seconds = |seconds: u64| seconds * 1_000_000_000;
        assert!(remember(&mut known, std::slice::from_ref(&flow), seconds(10)).is_empty());
        assert!(remember(&mut known, &[], seconds(40)).is_empty(), "half a minute later it is asked for once more");
        assert_eq!(remember(&mut known, &[], seconds(41)).len(), 2, "then both of its directions are gone");
        assert!(known.is_empty());
        remember(&mut known, std::slice::from_ref(&flow), seconds(50));
        remember(&mut known, &[], seconds(51));
        remember(&mut known, &[flow], seconds(52));
        assert!(remember(&mut known, &[], seconds(56)).is_empty(), "it was there again");
        assert!(remember(&mut known, &[], seconds(58)).len() == 2, "and is gone again");
    }
}
