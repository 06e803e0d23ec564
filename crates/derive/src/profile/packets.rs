//! How many packets the watched paths carried in the time of a profile: those that their first links counted.

use crate::links::passed_packets;
use std::collections::{BTreeMap, VecDeque};
use vnettop_sample::{HopWay, LinkCounters, LinkFacts, LinkKey, Sample, row_of};

/// Counts that are kept: of the time that a profile looks at, ten a second at most.
const KEPT: usize = 128;
/// A tick after this is counted again, ns.
const EVERY_NS: u64 = 100_000_000;

/// Counts of the first links, tick by tick.
#[derive(Debug, Clone, Default)]
pub(super) struct PacketTrack {
    ticks: VecDeque<(u64, BTreeMap<LinkKey, u64>)>,
}

impl PacketTrack {
    pub fn observe(&mut self, next: &Sample) {
        if self.ticks.back().is_some_and(|(at_ns, _)| next.at_ns.saturating_sub(*at_ns) < EVERY_NS / 2) {
            return;
        }
        // A bridge does not count what crosses it.
        let firsts = next.facts.paths.iter().filter_map(|path| path.hops.iter().find(|hop| hop.way != HopWay::Passed));
        let counted = firsts.filter_map(|hop| {
            let link = row_of(&next.facts.links, &hop.link, |link: &std::sync::Arc<LinkFacts>| link.key())?;
            let counters = row_of(&next.counters, &hop.link, LinkCounters::key)?;
            Some((hop.link, passed_packets(&link.kind, counters, hop.way)?))
        });
        self.ticks.push_back((next.at_ns, counted.collect()));
        while self.ticks.len() > KEPT {
            self.ticks.pop_front();
        }
    }

    /// Packets a second between two instants, as far as ticks lie there; none where nothing was counted twice.
    pub fn per_s(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let mut within = self.ticks.iter().filter(|(at_ns, _)| (from_ns..=to_ns).contains(at_ns));
        let ((first_ns, first), (last_ns, last)) = (within.next()?, within.next_back()?);
        let passed = last.iter().filter_map(|(link, packets)| packets.checked_sub(*first.get(link)?));
        let packets = passed.fold(None, |sum: Option<u64>, packets| Some(sum.unwrap_or(0) + packets))?;
        Some(packets as f64 * 1e9 / last_ns.saturating_sub(*first_ns).max(1) as f64)
    }
}
