//! From link to link: what a driver does with a frame that it is given, and who takes a frame that a link receives.

use super::tunnel::PACKS;
use super::{At, Tag, Walk};
use crate::paths::lookups::{Mac, NetworkQueries};
use vnettop_sample::{HopBy, HopWay, Kind, LinkFacts, LinkKey, LinkState, OvsPortKind, PeerRef};

/// `MACVLAN_MODE_BRIDGE`.
const MACVLAN_BRIDGE: u32 = 4;
/// `BOND_MODE_BROADCAST`.
const BROADCAST: u8 = 3;

impl<'a, L: NetworkQueries> Walk<'a, L> {
    /// The frame leaves through a link.
    pub(super) fn send(&mut self, key: LinkKey, mac: Option<Mac>) -> Result<At, String> {
        let link = self.seen(key)?;
        self.redirect_sent(link)?;
        if let Some(port) = self.map.switch_port(key).filter(|at| at.port.kind == OvsPortKind::Internal) {
            return self.switch(port, mac);
        }
        let name = &link.name;
        match &link.kind {
            Kind::Veth | Kind::Netkit => self.across(link, mac),
            Kind::Bridge => self.forward(link, mac),
            Kind::Macvlan | Kind::Macvtap => self.macvlan(link, mac),
            Kind::Ipvlan | Kind::Ipvtap => self.ipvlan(link, mac),
            Kind::Vlan => {
                let number = self.lookups.detail(key).vlan.unwrap_or(0);
                self.tags.push(Tag::Vlan(number));
                self.down(link, mac)
            }
            Kind::Macsec => {
                self.tags.push(Tag::Macsec);
                self.down(link, mac)
            }
            Kind::Bond | Kind::Team => self.bond(link, mac),
            // It looks up once more, in its own table.
            Kind::Vrf => {
                self.bound = Some(key);
                Ok(At::Route { netns: key.netns, from: None })
            }
            kind if PACKS.contains(&kind.word()) => self.pack(link, mac),
            Kind::Wireguard => self.encrypt(link),
            Kind::Other(word) if word == "xfrm" => {
                Err(format!("IPsec policies, which vnettop does not read, decide where {name} sends packets"))
            }
            Kind::Dummy => Err(format!("the packets stop at {name}: a dummy drops everything")),
            Kind::Tun | Kind::Tap => self.enter_program(link, mac),
            Kind::Physical | Kind::Virtio => Err(format!("the packets exit this machine through {name}")),
            kind => Err(format!("{name} is of kind {}, which vnettop cannot follow", kind.word())),
        }
    }

    /// A link has received the frame: its switch, its bridge or bond, what stands on it, or the namespace takes it.
    pub(super) fn receive(&mut self, key: LinkKey, mac: Option<Mac>) -> Result<At, String> {
        let link = self.seen(key)?;
        self.redirect(link)?;
        if let Some(port) = self.map.switch_port(key) {
            return self.switch(port, mac);
        }
        if matches!(link.kind, Kind::Macvtap | Kind::Ipvtap) {
            return match self.lookups.program(key) {
                Some(program) => self.through_guest(link, &program, mac),
                None => Err(format!("the packets go from {} to {}", link.name, self.whose(key))),
            };
        }
        if let Some(above) = self.tagged(key) {
            self.tags.pop();
            return self.come_in_by(above, HopBy::Upper, mac);
        }
        match self.map.master(link) {
            Some(bridge) if bridge.kind == Kind::Bridge => return self.bridge(bridge, mac),
            Some(bond) if is_bond(bond) => return self.come_in_by(bond.key(), HopBy::Upper, mac),
            // The namespace routes it, by the table of the vrf.
            Some(vrf) if vrf.kind == Kind::Vrf => {
                self.push(vrf.key(), HopWay::Received, HopBy::Upper)?;
                return Ok(At::Route { netns: key.netns, from: Some(key) });
            }
            // Its own database is the only one that knows.
            Some(_) if link.slave_kind.as_deref() == Some("openvswitch") => {
                return Err(format!("{} is a port of Open vSwitch, bridge unknown: try --ovs-socket", link.name));
            }
            _ => {}
        }
        match self.taker(key, mac) {
            Some(above) => self.come_in_by(above, HopBy::Upper, mac),
            None => Ok(At::Route { netns: key.netns, from: Some(key) }),
        }
    }

    fn seen(&self, key: LinkKey) -> Result<&'a LinkFacts, String> {
        let unseen = || format!("link {} of namespace {} is not visible", key.ifindex.0, key.netns);
        self.map.link(key).ok_or_else(unseen)
    }

    /// The vlan on a link whose number is on the frame, or the macsec.
    fn tagged(&mut self, lower: LinkKey) -> Option<LinkKey> {
        let tag = self.tags.last().copied()?;
        let mut above = self.map.upon(lower);
        let found = above.find(|above| match tag {
            Tag::Vlan(number) => above.kind == Kind::Vlan && self.lookups.detail(above.key()).vlan == Some(number),
            Tag::Macsec => above.kind == Kind::Macsec,
        });
        found.map(LinkFacts::key)
    }

    /// The macvlan or ipvlan on a link that takes the frame.
    fn taker(&mut self, lower: LinkKey, mac: Option<Mac>) -> Option<LinkKey> {
        let found = self.map.upon(lower).find(|link| match link.kind {
            Kind::Macvlan | Kind::Macvtap => mac.is_some() && self.lookups.detail(link.key()).mac == mac,
            _ if is_ipvlan(link) => self.is_home(link.netns),
            _ => false,
        });
        found.map(LinkFacts::key)
    }

    /// To the link below.
    fn down(&mut self, link: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        let lower = link.lower.and_then(PeerRef::key).filter(|&lower| self.map.link(lower).is_some());
        let lower =
            lower.ok_or_else(|| format!("the link below {} is in a namespace that is not visible", link.name))?;
        self.leave_by(lower, HopBy::Lower, mac)
    }

    /// To the other end of a pair.
    fn across(&mut self, link: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        let peer = link.peer.and_then(PeerRef::key).filter(|&peer| self.map.link(peer).is_some());
        let peer =
            peer.ok_or_else(|| format!("the other end of {} is in a namespace that is not visible", link.name))?;
        self.come_in_by(peer, HopBy::Peer, mac)
    }

    /// From one macvlan to another on the same link a packet goes at once, and the link below counts nothing of it.
    fn macvlan(&mut self, link: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        let own = link.key();
        let bridges = self.lookups.detail(own).macvlan_mode == Some(MACVLAN_BRIDGE);
        if let (true, Some(lower), Some(_)) = (bridges, link.lower.and_then(PeerRef::key), mac) {
            let mut beside = self.map.upon(lower).map(LinkFacts::key).filter(|&other| other != own);
            let takes = |&other: &LinkKey| {
                let detail = self.lookups.detail(other);
                detail.mac == mac && detail.macvlan_mode == Some(MACVLAN_BRIDGE)
            };
            if let Some(other) = beside.find(takes) {
                return self.come_in_by(other, HopBy::Upper, mac);
            }
        }
        self.down(link, mac)
    }

    /// From one ipvlan to another on the same link a packet goes at once; ipvlan knows its neighbours by their IP addresses.
    fn ipvlan(&mut self, link: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        if let Some(lower) = link.lower.and_then(PeerRef::key) {
            let mut beside = self.map.upon(lower).filter(|other| is_ipvlan(other));
            if let Some(other) = beside.find(|other| other.key() != link.key() && self.is_home(other.netns)) {
                return self.come_in_by(other.key(), HopBy::Upper, mac);
            }
        }
        self.down(link, mac)
    }

    fn bond(&mut self, bond: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        let active = self.lookups.detail(bond.key()).active_port.map(|port| bond.beside(port));
        // A port without a carrier is not used.
        let ports = self.map.ports(bond.key()).filter(|port| port.state == LinkState::Up);
        let ports: Vec<LinkKey> = ports.map(LinkFacts::key).collect();
        let only = if let [only] = ports[..] { Some(only) } else { None };
        let Some(port) = active.or(only) else {
            let (name, count) = (&bond.name, ports.len());
            return Err(match (count, bond.bond_mode) {
                (0, _) => format!("{name} has no port that is up"),
                (_, Some(BROADCAST)) => format!("{name} sends each packet through all of its {count} ports"),
                _ => format!("{name} sends through one of its {count} ports; which is not known"),
            });
        };
        self.leave_by(port, HopBy::Lower, mac)
    }
}

/// Links that know each other by their IP addresses.
fn is_ipvlan(link: &LinkFacts) -> bool {
    matches!(link.kind, Kind::Ipvlan | Kind::Ipvtap)
}

/// Links that join others to one.
fn is_bond(link: &LinkFacts) -> bool {
    matches!(link.kind, Kind::Bond | Kind::Team)
}
