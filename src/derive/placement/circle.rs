//! The circles that cores form around a core: cluster, last-level cache, node, socket, machine.

use crate::sample::CorePlace;

/// The circles around a core, from the inside out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Circle {
    Cluster,
    Llc,
    Node,
    Socket,
    Machine,
}

impl Circle {
    /// What the cores of one such circle have in common; none where the machine does not tell.
    pub(super) fn of(self, place: &CorePlace) -> Option<(u32, Option<u32>)> {
        match self {
            Self::Cluster => Some((place.cluster?, place.node)),
            Self::Llc => Some((place.llc?, place.node)),
            Self::Node => Some((place.node?, None)),
            Self::Socket => Some((place.socket?, None)),
            Self::Machine => Some((0, None)),
        }
    }

    /// The last-level cache, else the node.
    pub(super) fn cache(place: &CorePlace) -> Option<(u32, Option<u32>)> {
        Self::Llc.of(place).or_else(|| Self::Node.of(place))
    }
}
