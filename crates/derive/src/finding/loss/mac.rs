//! What is done about frames that are for another MAC address than that of the link which receives them.

use crate::finding::path::named;
use crate::links::LinkMetrics;
use crate::losses::Loss;
use crate::losses::other_host::{Addressee, addressee};
use crate::{TestMetrics, paths};
use vnettop_sample::{FlowPath, Kind, PeerRef, shell_word};

/// `MACVLAN_MODE_PRIVATE` and `MACVLAN_MODE_VEPA`.
const APART: [u32; 2] = [1, 2];

/// Which table has the wrong address, and how it is corrected.
pub(super) fn remedy(loss: &Loss, metrics: &TestMetrics) -> String {
    let at = loss.link.and_then(|link| metrics.machine.link(link));
    let addressed = |at: &LinkMetrics| {
        // Of several paths one through this link explains the loss best.
        let to = |path: &&FlowPath| path.hops.iter().any(|hop| hop.link == at.facts.key());
        let mut ways = metrics.paths.iter().filter(to).chain(metrics.paths.iter());
        ways.find_map(|path| {
            Some((path, addressee(path, &metrics.machine.links, at.facts.key(), Some(at.facts.netns))?))
        })
    };
    let Some((at, (path, whose))) = at.and_then(|at| Some((at, addressed(at)?))) else {
        return "a neighbour or forwarding entry on the path is stale (ip neigh, bridge fdb)".to_owned();
    };
    let apart = |link: &LinkMetrics| link.facts.macvlan_mode.is_some_and(|mode| APART.contains(&mode));
    let sender = path.hops.first().and_then(|hop| metrics.machine.link(hop.link)).filter(|link| apart(link));
    if let (Some(sender), Some(owner)) = (sender, whose.owner) {
        return macvlans(metrics, sender, owner);
    }
    match whose.owner {
        Some(owner) => forwarded(metrics, at, owner),
        None => neighbour(metrics, at, &whose),
    }
}

/// Nobody has that address: the sender's table is wrong.
fn neighbour(metrics: &TestMetrics, at: &LinkMetrics, whose: &Addressee<'_>) -> String {
    let next = whose.next;
    let from = metrics.machine.link(next.link);
    let by = from.map_or_else(|| "the sender".to_owned(), |link| named(metrics, link));
    let device = from.map_or_else(|| "LINK".to_owned(), |link| shell_word(&link.facts.name));
    let own = at.facts.mac.as_deref().map_or_else(String::new, |mac| format!(", {} has {mac}", at.facts.name));
    format!(
        "{by} sends to {} as {}{own}: a stale or static entry; there: ip neigh del {} dev {device}",
        next.ip, next.mac, next.ip
    )
}

/// It is that of another link: a bridge has it behind the wrong port.
fn forwarded(metrics: &TestMetrics, at: &LinkMetrics, owner: &LinkMetrics) -> String {
    let mac = owner.facts.mac.as_deref().unwrap_or_default();
    let whose = named(metrics, owner);
    let port = at.facts.peer.and_then(PeerRef::key).and_then(|peer| metrics.machine.link(peer));
    match port.and_then(|port| Some((port, paths::bridge_of(metrics, port)?))) {
        Some((port, bridge)) => format!(
            "they are for {whose}: {} has {mac} behind the wrong port; there: bridge fdb del {mac} dev {} master",
            named(metrics, bridge),
            shell_word(&port.facts.name)
        ),
        None => format!("they are for {whose}, which has {mac}: they are forwarded to the wrong link (bridge fdb)"),
    }
}

fn macvlans(metrics: &TestMetrics, sender: &LinkMetrics, owner: &LinkMetrics) -> String {
    let mode = if sender.facts.macvlan_mode == Some(APART[0]) { "private" } else { "vepa" };
    let (from, to) = (named(metrics, sender), named(metrics, owner));
    let kind = if owner.facts.kind == Kind::Macvtap { "macvtap" } else { "macvlan" };
    format!(
        "{from} is in mode {mode}: it reaches {to} only by a switch that sends frames back (hairpin); to connect both \
         here: ip link set {} type {kind} mode bridge",
        shell_word(&sender.facts.name)
    )
}
