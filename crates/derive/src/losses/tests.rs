//! Counters as Linux 6.18 wrote them over two namespaces and a router, a second apart: each lost packet is told once, and
//! where it was lost.

use super::qdiscs::ROOT;
use super::*;
use crate::placement::tests::machine::Machine;
use crate::{Derivation, FindingId, Metrics, finding};
use std::net::SocketAddr;
use std::sync::Arc;
use vnettop_sample::{
    CoreCounters, FlowPath, FlowSample, Hop, HopBy, HopWay, Ifindex, Item, Kind, LinkCounters, LinkFacts, PeerRef,
    Proto, QdiscCounters, Softnet, Space, UdpState, Word,
};

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const NEAR: u64 = 11;
pub(crate) const ROUTER: u64 = 12;
pub(crate) const FAR: u64 = 13;

pub(crate) fn key(netns: u64, ifindex: u32) -> LinkKey {
    LinkKey { netns, ifindex: Ifindex(ifindex) }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// What lies between the two ends, nothing moved yet: a0 – r0, r1 – b0.
pub(crate) fn before() -> Sample {
    let mut sample = finding::tests::sample(&Machine::small(2).metrics());
    let link = |name: &str, own: LinkKey, peer: LinkKey| LinkFacts {
        peer: Some(PeerRef { netnsid: Some(1), netns: Some(peer.netns), ifindex: peer.ifindex }),
        speed_mbps: Some(10_000),
        ..LinkFacts::new(own, name, Kind::Veth)
    };
    let links = [
        link("a0", key(NEAR, 2), key(ROUTER, 2)),
        link("r0", key(ROUTER, 2), key(NEAR, 2)),
        link("r1", key(ROUTER, 3), key(FAR, 2)),
        link("b0", key(FAR, 2), key(ROUTER, 3)),
    ];
    sample.facts_mut().links = Arc::new(links.into_iter().map(Arc::new).collect());
    sample.counters = sample.facts.links.iter().map(|link| counters(link.key())).collect();
    let space =
        |netns, name: Option<&str>| Space { netns, name: name.map(str::to_owned), pid: Some(812), rests: false };
    sample.facts_mut().spaces = Arc::new(vec![space(NEAR, Some("c1")), space(ROUTER, None), space(FAR, Some("c2"))]);
    sample.protocols =
        [NEAR, ROUTER, FAR].map(|netns| ProtocolCounters { netns, at_ns: 0, ..Default::default() }).into();
    sample.flows =
        vec![flow(1, NEAR, "198.18.1.1:43210", "198.18.2.1:5201"), flow(2, FAR, "198.18.2.1:5201", "0.0.0.0:0")];
    sample.facts_mut().paths = Arc::new(vec![path()]);
    let row = |core| CoreCounters { core, softnet: Some(Softnet::default()), ..CoreCounters::default() };
    sample.cores = vec![row(0), row(1)];
    sample
}

fn counters(key: LinkKey) -> LinkCounters {
    LinkCounters::zero(key, 5)
}

fn flow(cookie: u64, netns: u64, local: &str, remote: &str) -> FlowSample {
    FlowSample {
        udp: Some(UdpState::default()),
        proto: Proto::Udp,
        ..FlowSample::new(cookie, (netns, 812), (address(local), address(remote)))
    }
}

fn path() -> FlowPath {
    let hop = |link, way, by| Hop { link, way, by };
    FlowPath {
        netns: NEAR,
        proto: Proto::Udp,
        from: address("198.18.1.1:43210"),
        to: address("198.18.2.1:5201"),
        hops: vec![
            hop(key(NEAR, 2), HopWay::Sent, HopBy::Route),
            hop(key(ROUTER, 2), HopWay::Received, HopBy::Peer),
            hop(key(ROUTER, 3), HopWay::Sent, HopBy::Route),
            hop(key(FAR, 2), HopWay::Received, HopBy::Peer),
        ],
        gap: None,
        note: None,
        ends: None,
        outside: None,
        silent: None,
        neighbours: Vec::new(),
        carriers: Vec::new(),
    }
}

/// A second later, as the test fills it in.
pub(crate) fn after(change: impl FnOnce(&mut Sample)) -> Sample {
    let mut sample = before();
    sample.at_ns += SECOND;
    sample.cores_at_ns += SECOND;
    sample.counters.iter_mut().for_each(|row| row.at_ns += SECOND);
    sample.protocols.iter_mut().for_each(|row| row.at_ns += SECOND);
    change(&mut sample);
    sample
}

pub(crate) fn protocols(sample: &mut Sample, netns: u64) -> &mut ProtocolCounters {
    sample.protocols.iter_mut().find(|row| row.netns == netns).expect("it is read")
}

pub(crate) fn link(sample: &mut Sample, key: LinkKey) -> &mut LinkCounters {
    sample.counters.iter_mut().find(|row| row.key() == key).expect("it is read")
}

pub(crate) fn qdisc(link: LinkKey, parent: u32, at_ns: u64, drops: u64) -> QdiscCounters {
    QdiscCounters {
        link,
        kind: "tbf".into(),
        handle: 1,
        parent,
        at_ns,
        bytes: 0,
        packets: 0,
        drops,
        backlog_packets: 0,
        overlimits: None,
        setting: None,
    }
}

pub(crate) fn metrics(first: Sample, then: Sample) -> Metrics {
    let mut derivation = Derivation::default();
    derivation.advance(Item::Sample(Box::new(first)));
    derivation.advance(Item::Sample(Box::new(then))).expect("a sample gives metrics")
}

/// Place, name and packets of every loss.
pub(crate) fn lost(metrics: &Metrics) -> Vec<(&'static str, Option<String>, f64)> {
    metrics
        .subject
        .losses
        .places
        .iter()
        .map(|loss| (loss.place.word(), loss.name.clone(), loss.packets.round()))
        .collect()
}

pub(crate) fn said(metrics: &Metrics) -> String {
    let finding = metrics.conclusions.findings.iter().find(|finding| finding.id == FindingId::Loss);
    finding.map_or_else(|| "no finding".to_owned(), |finding| finding.text.clone())
}

#[test]
fn what_the_senders_qdisc_drops_is_counted_three_times_and_told_once() {
    let mut first = before();
    first.qdiscs = vec![qdisc(key(NEAR, 2), ROOT, 1, 0)];
    let then = after(|sample| {
        sample.qdiscs = vec![qdisc(key(NEAR, 2), ROOT, 1 + SECOND, 36_224)];
        let near = protocols(sample, NEAR);
        (near.udp_out_datagrams, near.udp_sndbuf_errors, near.ip_out_discards) = (17_327, 36_224, 36_224);
        link(sample, key(NEAR, 2)).tx_packets = 17_341;
    });
    let metrics = metrics(first, then);
    assert_eq!(lost(&metrics), [("qdisc", Some("tbf on a0".to_owned()), 36_224.0)], "once, where it was lost");
    let share = metrics.subject.losses.places[0].share.expect("what was sent is known");
    assert!((share - 36_224.0 / 53_551.0).abs() < 1e-6, "of all that was given to UDP to send: {share}");
    assert!(
        said(&metrics).starts_with("68 % of packets lost in the qdisc tbf on a0 in netns c1:"),
        "{}",
        said(&metrics)
    );
}

#[test]
fn what_a_full_backlog_drops_is_counted_five_times_and_told_once() {
    let then = after(|sample| {
        sample.cores[1].softnet = Some(Softnet { processed: 11_960, dropped: 700_599, squeezed: 0 });
        let near = protocols(sample, NEAR);
        (near.udp_out_datagrams, near.udp_sndbuf_errors, near.ip_out_discards) = (9_452, 693_616, 693_616);
        link(sample, key(NEAR, 2)).tx_dropped = 693_617;
        link(sample, key(ROUTER, 2)).rx_dropped = 693_617;
        link(sample, key(ROUTER, 3)).tx_dropped = 6_982;
        link(sample, key(FAR, 2)).rx_dropped = 6_982;
    });
    let metrics = metrics(before(), then);
    let expected = [("backlog", Some("r0".to_owned()), 693_617.0), ("backlog", Some("b0".to_owned()), 6_982.0)];
    assert_eq!(lost(&metrics), expected, "each hop's own, and nothing else");
    assert_eq!(metrics.subject.losses.places[0].core, Some(1), "the core whose backlog it is");
    assert!(said(&metrics).contains("in the full backlog of core 1, incoming through r0"), "{}", said(&metrics));
}

#[test]
fn a_router_and_a_receiver_lose_what_they_count() {
    let mut first = before();
    first.qdiscs = vec![qdisc(key(ROUTER, 3), ROOT, 1, u64::from(u32::MAX) - 99)];
    let then = after(|sample| {
        // The counter has 32 bits, and goes around.
        sample.qdiscs = vec![qdisc(key(ROUTER, 3), ROOT, 1 + SECOND, 500)];
        protocols(sample, NEAR).udp_out_datagrams = 100_000;
        let far = protocols(sample, FAR);
        (far.udp_in_errors, far.udp_rcvbuf_errors, far.ip_in_discards) = (2_903, 2_903, 4);
        sample.flows[1].udp = Some(UdpState { drops: 1_900, ..UdpState::default() });
    });
    let metrics = metrics(first, then);
    let expected =
        [("receive_buffer", None, 1_900.0), ("qdisc", Some("tbf on r1".to_owned()), 600.0), ("ip", None, 4.0)];
    assert_eq!(lost(&metrics), expected, "the socket's own drops, not those of the whole namespace");
    let text = said(&metrics);
    assert!(
        text.starts_with("1.9 % of packets lost (2.5 % in total) in the receiver's socket buffer in netns c2:"),
        "{text}"
    );
}

#[test]
fn what_arrives_damaged_is_no_fault_of_the_receivers_buffer() {
    let reported = |damaged: u64, no_room: u64| {
        let then = after(|sample| {
            protocols(sample, NEAR).udp_out_datagrams = 10_000;
            let far = protocols(sample, FAR);
            (far.udp_in_errors, far.udp_in_csum_errors, far.udp_rcvbuf_errors) = (damaged + no_room, damaged, no_room);
            let drops = u32::try_from(damaged + no_room).expect("few");
            sample.flows[1].udp = Some(UdpState { drops, ..UdpState::default() });
        });
        metrics(before(), then)
    };
    let only = reported(500, 0);
    assert_eq!(lost(&only), [("checksum", None, 500.0)], "the socket counts them as its own drops too");
    assert!(
        said(&only).starts_with("5 % of packets lost because their checksum is wrong in netns c2:"),
        "{}",
        said(&only)
    );
    assert_eq!(lost(&reported(500, 300)), [("checksum", None, 500.0), ("receive_buffer", None, 300.0)], "each once");
    assert_eq!(
        lost(&reported(5_000, 300)),
        [("checksum", None, 5_000.0), ("receive_buffer", None, 300.0)],
        "however few"
    );
}

#[test]
fn a_socket_that_is_new_is_not_blamed_for_what_was_before() {
    let mut first = before();
    first.flows.truncate(1);
    let then = after(|sample| {
        protocols(sample, NEAR).udp_out_datagrams = 1_000;
        protocols(sample, FAR).udp_rcvbuf_errors = 20;
        sample.flows[1].udp = Some(UdpState { drops: 1_000_000, ..UdpState::default() });
    });
    assert_eq!(
        lost(&metrics(first, then)),
        [("receive_buffer", None, 20.0)],
        "no more than its namespace in this time"
    );
}

#[test]
fn conntrack_and_links_that_refuse_are_places_of_their_own() {
    let table = |drop| {
        Some(vnettop_sample::Conntrack { count: 262_144, max: 262_144, drop, early_drop: 9, ..Default::default() })
    };
    let mut first = before();
    protocols(&mut first, ROUTER).conntrack = table(0);
    let then = after(|sample| {
        protocols(sample, NEAR).udp_out_datagrams = 10_000;
        protocols(sample, ROUTER).conntrack = table(300);
        link(sample, key(ROUTER, 3)).tx_dropped = 70;
    });
    let metrics = metrics(first, then);
    let expected = [("conntrack", None, 300.0), ("link", Some("r1".to_owned()), 70.0)];
    assert_eq!(lost(&metrics), expected, "a ring that is full is no core's backlog");
    assert!(said(&metrics).contains("262144 of 262144 entries"), "the table is full: {}", said(&metrics));
}

#[test]
fn the_last_moment_of_a_flow_counts_and_nothing_after_it() {
    let ended = after(|sample| {
        protocols(sample, FAR).udp_rcvbuf_errors = 50;
        protocols(sample, NEAR).udp_out_datagrams = 100;
        (sample.flows, sample.facts_mut().paths) = (Vec::new(), Arc::default());
    });
    assert_eq!(lost(&metrics(before(), ended)), [("receive_buffer", None, 50.0)], "lost before the flow ended");
    let mut quiet = before();
    (quiet.flows, quiet.protocols) = (Vec::new(), Vec::new());
    assert_eq!(metrics(quiet.clone(), quiet).subject.losses, Losses::default(), "without flows nothing is known");
}

#[test]
fn without_a_path_the_busy_links_of_the_ends_stand_for_it() {
    let mut first = before();
    first.facts_mut().paths = Arc::default();
    let then = after(|sample| {
        sample.facts_mut().paths = Arc::default();
        protocols(sample, NEAR).udp_out_datagrams = 10_000;
        link(sample, key(NEAR, 2)).tx_packets = 10_000;
        link(sample, key(NEAR, 2)).tx_dropped = 400;
        sample.cores[0].softnet = Some(Softnet { processed: 0, dropped: 500, squeezed: 0 });
    });
    let reported = lost(&metrics(first, then));
    let expected = [("backlog", Some("a0".to_owned()), 400.0), ("backlog", None, 100.0)];
    assert_eq!(reported, expected, "what no known link claims is the backlog's somewhere");
}

#[test]
fn what_is_read_late_on_a_machine_that_is_held_up_sums_to_what_was_lost() {
    // Every other sample is held up for 0.4 s after its links were read; nobody sends meanwhile.
    let sample = |nth: u64| {
        let mut sample = before();
        let (at_ns, late_ns) = (nth * SECOND, nth % 2 * (SECOND / 5) * 2);
        sample.at_ns += at_ns;
        sample.counters.iter_mut().for_each(|row| row.at_ns += at_ns);
        sample.protocols.iter_mut().for_each(|row| row.at_ns += at_ns + late_ns);
        sample.qdiscs = vec![qdisc(key(NEAR, 2), ROOT, 1 + at_ns + late_ns, 100 * nth)];
        let near = protocols(&mut sample, NEAR);
        (near.udp_out_datagrams, near.udp_sndbuf_errors) = (900 * nth, 100 * nth);
        Item::Sample(Box::new(sample))
    };
    let mut derivation = Derivation::default();
    let metrics: Vec<Metrics> = (0..=10).filter_map(|nth| derivation.advance(sample(nth))).collect();
    let losses: Vec<&Losses> = metrics.iter().map(|one| &one.subject.losses).collect();
    assert!(losses.iter().all(|losses| losses.places.iter().all(|loss| loss.place == LossPlace::Qdisc)), "{losses:?}");
    let packets: f64 = losses.iter().map(|losses| losses.packets()).sum();
    assert!((packets - 1_000.0).abs() < 1e-9, "to the packet: {packets}");
    let over_time = losses.iter().map(|losses| losses.per_second(losses.packets()) * losses.seconds).sum::<f64>();
    assert!((over_time - 1_000.0).abs() < 1e-6, "and a rate times its sample's time is that: {over_time}");
}

#[test]
fn a_socket_and_its_namespace_are_read_one_after_the_other() {
    // In every other sample the socket tells 40 of its 100 drops too late; 30 more are another socket's.
    let sample = |nth: u64| {
        let mut sample = before();
        sample.at_ns += nth * SECOND;
        sample.protocols.iter_mut().for_each(|row| row.at_ns += nth * SECOND);
        protocols(&mut sample, NEAR).udp_out_datagrams = 10_000 * nth;
        let damaged = 200 * nth;
        let far = protocols(&mut sample, FAR);
        (far.udp_rcvbuf_errors, far.udp_in_csum_errors, far.udp_in_errors) = (130 * nth, damaged, 130 * nth + damaged);
        let drops = u32::try_from(100 * nth + damaged - 40 * (nth % 2)).expect("few");
        sample.flows[1].udp = Some(UdpState { drops, ..UdpState::default() });
        Item::Sample(Box::new(sample))
    };
    let mut derivation = Derivation::default();
    let metrics: Vec<Metrics> = (0..=10).filter_map(|nth| derivation.advance(sample(nth))).collect();
    let lost = |place: LossPlace| {
        let places = metrics.iter().flat_map(|one| &one.subject.losses.places);
        places.filter(|loss| loss.place == place).map(|loss| loss.packets).sum::<f64>()
    };
    assert!((lost(LossPlace::ReceiveBuffer) - 1_000.0).abs() < 1e-9, "{}", lost(LossPlace::ReceiveBuffer));
    assert!((lost(LossPlace::Checksum) - 2_000.0).abs() < 1e-9, "{}", lost(LossPlace::Checksum));
}

#[test]
fn damaged_datagrams_of_others_hide_no_later_loss() {
    // For eight samples another socket of the receiver's namespace gets damaged ones; then the flow's own has no room.
    let sample = |nth: u64| {
        let mut sample = before();
        sample.at_ns += nth * SECOND;
        sample.protocols.iter_mut().for_each(|row| row.at_ns += nth * SECOND);
        protocols(&mut sample, NEAR).udp_out_datagrams = 10_000 * nth;
        let (damaged, no_room) = (500 * nth.min(8), 100 * nth.saturating_sub(8));
        let far = protocols(&mut sample, FAR);
        (far.udp_rcvbuf_errors, far.udp_in_csum_errors, far.udp_in_errors) = (no_room, damaged, no_room + damaged);
        let drops = u32::try_from(no_room).expect("few");
        sample.flows[1].udp = Some(UdpState { drops, ..UdpState::default() });
        Item::Sample(Box::new(sample))
    };
    let mut derivation = Derivation::default();
    let last = (0..=20).filter_map(|nth| derivation.advance(sample(nth))).last().expect("samples give metrics");
    assert_eq!(lost(&last), [("receive_buffer", None, 100.0)], "what others got does not count against it");
}
