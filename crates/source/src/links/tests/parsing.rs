//! What messages mean, captured ones first. The captures are little-endian; messages put together here are native.

use super::super::claimed_speed::claim;
use super::super::counters;
use super::super::facts::MessageNamespace;
use super::super::facts::{Described, LinkChange, SYSFS, change};
use super::fixture;
use super::kernel::{ifinfo, link, message};
use crate::netlink::generic;
use crate::netlink::message::messages;
use std::path::Path;
use vnettop_sample::{Ifindex, Kind, LinkFacts, LinkState, PeerRef, PortState};

fn described(bytes: &[u8], sysfs: &Path) -> Option<Described> {
    match change(
        &messages(bytes).next()?,
        &MessageNamespace { sysfs: sysfs.to_owned(), ..MessageNamespace::default() },
    )? {
        LinkChange::Is(described) => Some(*described),
        LinkChange::Gone(_) | LinkChange::Port(..) => None,
    }
}

fn facts(bytes: &[u8]) -> LinkFacts {
    described(bytes, Path::new("/nonexistent")).expect("the message describes a link").facts
}

/// Nested attributes.
fn nest(attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, value) in attributes {
        bytes.extend_from_slice(&u16::try_from(value.len() + 4).unwrap().to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

fn info(kind: &str, data: &[(u16, &[u8])]) -> Vec<u8> {
    nest(&[(1, &[kind.as_bytes(), b"\0"].concat()), (2, &nest(data))])
}

#[cfg(target_endian = "little")]
#[test]
fn captured_links_are_what_they_were_made_as() {
    let here = |ifindex| Some(PeerRef { netnsid: None, netns: Some(0), ifindex: Ifindex(ifindex) });
    let links = [
        ("lo", Kind::Loopback, None, None, None, LinkState::Unknown),
        ("pair0", Kind::Veth, here(2), None, None, LinkState::Up),
        ("port0", Kind::Veth, here(4), None, Some(6), LinkState::Up),
        ("br0", Kind::Bridge, None, None, None, LinkState::Down),
        ("tap1", Kind::Tap, None, None, Some(6), LinkState::Down),
        ("tap0", Kind::Tap, None, None, None, LinkState::Down),
        ("tun0", Kind::Tun, None, None, None, LinkState::Down),
        ("mac0", Kind::Macvlan, None, here(3), None, LinkState::Up),
        ("mtap0", Kind::Macvtap, None, here(3), None, LinkState::Down),
        ("vx0", Kind::Vxlan, None, here(3), None, LinkState::Unknown),
        ("vx1", Kind::Vxlan, None, None, None, LinkState::Down),
        ("fb0", Kind::Ifb, None, None, None, LinkState::Unknown),
    ];
    for (name, kind, peer, lower, master, state) in links {
        let link = facts(&fixture(&format!("newlink-{name}")));
        assert_eq!((link.name.as_str(), &link.kind), (name, &kind), "{name} is of its kind");
        assert_eq!((link.peer, link.lower), (peer, lower), "{name} knows the link behind it");
        assert_eq!(link.master, master.map(Ifindex), "{name} knows its bridge");
        assert_eq!(link.slave_kind.as_deref(), master.map(|_| "bridge"), "{name} knows what it is to it");
        assert_eq!(link.state, state, "the state of {name}");
        let alias = (name == "pair0").then_some("uplink");
        assert_eq!(link.alias.as_deref(), alias, "the alias of {name}");
    }
    assert_eq!(facts(&fixture("newlink-lo")).mtu, 65536, "an MTU is in bytes");
    let [lo, pair] = ["lo", "pair0"].map(|name| facts(&fixture(&format!("newlink-{name}"))));
    assert_eq!(
        (lo.tx_queues, pair.tx_queues, pair.rx_queues),
        (Some(1), Some(2), Some(2)),
        "one for each core of a pair"
    );
}

#[cfg(target_endian = "little")]
#[test]
fn captured_counters_are_read_row_by_row() {
    let datagram = fixture("getstats-0");
    let rows: Vec<_> = messages(&datagram).filter_map(|message| counters::row(&message, 0, 7)).collect();
    assert_eq!(rows.iter().map(|row| row.ifindex.0).collect::<Vec<_>>(), (1..=14).collect::<Vec<_>>(), "a row a link");
    let (sender, receiver) = (rows[2], rows[1]);
    assert!(sender.tx_packets >= 10, "ten datagrams left one end: {sender:?}");
    // 100 bytes of payload, 8 of UDP, 20 of IP, 14 of Ethernet.
    assert!(sender.tx_bytes >= 10 * 142 && sender.tx_bytes < 20 * 142, "with their headers: {sender:?}");
    let entered = (receiver.rx_packets, receiver.rx_bytes);
    assert_eq!(entered, (sender.tx_packets, sender.tx_bytes), "and entered the other end");
    assert!(rows.iter().all(|row| row.at_ns == 7), "stamped as told");
}

#[cfg(target_endian = "little")]
#[test]
fn captured_notifications_tell_what_became_of_links() {
    let bytes = fixture("notifications-port-leaves-bridge");
    let families: Vec<u8> = messages(&bytes).filter(|m| m.kind == libc::RTM_DELLINK).map(|m| m.body[0]).collect();
    assert_eq!(families, [7], "the bridge announces the port's leaving as RTM_DELLINK");
    let changes: Vec<_> =
        messages(&bytes).filter_map(|message| change(&message, &MessageNamespace::default())).collect();
    assert!(!changes.iter().any(|change| matches!(change, LinkChange::Gone(_))), "which is no link's end");
    let mut ports = changes.iter().filter_map(|change| match change {
        LinkChange::Port(_, state, _) => Some(*state),
        _ => None,
    });
    assert_eq!(ports.next_back(), Some(PortState::Disabled), "the bridge says what it still let through the port");
    let Some(LinkChange::Is(last)) = changes.iter().rfind(|c| matches!(c, LinkChange::Is(d) if d.facts.name == "tap1"))
    else {
        panic!("the port is described")
    };
    assert_eq!((last.facts.master, &last.facts.slave_kind), (None, &None), "in the end it is nobody's port");
    let bytes = fixture("notifications-link-deleted");
    let last = messages(&bytes).filter_map(|message| change(&message, &MessageNamespace::default())).last();
    assert!(matches!(last, Some(LinkChange::Gone(Ifindex(14)))), "a deleted link is gone: {last:?}");
}

#[cfg(target_endian = "little")]
#[test]
fn captured_claims_are_those_of_ethtool() {
    let bytes = fixture("ethtool-family");
    let family = messages(&bytes).find_map(|message| generic::parse(&message)).unwrap();
    assert_eq!((family.id, family.group("monitor")), (21, Some(6)), "the family and its monitor group");
    let bytes = fixture("linkmodes");
    let claims: Vec<(u32, Option<u32>)> =
        messages(&bytes).filter_map(|message| claim(&message, 4)).map(|(link, mbps)| (link.0, mbps)).collect();
    assert!(claims.contains(&(2, Some(10_000))), "a veth says 10000: {claims:?}");
    assert!(claims.contains(&(6, Some(10_000))), "a bridge what its largest port says: {claims:?}");
    assert!(!claims.iter().any(|&(ifindex, _)| ifindex == 1 || ifindex == 14), "lo and ifb say nothing: {claims:?}");
    let bytes = fixture("notifications-speed-set");
    let set = messages(&bytes).find_map(|message| claim(&message, 5));
    assert_eq!(set, Some((Ifindex(9), Some(25_000))), "a set speed is announced");
}

#[test]
fn speeds_that_ethtool_calls_unknown_are_none() {
    for (mbps, known) in [(0, None), (65535, None), (u32::MAX, None), (10, Some(10)), (400_000, Some(400_000))] {
        let bytes = super::kernel::linkmodes(4, 3, mbps);
        let claim = claim(&messages(&bytes).next().unwrap(), 4);
        assert_eq!(claim, Some((Ifindex(3), known)), "{mbps} Mb/s");
    }
}

#[test]
fn tun_and_tap_are_told_apart_with_and_without_a_type() {
    let tun = |layer: u16, data: &[(u16, &[u8])]| {
        message(16, &ifinfo(0, layer, 3, 1), &[(libc::IFLA_IFNAME, b"t\0"), (libc::IFLA_LINKINFO, &info("tun", data))])
    };
    assert_eq!(facts(&tun(65534, &[(3, &[1])])).kind, Kind::Tun, "type 1 is layer 3");
    assert_eq!(facts(&tun(1, &[(3, &[2])])).kind, Kind::Tap, "type 2 is layer 2");
    assert_eq!(facts(&tun(65534, &[])).kind, Kind::Tun, "before Linux 4.15 the link layer tells");
    assert_eq!(facts(&tun(1, &[])).kind, Kind::Tap, "Ethernet is a tap");
}

#[test]
fn a_bond_has_its_mode_and_its_ports_know_it() {
    let bond = facts(&link(5, "bond0", &[(libc::IFLA_LINKINFO, &info("bond", &[(1, &[1]), (99, &[1, 2, 3])]))]));
    assert_eq!((bond.kind, bond.bond_mode), (Kind::Bond, Some(1)), "active-backup is mode 1");
    let port = nest(&[(1, b"veth\0"), (4, b"bond\0"), (5, b"\x04\0\x01\0")]);
    let port = facts(&link(6, "p", &[(libc::IFLA_MASTER, &5_u32.to_ne_bytes()), (libc::IFLA_LINKINFO, &port)]));
    assert_eq!((port.master, port.slave_kind.as_deref()), (Some(Ifindex(5)), Some("bond")), "a port names its bond");
    assert_eq!(port.bond_mode, None, "a mode is for bonds only");
}

#[test]
fn kinds_the_kernel_words_itself() {
    let kind = |word: &str| facts(&link(5, "x", &[(libc::IFLA_LINKINFO, &info(word, &[]))])).kind;
    assert_eq!(kind("openvswitch"), Kind::OpenVSwitch, "an OVS bridge or internal port, kernel datapath");
    assert_eq!(kind("vlan"), Kind::Vlan, "802.1Q");
    assert_eq!(kind("wireguard"), Kind::Wireguard, "every other kind keeps the kernel's word");
    assert_eq!(kind("a\x1bkind"), Kind::Other("a?kind".into()), "without what could steer a terminal");
}

#[test]
fn hardware_is_known_by_its_parent() {
    let on = |bus: &[u8]| {
        facts(&link(2, "eth0", &[(libc::IFLA_PARENT_DEV_NAME, b"x0\0"), (libc::IFLA_PARENT_DEV_BUS_NAME, bus)])).kind
    };
    assert_eq!(on(b"virtio\0"), Kind::Virtio, "the virtio bus");
    assert_eq!(on(b"pci\0"), Kind::Physical, "any other bus");
    assert_eq!(
        facts(&link(2, "x", &[])).kind,
        Kind::Other("ether".into()),
        "no parent, no kind: the link layer's word"
    );
    let lo = message(16, &ifinfo(0, 772, 1, 8), &[(libc::IFLA_IFNAME, b"lo\0")]);
    assert_eq!(facts(&lo).kind, Kind::Loopback, "ARPHRD 772");
}

#[test]
fn older_kernels_name_the_parent_only_in_sysfs() {
    let sysfs = tempfile::tempdir().unwrap();
    let device = |name: &str, ifindex: u32, bus: &str| {
        let device = sysfs.path().join(name).join("device");
        std::fs::create_dir_all(&device).unwrap();
        std::fs::write(sysfs.path().join(name).join("ifindex"), format!("{ifindex}\n")).unwrap();
        std::os::unix::fs::symlink(format!("../../../bus/{bus}"), device.join("subsystem")).unwrap();
    };
    device("eth0", 2, "virtio");
    device("eth1", 3, "pci");
    let kind = |ifindex, name| described(&link(ifindex, name, &[]), sysfs.path()).unwrap().facts.kind;
    assert_eq!(kind(2, "eth0"), Kind::Virtio, "the bus of its device");
    assert_eq!(kind(3, "eth1"), Kind::Physical, "the bus of its device");
    assert_eq!(kind(9, "eth1"), Kind::Other("ether".into()), "another namespace's eth1 is not this one");
    assert_eq!(kind(3, "../eth1"), Kind::Other("ether".into()), "a name is not a path");
}

#[test]
fn a_physical_link_is_on_the_node_of_its_device() {
    let sysfs = tempfile::tempdir().unwrap();
    let pci = sysfs.path().join("pci0");
    let device = |name: &str, ifindex: u32, bus: &str, device: &str, file: &str, node: &str| {
        let link = sysfs.path().join(name);
        std::fs::create_dir_all(&link).unwrap();
        std::fs::create_dir_all(sysfs.path().join(device)).unwrap();
        std::fs::write(link.join("ifindex"), format!("{ifindex}\n")).unwrap();
        let real = sysfs.path().join(device);
        std::os::unix::fs::symlink(format!("../../../bus/{bus}"), real.join("subsystem")).unwrap();
        std::os::unix::fs::symlink(&real, link.join("device")).unwrap();
        std::fs::write(real.join(file), node).unwrap();
    };
    device("eth0", 2, "pci", "pci0", "numa_node", "1\n");
    device("eth1", 3, "virtio", "pci0/virtio0", "driver", "");
    device("eth2", 4, "pci", "pci1", "numa_node", "-1\n");
    assert!(pci.is_dir(), "the virtio device sits on the PCI device");
    let node = |ifindex, name| described(&link(ifindex, name, &[]), sysfs.path()).unwrap().facts.node;
    assert_eq!(node(2, "eth0"), Some(1), "its own device says so");
    assert_eq!(node(3, "eth1"), Some(1), "a virtio device is where the device below it is");
    assert_eq!(node(4, "eth2"), None, "-1 is no node");
    assert_eq!(node(9, "eth0"), None, "another namespace's eth0 is not this one");
}

#[test]
fn the_other_end_may_have_the_same_index_in_another_namespace() {
    let veth = info("veth", &[]);
    let two = 2_u32.to_ne_bytes();
    let away = facts(&link(
        2,
        "eth0",
        &[(libc::IFLA_LINKINFO, &veth), (libc::IFLA_LINK, &two), (libc::IFLA_LINK_NETNSID, &[0; 4])],
    ));
    assert_eq!(
        away.peer,
        Some(PeerRef { netnsid: Some(0), netns: None, ifindex: Ifindex(2) }),
        "it is not the link itself"
    );
    let own = facts(&link(2, "x", &[(libc::IFLA_LINK, &two)]));
    assert_eq!((own.peer, own.lower), (None, None), "in the same namespace it is");
}

#[test]
fn a_tunnel_that_was_moved_away_does_not_stand_on_a_link_of_its_own_index() {
    let two = 2_u32.to_ne_bytes();
    for kind in ["vxlan", "geneve", "wireguard"] {
        let info = info(kind, &[]);
        let more = [(libc::IFLA_LINKINFO, &*info), (libc::IFLA_LINK, &two), (libc::IFLA_LINK_NETNSID, &[0; 4])];
        assert_eq!(facts(&link(2, "tunnel0", &more)).lower, None, "a {kind} says its own index when it is elsewhere");
    }
}

#[test]
fn a_link_survives_whatever_one_attribute_says() {
    let broken = facts(&message(
        16,
        &ifinfo(0, 1, 3, 1),
        &[
            (libc::IFLA_IFNAME, b"\xff\x1b[2Jx\0"),
            (libc::IFLA_MTU, b"\x01"),
            (libc::IFLA_OPERSTATE, b""),
            (4242, b"new"),
        ],
    ));
    assert_eq!(
        (broken.name.as_str(), broken.mtu, broken.state),
        ("??[2Jx", 0, LinkState::Unknown),
        "what is left is read"
    );
    assert_eq!(facts(&message(16, &ifinfo(0, 1, 3, 1), &[])).name, "?", "even without a name");
    let grown = facts(&message(16, &ifinfo(0, 1, 3, 1), &[(libc::IFLA_MTU, &[220, 5, 0, 0, 9, 9, 9, 9])]));
    assert_eq!(grown.mtu, u32::from_ne_bytes([220, 5, 0, 0]), "a value that has grown keeps its beginning");
}

#[test]
fn fragments_and_views_of_others_are_no_links() {
    let wireless = link(3, "wlan0", &[(libc::IFLA_WIRELESS, b"event")]);
    assert!(described(&wireless, Path::new(SYSFS)).is_none(), "a wireless event describes no link");
    let nobody = message(16, &ifinfo(0, 1, 0, 1), &[(libc::IFLA_IFNAME, b"x\0")]);
    assert!(described(&nobody, Path::new(SYSFS)).is_none(), "nothing has index 0");
    let bridge = message(16, &ifinfo(7, 1, 3, 1), &[(libc::IFLA_IFNAME, b"x\0")]);
    assert!(described(&bridge, Path::new(SYSFS)).is_none(), "a bridge's view of its port is not the port");
}
