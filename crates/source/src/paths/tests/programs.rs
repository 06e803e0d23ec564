//! Walks into the programs behind tuns: over a VPN's own datagrams, and to the guest that keeps what it is given.

use super::net::Net;
use crate::paths::lookups::DeviceProgram;
use vnettop_sample::{EndName, LinkKey};

/// Two hosts 8 and 9 with a wire `nic0`, 198.18.1.8 and .9, and a VPN's `tun0` on both, 198.19.0.8 and .9.
fn hosts() -> (Net, [LinkKey; 2]) {
    let mut net = Net::default();
    let wire = net.pair((8, "nic0"), (9, "nic0"));
    let ends = [8, 9].map(|host| net.link(host, "tun0", "tun"));
    for (at, (host, other)) in [(8_u8, 9_u8), (9, 8)].into_iter().enumerate() {
        net.address(wire[at], &format!("198.18.1.{host}"));
        net.address(ends[at], &format!("198.19.0.{host}"));
        let [local, remote] = [host, other].map(|host| format!("198.18.1.{host}:5555").parse().expect("an address"));
        let program = DeviceProgram { pid: u32::from(host), name: format!("vpnd {host}") };
        net.programs.insert(ends[at], (program, Some(EndName { netns: u64::from(host), local, remote })));
    }
    (net, ends)
}

fn reported(net: &mut Net) -> String {
    net.walked_from(8, "198.19.0.8:40000", "198.19.0.9:5201")
}

#[test]
fn a_vpn_of_a_program_goes_on_over_its_connected_socket() {
    let (mut net, _) = hosts();
    let whole = "8:tun0 sent route, 8:nic0 sent route, 9:nic0 received peer, 9:tun0 received tunnel";
    assert_eq!(reported(&mut net), whole);
    let back = net.walked_from(9, "198.19.0.9:5201", "198.19.0.8:40000");
    assert_eq!(back, "9:tun0 sent route, 9:nic0 sent route, 8:nic0 received peer, 8:tun0 received tunnel");
}

#[test]
fn a_socket_that_leads_nowhere_known_ends_the_way_at_the_program_by_name() {
    let (mut net, ends) = hosts();
    net.programs.get_mut(&ends[0]).expect("made").1 = None;
    assert_eq!(reported(&mut net), "8:tun0 sent route … the packets exit through tun0, to vpnd 8");
    net.programs.remove(&ends[0]);
    assert_eq!(
        reported(&mut net),
        "8:tun0 sent route … the packets exit through tun0, to the program that holds it open"
    );
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
