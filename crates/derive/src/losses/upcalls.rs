//! Packets that the datapaths of Open vSwitch on the path could not ask ovs-vswitchd about (`lost`). No counter of a link has
//! them, and the kernel calls them dropped only when nothing listens for upcalls. A datapath serves all bridges of its switch,
//! so neither their flows nor the flows' lost share is known.

use super::counted::SampleStep;
use super::{Loss, LossPlace};
use crate::ovs::DatapathMetrics;
use vnettop_sample::{FlowPath, HopWay, LinkKey, OvsSwitch};

/// The function that drops a packet when ovs-vswitchd is gone and cannot be asked: the datapath counts it as lost, too.
pub(super) const UNHEARD: &str = "ovs_dp_process_packet";

/// The datapaths that these paths cross, each with the link that stands for it: its bridge's own if that is a hop, else the
/// first port.
pub(super) fn crossed<'a>(
    datapaths: &'a [DatapathMetrics],
    switches: &[OvsSwitch],
    paths: &[FlowPath],
) -> Vec<(LinkKey, &'a DatapathMetrics)> {
    let of = |datapath: &'a DatapathMetrics| {
        let bridges = switches
            .iter()
            .flat_map(|switch| switch.bridges.iter().filter(|bridge| datapath.counters.is_of(switch, bridge)))
            .collect::<Vec<_>>();
        let is_port =
            |link: LinkKey| bridges.iter().any(|bridge| bridge.ports.iter().any(|port| port.link == Some(link)));
        let hops = || paths.iter().flat_map(|path| &path.hops).filter(|hop| is_port(hop.link));
        let hop = hops().find(|hop| hop.way == HopWay::Passed).or_else(|| hops().next())?;
        Some((hop.link, datapath))
    };
    datapaths.iter().filter_map(of).collect()
}

/// What is lost in them between two samples.
pub(super) fn lost(step: &SampleStep<'_>, crossed: &[(LinkKey, &DatapathMetrics)]) -> Vec<Loss> {
    let lost = |&(link, datapath): &(LinkKey, &DatapathMetrics)| {
        Some(Loss::on_link(LossPlace::Upcall, link, datapath.counters.full_name(), step.lost_in(datapath)?))
    };
    crossed.iter().filter_map(lost).collect()
}

#[cfg(test)]
mod tests;
