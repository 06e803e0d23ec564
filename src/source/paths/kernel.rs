//! The kernel as [`Lookups`]: one rtnetlink socket in each namespace that a path crosses, opened once and kept while
//! there are flows. Every question is one request for one entry; no table is dumped where the kernel can be asked (some from Linux 5.0).

mod asked;
mod conntrack;
mod holder;
mod holders;
mod link;
mod marks;
mod neighbour;
mod program;
mod redirect;
mod route;
mod wireguard;

use super::lookups::{Bridged, Detail, DeviceProgram, Lookups, Mac, Marking, Packet, Redirect, RouteResult, Wireguard};
use super::map::NetworkMap;
use crate::sample::{EndName, Holder, Ifindex, LinkKey, Proto};
use crate::source::links::nsid;
use crate::source::netlink::dialogue::{self, Dialogue};
use crate::source::netlink::generic::GenericFamily;
use crate::source::netlink::message::{Message, Request};
use crate::source::netlink::socket::KernelSocket;
use crate::source::owners::OwnerReader;
use crate::source::spaces::Spaces;
use holders::KnownHolders;
use neighbour::FdbEntry;
use route::PacketOrigin;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// `NETLINK_ROUTE`, `NETLINK_SOCK_DIAG` and `NETLINK_NETFILTER`.
const ROUTE: isize = 0;
const SOCK_DIAG: isize = 4;
const NETFILTER: isize = 12;
/// One of these is there for whoever reads it where the kernel can track connections.
const TRACKED: [&str; 2] = ["/proc/thread-self/net/nf_conntrack", "/proc/sys/net/netfilter/nf_conntrack_count"];

/// The sockets, and what was asked with them.
#[derive(Debug, Default)]
pub(super) struct QuerySockets {
    inside: BTreeMap<u64, Result<Inside, String>>,
    round: Round,
    holders: KnownHolders,
    buffer: Vec<u8>,
}

/// What was answered in one round: hundreds of streams share their neighbours and bridges.
#[derive(Debug, Default)]
struct Round {
    details: HashMap<LinkKey, Detail>,
    neighbours: HashMap<(LinkKey, IpAddr), Option<Mac>>,
    bridged: HashMap<(LinkKey, Mac), Option<Bridged>>,
    remotes: HashMap<(LinkKey, Mac), Option<IpAddr>>,
    wireguards: HashMap<LinkKey, Result<Arc<Wireguard>, String>>,
    listening: HashMap<(u64, u16), Result<bool, String>>,
    markings: HashMap<(u64, bool), Marking>,
    redirects: HashMap<(LinkKey, bool), Option<Redirect>>,
    /// Of each kind in a namespace, by inode.
    connected: HashMap<(u64, Proto), HashMap<u32, EndName>>,
    /// The sockets that a process holds.
    held_by: HashMap<u32, Vec<u32>>,
}

/// The sockets of one namespace.
#[derive(Debug)]
struct Inside {
    route: Dialogue<KernelSocket>,
    /// None where connections are not tracked, or that may not be asked.
    conntrack: Option<Dialogue<KernelSocket>>,
    /// Opened when a wireguard is asked for: its family of generic netlink, and `sock_diag`.
    wireguard: Option<(Dialogue<KernelSocket>, GenericFamily)>,
    sockets: Option<Dialogue<KernelSocket>>,
}

/// The kernel, asked for one round of walks.
pub(super) struct KernelQueries<'a> {
    pub sockets: &'a mut QuerySockets,
    pub spaces: &'a Spaces,
    pub owners: &'a OwnerReader,
    pub map: NetworkMap<'a>,
}

impl QuerySockets {
    /// Begins a new round: what was answered before may have changed without a word.
    pub fn begin(&mut self) {
        self.round = Round::default();
    }

    /// There are other sockets than before.
    pub fn forget_holders(&mut self) {
        self.holders.forget();
    }

    /// Goes on looking for holders; true when some were looked for to the end.
    pub fn look_for_holders(&mut self) -> bool {
        self.holders.go_on()
    }

    /// Closes what is in namespaces that no way crosses any more, and tries those again that could not be entered.
    pub fn keep(&mut self, crossed: impl Fn(u64) -> bool) {
        self.inside.retain(|&netns, inside| inside.is_ok() && crossed(netns));
    }

    /// Namespaces that could not be entered, and why.
    pub fn refused(&self) -> impl Iterator<Item = (u64, &str)> {
        self.inside.iter().filter_map(|(&netns, inside)| Some((netns, inside.as_ref().err()?.as_str())))
    }
}

impl Inside {
    fn open() -> io::Result<Self> {
        let route = Dialogue::new(KernelSocket::open(ROUTE)?);
        // Where nothing tracks, asking would load the module that does.
        let tracks = TRACKED.iter().any(|file| std::path::Path::new(file).exists());
        let conntrack = if tracks { KernelSocket::open(NETFILTER).ok().map(Dialogue::new) } else { None };
        Ok(Self { route, conntrack, wireguard: None, sockets: None })
    }
}

impl KernelQueries<'_> {
    fn inside(&mut self, netns: u64) -> Result<(&mut Inside, &mut Vec<u8>), String> {
        let QuerySockets { inside, buffer, .. } = &mut *self.sockets;
        if buffer.is_empty() {
            buffer.resize(dialogue::BUFFER, 0);
        }
        let entered = inside.entry(netns).or_insert_with(|| {
            let opened = self.spaces.inside(netns, Inside::open);
            opened.map_err(|error| format!("namespace {netns} cannot be entered to read its routes ({error})"))
        });
        entered.as_mut().map(|inside| (inside, buffer)).map_err(|why| why.clone())
    }

    /// One answer of rtnetlink.
    fn ask<T>(&mut self, netns: u64, mut request: Request, answer: impl FnMut(&Message<'_>) -> Option<T>) -> Option<T> {
        let (inside, buffer) = self.inside(netns).ok()?;
        inside.route.get(&mut request, buffer, answer).ok().flatten()
    }

    fn ask_route(&mut self, netns: u64, packet: &Packet, origin: PacketOrigin) -> Result<RouteResult, String> {
        let (inside, buffer) = self.inside(netns)?;
        let answered = inside.route.get(&mut route::request(packet, origin), buffer, route::route);
        match answered {
            Ok(route) => route.unwrap_or_else(|| Err("the kernel's answer about a route is not understood".to_owned())),
            Err(error) => Err(route::refusal(packet, &error)),
        }
    }

    /// An entry of a forwarding table as the kernel has it now.
    fn ask_entry<T>(&mut self, netns: u64, of: FdbEntry, answer: impl Fn(&Message<'_>) -> Option<T>) -> Option<T> {
        let (inside, buffer) = self.inside(netns).ok()?;
        of.ask(&mut inside.route, buffer, answer)
    }

    /// A neighbour as the kernel has it now.
    fn ask_neighbour(&mut self, link: LinkKey, ip: IpAddr) -> Option<Mac> {
        let one = self.ask(link.netns, neighbour::request(link.ifindex, ip), neighbour::mac);
        if one.is_some() {
            return one;
        }
        // Linux before 5.0 has the list only.
        let (inside, buffer) = self.inside(link.netns).ok()?;
        let mut found = None;
        let mut each = |message: &Message<'_>, _: u64| {
            found = found.or_else(|| neighbour::listed(message, link.ifindex, ip));
        };
        inside.route.dump(&mut neighbour::list(ip), buffer, "list neighbours", &mut each).ok()?;
        found
    }

    /// The namespace that another one means by a number of its own.
    fn numbered(&mut self, netns: u64, number: i32) -> Option<u64> {
        let spaces = self.spaces;
        self.map.namespaces().find(|&other| {
            let Some(file) = spaces.file(other) else { return false };
            self.ask(netns, nsid::request(file.as_raw_fd()), nsid::number) == Some(number)
        })
    }
}

impl Lookups for KernelQueries<'_> {
    fn route(&mut self, netns: u64, packet: &Packet, from: Option<Ifindex>) -> Result<RouteResult, String> {
        self.ask_route(netns, packet, from.map_or(PacketOrigin::Own, PacketOrigin::In))
    }

    fn route_by(&mut self, netns: u64, packet: &Packet, by: Ifindex) -> Result<RouteResult, String> {
        self.ask_route(netns, packet, PacketOrigin::By(by))
    }

    fn neighbour(&mut self, link: LinkKey, ip: IpAddr) -> Option<Mac> {
        if let Some(known) = self.sockets.round.neighbours.get(&(link, ip)) {
            return *known;
        }
        let mac = self.ask_neighbour(link, ip);
        self.sockets.round.neighbours.insert((link, ip), mac);
        mac
    }

    fn detail(&mut self, link: LinkKey) -> Detail {
        if let Some(known) = self.sockets.round.details.get(&link) {
            return *known;
        }
        let told = self.ask(link.netns, link::request(link.ifindex), link::told);
        let detail = told.map_or_else(Detail::default, |(detail, number)| {
            let outside = number.map_or(Some(link.netns), |number| self.numbered(link.netns, number));
            Detail { outside, ..detail }
        });
        self.sockets.round.details.insert(link, detail);
        detail
    }

    fn bridged(&mut self, bridge: LinkKey, mac: Mac) -> Option<Bridged> {
        if let Some(known) = self.sockets.round.bridged.get(&(bridge, mac)) {
            return *known;
        }
        // A bridge with vlans has learnt it under a number, 1 unless someone chose another.
        let mut ask =
            |vlan| self.ask_entry(bridge.netns, FdbEntry::of_bridge(bridge.ifindex, mac, vlan), neighbour::bridge_port);
        let bridged = ask(None).or_else(|| ask(Some(1)));
        self.sockets.round.bridged.insert((bridge, mac), bridged);
        bridged
    }

    fn remote(&mut self, tunnel: LinkKey, mac: Mac) -> Option<IpAddr> {
        if let Some(known) = self.sockets.round.remotes.get(&(tunnel, mac)) {
            return *known;
        }
        // What is for no learnt address goes where all zeros point.
        let mut ask = |mac| self.ask_entry(tunnel.netns, FdbEntry::of_tunnel(tunnel.ifindex, mac), neighbour::far_end);
        let remote = ask(mac).or_else(|| ask([0; 6]));
        self.sockets.round.remotes.insert((tunnel, mac), remote);
        remote
    }

    fn translated(&mut self, netns: u64, packet: &Packet) -> Option<Packet> {
        if packet.from.ip().is_unspecified() {
            return None;
        }
        let (inside, buffer) = self.inside(netns).ok()?;
        let dialogue = inside.conntrack.as_mut()?;
        let answered = dialogue.get(&mut conntrack::request(packet), buffer, conntrack::tracked);
        conntrack::translated(packet, answered.ok()??)
    }

    fn wireguard(&mut self, link: LinkKey) -> Result<Arc<Wireguard>, String> {
        if let Some(known) = self.sockets.round.wireguards.get(&link) {
            return known.clone();
        }
        let asked = self.ask_wireguard(link);
        self.sockets.round.wireguards.insert(link, asked.clone());
        asked
    }

    fn listens(&mut self, netns: u64, port: u16) -> Result<bool, String> {
        if let Some(known) = self.sockets.round.listening.get(&(netns, port)) {
            return known.clone();
        }
        let listens = self.ask_sockets(netns, port);
        self.sockets.round.listening.insert((netns, port), listens.clone());
        listens
    }

    fn marking(&mut self, netns: u64, is_ipv6: bool) -> Marking {
        if let Some(known) = self.sockets.round.markings.get(&(netns, is_ipv6)) {
            return known.clone();
        }
        let marking =
            if self.looks_at_marks(netns, is_ipv6) { self.marked_by(netns, is_ipv6) } else { Marking::Unused };
        self.sockets.round.markings.insert((netns, is_ipv6), marking.clone());
        marking
    }

    fn redirected(&mut self, link: LinkKey, is_ipv6: bool) -> Option<Redirect> {
        if let Some(known) = self.sockets.round.redirects.get(&(link, is_ipv6)) {
            return *known;
        }
        let redirect = self.ask_filters(link, is_ipv6);
        self.sockets.round.redirects.insert((link, is_ipv6), redirect);
        redirect
    }

    fn holder(&mut self, netns: u64, packet: &Packet) -> Option<Holder> {
        self.ask_holder(netns, packet)
    }

    fn onward(&mut self, holder: &Holder, netns: u64, packet: &Packet, held: &[(u64, SocketAddr)]) -> Option<EndName> {
        self.ask_onward(holder, (netns, packet), held)
    }

    fn program(&mut self, link: LinkKey) -> Option<DeviceProgram> {
        self.program_of(link)
    }

    fn calls(&mut self, link: LinkKey, program: &DeviceProgram) -> Option<EndName> {
        self.ask_calls(link.netns, program.pid)
    }

    fn tun_behind(&mut self, netns: u64, packet: &Packet) -> Option<LinkKey> {
        self.ask_tun_behind(netns, packet)
    }
}

#[cfg(test)]
mod tests;
