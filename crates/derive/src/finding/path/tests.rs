//! Each thing that can be wrong with a path, and silence where nothing is.

mod cores;
mod reordered;

use crate::diagnosis::RateDiagnosis;
use crate::finding::Finding;
use crate::flow::{Connection, End, Speaks, TcpFigures};
use crate::history::History;
use crate::links::Basis;
use crate::links::LinkMetrics;
use crate::placement::tests::machine::Machine;
use crate::{TestMetrics, finding};
use std::sync::Arc;
use vnettop_sample::{
    FlowPath, Hop, HopBy, HopWay, Ifindex, Kind, LinkFacts, LinkKey, LinkState, Offload, Offloads, PeerRef, PortState,
    Proto, Space, Word,
};

const NEAR: u64 = 11;
const FAR: u64 = 12;

fn facts(netns: u64, ifindex: u32, name: &str, kind: Kind) -> LinkFacts {
    LinkFacts::new(LinkKey { netns, ifindex: Ifindex(ifindex) }, name, kind)
}

fn peer(netns: u64, ifindex: u32) -> PeerRef {
    PeerRef { netnsid: None, netns: Some(netns), ifindex: Ifindex(ifindex) }
}

fn hop(netns: u64, ifindex: u32, by: HopBy) -> Hop {
    Hop { link: LinkKey { netns, ifindex: Ifindex(ifindex) }, way: HopWay::Sent, by }
}

/// A flow from `a0` in c1 through `x0` to `b0` in c2, and the links changed as the test says.
fn metrics(change: impl FnOnce(&mut Vec<LinkFacts>, &mut FlowPath)) -> TestMetrics {
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
        note: None,
        ends: None,
        outside: None,
        silent: None,
        neighbours: Vec::new(),
        carriers: Vec::new(),
    };
    change(&mut links, &mut path);
    let link = |facts: LinkFacts| LinkMetrics {
        facts: Arc::new(facts),
        basis: Basis::None,
        counters: None,
        rates: None,
        ovs: None,
    };
    metrics.machine_mut().links = Arc::new(links.into_iter().map(link).collect());
    metrics.paths = Arc::new(vec![path]);
    let space = |netns, name: &str| Space { netns, name: Some(name.to_owned()), pid: None, rests: false };
    Arc::make_mut(&mut metrics.machine_mut().facts).spaces = Arc::new(vec![space(NEAR, "c1"), space(FAR, "c2")]);
    metrics
}

fn findings(metrics: &TestMetrics) -> Vec<Finding> {
    finding::tests::all(metrics, &History::default(), &RateDiagnosis::default())
}

fn said(metrics: &TestMetrics, id: &str) -> String {
    let all = findings(metrics);
    all.into_iter()
        .find(|finding| finding.id.word() == id)
        .map_or_else(|| format!("no finding '{id}'"), |finding| finding.text)
}

#[test]
fn a_path_without_fault_has_no_finding() {
    assert_eq!(findings(&metrics(|_, _| ())), [], "nothing is wrong, nothing is said");
}

/// The flow's connection: how much waits to be sent, what it moves, the size of its segments.
fn connected(metrics: TestMetrics, waits: u64, bits_per_s: f64, mss: u32) -> TestMetrics {
    let end = |netns, address: [u8; 4], port| End { netns: Some(netns), address: (address, port).into(), pid: None };
    let (from, to) = (end(NEAR, [198, 18, 0, 1], 43210), end(FAR, [198, 18, 0, 2], 5201));
    let (tx_queue_bytes, bits_per_s, mss_bytes) = (Some(waits), Some(bits_per_s), Some(mss));
    let connection = Connection {
        tx_queue_bytes,
        bits_per_s,
        speaks: Speaks::Tcp(TcpFigures { mss_bytes, ..TcpFigures::default() }),
        carries: true,
        ..Connection::between(from, to)
    };
    let mut metrics = metrics;
    metrics.flow.connections = vec![connection];
    metrics
}

#[test]
fn a_narrow_link_in_the_middle_is_named_where_a_connection_waits_for_it() {
    let narrow = |mtu| metrics(move |links, _| links[1].mtu = mtu);
    let reported = said(&connected(narrow(1400), 87_000, 0.0, 1448), "path_mtu");
    assert!(reported.starts_with("x0 (c1) has MTU 1400, but both ends of the path send 1500 bytes"), "{reported}");
    assert!(reported.ends_with("(ip link set x0 mtu 1500, or mtu 1400 on a0 (c1) and b0 (c2))"), "{reported}");
    assert_eq!(findings(&connected(narrow(1500), 87_000, 0.0, 1448)), [], "no link is narrow");
    assert_eq!(findings(&connected(narrow(1400), 87_000, 0.0, 1348)), [], "the sender has heard of the smaller size");
    assert_eq!(findings(&connected(narrow(1400), 87_000, 9e9, 1448)), [], "what moves does not wait for a mend");
    assert_eq!(findings(&connected(narrow(1400), 0, 0.0, 1448)), [], "who has nothing to send does not wait");
    let both = metrics(|links, _| (links[0].mtu, links[1].mtu) = (1400, 1400));
    assert_eq!(findings(&connected(both, 87_000, 0.0, 1448)), [], "an end that sends 1400 fits");
    let unknown = metrics(|links, path| {
        let port = Ifindex(1 << 31);
        (links[1].ifindex, links[1].mtu, path.hops[1].link.ifindex) = (port, 0, port);
    });
    assert_eq!(
        findings(&connected(unknown, 87_000, 0.0, 1448)),
        [],
        "a port that is no device has no size, not the size 0"
    );
    let torn = metrics(|links, path| (links[1].mtu, path.gap) = (1400, Some("unknown".into())));
    assert_eq!(
        findings(&connected(torn, 87_000, 0.0, 1448)),
        [],
        "of a path that is not known to its end, nobody knows the ends"
    );
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
    let reported = said(&vxlan(1451), "vxlan_headroom");
    assert!(reported.contains("vxlan7 (c2) has MTU 1451") && reported.ends_with("mtu 1450)"), "{reported}");
}

#[test]
fn a_wireguard_needs_room_for_its_headers_in_the_link_that_its_packets_leave_through() {
    let wireguard = |mtu| {
        metrics(move |links, path| {
            (links[0].mtu, links[0].kind) = (mtu, Kind::Wireguard);
            path.hops[1].by = HopBy::Route;
        })
    };
    assert_eq!(findings(&wireguard(1440)), [], "60 bytes are enough over IPv4");
    let reported = said(&wireguard(1441), "wireguard_headroom");
    assert!(reported.starts_with("a0 (c1) has MTU 1441, x0 below it 1500: tunnel headers add 60 bytes"), "{reported}");
    assert!(reported.ends_with("(ip link set a0 mtu 1440)"), "{reported}");
}

#[test]
fn half_a_pair_and_a_waiting_port_are_named() {
    let half = metrics(|links, _| {
        (links[0].state, links[0].peer) = (LinkState::LowerLayerDown, Some(peer(NEAR, 3)));
        links[1].state = LinkState::Down;
    });
    let reported = said(&half, "half_down");
    assert!(reported.starts_with("a0 (c1) carries nothing: x0 (c1), its other end, is down"), "{reported}");
    let apart = |set_up| {
        metrics(move |links, _| {
            (links[0].state, links[0].peer, links[0].is_set_up) = (LinkState::Down, Some(peer(FAR, 2)), Some(set_up));
            (links[2].state, links[2].is_set_up) = (LinkState::Down, Some(false));
        })
    };
    let reported = said(&apart(true), "half_down");
    assert!(reported.starts_with("a0 (c1) carries nothing: b0 (c2), its other end, is down"), "{reported}");
    assert_eq!(findings(&apart(false)), [], "a pair that nobody has set up yet is not half down");
    let port =
        |state| metrics(move |links, _| (links[2].master, links[2].port_state) = (Some(Ifindex(3)), Some(state)));
    assert_eq!(findings(&port(PortState::Forwarding)), [], "a port that forwards is as it should be");
    let blocked = said(&port(PortState::Blocking), "port_waits");
    assert!(blocked.contains("through b0: its port is blocking"), "the path goes through it: {blocked}");
    let beside = metrics(|links, path| {
        (links[2].master, links[2].port_state) = (Some(Ifindex(3)), Some(PortState::Blocking));
        path.hops.pop();
    });
    assert_eq!(findings(&beside), [], "the other of two ways is taken");
    let reported = said(&port(PortState::Learning), "port_waits");
    assert!(reported.starts_with("br0 (c2) forwards nothing through b0: its port is learning"), "{reported}");
}

#[test]
fn a_name_that_is_a_command_is_a_word_in_every_remedy() {
    let half = metrics(|links, _| {
        (links[0].state, links[0].peer) = (LinkState::LowerLayerDown, Some(peer(NEAR, 3)));
        (links[1].state, links[1].name) = (LinkState::Down, "$(reboot)".into());
    });
    let reported = said(&half, "half_down");
    assert!(reported.ends_with("(ip link set '$(reboot)' up)"), "whoever pastes it starts nothing: {reported}");
    let port = metrics(|links, _| {
        (links[2].master, links[2].port_state) = (Some(Ifindex(3)), Some(PortState::Learning));
        (links[2].name, links[3].name) = ("a;b".into(), "`id`".into());
    });
    let reported = said(&port, "port_waits");
    assert!(
        reported.contains("ip link set '`id`' type bridge") && reported.contains("dev 'a;b' state 3"),
        "{reported}"
    );
}

#[test]
fn detours_are_named() {
    let local = said(&metrics(|_, path| path.hops = vec![hop(NEAR, 2, HopBy::Local)]), "through_lo");
    assert!(local.starts_with("198.18.0.2 is an address of the sender's own namespace"), "{local}");
    let proxy = said(&metrics(|_, path| path.hops[2].by = HopBy::Proxy), "proxy");
    assert!(proxy.starts_with("port 5201 is published through a proxy"), "{proxy}");
}

fn offloads(netns: u64, ifindex: u32, off: &[Offload], unwanted: &[Offload]) -> Offloads {
    let on = |of: Offload| !off.contains(&of);
    Offloads {
        link: LinkKey { netns, ifindex: Ifindex(ifindex) },
        tso: on(Offload::Tso),
        gso: on(Offload::Gso),
        gro: on(Offload::Gro),
        tx_checksum: on(Offload::TxChecksum),
        rx_checksum: on(Offload::RxChecksum),
        unwanted: unwanted.to_vec(),
        gso_limits: None,
        xdp: None,
    }
}

/// The metrics of a healthy path where the offloads of its three links are these.
fn with_offloads(each: impl Into<Vec<Offloads>>) -> TestMetrics {
    let mut metrics = metrics(|_, _| ());
    Arc::make_mut(&mut metrics.machine_mut().facts).offloads = Arc::new(each.into());
    metrics
}

#[test]
fn an_offload_that_only_one_end_has_is_named() {
    use Offload::{Gro, Tso};
    let gro = [Gro];
    let ends = |off: &[Offload], unwanted: &[Offload]| {
        let first = offloads(NEAR, 2, off, unwanted);
        with_offloads([first, offloads(NEAR, 3, &gro, &gro), offloads(FAR, 2, &gro, &gro)])
    };
    assert_eq!(findings(&ends(&gro, &gro)), [], "as veth pairs are born");
    let reported = said(&ends(&[Gro, Tso], &[Gro, Tso]), "offloads");
    assert!(
        reported.starts_with("tso is off on a0 (c1), not on b0 (c2)") && reported.ends_with("-K a0 tso on)"),
        "{reported}"
    );
    assert_eq!(findings(&ends(&[Gro, Tso], &gro)), [], "what follows from something else cannot be turned on");
    let reported = said(&ends(&[], &[]), "offloads");
    assert!(reported.starts_with("gro is off on b0 (c2), not on a0 (c1)"), "{reported}");
}

#[test]
fn an_offload_that_is_off_in_the_middle_is_named_where_it_costs() {
    use Offload::{Gro, RxChecksum, Tso};
    let gro = [Gro];
    let middle = |way, off: &[Offload], proto| {
        let [near, far] = [offloads(NEAR, 2, &gro, &gro), offloads(FAR, 2, &gro, &gro)];
        let mut metrics = with_offloads([near, offloads(NEAR, 3, off, off), far]);
        let path = &mut Arc::make_mut(&mut metrics.paths)[0];
        (path.hops[1].way, path.proto) = (way, proto);
        metrics
    };
    let reported = said(&middle(HopWay::Sent, &[Gro, Tso], Proto::Tcp), "offloads");
    assert!(
        reported.starts_with("tso is off on x0 (c1): the CPU segments what it sends")
            && reported.ends_with("-K x0 tso on)"),
        "{reported}"
    );
    assert_eq!(findings(&middle(HopWay::Received, &[Gro, Tso], Proto::Tcp)), [], "the flow does not leave through it");
    assert_eq!(
        findings(&middle(HopWay::Passed, &[Tso], Proto::Tcp)),
        [],
        "a bridge that forwards sends nothing itself"
    );
    assert_eq!(findings(&middle(HopWay::Sent, &[Tso], Proto::Udp)), [], "datagrams are not cut");
    let reported = said(&middle(HopWay::Received, &[RxChecksum], Proto::Udp), "offloads");
    assert!(reported.starts_with("rx is off on x0 (c1): the CPU computes"), "{reported}");
}

mod segmentation;
mod spare_core;
mod switching;
mod tuned;
