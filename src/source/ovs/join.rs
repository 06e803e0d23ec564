//! Rows of the database + the kernel's links → bridges whose ports are links, and facts of the links that only Open
//! vSwitch knows. It guesses nothing: a port that is no link (yet) has none.

use super::datum::Uuid;
use super::tables::{Bridge, Interface, Tables};
use crate::sample::{
    Ifindex, Kind, LinkFacts, LinkKey, LinkState, OvsBridge, OvsDatapathKind, OvsPort, OvsPortKind, OvsSwitch, PeerRef,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is joined.
#[derive(Debug, Clone, Copy)]
pub(super) struct JoinedPorts<'a> {
    pub socket: &'a str,
    pub netns: u64,
    pub tables: &'a Tables,
    /// The links of its namespace are wanted.
    pub wanted: bool,
    /// The kernel's links of all namespaces, sorted by key.
    pub kernel: &'a [Arc<LinkFacts>],
}

/// The switch, and the links that only Open vSwitch knows, with the row that counts for each; `number` gives each interface
/// without a kernel link its index.
pub(super) fn join(
    told: JoinedPorts<'_>,
    mut number: impl FnMut(Uuid) -> Ifindex,
) -> (OvsSwitch, Vec<(Uuid, Arc<LinkFacts>)>) {
    let (rows, seen) = (BTreeMap::new(), Default::default());
    let mut found = FoundPort { told, number: &mut number, rows, seen };
    let mut bridges: Vec<OvsBridge> = told.tables.bridges.values().map(|bridge| found.bridge(bridge)).collect();
    bridges.sort_by(|a, b| a.name.cmp(&b.name));
    let rows = found.rows;
    let named: BTreeMap<&str, Ifindex> =
        rows.iter().filter_map(|(id, row)| Some((&*told.tables.interfaces.get(id)?.name, row.0.ifindex))).collect();
    let links = rows.iter().filter_map(|(id, (key, lower))| {
        let interface = told.tables.interfaces.get(id)?;
        let peer = interface.peer.as_deref().and_then(|peer| named.get(peer).copied());
        Some((*id, Arc::new(facts(interface, *key, *lower, peer))))
    });
    let links = links.collect();
    let version = told.tables.version.clone();
    (OvsSwitch { socket: told.socket.to_owned(), netns: told.netns, version, bridges }, links)
}

struct FoundPort<'a, 'b> {
    told: JoinedPorts<'a>,
    number: &'b mut dyn FnMut(Uuid) -> Ifindex,
    /// The interfaces that become links of their own, perhaps made of one of the kernel's.
    rows: BTreeMap<Uuid, (LinkKey, Option<Ifindex>)>,
    /// Ports and interfaces whose turn it was: each row belongs to one, whatever the database says.
    seen: [BTreeSet<Uuid>; 2],
}

impl FoundPort<'_, '_> {
    fn bridge(&mut self, bridge: &Bridge) -> OvsBridge {
        let mut ports = Vec::new();
        for id in &bridge.ports {
            let Some(port) = self.told.tables.ports.get(id).filter(|_| self.seen[0].insert(*id)) else {
                continue;
            };
            for id in &port.interfaces {
                let Some(interface) = self.told.tables.interfaces.get(id) else { continue };
                if self.seen[1].insert(*id) {
                    ports.push(self.port(*id, interface, &port.name, port.tag));
                }
            }
        }
        ports.sort_by(|a, b| a.name.cmp(&b.name));
        OvsBridge {
            name: bridge.name.clone(),
            datapath: bridge.datapath.as_deref().map_or_else(Default::default, OvsDatapathKind::from),
            fail_mode: bridge.fail_mode.clone(),
            ports,
        }
    }

    fn port(&mut self, id: Uuid, interface: &Interface, port: &str, vlan: Option<u16>) -> OvsPort {
        let link = self.told.wanted.then(|| self.link(id, interface)).flatten();
        OvsPort {
            port: port.to_owned(),
            ofport: interface.ofport,
            vlan,
            peer: interface.peer.clone(),
            remote_ip: interface.remote_ip.clone(),
            local_ip: interface.local_ip.clone(),
            key: interface.key.clone(),
            error: interface.error.clone(),
            counts_drops: self.told.tables.statistics.get(&id).is_some_and(super::tables::Statistics::tells_drops),
            ..OvsPort::new(&interface.name, kind(interface), link)
        }
    }

    /// The link that an interface is; none where it is none, or none that is seen.
    fn link(&mut self, id: Uuid, interface: &Interface) -> Option<LinkKey> {
        let netns = self.told.netns;
        let key = |ifindex| LinkKey { netns, ifindex };
        let by_index = interface.ifindex.and_then(|index| self.told.at(key(Ifindex(index))));
        let is_device = kind(interface).is_device();
        let exists = interface.ofport.is_some_and(|port| port >= 0);
        match by_index {
            Some(link) if link.name == interface.name => return Some(link.key()),
            // Another link has the index: ovs-vswitchd counts in a namespace that is not the one it was taken for.
            Some(_) if is_device => return self.told.named(&interface.name).map(LinkFacts::key),
            // A device whose index is told is the kernel's, though its namespace may not be seen.
            None if is_device && interface.ifindex.is_some() => return None,
            _ => {}
        }
        let named = is_device.then(|| self.told.named(&interface.name)).flatten();
        if named.is_some() || !exists {
            return named.map(LinkFacts::key);
        }
        // Several tunnels of a kernel datapath share one device of it, `vxlan_sys_4789`.
        let lower = by_index.filter(|_| interface.remote_ip.is_some()).map(|link| link.ifindex);
        let own = key((self.number)(id));
        self.rows.insert(id, (own, lower));
        Some(own)
    }
}

impl<'a> JoinedPorts<'a> {
    fn at(self, key: LinkKey) -> Option<&'a LinkFacts> {
        let at = self.kernel.binary_search_by_key(&key, |link| link.key()).ok()?;
        Some(&self.kernel[at])
    }

    fn named(self, name: &str) -> Option<&'a LinkFacts> {
        let from = self.kernel.partition_point(|link| link.netns < self.netns);
        let here = self.kernel[from..].iter().take_while(|link| link.netns == self.netns);
        here.map(|link| &**link).find(|link| link.name == name)
    }
}

fn kind(interface: &Interface) -> OvsPortKind {
    interface.kind.as_deref().map_or_else(Default::default, OvsPortKind::from)
}

fn facts(interface: &Interface, key: LinkKey, lower: Option<Ifindex>, peer: Option<Ifindex>) -> LinkFacts {
    let beside = |ifindex| PeerRef { netnsid: None, netns: Some(key.netns), ifindex };
    let kind = match kind(interface) {
        kind if kind.is_device() => Kind::OpenVSwitch,
        kind => Kind::from(kind.as_ref()),
    };
    LinkFacts {
        state: match interface.is_up {
            Some(true) => LinkState::Up,
            Some(false) => LinkState::Down,
            None => LinkState::Unknown,
        },
        mtu: interface.mtu.unwrap_or(0),
        peer: peer.map(beside),
        lower: lower.map(beside),
        // Indices are not used twice, so each is the first of its number.
        ..LinkFacts::new(key, &interface.name, kind)
    }
}
