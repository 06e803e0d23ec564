//! What of passing traffic is dropped, as far as counters tell: qdiscs, links, backlogs.

use crate::losses::KnownQdisc;
use crate::losses::qdiscs::{self, ROOT};
use crate::machine::MachineMetrics;
use vnettop_sample::{CoreId, LinkKey, QdiscCounters, Sample};

/// Fewer packets a second are no drop worth the name.
const LEAST_PER_S: f64 = 0.5;

/// What drops packets.
#[derive(Debug, Clone, PartialEq)]
pub enum DropPlace {
    /// A root qdisc on a link of this name.
    Qdisc(LinkKey, KnownQdisc, String),
    /// A link, on the way in or out, of this name.
    Link(LinkKey, String),
    /// The queue of received packets of a core.
    Backlog(CoreId),
}

/// What one place drops.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficDrop {
    /// Where.
    pub place: DropPlace,
    /// How much, packets/s.
    pub packets_per_s: f64,
}

impl TrafficDrop {
    /// `tbf on rb`, `rb`, `the backlog of core 0`
    #[must_use]
    pub fn place_word(&self) -> String {
        match &self.place {
            DropPlace::Qdisc(_, qdisc, name) => format!("{} on {name}", qdisc.kind),
            DropPlace::Link(_, name) => name.clone(),
            DropPlace::Backlog(core) => format!("the backlog of core {core}"),
        }
    }

    /// It drops what this link does not count in this direction: on the way out a queue comes before the link.
    pub(super) fn is_before(&self, link: LinkKey, comes_in: bool) -> bool {
        matches!(&self.place, DropPlace::Qdisc(at, ..) | DropPlace::Link(at, _) if *at == link && !comes_in)
    }
}

/// How much was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropSearch {
    /// Links whose drops are known.
    pub links: usize,
    /// Root qdiscs.
    pub qdiscs: usize,
    /// Backlogs of cores.
    pub backlogs: usize,
}

impl DropSearch {
    /// Nothing was.
    pub(super) fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Qdiscs are read about once a second, whatever the interval is.
#[derive(Debug, Clone, Default)]
pub(super) struct DropTrack {
    qdiscs: Vec<QdiscCounters>,
    /// What they dropped between the last two readings.
    by_qdiscs: Vec<TrafficDrop>,
}

impl DropTrack {
    /// The drops of this namespace, most first, and what was looked at.
    pub fn observe(&mut self, machine: &MachineMetrics, next: &Sample, netns: u64) -> (Vec<TrafficDrop>, DropSearch) {
        let is_here = |row: &&QdiscCounters| row.link.netns == netns && row.parent == ROOT;
        let newest = |rows: &[QdiscCounters]| rows.iter().map(|row| row.at_ns).max();
        if newest(&next.qdiscs) != newest(&self.qdiscs) {
            let dropped = |now: &QdiscCounters| {
                let (packets, seconds) = qdiscs::dropped(&self.qdiscs, now)?;
                let packets_per_s = Some(packets / seconds).filter(|per_s| *per_s >= LEAST_PER_S)?;
                let name = machine.link(now.link)?.facts.name.clone();
                let at_fault = qdiscs::at_fault(&self.qdiscs, &next.qdiscs, now);
                let place = DropPlace::Qdisc(now.link, KnownQdisc::from(at_fault), name);
                Some(TrafficDrop { place, packets_per_s })
            };
            self.by_qdiscs = next.qdiscs.iter().filter(is_here).filter_map(dropped).collect();
            self.qdiscs.clone_from(&next.qdiscs);
        }
        let mut all = self.by_qdiscs.clone();
        let mut looked_at = DropSearch { qdiscs: next.qdiscs.iter().filter(is_here).count(), ..DropSearch::default() };
        // Most drop nothing: only what does has a row.
        let drops = |packets_per_s: f64| packets_per_s >= LEAST_PER_S;
        let mut by_backlogs = 0.0;
        for core in &machine.cores {
            let Some(packets_per_s) = core.load.and_then(|load| load.softnet_dropped_per_s) else { continue };
            looked_at.backlogs += 1;
            by_backlogs += packets_per_s;
            let place = DropPlace::Backlog(core.place.core);
            all.extend(drops(packets_per_s).then_some(TrafficDrop { place, packets_per_s }));
        }
        for link in machine.links.iter().filter(|link| link.facts.netns == netns) {
            let Some(counted) = link.rates.and_then(|rates| rates.dropped_per_s()) else { continue };
            looked_at.links += 1;
            // It counts what a full backlog has dropped of its packets as its own.
            let packets_per_s = counted - by_backlogs;
            let place = || DropPlace::Link(link.facts.key(), link.facts.name.clone());
            all.extend(drops(packets_per_s).then(|| TrafficDrop { place: place(), packets_per_s }));
        }
        all.sort_by(|one, other| other.packets_per_s.total_cmp(&one.packets_per_s));
        (all, looked_at)
    }
}
