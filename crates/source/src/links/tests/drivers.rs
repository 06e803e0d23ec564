//! What a kernel without ethtool's family tells of links, by asking their drivers, is what this one tells by netlink.

use super::super::LinkReader;
use crate::sandbox::{inside, ip};
use std::io;
use std::sync::Arc;
use vnettop_sample::{Kind, LinkFacts};

/// The speed of the link of that name.
fn claim(links: &[Arc<LinkFacts>], name: &str) -> Option<u32> {
    links.iter().find(|link| link.name == name).unwrap().speed_mbps
}

#[test]
fn claims_by_drivers_are_those_of_netlink() {
    inside("kn-claims", || {
        for words in ["add veth0 type veth peer name veth1", "add br0 type bridge", "set veth1 master br0"] {
            assert!(ip(&format!("link {words}")), "{words}");
        }
        assert!(ip("tuntap add tun0 mode tun") && ip("tuntap add tap0 mode tap"), "a tun and a tap");
        assert!(["lo", "veth0", "veth1", "br0"].iter().all(|link| ip(&format!("link set {link} up"))));
        let mut by_netlink = LinkReader::open_elsewhere().unwrap();
        let mut by_drivers = LinkReader::open_with("", Err(io::ErrorKind::NotFound.into())).unwrap();
        assert_eq!(by_drivers.links(), by_netlink.links(), "every fact is the same");
        let links = by_drivers.links();
        let claims = ["lo", "veth0", "br0"].map(|name| claim(&links, name));
        assert_eq!(claims, [None, Some(10_000), Some(10_000)], "lo says nothing, a bridge what its port says");
        assert!(claim(&links, "tun0").is_some() && claim(&links, "tap0").is_some(), "tun and tap say one");
        assert!(!links.iter().any(|link| matches!(link.kind, Kind::Physical | Kind::Virtio)), "none is a device");
        assert_eq!(by_drivers.problems(), [], "nothing is missing");
        assert!(ip("link set veth1 nomaster") && ip("link add veth2 type veth peer name veth3"));
        let (drivers, netlink) = (by_drivers.read().unwrap().links, by_netlink.read().unwrap().links);
        assert_eq!(drivers, netlink, "and so they are when links change");
        assert_eq!(claim(&drivers, "br0"), None, "a bridge without ports says nothing");
    });
}
