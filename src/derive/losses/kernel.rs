//! What the kernel itself says it dropped of the flows' packets: rows of counts → losses. Nothing is compared with anything;
//! only connection tracking, whose drops the kernel gives the firewall's reason, is told from it by its own counter.

use super::counted::{Step, rise};
use super::reasons::{Verdict, judge};
use super::{Loss, LossPlace, Span, ends};
use crate::sample::{DropCount, DropFlow, Drops, KernelCounts, LinkKey, Sample};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Packets that connection tracking and the firewall's hooks have counted and the other one has not, by namespace: they are
/// read one after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tracked {
    ahead: BTreeMap<u64, ends::Ahead>,
}

/// The counts of drops in a sample; none where the kernel is not asked.
pub(super) fn drops(sample: &Sample) -> Option<&Drops> {
    sample.kernel.as_deref().and_then(|kernel: &KernelCounts| kernel.drops.as_ref())
}

/// Each count with its rise, packets; none where it fell: it was forgotten meanwhile, or what it counted was another's.
pub(in crate::derive) fn rises<'a>(
    before: &'a [DropCount],
    now: &'a [DropCount],
) -> impl Iterator<Item = (&'a DropCount, Option<f64>)> {
    now.iter().map(|row| {
        let at = before.binary_search_by(|one| one.key().cmp(&row.key())).ok();
        (row, rise(at.map_or(0, |at| before[at].packets), row.packets))
    })
}

/// Those of flows that rose; one that was forgotten meanwhile has been counted since.
pub(super) fn risen<'a>(before: &'a [DropCount], now: &'a [DropCount]) -> impl Iterator<Item = (&'a DropCount, f64)> {
    let risen = |(row, rise): (&'a DropCount, Option<f64>)| (row, rise.unwrap_or(row.packets as f64));
    rises(before, now).map(risen).filter(|(_, packets)| *packets > 0.0)
}

impl Tracked {
    /// Adds what the flows lost between two samples. Counts that are `new` began in between, where counters tell of the whole
    /// time: then only places without a counter of drops are added.
    pub fn lost(&mut self, step: &Step<'_>, spans: &[Span<'_>], told: &Drops, new: bool, into: &mut Vec<Loss>) {
        let before = drops(step.previous).map_or(&[][..], |drops| &drops.flows);
        for (row, packets) in risen(before, &told.flows) {
            let verdict = judge(row.reason.as_deref(), row.function.as_deref());
            let counts = |place: &LossPlace| (!new || !place.is_counted()) && is_theirs(step, row);
            if let Some(place) = verdict.place().filter(counts) {
                add(loss(step, row, place, packets, verdict), into);
            }
        }
        for span in spans.iter().filter(|_| !new) {
            self.split_tracked(span, into);
        }
    }

    /// Takes from what the firewall refused in a namespace what connection tracking says it dropped there.
    fn split_tracked(&mut self, span: &Span<'_>, into: &mut Vec<Loss>) {
        let netns = Some(span.now.netns);
        let of_firewall = |loss: &Loss| loss.place == LossPlace::Firewall && loss.netns == netns;
        let refused: f64 = into.iter().filter(|loss| of_firewall(loss)).map(|loss| loss.packets).sum();
        let mut open = self.ahead.entry(span.now.netns).or_default().agree(refused, ends::conntrack(span));
        let mut tracked = Vec::new();
        for loss in into.iter_mut().filter(|loss| of_firewall(loss)) {
            let packets = open.min(loss.packets);
            open -= packets;
            loss.packets -= packets;
            tracked.push(Loss { place: LossPlace::Conntrack, refused: false, packets, ..loss.clone() });
        }
        into.extend(tracked);
    }
}

/// A socket that is not connected is known by its port alone, which others have in other namespaces: what is dropped is its
/// own where it is, and at the links of a path that leads to such a port.
fn is_theirs(step: &Step<'_>, row: &DropCount) -> bool {
    let Some(flow) = row.flow.filter(|flow| flow.from.port() == 0) else { return true };
    let paths = step.next.paths.iter().chain(step.previous.paths.iter());
    let mut ways = paths.filter(|path| path.proto == flow.proto && path.to.port() == flow.to.port());
    let mut is_on_way = || ways.any(|path| path.hops.iter().any(|hop| Some(hop.link) == row.link()));
    row.netns.is_none() || row.netns == netns_of(step, flow) || is_on_way()
}

/// The namespace of the socket that a flow's packets are addressed to.
fn netns_of(step: &Step<'_>, flow: DropFlow) -> Option<u64> {
    let mut flows = step.next.flows.iter().chain(&step.previous.flows);
    let is_its = |local: SocketAddr| local.port() == flow.to.port() && local.ip().to_canonical() == flow.to.ip();
    flows.find(|one| is_its(one.local)).map(|one| one.netns)
}

fn loss(step: &Step<'_>, row: &DropCount, place: LossPlace, packets: f64, verdict: Verdict) -> Loss {
    // A datagram in the receiver's queue has lost its device: the receiver's namespace is where it is.
    let netns = row.netns.or_else(|| netns_of(step, row.flow?));
    let link = netns.zip(row.ifindex).map(|(netns, ifindex)| LinkKey { netns, ifindex });
    let name = link.and_then(|link| step.name(link));
    let root = link.filter(|_| place == LossPlace::Qdisc).and_then(|link| super::qdiscs::root(step.next, link));
    let name = match &root {
        Some((kind, _)) => name.map(|name| format!("{kind} on {name}")),
        None => name,
    };
    let core = (place == LossPlace::Backlog).then(|| super::backlog::only_core(step)).flatten();
    Loss {
        link,
        name,
        qdisc: root,
        core,
        reason: row.reason.clone(),
        function: row.function.clone(),
        refused: matches!(verdict, Verdict::Refused(_)),
        ..Loss::somewhere(place, netns, packets)
    }
}

/// Several flows, or several lines of one function, are one loss.
fn add(loss: Loss, into: &mut Vec<Loss>) {
    let is_same = |one: &&mut Loss| {
        (one.place, one.netns, one.link, &one.reason, &one.function)
            == (loss.place, loss.netns, loss.link, &loss.reason, &loss.function)
    };
    match into.iter_mut().find(is_same) {
        Some(known) => known.packets += loss.packets,
        None => into.push(loss),
    }
}
