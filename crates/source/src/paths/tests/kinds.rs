//! Walks over the kinds of links that stand on others or carry packets within packets.

use super::net::Net;
use crate::paths::lookups::{Redirect, RouteResult, Tunnel};
use vnettop_sample::{Kind, LinkKey, LinkState};

/// Two hosts 8 and 9 with a wire `nic0` between them, 198.18.1.8 and 198.18.1.9.
fn hosts() -> (Net, [LinkKey; 2]) {
    let mut net = Net::default();
    let wire = net.pair((8, "nic0"), (9, "nic0"));
    net.address(wire[0], "198.18.1.8");
    net.address(wire[1], "198.18.1.9");
    (net, wire)
}

/// Links of a kind on both wires, in namespaces 1 and 2, with addresses 198.19.0.1 and .2.
fn stacked(kind: &str) -> (Net, [LinkKey; 2]) {
    let (mut net, [near, far]) = hosts();
    let ends = [net.upon(near, 1, "top0", kind), net.upon(far, 2, "top0", kind)];
    net.address(ends[0], "198.19.0.1");
    net.address(ends[1], "198.19.0.2");
    (net, ends)
}

const OVER_THE_WIRE: &str = "1:top0 sent route, 8:nic0 sent lower, 9:nic0 received peer, 2:top0 received upper";

#[test]
fn an_ipvlan_takes_what_comes_from_another_host() {
    for kind in ["ipvlan", "macsec"] {
        let (mut net, _) = stacked(kind);
        assert_eq!(net.walked_from(1, "198.19.0.1:40000", "198.19.0.2:5201"), OVER_THE_WIRE, "{kind}");
    }
}

#[test]
fn a_character_device_gives_the_packets_to_its_program() {
    for kind in ["macvtap", "ipvtap"] {
        let (mut net, ends) = stacked(kind);
        net.facts(ends[0]).kind = Kind::from("macvlan".to_owned());
        let reported = net.walked(1, "198.19.0.2:5201");
        let expected = format!("{OVER_THE_WIRE} … the packets go from top0 to the program that holds it open");
        assert_eq!(reported, expected, "{kind}");
    }
}

#[test]
fn what_is_redirected_to_an_ifb_passes_it_and_is_received_as_before() {
    let mut net = Net::default();
    let [near, port] = net.pair((1, "eth0"), (8, "veth0"));
    let ifb = net.link(8, "ifb0", "ifb");
    net.address(near, "198.18.0.1");
    net.address(port, "198.18.0.8");
    net.redirects.insert(port, Redirect::All(ifb.ifindex));
    let through = "1:eth0 sent route, 8:veth0 received peer, 8:ifb0 sent redirect";
    assert_eq!(net.walked(1, "198.18.0.8:5201"), through);
    assert_eq!(net.walked(8, "198.18.0.1:5201"), "8:veth0 sent route, 1:eth0 received peer", "the answers do not");
    net.redirects.insert(port, Redirect::All(near.ifindex));
    let plain = "1:eth0 sent route, 8:veth0 received peer";
    net.redirects.insert(port, Redirect::Some(ifb.ifindex));
    let reported = net.walked(1, "198.18.0.8:5201");
    assert!(
        reported.starts_with(plain) && reported.contains("some packets, perhaps these, through ifb0"),
        "which, is not known: {reported}"
    );
}

#[test]
fn a_way_that_a_filter_or_a_program_takes_over_is_known_as_far_as_there() {
    let mut net = Net::default();
    let [near, port] = net.pair((1, "eth0"), (8, "veth0"));
    let [_, other] = net.pair((2, "eth0"), (8, "veth1"));
    net.address(near, "198.18.0.1");
    net.address(port, "198.18.0.8");
    let as_far = "1:eth0 sent route, 8:veth0 received peer";
    net.redirects.insert(port, Redirect::All(other.ifindex));
    let reported = net.walked(1, "198.18.0.8:5201");
    assert!(
        reported.starts_with(&format!("{as_far} … a tc filter at veth0 takes over here")),
        "all go to it: {reported}"
    );
    assert!(reported.contains("redirects all packets to veth1"), "{reported}");
    for redirect in [Redirect::Some(other.ifindex), Redirect::Program] {
        net.redirects.insert(port, redirect);
        let reported = net.walked(1, "198.18.0.8:5201");
        assert!(
            reported.starts_with(as_far) && !reported.contains('…'),
            "it arrives, so it may be left alone: {reported}"
        );
        assert!(reported.contains("may send packets elsewhere (tc filter show dev veth0 ingress)"), "{reported}");
        net.routes.insert(
            (1, "198.18.7.7".parse().expect("an address")),
            net.routes[&(1, "198.18.0.8".parse().expect("an address"))],
        );
        let reported = net.walked(1, "198.18.7.7:5201");
        assert!(
            reported.starts_with(&format!("{as_far} … a tc ")),
            "routes lead nowhere, and are not asked: {reported}"
        );
        assert!(reported.contains("takes over here") && !reported.contains("route to"), "{reported}");
    }
    net.redirects.clear();
    net.detail(port).has_xdp = true;
    let reported = net.walked(1, "198.18.7.7:5201");
    assert!(reported.starts_with(&format!("{as_far} … an XDP program at veth0 takes over here")), "{reported}");
}

#[test]
fn of_several_next_hops_none_is_told_for_the_one() {
    let mut net = Net::default();
    let [near, far] = net.pair((1, "eth0"), (2, "eth0"));
    let [other, _] = net.pair((1, "eth1"), (3, "eth0"));
    net.address(near, "198.18.0.1");
    net.address(far, "198.18.0.2");
    let to: std::net::IpAddr = "198.18.0.2".parse().expect("an address");
    net.next_hops.insert((1, to), vec![(near.ifindex, None), (other.ifindex, Some(to))]);
    let reported = net.walked(1, "198.18.0.2:5201");
    assert!(
        reported.starts_with(" … one of 2 next hops of the route to 198.18.0.2 follows"),
        "no hop is guessed: {reported}"
    );
    assert!(reported.ends_with("eth0, eth1 via 198.18.0.2"), "all of them are named: {reported}");
    net.next_hops.insert((1, to), vec![(near.ifindex, None)]);
    assert_eq!(net.walked(1, "198.18.0.2:5201"), "1:eth0 sent route, 2:eth0 received peer", "one alone is certain");
}

#[test]
fn a_macvlan_on_a_vlan_goes_through_both() {
    let (mut net, [near, far]) = hosts();
    let vlans = [net.upon(near, 8, "nic0.7", "vlan"), net.upon(far, 9, "nic0.7", "vlan")];
    let ends = [net.upon(vlans[0], 1, "eth0", "macvlan"), net.upon(vlans[1], 2, "eth0", "macvlan")];
    for (vlan, (end, address)) in vlans.into_iter().zip(ends.into_iter().zip(["198.19.0.1", "198.19.0.2"])) {
        net.detail(vlan).vlan = Some(7);
        net.address(end, address);
    }
    let expected = "1:eth0 sent route, 8:nic0.7 sent lower, 8:nic0 sent lower, 9:nic0 received peer, \
                    9:nic0.7 received upper, 2:eth0 received upper";
    assert_eq!(net.walked(1, "198.19.0.2:5201"), expected);
}

#[test]
fn a_vlan_within_a_vlan_is_unpacked_in_turn() {
    let (mut net, wire) = hosts();
    for (host, lower) in [(8, wire[0]), (9, wire[1])] {
        let outer = net.upon(lower, host, "outer", "vlan");
        let inner = net.upon(outer, host, "inner", "vlan");
        net.detail(outer).vlan = Some(20);
        net.detail(inner).vlan = Some(30);
        net.address(inner, &format!("198.19.0.{host}"));
    }
    let expected = "8:inner sent route, 8:outer sent lower, 8:nic0 sent lower, 9:nic0 received peer, \
                    9:outer received upper, 9:inner received upper";
    assert_eq!(net.walked(8, "198.19.0.9:5201"), expected, "802.1Q in 802.1ad");
}

/// A tunnel of a kind between the hosts.
fn tunnelled(kind: &str, key: u32) -> Net {
    let (mut net, _) = hosts();
    for (host, other) in [(8, 9), (9, 8)] {
        let tunnel = net.link(host, "tun0", kind);
        let ip = |host| format!("198.18.1.{host}").parse().ok();
        net.detail(tunnel).tunnel = Some(Tunnel { key, remote: ip(other), local: ip(host), port: 0 });
        net.address(tunnel, &format!("198.19.0.{host}"));
    }
    net
}

#[test]
fn tunnels_carry_packets_from_host_to_host() {
    let kinds = ["geneve", "gre", "gretap", "erspan", "ip6gre", "ip6gretap", "ipip", "sit", "ip6tnl", "vti", "vti6"];
    for kind in kinds {
        let expected = "8:tun0 sent route, 8:nic0 sent route, 9:nic0 received peer, 9:tun0 received tunnel";
        assert_eq!(tunnelled(kind, 7).walked(8, "198.19.0.9:5201"), expected, "{kind}");
    }
}

#[test]
fn a_tunnel_with_another_key_does_not_take_the_packets() {
    let mut net = tunnelled("gre", 7);
    let far = net.named(9, "tun0");
    net.detail(far).tunnel = net.detail(far).tunnel.map(|tunnel| Tunnel { key: 8, ..tunnel });
    let reported = net.walked(8, "198.19.0.9:5201");
    assert!(
        reported.ends_with("… at 198.18.1.9 no gre with key 7 is visible that decapsulates the packets"),
        "{reported}"
    );
}

#[test]
fn a_tunnel_upon_a_link_leaves_through_that_one() {
    let mut net = tunnelled("gre", 0);
    let [near, far] = net.pair((8, "nic1"), (9, "nic1"));
    let tunnel = net.named(8, "tun0");
    net.facts(tunnel).lower = Some(vnettop_sample::PeerRef { netnsid: None, netns: Some(8), ifindex: near.ifindex });
    let remote = "198.18.1.9".parse().expect("an address");
    net.tables.insert((8, near.ifindex, remote), RouteResult::Out { link: near.ifindex, gateway: None, source: None });
    let expected = "8:tun0 sent route, 8:nic1 sent route, 9:nic1 received peer, 9:tun0 received tunnel";
    assert_eq!(net.walked(8, "198.19.0.9:5201"), expected, "not as the table says");
    assert_eq!(far.netns, 9);
}

/// A vrf on each host with the wire as its port.
fn vrfs() -> (Net, [LinkKey; 2]) {
    let (mut net, wire) = hosts();
    let vrfs = [net.link(8, "red", "vrf"), net.link(9, "red", "vrf")];
    for (port, vrf) in wire.into_iter().zip(vrfs) {
        net.facts(port).master = Some(vrf.ifindex);
        let near = |host: u64| format!("198.18.1.{host}").parse().expect("an address");
        // The vrf's own table has what the namespace's has not.
        for host in [8, 9] {
            let route = net.routes.remove(&(port.netns, near(host))).expect("it was reached");
            net.tables.insert((port.netns, vrf.ifindex, near(host)), route);
        }
    }
    (net, vrfs)
}

#[test]
fn a_vrf_has_a_table_of_its_own() {
    let (mut net, vrfs) = vrfs();
    let here = "198.18.1.9".parse().expect("an address");
    net.ins.insert((9, net.named(9, "nic0").ifindex, here), RouteResult::Here);
    let expected = "8:red passed route, 8:nic0 sent lower, 9:nic0 received peer, 9:red received upper";
    assert_eq!(net.walked_from(8, "198.18.1.8:40000", "198.18.1.9:5201"), expected, "the sender is bound to it");
    let own = net.walked_from(8, "198.18.1.8:40000", "198.18.1.8:5201");
    assert_eq!(own, "8:red sent local", "its own address it sends to itself");
    assert_eq!(vrfs[0].netns, 8);
    let reported = net.walked(8, "198.18.1.9:5201");
    assert!(reported.contains("no route"), "who is not bound to it does not see its routes: {reported}");
}

#[test]
fn a_route_into_a_vrf_is_looked_up_there_again() {
    let (mut net, vrfs) = vrfs();
    let here = "198.18.1.9".parse().expect("an address");
    net.ins.insert((9, net.named(9, "nic0").ifindex, here), RouteResult::Here);
    net.route(8, "198.18.1.9", vrfs[0], None);
    let expected = "8:red sent route, 8:nic0 sent route, 9:nic0 received peer, 9:red received upper";
    assert_eq!(net.walked(8, "198.18.1.9:5201"), expected);
}

/// A bond or team of two wires between the hosts.
fn bonded(kind: &str) -> (Net, [LinkKey; 2]) {
    let mut net = Net::default();
    let wires = [net.pair((8, "nic0"), (9, "nic0")), net.pair((8, "nic1"), (9, "nic1"))];
    let bonds = [8, 9].map(|host| net.link(host, "bond0", kind));
    for wire in wires {
        for (port, bond) in wire.into_iter().zip(bonds) {
            net.facts(port).master = Some(bond.ifindex);
        }
    }
    net.address(bonds[0], "198.19.0.8");
    net.address(bonds[1], "198.19.0.9");
    (net, bonds)
}

#[test]
fn a_bond_sends_through_the_port_in_use() {
    let (mut net, bonds) = bonded("bond");
    let port = net.named(8, "nic1");
    net.detail(bonds[0]).active_port = Some(port.ifindex);
    let expected = "8:bond0 sent route, 8:nic1 sent lower, 9:nic1 received peer, 9:bond0 received upper";
    assert_eq!(net.walked(8, "198.19.0.9:5201"), expected, "active-backup says which");
    for kind in ["bond", "team"] {
        let (mut net, _) = bonded(kind);
        let reported = net.walked(8, "198.19.0.9:5201");
        assert_eq!(
            reported, "8:bond0 sent route … bond0 sends through one of its 2 ports; which is not known",
            "{kind}"
        );
        let down = net.named(8, "nic0");
        net.facts(down).state = LinkState::Down;
        assert_eq!(net.walked(8, "198.19.0.9:5201"), expected, "{kind}: of two ports one is up");
    }
    let (mut net, bonds) = bonded("bond");
    net.facts(bonds[0]).bond_mode = Some(3);
    let reported = net.walked(8, "198.19.0.9:5201");
    assert!(reported.ends_with("bond0 sends each packet through all of its 2 ports"), "{reported}");
}

#[test]
fn where_a_kind_does_not_say_where_it_sends_the_sentence_says_so() {
    let kinds = [
        ("wireguard", "the peers of link 2 may not be asked for"),
        ("xfrm", "IPsec policies, which vnettop does not read, decide where top0 sends packets"),
        ("dummy", "the packets stop at top0: a dummy drops everything"),
        ("nlmon", "top0 is of kind nlmon, which vnettop cannot follow"),
    ];
    for (kind, why) in kinds {
        let mut net = Net::default();
        let link = net.link(1, "top0", kind);
        net.route(1, "198.19.0.2", link, None);
        assert_eq!(net.walked(1, "198.19.0.2:5201"), format!("1:top0 sent route … {why}"));
    }
}
