//! The link with the largest rate over the last seconds, which changes only where another one is clearly faster for a while. Its bins
//! are the ticks.

use super::Bin;
use super::links::LinkMetrics;
use super::rate::seconds;
use vnettop_sample::{LinkCounters, LinkKey, Sample, row_of};

/// Slower links are not looked at, bits/s.
pub(crate) const LEAST_BITS_PER_S: f64 = 1e6;
/// Over about so many seconds rates are smoothed.
const SMOOTH_S: f64 = 2.0;
/// Another link takes over when it is so much faster, for so many seconds.
const FASTER: f64 = 1.25;
const FOR_NS: u64 = 3_000_000_000;

/// The choice, and what it is made from.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct BusiestLink {
    /// Links that move something, sorted.
    rates: Vec<Smoothed>,
    chosen: Option<(LinkKey, u64)>,
    /// Since when another one has been faster.
    beaten_since_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Smoothed {
    link: (LinkKey, u64),
    bits_per_s: f64,
}

impl BusiestLink {
    /// It and its newest bin; `None` while none moves anything.
    pub fn observe<'a>(
        &mut self,
        previous: &Sample,
        next: &Sample,
        links: &'a [LinkMetrics],
    ) -> Option<(&'a LinkMetrics, Bin)> {
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
        Some((link, Bin { from_ns, to_ns, bits_per_s, ..Bin::default() }))
    }

    /// The chosen one has moved enough of late.
    pub fn is_busy(&self) -> bool {
        let chosen = self.rates.iter().find(|rate| Some(rate.link) == self.chosen);
        chosen.is_some_and(|rate| rate.bits_per_s >= LEAST_BITS_PER_S)
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

/// The links of vnettop's own namespace, which see the traffic to and from the other namespaces, where it has any; else all.
pub(crate) fn of_own_namespace<'a>(next: &Sample, links: &'a [LinkMetrics]) -> &'a [LinkMetrics] {
    let own = |link: &&LinkMetrics| link.facts.netns == next.netns;
    match links.iter().position(|link| own(&link)) {
        Some(first) => &links[first..first + links[first..].iter().take_while(own).count()],
        None => links,
    }
}
