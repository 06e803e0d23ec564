//! Walks through a guest that holds several taps: by the segments behind them, and not where it may keep the packets.

use super::net::Net;
use crate::paths::lookups::DeviceProgram;
use vnettop_sample::{CarrierKind, LinkKey};

/// Two bridges in namespace 9, a container on each (1 and 2), and a guest with a tap on each. Both containers have an address of
/// this network.
fn between_bridges(addresses: [&str; 2]) -> (Net, [LinkKey; 2]) {
    let mut net = Net::default();
    let mut taps = Vec::new();
    for (netns, address) in [1, 2].into_iter().zip(addresses) {
        let bridge = net.link(9, &format!("br{netns}"), "bridge");
        let [port, inner] = net.pair((9, &format!("v{netns}")), (netns, "eth0"));
        let tap = net.link(9, &format!("t{netns}"), "tap");
        for port in [port, tap] {
            net.facts(port).master = Some(bridge.ifindex);
        }
        net.address(inner, address);
        let program = DeviceProgram { pid: 7, name: "the guest web1".to_owned() };
        net.programs.insert(tap, (program, Vec::new()));
        taps.push(tap);
    }
    (net, [taps[0], taps[1]])
}

/// The first bridge has learnt that this container's address is behind the guest.
fn learnt(net: &mut Net, tap: LinkKey, of: LinkKey) {
    let bridge = net.named(9, "br1");
    net.fdb.insert((bridge, Net::mac(of)), tap.ifindex);
}

const WHOLE: &str = "1:eth0 sent route, 9:v1 received peer, 9:br1 passed bridge, 9:t1 sent fdb, 9:t2 received guest, \
                     9:br2 passed bridge, 9:v2 sent fdb, 2:eth0 received peer";

#[test]
fn a_guest_that_bridges_gives_the_frame_to_the_segment_that_has_its_address() {
    let (mut net, taps) = between_bridges(["198.18.0.1", "198.18.0.2"]);
    let receiver = net.named(2, "eth0");
    learnt(&mut net, taps[0], receiver);
    assert_eq!(net.walked(1, "198.18.0.2:5201"), WHOLE);
    let way = net.way(1, "198.18.0.1:40000", "198.18.0.2:5201");
    let carriers: Vec<_> = way.carriers.iter().map(|one| (one.pid, one.kind, one.at)).collect();
    assert_eq!(carriers, [(7, CarrierKind::Guest, 4)], "the guest stands between its taps");
}

#[test]
fn a_guest_that_is_the_end_or_has_two_links_on_one_segment_keeps_the_packets() {
    let (mut net, taps) = between_bridges(["198.18.0.1", "198.18.0.2"]);
    let receiver = net.named(2, "eth0");
    learnt(&mut net, taps[0], receiver);
    let bridge = net.named(9, "br1").ifindex;
    net.facts(taps[1]).master = Some(bridge);
    let reported = net.walked(1, "198.18.0.2:5201");
    assert!(reported.ends_with("9:t1 sent fdb … the packets exit through t1, to the guest web1"), "{reported}");
    let (mut net, taps) = between_bridges(["198.18.0.1", "198.18.0.2"]);
    learnt(&mut net, taps[0], receiver);
    let behind = net.named(9, "v2");
    net.facts(behind).peer = None;
    let reported = net.walked(1, "198.18.0.2:5201");
    assert!(reported.ends_with("which holds t2 too: whether it sends them on is not known"), "{reported}");
}

#[test]
fn a_guest_that_routes_gives_the_packet_to_the_segment_of_the_link_by_which_the_receiver_answers() {
    for [near, far, own, beyond] in [
        ["198.18.1.1", "198.18.2.1", "198.18.1.254", "198.18.2.254"],
        ["fd00:1::1", "fd00:2::1", "fd00:1::ff", "fd00:2::ff"],
    ] {
        let (mut net, taps) = between_bridges([near, far]);
        // The links within the guest are in no namespace that is seen: two of one that nothing leads to stand for them.
        let inside = [own, beyond].map(|address| {
            let link = net.link(77, &format!("in{}", address.len()), "virtio");
            net.address(link, address);
            link
        });
        learnt(&mut net, taps[0], inside[0]);
        let ends = [1, 2].map(|netns| net.named(netns, "eth0"));
        net.route(1, far, ends[0], Some(own));
        net.route(2, near, ends[1], Some(beyond));
        let to = |ip: &str, port| if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") };
        net.held = vec![(2, to(far, 5201).parse().expect("an address"))];
        assert_eq!(net.walked_from(1, &to(near, 40000), &to(far, 5201)), WHOLE);
    }
}
