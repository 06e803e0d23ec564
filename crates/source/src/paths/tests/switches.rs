//! Open vSwitch and what it is joined with: ports, patches, a Linux bridge between, tunnels between switches.

use super::net::Net;
use crate::paths::lookups::RouteResult;
use vnettop_sample::{LinkKey, PeerRef};

/// A container in namespace `inner` on a link `port` of namespace `host`; returns the port.
fn container(net: &mut Net, host: u64, port: &str, inner: u64) -> LinkKey {
    let [port, end] = net.pair((host, port), (inner, "eth0"));
    net.address(end, &format!("198.18.0.{inner}"));
    port
}

#[test]
fn from_port_to_port_of_one_bridge() {
    let mut net = Net::default();
    let own = net.link(9, "br0", "openvswitch");
    let ports = [("va", 1), ("vb", 2), ("vc", 3)].map(|(name, inner)| container(&mut net, 9, name, inner));
    net.switch(9, "br0", &[(own, "internal"), (ports[0], "system"), (ports[1], "system"), (ports[2], "system")]);
    let expected = "1:eth0 sent route, 9:va received peer, 9:br0 passed bridge, 9:vc sent ovs, 3:eth0 received peer";
    assert_eq!(net.walked(1, "198.18.0.3:5201"), expected, "the port behind which the address is");
    net.address(own, "198.18.0.254");
    let inwards = "1:eth0 sent route, 9:va received peer, 9:br0 received ovs";
    assert_eq!(net.walked(1, "198.18.0.254:5201"), inwards, "the bridge's own address");
    let outwards = "9:br0 sent route, 9:vb sent ovs, 2:eth0 received peer";
    assert_eq!(net.walked(9, "198.18.0.2:5201"), outwards, "from the bridge's own address");
}

#[test]
fn over_patch_ports_and_a_linux_bridge() {
    let mut net = Net::default();
    let one = container(&mut net, 9, "va", 1);
    let [to_two, to_one] = [net.link(9, "to2", "patch"), net.link(9, "to1", "patch")];
    let [outer, inner] = net.pair((9, "ob"), (9, "lb"));
    let linux = net.link(9, "lin0", "bridge");
    let two = container(&mut net, 9, "vb", 2);
    for port in [inner, two] {
        net.facts(port).master = Some(linux.ifindex);
    }
    net.switch(9, "br1", &[(one, "system"), (to_two, "patch")])[1].peer = Some("to1".into());
    net.switch(9, "br2", &[(to_one, "patch"), (outer, "system")])[0].peer = Some("to2".into());
    let expected = "1:eth0 sent route, 9:va received peer, 9:to2 sent ovs, 9:to1 received peer, 9:ob sent ovs, \
                    9:lb received peer, 9:lin0 passed bridge, 9:vb sent fdb, 2:eth0 received peer";
    assert_eq!(net.walked(1, "198.18.0.2:5201"), expected, "bridge by bridge");
    let back = "2:eth0 sent route, 9:vb received peer, 9:lin0 passed bridge, 9:lb sent fdb, 9:ob received peer, \
                9:to1 sent ovs, 9:to2 received peer, 9:va sent ovs, 1:eth0 received peer";
    let (mac, port) = (Net::mac(net.named(1, "eth0")), inner.ifindex);
    net.fdb.insert((linux, mac), port);
    assert_eq!(net.walked(2, "198.18.0.1:5201"), back, "and back, as the Linux bridge has learnt");
}

/// Three hosts (7, 8, 9) with a switch each, a container on each, and a full mesh of vxlan.
fn overlay(datapath: &str) -> Net {
    let mut net = Net::default();
    let wire = net.link(6, "wire", "bridge");
    for host in [7_u64, 8, 9] {
        let [uplink, port] = net.pair((host, "up"), (6, &format!("w{host}")));
        net.facts(port).master = Some(wire.ifindex);
        let below = net.link(host, "br-up", "openvswitch");
        net.address(below, &format!("198.18.9.{host}"));
        let inner = container(&mut net, host, "va", host - 6);
        let tunnels: Vec<u64> = [7, 8, 9].into_iter().filter(|&other| other != host).collect();
        let links: Vec<LinkKey> = tunnels.iter().map(|other| net.link(host, &format!("vx{other}"), "vxlan")).collect();
        net.switch(host, "br-up", &[(below, "internal"), (uplink, "system")]);
        let ports = net.switch(host, "br-int", &[(inner, "system"), (links[0], "vxlan"), (links[1], "vxlan")]);
        for (port, other) in ports[1..].iter_mut().zip(tunnels) {
            port.remote_ip = Some(format!("198.18.9.{other}"));
            port.key = Some("5".into());
        }
    }
    for bridge in net.switches.iter_mut().flat_map(|switch| &mut switch.bridges) {
        bridge.datapath = datapath.into();
    }
    net
}

#[test]
fn over_the_tunnel_that_leads_to_the_right_switch() {
    let expected = |below: &str, above: &str| {
        format!(
            "1:eth0 sent route, 7:va received peer, 7:vx9 sent ovs, 7:br-up {below} route, 7:up sent ovs, \
             6:w7 received peer, 6:wire passed bridge, 6:w9 sent fdb, 9:up received peer, 9:br-up {above} ovs, \
             9:vx7 received tunnel, 9:va sent ovs, 3:eth0 received peer"
        )
    };
    let kernel = overlay("system").walked(1, "198.18.0.3:5201");
    assert_eq!(kernel, expected("sent", "received"), "the kernel routes the outer packets");
    let userspace = overlay("netdev").walked(1, "198.18.0.3:5201");
    assert_eq!(userspace, expected("passed", "passed"), "a userspace datapath does not use the device");
    let unasked = |datapath: &str| {
        let mut net = overlay(datapath);
        net.unasked.insert([198, 18, 9, 9].into());
        net.walked(1, "198.18.0.3:5201")
    };
    assert_eq!(unasked("netdev"), userspace, "nor the kernel's neighbours: ovs-vswitchd asks by itself");
    let reported = unasked("system");
    assert!(
        reported.ends_with("the destination's MAC address is not known, so neither is the port of br-up"),
        "{reported}"
    );
}

#[test]
fn what_the_kernel_makes_of_a_tunnel_port_is_not_crossed() {
    let mut net = overlay("system");
    let expected = net.walked(1, "198.18.0.3:5201");
    for host in [7, 8, 9] {
        let sys = net.link(host, "vxlan_sys_4789", "vxlan");
        for other in [7, 8, 9].into_iter().filter(|other| *other != host) {
            let port = net.named(host, &format!("vx{other}"));
            let below = PeerRef { netnsid: None, netns: Some(host), ifindex: sys.ifindex };
            net.facts(port).lower = Some(below);
            // What is bound to a link leaves through it, whatever the routes say.
            let out = RouteResult::Out { link: sys.ifindex, gateway: None, source: None };
            net.tables.insert((host, sys.ifindex, format!("198.18.9.{other}").parse().expect("an address")), out);
        }
    }
    assert_eq!(net.walked(1, "198.18.0.3:5201"), expected, "the outer packet is routed by the host");
    assert!(expected.ends_with("eth0 received peer"), "to the container: {expected}");
}

#[test]
fn a_port_that_cannot_be_told_is_said() {
    let mut net = overlay("system");
    net.switches.retain(|switch| switch.netns != 9);
    let reported = net.walked(1, "198.18.0.3:5201");
    assert!(reported.ends_with("the port of br-int that leads to the destination is not known"), "{reported}");
}

#[test]
fn the_far_port_is_the_one_that_leads_back() {
    let reported = overlay("system").walked(2, "198.18.0.3:5201");
    assert!(reported.contains("8:vx9 sent ovs"), "from the second host: {reported}");
    assert!(
        reported.contains("9:vx8 received tunnel, 9:va sent ovs, 3:eth0 received peer"),
        "out of its own tunnel: {reported}"
    );
}
