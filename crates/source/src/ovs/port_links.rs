//! Rows of the database + the kernel's links → bridges whose ports are links, and facts of the links that only Open
//! vSwitch knows. It guesses nothing: a port that is no link (yet) has none.

use super::column_values::Uuid;
use super::tables::{Bridge, Interface, Port, Statistics, Tables};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vnettop_sample::{Ifindex, Kind, LinkFacts, LinkKey, OvsBridge, OvsPort, OvsSwitch, PeerRef};

/// What is joined.
#[derive(Debug, Clone, Copy)]
pub(super) struct JoinedPorts<'a> {
    pub socket: &'a str,
    pub netns: u64,
    /// The process of ovs-vswitchd.
    pub pid: Option<u32>,
    pub tables: &'a Tables,
    /// The links of its namespace are wanted.
    pub wanted: bool,
    /// The kernel's links of all namespaces, sorted by key.
    pub kernel: &'a [Arc<LinkFacts>],
}

/// The switch, and the links that only Open vSwitch knows, with the row that counts for each; `number` gives each interface
/// without a kernel link its index.
pub(super) fn join(
    reported: JoinedPorts<'_>,
    mut number: impl FnMut(Uuid) -> Ifindex,
) -> (OvsSwitch, Vec<(Uuid, Arc<LinkFacts>)>) {
    let (rows, seen) = (BTreeMap::new(), Default::default());
    let mut found = FoundPort { reported, number: &mut number, rows, seen };
    let mut bridges: Vec<OvsBridge> = reported.tables.bridges.values().map(|bridge| found.bridge(bridge)).collect();
    bridges.sort_by(|a, b| a.name.cmp(&b.name));
    let rows = found.rows;
    let named: BTreeMap<&str, Ifindex> = rows
        .iter()
        .filter_map(|(id, row)| Some((&*reported.tables.interfaces.get(id)?.row.name, row.0.ifindex)))
        .collect();
    let links = rows.iter().filter_map(|(id, (key, lower))| {
        let interface = reported.tables.interfaces.get(id)?;
        let peer = interface.row.peer.as_deref().and_then(|peer| named.get(peer).copied());
        Some((*id, Arc::new(facts(interface, *key, *lower, peer))))
    });
    let links = links.collect();
    let version = reported.tables.version.clone();
    let JoinedPorts { socket, netns, pid, .. } = reported;
    (OvsSwitch { socket: socket.to_owned(), netns, version, pid, bridges }, links)
}

struct FoundPort<'a, 'b> {
    reported: JoinedPorts<'a>,
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
            let Some(port) = self.reported.tables.ports.get(id).filter(|_| self.seen[0].insert(*id)) else {
                continue;
            };
            for id in &port.interfaces {
                let Some(interface) = self.reported.tables.interfaces.get(id) else { continue };
                if self.seen[1].insert(*id) {
                    ports.push(self.port(*id, interface, port));
                }
            }
        }
        ports.sort_by(|a, b| a.name.cmp(&b.name));
        OvsBridge { ports, ..bridge.row.clone() }
    }

    fn port(&mut self, id: Uuid, interface: &Interface, port: &Port) -> OvsPort {
        OvsPort {
            port: port.name.clone(),
            vlan: port.tag,
            link: self.reported.wanted.then(|| self.link(id, interface)).flatten(),
            counts_drops: self.reported.tables.statistics.get(&id).is_some_and(Statistics::tells_drops),
            ..interface.row.clone()
        }
    }

    /// The link that an interface is; none where it is none, or none that is seen.
    fn link(&mut self, id: Uuid, interface: &Interface) -> Option<LinkKey> {
        let netns = self.reported.netns;
        let key = |ifindex| LinkKey { netns, ifindex };
        let by_index = interface.ifindex.and_then(|index| self.reported.at(key(Ifindex(index))));
        let row = &interface.row;
        let is_device = row.kind.is_device();
        let exists = row.ofport.is_some_and(|port| port >= 0);
        match by_index {
            Some(link) if link.name == row.name => return Some(link.key()),
            // Another link has the index: ovs-vswitchd counts in a namespace that is not the one it was taken for.
            Some(_) if is_device => return self.reported.named(&row.name).map(LinkFacts::key),
            // A device whose index is told is the kernel's, though its namespace may not be seen.
            None if is_device && interface.ifindex.is_some() => return None,
            _ => {}
        }
        let named = is_device.then(|| self.reported.named(&row.name)).flatten();
        if named.is_some() || !exists {
            return named.map(LinkFacts::key);
        }
        // Several tunnels of a kernel datapath share one device of it, `vxlan_sys_4789`.
        let lower = by_index.filter(|_| row.remote_ip.is_some()).map(|link| link.ifindex);
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

fn facts(interface: &Interface, key: LinkKey, lower: Option<Ifindex>, peer: Option<Ifindex>) -> LinkFacts {
    let beside = |ifindex| PeerRef { netnsid: None, netns: Some(key.netns), ifindex };
    let OvsPort { name, kind, .. } = &interface.row;
    let kind = if kind.is_device() { Kind::OpenVSwitch } else { Kind::from(kind.as_ref()) };
    LinkFacts {
        state: interface.state,
        mtu: interface.mtu,
        peer: peer.map(beside),
        lower: lower.map(beside),
        // Indices are not used twice, so each is the first of its number.
        ..LinkFacts::new(key, name, kind)
    }
}
