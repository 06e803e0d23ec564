//! Drop rows of the BPF programs → losses, as they are. One exception: drops of connection tracking carry the firewall's reason, and
//! connection tracking's own counter separates them. The kernel tells addresses and ports, which others may have too in other
//! namespaces: whose packets they were is decided here.

use super::counted::{SampleStep, drops, risen};
use super::place_of_drop::{DropVerdict, verdict_of};
use super::same_ends::{goes, is_same};
use super::{Loss, LossPlace, ProtocolSpan, other_host};
use std::collections::BTreeMap;
use vnettop_sample::{Conntrack, DropCount, DropFlow, Drops, FlowPath, FlowSample, LinkKey};

/// Drops that connection tracking counted and no row of the firewall's hooks has reported yet, by namespace.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ConntrackDrops {
    spaces: BTreeMap<u64, Unattributed>,
}

/// How long drops of connection tracking that no row has claimed are kept, s: rows of a flow that has just been found count what it lost up to
/// five seconds before (`bpf/drops.rs`).
const UNCLAIMED_KEPT_S: f64 = 5.0;

/// Packets, and the seconds since the counters rose.
#[derive(Debug, Clone, Default, PartialEq)]
struct Unattributed {
    /// Packets that got no entry in the table (`drop`).
    without: f64,
    /// Packets whose entry could not be put in the table (`insert_failed`).
    with: f64,
    seconds: f64,
}

impl ConntrackDrops {
    /// Adds what the flows lost between two samples. `new`: BPF was attached in between, while counters cover the whole time, so
    /// only places without a counter of drops are added.
    pub fn add_kernel_losses(&mut self, step: &SampleStep<'_>, reported: &Drops, new: bool, into: &mut Vec<Loss>) {
        let before = drops(step.previous).map_or(&[][..], |drops| &drops.flows);
        for (row, packets) in risen(before, &reported.flows) {
            let verdict = verdict_of(row.reason.as_deref(), row.function.as_deref());
            let counts = |place: &LossPlace| (!new || !place.is_counted()) && step.is_theirs(row);
            let verdict =
                if other_host::is_lost(step, row) { DropVerdict::Lost(LossPlace::MacAddress) } else { verdict };
            let Some(place) = verdict.place().filter(counts) else { continue };
            let mut loss = loss(step, row, place, packets, verdict);
            if place == LossPlace::Firewall {
                let packets = self.take(&loss, row.untracked);
                loss.packets -= packets;
                if !new {
                    let refused = false;
                    Loss { place: LossPlace::Conntrack, refused, packets, ..loss.clone() }.add_to(into);
                }
            }
            loss.add_to(into);
        }
    }

    /// Called on each tick before its drop rows are taken: connection tracking's counters are read after the rows, so every drop in
    /// a row has been counted.
    pub fn count(&mut self, step: &SampleStep<'_>, spans: &[ProtocolSpan<'_>]) {
        for span in spans {
            let rise = |of: fn(&Conntrack) -> u64| span.rise_or_zero(|now| now.conntrack.as_ref().map_or(0, of));
            let [without, with] = [rise(|table| table.drop), rise(|table| table.insert_failed)];
            if without + with > 0.0 {
                let untold = self.spaces.entry(span.now.netns).or_default();
                *untold = Unattributed { without: untold.without + without, with: untold.with + with, seconds: 0.0 };
            }
        }
        self.spaces.retain(|_, untold| {
            untold.seconds += step.seconds;
            untold.seconds <= UNCLAIMED_KEPT_S + step.seconds
        });
    }

    /// How many packets of what the firewall's hooks dropped are connection tracking's.
    fn take(&mut self, loss: &Loss, untracked: bool) -> f64 {
        let Some(untold) = loss.netns.and_then(|netns| self.spaces.get_mut(&netns)) else { return 0.0 };
        let open = if untracked { &mut untold.without } else { &mut untold.with };
        let packets = loss.packets.min(*open);
        *open -= packets;
        packets
    }
}

impl SampleStep<'_> {
    fn flows(&self) -> impl Iterator<Item = &FlowSample> {
        self.next.flows.iter().chain(&self.previous.flows)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &FlowPath> {
        self.next.facts.paths.iter().chain(self.previous.facts.paths.iter())
    }

    fn is_theirs(&self, row: &DropCount) -> bool {
        let is_end = row.flow.is_none_or(|flow| {
            let mut here = self.flows().filter(|one| Some(one.netns) == row.netns);
            here.any(|one| is_same(one.local, flow.to) || is_same(one.local, flow.from))
        });
        let is_plain = |key| self.link(key).is_some_and(|link| link.facts.kind.is_plain());
        is_theirs(row, self.paths(), is_end, is_plain)
    }

    /// The namespace that a flow's packets are addressed to.
    pub(super) fn destination(&self, flow: DropFlow) -> Option<u64> {
        let leads = |path: &&FlowPath| path.gap.is_none() && goes(path, flow.from, flow.to);
        let end = || Some(self.paths().find(leads)?.hops.last()?.link.netns);
        self.flows().find(|one| is_same(one.local, flow.to)).map(|one| one.netns).or_else(end)
    }
}

fn loss(step: &SampleStep<'_>, row: &DropCount, place: LossPlace, packets: f64, verdict: DropVerdict) -> Loss {
    // A datagram in the receiver's queue has lost its device: the receiver's namespace is where it is.
    let netns = row.netns.or_else(|| step.destination(row.flow?));
    let link = netns.zip(row.ifindex).map(|(netns, ifindex)| LinkKey { netns, ifindex });
    let name = link.and_then(|link| step.name(link));
    let qdisc = link.filter(|_| place == LossPlace::Qdisc).and_then(|link| super::qdiscs::dropping(step, link));
    let name = match &qdisc {
        Some(qdisc) => name.map(|name| format!("{} on {name}", qdisc.kind)),
        None => name,
    };
    let core = (place == LossPlace::Backlog).then(|| super::backlog::only_core(step)).flatten();
    Loss {
        link,
        name,
        qdisc,
        core,
        reason: row.reason.clone(),
        function: row.function.clone(),
        refused: matches!(verdict, DropVerdict::Refused(_)),
        ..Loss::in_space(place, netns, packets)
    }
}

/// Whether a row can be of a watched flow: others may have the same addresses and ports in other namespaces. `is_end` says
/// that one of its sockets is where the row is, `is_plain` which links are no tunnel's.
pub(crate) fn is_theirs<'a>(
    row: &DropCount,
    paths: impl Iterator<Item = &'a FlowPath>,
    is_end: bool,
    is_plain: impl Fn(LinkKey) -> bool,
) -> bool {
    let (Some(flow), Some(netns)) = (row.flow, row.netns) else { return true };
    let mut paths = paths.filter(|path| path.proto == flow.proto);
    if flow.from.port() == 0 {
        // An unconnected socket is known by its port alone.
        let leads = |path: &FlowPath| path.to.port() == flow.to.port();
        return is_end || paths.any(|path| leads(path) && path.hops.iter().any(|hop| Some(hop.link) == row.link()));
    }
    let is_whole = |path: &FlowPath| path.gap.is_none() && path.hops.iter().all(|hop| is_plain(hop.link));
    let crosses = |path: &FlowPath| path.netns == netns || path.hops.iter().any(|hop| hop.link.netns == netns);
    let mut ways = paths.filter(|path| goes(path, flow.from, flow.to) || goes(path, flow.to, flow.from)).peekable();
    is_end || ways.peek().is_none() || ways.any(|path| !is_whole(path) || crosses(path))
}
