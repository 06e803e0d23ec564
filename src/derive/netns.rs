//! What people call a namespace: a container or a guest, the part of a Docker network that it is, else its file or a
//! process in it.

use super::Metrics;
use crate::sample::{Ifindex, LinkKey, OwnerKind, Space, row_of};
use std::borrow::Cow;

impl Metrics {
    /// A namespace by its inode.
    #[must_use]
    pub fn space(&self, netns: u64) -> Option<&Space> {
        row_of(&self.facts.spaces, &netns, |space| space.netns)
    }

    /// The name that people know a namespace by: that of the container, guest or network it is, whose its `lo` is, else its
    /// own.
    #[must_use]
    pub fn space_name(&self, netns: u64) -> Option<Cow<'_, str>> {
        let lo = LinkKey { netns, ifindex: Ifindex(1) };
        let file = || self.space(netns)?.name.as_deref();
        match self.owner(lo).filter(|owner| !owner.guess && netns != self.netns) {
            Some(owner) if owner.kind == OwnerKind::Network => Some(part(&owner.name, file()).into()),
            Some(owner) => Some((&*owner.name).into()),
            None => file().map(Cow::from),
        }
    }

    /// What to call a namespace in a few letters: its name, a process in it, its inode.
    #[must_use]
    pub fn space_label(&self, netns: u64) -> String {
        let unnamed = || self.space(netns).map_or_else(|| netns.to_string(), Space::label);
        self.space_name(netns).map_or_else(unnamed, Cow::into_owned)
    }
}

/// Docker keeps up to two namespaces for an overlay network: its bridge and vxlan are in one, its load balancer in the
/// other, whose file is `lb_<id>`, or `ingress_sbox`. The network's name comes first: that is what is left of it in a narrow
/// column.
fn part(network: &str, file: Option<&str>) -> String {
    let balances = file.is_some_and(|file| file.starts_with("lb_") || file == "ingress_sbox");
    format!("{network} {}", if balances { "lb" } else { "overlay" })
}
