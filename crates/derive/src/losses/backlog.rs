//! Drops of links, and which of them belong to a backlog: drops that a core counts too, on the way in through a link.

use super::counted::{Counted, SampleStep, drops, risen};
use super::qdiscs;
use super::route::Route;
use super::{Loss, LossPlace, ProtocolSpan, left};
use crate::links::LinkMetrics;
use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{CoreId, Drops, LinkKey, PeerRef, row_of};

/// Where the protocols of a namespace were read over so much more time than a link, what it refused is not known: something
/// slow came between the two reads, as thousands of rules for the first packet of a flow.
const LONGER: f64 = 1.2;

/// Adds the drops of the links on the path, and gives by namespace the packets that its links refused to send.
pub(super) fn links(
    step: &SampleStep<'_>,
    route: &Route,
    spans: &[ProtocolSpan<'_>],
    into: &mut Vec<Loss>,
) -> BTreeMap<u64, f64> {
    let mut backlog = Backlog::of(step);
    let mut refused = BTreeMap::new();
    let mut dropped_in = BTreeMap::new();
    let on_way = |way: &BTreeSet<LinkKey>| {
        let links = step.links.iter().filter(|link| way.contains(&link.facts.key()));
        links.map(|link| (link, step.counted(link).unwrap_or_default())).collect::<Vec<_>>()
    };
    for (link, counted) in on_way(&route.received) {
        let Counted { rx_dropped, rx_errors, .. } = counted;
        let dropped = rx_dropped.unwrap_or(0.0);
        dropped_in.insert(link.facts.key(), dropped);
        let rest = backlog.take(link, dropped, into);
        add(link, rest + rx_errors.unwrap_or(0.0), into);
    }
    for (link, counted) in on_way(&route.sent) {
        let Counted { tx_dropped, tx_errors, .. } = counted;
        let dropped = tx_dropped.unwrap_or(0.0);
        // A link that was not read this time, or over less time, may have refused anything.
        let netns = link.facts.netns;
        let span = spans.iter().find(|span| span.now.netns == netns).map_or(0.0, |span| span.seconds);
        let seconds = step.seconds_of(link);
        // A qdisc whose earlier drops are not known may also have refused anything.
        let counts = |sample| qdiscs::root(sample, link.facts.key()).is_some();
        let is_read = seconds > 0.0 && span < LONGER * seconds && (counts(step.previous) || !counts(step.next));
        *refused.entry(netns).or_insert(0.0) += if is_read { dropped } else { f64::INFINITY };
        // Packets that the other end of a pair dropped on the way in were refused here.
        let other_end = link.facts.peer.and_then(PeerRef::key);
        let rest = match other_end.and_then(|other| dropped_in.get(&other)) {
            Some(&counted) => left(dropped, counted),
            None if link.facts.peer.is_some() => backlog.take(link, dropped, into),
            None => dropped,
        };
        add(link, rest + tx_errors.unwrap_or(0.0), into);
    }
    if !route.is_whole {
        backlog.rest(into);
    }
    refused
}

/// Adds drops that only devices on the path count, because no kernel buffer was involved: packets that a NIC had no room for or
/// received broken, and drops of ports that only Open vSwitch knows.
pub(super) fn of_devices(step: &SampleStep<'_>, route: &Route, reported: &Drops, into: &mut Vec<Loss>) {
    let before = drops(step.previous);
    let (before, now) =
        (before.map_or([&[][..]; 2], |drops| [&drops.flows, &drops.others]), [&reported.flows, &reported.others]);
    for link in step.links.iter().filter(|link| route.has(link.facts.key())) {
        let key = link.facts.key();
        let is_device = key.ifindex.kernel().is_none() || link.facts.kind.is_hardware();
        let Some(counted) = step.counted(link).filter(|_| is_device) else { continue };
        let all = [counted.rx_dropped, counted.tx_dropped, counted.rx_errors, counted.tx_errors];
        let all: f64 = all.into_iter().flatten().sum();
        if all == 0.0 {
            continue;
        }
        // Drops of the kernel's own at the device are in the device's counters too.
        let rows = before.iter().zip(now).flat_map(|(before, now)| risen(before, now));
        let known: f64 = rows.filter(|(row, _)| row.link() == Some(key)).map(|(_, packets)| packets).sum();
        add(link, left(all, known), into);
    }
}

/// The core whose backlog dropped packets between two samples; none where it was several, or none.
pub(super) fn only_core(step: &SampleStep<'_>) -> Option<CoreId> {
    match Backlog::of(step).cores[..] {
        [(core, _)] => Some(core),
        _ => None,
    }
}

fn add(link: &LinkMetrics, packets: f64, into: &mut Vec<Loss>) {
    let key = link.facts.key();
    let place = if key.ifindex.kernel().is_some() { LossPlace::Link } else { LossPlace::Ovs };
    if packets <= 0.0 {
        return;
    }
    // Packets go to any entry of this place and link, whatever reason the kernel gave for it.
    match into.iter_mut().find(|loss| loss.place == place && loss.link == Some(key)) {
        Some(loss) => loss.packets += packets,
        None => into.push(Loss::on_link(place, key, link.facts.name.clone(), packets)),
    }
}

/// What the cores' backlogs dropped, and how much of it no link has claimed yet.
struct Backlog {
    /// Packets by core.
    cores: Vec<(CoreId, f64)>,
    whole: f64,
    open: f64,
}

impl Backlog {
    fn of(SampleStep { previous, next, .. }: &SampleStep<'_>) -> Self {
        let mut cores = Vec::new();
        for row in &next.cores {
            let before = row_of(&previous.cores, &row.core, |before| before.core).and_then(|before| before.softnet);
            let (Some(now), Some(before)) = (row.softnet, before) else { continue };
            let dropped = now.dropped.wrapping_sub(before.dropped);
            if dropped > 0 {
                cores.push((row.core, f64::from(dropped)));
            }
        }
        let whole = cores.iter().map(|(_, dropped)| dropped).sum();
        Self { cores, whole, open: whole }
    }

    /// Takes what the backlog dropped of a link's drops, and gives what is left of them.
    fn take(&mut self, link: &LinkMetrics, dropped: f64, into: &mut Vec<Loss>) -> f64 {
        let taken = dropped.min(self.open);
        let rest = left(dropped, taken);
        self.open -= taken;
        self.report(Some((link.facts.key(), &link.facts.name)), dropped - rest, into);
        rest
    }

    /// What no known link has claimed: the path has a part that is not seen.
    fn rest(self, into: &mut Vec<Loss>) {
        self.report(None, left(self.whole, self.whole - self.open), into);
    }

    fn report(&self, link: Option<(LinkKey, &String)>, packets: f64, into: &mut Vec<Loss>) {
        if packets <= 0.0 || self.whole <= 0.0 {
            return;
        }
        for &(core, dropped) in &self.cores {
            let packets = packets * dropped / self.whole;
            let loss = match link {
                Some((key, name)) => Loss::on_link(LossPlace::Backlog, key, name.clone(), packets),
                None => Loss::in_space(LossPlace::Backlog, None, packets),
            };
            into.push(Loss { core: Some(core), ..loss });
        }
    }
}
