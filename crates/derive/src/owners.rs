//! Who each link belongs to, with what only Open vSwitch knows: a port that belongs to nobody else is its bridge's. And what
//! people call a namespace: a container or a guest, the part of a Docker network that it is, else its file or a process in it.

use super::machine::MachineMetrics;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use vnettop_sample::{Ifindex, LinkKey, OvsSwitch, Owned, Owner, OwnerBy, OwnerKind, Space, SpaceEntry, row_of};

/// The owners of links; worked out again only when the sources have said something new.
#[derive(Debug, Clone, Default)]
pub struct Owners {
    sources: (Arc<Vec<Owned>>, Arc<Vec<OvsSwitch>>),
    joined: Arc<Vec<Owned>>,
}

impl Owners {
    /// Sorted by link; the same `Arc` until one changes.
    pub(super) fn join(&mut self, owners: &Arc<Vec<Owned>>, ovs: &Arc<Vec<OvsSwitch>>) -> Arc<Vec<Owned>> {
        if !(Arc::ptr_eq(&self.sources.0, owners) && Arc::ptr_eq(&self.sources.1, ovs)) {
            self.sources = (Arc::clone(owners), Arc::clone(ovs));
            self.joined = joined(owners, ovs);
        }
        Arc::clone(&self.joined)
    }
}

fn joined(owners: &Arc<Vec<Owned>>, ovs: &[OvsSwitch]) -> Arc<Vec<Owned>> {
    let mut bridges: BTreeMap<LinkKey, &str> = BTreeMap::new();
    for bridge in ovs.iter().flat_map(|switch| &switch.bridges) {
        bridges.extend(bridge.ports.iter().filter_map(|port| Some((port.link?, &*bridge.name))));
    }
    if bridges.is_empty() {
        return Arc::clone(owners);
    }
    let mut all: BTreeMap<LinkKey, Owned> = owners.iter().map(|owned| (owned.link, owned.clone())).collect();
    for (link, bridge) in bridges {
        // A userspace datapath holds its taps open itself.
        let is_free =
            |owner: &Owner| owner.guess || owner.kind == OwnerKind::Process && owner.name.starts_with("ovs-vswitchd ");
        if all.get(&link).is_none_or(|owned| is_free(&owned.owner)) {
            let (kind, name) = (OwnerKind::Ovs, bridge.to_owned());
            let owner = Owner { kind, name, id: None, by: OwnerBy::Ovs, guess: false, pod_namespace: None };
            all.insert(link, Owned { link, owner });
        }
    }
    Arc::new(all.into_values().collect())
}

impl MachineMetrics {
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

    /// How a shell gets at a namespace's links and their files of sysfs.
    #[must_use]
    pub fn space_entry(&self, netns: u64) -> SpaceEntry {
        if netns == self.netns {
            return SpaceEntry::Own;
        }
        let Some(space) = self.space(netns) else { return SpaceEntry::Unknown };
        let is_named = self.owner(LinkKey { netns, ifindex: Ifindex(1) }).is_none();
        match (&space.name, space.pid) {
            (Some(name), _) if is_named && !name.contains('/') => SpaceEntry::Named(name.clone()),
            (_, Some(pid)) => SpaceEntry::Process(pid),
            _ => SpaceEntry::Unknown,
        }
    }

    /// What to call a namespace in a few letters: its name, a process in it, its inode.
    #[must_use]
    pub fn space_label(&self, netns: u64) -> String {
        let unnamed = || self.space(netns).map_or_else(|| netns.to_string(), Space::label);
        self.space_name(netns).map_or_else(unnamed, Cow::into_owned)
    }

    /// The same for a table, in which vnettop's own is [`OWN_SPACE`].
    #[must_use]
    pub fn space_in_table(&self, netns: u64) -> String {
        if netns == self.netns { OWN_SPACE.to_owned() } else { self.space_label(netns) }
    }
}

/// What a table calls vnettop's own namespace.
pub const OWN_SPACE: &str = "own";

/// Docker keeps up to two namespaces for an overlay network: its bridge and vxlan are in one, its load balancer in the
/// other, whose file is `lb_<id>`, or `ingress_sbox`. The network's name comes first: that is what is left of it in a narrow
/// column.
fn part(network: &str, file: Option<&str>) -> String {
    let balances = file.is_some_and(|file| file.starts_with("lb_") || file == "ingress_sbox");
    format!("{network} {}", if balances { "lb" } else { "overlay" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vnettop_sample::{Ifindex, OvsBridge, OvsPort};

    fn key(ifindex: u32) -> LinkKey {
        LinkKey { netns: 1, ifindex: Ifindex(ifindex) }
    }

    fn owned(ifindex: u32, kind: OwnerKind, name: &str) -> Owned {
        let owner =
            Owner { kind, name: name.to_owned(), id: None, by: OwnerBy::Tun, guess: false, pod_namespace: None };
        Owned { link: key(ifindex), owner }
    }

    fn port(ifindex: u32) -> OvsPort {
        OvsPort::new(&format!("p{ifindex}"), "system", Some(key(ifindex)))
    }

    #[test]
    fn a_port_is_its_bridge_s_where_nobody_else_has_it() {
        let owners = Arc::new(vec![
            owned(2, OwnerKind::Container, "web"),
            owned(3, OwnerKind::Process, "ovs-vswitchd 7"),
            owned(9, OwnerKind::Vm, "guest"),
        ]);
        let ports = vec![port(2), port(3), port(4)];
        let bridge = OvsBridge { name: "br0".to_owned(), datapath: "netdev".into(), fail_mode: None, ports };
        let switch = OvsSwitch { socket: "s".to_owned(), netns: 1, version: None, pid: None, bridges: vec![bridge] };
        let mut joined = Owners::default();
        let (none, ovs) = (Arc::default(), Arc::new(vec![switch]));
        assert!(Arc::ptr_eq(&joined.join(&owners, &none), &owners), "without Open vSwitch nothing is copied");
        let all = joined.join(&owners, &ovs);
        let names: Vec<_> = all.iter().map(|owned| (owned.link.ifindex.0, &*owned.owner.name)).collect();
        let expected = [(2, "web"), (3, "br0"), (4, "br0"), (9, "guest")];
        assert_eq!(names, expected, "a container keeps its link, the switch's own process does not");
        assert!(Arc::ptr_eq(&joined.join(&owners, &ovs), &all), "the same list while nothing changes");
    }
}
