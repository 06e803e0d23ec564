//! The walk of one packet from its sender: at every place the machine is asked where it goes next. Pure over
//! [`NetworkQueries`]; it never guesses, and ends with a sentence where nothing says what comes next.

mod bridge;
mod far_program;
mod guest;
mod link;
mod marks;
mod ovs;
mod program;
mod redirect;
mod tunnel;
mod vrf;
mod wireguard;

use super::lookups::{Mac, NetworkQueries, Packet, PacketOrigin, RouteHop, RouteResult, any_port, unspecified};
use super::map::NetworkMap;
use crate::links::facts;
use redirect::Takeover;
use std::net::SocketAddr;
use vnettop_sample::{
    Carrier, CarrierKind, EndName, Holder, Hop, HopBy, HopWay, Kind, LinkKey, NextHop, SilentNeighbour, WireNames,
};
use wireguard::WireguardHop;

/// Longer ways do not exist outside of loops.
const MOST_HOPS: usize = 64;
/// Programs that copy one after another: ssh and its server are two.
const MOST_HOLDERS: usize = 4;
/// Steps that add no hop are few between two that do.
const MOST_STEPS: usize = 4 * MOST_HOPS;

/// A path as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WalkedPath {
    pub hops: Vec<Hop>,
    /// Why the path ends before the receiver.
    pub gap: Option<String>,
    /// Which packets take this path, when others may take another one.
    pub note: Option<String>,
    /// Namespace of the receiver; 0 when the path does not reach it.
    pub netns: u64,
    /// Namespace in which the path first reached an end of the connection, and the packet as it was there.
    pub arrived: Option<(u64, Packet)>,
    /// Processes that hold the end in `arrived` when no watched one does, and those of the ends behind it.
    pub holders: Vec<Holder>,
    /// Addresses of the flow's packets where the path ends before the receiver; `None` when it ends before its first link.
    pub outside: Option<WireNames>,
    /// The first neighbour that does not answer.
    pub silent: Option<SilentNeighbour>,
    /// MAC addresses that the packet is sent to.
    pub neighbours: Vec<NextHop>,
    /// Programs that take the packets over between two links.
    pub carriers: Vec<Carrier>,
}

/// Where the packet is, and what happens to it next.
#[derive(Debug, Clone, Copy)]
enum At {
    /// A namespace routes it: its own, or what came in through a link.
    Route { netns: u64, from: Option<LinkKey> },
    /// A link has been given the packet to send, to that MAC address.
    Send { link: LinkKey, mac: Option<Mac> },
    /// A link has received the packet.
    Receive { link: LinkKey, mac: Option<Mac> },
    /// The packet is at an address of this namespace.
    Arrived { netns: u64, from: Option<LinkKey> },
}

/// A packet within another one.
#[derive(Debug, Clone)]
struct Inner {
    packet: Packet,
    mac: Option<Mac>,
    /// Kind and key of the tunnel.
    kind: String,
    key: u32,
    /// The tunnel it went into.
    through: LinkKey,
    /// For whom it is, where it was encrypted.
    sealed: Option<WireguardHop>,
}

/// What a link puts before a frame, by which another one knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    /// A vlan its number.
    Vlan(u16),
    /// A macsec its header.
    Macsec,
}

/// A walk under way.
struct Walk<'a, L> {
    map: NetworkMap<'a>,
    lookups: &'a mut L,
    /// Ends of connections that watched processes hold: (namespace, own end).
    held: &'a [(u64, SocketAddr)],
    packet: Packet,
    inner: Vec<Inner>,
    /// What links have put before the frame.
    tags: Vec<Tag>,
    /// The link that the next packet which a namespace sends is bound to.
    bound: Option<LinkKey>,
    /// The namespace in which the packet has its mark: the kernel takes it away on the way into another one.
    marked_in: u64,
    path: WalkedPath,
    /// Hops before the last program that copies.
    copied_at: usize,
    /// What may have taken the packet elsewhere, first.
    takeover: Option<Takeover>,
    /// It only tries where a datagram gets, and nobody is asked who takes it there.
    tries: bool,
}

/// Walks from a namespace that sends the packet.
pub(super) fn walk<L: NetworkQueries>(
    map: NetworkMap<'_>,
    lookups: &mut L,
    held: &[(u64, SocketAddr)],
    netns: u64,
    packet: Packet,
) -> WalkedPath {
    let mut walk = Walk::new(map, lookups, held, netns, packet);
    walk.bound = walk.vrf_of_sender(netns);
    walk.path.gap = walk.run(netns).err();
    walk.mind_takeover();
    walk.path.outside = walk.outside();
    walk.path
}

impl<'a, L: NetworkQueries> Walk<'a, L> {
    fn new(map: NetworkMap<'a>, lookups: &'a mut L, held: &'a [(u64, SocketAddr)], netns: u64, packet: Packet) -> Self {
        let (inner, tags, bound, path) = (Vec::new(), Vec::new(), None, WalkedPath::default());
        let (marked_in, copied_at, takeover, tries) = (netns, 0, None, false);
        Self { map, lookups, held, packet, inner, tags, bound, marked_in, path, copied_at, takeover, tries }
    }

    fn run(&mut self, netns: u64) -> Result<(), String> {
        let mut at = At::Route { netns, from: None };
        for _ in 0..MOST_STEPS {
            at = match at {
                At::Route { netns, from } => self.route(netns, from)?,
                At::Send { link, mac } => self.send(link, mac)?,
                At::Receive { link, mac } => self.receive(link, mac)?,
                At::Arrived { netns, from } => match self.arrived(netns, from)? {
                    Some(onward) => onward,
                    None => return Ok(()),
                },
            };
        }
        Err("the path does not terminate".to_owned())
    }

    /// Addresses of the flow's packets where the path is cut; `None` when it is whole or has no hop.
    fn outside(&self) -> Option<WireNames> {
        let is_cut = self.path.gap.is_some() && !self.path.hops.is_empty();
        let Packet { from, to, .. } = self.inner.first().map_or(self.packet, |inner| inner.packet);
        is_cut.then_some(WireNames { from, to })
    }

    /// Adds a hop; the same link in the same direction a second time is a loop.
    fn push(&mut self, link: LinkKey, way: HopWay, by: HopBy) -> Result<(), String> {
        let by = if self.copied_at > 0 && self.copied_at == self.path.hops.len() { HopBy::Proxy } else { by };
        if self.path.hops.len() == MOST_HOPS {
            return Err(format!("it crosses more than {MOST_HOPS} links"));
        }
        if self.path.hops[self.copied_at..].iter().any(|hop| hop.link == link && hop.way == way) {
            return Err(format!(
                "it would cross {} a second time: the routes or bridges form a loop",
                self.map.name(link)
            ));
        }
        self.path.hops.push(Hop { link, way, by });
        Ok(())
    }

    /// The packet leaves through a link.
    fn leave_by(&mut self, link: LinkKey, by: HopBy, mac: Option<Mac>) -> Result<At, String> {
        self.push(link, HopWay::Sent, by)?;
        Ok(At::Send { link, mac })
    }

    /// The packet comes in through a link.
    fn come_in_by(&mut self, link: LinkKey, by: HopBy, mac: Option<Mac>) -> Result<At, String> {
        self.push(link, HopWay::Received, by)?;
        Ok(At::Receive { link, mac })
    }

    /// The packet goes on within another packet, which a namespace sends.
    fn wrap(&mut self, inner: Inner, outer: Packet, netns: u64) -> At {
        self.inner.push(inner);
        (self.packet, self.marked_in) = (outer, netns);
        At::Route { netns, from: None }
    }

    /// The packet comes out of the outer one at the far end of the tunnel.
    fn unwrap(&mut self, inner: &Inner, far: LinkKey) -> Result<At, String> {
        self.packet = Packet { mark: Some(0), ..inner.packet };
        self.come_in_by(far, HopBy::Tunnel, inner.mac)
    }

    /// The packet's destination is an address of that namespace. The sender's address is left out: a namespace has no route for
    /// packets with another's address.
    fn is_home(&mut self, netns: u64) -> bool {
        let to = Packet { from: any_port(unspecified(self.packet.to.ip())), ..self.packet };
        self.is_own(netns, &to, PacketOrigin::Own)
    }

    fn is_own(&mut self, netns: u64, packet: &Packet, origin: PacketOrigin) -> bool {
        matches!(self.lookups.route(netns, packet, origin), Ok(RouteResult::Here))
    }

    fn route(&mut self, netns: u64, from: Option<LinkKey>) -> Result<At, String> {
        self.mind_marks(netns);
        // The destination is translated before the route is looked up, the source after it. Of most tunnels nobody knows
        // from which port they send.
        let whole = self.inner.is_empty() || self.packet.from.port() != 0;
        let translated = if whole { self.lookups.translated(netns, &self.packet) } else { None };
        let to = translated.map_or(self.packet.to, |packet| packet.to);
        let asked = Packet { to, ..self.packet };
        let bound = self.bound.take().filter(|bound| bound.netns == netns);
        let own = bound.map_or(PacketOrigin::Own, |bound| PacketOrigin::By(bound.ifindex));
        let origin = from.filter(|_| bound.is_none()).map_or(own, |from| PacketOrigin::In(from.ifindex));
        let route = self.lookups.route(netns, &asked, origin)?;
        self.packet = translated.unwrap_or(asked);
        let RouteResult::Out { link, gateway, source } = route else { return self.here(netns, from, bound) };
        if let Some(source) = source.filter(|_| self.packet.from.ip().is_unspecified()) {
            self.packet.from.set_ip(source);
        }
        if bound.is_none() {
            self.mind_multipath(netns, &asked, origin)?;
        }
        let link = LinkKey { netns, ifindex: link };
        if self.map.link(link).is_some_and(|facts| facts.kind == Kind::Loopback) {
            return Ok(At::Arrived { netns, from: None });
        }
        let way = if self.is_in_userspace(link) { HopWay::Passed } else { HopWay::Sent };
        let by = self.out_of_vrf(link)?;
        self.push(link, way, by)?;
        let ip = gateway.unwrap_or(to.ip());
        let neighbour = self.lookups.neighbour(link, ip);
        if neighbour.is_silent {
            self.path.silent.get_or_insert(SilentNeighbour { link, ip });
        }
        let mac = neighbour.mac;
        if let Some(mac) = mac.and_then(|mac| facts::mac_text(&mac)) {
            self.path.neighbours.push(NextHop { link, ip, mac });
        }
        Ok(At::Send { link, mac })
    }

    /// With several next hops, the kernel's answer names one that the flow's packets need not take: the path ends here.
    fn mind_multipath(&mut self, netns: u64, packet: &Packet, origin: PacketOrigin) -> Result<(), String> {
        let hops = self.lookups.next_hops(netns, packet, origin);
        if hops.len() < 2 {
            return Ok(());
        }
        let name = |&(link, gateway): &RouteHop| {
            let name = self.map.name(LinkKey { netns, ifindex: link });
            gateway.map_or_else(|| name.to_owned(), |gateway| format!("{name} via {gateway}"))
        };
        let names: Vec<String> = hops.iter().map(name).collect();
        let (count, to) = (hops.len(), packet.to.ip());
        Err(format!(
            "one of {count} next hops of the route to {to} follows, which one is not known: {}",
            names.join(", ")
        ))
    }

    /// The packet is at its address; `None` when that is the receiver.
    fn arrived(&mut self, netns: u64, from: Option<LinkKey>) -> Result<Option<At>, String> {
        if let Some(inner) = self.inner.pop() {
            return self.unpack(netns, &inner).map(Some);
        }
        if from.is_none() {
            let lo = self.map.loopback(netns).ok_or("the loopback link of the namespace is not visible")?;
            self.push(lo, HopWay::Sent, HopBy::Local)?;
        }
        self.path.arrived.get_or_insert((netns, self.packet));
        if !self.tries
            && !self.held.contains(&(netns, self.packet.to))
            && let Some(holder) = self.lookups.holder(netns, &self.packet)
        {
            let onward = self.lookups.onward(&holder, netns, &self.packet, self.held);
            if onward.is_some() {
                self.carried(holder.pid, &holder.name, CarrierKind::Relay);
            }
            self.path.holders.push(holder);
            if let Some(EndName { netns, local, remote }) = onward.filter(|_| self.path.holders.len() < MOST_HOLDERS) {
                self.packet = Packet { from: local, to: remote, mark: None, ..self.packet };
                self.copied_at = self.path.hops.len();
                return Ok(Some(At::Route { netns, from: None }));
            }
        }
        self.path.netns = netns;
        Ok(None)
    }
}
