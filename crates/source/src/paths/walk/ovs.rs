//! Through Open vSwitch, which tells nobody where it forwards: the port behind which the destination's MAC address
//! is seen. Patch ports lead to another bridge, tunnels to another switch.

use super::tunnel::{TunnelEnd, same_kind};
use super::{At, Walk};
use crate::paths::lookups::{Bridged, Mac, NetworkQueries, Packet, PacketOrigin, Tunnel, any_port, unspecified};
use crate::paths::map::SwitchPort;
use std::net::IpAddr;
use vnettop_sample::{
    CarrierKind, HopBy, HopWay, Kind, LinkFacts, LinkKey, OvsDatapathKind, OvsPortKind, PeerRef, Proto,
};

/// The program that forwards.
const PROGRAM: &str = "ovs-vswitchd";

/// Bridges that are searched behind one another.
pub(super) const MOST_DEPTH: usize = 5;

impl<'a, L: NetworkQueries> Walk<'a, L> {
    /// A bridge has the frame, from one of its ports.
    pub(super) fn switch(&mut self, from: SwitchPort<'a>, mac: Option<Mac>) -> Result<At, String> {
        let name = &from.bridge.name;
        if let (OvsDatapathKind::Netdev, Some(pid)) = (&from.bridge.datapath, from.switch.pid) {
            self.carried(pid, PROGRAM, CarrierKind::Switch);
        }
        let Some(mac) = mac.or_else(|| self.unasked(from)) else {
            return Err(format!("the destination's MAC address is not known, so neither is the port of {name}"));
        };
        let to = self.exit_or_tunnel(from, mac);
        let to = to.ok_or_else(|| format!("the port of {name} that leads to the destination is not known"))?;
        let link = to.port.link.ok_or_else(|| format!("port {} of {name} has no visible link", to.port.name))?;
        let own = from.bridge.ports.iter().find(|port| port.name == *name).and_then(|port| port.link);
        if let Some(own) = own.filter(|&own| own != link && Some(own) != from.port.link) {
            self.push(own, HopWay::Passed, HopBy::Bridge)?;
        }
        match to.port.kind {
            OvsPortKind::Internal => {
                let way = if self.is_in_userspace(link) { HopWay::Passed } else { HopWay::Received };
                self.push(link, way, HopBy::Ovs)?;
                Ok(At::Route { netns: link.netns, from: Some(link) })
            }
            OvsPortKind::Patch => {
                self.push(link, HopWay::Sent, HopBy::Ovs)?;
                let other = other_end(to).and_then(|other| Some((other, other.port.link?)));
                let (other, peer) = other.ok_or_else(|| format!("patch port {}: peer unknown", to.port.name))?;
                self.push(peer, HopWay::Received, HopBy::Peer)?;
                self.switch(other, Some(mac))
            }
            _ => {
                self.push(link, HopWay::Sent, HopBy::Ovs)?;
                if !to.port.kind.is_tunnel() {
                    return Ok(At::Send { link, mac: Some(mac) });
                }
                let far = far_end(to, link);
                let far = far.ok_or_else(|| format!("the far end of {} is not one address", to.port.name))?;
                Ok(self.outer(far, Some(mac)))
            }
        }
    }

    /// The outer packets of a userspace datapath never cross the device of the bridge that has their address.
    pub(super) fn is_in_userspace(&self, link: LinkKey) -> bool {
        let internal = self.map.switch_port(link).filter(|at| at.port.kind == OvsPortKind::Internal);
        !self.inner.is_empty() && internal.is_some_and(|at| at.bridge.datapath == OvsDatapathKind::Netdev)
    }

    /// Where the outer packet of a userspace datapath goes behind this bridge: ovs-vswitchd asks for the address itself,
    /// so the kernel, which never sends there, need not have it among its neighbours.
    fn unasked(&mut self, from: SwitchPort<'a>) -> Option<Mac> {
        from.port.link.filter(|&link| self.is_in_userspace(link))?;
        let mut far =
            self.map.switch_ports().filter(|at| at.port.kind == OvsPortKind::Internal).filter_map(|at| at.port.link);
        far.find_map(|link| {
            // A namespace has no route for a packet that says to come from another one's address.
            self.is_home(link.netns).then_some(())?;
            let mac = self.lookups.detail(link).mac?;
            self.exit(from, mac, MOST_DEPTH).map(|_| mac)
        })
    }

    /// The port through which the frame leaves, if need be over a tunnel. What comes out of one goes into no other.
    fn exit_or_tunnel(&mut self, from: SwitchPort<'a>, mac: Mac) -> Option<SwitchPort<'a>> {
        if let Some(found) = self.exit(from, mac, MOST_DEPTH) {
            return Some(found);
        }
        if from.port.kind.is_tunnel() {
            return None;
        }
        let leads = |walk: &mut Self, at| beyond(at).into_iter().any(|tunnel| walk.has_beyond_tunnel(tunnel, mac));
        others(from).into_iter().find(|&at| leads(self, at))
    }

    /// The port behind which the address is seen on this machine, else the patch port that leads there.
    fn exit(&mut self, from: SwitchPort<'a>, mac: Mac, depth: usize) -> Option<SwitchPort<'a>> {
        let depth = depth.checked_sub(1)?;
        let others = others(from);
        let mut by = |leads: fn(&mut Self, SwitchPort<'a>, Mac, usize) -> bool| {
            others.iter().copied().find(|&at| leads(self, at, mac, depth))
        };
        by(Self::has).or_else(|| by(Self::has_beyond_patch))
    }

    /// The link of a port has the address, or what is at its other end.
    fn has(&mut self, at: SwitchPort<'a>, mac: Mac, depth: usize) -> bool {
        let Some(link) = at.port.link.and_then(|key| self.map.link(key)) else { return false };
        match at.port.kind {
            OvsPortKind::Internal => self.lookups.detail(link.key()).mac == Some(mac),
            OvsPortKind::Patch => false,
            _ if at.port.kind.is_tunnel() => false,
            _ => link.peer.and_then(PeerRef::key).is_some_and(|peer| self.is_behind(peer, mac, depth)),
        }
    }

    fn has_beyond_patch(&mut self, at: SwitchPort<'a>, mac: Mac, depth: usize) -> bool {
        let other = if at.port.kind == OvsPortKind::Patch { other_end(at) } else { None };
        other.is_some_and(|other| self.exit(other, mac, depth).is_some())
    }

    /// The far switch of a tunnel has the address.
    fn has_beyond_tunnel(&mut self, at: SwitchPort<'a>, mac: Mac) -> bool {
        let remote = at.port.remote_ip.as_deref().filter(|_| at.port.kind.is_tunnel());
        let Some(remote) = remote.and_then(|text| text.parse::<IpAddr>().ok()) else { return false };
        let (from, to) = (any_port(unspecified(remote)), any_port(remote));
        let outer = Packet { proto: Proto::Udp, from, to, mark: None };
        let mut fars = self.map.switch_ports().filter(|far| {
            let other = far.switch.socket != at.switch.socket || far.switch.netns != at.switch.netns;
            other && same_kind(far.port.kind.as_ref(), at.port.kind.as_ref()) && far.port.key == at.port.key
        });
        fars.any(|far| {
            self.is_own(far.switch.netns, &outer, PacketOrigin::Own) && self.exit(far, mac, MOST_DEPTH).is_some()
        })
    }

    /// A link that a frame comes to has the address, or the bridge that it is a port of has it elsewhere.
    pub(super) fn is_behind(&mut self, link: LinkKey, mac: Mac, depth: usize) -> bool {
        let Some(facts) = self.map.link(link) else { return false };
        if let Some(port) = self.map.switch_port(link) {
            return self.exit(port, mac, depth).is_some();
        }
        match self.map.master(facts) {
            Some(bridge) if bridge.kind == Kind::Bridge => self.is_in(bridge, facts, mac, depth),
            _ => self.lookups.detail(link).mac == Some(mac),
        }
    }

    fn is_in(&mut self, bridge: &LinkFacts, came_by: &LinkFacts, mac: Mac, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        match self.lookups.bridged(bridge.key(), mac) {
            Some(Bridged::Here) => return true,
            Some(Bridged::Port(port)) => return port != came_by.ifindex,
            None => {}
        }
        let ports = self.map.ports(bridge.key()).filter(|port| port.ifindex != came_by.ifindex);
        let mut peers = ports.filter_map(|port| port.peer.and_then(PeerRef::key));
        self.lookups.detail(bridge.key()).mac == Some(mac) || peers.any(|peer| self.is_behind(peer, mac, depth))
    }
}

/// The other ports of a port's bridge.
fn others(of: SwitchPort<'_>) -> Vec<SwitchPort<'_>> {
    let others = of.bridge.ports.iter().filter(|port| port.name != of.port.name);
    others.map(|port| SwitchPort { port, ..of }).collect()
}

/// The port itself, or those of the bridge that it leads to where it is a patch.
fn beyond(at: SwitchPort<'_>) -> Vec<SwitchPort<'_>> {
    if at.port.kind == OvsPortKind::Patch { other_end(at).map(others).unwrap_or_default() } else { vec![at] }
}

/// The port at the other end of a patch.
fn other_end(at: SwitchPort<'_>) -> Option<SwitchPort<'_>> {
    let (switch, name) = (at.switch, at.port.peer.as_ref()?);
    switch.bridges.iter().find_map(|bridge| {
        let port = bridge.ports.iter().find(|port| port.name == *name)?;
        Some(SwitchPort { switch, bridge, port })
    })
}

/// The tunnel that a port is.
fn far_end(at: SwitchPort<'_>, link: LinkKey) -> Option<TunnelEnd> {
    let address = |text: &Option<String>| text.as_deref()?.parse::<IpAddr>().ok();
    let remote = address(&at.port.remote_ip)?;
    let port = match at.port.kind {
        OvsPortKind::Vxlan => 4789,
        OvsPortKind::Geneve => 6081,
        _ => 0,
    };
    let key = at.port.key.as_deref().and_then(|key| key.parse().ok()).unwrap_or(0);
    let tunnel = Tunnel { key, remote: Some(remote), local: address(&at.port.local_ip), port };
    Some(TunnelEnd { through: link, kind: at.port.kind.as_ref().to_owned(), tunnel, remote, outside: at.switch.netns })
}
