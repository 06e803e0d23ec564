//! The path from the sender's host to the receiver's, hop by hop, and what is lost on it.

use super::pairing::{EndPair, EndSighting};
use super::{HostHop, HostLoss, HostMetrics};
use crate::losses::is_here;
use crate::paths::{self, HopMetrics};
use crate::{Loss, TestMetrics};
use vnettop_sample::{HopWay, Kind, LinkKey, OwnerKind, PeerRef};

/// Said where a host knows nothing of the path.
const NO_PATH: &str = "the path is not known";

/// The path of both hosts.
pub(super) struct Journey<'a> {
    pub hops: Vec<HostHop<'a>>,
    pub gaps: Vec<(usize, &'a str)>,
    pub losses: Vec<HostLoss<'a>>,
}

impl<'a> Journey<'a> {
    pub fn of(hosts: &[HostMetrics<'a>], pair: &EndPair<'a>) -> Self {
        let mut all = match pair.reported_by {
            Some((by, own)) => Self::reported(hosts, pair, &by, own),
            None => Self::joined(hosts, pair),
        };
        let known = |loss: &HostLoss<'_>| loss.packets_per_s.unwrap_or(f64::NEG_INFINITY);
        all.losses.sort_by(|one, other| known(other).total_cmp(&known(one)));
        all
    }

    /// The journey between two machines: each host sees its own part.
    fn joined(hosts: &[HostMetrics<'a>], pair: &EndPair<'a>) -> Self {
        let mut all = Self { hops: Vec::new(), gaps: Vec::new(), losses: Vec::new() };
        for (seen, sends) in [(&pair.sender, true), (&pair.receiver, false)] {
            let (host, metrics) = (seen.host, &*seen.test.metrics);
            if let Some(path) = paths::of(metrics, &seen.directed()) {
                let edge = if sends { path.hops.last() } else { path.hops.first() };
                let is_wire = edge.is_some_and(|edge| is_edge(metrics, edge, sends));
                all.gaps.extend(path.gap.filter(|_| !is_wire).map(|gap| (host, gap)));
                all.hops.extend(path.hops.into_iter().map(|hop| HostHop { host, hop }));
            } else {
                all.gaps.push((host, NO_PATH));
            }
            all.losses.extend(losses(hosts, seen, |_| host));
        }
        all
    }

    /// The journey between two namespaces of one kernel: one host sees all of it, and the first `own` hops are the sender's.
    fn reported(hosts: &[HostMetrics<'a>], pair: &EndPair<'a>, by: &EndSighting<'a>, own: usize) -> Self {
        let [sender, receiver] = [pair.sender.host, pair.receiver.host];
        let path = paths::of(&by.test.metrics, &by.directed());
        let links: Vec<LinkKey> = path.iter().flat_map(|path| &path.hops).map(|hop| hop.hop.link).collect();
        let of_hop = |at: usize| if at < own { sender } else { receiver };
        let whose = |loss: &Loss| {
            let at_link = || links.iter().position(|&link| Some(link) == loss.link);
            let in_space = || links.iter().position(|link| Some(link.netns) == loss.netns);
            let of_receiver = loss.netns == Some(hosts[receiver].metrics.machine.netns);
            at_link().or_else(in_space).map_or(if of_receiver { receiver } else { sender }, of_hop)
        };
        let losses = losses(hosts, by, whose).collect();
        let hops = path.into_iter().flat_map(|path| path.hops).enumerate();
        Self { hops: hops.map(|(at, hop)| HostHop { host: of_hop(at), hop }).collect(), gaps: Vec::new(), losses }
    }
}

/// What a host says was lost of its test; what was lost where another one watches is for that one to say.
fn losses<'a>(
    hosts: &[HostMetrics<'a>],
    seen: &EndSighting<'a>,
    whose: impl Fn(&Loss) -> usize,
) -> impl Iterator<Item = HostLoss<'a>> {
    let (machine, losses) = (&hosts[seen.host].metrics.machine, &seen.test.metrics.losses);
    let own = losses.places.iter().filter(|loss| !machine.asks_kernel() || is_here(machine, loss));
    own.map(move |loss| {
        let packets_per_s = (losses.seconds > 0.0).then(|| losses.per_second(loss.packets));
        HostLoss { host: whose(loss), loss, packets_per_s }
    })
}

/// Where the sender's machine is left, or the receiver's entered: what its link leads to is no part of that machine.
fn is_edge(metrics: &TestMetrics, edge: &HopMetrics<'_>, sends: bool) -> bool {
    let inwards = if sends { HopWay::Received } else { HopWay::Sent };
    let Some(link) = edge.link.filter(|_| edge.hop.way != inwards) else { return false };
    let is_hidden = |other: Option<PeerRef>| {
        other.is_some_and(|other| other.key().and_then(|key| metrics.machine.link(key)).is_none())
    };
    match link.facts.kind {
        Kind::Physical | Kind::Virtio => true,
        Kind::Veth | Kind::Netkit => is_hidden(link.facts.peer),
        // The other machine is a guest of this one.
        Kind::Tun | Kind::Tap => {
            metrics.machine.owner(link.facts.key()).is_some_and(|owner| owner.kind == OwnerKind::Vm)
        }
        _ => is_hidden(link.facts.lower),
    }
}
