//! From link to link: what a driver does with a frame that it is given, and who takes a frame that a link receives.

use super::{At, Walk};
use crate::sample::{HopBy, HopWay, Kind, LinkFacts, LinkKey};
use crate::source::paths::lookups::{Lookups, Mac, Route};
use crate::source::paths::map::place;

/// `MACVLAN_MODE_BRIDGE`.
const MACVLAN_BRIDGE: u32 = 4;

impl<'a, L: Lookups> Walk<'a, L> {
    /// The frame leaves through a link.
    pub(super) fn send(&mut self, key: LinkKey, mac: Option<Mac>) -> Result<At, String> {
        let link = self.seen(key)?;
        if let Some(port) = self.map.switch_port(key).filter(|at| at.port.kind == "internal") {
            return self.switch(port, mac);
        }
        let name = &link.name;
        match link.kind.word() {
            "veth" | "netkit" => self.across(link, mac),
            "bridge" => self.forward(link, mac),
            "macvlan" | "macvtap" => self.macvlan(link, mac),
            "ipvlan" => self.ipvlan(link, mac),
            "vlan" => {
                self.tags.push(self.lookups.detail(key).vlan.unwrap_or(0));
                self.down(link, mac)
            }
            "bond" => self.bond(link, mac),
            "vxlan" | "geneve" | "gre" | "gretap" | "ipip" | "sit" => self.pack(link, mac),
            "tun" | "tap" => Err(format!("the packets leave through {name}, to the program that holds it open")),
            "physical" | "virtio" => Err(format!("the packets leave this machine through {name}")),
            kind => Err(format!("where {name} takes the packets is not known: its kind is {kind}")),
        }
    }

    /// A link has received the frame: its switch, its bridge or bond, what stands on it, or the namespace takes it.
    pub(super) fn receive(&mut self, key: LinkKey, mac: Option<Mac>) -> Result<At, String> {
        let link = self.seen(key)?;
        if let Some(port) = self.map.switch_port(key) {
            return self.switch(port, mac);
        }
        if link.kind == Kind::Macvtap {
            return Err(format!("the packets come out of {} to the program that holds it open", link.name));
        }
        if let Some(vlan) = self.tagged(key) {
            self.tags.pop();
            return self.up(vlan, mac);
        }
        match self.map.master(link) {
            Some(bridge) if bridge.kind == Kind::Bridge => return self.bridge(bridge, mac),
            Some(bond) if bond.kind == Kind::Bond => return self.up(bond.key(), mac),
            // Its own database is the only one that knows.
            Some(_) if link.slave_kind.as_deref() == Some("openvswitch") => {
                return Err(format!("{} is a port of Open vSwitch, and which bridge has it is not known", link.name));
            }
            _ => {}
        }
        match self.taker(key, mac) {
            Some(above) => self.up(above, mac),
            None => Ok(At::Route { netns: key.netns, from: Some(key) }),
        }
    }

    fn seen(&self, key: LinkKey) -> Result<&'a LinkFacts, String> {
        let unseen = || format!("link {} of namespace {} is not seen", key.ifindex.0, key.netns);
        self.map.link(key).ok_or_else(unseen)
    }

    /// The vlan on a link whose number is on the frame.
    fn tagged(&mut self, lower: LinkKey) -> Option<LinkKey> {
        let number = self.tags.last().copied()?;
        let mut vlans = self.map.upon(lower).filter(|above| above.kind == Kind::Vlan).map(LinkFacts::key);
        vlans.find(|&vlan| self.lookups.detail(vlan).vlan == Some(number))
    }

    /// The macvlan or ipvlan on a link that takes the frame.
    fn taker(&mut self, lower: LinkKey, mac: Option<Mac>) -> Option<LinkKey> {
        let found = self.map.upon(lower).find(|link| match link.kind {
            Kind::Macvlan | Kind::Macvtap => mac.is_some() && self.lookups.detail(link.key()).mac == mac,
            Kind::Ipvlan => self.is_home(link.netns),
            _ => false,
        });
        found.map(LinkFacts::key)
    }

    /// The packet's destination is an address of that namespace.
    fn is_home(&mut self, netns: u64) -> bool {
        matches!(self.lookups.route(netns, &self.packet, None), Ok(Route::Here))
    }

    /// To a link that stands on the one before.
    fn up(&mut self, link: LinkKey, mac: Option<Mac>) -> Result<At, String> {
        self.push(link, HopWay::Received, HopBy::Upper)?;
        Ok(At::Receive { link, mac })
    }

    /// To the link below.
    fn down(&mut self, link: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        let lower = place(link.lower.as_ref()).filter(|&lower| self.map.link(lower).is_some());
        let lower = lower.ok_or_else(|| format!("the link below {} is in a namespace that is not seen", link.name))?;
        self.push(lower, HopWay::Sent, HopBy::Lower)?;
        Ok(At::Send { link: lower, mac })
    }

    /// To the other end of a pair.
    fn across(&mut self, link: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        let peer = place(link.peer.as_ref()).filter(|&peer| self.map.link(peer).is_some());
        let peer = peer.ok_or_else(|| format!("the other end of {} is in a namespace that is not seen", link.name))?;
        self.push(peer, HopWay::Received, HopBy::Peer)?;
        Ok(At::Receive { link: peer, mac })
    }

    /// From one macvlan to another on the same link it goes at once, and the link below counts nothing of it.
    fn macvlan(&mut self, link: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        let own = link.key();
        let bridges = self.lookups.detail(own).macvlan_mode == Some(MACVLAN_BRIDGE);
        if let (true, Some(lower), Some(_)) = (bridges, place(link.lower.as_ref()), mac) {
            let mut beside = self.map.upon(lower).map(LinkFacts::key).filter(|&other| other != own);
            let takes = |&other: &LinkKey| {
                let detail = self.lookups.detail(other);
                detail.mac == mac && detail.macvlan_mode == Some(MACVLAN_BRIDGE)
            };
            if let Some(other) = beside.find(takes) {
                return self.up(other, mac);
            }
        }
        self.down(link, mac)
    }

    /// The same for ipvlan, which knows its neighbours by their IP addresses.
    fn ipvlan(&mut self, link: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        if let Some(lower) = place(link.lower.as_ref()) {
            let mut beside = self.map.upon(lower).filter(|other| other.kind == Kind::Ipvlan);
            if let Some(other) = beside.find(|other| other.key() != link.key() && self.is_home(other.netns)) {
                return self.up(other.key(), mac);
            }
        }
        self.down(link, mac)
    }

    fn bond(&mut self, bond: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        let active = self.lookups.detail(bond.key()).active_port.map(|port| bond.beside(port));
        let ports: Vec<LinkKey> = self.map.ports(bond.key()).map(LinkFacts::key).collect();
        let only = if let [only] = ports[..] { Some(only) } else { None };
        let Some(port) = active.or(only) else {
            return Err(format!("{} sends through one of its {} ports; which is not known", bond.name, ports.len()));
        };
        self.push(port, HopWay::Sent, HopBy::Lower)?;
        Ok(At::Send { link: port, mac })
    }
}
