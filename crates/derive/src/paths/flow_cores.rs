//! On which cores a flow's own packets were handled at a hop, and how often these changed core, as counted last.

use crate::TestMetrics;
use vnettop_sample::{CoreId, CoreSet, FlowPath, Hop};

/// From this share of a flow's packets on a core handles them.
const LEAST_SHARE: f64 = 0.02;

/// A flow's packets at a hop by core (`netif_receive_skb`, `net_dev_start_xmit`).
#[derive(Debug, Clone, PartialEq)]
pub struct FlowAtHop {
    /// Each core that handled some, and its share of them, the largest first.
    pub shares: Vec<(CoreId, f64)>,
    /// How many packets were handled there, a second.
    pub packets_per_s: f64,
    /// How often a packet was handled on another core than the one before it, a second.
    pub switches_per_s: f64,
    /// Over how long they were counted, s.
    pub over_s: f64,
    /// When that time ended, `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
}

impl FlowAtHop {
    /// The cores that handle the flow: a stray packet makes none.
    #[must_use]
    pub fn cores(&self) -> CoreSet {
        self.shares.iter().filter(|(_, share)| *share >= LEAST_SHARE).map(|(core, _)| *core).collect()
    }
}

/// The flow of a path at one of its hops; none where that was not counted, or none of its packets came by.
pub(crate) fn at(metrics: &TestMetrics, path: &FlowPath, hop: &Hop) -> Option<FlowAtHop> {
    let kernel = metrics.machine.kernel.as_ref()?;
    let counted = kernel.hops.iter().find(|one| one.link == hop.link && one.way == hop.way)?;
    let is_its = |name: (_, _, _)| name == (path.proto, path.from, path.to);
    let own = counted.flows.iter().find(|one| is_its((one.flow.proto, one.flow.from, one.flow.to)))?;
    let seconds = counted.for_ns.filter(|&for_ns| for_ns > 0)? as f64 / 1e9;
    let all = own.cores.iter().fold(0_u64, |all, (_, packets)| all.saturating_add(*packets));
    (all > 0).then(|| FlowAtHop {
        shares: own.cores.iter().map(|&(core, packets)| (core, packets as f64 / all as f64)).collect(),
        packets_per_s: all as f64 / seconds,
        switches_per_s: own.switches as f64 / seconds,
        over_s: seconds,
        at_ns: counted.at_ns.unwrap_or(metrics.machine.at_ns),
    })
}
