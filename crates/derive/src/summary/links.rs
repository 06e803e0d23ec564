//! What each link carried while it was there: its counters at the first and at the last sample that had it.

use crate::links::Basis;
use crate::rate::seconds;
use crate::{LinkMetrics, MachineMetrics, Metrics};
use std::collections::BTreeMap;
use std::sync::Arc;
use vnettop_sample::{LinkCounters, LinkFacts, LinkKey, Owner};

/// Links that are kept: thousands come and go where containers do. Those that are there now are always kept.
const MOST_GONE: usize = 512;

/// One link over the time that it was there.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkSummary {
    /// What it is, as of the last sample that had it.
    pub facts: Arc<LinkFacts>,
    /// What its claim is worth.
    pub basis: Basis,
    /// Whose it is.
    pub owner: Option<Owner>,
    /// What its namespace is called, as in the paths.
    pub space: String,
    /// Time between the first sample that had it and the last, seconds.
    pub seconds: f64,
    /// Mean rate received, bits/s; none where a counter went back, or it was there for one sample only.
    pub rx_bits_per_s: Option<f64>,
    /// Mean rate sent, bits/s.
    pub tx_bits_per_s: Option<f64>,
    /// Packets dropped and failed in both directions; none where a counter went back.
    pub dropped: Option<u64>,
}

/// A link's counters where it was met first, and its last row once it has gone.
#[derive(Debug, Clone)]
struct LinkSpan {
    born: u64,
    first: LinkCounters,
    gone: Option<Box<LinkSummary>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct LinksTrack {
    links: BTreeMap<LinkKey, LinkSpan>,
    /// The list of links as it was last: nothing comes or goes while it is the same.
    list: Arc<Vec<Arc<LinkFacts>>>,
    /// Links of the last list that had no counters yet.
    incomplete: bool,
    newest: Arc<Vec<LinkMetrics>>,
    /// The machine of the last sample: who and where.
    machine: Arc<MachineMetrics>,
}

impl LinksTrack {
    pub fn observe(&mut self, metrics: &Metrics) {
        let is_same = Arc::ptr_eq(&self.list, &metrics.machine.facts.links);
        if !is_same || self.incomplete {
            self.take_list(metrics);
        }
        self.newest = Arc::clone(&metrics.machine.links);
        self.machine = Arc::clone(&metrics.machine);
    }

    fn take_list(&mut self, metrics: &Metrics) {
        self.list = Arc::clone(&metrics.machine.facts.links);
        self.incomplete = metrics.machine.links.iter().any(|link| link.counters.is_none());
        let old = Arc::clone(&self.newest);
        for link in &*old {
            let is_there = metrics.machine.link(link.facts.key()).is_some_and(|now| now.facts.born == link.facts.born);
            if !is_there && let Some(track) = self.links.get(&link.facts.key()) {
                let gone = self.summary(link, track);
                if let Some(track) = self.links.get_mut(&link.facts.key()) {
                    track.gone = gone.map(Box::new);
                }
            }
        }
        for link in &*metrics.machine.links {
            let Some(counters) = link.counters else { continue };
            // An inode is used again for a namespace made later, and `lo` of both was born alike: what was gone is another link.
            let is_same = |known: &LinkSpan| known.born == link.facts.born && known.gone.is_none();
            let is_known = self.links.get(&link.facts.key()).is_some_and(is_same);
            if !is_known {
                self.links.insert(link.facts.key(), LinkSpan { born: link.facts.born, first: counters, gone: None });
            }
        }
        while self.links.values().filter(|track| track.gone.is_some()).count() > MOST_GONE {
            let Some(gone) = self.links.iter().find(|(_, track)| track.gone.is_some()).map(|(key, _)| *key) else {
                break;
            };
            self.links.remove(&gone);
        }
    }

    fn summary(&self, link: &LinkMetrics, track: &LinkSpan) -> Option<LinkSummary> {
        let (first, last) = (track.first, link.counters?);
        let seconds = seconds(first.at_ns, last.at_ns);
        let rate = |from: u64, to: u64| Some(to.checked_sub(from)? as f64 * 8.0 / seconds?);
        let drops = |row: &LinkCounters| row.rx_dropped + row.tx_dropped + row.rx_errors + row.tx_errors;
        Some(LinkSummary {
            facts: Arc::clone(&link.facts),
            basis: link.basis,
            owner: self.machine.owner(link.facts.key()).cloned(),
            space: self.machine.space_in_table(link.facts.netns),
            seconds: seconds.unwrap_or(0.0),
            rx_bits_per_s: rate(first.rx_bytes, last.rx_bytes),
            tx_bits_per_s: rate(first.tx_bytes, last.tx_bytes),
            dropped: drops(&last).checked_sub(drops(&first)).filter(|_| link.counts_drops()),
        })
    }

    pub fn summaries(&self) -> Vec<LinkSummary> {
        let there = self.newest.iter().filter_map(|link| {
            let track = self.links.get(&link.facts.key()).filter(|track| track.born == link.facts.born)?;
            self.summary(link, track)
        });
        let gone = self.links.values().filter_map(|track| track.gone.as_deref().cloned());
        let mut all: Vec<LinkSummary> = there.chain(gone).collect();
        let carried =
            |link: &LinkSummary| (link.rx_bits_per_s.unwrap_or(0.0) + link.tx_bits_per_s.unwrap_or(0.0)) * link.seconds;
        all.sort_by(|one, other| carried(other).total_cmp(&carried(one)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vnettop_sample::{Facts, Ifindex, Kind};

    const LO: LinkKey = LinkKey { netns: 7, ifindex: Ifindex(1) };

    /// A sample at this second, with what `lo` of another namespace has received; `None` is one without that namespace.
    fn at(second: u64, rx_bytes: Option<u64>) -> Metrics {
        let link = |rx_bytes| LinkMetrics {
            facts: Arc::new(LinkFacts::new(LO, "lo", Kind::Loopback)),
            basis: Basis::None,
            counters: Some(LinkCounters { rx_bytes, ..LinkCounters::zero(LO, second * 1_000_000_000) }),
            rates: None,
            ovs: None,
        };
        let links: Vec<LinkMetrics> = rx_bytes.map(link).into_iter().collect();
        let facts = links.iter().map(|link| Arc::clone(&link.facts)).collect();
        let facts = Arc::new(Facts { links: Arc::new(facts), ..Facts::default() });
        Metrics::of_machine(MachineMetrics { netns: 1, facts, links: Arc::new(links), ..MachineMetrics::default() })
    }

    #[test]
    fn an_inode_that_is_used_again_is_of_another_namespace() {
        let mut track = LinksTrack::default();
        for metrics in [at(0, Some(0)), at(10, Some(0)), at(11, None), at(15, Some(9_000_000)), at(16, Some(9_125_000))]
        {
            track.observe(&metrics);
        }
        let all = track.summaries();
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((all[0].seconds, all[0].rx_bits_per_s), (1.0, Some(1e6)), "nothing of the one before");
    }
}
