//! What a bridge's ports say of themselves is named before VLANs are suspected.

use super::{FAR, NEAR, facts, findings, hop, metrics, peer, said};
use crate::TestMetrics;
use crate::losses::{Loss, LossPlace};
use std::sync::Arc;
use vnettop_sample::{HopBy, HopWay, Ifindex, Kind, LinkFacts, LinkKey, LinkState, PortState, Proto};

const HOST: u64 = 13;

/// Two containers on the bridge `br0` of a host: a0 – p1, p2 – b0, and datagrams that the bridge drops at a port.
fn bridged(at: u32, (reason, function): (&str, &str), change: impl FnOnce(&mut Vec<LinkFacts>)) -> TestMetrics {
    let mut metrics = metrics(|links, path| {
        let port = |ifindex, name, netns| LinkFacts {
            master: Some(Ifindex(9)),
            peer: Some(peer(netns, 2)),
            port_state: Some(PortState::Forwarding),
            is_set_up: Some(true),
            ..facts(HOST, ifindex, name, Kind::Veth)
        };
        links.remove(3);
        links.remove(1);
        links[0].peer = Some(peer(HOST, 2));
        links[1].peer = Some(peer(HOST, 3));
        links.extend([port(2, "p1", NEAR), port(3, "p2", FAR), facts(HOST, 9, "br0", Kind::Bridge)]);
        for link in links.iter_mut() {
            link.mac = Some(format!("02:00:00:00:{:02x}:{:02x}", link.netns, link.ifindex.0));
        }
        path.proto = Proto::Udp;
        path.hops = vec![
            hop(NEAR, 2, HopBy::Route),
            hop(HOST, 2, HopBy::Peer),
            hop(HOST, 9, HopBy::Bridge),
            hop(HOST, 3, HopBy::Fdb),
            hop(FAR, 2, HopBy::Peer),
        ];
        (path.hops[1].way, path.hops[2].way, path.hops[4].way) = (HopWay::Received, HopWay::Passed, HopWay::Received);
        change(links);
    });
    let link = LinkKey { netns: HOST, ifindex: Ifindex(at) };
    metrics.losses.seconds = 1.0;
    metrics.losses.places = vec![Loss {
        place: LossPlace::Bridge,
        netns: Some(HOST),
        link: Some(link),
        name: metrics.machine.link(link).map(|link| link.facts.name.clone()),
        packets: 900.0,
        reason: Some(reason.into()),
        function: Some(function.into()),
        ..Loss::default()
    }];
    // The links are found by their keys.
    Arc::make_mut(&mut metrics.machine_mut().links).sort_by_key(|link| link.facts.key());
    metrics.losses.places[0].name = metrics.machine.link(link).map(|link| link.facts.name.clone());
    metrics
}

const NO_TARGET: (&str, &str) = ("NO_TX_TARGET", "br_forward");

fn link(links: &mut [LinkFacts], netns: u64, ifindex: u32) -> &mut LinkFacts {
    links.iter_mut().find(|link| link.key() == LinkKey { netns, ifindex: Ifindex(ifindex) }).expect("it is there")
}

fn reported(metrics: &TestMetrics) -> String {
    let lost = findings(metrics).into_iter().find(|finding| <&str>::from(finding.id) == "loss").expect("a finding");
    lost.text
}

#[test]
fn datagrams_longer_than_a_port_takes_name_its_mtu_and_no_vlan() {
    for function in ["br_nf_dev_queue_xmit", "br_dev_queue_push_xmit"] {
        let metrics = bridged(3, ("NOT_SPECIFIED", function), |links| link(links, HOST, 3).mtu = 1450);
        let reported = reported(&metrics);
        assert!(
            reported.contains("p2 has MTU 1450, a0 (c1) 1500: what is longer is dropped without ICMP"),
            "{reported}"
        );
        assert!(reported.ends_with("at both ends: ip link set a0 mtu 1450, or iperf3 -l 1422"), "{reported}");
    }
    let down = bridged(3, ("NOT_SPECIFIED", "br_dev_queue_push_xmit"), |links| {
        let port = link(links, HOST, 3);
        (port.state, port.is_set_up) = (LinkState::Down, Some(false));
    });
    assert!(reported(&down).contains("p2 is down"), "{}", reported(&down));
}

#[test]
fn isolated_and_blocked_ports_are_named_before_vlans() {
    let isolated = bridged(2, NO_TARGET, |links| {
        link(links, HOST, 2).isolated = true;
        link(links, HOST, 3).isolated = true;
    });
    assert!(reported(&isolated).contains("p1 and p2 are isolated ports of br0"), "{}", reported(&isolated));
    let one = bridged(2, NO_TARGET, |links| link(links, HOST, 2).isolated = true);
    assert!(reported(&one).contains("does not accept their VLAN"), "one alone reaches the others: {}", reported(&one));
    let blocked = bridged(2, NO_TARGET, |links| link(links, HOST, 3).port_state = Some(PortState::Blocking));
    assert!(reported(&blocked).contains("port p2 is blocking"), "{}", reported(&blocked));
    assert!(said(&blocked, "port_waits").contains("through p2: its port is blocking"), "the path goes through it");
    let vlan = bridged(2, ("VLAN_FILTER", "br_handle_frame_finish"), |links| link(links, HOST, 2).isolated = true);
    assert!(reported(&vlan).contains("does not accept their VLAN (bridge vlan show)"), "{}", reported(&vlan));
}

#[test]
fn two_links_with_one_mac_address_are_named() {
    let metrics = bridged(2, NO_TARGET, |links| {
        let mac = link(links, FAR, 2).mac.clone();
        let mut twin = facts(14, 2, "c0", Kind::Veth);
        (twin.peer, twin.mac) = (Some(peer(HOST, 4)), mac);
        let port = LinkFacts { master: Some(Ifindex(9)), peer: Some(peer(14, 2)), ..facts(HOST, 4, "p3", Kind::Veth) };
        links.extend([twin, port]);
    });
    let reported = said(&metrics, "same_mac");
    assert!(
        reported.starts_with("b0 (c2) and c0 have one MAC address, 02:00:00:00:0c:02: br0 sends frames"),
        "{reported}"
    );
    let healthy = bridged(2, NO_TARGET, |_| ());
    assert_eq!(said(&healthy, "same_mac"), "no finding 'same_mac'", "each has its own");
}
