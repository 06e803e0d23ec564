//! Walks into the programs behind tuns: over a VPN's own datagrams, and to the guest that keeps what it is given.

use super::net::Net;
use crate::paths::lookups::{DeviceProgram, ProgramSocket};
use vnettop_sample::{LinkKey, LinkState};

const WHOLE: &str = "8:tun0 sent route, 8:nic0 sent route, 9:nic0 received peer, 9:tun0 received tunnel";
const NOTE: &str = "assumes that vpnd 8 sends directly to vpnd 9: its socket is not connected";
const ENDS: &str = "8:tun0 sent route … the packets exit through tun0, to vpnd 8";

fn socket(netns: u64, local: &str, remote: Option<&str>) -> ProgramSocket {
    let [local, remote] = [Some(local), remote].map(|end| end.map(|end| end.parse().expect("an address")));
    ProgramSocket { netns, local: local.expect("given"), remote, mark: Some(0), only_ipv6: false }
}

fn program(pid: u32) -> DeviceProgram {
    DeviceProgram { pid, name: format!("vpnd {pid}") }
}

/// Two hosts 8 and 9 with a wire `nic0`, 198.18.1.8 and .9, and a VPN's `tun0` on both, 198.19.0.8 and .9.
fn hosts() -> (Net, [LinkKey; 2]) {
    let mut net = Net::default();
    let wire = net.pair((8, "nic0"), (9, "nic0"));
    let ends = [8, 9].map(|host| net.link(host, "tun0", "tun"));
    for (at, (host, other)) in [(8_u8, 9_u8), (9, 8)].into_iter().enumerate() {
        net.address(wire[at], &format!("198.18.1.{host}"));
        net.address(ends[at], &format!("198.19.0.{host}"));
        let [local, remote] = [host, other].map(|host| format!("198.18.1.{host}:5555"));
        let socket = socket(u64::from(host), &local, Some(&remote));
        net.programs.insert(ends[at], (program(u32::from(host)), vec![socket]));
    }
    (net, ends)
}

/// The same with sockets that are bound and connected to nobody.
fn unconnected(bound: [&[&str]; 2]) -> (Net, [LinkKey; 2]) {
    let (mut net, ends) = hosts();
    for (end, bound) in ends.iter().zip(bound) {
        let sockets = bound.iter().map(|local| socket(end.netns, local, None)).collect();
        net.programs.get_mut(end).expect("made").1 = sockets;
    }
    (net, ends)
}

const ANY: [&[&str]; 2] = [&["0.0.0.0:5555"], &["0.0.0.0:5556"]];

fn reported(net: &mut Net) -> String {
    net.walked_from(8, "198.19.0.8:40000", "198.19.0.9:5201")
}

#[test]
fn a_vpn_of_a_program_goes_on_over_its_connected_socket() {
    let (mut net, _) = hosts();
    assert_eq!(reported(&mut net), WHOLE);
    let back = net.walked_from(9, "198.19.0.9:5201", "198.19.0.8:40000");
    assert_eq!(back, "9:tun0 sent route, 9:nic0 sent route, 8:nic0 received peer, 8:tun0 received tunnel");
}

#[test]
fn a_socket_that_leads_nowhere_known_ends_the_way_at_the_program_by_name() {
    let (mut net, ends) = hosts();
    net.programs.get_mut(&ends[0]).expect("made").1.clear();
    assert_eq!(reported(&mut net), ENDS);
    net.programs.remove(&ends[0]);
    assert_eq!(
        reported(&mut net),
        "8:tun0 sent route … the packets exit through tun0, to the program that holds it open"
    );
    let (mut net, ends) = hosts();
    net.programs.get_mut(&ends[0]).expect("made").1.push(socket(8, "198.18.1.8:53", Some("198.18.1.7:53")));
    assert_eq!(reported(&mut net), ENDS, "sockets that lead to several places");
    let (mut net, ends) = hosts();
    net.programs.remove(&ends[1]);
    let there = "8:tun0 sent route, 8:nic0 sent route, 9:nic0 received peer … at 198.18.1.9:5555, where the program \
                 of tun0 sends, no program with a tun is visible";
    assert_eq!(reported(&mut net), there);
}

#[test]
fn a_vpn_whose_datagrams_are_routed_into_itself_is_a_loop() {
    let (mut net, ends) = hosts();
    net.route(8, "198.18.1.9", ends[0], None);
    let looped = reported(&mut net);
    assert!(looped.contains("it would cross tun0 a second time"), "{looped}");
}

/// The whole way, and what it takes for granted.
fn assumed() -> String {
    format!("{WHOLE} ({NOTE})")
}

#[test]
fn a_vpn_without_a_connected_socket_goes_on_to_the_only_tun_that_the_packet_can_come_out_of() {
    let (mut net, ends) = unconnected(ANY);
    assert_eq!(reported(&mut net), assumed(), "OpenVPN");
    let back = net.walked_from(9, "198.19.0.9:5201", "198.19.0.8:40000");
    assert!(back.starts_with("9:tun0 sent route, 9:nic0 sent route, 8:nic0 received peer, 8:tun0 received tunnel"));
    let both: &[&str] = &["0.0.0.0:51820", "[::]:51820"];
    assert_eq!(reported(&mut unconnected([both, both]).0), assumed(), "wireguard-go has a socket of each family");
    assert_eq!(reported(&mut unconnected([&["[::]:1"], &["0.0.0.0:2"]]).0), assumed(), "one of IPv6 speaks IPv4 too");
    let (mut only, ends_of_it) = unconnected([&["[::]:1"], &["0.0.0.0:2"]]);
    only.programs.get_mut(&ends_of_it[0]).expect("made").1[0].only_ipv6 = true;
    assert_eq!(reported(&mut only), ENDS, "unless it is told not to");

    // The far end may be connected, and then says with whom.
    net.programs.get_mut(&ends[1]).expect("made").1 = vec![socket(9, "198.18.1.9:5556", Some("198.18.1.8:5555"))];
    assert_eq!(reported(&mut net), WHOLE, "nothing is taken for granted");
    net.programs.get_mut(&ends[1]).expect("made").1 = vec![socket(9, "198.18.1.9:5556", Some("198.18.1.8:7"))];
    assert_eq!(reported(&mut net), ENDS, "with another one");
    net.programs.get_mut(&ends[1]).expect("made").1 = vec![socket(9, "198.18.1.9:5556", Some("192.0.2.7:5555"))];
    assert_eq!(reported(&mut net), ENDS, "with the same port of another machine");
    net.programs.get_mut(&ends[1]).expect("made").1.push(socket(9, "0.0.0.0:5557", None));
    assert_eq!(reported(&mut net), assumed(), "and only the other socket can be meant");

    // It comes out there on its way to a container.
    let (mut net, ends) = unconnected(ANY);
    let [port, inside] = net.pair((9, "port"), (3, "eth0"));
    net.address(port, "198.18.3.254");
    net.address(inside, "198.18.3.3");
    net.route(8, "198.18.3.3", ends[0], None);
    net.route(3, "198.19.0.8", inside, Some("198.18.3.254"));
    let onward = net.walked_from(8, "198.19.0.8:40000", "198.18.3.3:5201");
    assert_eq!(onward, format!("{WHOLE}, 9:port sent route, 3:eth0 received peer ({NOTE})"));
}

#[test]
fn other_tuns_beside_it_change_nothing() {
    let (mut net, ends) = unconnected(ANY);
    let beside = [8, 9].map(|host| net.link(host, "tun1", "tun"));
    assert_eq!(reported(&mut net), assumed(), "tuns of nobody");
    for (at, link) in beside.into_iter().enumerate() {
        let other = socket(link.netns, "0.0.0.0:7777", None);
        net.programs.insert(link, (program(20 + u32::from(at == 1)), vec![other]));
        net.address(link, &format!("198.19.{}.1", at + 1));
    }
    assert_eq!(reported(&mut net), assumed(), "another program's");
    net.address(beside[0], "198.19.7.8");
    net.address(beside[1], "198.19.7.9");
    assert_eq!(reported(&mut net), assumed(), "a VPN beside it that leads to the same host: not through that one");
    let (own, sockets) = net.programs[&ends[1]].clone();
    net.programs.insert(beside[1], (own, sockets));
    assert_eq!(reported(&mut net), assumed(), "of two that one program holds, the one that the packet comes out of");
    net.route(9, "198.19.0.8", net.named(9, "nic0"), None);
    assert_eq!(reported(&mut net), ENDS, "neither, where the answers go another way");

    let (mut net, ends) = hosts();
    let second = net.link(9, "tun1", "tun");
    let same = net.programs[&ends[1]].clone();
    net.programs.insert(second, same);
    assert_eq!(reported(&mut net), WHOLE, "the same behind a connected socket");
    net.route(9, "198.19.0.8", net.named(9, "nic0"), None);
    let open = "9:nic0 received peer … the program at 198.18.1.9:5555 has 2 links of kind tun; which one is not known";
    let told = reported(&mut net);
    assert!(told.ends_with(open), "{told}");
}

#[test]
fn where_several_ends_or_paths_are_possible_the_way_ends_with_a_sentence() {
    let (mut net, _) = unconnected(ANY);
    let same = net.link(7, "tun0", "tun");
    let onward = net.link(7, "eth0", "physical");
    net.route(7, "198.19.0.9", onward, None);
    net.route(7, "198.19.0.8", same, None);
    assert_eq!(
        reported(&mut net),
        format!("{ENDS}; its far end may be the program of tun0 or vpnd 9"),
        "another tun of the same addresses, whose program is not known"
    );
    net.programs.insert(same, (program(7), vec![socket(7, "0.0.0.0:5555", None)]));
    assert_eq!(reported(&mut net), assumed(), "the datagrams of this one's do not get to the other's");
    let [near, far] = net.pair((8, "nic7"), (7, "nic7"));
    net.address(near, "198.18.7.8");
    net.address(far, "198.18.7.7");
    assert_eq!(reported(&mut net), format!("{ENDS}; its far end may be vpnd 7 or vpnd 9"));
    net.facts(same).state = LinkState::Down;
    assert_eq!(reported(&mut net), assumed(), "one without a carrier is nobody's end");

    let (mut net, _) = unconnected(ANY);
    let second = net.pair((8, "nic1"), (9, "nic1"));
    net.address(second[0], "198.18.2.8");
    net.address(second[1], "198.18.2.9");
    let told = reported(&mut net);
    let [one, other] = ["198.18.1.9 or 198.18.2.9", "198.18.2.9 or 198.18.1.9"]
        .map(|ends| format!("{ENDS}; it may send to {ends}, on different paths"));
    assert!(told == one || told == other, "{told}");
    let near = net.named(8, "nic0");
    net.route(8, "198.18.2.9", near, Some("198.18.1.9"));
    assert_eq!(reported(&mut net), assumed(), "two addresses on one path");

    // A server that both are clients of may relay between them.
    let (mut net, _) = unconnected(ANY);
    let [near, server] = net.pair((8, "nic7"), (7, "nic7"));
    net.address(near, "198.18.7.8");
    net.address(server, "198.18.7.7");
    let relay = net.link(7, "tun0", "tun");
    net.programs.insert(relay, (program(7), vec![socket(7, "0.0.0.0:1194", None)]));
    net.route(7, "198.19.0.8", relay, None);
    assert_eq!(reported(&mut net), assumed(), "it has no route to one of them");
    net.route(7, "198.19.0.9", relay, None);
    assert_eq!(reported(&mut net), format!("{ENDS}; its far end may be vpnd 7 or vpnd 9"));

    let (mut net, ends) = unconnected(ANY);
    net.route(8, "198.18.1.9", ends[0], None);
    assert_eq!(reported(&mut net), ENDS, "the only address is routed into the tun itself");
}
