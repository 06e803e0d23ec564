//! Links of kinds that few kernels have all of, as Linux 6.1 sent them, against what `ip` and `ethtool` said of the same.

use super::super::claimed_speed::claim;
use super::super::facts::{Described, LinkChange, MessageNamespace, change};
use super::{fixture, said};
use crate::netlink::message::messages;
use serde_json::Value;
use vnettop_sample::{Kind, PeerRef, Word};

/// The links of a captured dump.
fn links(name: &str) -> Vec<Described> {
    let bytes = fixture(name);
    let described = |change| match change {
        LinkChange::Is(described) => *described,
        other => panic!("a dump describes links only: {other:?}"),
    };
    messages(&bytes).filter_map(|message| change(&message, &MessageNamespace::default())).map(described).collect()
}

/// Each link with what `ip` said of it.
fn pairs(name: &str) -> Vec<(Described, Value, Vec<Value>)> {
    let (links, said) = (links(name), said(name));
    assert_eq!(links.len(), said.len(), "ip and the reader see as many links");
    links.into_iter().zip(said.clone()).map(|(link, one)| (link, one, said.clone())).collect()
}

/// The index of the link behind one, by `ip`: named in this namespace, numbered in another.
fn behind(ip: &Value, all: &[Value]) -> Option<(u64, Option<i64>)> {
    let away = ip["link_netnsid"].as_i64();
    let vxlan = ip["linkinfo"]["info_kind"] == "vxlan";
    let name = if vxlan { &ip["linkinfo"]["info_data"]["link"] } else { &ip["link"] };
    match (name.as_str(), away) {
        // ip does not know the other namespace's names, and says `if11`.
        (Some(name), Some(_)) => Some((name.strip_prefix("if")?.parse().unwrap(), away)),
        (Some(name), None) => Some((all.iter().find(|one| one["ifname"] == name)?["ifindex"].as_u64()?, None)),
        (None, _) if vxlan => None,
        (None, _) => Some((ip["link_index"].as_u64()?, away)),
    }
}

fn state(ip: &Value) -> String {
    let up = ip["flags"].as_array().unwrap().iter().any(|flag| flag == "UP");
    if up { ip["operstate"].as_str().unwrap().to_lowercase() } else { "down".to_owned() }
}

#[cfg(target_endian = "little")]
#[test]
fn every_kind_of_linux_6_1_is_what_ip_says() {
    for (link, ip, all) in pairs("kinds/here").into_iter().chain(pairs("kinds/away")) {
        let Described { facts, address } = &link;
        let name = &facts.name;
        assert_eq!((ip["ifname"].as_str(), ip["ifindex"].as_u64()), (Some(&**name), Some(facts.ifindex.0.into())));
        let word = ip["linkinfo"]["info_kind"].as_str().unwrap_or("loopback");
        assert_eq!(facts.kind.word(), word, "the kind of {name}");
        assert_eq!(
            facts.slave_kind.as_deref(),
            ip["linkinfo"]["info_slave_kind"].as_str(),
            "what {name} is to another"
        );
        assert_eq!(ip["mtu"], facts.mtu, "the MTU of {name}");
        assert_eq!(facts.state.word(), state(&ip), "the state of {name}");
        let master = all.iter().find(|one| ip["master"] == one["ifname"]).map(|one| one["ifindex"].as_u64().unwrap());
        assert_eq!(facts.master.map(|master| master.0.into()), master, "the master of {name}");
        let linked = |to: PeerRef| (to.ifindex.0.into(), to.netnsid.map(i64::from));
        assert_eq!(facts.peer.or(facts.lower).map(linked), behind(&ip, &all), "the link behind {name}");
        assert_eq!(facts.peer.is_some(), facts.kind == Kind::Veth, "{name} has another end, or stands on a link");
        let hex: Vec<String> = address.iter().map(|byte| format!("{byte:02x}")).collect();
        if ip["link_type"] == "ether" {
            assert_eq!(ip["address"], hex.join(":"), "the address of {name}");
        }
        let modes =
            ["balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"];
        let mode = ip["linkinfo"]["info_data"]["mode"].as_str().filter(|_| facts.kind == Kind::Bond);
        assert_eq!(facts.bond_mode.map(|mode| modes[usize::from(mode)]), mode, "the mode of {name}");
    }
}

#[cfg(target_endian = "little")]
#[test]
fn the_capture_has_every_kind_that_the_kernel_has() {
    let all = || links("kinds/here").into_iter().map(|link| link.facts);
    let mut kinds: Vec<String> = all().map(|link| link.kind.word().to_owned()).collect();
    kinds.sort();
    kinds.dedup();
    let expected = "bond bridge dummy erspan geneve gre gretap ifb ip6gre ip6gretap ip6tnl ipip ipvlan ipvtap loopback \
                    macsec macvlan macvtap nlmon sit team veth vlan vrf vti vxlan wireguard xfrm";
    assert_eq!(kinds.join(" "), expected);
    let slaves = |kind: &str| all().filter(|link| link.slave_kind.as_deref() == Some(kind)).count();
    assert_eq!((slaves("bond"), slaves("team"), slaves("vrf")), (7, 2, 1), "ports know what they are to their master");
    let says = said("kinds/here");
    for link in all() {
        let ip = says.iter().find(|ip| ip["ifname"] == *link.name).unwrap();
        // A vrf takes packets out of their frames before it counts them, whatever its link layer.
        let frames = ip["link_type"] == "ether" && link.kind.word() != "vrf";
        assert_eq!(link.kind.has_frames(), frames, "whether {} counts Ethernet frames", link.name);
    }
}

#[cfg(target_endian = "little")]
#[test]
fn every_kind_of_linux_6_1_claims_what_ethtool_says() {
    let bytes = fixture("kinds/linkmodes");
    let claims: Vec<_> = messages(&bytes).filter_map(|message| claim(&message, 4)).collect();
    for ip in said("kinds/here") {
        let ours = claims.iter().find(|(link, _)| ip["ifindex"] == link.0).and_then(|(_, mbps)| *mbps);
        assert_eq!(ours.map(u64::from), ip["speed"].as_u64(), "what {} claims", ip["ifname"]);
    }
    let said = said("kinds/here");
    let of = |name: &str| said.iter().find(|ip| ip["ifname"] == name).unwrap()["speed"].as_u64();
    assert_eq!(of("wg0"), None, "a wireguard claims nothing");
    assert_eq!((of("vlan10"), of("cvlan30")), (Some(10_000), Some(10_000)), "a vlan claims what is below it");
    assert_eq!((of("bond-ab"), of("bond-bc")), (Some(10_000), Some(10_000)), "one port's speed");
    assert_eq!((of("bond-rr"), of("team0")), (Some(20_000), Some(20_000)), "that of all ports together");
}
