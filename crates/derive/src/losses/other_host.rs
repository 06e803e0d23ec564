//! Frames that reach a link and are for another MAC address (`OTHERHOST`): a copy for everybody, as a bridge makes them until
//! it has learnt where an address is, or the packet itself, which no other link takes. The neighbours on the path show which:
//! they say which MAC address the packets are for.

use super::counted::{SampleStep, rise};
use super::same_ends::{goes, is_same};
use crate::links::LinkMetrics;
use vnettop_sample::{DropCount, DropFlow, FlowPath, FlowSample, HopBy, HopWay, Kind, LinkKey, NextHop, Proto, row_of};

/// What the kernel calls it.
pub(crate) const OTHERHOST: &str = "OTHERHOST";

/// The addressee of a path's packets that are dropped at a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Addressee<'a> {
    /// The neighbour that they are sent to, as the sender's table has it.
    pub next: &'a NextHop,
    /// The link whose MAC address that is; none where no visible link has it.
    pub owner: Option<&'a LinkMetrics>,
}

/// Whether what a row counts is missing for the flow.
pub(super) fn is_lost(step: &SampleStep<'_>, row: &DropCount) -> bool {
    let (Some(flow), Some(at)) = (row.flow.filter(|_| row.reason.as_deref() == Some(OTHERHOST)), row.link()) else {
        return false;
    };
    let receiver = step.destination(flow);
    let mut ways = step.paths().filter(|path| path.proto == flow.proto && leads(path, flow)).peekable();
    match ways.peek() {
        Some(_) => ways.any(|path| addressee(path, step.links, at, receiver).is_some()),
        None => receiver == row.netns && gets_nothing(step, flow),
    }
}

fn leads(path: &FlowPath, flow: DropFlow) -> bool {
    let is_to = flow.from.port() == 0 && path.to.port() == flow.to.port();
    !path.neighbours.is_empty() && (is_to || goes(path, flow.from, flow.to))
}

/// The addressee of packets that a link has received and discards; `None` when another link takes them, or may.
pub(crate) fn addressee<'a>(
    path: &'a FlowPath,
    links: &'a [LinkMetrics],
    at: LinkKey,
    receiver: Option<u64>,
) -> Option<Addressee<'a>> {
    let is_own = |next: &NextHop| link(links, at).is_some_and(|own| own.facts.mac.as_ref() == Some(&next.mac));
    let crosses = |key: LinkKey| path.hops.iter().any(|hop| hop.link == key);
    let comes_in = path.hops.iter().any(|hop| hop.link == at && hop.way == HopWay::Received);
    let is_there = comes_in || receiver == Some(at.netns);
    path.neighbours.iter().filter(|next| !is_own(next)).rev().find_map(|next| {
        // A bridge or a vlan has the MAC address of a link below it.
        let mut owners = links.iter().filter(|link| link.facts.mac.as_ref() == Some(&next.mac));
        // A path that crosses the address's link has only copies elsewhere. Packets that leave the machine or go to a guest are
        // for a link that is not seen.
        let is_copy = owners.clone().any(|owner| crosses(owner.facts.key()));
        let owner = owners.next();
        // Behind a program that takes all frames of a link, such as a switch in user space, the path is not known.
        let is_astray = owner.is_some() && (receiver == Some(at.netns) || is_switched(path));
        let is_lost = !is_copy && (is_astray || (owner.is_none() && is_there && !leaves(path, links)));
        is_lost.then_some(Addressee { next, owner })
    })
}

/// Whether a bridge's forwarding table decides a hop of the path.
fn is_switched(path: &FlowPath) -> bool {
    path.hops.iter().any(|hop| hop.by == HopBy::Fdb)
}

/// The last link leads out of the machine or into a program.
fn leaves(path: &FlowPath, links: &[LinkMetrics]) -> bool {
    let last = path.hops.last().filter(|_| path.gap.is_some()).and_then(|hop| link(links, hop.link));
    last.is_some_and(|last| last.facts.kind.is_hardware() || matches!(last.facts.kind, Kind::Tun | Kind::Tap))
}

fn link(links: &[LinkMetrics], key: LinkKey) -> Option<&LinkMetrics> {
    row_of(links, &key, |link| link.facts.key())
}

/// Nothing of the flow has arrived meanwhile at the end that the packets are addressed to; false where that is not known.
fn gets_nothing(step: &SampleStep<'_>, flow: DropFlow) -> bool {
    let mut ends = step.next.flows.iter().filter(|end| is_same(end.local, flow.to));
    let Some(end) = ends.next() else { return false };
    if flow.proto == Proto::Udp {
        let of = |sample: &vnettop_sample::Sample| {
            row_of(&sample.protocols, &end.netns, |row| row.netns).map(|row| row.udp_in_datagrams)
        };
        return of(step.previous).zip(of(step.next)).and_then(|(from, to)| rise(from, to)) == Some(0.0);
    }
    let before = step.previous.flows.iter().find(|before| before.key() == end.key());
    let come = |end: &FlowSample| end.pulses.last().map(|last| (last.acked, last.received));
    before.is_some_and(|before| come(before).is_some() && come(before) == come(end))
}

#[cfg(test)]
mod tests;
