//! Through wireguard: the peer whose allowed addresses have the destination gets the packet at its endpoint; what comes out at
//! the far end is the link that has this peer's key. The outer packets go in the namespace in which a wireguard was made,
//! wherever it was moved.

use super::{At, Inner, Walk};
use crate::paths::lookups::{NetworkQueries, Packet, PublicKey, Wireguard, unspecified};
use std::net::SocketAddr;
use std::sync::Arc;
use vnettop_sample::{Kind, LinkFacts, LinkKey, Proto};

/// Keys of the two wireguards between which a packet was encrypted.
#[derive(Debug, Clone)]
pub(super) struct WireguardHop {
    from: PublicKey,
    to: PublicKey,
}

impl<L: NetworkQueries> Walk<'_, L> {
    /// A wireguard has been given the packet.
    pub(super) fn encrypt(&mut self, link: &LinkFacts) -> Result<At, String> {
        let name = &link.name;
        let device = self.lookups.wireguard(link.key())?;
        let from = device.key.ok_or_else(|| format!("{name} has no private key, so it sends nothing"))?;
        let to = self.packet.to.ip();
        let peer = device.peer_of(to).ok_or_else(|| format!("no peer of {name} allows {to}"))?;
        let endpoint = peer.endpoint;
        let endpoint =
            endpoint.ok_or_else(|| format!("the endpoint of the peer of {name} that allows {to} is not known yet"))?;
        let outside = self.made_in(link, &device)?;
        let (packet, through) = (self.packet, link.key());
        let sealed = Some(WireguardHop { from, to: peer.key });
        let inner = Inner { packet, mac: None, kind: Kind::Wireguard.word().to_owned(), key: 0, through, sealed };
        let from = SocketAddr::new(unspecified(endpoint.ip()), device.port);
        Ok(self.wrap(inner, Packet { proto: Proto::Udp, from, to: endpoint, mark: Some(device.mark) }, outside))
    }

    /// The namespace in which a wireguard was made, which has its socket; its link does not say which. It is the link's own when a
    /// wireguard's socket is on this port there, and else the one with such a socket that no link there has.
    fn made_in(&mut self, link: &LinkFacts, device: &Wireguard) -> Result<u64, String> {
        let (name, port) = (&link.name, device.port);
        if port == 0 {
            return Err(format!("{name} has no port yet: it was never up"));
        }
        let unknown = |why: String| format!("{name} sends in an unknown namespace, the one it was made in: {why}");
        if self.lookups.listens(link.netns, port).map_err(unknown)? {
            return Ok(link.netns);
        }
        let mut others: Vec<u64> = self.map.namespaces().filter(|&netns| netns != link.netns).collect();
        others.retain(|&netns| self.lookups.listens(netns, port) == Ok(true) && !self.has_own(netns, port));
        match others[..] {
            [one] => Ok(one),
            [] => Err(format!("{name} was made, and sends, in a namespace that is not visible")),
            _ => Err(format!(
                "{} namespaces may be the one {name} sends in: each has a wireguard on port {port}",
                others.len()
            )),
        }
    }

    /// A wireguard of that namespace has this port itself.
    fn has_own(&mut self, netns: u64, port: u16) -> bool {
        let mut own = self.wireguards().into_iter().filter(|link| link.netns == netns);
        own.any(|link| self.lookups.wireguard(link).is_ok_and(|device| device.port == port))
    }

    fn wireguards(&self) -> Vec<LinkKey> {
        self.map.all().filter(|link| link.kind == Kind::Wireguard).map(LinkFacts::key).collect()
    }

    /// The outer packet is at its address: the wireguard that it is for takes the inner one out, if it allows who sends it.
    pub(super) fn decrypt(&mut self, netns: u64, inner: &Inner, sealed: &WireguardHop) -> Result<At, String> {
        let at = self.packet.to;
        let (far, device) = self.opener(netns, inner, sealed).map_err(|why| {
            let unseen = format!("no wireguard with the peer's key is visible at {at} to decapsulate the packets");
            why.map_or(unseen.clone(), |why| format!("{unseen}; {why}"))
        })?;
        let source = inner.packet.from.ip();
        if !source.is_unspecified() && device.peer_of(source).map(|peer| peer.key) != Some(sealed.from) {
            return Err(format!(
                "{} drops packets from {source}: that address is not among its peer's allowed IPs",
                self.map.name(far)
            ));
        }
        self.unwrap(inner, far)
    }

    /// The wireguard with that key that listens at the outer packet's address, or why one could not be asked.
    fn opener(
        &mut self,
        netns: u64,
        inner: &Inner,
        sealed: &WireguardHop,
    ) -> Result<(LinkKey, Arc<Wireguard>), Option<String>> {
        let mut unasked = None;
        for link in self.wireguards().into_iter().filter(|&link| link != inner.through) {
            let device = match self.lookups.wireguard(link) {
                Ok(device) => device,
                Err(why) => {
                    unasked = unasked.or(Some(why));
                    continue;
                }
            };
            if device.key != Some(sealed.to) || device.port != self.packet.to.port() {
                continue;
            }
            let Some(facts) = self.map.link(link) else { continue };
            match self.made_in(facts, &device) {
                Ok(made) if made == netns => return Ok((link, device)),
                Ok(_) => {}
                Err(why) => unasked = Some(why),
            }
        }
        Err(unasked)
    }
}
