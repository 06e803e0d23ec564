//! Walks through made-up networks: what each kind of link does with a packet, and the sentence where nothing is known.

mod guests;
mod kinds;
mod marks;
mod net;
mod programs;
mod switches;
mod wireguard;

use super::ends::{WantedPath, turned};
use super::lookups::{Packet, RouteResult};
use net::Net;
use vnettop_sample::{EndName, FlowPath, Holder, HopBy, HopWay, Ifindex, Kind, Proto, SilentNeighbour, WireNames};

/// A bridge in namespace 9 with a container on each of two ports: namespaces 1 and 2, 198.18.0.1 and .2.
fn bridged() -> Net {
    let mut net = Net::default();
    let bridge = net.link(9, "br0", "bridge");
    for (netns, port) in [(1, "va"), (2, "vb")] {
        let [port, inner] = net.pair((9, port), (netns, "eth0"));
        net.facts(port).master = Some(bridge.ifindex);
        net.address(inner, &format!("198.18.0.{netns}"));
    }
    net
}

#[test]
fn a_bridge_is_passed_from_port_to_port() {
    let mut net = bridged();
    let expected = "1:eth0 sent route, 9:va received peer, 9:br0 passed bridge, 9:vb sent fdb, 2:eth0 received peer";
    assert_eq!(net.walked(1, "198.18.0.2:5201"), expected, "found by the ports' other ends, with nothing learnt");
    let (bridge, port) = (net.named(9, "br0"), net.named(9, "va").ifindex);
    let mac = Net::mac(net.named(2, "eth0"));
    net.fdb.insert((bridge, mac), port);
    let reported = net.walked(1, "198.18.0.2:5201");
    assert!(
        reported.contains("9:br0 passed bridge, 9:va sent fdb"),
        "what the bridge has learnt goes before: {reported}"
    );
}

#[test]
fn the_first_neighbour_that_does_not_answer_is_told() {
    let mut net = bridged();
    assert_eq!(net.way(1, "198.18.0.1:40000", "198.18.0.2:5201").silent, None, "it answers");
    let (link, ip) = (net.named(1, "eth0"), [198, 18, 0, 2].into());
    net.silent.insert(ip);
    let reported = net.way(1, "198.18.0.1:40000", "198.18.0.2:5201").silent;
    assert_eq!(reported, Some(SilentNeighbour { link, ip }), "the link that asks and the address");
}

#[test]
fn an_own_address_and_loopback_are_one_hop() {
    let mut net = bridged();
    assert_eq!(net.walked(1, "198.18.0.1:5201"), "1:lo sent local", "an own address goes through lo");
}

#[test]
fn a_published_port_is_translated_on_the_way_and_an_answer_back() {
    let mut net = bridged();
    let bridge = net.named(9, "br0");
    net.address(bridge, "198.18.0.254");
    let [outside, inside] = net.pair((5, "eth0"), (9, "up"));
    net.address(outside, "198.18.7.5");
    net.address(inside, "198.18.7.254");
    net.route(5, "198.18.7.254", outside, None);
    net.route(9, "198.18.0.1", bridge, None);
    net.nat(9, ["198.18.7.5:40000", "198.18.7.254:8080"], ["198.18.0.1:5201", "198.18.7.5:40000"]);
    let there = "5:eth0 sent route, 9:up received peer, 9:br0 sent route, 9:va sent fdb, 1:eth0 received peer";
    assert_eq!(net.walked_from(5, "198.18.7.5:40000", "198.18.7.254:8080"), there, "the container behind the port");
    net.route(1, "198.18.7.5", net.named(1, "eth0"), Some("198.18.0.254"));
    net.route(9, "198.18.7.5", inside, None);
    let back = "1:eth0 sent route, 9:va received peer, 9:br0 received bridge, 9:up sent route, 5:eth0 received peer";
    assert_eq!(net.walked_from(1, "198.18.0.1:5201", "198.18.7.5:40000"), back, "its answers");

    // The client sends; of the server alone it would be found backwards.
    let at = |text: &str| text.parse().expect("an address");
    let wanted = |netns, from: &str, to: &str, backwards| {
        let packet = Packet { proto: Proto::Tcp, from: at(from), to: at(to), mark: None };
        WantedPath { packet, netns, backwards }
    };
    let client = wanted(5, "198.18.7.5:40000", "198.18.7.254:8080", false);
    let server = wanted(1, "198.18.7.5:40000", "198.18.0.1:5201", true);
    let name = |netns, local: &str, remote: &str| EndName { netns, local: at(local), remote: at(remote) };
    let near = name(5, "198.18.7.5:40000", "198.18.7.254:8080");
    let far = name(1, "198.18.0.1:5201", "198.18.7.5:40000");
    let ends = |net: &mut Net, wanted: &[WantedPath]| -> Vec<_> {
        let named = |path: FlowPath| (path.from, path.ends.map(|ends| [ends.near, ends.far]));
        net.ways(wanted).into_iter().map(named).collect()
    };
    assert_eq!(ends(&mut net, &[server, client]), [(near.local, Some([near, far]))], "both ends are one way");
    assert_eq!(ends(&mut net, &[server]), [(far.remote, Some([far, near]))], "each end is told as it names itself");
    let plain = wanted(1, "198.18.0.1:5201", "198.18.0.2:40000", false);
    assert_eq!(ends(&mut net, &[plain])[0].1, None, "what stays as it is has no other names");
}

#[test]
fn what_leaves_the_machine_is_named_as_it_is_after_nat() {
    let mut net = bridged();
    let [bridge, eth0] = [net.named(9, "br0"), net.link(9, "eth0", "physical")];
    net.address(bridge, "198.18.0.254");
    net.address(eth0, "192.0.2.9");
    net.route(9, "198.18.0.1", bridge, None);
    net.route(1, "192.0.2.7", net.named(1, "eth0"), Some("198.18.0.254"));
    net.route(9, "192.0.2.7", eth0, None);
    let at = |text: &str| text.parse().expect("an address");
    let outside = |net: &mut Net, netns, ends: [&str; 2], backwards| {
        let packet = Packet { proto: Proto::Tcp, from: at(ends[0]), to: at(ends[1]), mark: None };
        let path = net.ways(&[WantedPath { packet, netns, backwards }]).pop().expect("it was wanted");
        path.outside
    };
    let names = |from: &str, to: &str| Some(WireNames { from: at(from), to: at(to) });
    let sent = ["198.18.0.1:40000", "192.0.2.7:5201"];
    assert_eq!(outside(&mut net, 1, sent, false), names(sent[0], sent[1]), "as it is where nothing translates");
    net.nat(9, sent, ["192.0.2.7:5201", "192.0.2.9:61000"]);
    assert_eq!(outside(&mut net, 1, sent, false), names("192.0.2.9:61000", sent[1]), "its source is masqueraded");

    // A server behind a published port, which is all that is watched here.
    let received = ["192.0.2.7:40001", "198.18.0.1:5201"];
    net.nat(9, ["192.0.2.7:40001", "192.0.2.9:8080"], ["198.18.0.1:5201", "192.0.2.7:40001"]);
    let expected = names("192.0.2.7:40001", "192.0.2.9:8080");
    assert_eq!(outside(&mut net, 1, received, true), expected, "in the flow's direction also where found backwards");

    let within = ["198.18.0.1:40002", "198.18.0.2:5201"];
    assert_eq!(outside(&mut net, 1, within, false), None, "with both ends here nothing leaves");
    let nowhere = ["198.18.0.1:40002", "203.0.113.1:5201"];
    assert_eq!(outside(&mut net, 1, nowhere, false), None, "nor where there is no route");
}

#[test]
fn within_a_tunnel_the_flow_s_own_packets_are_named() {
    let mut net = Net::default();
    let [tunnel, eth0] = [net.link(1, "vx0", "vxlan"), net.link(1, "eth0", "physical")];
    net.address(tunnel, "198.18.0.1");
    net.address(eth0, "192.0.2.1");
    net.route(1, "198.18.0.2", tunnel, None);
    net.route(1, "192.0.2.2", eth0, None);
    let remote = Some("192.0.2.2".parse().expect("an address"));
    net.detail(tunnel).tunnel = Some(super::lookups::Tunnel { key: 7, remote, ..Default::default() });
    let way = net.way(1, "198.18.0.1:40000", "198.18.0.2:5201");
    assert_eq!(way.hops.len(), 2, "through the tunnel, and out: {:?}", way.gap);
    let names = way.outside.map(|out| (out.from.to_string(), out.to.to_string()));
    assert_eq!(names, Some(("198.18.0.1:40000".to_owned(), "198.18.0.2:5201".to_owned())));
}

#[test]
fn a_way_goes_on_behind_a_program_that_copies_where_nobody_watched_listens() {
    let mut net = bridged();
    let bridge = net.named(9, "br0");
    net.address(bridge, "198.18.0.254");
    net.route(9, "198.18.0.1", bridge, None);
    let at = |text: &str| text.parse().expect("an address");
    let holder = |name: &str, accepts| Holder { pid: 70, name: name.to_owned(), accepts };
    let onward = EndName { netns: 9, local: at("198.18.0.254:40002"), remote: at("198.18.0.1:5201") };
    net.holders.push((9, at("198.18.0.254:8080"), holder("docker-proxy", true), Some(onward)));
    let proxied = "9:lo sent local, 9:br0 sent proxy, 9:va sent fdb, 1:eth0 received peer";
    assert_eq!(net.walked(9, "198.18.0.254:8080"), proxied, "over lo to the proxy, then to the container");
    let way = net.way(9, "127.0.0.1:40000", "198.18.0.254:8080");
    assert_eq!(way.holders, [holder("docker-proxy", true)], "who copies is told");
    assert_eq!(way.arrived.map(|(netns, packet)| (netns, packet.to)), Some((9, at("198.18.0.254:8080"))));

    // One after another on one machine: each crosses lo anew.
    net.holders.push((9, at("127.0.0.1:81"), holder("socat", true), Some(EndName { netns: 9, ..onward })));
    let again = EndName { netns: 9, local: at("127.0.0.1:40004"), remote: at("127.0.0.1:81") };
    net.route_here(9, "127.0.0.1");
    net.holders.push((9, at("127.0.0.1:80"), Holder { pid: 71, ..holder("haproxy", true) }, Some(again)));
    let twice =
        format!("9:lo sent local, 9:lo sent proxy, {}", "9:br0 sent proxy, 9:va sent fdb, 1:eth0 received peer");
    assert_eq!(net.walked(9, "127.0.0.1:80"), twice, "no loop");

    net.held.push((9, at("198.18.0.254:8080")));
    assert_eq!(net.walked(9, "198.18.0.254:8080"), "9:lo sent local", "a watched process holds that end itself");
}

#[test]
fn what_stands_on_a_link_goes_down_and_up_again() {
    let mut net = Net::default();
    let [near, far] = net.pair((8, "eth0"), (9, "eth0"));
    let (bond, other) = (net.link(8, "bond0", "bond"), net.link(9, "bond0", "bond"));
    net.facts(near).master = Some(bond.ifindex);
    net.facts(far).master = Some(other.ifindex);
    let (above, beyond) = (net.upon(bond, 1, "bond0.7", "vlan"), net.upon(other, 2, "bond0.7", "vlan"));
    net.detail(above).vlan = Some(7);
    net.detail(beyond).vlan = Some(7);
    net.address(above, "198.18.0.1");
    net.address(beyond, "198.18.0.2");
    net.route(1, "198.18.0.2", above, None);
    let expected = "1:bond0.7 sent route, 8:bond0 sent lower, 8:eth0 sent lower, 9:eth0 received peer, \
                    9:bond0 received upper, 2:bond0.7 received upper";
    assert_eq!(net.walked(1, "198.18.0.2:5201"), expected, "vlan on bond on a pair");
}

#[test]
fn ipvlans_and_macvlans_on_one_link_reach_each_other_at_once() {
    for kind in ["ipvlan", "macvlan"] {
        let mut net = Net::default();
        let lower = net.link(9, "eth0", "physical");
        let [one, two] = [1, 2].map(|netns| net.upon(lower, netns, "in0", kind));
        for (link, address) in [(one, "198.18.0.1"), (two, "198.18.0.2")] {
            net.address(link, address);
            net.detail(link).macvlan_mode = Some(4);
        }
        net.route(1, "198.18.0.2", one, None);
        let between = "1:in0 sent route, 2:in0 received upper";
        assert_eq!(net.walked(1, "198.18.0.2:5201"), between, "{kind}: the link below is not crossed");
        net.route(1, "198.18.0.3", one, None);
        let outwards = "1:in0 sent route, 9:eth0 sent lower … the packets exit this machine through eth0";
        assert_eq!(net.walked(1, "198.18.0.3:5201"), outwards, "{kind}: to others it goes out");
    }
}

#[test]
fn where_nothing_is_known_the_sentence_says_so() {
    let mut net = bridged();
    let said = |text: &str, why: &str| assert!(text.contains(why), "'{why}' is said: {text}");
    said(&net.walked(1, "203.0.113.1:1"), "no route");
    let eth0 = net.named(1, "eth0");
    net.route(1, "198.18.0.77", eth0, None);
    said(&net.walked(1, "198.18.0.77:1"), "MAC address is not known");
    net.facts(eth0).peer = None;
    said(&net.walked(1, "198.18.0.2:1"), "the other end of eth0 is in a namespace that is not visible");
    let tun = net.link(1, "tun0", "tun");
    net.route(1, "198.18.4.1", tun, None);
    said(&net.walked(1, "198.18.4.1:1"), "through tun0, to the program that holds it");
    let odd = net.link(1, "odd0", "ifb");
    net.route(1, "198.18.5.1", odd, None);
    said(&net.walked(1, "198.18.5.1:1"), "odd0 is of kind ifb");
    net.routes.insert(
        (1, "198.18.6.1".parse().expect("an address")),
        RouteResult::Out { link: Ifindex(77), gateway: None, source: None },
    );
    said(&net.walked(1, "198.18.6.1:1"), "link 77 of namespace 1 is not visible");
}

#[test]
fn routes_that_make_a_loop_end() {
    let mut net = Net::default();
    let [one, two] = net.pair((1, "v0"), (2, "v1"));
    net.route(1, "198.18.0.9", one, None);
    net.route(2, "198.18.0.9", two, None);
    let reported = net.walked(1, "198.18.0.9:1");
    assert!(
        reported.starts_with("1:v0 sent route, 2:v1 received peer, 2:v1 sent route, 1:v0 received peer … "),
        "{reported}"
    );
    assert!(reported.contains("cross v0 a second time"), "{reported}");
}

#[test]
fn a_way_found_backwards_is_turned_round() {
    let mut net = bridged();
    let there = net.way(1, "198.18.0.1:40000", "198.18.0.2:5201").hops;
    let back = net.way(2, "198.18.0.2:5201", "198.18.0.1:40000").hops;
    assert_eq!(turned(&back), there, "the way of the answers backwards is the way of the data");
    let lo = net.way(1, "198.18.0.1:40000", "198.18.0.1:5201").hops;
    assert_eq!((lo[0].way, lo[0].by), (HopWay::Sent, HopBy::Local));
    assert_eq!(turned(&lo), lo, "lo counts both ways");
}

#[test]
fn a_tunnel_without_a_far_end_says_so() {
    let mut net = Net::default();
    let vxlan = net.link(1, "vx0", "vxlan");
    assert_eq!(net.facts(vxlan).kind, Kind::Vxlan);
    net.route(1, "198.18.0.9", vxlan, None);
    assert!(net.walked(1, "198.18.0.9:1").contains("configuration of vx0 cannot be read"));
    net.detail(vxlan).tunnel = Some(super::lookups::Tunnel { key: 7, ..Default::default() });
    assert!(net.walked(1, "198.18.0.9:1").contains("vx0 has no far end"));
    net.detail(vxlan).tunnel = Some(super::lookups::Tunnel {
        key: 7,
        remote: Some("239.1.1.1".parse().expect("a group")),
        ..Default::default()
    });
    assert!(net.walked(1, "198.18.0.9:1").contains("floods to 239.1.1.1"));
}
