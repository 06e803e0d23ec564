//! `RTM_GETLINK` of one link: its MAC address and the configuration of what it is, which the facts leave out.

use crate::netlink::message::{Message, attribute, i32_at, text, u16_at, u32_at};
use crate::paths::kernel::route::address;
use crate::paths::lookups::{Detail, Tunnel};
use std::net::IpAddr;
use vnettop_sample::Ifindex;

/// `struct ifinfomsg`, bytes.
const FIXED: usize = 16;
/// `IFLA_XDP_ATTACHED`; 0 is `XDP_ATTACHED_NONE`.
const XDP_ATTACHED: u16 = 2;
/// Well-known ports, where the link says none.
const VXLAN: u16 = 8472;
const GENEVE: u16 = 6081;

/// What the answer says, and the number of the namespace that its lower side is in; none where that is its own.
pub(super) fn parse(message: &Message<'_>) -> Option<(Detail, Option<i32>)> {
    let attributes = message.body.get(FIXED..).filter(|_| message.kind == libc::RTM_NEWLINK)?;
    let info = attribute(attributes, libc::IFLA_LINKINFO).unwrap_or_default();
    let kind = attribute(info, libc::IFLA_INFO_KIND).map(text).unwrap_or_default();
    let data = attribute(info, libc::IFLA_INFO_DATA).unwrap_or_default();
    let mac = attribute(attributes, libc::IFLA_ADDRESS);
    let mut detail = Detail {
        mac: mac.filter(|mac| mac.len() == 6).and_then(|mac| mac.first_chunk().copied()),
        tunnel: tunnel(kind, data),
        has_xdp: attribute(attributes, libc::IFLA_XDP)
            .and_then(|xdp| attribute(xdp, XDP_ATTACHED)?.first().copied())
            .is_some_and(|attached| attached != 0),
        ..Detail::default()
    };
    let number = |at| attribute(data, at);
    match kind {
        // IFLA_VLAN_ID, IFLA_MACVLAN_MODE, IFLA_BOND_ACTIVE_SLAVE
        b"vlan" => detail.vlan = number(1).and_then(|value| u16_at(value, 0)),
        b"macvlan" | b"macvtap" => detail.macvlan_mode = number(1).and_then(|value| u32_at(value, 0)),
        b"bond" => detail.active_port = number(2).and_then(|value| u32_at(value, 0)).filter(|&at| at != 0).map(Ifindex),
        _ => {}
    }
    Some((detail, attribute(attributes, libc::IFLA_LINK_NETNSID).and_then(|value| i32_at(value, 0))))
}

/// `IFLA_VXLAN_*`, `IFLA_GENEVE_*`, `IFLA_GRE_*`, `IFLA_VTI_*`, `IFLA_IPTUN_*`.
fn tunnel(kind: &[u8], data: &[u8]) -> Option<Tunnel> {
    let host = |at| attribute(data, at).and_then(|value| u32_at(value, 0));
    let network = |at| host(at).map(u32::from_be);
    let ip = |at| attribute(data, at).and_then(address).filter(|ip: &IpAddr| !ip.is_unspecified());
    let port = |at| attribute(data, at).and_then(|value| u16_at(value, 0)).map(u16::from_be);
    match kind {
        b"vxlan" => Some(Tunnel {
            key: host(1)?,
            remote: ip(2).or_else(|| ip(16)),
            local: ip(4).or_else(|| ip(17)),
            port: port(15).unwrap_or(VXLAN),
        }),
        b"geneve" => Some(Tunnel {
            key: host(1)?,
            remote: ip(2).or_else(|| ip(7)),
            local: None,
            port: port(5).unwrap_or(GENEVE),
        }),
        b"gre" | b"gretap" | b"erspan" | b"ip6gre" | b"ip6gretap" | b"ip6erspan" => {
            Some(Tunnel { key: network(5).unwrap_or(0), remote: ip(7), local: ip(6), port: 0 })
        }
        b"vti" | b"vti6" => Some(Tunnel { key: network(3).unwrap_or(0), remote: ip(5), local: ip(4), port: 0 }),
        b"ipip" | b"sit" | b"ip6tnl" => Some(Tunnel { key: 0, remote: ip(3), local: ip(2), port: 0 }),
        _ => None,
    }
}
