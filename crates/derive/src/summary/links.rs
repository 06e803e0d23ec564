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
    /// Mean rates received and sent while tests ran; none where it was not there then, or its counters went back.
    pub in_tests: Option<[f64; 2]>,
}

/// What a link's counters rose by while tests ran.
#[derive(Debug, Clone, Copy, Default)]
struct Carried {
    rx_bytes: u64,
    tx_bytes: u64,
    seconds: f64,
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
    /// The links as they were when a test began to run, or when the list of them changed since; none while no test runs.
    since: Option<Arc<Vec<LinkMetrics>>>,
    in_tests: BTreeMap<LinkKey, Carried>,
}

impl LinksTrack {
    pub fn observe(&mut self, metrics: &Metrics, is_in_test: bool) {
        let is_same = Arc::ptr_eq(&self.list, &metrics.machine.facts.links);
        if self.since.is_some() && !(is_same && is_in_test) {
            self.in_tests = self.carried_in_tests();
            self.since = None;
        }
        if is_in_test && self.since.is_none() {
            self.since = Some(Arc::clone(&self.newest));
        }
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
                let gone = self.summary(link, track, &self.in_tests);
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
                self.in_tests.remove(&link.facts.key());
                self.links.insert(link.facts.key(), LinkSpan { born: link.facts.born, first: counters, gone: None });
            }
        }
        while self.links.values().filter(|track| track.gone.is_some()).count() > MOST_GONE {
            let Some(gone) = self.links.iter().find(|(_, track)| track.gone.is_some()).map(|(key, _)| *key) else {
                break;
            };
            self.links.remove(&gone);
            self.in_tests.remove(&gone);
        }
    }

    /// The link that has its key now is this one: its counters go on.
    fn is_still(&self, link: &LinkMetrics) -> bool {
        self.links.get(&link.facts.key()).is_some_and(|known| known.born == link.facts.born && known.gone.is_none())
    }

    /// With what they have carried since the test began.
    fn carried_in_tests(&self) -> BTreeMap<LinkKey, Carried> {
        let mut all = self.in_tests.clone();
        let since = self.since.iter().flat_map(|since| since.iter());
        let since: BTreeMap<LinkKey, LinkCounters> = since
            .filter(|link| self.is_still(link))
            .filter_map(|link| Some((link.facts.key(), link.counters?)))
            .collect();
        for link in self.newest.iter().filter(|_| self.since.is_some()) {
            // One that has come meanwhile began with the first sample that had it.
            let met = || Some(self.links.get(&link.facts.key())?.first);
            let (Some(first), Some(last)) = (since.get(&link.facts.key()).copied().or_else(met), link.counters) else {
                continue;
            };
            let rise = |of: fn(&LinkCounters) -> u64| of(&last).checked_sub(of(&first));
            let rises = rise(|row| row.rx_bytes).zip(rise(|row| row.tx_bytes));
            let Some((rx_bytes, tx_bytes)) = rises else { continue };
            let sum = all.entry(link.facts.key()).or_default();
            sum.rx_bytes = sum.rx_bytes.saturating_add(rx_bytes);
            sum.tx_bytes = sum.tx_bytes.saturating_add(tx_bytes);
            sum.seconds += seconds(first.at_ns, last.at_ns).unwrap_or(0.0);
        }
        all
    }

    fn summary(
        &self,
        link: &LinkMetrics,
        track: &LinkSpan,
        in_tests: &BTreeMap<LinkKey, Carried>,
    ) -> Option<LinkSummary> {
        let (first, last) = (track.first, link.counters?);
        let seconds = seconds(first.at_ns, last.at_ns);
        let rate = |from: u64, to: u64| Some(to.checked_sub(from)? as f64 * 8.0 / seconds?);
        let in_tests = in_tests.get(&link.facts.key()).filter(|carried| carried.seconds > 0.0);
        let in_tests = in_tests
            .map(|carried| [carried.rx_bytes, carried.tx_bytes].map(|bytes| bytes as f64 * 8.0 / carried.seconds));
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
            in_tests,
        })
    }

    pub fn summaries(&self) -> Vec<LinkSummary> {
        let in_tests = self.carried_in_tests();
        let there = self.newest.iter().filter_map(|link| {
            let track = self.links.get(&link.facts.key()).filter(|track| track.born == link.facts.born)?;
            self.summary(link, track, &in_tests)
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
            track.observe(&metrics, false);
        }
        let all = track.summaries();
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((all[0].seconds, all[0].rx_bits_per_s), (1.0, Some(1e6)), "nothing of the one before");
    }

    #[test]
    fn what_a_link_carried_while_a_test_ran_is_told_by_itself() {
        let mut track = LinksTrack::default();
        for (second, rx_bytes, is_in_test) in
            [(0, 0, false), (1, 500, false), (2, 1_500, true), (3, 2_500, true), (4, 2_500, false)]
        {
            track.observe(&at(second, Some(rx_bytes)), is_in_test);
        }
        let link = &track.summaries()[0];
        assert_eq!((link.seconds, link.rx_bits_per_s), (4.0, Some(5_000.0)), "with the time around the test");
        assert_eq!(link.in_tests.map(|[rx, _]| rx), Some(8_000.0), "of two seconds");
    }
}
