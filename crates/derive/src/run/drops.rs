//! Packets dropped while the command ran: by link and by the cores' backlogs, from absolute counters.

use crate::losses::{LossPlace, Losses};
use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{CoreId, LinkKey, Sample, row_of};

/// Packets dropped over a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunDrops {
    /// Links of every namespace: which of them a flow crosses is known later.
    links: BTreeMap<LinkKey, (String, u64)>,
    /// The own namespace, and those that a flow of the benchmark crossed: drops in any other are somebody else's.
    concerned: BTreeSet<u64>,
    /// Packets dropped because a core's backlog was full.
    pub softnet: u64,
    /// A share of a packet may be a flow's.
    on_path: DroppedOnPath<f64>,
    /// The path of some flow was read.
    knows_path: bool,
    last_links: Vec<(LinkKey, u64)>,
    last_softnet: Vec<(CoreId, u32)>,
    /// Two samples of a run were compared.
    pub(super) known: bool,
}

/// Packets dropped on the paths of the flows where neither links nor backlogs count them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DroppedOnPath<N = u64> {
    /// By qdiscs.
    pub qdiscs: N,
    /// Because socket buffers had no room.
    pub sockets: N,
    /// By rules, IP, connection tracking, Open vSwitch's upcalls and wherever else the kernel drops them.
    pub protocols: N,
}

impl RunDrops {
    /// Adds what was lost on the flows' paths where neither links nor backlogs count it.
    pub(super) fn observe_way(&mut self, losses: &Losses) {
        self.knows_path |= losses.sent.is_some();
        for loss in &losses.places {
            let on_path = &mut self.on_path;
            let dropped = match loss.place {
                LossPlace::Link | LossPlace::Backlog | LossPlace::Ovs => continue,
                LossPlace::Qdisc => &mut on_path.qdiscs,
                LossPlace::ReceiveBuffer | LossPlace::SendBuffer => &mut on_path.sockets,
                _ => &mut on_path.protocols,
            };
            *dropped += loss.packets;
        }
    }

    /// Adds what was dropped since the sample before, if that counts.
    pub(super) fn observe(&mut self, sample: &Sample, counts: bool) {
        if counts {
            self.known |= !self.last_links.is_empty();
            self.concerned.insert(sample.netns);
            self.concerned.extend(sample.facts.paths.iter().flat_map(|path| &path.hops).map(|hop| hop.link.netns));
            self.add(sample);
        }
        self.last_links.clear();
        self.last_links.extend(sample.counters.iter().map(|row| (row.key(), row.rx_dropped + row.tx_dropped)));
        self.last_softnet.clear();
        let cores = sample.cores.iter().filter_map(|core| Some((core.core, core.softnet?.dropped)));
        self.last_softnet.extend(cores);
    }

    fn add(&mut self, sample: &Sample) {
        for row in &sample.counters {
            let last = row_of(&self.last_links, &row.key(), |(key, _)| *key);
            // A counter that went backwards is another link's.
            let more = last.and_then(|(_, last)| (row.rx_dropped + row.tx_dropped).checked_sub(*last));
            if let Some(more) = more.filter(|&more| more > 0) {
                let entry = self.links.entry(row.key()).or_insert_with(|| (name(sample, row.key()), 0));
                entry.1 += more;
            }
        }
        for core in &sample.cores {
            let Some(softnet) = core.softnet else { continue };
            if let Some((_, last)) = row_of(&self.last_softnet, &core.core, |(core, _)| *core) {
                self.softnet += u64::from(softnet.dropped.wrapping_sub(*last));
            }
        }
    }

    /// Links that dropped packets in either direction: name and packets, most first.
    #[must_use]
    pub fn links(&self) -> Vec<(&str, u64)> {
        let mut links: Vec<_> = self.concerned().map(|(name, packets)| (name.as_str(), *packets)).collect();
        links.sort_by_key(|(_, packets)| std::cmp::Reverse(*packets));
        links
    }

    /// Packets dropped by links.
    #[must_use]
    pub fn by_links(&self) -> u64 {
        self.concerned().map(|(_, packets)| packets).sum()
    }

    fn concerned(&self) -> impl Iterator<Item = &(String, u64)> {
        self.links.iter().filter(|(link, _)| self.concerned.contains(&link.netns)).map(|(_, dropped)| dropped)
    }

    /// Packets dropped on the paths of the flows; none where that was not read.
    #[must_use]
    pub fn on_path(&self) -> Option<DroppedOnPath> {
        self.knows_path.then(|| self.on_path.whole())
    }

    /// All drops, packets.
    #[must_use]
    pub fn total(&self) -> u64 {
        let on_path = self.on_path.whole();
        self.by_links() + self.softnet + on_path.qdiscs + on_path.sockets + on_path.protocols
    }
}

impl DroppedOnPath<f64> {
    fn whole(self) -> DroppedOnPath {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of packets")]
        let whole = |packets: f64| packets.round() as u64;
        DroppedOnPath { qdiscs: whole(self.qdiscs), sockets: whole(self.sockets), protocols: whole(self.protocols) }
    }
}

fn name(sample: &Sample, key: LinkKey) -> String {
    let link = row_of(&sample.facts.links, &key, |link| link.key());
    link.map_or_else(|| format!("link {}", key.ifindex.0), |link| link.name.clone())
}
