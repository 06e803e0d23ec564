//! Packets that the datapaths of Open vSwitch on the way could not ask ovs-vswitchd about (`lost`). No counter of a link has
//! them. A datapath serves all bridges of its switch: where datagrams are on the way and do not miss as many, others' are
//! lost, and that is no loss of theirs.

use super::counted::Step;
use super::{Loss, LossPlace};
use crate::derive::ovs::DatapathMetrics;
use crate::sample::{FlowPath, HopWay, LinkKey, OvsSwitch};
use std::collections::VecDeque;

/// What is lost is held against what the flows miss over this time, ns: they are read one after another.
const WINDOW_NS: u64 = 2_000_000_000;
/// What the flows miss must be so much of it; else others are lost there. From the second share on they are clearly theirs.
const LEAST_OWN: f64 = 0.2;
const CLEARLY_OWN: f64 = 0.8;

/// A datapath on the way.
#[derive(Debug)]
pub(super) struct Crossed<'a> {
    /// The link that stands for it: its bridge's own, where that is a hop, or else the first port.
    pub link: LinkKey,
    datapath: &'a DatapathMetrics,
}

impl Crossed<'_> {
    /// Packets lost a second; none where that is not known.
    pub fn lost_per_s(&self) -> Option<f64> {
        self.datapath.rates.map(|rates| rates.lost_per_s)
    }
}

/// The datapaths that these ways cross.
pub(super) fn crossed<'a>(
    datapaths: &'a [DatapathMetrics],
    switches: &[OvsSwitch],
    paths: &[FlowPath],
) -> Vec<Crossed<'a>> {
    let of = |datapath: &'a DatapathMetrics| {
        let bridges = switches
            .iter()
            .flat_map(|switch| switch.bridges.iter().filter(|bridge| datapath.counters.is_of(switch, bridge)))
            .collect::<Vec<_>>();
        let is_port =
            |link: LinkKey| bridges.iter().any(|bridge| bridge.ports.iter().any(|port| port.link == Some(link)));
        let hops = || paths.iter().flat_map(|path| &path.hops).filter(|hop| is_port(hop.link));
        let hop = hops().find(|hop| hop.way == HopWay::Passed).or_else(|| hops().next())?;
        Some(Crossed { link: hop.link, datapath })
    };
    datapaths.iter().filter_map(of).collect()
}

/// The last ticks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Upcalls {
    ticks: VecDeque<Tick>,
}

#[derive(Debug, Clone, PartialEq)]
struct Tick {
    at_ns: u64,
    lost: f64,
    missed: f64,
}

impl Upcalls {
    /// What is lost in them in this tick; `missed` is what datagrams on the way miss that no other place has, packets, none
    /// where that is not known, or where not only they are on the way.
    pub fn observe(&mut self, step: &Step<'_>, crossed: &[Crossed<'_>], missed: Option<f64>) -> Vec<Loss> {
        let at_ns = step.next.at_ns;
        let lost_in = |crossed: &Crossed<'_>| step.lost_in(crossed.datapath);
        let lost: f64 = crossed.iter().filter_map(lost_in).sum();
        // What waited for ovs-vswitchd and comes late makes up for nothing that was lost.
        self.ticks.push_back(Tick { at_ns, lost, missed: missed.unwrap_or(lost).max(0.0) });
        while self.ticks.front().is_some_and(|tick| tick.at_ns.saturating_add(WINDOW_NS) <= at_ns) {
            self.ticks.pop_front();
        }
        let own = self.own();
        let unasked = |crossed: &Crossed<'_>| {
            let packets = lost_in(crossed).map(|lost| lost * own).filter(|&lost| lost > 0.0)?;
            let name = crossed.datapath.counters.full_name();
            Some(Loss::on_link(LossPlace::Upcall, crossed.link, name, packets))
        };
        crossed.iter().filter_map(unasked).collect()
    }

    /// The flows' share of what is lost.
    fn own(&self) -> f64 {
        let sum = |of: fn(&Tick) -> f64| self.ticks.iter().map(of).sum::<f64>();
        let (lost, missed) = (sum(|tick| tick.lost), sum(|tick| tick.missed));
        match missed / lost {
            share if share >= CLEARLY_OWN => 1.0,
            share if share >= LEAST_OWN => share,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests;
