//! Through a guest that holds several taps or macvtaps: it takes the frames from one and gives them to another. Which one, nobody
//! tells; the segment behind it does, where the receiver's own link is on it. Nothing is guessed: a guest that may keep the
//! packets is the end of the path.

use super::ovs::MOST_DEPTH;
use super::{At, Walk};
use crate::paths::lookups::{DeviceProgram, Mac, NetworkQueries, Packet, PacketOrigin, RouteResult, any_port};
use vnettop_sample::{Carrier, CarrierKind, HopBy, Kind, LinkFacts, LinkKey, PeerRef};

impl<L: NetworkQueries> Walk<'_, L> {
    /// A program takes the packets over where the path is now.
    pub(super) fn carried(&mut self, pid: u32, name: &str, kind: CarrierKind) {
        let at = self.path.hops.len();
        let is_same = |last: &Carrier| (last.pid, last.kind) == (pid, kind) && last.at + 1 >= at;
        if !self.path.carriers.last().is_some_and(is_same) {
            self.path.carriers.push(Carrier { pid, name: name.to_owned(), kind, at });
        }
    }

    /// The guest has the frame from one of its links.
    pub(super) fn through_guest(
        &mut self,
        link: &LinkFacts,
        program: &DeviceProgram,
        mac: Option<Mac>,
    ) -> Result<At, String> {
        self.carried(program.pid, &program.name, CarrierKind::Guest);
        let mut others = self.lookups.held_beside(link.key(), program);
        // What shares the segment that the frame came by leads nowhere else.
        others.retain(|&other| self.map.link(other).is_some_and(is_device) && !self.shares_segment(link, other));
        // A guest that bridges leaves the address as it is; one that routes sends to the receiver's.
        let bridged = mac.and_then(|mac| self.only_leading(&others, mac));
        let found = match bridged {
            None if !others.is_empty() => self.mac_of_receiver().and_then(|mac| self.only_leading(&others, mac)),
            bridged => bridged,
        };
        if let Some((other, mac)) = found {
            self.packet = Packet { mark: Some(0), ..self.packet };
            return self.leave_guest(other, mac);
        }
        let beside = match others.len() {
            0 => String::new(),
            1 => format!(", which holds {} too: whether it sends them on is not known", self.map.name(others[0])),
            count => format!(", which holds {count} more links: where it sends them is not known"),
        };
        Err(format!("the packets exit through {}, to {}{beside}", link.name, program.name))
    }

    /// The only one of these links that leads to that address, with the address.
    fn only_leading(&mut self, links: &[LinkKey], mac: Mac) -> Option<(LinkKey, Mac)> {
        let leading: Vec<LinkKey> = links.iter().copied().filter(|&link| self.leads_to(link, mac)).collect();
        let [only] = leading[..] else { return None };
        Some((only, mac))
    }

    /// Both links are ports of one bridge or stand on one link.
    fn shares_segment(&self, one: &LinkFacts, other: LinkKey) -> bool {
        let Some(other) = self.map.link(other) else { return true };
        let same_master = one.netns == other.netns && one.master.is_some() && one.master == other.master;
        let lower = |link: &LinkFacts| link.lower.and_then(PeerRef::key);
        same_master || lower(one).is_some() && lower(one) == lower(other)
    }

    /// What a guest writes to a tap the tap receives; what it writes to a macvtap the macvtap sends.
    fn leave_guest(&mut self, link: LinkKey, mac: Mac) -> Result<At, String> {
        if self.map.link(link).is_some_and(is_macvtap) {
            self.leave_by(link, HopBy::Guest, Some(mac))
        } else {
            self.come_in_by(link, HopBy::Guest, Some(mac))
        }
    }

    /// The link by which the receiver answers has this MAC address: on a segment that it shares with the guest, the packets are
    /// sent to it. `None` where several namespaces have the destination's address.
    fn mac_of_receiver(&mut self) -> Option<Mac> {
        let to = self.packet.to;
        let mut spaces: Vec<u64> =
            self.held.iter().filter(|(_, local)| *local == to).map(|(netns, _)| *netns).collect();
        spaces.sort_unstable();
        spaces.dedup();
        if spaces.is_empty() {
            spaces = self.map.namespaces().collect();
            spaces.retain(|&netns| self.is_home(netns));
        }
        let [netns] = spaces[..] else { return None };
        let back = Packet { from: any_port(to.ip()), to: self.packet.from, mark: Some(0), ..self.packet };
        let Ok(RouteResult::Out { link, .. }) = self.lookups.route(netns, &back, PacketOrigin::Own) else {
            return None;
        };
        self.lookups.detail(LinkKey { netns, ifindex: link }).mac
    }

    /// What a guest sends by this link to that address arrives somewhere on its segment.
    fn leads_to(&mut self, link: LinkKey, mac: Mac) -> bool {
        let Some(facts) = self.map.link(link) else { return false };
        if !is_macvtap(facts) {
            return self.is_behind(link, mac, MOST_DEPTH);
        }
        let Some(lower) = facts.lower.and_then(PeerRef::key) else { return false };
        let beside: Vec<LinkKey> = self.map.upon(lower).map(LinkFacts::key).filter(|&other| other != link).collect();
        let peer = self.map.link(lower).and_then(|lower| lower.peer).and_then(PeerRef::key);
        beside.into_iter().any(|other| self.lookups.detail(other).mac == Some(mac))
            || peer.is_some_and(|peer| self.is_behind(peer, mac, MOST_DEPTH))
    }
}

fn is_device(link: &LinkFacts) -> bool {
    link.kind == Kind::Tap || is_macvtap(link)
}

fn is_macvtap(link: &LinkFacts) -> bool {
    matches!(link.kind, Kind::Macvtap | Kind::Ipvtap)
}
