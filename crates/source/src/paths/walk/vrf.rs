//! Vrfs: links with a routing table of their own, for what comes in through their ports and for sockets that are bound to
//! them. A vrf counts what its ports receive, and of what is sent only what goes to itself (`vrf_ip_rcv`, `vrf_xmit`).

use super::{At, Walk};
use crate::paths::lookups::{NetworkQueries, Packet, PacketOrigin, any_port, unspecified};
use vnettop_sample::{HopBy, HopWay, Kind, LinkFacts, LinkKey};

impl<L: NetworkQueries> Walk<'_, L> {
    /// The vrf that the sender's socket is bound to: the one whose table has the source as an own address; `None` when the
    /// namespace's main tables have it.
    pub(super) fn vrf_of_sender(&mut self, netns: u64) -> Option<LinkKey> {
        let (map, source) = (self.map, self.packet.from.ip());
        let vrfs = || map.all().filter(|link| link.netns == netns && link.kind == Kind::Vrf).map(LinkFacts::key);
        if source.is_unspecified() || vrfs().next().is_none() {
            return None;
        }
        let own = Packet { from: any_port(unspecified(source)), to: any_port(source), ..self.packet };
        if self.is_own(netns, &own, PacketOrigin::Own) {
            return None;
        }
        vrfs().find(|vrf| self.is_own(netns, &own, PacketOrigin::By(vrf.ifindex)))
    }

    /// A packet that leaves through a vrf's port passes the vrf.
    pub(super) fn out_of_vrf(&mut self, link: LinkKey) -> Result<HopBy, String> {
        let vrf = self.map.link(link).and_then(|port| self.map.master(port));
        let Some(vrf) = vrf.filter(|vrf| vrf.kind == Kind::Vrf) else { return Ok(HopBy::Route) };
        // A packet that the vrf received is routed on.
        if self.path.hops.iter().any(|hop| hop.link == vrf.key()) {
            return Ok(HopBy::Route);
        }
        self.push(vrf.key(), HopWay::Passed, HopBy::Route)?;
        Ok(HopBy::Lower)
    }

    /// The address is one of the namespace's own. A packet to an address of a vrf goes through the vrf, as others go through `lo`.
    pub(super) fn here(&mut self, netns: u64, from: Option<LinkKey>, bound: Option<LinkKey>) -> Result<At, String> {
        let vrf = bound.and_then(|bound| self.map.link(bound)).filter(|link| link.kind == Kind::Vrf);
        let Some(vrf) = vrf.filter(|_| from.is_none()) else { return Ok(At::Arrived { netns, from }) };
        self.push(vrf.key(), HopWay::Sent, HopBy::Local)?;
        Ok(At::Arrived { netns, from: Some(vrf.key()) })
    }
}
