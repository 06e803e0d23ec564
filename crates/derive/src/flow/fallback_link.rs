//! The link that stands for a benchmark whose connections cannot be read: the one with the largest rate over the last
//! seconds while watched threads work. Its bins are the ticks.

use super::Bin;
use crate::links::LinkMetrics;
use crate::rate::seconds;
use vnettop_sample::{LinkCounters, LinkKey, Sample, ThreadSample, row_of};

/// Slower links drive no benchmark.
const LEAST_BITS_PER_S: f64 = 1e6;
/// Over about so many seconds rates are smoothed.
const SMOOTH_S: f64 = 2.0;
/// Another link takes over when it is so much faster, for so many seconds.
const FASTER: f64 = 1.25;
const FOR_NS: u64 = 3_000_000_000;
/// A share of a core that watched threads take when they drive something.
const WORK: f64 = 0.01;
/// After work has ended the link still belongs to the benchmark for so long: a stall is to be seen.
const PAUSE_NS: u64 = 1_000_000_000;

/// The choice, and what it is made from.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FallbackLink {
    /// Links that move something, sorted.
    rates: Vec<Smoothed>,
    chosen: Option<(LinkKey, u64)>,
    /// Since when another one has been faster.
    beaten_since_ns: Option<u64>,
    worked_at_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Smoothed {
    link: (LinkKey, u64),
    bits_per_s: f64,
}

impl FallbackLink {
    /// The link's name and its newest bin; none while nothing is driven.
    pub fn observe(&mut self, previous: &Sample, next: &Sample, links: &[LinkMetrics]) -> Option<(String, Bin)> {
        if works(previous, next) {
            self.worked_at_ns = Some(next.at_ns);
        }
        let since_ns = next.at_ns.saturating_sub(self.worked_at_ns?);
        if since_ns > PAUSE_NS || next.watched().next().is_none() {
            *self = Self::default();
            return None;
        }
        // Links of vnettop's own namespace see the traffic to and from the other namespaces; links of others may be anybody's.
        let own = |link: &&LinkMetrics| link.facts.netns == next.netns;
        let links = match links.iter().position(|link| own(&link)) {
            Some(first) => &links[first..first + links[first..].iter().take_while(own).count()],
            None => links,
        };
        self.smooth(links, seconds(previous.at_ns, next.at_ns)?);
        self.choose(links, next.at_ns);
        let (key, _) = self.chosen?;
        let link = row_of(links, &key, |link| link.facts.key())?;
        let read_ns = |sample: &Sample| row_of(&sample.counters, &key, LinkCounters::key).map(|row| row.at_ns);
        // A link that stood still may not have been read again: then the ticks are its times.
        let (from_ns, to_ns) = match (read_ns(previous)?, read_ns(next)?) {
            (from, to) if from < to => (from, to),
            _ => (previous.at_ns, next.at_ns),
        };
        let bits_per_s = link.rates.and_then(|rates| rates.peak_bits_per_s());
        Some((link.facts.name.clone(), Bin { from_ns, to_ns, bits_per_s, ..Bin::default() }))
    }

    fn smooth(&mut self, links: &[LinkMetrics], elapsed_s: f64) {
        let share = (elapsed_s / SMOOTH_S).min(1.0);
        self.rates.iter_mut().for_each(|rate| rate.bits_per_s *= 1.0 - share);
        for link in links {
            let bits_per_s = link.rates.and_then(|rates| rates.peak_bits_per_s()).unwrap_or(0.0);
            // What only Open vSwitch knows has a new rate every few seconds: no bins for a tick.
            if bits_per_s < LEAST_BITS_PER_S || link.facts.ifindex.kernel().is_none() {
                continue;
            }
            let link = (link.facts.key(), link.facts.born);
            match self.rates.binary_search_by_key(&link, |rate| rate.link) {
                Ok(at) => self.rates[at].bits_per_s += share * bits_per_s,
                Err(at) => self.rates.insert(at, Smoothed { link, bits_per_s: share * bits_per_s }),
            }
        }
        self.rates.retain(|rate| rate.bits_per_s >= LEAST_BITS_PER_S / 100.0);
    }

    fn choose(&mut self, links: &[LinkMetrics], now_ns: u64) {
        let is_there = |&(key, born): &(LinkKey, u64)| {
            row_of(links, &key, |link| link.facts.key()).is_some_and(|link| link.facts.born == born)
        };
        self.chosen = self.chosen.filter(is_there);
        let faster = |a: &&Smoothed, b: &&Smoothed| a.bits_per_s.total_cmp(&b.bits_per_s);
        let Some(best) = self.rates.iter().filter(|rate| is_there(&rate.link)).max_by(faster) else { return };
        let current = self.rates.iter().find(|rate| Some(rate.link) == self.chosen);
        let is_beaten = best.bits_per_s > FASTER * current.map_or(0.0, |rate| rate.bits_per_s);
        if !is_beaten {
            self.beaten_since_ns = None;
        } else if self.chosen.is_none() || now_ns.saturating_sub(*self.beaten_since_ns.get_or_insert(now_ns)) >= FOR_NS
        {
            (self.chosen, self.beaten_since_ns) = (Some(best.link), None);
        }
    }
}

/// Whether the watched threads did anything worth the name between two samples.
fn works(previous: &Sample, next: &Sample) -> bool {
    let spent =
        |thread: &ThreadSample| thread.cpu_ns.checked_sub(row_of(&previous.threads, &thread.id, |old| old.id)?.cpu_ns);
    let spent_ns: u64 = next.watched().filter_map(spent).sum();
    spent_ns as f64 > WORK * next.at_ns.saturating_sub(previous.at_ns) as f64
}
