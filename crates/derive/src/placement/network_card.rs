//! The network card that carries the benchmark, with its node and the cores it interrupts.

use crate::TestMetrics;
use crate::traffic::carrier;
use vnettop_sample::CoreSet;

/// A core is one that it interrupts from this share of its time on.
pub(super) const INTERRUPTED: f64 = 0.1;

/// A link with hardware behind it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NetworkCard {
    pub(super) name: String,
    pub(super) node: u32,
    /// Cores of its node that interrupts keep busy.
    pub(super) interrupted: CoreSet,
}

/// The network card that carries the benchmark; none where there is none, or where its node is not known.
pub(super) fn nic(metrics: &TestMetrics) -> Option<NetworkCard> {
    let carrier = carrier(&metrics.machine.links)?;
    let node = carrier.facts.node?;
    let here = metrics.machine.facts.topology.cores.iter().filter(|place| place.online && place.node == Some(node));
    let busy = |core| metrics.recent.core(core).is_some_and(|load| load.others_interrupts >= INTERRUPTED);
    let interrupted = here.map(|place| place.core).filter(|&core| busy(core)).collect();
    Some(NetworkCard { name: carrier.facts.name.clone(), node, interrupted })
}
