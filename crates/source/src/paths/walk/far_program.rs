//! Where a VPN sends whose UDP sockets are not connected, as openvpn and wireguard-go have them: the kernel does not know its far end.
//! The packet shows it, where both ends are here: only one other tun can write it where it is to go and take its answers. What
//! its program's socket can be reached at is tried, and goes on where every path that leads there is the same. That it is not
//! relayed by a VPN's server elsewhere nobody knows, so a note says what is taken for granted.

use super::Walk;
use super::program::TUNS;
use crate::paths::lookups::{
    DeviceProgram, NetworkQueries, Packet, PacketOrigin, ProgramDatagram, ProgramSocket, RouteResult, TunAnswer,
    unspecified,
};
use std::net::{IpAddr, SocketAddr};
use vnettop_sample::{Hop, LinkFacts, LinkKey, LinkState, Proto};

/// Datagrams of one program that are tried: its sockets times the far end's and its addresses.
const MOST_TRIED: usize = 64;

/// A datagram that was tried: it, the namespace that it is sent in, and the links that it crosses.
type Tried = (Packet, u64, Vec<Hop>);

impl<L: NetworkQueries> Walk<'_, L> {
    /// The datagram that a program without connected sockets sends with the packet in it.
    pub(super) fn far_program(
        &mut self,
        link: &LinkFacts,
        program: &DeviceProgram,
        sockets: &[ProgramSocket],
    ) -> TunAnswer {
        // One VPN within another would try each other without an end.
        if self.tries || sockets.is_empty() {
            return Err(None);
        }
        let question = (link.key(), [self.packet.from.ip(), self.packet.to.ip()]);
        if let Some(known) = self.lookups.tun_answers().get(&question) {
            return known.clone();
        }
        let found = self.far_end(link, program, sockets);
        self.lookups.tun_answers().insert(question, found.clone());
        found
    }

    /// The datagram to the only program that can have the packet come out of its tun. One that no datagram gets to is none of them;
    /// one whose program is not known stays possible.
    fn far_end(&mut self, link: &LinkFacts, program: &DeviceProgram, sockets: &[ProgramSocket]) -> TunAnswer {
        let packet = self.packet;
        let mut found = Vec::new();
        for far in self.map.all().filter(|far| far.kind == link.kind && far.key() != link.key() && carries(far)) {
            let there = self.lookups.program(far.key());
            let is_own = there.as_ref().is_some_and(|there| there.pid == program.pid);
            if is_own || !(self.takes(far.key(), &packet) || self.relays(far.key(), &packet)) {
                continue;
            }
            let Some(there) = there else {
                found.push((far.key(), Err(None)));
                continue;
            };
            let theirs = self.lookups.sockets(far.key(), &there);
            let mut answer = self.only_way(link.key(), far.key(), sockets, &theirs);
            if let Ok(datagram) = &mut answer
                && !theirs.iter().any(|their| their.remote.is_some() && their.local == datagram.packet.to)
            {
                let (program, there) = (&program.name, &there.name);
                datagram.note =
                    Some(format!("assumes that {program} sends directly to {there}: its socket is not connected"));
            }
            if answer != Err(None) {
                found.push((far.key(), answer));
            }
        }
        if let [(_, answer)] = &found[..] {
            return answer.clone();
        }
        let mut name = |&(far, _): &(LinkKey, TunAnswer)| {
            let program = self.lookups.program(far);
            program.map_or_else(|| format!("the program of {}", self.map.name(far)), |program| program.name)
        };
        let names: Vec<String> = found.iter().map(&mut name).collect();
        Err((names.len() > 1).then(|| format!("its far end may be {}", names.join(" or "))))
    }

    /// A packet that comes out of this tun goes on to its destination, and its answers go back into it.
    pub(super) fn takes(&mut self, far: LinkKey, packet: &Packet) -> bool {
        let there = Packet { mark: Some(0), ..*packet };
        let back = Packet { from: packet.to, to: packet.from, ..there };
        let origin = match self.lookups.route(far.netns, &there, PacketOrigin::In(far.ifindex)) {
            Ok(RouteResult::Here) => PacketOrigin::Own,
            Ok(RouteResult::Out { link, .. }) if link != far.ifindex => PacketOrigin::In(link),
            _ => return false,
        };
        let answered = self.lookups.route(far.netns, &back, origin);
        matches!(answered, Ok(RouteResult::Out { link, .. }) if link == far.ifindex)
    }

    /// A packet that comes out of this tun goes back into it, and so do its answers: a VPN's server between two clients.
    fn relays(&mut self, far: LinkKey, packet: &Packet) -> bool {
        let there = Packet { mark: Some(0), ..*packet };
        let back = Packet { from: packet.to, to: packet.from, ..there };
        [there, back].iter().all(|packet| {
            let route = self.lookups.route(far.netns, packet, PacketOrigin::In(far.ifindex));
            matches!(route, Ok(RouteResult::Out { link, .. }) if link == far.ifindex)
        })
    }

    /// The datagram from one of these sockets to one of theirs, if all that can be the right one take the same path; without more to
    /// say when none can.
    fn only_way(
        &mut self,
        through: LinkKey,
        far: LinkKey,
        sockets: &[ProgramSocket],
        theirs: &[ProgramSocket],
    ) -> TunAnswer {
        let mut usable: Vec<Tried> = Vec::new();
        for (count, (netns, datagram, there)) in self.datagrams(far, sockets, theirs).into_iter().enumerate() {
            if count == MOST_TRIED {
                return Err(Some(format!("it may send to more than {MOST_TRIED} addresses and ports")));
            }
            if let Some(hops) = self.tried(through, netns, datagram, there) {
                usable.push((datagram, netns, hops));
            }
        }
        // Within another VPN the datagrams go where nothing else leads: directly, as the note says.
        let is_tun = |hop: &Hop| self.map.link(hop.link).is_some_and(|link| TUNS.contains(&link.kind.word()));
        if usable.iter().any(|(_, _, hops)| !hops.iter().any(is_tun)) {
            usable.retain(|(_, _, hops)| !hops.iter().any(is_tun));
        }
        let (datagram, netns, hops) = usable.first().ok_or(None)?;
        match usable.iter().find(|(_, _, other)| other != hops) {
            None => Ok(ProgramDatagram { packet: *datagram, netns: *netns, note: None }),
            Some((other, ..)) => {
                Err(Some(format!("it may send to {} or {}, on different paths", datagram.to.ip(), other.to.ip())))
            }
        }
    }

    /// The datagrams that may be meant: the namespace of the sender, each of them, the namespace of the receiver.
    fn datagrams(
        &mut self,
        far: LinkKey,
        sockets: &[ProgramSocket],
        theirs: &[ProgramSocket],
    ) -> Vec<(u64, Packet, u64)> {
        let mut all = Vec::new();
        for their in theirs {
            let mut addresses = vec![their.local.ip()];
            if their.local.ip().is_unspecified() {
                let own = self.lookups.addresses(their.netns);
                // What is packed is not sent into its own tunnel, and to loopback or to a link's own network nobody sends from afar.
                let own = own.into_iter().filter(|&(link, ip)| link != far && !is_near_only(ip));
                addresses = own.map(|(_, ip)| ip).collect();
            }
            for ip in addresses.into_iter().filter(|&ip| their.speaks(ip)) {
                if all.len() > MOST_TRIED {
                    return all;
                }
                let to = SocketAddr::new(ip, their.local.port());
                let mut fits =
                    |own: &&ProgramSocket| own.speaks(ip) && their.remote.is_none_or(|remote| self.is_end(own, remote));
                all.extend(sockets.iter().filter(&mut fits).map(|own| {
                    let (local, any) = (own.local, unspecified(ip));
                    let from = if local.ip().is_unspecified() { SocketAddr::new(any, local.port()) } else { local };
                    (own.netns, Packet { proto: Proto::Udp, from, to, mark: own.mark }, their.netns)
                }));
            }
        }
        all
    }

    /// The socket is what another one is connected with.
    fn is_end(&mut self, own: &ProgramSocket, end: SocketAddr) -> bool {
        let (at, ip) = (own.local, end.ip());
        let mut has = || self.lookups.addresses(own.netns).into_iter().any(|(_, address)| address == ip);
        let is_here = at.ip() == ip || at.ip().is_unspecified() && own.speaks(ip) && has();
        at.port() == end.port() && is_here
    }

    /// The links that a datagram crosses, as far as they are known; `None` when it cannot be what the program sends: there is
    /// no route, it gets into another namespace, back into the tun, or to a link that carries nothing.
    fn tried(&mut self, through: LinkKey, netns: u64, datagram: Packet, there: u64) -> Option<Vec<Hop>> {
        let mut walk = Walk::new(self.map, &mut *self.lookups, &[], netns, datagram);
        walk.tries = true;
        let gap = walk.run(netns).err();
        let path = walk.path;
        let is_dead = |hop: &Hop| hop.link == through || self.map.link(hop.link).is_some_and(|link| !carries(link));
        let arrives = if gap.is_none() { path.netns == there } else { !path.hops.is_empty() };
        (arrives && !path.hops.iter().any(is_dead)).then_some(path.hops)
    }
}

/// A tun that nobody holds open has no carrier.
fn carries(link: &LinkFacts) -> bool {
    !matches!(link.state, LinkState::Down | LinkState::LowerLayerDown | LinkState::NotPresent)
}

/// An address that only its own machine or, with the link's name, its own link can send to.
fn is_near_only(ip: IpAddr) -> bool {
    ip.is_loopback() || matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}
