//! Drops of links, and which of them are the backlog's: those a core counts as its own, on the way in through a link.

use super::route::Route;
use super::{Loss, LossPlace, left};
use crate::derive::links::{LinkMetrics, LinkRates};
use crate::sample::{CoreId, LinkCounters, LinkKey, Sample};
use std::collections::BTreeMap;

/// Adds the drops of the links on the way, and gives by namespace what its links refused to send, whatever became of it.
pub(super) fn links(
    previous: &Sample,
    next: &Sample,
    route: &Route,
    links: &[LinkMetrics],
    into: &mut Vec<Loss>,
) -> BTreeMap<u64, f64> {
    let mut backlog = Backlog::of(previous, next);
    let mut refused = BTreeMap::new();
    let mut dropped_in = BTreeMap::new();
    for link in links.iter().filter(|link| route.received(link.facts.key())) {
        let dropped = rate(link, |rates| rates.rx_dropped_per_s);
        dropped_in.insert(link.facts.key(), dropped);
        let rest = backlog.take(link, dropped, into);
        add(link, rest + rate(link, |rates| rates.rx_errors_per_s), into);
    }
    for link in links.iter().filter(|link| route.sent(link.facts.key())) {
        let dropped = rate(link, |rates| rates.tx_dropped_per_s);
        // A link that was not read this time may have refused anything.
        let is_read = link.rates.is_some() && link.counters.map(|row| row.at_ns) != read_before(previous, link);
        *refused.entry(link.facts.netns).or_insert(0.0) += if is_read { dropped } else { f64::INFINITY };
        // What the other end of a pair dropped on its way in was refused here.
        let rest = match other_end(link).and_then(|other| dropped_in.get(&other)) {
            Some(&counted) => left(dropped, counted),
            None if link.facts.peer.is_some() => backlog.take(link, dropped, into),
            None => dropped,
        };
        add(link, rest + rate(link, |rates| rates.tx_errors_per_s), into);
    }
    if !route.is_whole {
        backlog.rest(into);
    }
    refused
}

/// When the link's counters were read the time before.
fn read_before(previous: &Sample, link: &LinkMetrics) -> Option<u64> {
    let at = previous.counters.binary_search_by_key(&link.facts.key(), LinkCounters::key).ok()?;
    Some(previous.counters[at].at_ns)
}

fn rate(link: &LinkMetrics, of: impl Fn(&LinkRates) -> Option<f64>) -> f64 {
    link.rates.as_ref().and_then(of).unwrap_or(0.0)
}

fn other_end(link: &LinkMetrics) -> Option<LinkKey> {
    let peer = link.facts.peer?;
    Some(LinkKey { netns: peer.netns?, ifindex: peer.ifindex })
}

fn add(link: &LinkMetrics, packets_per_s: f64, into: &mut Vec<Loss>) {
    let key = link.facts.key();
    let place = if key.ifindex.kernel().is_some() { LossPlace::Link } else { LossPlace::Ovs };
    if packets_per_s <= 0.0 {
        return;
    }
    let known = into.iter_mut().find(|loss| loss.place == place && loss.link == Some(key));
    match known {
        Some(loss) => loss.packets_per_s += packets_per_s,
        None => into.push(Loss::on_link(place, key, link.facts.name.clone(), packets_per_s)),
    }
}

/// What the cores' backlogs dropped, and how much of it no link has claimed yet.
struct Backlog {
    /// Packets/s by core.
    cores: Vec<(CoreId, f64)>,
    whole: f64,
    open: f64,
}

impl Backlog {
    fn of(previous: &Sample, next: &Sample) -> Self {
        let mut cores = Vec::new();
        if let Some(seconds) = super::super::seconds(previous.cores_at_ns, next.cores_at_ns) {
            for row in &next.cores {
                let Ok(at) = previous.cores.binary_search_by_key(&row.core, |before| before.core) else { continue };
                let (Some(now), Some(before)) = (row.softnet, previous.cores[at].softnet) else { continue };
                let dropped = now.dropped.wrapping_sub(before.dropped);
                if dropped > 0 {
                    cores.push((row.core, f64::from(dropped) / seconds));
                }
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
        self.tell(Some((link.facts.key(), &link.facts.name)), dropped - rest, into);
        rest
    }

    /// What no known link has claimed: the path has a part that is not seen.
    fn rest(self, into: &mut Vec<Loss>) {
        self.tell(None, left(self.whole, self.whole - self.open), into);
    }

    fn tell(&self, link: Option<(LinkKey, &String)>, packets_per_s: f64, into: &mut Vec<Loss>) {
        if packets_per_s <= 0.0 || self.whole <= 0.0 {
            return;
        }
        for &(core, dropped) in &self.cores {
            into.push(Loss {
                netns: link.map(|(key, _)| key.netns),
                link: link.map(|(key, _)| key),
                name: link.map(|(_, name)| name.clone()),
                core: Some(core),
                ..Loss::in_space(LossPlace::Backlog, 0, packets_per_s * dropped / self.whole)
            });
        }
    }
}
