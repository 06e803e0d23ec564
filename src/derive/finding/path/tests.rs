//! Each thing that can be wrong with a path, and silence where nothing is.

use crate::derive::claim::Basis;
use crate::derive::finding::Finding;
use crate::derive::history::History;
use crate::derive::inquiry::Inquiry;
use crate::derive::links::LinkMetrics;
use crate::derive::placement::machine::Machine;
use crate::derive::{Metrics, finding};
use crate::sample::{
    FlowPath, Hop, HopBy, HopWay, Ifindex, Kind, LinkFacts, LinkKey, LinkState, Offloads, PeerRef, PortState, Proto,
    Space,
};
use std::sync::Arc;

const NEAR: u64 = 11;
const FAR: u64 = 12;

fn facts(netns: u64, ifindex: u32, name: &str, kind: Kind) -> LinkFacts {
    LinkFacts::plain(LinkKey { netns, ifindex: Ifindex(ifindex) }, name, kind)
}

fn peer(netns: u64, ifindex: u32) -> PeerRef {
    PeerRef { netnsid: None, netns: Some(netns), ifindex: Ifindex(ifindex) }
}

fn hop(netns: u64, ifindex: u32, by: HopBy) -> Hop {
    Hop { link: LinkKey { netns, ifindex: Ifindex(ifindex) }, way: HopWay::Sent, by }
}

/// A flow from `a0` in c1 through `x0` to `b0` in c2, and the links changed as the test says.
fn metrics(change: impl FnOnce(&mut Vec<LinkFacts>, &mut FlowPath)) -> Metrics {
    let mut metrics = Machine::small(2).metrics();
    let mut links = vec![
        facts(NEAR, 2, "a0", Kind::Veth),
        facts(NEAR, 3, "x0", Kind::Veth),
        facts(FAR, 2, "b0", Kind::Veth),
        facts(FAR, 3, "br0", Kind::Bridge),
    ];
    let mut path = FlowPath {
        netns: NEAR,
        proto: Proto::Tcp,
        from: ([198, 18, 0, 1], 43210).into(),
        to: ([198, 18, 0, 2], 5201).into(),
        hops: vec![hop(NEAR, 2, HopBy::Route), hop(NEAR, 3, HopBy::Peer), hop(FAR, 2, HopBy::Peer)],
        gap: None,
    };
    change(&mut links, &mut path);
    let link = |facts: LinkFacts| LinkMetrics {
        facts: Arc::new(facts),
        basis: Basis::None,
        counters: None,
        rates: None,
        ovs: None,
    };
    metrics.links = links.into_iter().map(link).collect();
    metrics.paths = Arc::new(vec![path]);
    let space = |netns, name: &str| Space { netns, name: Some(name.to_owned()), pid: None, rests: false };
    metrics.spaces = Arc::new(vec![space(NEAR, "c1"), space(FAR, "c2")]);
    metrics
}

fn findings(metrics: &Metrics) -> Vec<Finding> {
    finding::all(metrics, &History::default(), &Inquiry::default())
}

fn said(metrics: &Metrics, id: &str) -> String {
    let all = findings(metrics);
    all.into_iter()
        .find(|finding| finding.id == id)
        .map_or_else(|| format!("no finding '{id}'"), |finding| finding.text)
}

#[test]
fn a_path_without_fault_has_no_finding() {
    assert_eq!(findings(&metrics(|_, _| ())), [], "nothing is wrong, nothing is said");
}

#[test]
fn a_narrow_link_in_the_middle_is_named_and_narrow_ends_are_not() {
    let told = said(&metrics(|links, _| links[1].mtu = 1400), "path_mtu");
    assert!(told.starts_with("x0 (c1) takes 1400 bytes, the ends of its path send 1500"), "{told}");
    let both = metrics(|links, _| (links[0].mtu, links[1].mtu) = (1400, 1400));
    assert_eq!(findings(&both), [], "an end that sends 1400 fits");
    let unknown = metrics(|links, path| {
        let port = Ifindex(1 << 31);
        (links[1].ifindex, links[1].mtu, path.hops[1].link.ifindex) = (port, 0, port);
    });
    assert_eq!(findings(&unknown), [], "a port that is no device has no size, not the size 0");
    let torn = metrics(|links, path| (links[1].mtu, path.gap) = (1400, Some("unknown".into())));
    assert_eq!(findings(&torn), [], "of a path that is not known to its end, nobody knows the ends");
}

#[test]
fn a_vxlan_needs_room_for_its_header() {
    let vxlan = |mtu| {
        metrics(move |links, _| {
            let below = Some(peer(FAR, 2));
            links.push(LinkFacts { mtu, lower: below, ..facts(FAR, 7, "vxlan7", Kind::Vxlan) });
        })
    };
    assert_eq!(findings(&vxlan(1450)), [], "50 bytes are enough over IPv4");
    let told = said(&vxlan(1451), "vxlan_headroom");
    assert!(told.contains("vxlan7 (c2) takes 1451 bytes") && told.ends_with("mtu 1450)"), "{told}");
}

#[test]
fn half_a_pair_and_a_waiting_port_are_named() {
    let half = metrics(|links, _| {
        (links[0].state, links[0].peer) = (LinkState::LowerLayerDown, Some(peer(NEAR, 3)));
        links[1].state = LinkState::Down;
    });
    let told = said(&half, "half_down");
    assert!(told.starts_with("a0 (c1) carries nothing: x0 (c1), its other end, is down"), "{told}");
    let port =
        |state| metrics(move |links, _| (links[2].master, links[2].port_state) = (Some(Ifindex(3)), Some(state)));
    assert_eq!(findings(&port(PortState::Forwarding)), [], "a port that forwards is as it should be");
    let told = said(&port(PortState::Learning), "port_waits");
    assert!(told.starts_with("br0 (c2) forwards nothing through b0: its port is learning"), "{told}");
}

#[test]
fn detours_are_named() {
    let local = said(&metrics(|_, path| path.hops = vec![hop(NEAR, 2, HopBy::Local)]), "through_lo");
    assert!(local.starts_with("198.18.0.2 is an address of the sender's own namespace"), "{local}");
    let proxy = said(&metrics(|_, path| path.hops[2].by = HopBy::Proxy), "proxy");
    assert!(proxy.starts_with("port 5201 is published through a proxy"), "{proxy}");
}

#[test]
fn an_offload_that_only_one_end_has_is_named() {
    let both = |tso| {
        let of = |netns, tso| Offloads {
            link: LinkKey { netns, ifindex: Ifindex(2) },
            tso,
            gso: true,
            gro: false,
            tx_checksum: true,
            rx_checksum: true,
        };
        let mut metrics = metrics(|_, _| ());
        metrics.offloads = Arc::new(vec![of(NEAR, tso), of(FAR, true)]);
        metrics
    };
    assert_eq!(findings(&both(true)), [], "the ends are alike");
    let told = said(&both(false), "offloads");
    assert!(told.starts_with("tso is off on a0 (c1) and on on b0 (c2)") && told.ends_with("-K a0 tso on)"), "{told}");
}
