//! Into a tunnel and out at its far end; the outer packet walks like any other in between.

use super::program::TUNS;
use super::{At, Inner, Walk};
use crate::paths::lookups::{Mac, NetworkQueries, Packet, Tunnel, any_port, unspecified};
use crate::paths::map::SwitchPort;
use std::net::{IpAddr, SocketAddr};
use vnettop_sample::{LinkFacts, LinkKey, PeerRef, Proto};

/// Links that pack what they are given into packets to an address of their configuration.
pub(super) const PACKS: [&str; 13] = [
    "vxlan",
    "geneve",
    "gre",
    "gretap",
    "erspan",
    "ip6gre",
    "ip6gretap",
    "ip6erspan",
    "ipip",
    "sit",
    "ip6tnl",
    "vti",
    "vti6",
];

/// Where a tunnel leads, as a link or a port of a switch has it.
#[derive(Debug, Clone)]
pub(super) struct TunnelEnd {
    /// The tunnel's own link.
    pub through: LinkKey,
    pub kind: String,
    pub tunnel: Tunnel,
    pub remote: IpAddr,
    /// Namespace in which the outer packets go.
    pub outside: u64,
}

impl<L: NetworkQueries> Walk<'_, L> {
    /// A tunnel link has been given the frame.
    pub(super) fn pack(&mut self, link: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        let (name, detail) = (&link.name, self.lookups.detail(link.key()));
        let tunnel = detail.tunnel.ok_or_else(|| format!("the configuration of {name} cannot be read"))?;
        let learnt = mac.and_then(|mac| self.lookups.remote(link.key(), mac));
        let remote = learnt.or(tunnel.remote).filter(|remote| !remote.is_unspecified());
        let remote = remote.ok_or_else(|| format!("{name} has no far end for the destination's MAC address"))?;
        if remote.is_multicast() {
            return Err(format!("{name} floods to {remote}: it has no FDB entry for the destination"));
        }
        let outside = detail.outside;
        let outside =
            outside.ok_or_else(|| format!("the packets of {name} continue in a namespace that is not visible"))?;
        let far = TunnelEnd { through: link.key(), kind: link.kind.word().to_owned(), tunnel, remote, outside };
        // A tunnel that was made upon a link sends through that link alone.
        self.bound = link.lower.and_then(PeerRef::key).filter(|upon| upon.netns == outside);
        Ok(self.outer(far, mac))
    }

    /// The outer packet goes on.
    pub(super) fn outer(&mut self, far: TunnelEnd, mac: Option<Mac>) -> At {
        let from = far.tunnel.local.unwrap_or(unspecified(far.remote));
        let to = SocketAddr::new(far.remote, far.tunnel.port);
        let (packet, key) = (self.packet, far.tunnel.key);
        // vxlan and geneve are routed by the inner packet's mark (`udp_tunnel_dst_lookup`), other tunnels by a mark of their own.
        let mark = if matches!(&*far.kind, "vxlan" | "geneve") { packet.mark } else { Some(0) };
        let inner = Inner { packet, mac, kind: far.kind, key, through: far.through, sealed: None };
        self.wrap(inner, Packet { proto: Proto::Udp, from: any_port(from), to, mark }, far.outside)
    }

    /// The outer packet is at its address: the tunnel of that kind and key takes the inner one out.
    pub(super) fn unpack(&mut self, netns: u64, inner: &Inner) -> Result<At, String> {
        if let Some(sealed) = &inner.sealed {
            return self.decrypt(netns, inner, sealed);
        }
        if TUNS.contains(&&*inner.kind) {
            return self.leave_program(netns, inner);
        }
        let far = self.far_port(netns, inner).or_else(|| self.far_link(netns, inner)).ok_or_else(|| {
            let (kind, key, at) = (&inner.kind, inner.key, self.packet.to.ip());
            format!("at {at} no {kind} with key {key} is visible that decapsulates the packets")
        })?;
        self.unwrap(inner, far)
    }

    /// The port of a switch that is the tunnel of `inner`, preferably one that leads back to the sender.
    fn far_port(&self, netns: u64, inner: &Inner) -> Option<LinkKey> {
        let sender = self.packet.from.ip().to_string();
        let fits = |at: &SwitchPort<'_>| {
            let key = at.port.key.as_deref();
            let same_key = key == Some("flow") || key.map_or(Some(0), |key| key.parse().ok()) == Some(inner.key);
            at.switch.netns == netns && same_key && same_kind(at.port.kind.as_ref(), &inner.kind)
        };
        let links = |back: bool| {
            let sender = &sender;
            let ports = self.map.switch_ports().filter(fits);
            let ports = ports.filter(move |at| !back || at.port.remote_ip.as_deref() == Some(sender.as_str()));
            ports.filter_map(|at| at.port.link).find(|&link| link != inner.through)
        };
        links(true).or_else(|| links(false))
    }

    /// The kernel's tunnel whose outer packets arrive in that namespace, preferably one that leads back to the sender. Its link
    /// may be in another namespace.
    fn far_link(&mut self, netns: u64, inner: &Inner) -> Option<LinkKey> {
        let (sender, local) = (self.packet.from.ip(), self.packet.to.ip());
        let links = self.map.all().filter(|link| same_kind(link.kind.word(), &inner.kind)).map(LinkFacts::key);
        let mut found = None;
        for link in links.filter(|&link| link != inner.through) {
            let detail = self.lookups.detail(link);
            let Some(tunnel) = detail.tunnel.filter(|_| detail.outside == Some(netns)) else { continue };
            if tunnel.key != inner.key || tunnel.local.is_some_and(|own| own != local) {
                continue;
            }
            if tunnel.remote == Some(sender) {
                return Some(link);
            }
            found = found.or(Some(link));
        }
        found
    }
}

/// Kernel and Open vSwitch name a tunnel alike, but for gre, which is `gretap` in the kernel where it carries Ethernet.
pub(super) fn same_kind(one: &str, other: &str) -> bool {
    let plain = |kind| if kind == "gretap" { "gre" } else { kind };
    plain(one) == plain(other)
}
