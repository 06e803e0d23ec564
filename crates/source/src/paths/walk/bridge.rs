//! Through a bridge, by its forwarding table. A bridge counts what it itself sends and receives and nothing that it
//! forwards from port to port (`br_pass_frame_up`, `br_dev_xmit`; measured on Linux 6.18).

use super::ovs::MOST_DEPTH;
use super::{At, Walk};
use crate::paths::lookups::{Bridged, Mac, NetworkQueries};
use vnettop_sample::{HopBy, HopWay, LinkFacts, LinkKey, PeerRef};

impl<L: NetworkQueries> Walk<'_, L> {
    /// A bridge forwards a packet of its own namespace, which it counted as sent when it got it.
    pub(super) fn forward(&mut self, bridge: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        match self.port_for(bridge, mac, None)? {
            Bridged::Here => Err(format!("{} has the destination's MAC address itself", bridge.name)),
            Bridged::Port(port) => self.leave_by(bridge.beside(port), HopBy::Fdb, mac),
        }
    }

    /// A port of a bridge has received the frame.
    pub(super) fn bridge(&mut self, bridge: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        let came_by = self.path.hops.last().map(|hop| hop.link);
        match self.port_for(bridge, mac, came_by)? {
            Bridged::Here => self.come_in_by(bridge.key(), HopBy::Bridge, mac),
            Bridged::Port(port) => {
                self.push(bridge.key(), HopWay::Passed, HopBy::Bridge)?;
                self.leave_by(bridge.beside(port), HopBy::Fdb, mac)
            }
        }
    }

    /// Where a bridge has the destination: as it has learnt, or else the port behind which that MAC address is seen.
    fn port_for(&mut self, bridge: &LinkFacts, mac: Option<Mac>, came_by: Option<LinkKey>) -> Result<Bridged, String> {
        let name = &bridge.name;
        let mac =
            mac.ok_or_else(|| format!("the destination's MAC address is not known, so neither is the port of {name}"))?;
        if let Some(bridged) = self.lookups.bridged(bridge.key(), mac) {
            return Ok(bridged);
        }
        if self.lookups.detail(bridge.key()).mac == Some(mac) {
            return Ok(Bridged::Here);
        }
        let mut ports = self.map.ports(bridge.key()).filter(|port| Some(port.key()) != came_by);
        let has = |port: &&LinkFacts| {
            port.peer.and_then(PeerRef::key).is_some_and(|peer| self.is_behind(peer, mac, MOST_DEPTH))
        };
        let behind = ports.find(has).map(|port| Bridged::Port(port.ifindex));
        behind.ok_or_else(|| format!("{name} has not learnt behind which port the destination is"))
    }
}
