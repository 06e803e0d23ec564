//! A network made by hand: links, addresses, routes, tables. Every link has a MAC address of its own.

use crate::paths::ends::WantedPath;
use crate::paths::lookups::{
    Bridged, Detail, DeviceProgram, HolderLookups, Mac, Marking, Neighbour, NetworkQueries, Packet, PacketOrigin,
    ProgramSocket, Redirect, RouteHop, RouteResult, TcHook, TunAnswer, TunQuestion, Wireguard,
};
use crate::paths::map::NetworkMap;
use crate::paths::walk::{WalkedPath, walk};
use crate::paths::ways;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use vnettop_sample::{
    EndName, FlowPath, Holder, Hop, HopWay, Ifindex, Kind, LinkFacts, LinkKey, OvsBridge, OvsPort, OvsSwitch, PeerRef,
    Proto, Word,
};

/// The network.
#[derive(Debug, Default)]
pub(super) struct Net {
    links: Vec<LinkFacts>,
    details: HashMap<LinkKey, Detail>,
    pub routes: HashMap<(u64, IpAddr), RouteResult>,
    /// By namespace and link that the packet is bound to; what is not here is as for every other packet.
    pub tables: HashMap<(u64, Ifindex, IpAddr), RouteResult>,
    /// Routes by namespace and the link that the packet came in through.
    pub ins: HashMap<(u64, Ifindex, IpAddr), RouteResult>,
    owners: HashMap<IpAddr, LinkKey>,
    /// Addresses whose MAC address the kernel does not know.
    pub unasked: HashSet<IpAddr>,
    /// Neighbours that do not answer.
    pub silent: HashSet<IpAddr>,
    pub fdb: HashMap<(LinkKey, Mac), Ifindex>,
    pub remotes: HashMap<(LinkKey, Mac), IpAddr>,
    nats: Vec<(u64, [SocketAddr; 2], [SocketAddr; 2])>,
    /// Who holds what in which namespace, and where it calls on.
    pub holders: Vec<(u64, SocketAddr, Holder, Option<EndName>)>,
    pub held: Vec<(u64, SocketAddr)>,
    pub switches: Vec<OvsSwitch>,
    pub wireguards: HashMap<LinkKey, Wireguard>,
    /// Namespaces and ports that a wireguard's socket is on.
    pub listening: HashSet<(u64, u16)>,
    pub markings: HashMap<u64, Marking>,
    /// By namespace, mark and destination; what is not here is as for packets without a mark.
    pub marked: HashMap<(u64, u32, IpAddr), RouteResult>,
    pub redirects: HashMap<LinkKey, Redirect>,
    /// Next hops of a multipath route, by namespace and destination.
    pub next_hops: HashMap<(u64, IpAddr), Vec<RouteHop>>,
    /// Who holds a tun, and its UDP sockets.
    pub programs: HashMap<LinkKey, (DeviceProgram, Vec<ProgramSocket>)>,
    tuns: HashMap<TunQuestion, TunAnswer>,
    /// Of the socket.
    pub mark: Option<u32>,
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("the test's own address")
}

fn end(text: &str) -> SocketAddr {
    text.parse().expect("the test's own address")
}

impl Net {
    /// A link; the first of a namespace brings `lo`.
    pub fn link(&mut self, netns: u64, name: &str, kind: &str) -> LinkKey {
        if name != "lo" && !self.links.iter().any(|link| link.netns == netns) {
            self.link(netns, "lo", "loopback");
        }
        let count = self.links.iter().filter(|link| link.netns == netns).count();
        let ifindex = Ifindex(u32::try_from(count).expect("few") + 1);
        let facts = LinkFacts::new(LinkKey { netns, ifindex }, name, Kind::from(kind.to_owned()));
        let key = facts.key();
        self.links.push(facts);
        self.details.insert(key, Detail { mac: Some(Self::mac(key)), outside: Some(netns), ..Detail::default() });
        key
    }

    pub fn mac(link: LinkKey) -> Mac {
        let byte = |number: u64| u8::try_from(number).expect("tests are small");
        [2, 0, 0, 0, byte(link.netns), byte(u64::from(link.ifindex.0))]
    }

    pub fn named(&self, netns: u64, name: &str) -> LinkKey {
        self.links.iter().find(|link| link.netns == netns && link.name == name).expect("the test made it").key()
    }

    pub fn facts(&mut self, link: LinkKey) -> &mut LinkFacts {
        self.links.iter_mut().find(|facts| facts.key() == link).expect("the test made it")
    }

    pub fn detail(&mut self, link: LinkKey) -> &mut Detail {
        self.details.get_mut(&link).expect("the test made it")
    }

    /// A veth pair.
    pub fn pair(&mut self, one: (u64, &str), other: (u64, &str)) -> [LinkKey; 2] {
        let ends = [one, other].map(|(netns, name)| self.link(netns, name, "veth"));
        for (end, peer) in [(ends[0], ends[1]), (ends[1], ends[0])] {
            self.facts(end).peer = Some(named(peer));
        }
        ends
    }

    /// A link that stands on another one.
    pub fn upon(&mut self, lower: LinkKey, netns: u64, name: &str, kind: &str) -> LinkKey {
        let link = self.link(netns, name, kind);
        self.facts(link).lower = Some(named(lower));
        link
    }

    /// Gives a link an address; its own namespace has it as local, and links of the same first three octets reach it.
    pub fn address(&mut self, link: LinkKey, text: &str) {
        let address = ip(text);
        let near = |other: &IpAddr| {
            other.to_string().rsplit_once('.').map(|(net, _)| net.to_owned())
                == text.rsplit_once('.').map(|(net, _)| net.to_owned())
        };
        let others: Vec<(IpAddr, LinkKey)> = self
            .owners
            .iter()
            .filter(|(other, owner)| near(other) && owner.netns != link.netns)
            .map(|(ip, key)| (*ip, *key))
            .collect();
        for (other, owner) in others {
            self.routes.entry((link.netns, other)).or_insert(out(link, None));
            self.routes.entry((owner.netns, address)).or_insert(out(owner, None));
        }
        self.owners.insert(address, link);
        self.routes.insert((link.netns, address), RouteResult::Here);
    }

    /// An address of the namespace's own that no other one reaches.
    pub fn route_here(&mut self, netns: u64, to: &str) {
        self.routes.insert((netns, ip(to)), RouteResult::Here);
    }

    pub fn route(&mut self, netns: u64, to: &str, link: LinkKey, gateway: Option<&str>) {
        self.routes.insert((netns, ip(to)), out(link, gateway.map(ip)));
    }

    /// A tracked connection: as it began, and as its answers look, source first.
    pub fn nat(&mut self, netns: u64, original: [&str; 2], reply: [&str; 2]) {
        self.nats.push((netns, original.map(end), reply.map(end)));
    }

    /// A bridge of Open vSwitch with these ports: link, type, and what else is to be set.
    pub fn switch(&mut self, netns: u64, name: &str, ports: &[(LinkKey, &str)]) -> &mut Vec<OvsPort> {
        let port = |&(link, kind): &(LinkKey, &str)| OvsPort {
            port: String::new(),
            ..OvsPort::new(
                &self.links.iter().find(|facts| facts.key() == link).expect("the test made it").name,
                kind,
                Some(link),
            )
        };
        let ports = ports.iter().map(port).collect();
        let bridge = OvsBridge { name: name.into(), datapath: "system".into(), fail_mode: None, ports };
        if !self.switches.iter().any(|switch| switch.netns == netns) {
            let socket = format!("/run/{netns}/db.sock");
            self.switches.push(OvsSwitch { socket, netns, version: None, pid: None, bridges: Vec::new() });
        }
        let switch = self.switches.iter_mut().find(|switch| switch.netns == netns).expect("just made");
        switch.bridges.push(bridge);
        &mut switch.bridges.last_mut().expect("just made").ports
    }

    pub fn way(&mut self, netns: u64, from: &str, to: &str) -> WalkedPath {
        let mut links: Vec<Arc<LinkFacts>> = self.links.iter().cloned().map(Arc::new).collect();
        links.sort_by_key(|link| link.key());
        let (switches, held) = (self.switches.clone(), self.held.clone());
        let packet = Packet { proto: Proto::Tcp, from: end(from), to: end(to), mark: self.mark };
        self.tuns.clear();
        walk(NetworkMap::new(&links, &switches), self, &held, netns, packet)
    }

    pub fn ways(&mut self, wanted: &[WantedPath]) -> Vec<FlowPath> {
        let mut links: Vec<Arc<LinkFacts>> = self.links.iter().cloned().map(Arc::new).collect();
        links.sort_by_key(|link| link.key());
        let (switches, held) = (self.switches.clone(), self.held.clone());
        ways(NetworkMap::new(&links, &switches), self, &held, wanted)
    }

    /// The way as words, with ` … ` and the gap behind it.
    pub fn walked_from(&mut self, netns: u64, from: &str, to: &str) -> String {
        let way = self.way(netns, from, to);
        let word = |hop: &Hop| {
            let way: HopWay = hop.way;
            let name = self.links.iter().find(|facts| facts.key() == hop.link).map_or("?", |facts| &facts.name);
            format!("{}:{name} {} {}", hop.link.netns, way.word(), hop.by.word())
        };
        let hops: Vec<String> = way.hops.iter().map(word).collect();
        let reported = hops.join(", ") + &way.note.map_or_else(String::new, |note| format!(" ({note})"));
        reported + &way.gap.map_or_else(String::new, |gap| format!(" … {gap}"))
    }

    /// The way as words, from an address that the kernel chooses.
    pub fn walked(&mut self, netns: u64, to: &str) -> String {
        self.walked_from(netns, "0.0.0.0:0", to)
    }
}

fn named(link: LinkKey) -> PeerRef {
    PeerRef { netnsid: None, netns: Some(link.netns), ifindex: link.ifindex }
}

fn out(link: LinkKey, gateway: Option<IpAddr>) -> RouteResult {
    RouteResult::Out { link: link.ifindex, gateway, source: None }
}

impl NetworkQueries for Net {
    fn route(&mut self, netns: u64, packet: &Packet, origin: PacketOrigin) -> Result<RouteResult, String> {
        let to = packet.to.ip();
        if let PacketOrigin::By(link) = origin
            && let Some(&route) = self.tables.get(&(netns, link, to))
        {
            return Ok(route);
        }
        let from = if let PacketOrigin::In(link) = origin { Some(link) } else { None };
        // The kernel refuses a source that is another's, but for what came in.
        let foreign = |ip: IpAddr| self.owners.get(&ip).is_some_and(|owner| owner.netns != netns);
        if from.is_none() && foreign(packet.from.ip()) {
            return Err("its source is not one that comes in here".to_owned());
        }
        if let Some(&route) = packet.mark.and_then(|mark| self.marked.get(&(netns, mark, to))) {
            return Ok(route);
        }
        if let Some(&route) = from.and_then(|from| self.ins.get(&(netns, from, to))) {
            return Ok(route);
        }
        let own = |link: Ifindex| {
            let mut owners = self.owners.iter();
            owners.find(|(_, owner)| **owner == LinkKey { netns, ifindex: link }).map(|(ip, _)| *ip)
        };
        match self.routes.get(&(netns, to)) {
            Some(&RouteResult::Out { link, gateway, .. }) => Ok(RouteResult::Out { link, gateway, source: own(link) }),
            Some(RouteResult::Here) => Ok(RouteResult::Here),
            None => Err(format!("there is no route to {to}")),
        }
    }

    fn neighbour(&mut self, _: LinkKey, ip: IpAddr) -> Neighbour {
        let mac = self.owners.get(&ip).filter(|_| !self.unasked.contains(&ip)).map(|&owner| Self::mac(owner));
        Neighbour { mac, is_silent: self.silent.contains(&ip) }
    }

    fn detail(&mut self, link: LinkKey) -> Detail {
        self.details.get(&link).copied().unwrap_or_default()
    }

    fn bridged(&mut self, bridge: LinkKey, mac: Mac) -> Option<Bridged> {
        self.fdb.get(&(bridge, mac)).map(|&port| Bridged::Port(port))
    }

    fn remote(&mut self, tunnel: LinkKey, mac: Mac) -> Option<IpAddr> {
        self.remotes.get(&(tunnel, mac)).copied()
    }

    fn translated(&mut self, netns: u64, packet: &Packet) -> Option<Packet> {
        let asked = [packet.from, packet.to];
        self.nats.iter().filter(|nat| nat.0 == netns).find_map(|(_, original, reply)| {
            let other = if asked == *original {
                reply
            } else if asked == *reply {
                original
            } else {
                return None;
            };
            Some(Packet { from: other[1], to: other[0], ..*packet })
        })
    }

    fn wireguard(&mut self, link: LinkKey) -> Result<Arc<Wireguard>, String> {
        let known = self.wireguards.get(&link).cloned().map(Arc::new);
        known.ok_or_else(|| format!("the peers of link {} may not be asked for", link.ifindex.0))
    }

    fn listens(&mut self, netns: u64, port: u16) -> Result<bool, String> {
        Ok(self.listening.contains(&(netns, port)))
    }

    fn marking(&mut self, netns: u64, _: bool) -> Marking {
        self.markings.get(&netns).cloned().unwrap_or(Marking::Unused)
    }

    fn redirected(&mut self, link: LinkKey, hook: TcHook, _: bool) -> Option<Redirect> {
        self.redirects.get(&link).copied().filter(|_| hook == TcHook::Ingress)
    }

    fn next_hops(&mut self, netns: u64, packet: &Packet, _: PacketOrigin) -> Vec<RouteHop> {
        self.next_hops.get(&(netns, packet.to.ip())).cloned().unwrap_or_default()
    }
}

impl HolderLookups for Net {
    fn holder(&mut self, netns: u64, packet: &Packet) -> Option<Holder> {
        let mut holders = self.holders.iter();
        holders.find(|known| (known.0, known.1) == (netns, packet.to)).map(|known| known.2.clone())
    }

    fn onward(&mut self, holder: &Holder, _: u64, _: &Packet, _: &[(u64, SocketAddr)]) -> Option<EndName> {
        self.holders.iter().find(|known| known.2 == *holder)?.3
    }

    fn program(&mut self, link: LinkKey) -> Option<DeviceProgram> {
        self.programs.get(&link).map(|known| known.0.clone())
    }

    fn held_beside(&mut self, link: LinkKey, program: &DeviceProgram) -> Vec<LinkKey> {
        let mut held: Vec<LinkKey> =
            self.programs.iter().filter(|(_, known)| known.0.pid == program.pid).map(|(&key, _)| key).collect();
        held.retain(|&key| key != link);
        held
    }

    fn sockets(&mut self, link: LinkKey, _: &DeviceProgram) -> Vec<ProgramSocket> {
        self.programs.get(&link).map(|known| known.1.clone()).unwrap_or_default()
    }

    fn tuns_behind(&mut self, netns: u64, packet: &Packet) -> Vec<LinkKey> {
        let is_its = |socket: &ProgramSocket| {
            let at = socket.local.ip();
            let here = at == packet.to.ip() || at.is_unspecified() && socket.speaks(packet.to.ip());
            here && (socket.netns, socket.local.port()) == (netns, packet.to.port())
        };
        let mut behind: Vec<LinkKey> = self.programs.keys().copied().collect();
        behind.retain(|link| self.programs[link].1.iter().any(is_its));
        behind
    }

    fn addresses(&mut self, netns: u64) -> Vec<(LinkKey, IpAddr)> {
        let here = self.owners.iter().filter(|(_, link)| link.netns == netns);
        here.map(|(&ip, &link)| (link, ip)).collect()
    }

    fn tun_answers(&mut self) -> &mut HashMap<TunQuestion, TunAnswer> {
        &mut self.tuns
    }
}
