//! The kernel as [`NetworkQueries`]: one rtnetlink socket in each namespace that a path crosses, opened once and kept while
//! there are flows. Every question is one request for one entry; no table is dumped where the kernel can be asked (some from Linux 5.0).

mod asked;
mod conntrack;
mod holder;
mod holders;
mod link;
mod marks;
mod neighbour;
mod redirect;
mod route;
mod wireguard;

use super::lookups::{
    Bridged, Detail, Mac, Marking, Neighbour, NetworkQueries, Packet, PacketOrigin, ProgramSocket, Redirect, RouteHop,
    RouteResult, TcHook, TunAnswer, TunQuestion, Wireguard,
};
use super::map::NetworkMap;
use crate::links::{facts, nsid};
use crate::netlink::client::NetlinkClient;
use crate::netlink::generic::GenericFamily;
use crate::netlink::message::{Message, Request};
use crate::netlink::socket::protocols;
use crate::netns::Spaces;
use crate::owners::OwnerReader;
use holders::KnownHolders;
use neighbour::TableEntry;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use vnettop_sample::{EndName, LinkKey, Proto};

/// Files of which one exists when the kernel can track connections.
const TRACKED: [&str; 2] = ["/proc/thread-self/net/nf_conntrack", "/proc/sys/net/netfilter/nf_conntrack_count"];

/// The sockets, and what was asked with them.
#[derive(Debug, Default)]
pub(super) struct QuerySockets {
    inside: BTreeMap<u64, io::Result<Inside>>,
    /// Recent answers; a new round begins when they may have changed unannounced.
    pub round: Round,
    pub holders: KnownHolders,
}

/// Key of next hops: namespace, both addresses, mark and origin, without ports.
type RouteQuestion = (u64, [IpAddr; 2], Option<u32>, PacketOrigin);

/// What was answered in one round: hundreds of streams share their neighbours and bridges.
#[derive(Debug, Default)]
pub(super) struct Round {
    details: HashMap<LinkKey, Detail>,
    neighbours: HashMap<(LinkKey, IpAddr), Neighbour>,
    bridged: HashMap<(LinkKey, Mac), Option<Bridged>>,
    remotes: HashMap<(LinkKey, Mac), Option<IpAddr>>,
    wireguards: HashMap<LinkKey, Result<Arc<Wireguard>, String>>,
    listening: HashMap<(u64, u16), Result<bool, String>>,
    markings: HashMap<(u64, bool), Marking>,
    redirects: HashMap<(LinkKey, TcHook, bool), Option<Redirect>>,
    next_hops: HashMap<RouteQuestion, Vec<RouteHop>>,
    /// Connected sockets by inode, for each protocol in a namespace.
    connected: HashMap<(u64, Proto), HashMap<u32, EndName>>,
    /// UDP sockets by inode, of a namespace; its addresses.
    datagrams: HashMap<u64, Arc<Vec<(u32, ProgramSocket)>>>,
    addresses: HashMap<u64, Vec<(LinkKey, IpAddr)>>,
    /// Where programs behind tuns send, as walks have found it.
    tuns: HashMap<TunQuestion, TunAnswer>,
    /// The sockets that a process holds.
    held_by: HashMap<u32, Vec<u32>>,
}

/// The sockets of one namespace.
#[derive(Debug)]
struct Inside {
    route: NetlinkClient,
    /// `None` when connections are not tracked, or may not be asked for.
    conntrack: Option<NetlinkClient>,
    /// Opened when a wireguard is asked for: its family of generic netlink, and `sock_diag`.
    wireguard: Option<(NetlinkClient, GenericFamily)>,
    sockets: Option<NetlinkClient>,
}

/// The kernel, asked for one round of walks.
pub(super) struct KernelQueries<'a> {
    pub sockets: &'a mut QuerySockets,
    pub spaces: &'a Spaces,
    pub owners: &'a OwnerReader,
    pub map: NetworkMap<'a>,
}

impl QuerySockets {
    /// Closes sockets in namespaces that no path crosses any more, and forgets namespaces that could not be entered, to try again.
    pub fn keep(&mut self, crossed: impl Fn(u64) -> bool) {
        self.inside.retain(|&netns, inside| inside.is_ok() && crossed(netns));
    }

    /// Namespaces that could not be entered, and why.
    pub fn refused(&self) -> impl Iterator<Item = (u64, String)> {
        self.inside.iter().filter_map(|(&netns, inside)| Some((netns, not_entered(netns, inside.as_ref().err()?))))
    }
}

fn not_entered(netns: u64, error: &io::Error) -> String {
    format!("the routes of network namespace {netns} cannot be read ({error})")
}

impl Inside {
    fn open() -> io::Result<Self> {
        let route = NetlinkClient::open(protocols::NETLINK_ROUTE)?;
        // Where nothing tracks, asking would load the module that does.
        let tracks = TRACKED.iter().any(|file| std::path::Path::new(file).exists());
        let conntrack = if tracks { NetlinkClient::open(protocols::NETLINK_NETFILTER).ok() } else { None };
        Ok(Self { route, conntrack, wireguard: None, sockets: None })
    }
}

impl KernelQueries<'_> {
    fn inside(&mut self, netns: u64) -> Result<&mut Inside, String> {
        let entered = self.sockets.inside.entry(netns).or_insert_with(|| self.spaces.inside(netns, Inside::open));
        entered.as_mut().map_err(|error| not_entered(netns, error))
    }

    /// An answer of this round, which the kernel is asked for once.
    fn once<K: Copy + Eq + Hash, V: Clone>(
        &mut self,
        known: fn(&mut Round) -> &mut HashMap<K, V>,
        key: K,
        ask: impl FnOnce(&mut Self) -> V,
    ) -> V {
        if let Some(answer) = known(&mut self.sockets.round).get(&key) {
            return answer.clone();
        }
        let answer = ask(self);
        known(&mut self.sockets.round).insert(key, answer.clone());
        answer
    }

    /// One answer of rtnetlink.
    fn ask<T>(&mut self, netns: u64, mut request: Request, answer: impl FnMut(&Message<'_>) -> Option<T>) -> Option<T> {
        self.inside(netns).ok()?.route.get(&mut request, answer).ok().flatten()
    }

    /// An entry of a table as the kernel has it now.
    fn ask_entry<T>(&mut self, netns: u64, of: TableEntry, answer: impl Fn(&Message<'_>) -> Option<T>) -> Option<T> {
        of.ask(&mut self.inside(netns).ok()?.route, answer)
    }

    /// The namespace that `netns` knows by this local number.
    fn numbered(&mut self, netns: u64, number: i32) -> Option<u64> {
        let spaces = self.spaces;
        self.map.namespaces().find(|&other| {
            let Some(file) = spaces.file(other) else { return false };
            self.ask(netns, nsid::request(file.as_raw_fd()), nsid::number) == Some(number)
        })
    }
}

impl NetworkQueries for KernelQueries<'_> {
    fn route(&mut self, netns: u64, packet: &Packet, origin: PacketOrigin) -> Result<RouteResult, String> {
        match self.inside(netns)?.route.get(&mut route::request(packet, origin), route::route) {
            Ok(route) => route.unwrap_or_else(|| Err("the kernel's answer about a route is not understood".to_owned())),
            Err(error) => Err(route::refusal(packet, &error)),
        }
    }

    fn neighbour(&mut self, link: LinkKey, ip: IpAddr) -> Neighbour {
        self.once(
            |round| &mut round.neighbours,
            (link, ip),
            |this| {
                let entry = TableEntry::of_neighbour(link.ifindex, ip);
                this.ask_entry(link.netns, entry, neighbour::reported).unwrap_or_default()
            },
        )
    }

    fn detail(&mut self, link: LinkKey) -> Detail {
        self.once(
            |round| &mut round.details,
            link,
            |this| {
                let reported = this.ask(link.netns, facts::request(Some(link.ifindex)), link::parse);
                reported.map_or_else(Detail::default, |(detail, number)| {
                    let outside = number.map_or(Some(link.netns), |number| this.numbered(link.netns, number));
                    Detail { outside, ..detail }
                })
            },
        )
    }

    fn bridged(&mut self, bridge: LinkKey, mac: Mac) -> Option<Bridged> {
        self.once(
            |round| &mut round.bridged,
            (bridge, mac),
            |this| {
                // A bridge with vlans has learnt the address under a vlan number, 1 unless another was configured.
                let entry = |vlan| TableEntry::of_bridge(bridge.ifindex, mac, vlan);
                let mut ask = |vlan| this.ask_entry(bridge.netns, entry(vlan), neighbour::bridge_port);
                ask(None).or_else(|| ask(Some(1)))
            },
        )
    }

    fn remote(&mut self, tunnel: LinkKey, mac: Mac) -> Option<IpAddr> {
        self.once(
            |round| &mut round.remotes,
            (tunnel, mac),
            |this| {
                // Packets for an address that was not learnt go where the entry of all zeros points.
                let entry = |mac| TableEntry::of_tunnel(tunnel.ifindex, mac);
                let mut ask = |mac| this.ask_entry(tunnel.netns, entry(mac), neighbour::far_end);
                ask(mac).or_else(|| ask([0; 6]))
            },
        )
    }

    fn translated(&mut self, netns: u64, packet: &Packet) -> Option<Packet> {
        if packet.from.ip().is_unspecified() {
            return None;
        }
        let netlink = self.inside(netns).ok()?.conntrack.as_mut()?;
        let answered = netlink.get(&mut conntrack::request(packet), conntrack::tracked);
        conntrack::translated(packet, answered.ok()??)
    }

    fn wireguard(&mut self, link: LinkKey) -> Result<Arc<Wireguard>, String> {
        self.once(|round| &mut round.wireguards, link, |this| this.ask_wireguard(link))
    }

    fn listens(&mut self, netns: u64, port: u16) -> Result<bool, String> {
        self.once(|round| &mut round.listening, (netns, port), |this| this.ask_sockets(netns, port))
    }

    fn marking(&mut self, netns: u64, is_ipv6: bool) -> Marking {
        self.once(
            |round| &mut round.markings,
            (netns, is_ipv6),
            |this| {
                if this.looks_at_marks(netns, is_ipv6) { this.marked_by(netns, is_ipv6) } else { Marking::Unused }
            },
        )
    }

    fn redirected(&mut self, link: LinkKey, hook: TcHook, is_ipv6: bool) -> Option<Redirect> {
        self.once(|round| &mut round.redirects, (link, hook, is_ipv6), |this| this.ask_filters(link, hook, is_ipv6))
    }

    fn next_hops(&mut self, netns: u64, packet: &Packet, origin: PacketOrigin) -> Vec<RouteHop> {
        self.once(
            |round| &mut round.next_hops,
            (netns, [packet.from.ip(), packet.to.ip()], packet.mark, origin),
            |this| this.ask(netns, route::entry_request(packet, origin), route::next_hops).unwrap_or_default(),
        )
    }
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(super) fn fuzz(message: &crate::netlink::message::Message<'_>) {
    let _ = (route::next_hops(message), route::route(message), route::own_address(message));
    let _ = (link::parse(message), conntrack::tracked(message), neighbour::reported(message));
    let _ = (neighbour::bridge_port(message), neighbour::far_end(message), crate::links::nsid::number(message));
    let _ = (redirect::parse(message, false), redirect::parse(message, true));
    let _ = (marks::looks_at_marks(message), marks::sets_marks(message), wireguard::is_its_socket(message, 7));
    wireguard::parse(message, &mut super::lookups::Wireguard::default());
}

#[cfg(test)]
mod tests;
