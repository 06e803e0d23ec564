//! Walks through wireguard: to the right peer, over the underlay, out at the far end; and why not.

use super::net::Net;
use crate::paths::lookups::{RouteResult, Wireguard, WireguardPeer};
use vnettop_sample::LinkKey;

/// Two hosts 8 and 9 with a wire `nic0`, 198.18.1.8 and .9, and `wg0` on both, 198.19.0.8 and .9.
fn hosts() -> (Net, [LinkKey; 2]) {
    let mut net = Net::default();
    let wire = net.pair((8, "nic0"), (9, "nic0"));
    let ends = [8, 9].map(|host| net.link(host, "wg0", "wireguard"));
    for (at, (host, other)) in [(8_u8, 9_u8), (9, 8)].into_iter().enumerate() {
        net.address(wire[at], &format!("198.18.1.{host}"));
        net.address(ends[at], &format!("198.19.0.{host}"));
        let peer = WireguardPeer {
            key: [other; 32],
            endpoint: format!("198.18.1.{other}:51820").parse().ok(),
            allowed: vec![([198, 19, 0, other].into(), 32)],
        };
        net.wireguards.insert(ends[at], Wireguard { key: Some([host; 32]), port: 51820, mark: 0, peers: vec![peer] });
        net.listening.insert((u64::from(host), 51820));
    }
    (net, ends)
}

const OVER_THE_WIRE: &str = "8:wg0 sent route, 8:nic0 sent route, 9:nic0 received peer, 9:wg0 received tunnel";

fn peer(net: &mut Net, link: LinkKey) -> &mut WireguardPeer {
    &mut net.wireguards.get_mut(&link).expect("the test made it").peers[0]
}

fn reported(net: &mut Net) -> String {
    net.walked_from(8, "198.19.0.8:40000", "198.19.0.9:5201")
}

#[test]
fn the_way_goes_on_at_the_peers_endpoint() {
    let (mut net, ends) = hosts();
    assert_eq!(reported(&mut net), OVER_THE_WIRE);
    // Another peer has all addresses, and this one the longer prefix.
    let other = WireguardPeer { key: [7; 32], endpoint: None, allowed: vec![([0, 0, 0, 0].into(), 0)] };
    net.wireguards.get_mut(&ends[0]).expect("made").peers.insert(0, other);
    assert_eq!(reported(&mut net), OVER_THE_WIRE, "the longest prefix says which peer");
    net.route(8, "198.19.0.77", ends[0], None);
    let away = net.walked(8, "198.19.0.77:1");
    assert_eq!(away, "8:wg0 sent route … the endpoint of the peer of wg0 that allows 198.19.0.77 is not known yet");
}

#[test]
fn what_no_peer_allows_goes_nowhere() {
    let (mut net, ends) = hosts();
    peer(&mut net, ends[0]).allowed = vec![([198, 19, 0, 8].into(), 32), ([198, 19, 1, 0].into(), 24)];
    assert_eq!(reported(&mut net), "8:wg0 sent route … no peer of wg0 allows 198.19.0.9");
    let (mut net, ends) = hosts();
    peer(&mut net, ends[1]).allowed.clear();
    let dropped = reported(&mut net);
    assert!(
        dropped.ends_with("… wg0 drops packets from 198.19.0.8: that address is not among its peer's allowed IPs"),
        "{dropped}"
    );
    let (mut net, ends) = hosts();
    net.wireguards.get_mut(&ends[0]).expect("made").key = None;
    assert!(reported(&mut net).ends_with("… wg0 has no private key, so it sends nothing"));
}

#[test]
fn who_listens_there_with_another_key_or_port_is_not_the_peer() {
    let unseen = "… no wireguard with the peer's key is visible at 198.18.1.9:51820 to decapsulate the packets";
    let (mut net, ends) = hosts();
    net.wireguards.get_mut(&ends[1]).expect("made").key = Some([6; 32]);
    assert!(reported(&mut net).ends_with(unseen));
    let (mut net, ends) = hosts();
    net.wireguards.get_mut(&ends[1]).expect("made").port = 51821;
    assert!(reported(&mut net).ends_with(unseen));
    let (mut net, ends) = hosts();
    net.wireguards.remove(&ends[1]);
    let blind = reported(&mut net);
    assert!(blind.ends_with(&format!("{unseen}; the peers of link 3 may not be asked for")), "{blind}");
}

/// The network of [`hosts`] with `wg0` of host 8 moved to namespace 1, as a container's VPN is.
fn moved() -> (Net, LinkKey) {
    let (mut net, ends) = hosts();
    let inner = net.link(1, "wg0", "wireguard");
    let device = net.wireguards.remove(&ends[0]).expect("made");
    net.wireguards.insert(inner, Wireguard { port: 51900, ..device });
    net.facts(ends[0]).kind = vnettop_sample::Kind::Dummy;
    net.listening.remove(&(8, 51820));
    net.listening.insert((8, 51900));
    net.address(inner, "198.19.0.1");
    peer(&mut net, ends[1]).allowed = vec![([198, 19, 0, 1].into(), 32)];
    (net, inner)
}

#[test]
fn one_that_was_moved_sends_from_where_it_was_made() {
    let (mut net, inner) = moved();
    let walked = |net: &mut Net| net.walked_from(1, "198.19.0.1:40000", "198.19.0.9:5201");
    let expected = "1:wg0 sent route, 8:nic0 sent route, 9:nic0 received peer, 9:wg0 received tunnel";
    assert_eq!(walked(&mut net), expected, "the other namespace with its socket");
    let back = net.walked_from(9, "198.19.0.9:5201", "198.19.0.1:40000");
    assert!(back.contains("no wireguard with the peer's key"), "its peer's endpoint has the old port: {back}");
    let far = net.named(9, "wg0");
    peer(&mut net, far).endpoint = "198.18.1.8:51900".parse().ok();
    let back = net.walked_from(9, "198.19.0.9:5201", "198.19.0.1:40000");
    assert_eq!(back, "9:wg0 sent route, 9:nic0 sent route, 8:nic0 received peer, 1:wg0 received tunnel");
    // A third namespace has a wireguard with that port of its own, and a socket for it.
    let own = net.link(7, "wg0", "wireguard");
    net.wireguards.insert(own, Wireguard { key: Some([5; 32]), port: 51900, ..Wireguard::default() });
    net.listening.insert((7, 51900));
    assert_eq!(walked(&mut net), expected, "that socket is its own");
    net.wireguards.remove(&own);
    let open = walked(&mut net);
    assert!(open.ends_with("… 2 namespaces may be the one wg0 sends in: each has a wireguard on port 51900"), "{open}");
    net.listening.clear();
    let unseen = walked(&mut net);
    assert!(unseen.ends_with("… wg0 was made, and sends, in a namespace that is not visible"), "{unseen}");
    assert_eq!(inner.netns, 1);
}

#[test]
fn its_mark_says_by_which_table_the_outer_packet_goes() {
    let (mut net, ends) = hosts();
    let other = net.pair((8, "nic1"), (9, "nic1"));
    let remote = "198.18.1.9".parse().expect("an address");
    net.marked.insert((8, 0xca6c, remote), RouteResult::Out { link: other[0].ifindex, gateway: None, source: None });
    assert_eq!(reported(&mut net), OVER_THE_WIRE, "without a mark");
    net.wireguards.get_mut(&ends[0]).expect("made").mark = 0xca6c;
    let expected = "8:wg0 sent route, 8:nic1 sent route, 9:nic1 received peer, 9:wg0 received tunnel";
    assert_eq!(reported(&mut net), expected, "with the mark of wg-quick");
}

#[test]
fn a_router_between_that_translates_the_outer_packet_is_crossed() {
    let (mut net, ends) = hosts();
    // Host 9 is reached at the router's address, 198.18.2.7, as port 4500.
    let [near, inside] = net.pair((8, "up0"), (7, "in0"));
    let [outside, far] = net.pair((7, "out0"), (9, "up0"));
    net.address(near, "198.18.2.8");
    net.address(inside, "198.18.2.7");
    net.address(outside, "198.18.3.7");
    net.address(far, "198.18.3.9");
    peer(&mut net, ends[0]).endpoint = "198.18.2.7:4500".parse().ok();
    net.nat(7, ["198.18.2.8:51820", "198.18.2.7:4500"], ["198.18.3.9:51820", "198.18.2.8:51820"]);
    let expected = "8:wg0 sent route, 8:up0 sent route, 7:in0 received peer, 7:out0 sent route, 9:up0 received peer, \
                    9:wg0 received tunnel";
    assert_eq!(reported(&mut net), expected);
}
