//! The links that a test's data cross, with what they carried meanwhile.

use crate::links::Basis;
use crate::paths::{found, offloads};
use crate::{Mean, TestMetrics};
use std::collections::BTreeMap;
use vnettop_sample::{FlowPath, HopBy, HopWay, Kind, LinkKey};

/// Paths of a test that are told apart: its streams mostly have one.
const MOST_PATHS: usize = 4;

/// The path of a test's connections.
#[derive(Debug, Clone, PartialEq)]
pub struct PathSummary {
    /// In the order of the packets.
    pub hops: Vec<HopSummary>,
    /// Why it ends before the receiver; none where it is whole.
    pub gap: Option<String>,
    /// Which packets take this path, when others may take another one.
    pub note: Option<String>,
}

/// One link of the path.
#[derive(Debug, Clone, PartialEq)]
pub struct HopSummary {
    /// Which link.
    pub link: LinkKey,
    /// Its name; none where it has gone.
    pub name: Option<String>,
    /// What it is.
    pub kind: Option<Kind>,
    /// What its namespace is called.
    pub space: String,
    /// Whose it is.
    pub owner: Option<String>,
    /// On which side of its counters the packets are.
    pub way: HopWay,
    /// Why it is the next one.
    pub by: HopBy,
    /// Bytes; none where no device says.
    pub mtu: Option<u32>,
    /// Mb/s, and what that is worth.
    pub claim_mbps: Option<u32>,
    /// What the claim is worth.
    pub basis: Basis,
    /// Mean of everything that it carried in that direction while the test ran, bits/s; none where its counters do not count it.
    pub bits_per_s: Option<f64>,
    /// What its own counter of drops in that direction rose by while the path was known, whosever the packets are.
    pub dropped: Option<f64>,
    /// Packets of the test lost at that link, in its qdiscs, or behind it, as in the socket that they were for; in either direction: a
    /// part of all that it lost.
    pub lost: f64,
    /// Segments are cut late, received ones put together; none where that is not known.
    pub segmentation: Option<(bool, bool)>,
}

/// What the links of a test's paths carried.
#[derive(Debug, Clone, Default)]
pub(super) struct PathTrack {
    rates: BTreeMap<(LinkKey, bool), (Mean, Mean)>,
    /// As of the last sample of the test that had any.
    paths: Vec<PathSummary>,
    /// What is in `rates` is of samples that lie within the test.
    is_whole: bool,
}

impl PathTrack {
    /// A sample that begins before the test counts as long as there is no other: most of it is idle.
    pub fn observe(&mut self, metrics: &TestMetrics, is_whole: bool) {
        if is_whole && !self.is_whole {
            // What was dropped then is no rate: it stays counted.
            self.rates.values_mut().for_each(|(of_bits, _)| *of_bits = Mean::default());
            self.is_whole = true;
        }
        let counts = is_whole || !self.is_whole;
        let elapsed_s = metrics.machine.elapsed_s.unwrap_or(0.0);
        let mut counted: Vec<(LinkKey, bool)> = Vec::new();
        for hop in metrics.paths.iter().flat_map(|path| &path.hops).filter(|hop| hop.way != HopWay::Passed) {
            let key = (hop.link, hop.way == HopWay::Sent);
            if counted.contains(&key) {
                continue;
            }
            counted.push(key);
            let Some(rates) = metrics.machine.link(hop.link).and_then(|link| link.rates) else { continue };
            let (bits, drops) = match hop.way {
                HopWay::Sent => (rates.tx_bits_per_s, rates.tx_dropped_per_s),
                _ => (rates.rx_bits_per_s, rates.rx_dropped_per_s),
            };
            let (of_bits, of_drops) = self.rates.entry(key).or_default();
            of_bits.add(bits.filter(|_| counts), elapsed_s);
            of_drops.add(drops, elapsed_s);
        }
    }

    /// Looks at which paths there are: once a while, because they seldom change.
    pub fn look(&mut self, metrics: &TestMetrics) {
        let connections = metrics.flow.connections.iter().filter(|connection| connection.carries);
        let mut paths: Vec<&FlowPath> = Vec::new();
        for path in connections.filter_map(|connection| found(&metrics.paths, connection)) {
            let is_same = |known: &&FlowPath| known.hops == path.hops && known.gap == path.gap;
            if paths.len() < MOST_PATHS && !paths.iter().any(is_same) {
                paths.push(path);
            }
        }
        if !paths.is_empty() {
            self.paths = paths.into_iter().map(|path| summary(metrics, path)).collect();
        }
    }

    pub fn summaries(&self) -> Vec<PathSummary> {
        let mut paths = self.paths.clone();
        for hop in paths.iter_mut().flat_map(|path| &mut path.hops).filter(|hop| hop.way != HopWay::Passed) {
            let known = self.rates.get(&(hop.link, hop.way == HopWay::Sent));
            hop.bits_per_s = known.and_then(|(bits, _)| bits.value());
            hop.dropped = known.filter(|(_, drops)| drops.weight > 0.0).map(|(_, drops)| drops.sum);
        }
        paths
    }
}

fn summary(metrics: &TestMetrics, path: &FlowPath) -> PathSummary {
    let hop = |hop: &vnettop_sample::Hop| {
        let link = metrics.machine.link(hop.link);
        HopSummary {
            link: hop.link,
            name: link.map(|link| link.facts.name.clone()),
            kind: link.map(|link| link.facts.kind.clone()),
            space: metrics.machine.space_in_table(hop.link.netns),
            owner: metrics.machine.owner(hop.link).map(|owner| owner.name.clone()),
            way: hop.way,
            by: hop.by,
            mtu: link.filter(|link| link.facts.tells_mtu()).map(|link| link.facts.mtu),
            claim_mbps: link.and_then(|link| link.facts.speed_mbps),
            basis: link.map_or(Basis::None, |link| link.basis),
            bits_per_s: None,
            dropped: None,
            lost: 0.0,
            segmentation: offloads(metrics, hop.link).map(|of| (of.tso || of.gso, of.gro)),
        }
    };
    PathSummary { hops: path.hops.iter().map(hop).collect(), gap: path.gap.clone(), note: path.note.clone() }
}
