//! Two links with one MAC address behind the ports of one bridge, as cloned guests have it: the bridge sends frames to whichever
//! spoke last.

use crate::finding::path::named;
use crate::finding::{Diagnostic, LintInput};
use crate::links::LinkMetrics;
use crate::{TestMetrics, paths};
use vnettop_sample::{LinkKey, PeerRef, shell_word};

/// Two links on the way of a flow.
pub(in crate::finding) fn same_mac(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    let mut crossed = metrics.paths.iter().flat_map(|path| &path.hops);
    crossed.find_map(|hop| sentence(metrics, hop.link)).map(|text| Diagnostic::new(text, []))
}

/// What is said of a link that has the MAC address of another one: of the link itself, or of the bridge's port before it.
pub(super) fn sentence(metrics: &TestMetrics, at: LinkKey) -> Option<String> {
    let link = metrics.machine.link(at)?;
    let beside = |port: &LinkMetrics, own: &LinkMetrics| -> Option<String> {
        let bridge = paths::bridge_of(metrics, port)?;
        let mac = own.facts.mac.as_ref()?;
        let ports = metrics.machine.links.iter().filter(|other| {
            let (master, netns) = (other.facts.master, other.facts.netns);
            master == port.facts.master && netns == port.facts.netns && other.facts.key() != port.facts.key()
        });
        let ends = ports.filter_map(|other| metrics.machine.link(other.facts.peer.and_then(PeerRef::key)?));
        let twin =
            ends.into_iter().find(|end| end.facts.mac.as_ref() == Some(mac) && end.facts.key() != own.facts.key())?;
        let (one, two) = (named(metrics, own), named(metrics, twin));
        Some(format!(
            "{one} and {two} have one MAC address, {mac}: {} sends frames to whichever spoke last; there: ip link set {} address ANOTHER",
            named(metrics, bridge),
            shell_word(&twin.facts.name)
        ))
    };
    let peer = link.facts.peer.and_then(PeerRef::key).and_then(|peer| metrics.machine.link(peer))?;
    beside(peer, link).or_else(|| beside(link, peer))
}
