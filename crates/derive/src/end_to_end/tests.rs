//! Two hosts made by hand, each with what it sees of a test; and one kernel of which two see it all.

use super::*;
use crate::flow::{End, FlowMetrics, Speaks, TcpFigures, UdpFigures};
use crate::placement::tests::machine::Machine;
use crate::{Basis, Evidence, Limit, LimitKind, LinkMetrics, LossPlace, Losses, TestKey};
use std::sync::Arc;
use vnettop_sample::{
    Benchmark, Direction, EndName, Ends, Facts, FlowPath, Hop, HopBy, HopWay, Ifindex, Kind, LinkFacts, LinkKey,
    PeerRef, Program, Proto, Side, Space, WireNames,
};

const SENDER: u32 = 10;
const RECEIVER: u32 = 20;
const HERE: &str = "192.0.2.1:40000";
const THERE: &str = "192.0.2.2:5201";
/// What most kernels call their first namespace.
const OWN: u64 = 4_026_531_840;

/// What makes it another test, and why it is one.
type Change<'a> = (&'a str, &'a dyn Fn(&mut Test));

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn end((address, pid): (&str, Option<u32>)) -> End {
    End { netns: None, address: at(address), pid }
}

fn carrying(from: (&str, Option<u32>), to: (&str, Option<u32>)) -> Connection {
    let tcp = TcpFigures { retransmits_per_s: Some(3.0), ..TcpFigures::default() };
    Connection { carries: true, speaks: Speaks::Tcp(tcp), ..Connection::between(end(from), end(to)) }
}

fn key(netns: u64, ifindex: u32) -> LinkKey {
    LinkKey { netns, ifindex: Ifindex(ifindex) }
}

fn sent(netns: u64, ifindex: u32) -> Hop {
    Hop { link: key(netns, ifindex), way: HopWay::Sent, by: HopBy::Route }
}

fn received(netns: u64, ifindex: u32) -> Hop {
    Hop { way: HopWay::Received, by: HopBy::Peer, ..sent(netns, ifindex) }
}

fn path(connection: &Connection, hops: &[Hop], gap: Option<&str>, outside: Option<[&str; 2]>) -> FlowPath {
    FlowPath {
        netns: 0,
        proto: connection.proto(),
        from: connection.from.address,
        to: connection.to.address,
        hops: hops.to_vec(),
        gap: gap.map(str::to_owned),
        note: None,
        ends: None,
        outside: outside.map(|[from, to]| WireNames { from: at(from), to: at(to) }),
        silent: None,
        neighbours: Vec::new(),
        carriers: Vec::new(),
    }
}

fn link(at: LinkKey, kind: Kind) -> LinkMetrics {
    let facts = LinkFacts::new(at, &format!("l{}", at.ifindex.0), kind);
    LinkMetrics { facts: Arc::new(facts), basis: Basis::None, counters: None, rates: None, ovs: None }
}

fn test(number: u32, metrics: &Metrics) -> Arc<Test> {
    let (own, concluded) = (Arc::clone(&metrics.subject), Arc::clone(&metrics.conclusions));
    Arc::new(Test::running(number, TestKey::Client(SENDER), own, concluded))
}

/// A host with one test, of these connections and paths; `l2` is a card and `l3` stays here.
fn host(netns: u64, connections: Vec<Connection>, paths: Vec<FlowPath>, change: impl FnOnce(&mut Metrics)) -> Metrics {
    let machine = Machine::small(4).thread(SENDER, SENDER, Side::Client, 0).thread(RECEIVER, RECEIVER, Side::Server, 1);
    let links = Arc::new(vec![link(key(netns, 2), Kind::Physical), link(key(netns, 3), Kind::Bridge)]);
    let flow = FlowMetrics { connections, bits_per_s: Some(9e9), ..FlowMetrics::default() };
    let mut of_test = TestMetrics { flow, paths: Arc::new(paths), ..machine.metrics() };
    (of_test.machine_mut().netns, of_test.machine_mut().links) = (netns, links);
    let mut metrics = Metrics::of_everything(of_test);
    change(&mut metrics);
    Metrics { tests: vec![test(1, &metrics)], machine: Arc::clone(&metrics.subject.machine), ..metrics }
}

/// What is measured of its test.
fn own(metrics: &mut Metrics) -> &mut TestMetrics {
    Arc::make_mut(&mut metrics.subject)
}

/// The sender's and the receiver's, with nothing but a card between process and wire.
fn plain(host_netns: [u64; 2], change: impl Fn(&mut Metrics, usize)) -> [Metrics; 2] {
    let [sends, receives] =
        [carrying((HERE, Some(SENDER)), (THERE, None)), carrying((HERE, None), (THERE, Some(RECEIVER)))];
    let names = Some([HERE, THERE]);
    let out = path(&sends, &[sent(host_netns[0], 2)], Some("the packets exit this machine through l2"), names);
    let back = "found backwards from the receiver; before the first link: the packets exit this machine through l2";
    let back = path(&receives, &[received(host_netns[1], 2)], Some(back), names);
    [
        host(host_netns[0], vec![sends], vec![out], |metrics| change(metrics, 0)),
        host(host_netns[1], vec![receives], vec![back], |metrics| change(metrics, 1)),
    ]
}

fn named(hosts: &[Metrics]) -> Vec<HostMetrics<'_>> {
    ["kp1", "kp2", "kp3"].into_iter().zip(hosts).map(|(name, metrics)| HostMetrics { name, metrics }).collect()
}

fn ends_of(hosts: &[Metrics]) -> Vec<(usize, usize)> {
    end_to_end(&named(hosts)).iter().map(|one| (one.sender.host, one.receiver.host)).collect()
}

#[test]
fn a_test_between_two_hosts_is_one_in_whichever_order_they_are_watched() {
    let mut hosts = plain([OWN, OWN], |_, _| {});
    let list = named(&hosts);
    let all = end_to_end(&list);
    let [one] = &all[..] else { panic!("one test: {}", all.len()) };
    assert_eq!((one.sender.host, one.receiver.host), (0, 1));
    assert_eq!((one.sender.pid, one.receiver.pid), (Some(SENDER), Some(RECEIVER)));
    assert_eq!((one.sender.address, one.receiver.address), (at(HERE), at(THERE)));
    assert_eq!((one.sender.streams, one.sender.bits_per_s), (1, Some(9e9)));
    assert_eq!((one.sender.retransmits_per_s, one.receiver.retransmits_per_s), (Some(3.0), None));
    let threads = |end: &HostEnd<'_>| end.threads.iter().map(|thread| thread.sample.id.pid).collect::<Vec<_>>();
    assert_eq!((threads(&one.sender), threads(&one.receiver)), (vec![SENDER], vec![RECEIVER]));
    let hops: Vec<_> = one.hops.iter().map(|hop| (hop.host, hop.hop.hop.way)).collect();
    assert_eq!(hops, [(0, HopWay::Sent), (1, HopWay::Received)], "out of one machine, into the other");
    assert_eq!(one.gaps, [], "the wire between them is no gap");
    hosts.reverse();
    assert_eq!(ends_of(&hosts), [(1, 0)], "as with iperf3 -R, where the host named first receives");
    assert_eq!(end_to_end(&[]), []);
}

#[test]
fn nat_on_both_sides_gives_the_names_that_are_compared() {
    let sends = carrying(("172.17.0.2:40000", Some(SENDER)), ("192.0.2.2:8080", None));
    let receives = carrying(("192.0.2.1:61000", None), ("172.17.0.9:5201", Some(RECEIVER)));
    let hosts = |public: &str| {
        let outside = Some(["192.0.2.1:61000", public]);
        let out = path(&sends, &[sent(7, 3), sent(OWN, 2)], Some("the packets exit this machine"), outside);
        let outside = Some(["192.0.2.1:61000", "192.0.2.2:8080"]);
        let back = path(&receives, &[received(OWN, 2), received(8, 3)], Some("before the first link"), outside);
        [host(OWN, vec![sends], vec![out], |_| {}), host(OWN, vec![receives], vec![back], |_| {})]
    };
    assert_eq!(ends_of(&hosts("192.0.2.2:8080")), [(0, 1)]);
    assert_eq!(ends_of(&hosts("192.0.2.3:8080")), [], "to another machine");
}

#[test]
fn what_is_not_the_same_test_stays_apart() {
    let mut hosts = plain([OWN, OWN], |_, _| {});
    let change = |metrics: &mut Metrics, change: &dyn Fn(&mut Test)| {
        let mut test = (*metrics.tests[0]).clone();
        change(&mut test);
        metrics.tests = vec![Arc::new(test)];
    };
    let with = |test: &mut Test, change: &dyn Fn(&mut Connection)| {
        let own = Arc::make_mut(&mut test.metrics);
        change(&mut own.flow.connections[0]);
    };
    let changes: [Change<'_>; 3] = [
        ("it has ended", &|test| test.ended_ns = Some(5)),
        ("it only controls a test", &|test| with(test, &|one| one.carries = false)),
        ("another protocol", &|test| {
            with(test, &|one| one.speaks = Speaks::Udp(UdpFigures::default()));
            Arc::make_mut(&mut Arc::make_mut(&mut test.metrics).paths)[0].proto = Proto::Udp;
        }),
    ];
    for (why, how) in changes {
        let before = hosts[1].clone();
        change(&mut hosts[1], how);
        assert_eq!(ends_of(&hosts), [], "{why}");
        hosts[1] = before;
    }
    // The same addresses within each of two machines, as of containers that are alike.
    let both = carrying((HERE, Some(SENDER)), (THERE, Some(RECEIVER)));
    let within = || host(OWN, vec![both], vec![path(&both, &[sent(7, 3), received(8, 3)], None, None)], |_| {});
    assert_eq!(ends_of(&[within(), within()]), []);
    let through_lo = || host(OWN, vec![both], vec![path(&both, &[sent(OWN, 1)], None, None)], |_| {});
    assert_eq!(ends_of(&[through_lo(), through_lo()]), [], "though both call their namespace the same");
    let unbound = carrying(("0.0.0.0:0", None), ("0.0.0.0:5201", Some(RECEIVER)));
    let unbound = Connection { speaks: Speaks::Udp(UdpFigures::default()), ..unbound };
    let waits = || host(OWN, vec![unbound], Vec::new(), |_| {});
    assert_eq!(ends_of(&[waits(), waits()]), [], "two that wait on the same port");
}

#[test]
fn of_several_streams_and_hosts_each_test_is_in_one_pair() {
    let streams = |pids: [Option<u32>; 2]| {
        let from = ["192.0.2.1:40000", "192.0.2.1:40002"];
        from.map(|from| carrying((from, pids[0]), (THERE, pids[1]))).to_vec()
    };
    let sender = host(OWN, streams([Some(SENDER), None]), Vec::new(), |_| {});
    let receiver = || host(OWN, streams([None, Some(RECEIVER)]), Vec::new(), |_| {});
    let hosts = [sender, receiver(), receiver()];
    let list = named(&hosts);
    let all = end_to_end(&list);
    assert_eq!(all.iter().map(|one| (one.sender.host, one.receiver.host)).collect::<Vec<_>>(), [(0, 1)]);
    assert_eq!((all[0].sender.streams, all[0].sender.retransmits_per_s), (2, Some(6.0)));
    assert_eq!(all[0].gaps, [(0, "the path is not known"), (1, "the path is not known")]);
}

#[test]
fn of_udp_the_client_s_host_says_which_end_sends() {
    // The server of a reversed test takes the client, which called, for the sender.
    let udp = |connection| Connection { speaks: Speaks::Udp(UdpFigures::default()), ..connection };
    let server = udp(carrying((HERE, None), (THERE, Some(RECEIVER))));
    let client = udp(carrying((THERE, None), (HERE, Some(SENDER))));
    let says = Benchmark {
        direction: Some(Direction::Reverse),
        proto: Some(Proto::Udp),
        ..Benchmark::new(SENDER, Program::Iperf3, Side::Client, 5201)
    };
    let hosts = [
        host(OWN, vec![client], Vec::new(), |metrics| own(metrics).benchmarks = vec![says]),
        host(OWN, vec![server], Vec::new(), |_| {}),
    ];
    let list = named(&hosts);
    let all = end_to_end(&list);
    assert_eq!(all.iter().map(|one| (one.sender.host, one.receiver.host)).collect::<Vec<_>>(), [(1, 0)]);
    assert_eq!((all[0].sender.pid, all[0].sender.address), (Some(RECEIVER), at(THERE)), "the server's own end");
    assert_eq!(all[0].sender.streams, 1);
}

/// Namespaces 1 and 2 of one kernel with a router in 9 between, each watched as a host of its own that sees it all.
fn one_kernel(change: impl Fn(&mut Metrics)) -> [Metrics; 2] {
    let both = carrying((HERE, Some(SENDER)), (THERE, Some(RECEIVER)));
    let hops = [sent(1, 3), received(9, 3), sent(9, 4), received(2, 3)];
    [1, 2].map(|netns| host(netns, vec![both], vec![path(&both, &hops, None, None)], &change))
}

#[test]
fn of_one_kernel_the_path_says_whose_each_end_is() {
    let some_losses = |metrics: &mut Metrics| {
        let at_link = Loss { packets: 10.0, link: Some(key(9, 4)), netns: Some(9), ..Loss::default() };
        let at_sender = Loss { packets: 30.0, place: LossPlace::SendBuffer, netns: Some(1), ..Loss::default() };
        let at_receiver = Loss { packets: 20.0, place: LossPlace::ReceiveBuffer, netns: Some(2), ..Loss::default() };
        own(metrics).losses =
            Losses { seconds: 0.5, places: vec![at_link, at_sender, at_receiver], ..Losses::default() };
    };
    let mut hosts = one_kernel(some_losses);
    let list = named(&hosts);
    let all = end_to_end(&list);
    let [one] = &all[..] else { panic!("one test: {}", all.len()) };
    assert_eq!((one.sender.host, one.receiver.host), (0, 1));
    let hops: Vec<_> = one.hops.iter().map(|hop| (hop.host, hop.hop.hop.link.netns)).collect();
    assert_eq!(hops, [(0, 1), (1, 9), (1, 9), (1, 2)], "what is beyond the sender's namespace is the receiver's");
    let losses: Vec<_> = one.losses.iter().map(|lost| (lost.host, lost.packets_per_s)).collect();
    assert_eq!(losses, [(0, Some(60.0)), (1, Some(40.0)), (1, Some(20.0))], "each of them once, most first");
    hosts.reverse();
    assert_eq!(ends_of(&hosts), [(1, 0)]);
    Arc::make_mut(&mut hosts[1].machine).netns = 77;
    assert_eq!(ends_of(&hosts), [], "the path leads through the namespace of one of them only");
}

#[test]
fn of_one_kernel_who_sees_the_whole_path_says_it_though_the_other_does_not() {
    let mut hosts = one_kernel(|_| {});
    let receives = carrying((HERE, None), (THERE, Some(RECEIVER)));
    hosts[1] = host(2, vec![receives], Vec::new(), |_| {});
    let list = named(&hosts);
    let all = end_to_end(&list);
    assert_eq!(all.iter().map(|one| (one.sender.host, one.receiver.host)).collect::<Vec<_>>(), [(0, 1)]);
    assert_eq!(all[0].hops.iter().map(|hop| hop.host).collect::<Vec<_>>(), [0, 1, 1, 1]);
}

#[test]
fn of_one_kernel_nat_between_two_hosts_that_see_one_process_each_is_no_hindrance() {
    let public = "203.0.113.1:80";
    let sends = carrying((HERE, Some(SENDER)), (public, None));
    let receives = carrying(("198.51.100.1:61000", None), (THERE, Some(RECEIVER)));
    let near = EndName { netns: 1, local: at(HERE), remote: at(public) };
    let far = EndName { netns: 2, local: at(THERE), remote: receives.from.address };
    let hops = [sent(1, 3), received(9, 3), sent(9, 4), received(2, 3)];
    let of = |netns, connection: Connection, near, far| {
        let ends = Some(Ends { near, far, holders: Vec::new() });
        host(netns, vec![connection], vec![FlowPath { ends, ..path(&connection, &hops, None, None) }], |_| {})
    };
    assert_eq!(ends_of(&[of(2, receives, far, near), of(1, sends, near, far)]), [(1, 0)]);
}

#[test]
fn a_path_that_is_cut_within_a_machine_says_why() {
    let cut = plain([OWN, 5], |metrics, nth| {
        let peer = PeerRef { netnsid: None, netns: None, ifindex: Ifindex(9) };
        let links = Arc::make_mut(&mut own(metrics).machine_mut().links);
        let (kind, peer) = if nth == 0 { (Kind::Bridge, None) } else { (Kind::Veth, Some(peer)) };
        links[0].facts = Arc::new(LinkFacts { kind, peer, ..(*links[0].facts).clone() });
    });
    let list = named(&cut);
    let gaps = end_to_end(&list).pop().expect("one test").gaps;
    let expected = (0, "the packets exit this machine through l2");
    assert_eq!(gaps, [expected], "a bridge leads on within the machine, a veth whose other end is hidden leaves it");
}

fn loss(place: LossPlace, netns: u64, packets: f64) -> Loss {
    Loss { place, netns: Some(netns), name: Some("wire0".to_owned()), packets, ..Loss::default() }
}

#[test]
fn losses_are_those_of_each_host_s_own_namespaces() {
    let hosts = plain([OWN, 5], |metrics, nth| {
        let places = match nth {
            0 => vec![loss(LossPlace::Qdisc, OWN, 2.0), loss(LossPlace::Ip, 5, 9.0)],
            _ => vec![loss(LossPlace::Qdisc, 5, 600.0), loss(LossPlace::Ip, 6, 4.0), loss(LossPlace::Tcp, 7, 8.0)],
        };
        own(metrics).losses = Losses { seconds: 0.5, places, ..Losses::default() };
        let counts =
            vnettop_sample::KernelCounts { drops: Some(vnettop_sample::Drops::default()), ..Default::default() };
        own(metrics).machine_mut().kernel = Some(Arc::new(counts));
        let watched = Space { netns: 6, name: None, pid: None, rests: false };
        own(metrics).machine_mut().facts = Arc::new(Facts { spaces: Arc::new(vec![watched]), ..Facts::default() });
    });
    let list = named(&hosts);
    let one = end_to_end(&list).pop().expect("one test");
    let losses: Vec<_> = one.losses.iter().map(|lost| (lost.host, lost.loss.netns, lost.packets_per_s)).collect();
    assert_eq!(losses, [(1, Some(5), Some(1200.0)), (1, Some(6), Some(8.0)), (0, Some(OWN), Some(4.0))]);
    let expected = ["kp2 loses 1200 packets/s in the qdisc wire0", "kp1 loses 4.0 packets/s in the qdisc wire0"];
    assert_eq!(one.findings, expected, "the worst place of each");
}

/// The findings where the ends' threads migrate so often a second.
fn findings(moves: [f64; 2], change: impl Fn(&mut Metrics, usize)) -> Vec<String> {
    let hosts = plain([OWN, OWN], |metrics, nth| {
        own(metrics).threads_mut().iter_mut().for_each(|thread| thread.moves_per_s = Some(moves[nth]));
        change(metrics, nth);
    });
    end_to_end(&named(&hosts)).pop().expect("one test").findings
}

#[test]
fn whose_threads_migrate_is_said_of_both_ends() {
    let none = |_: &mut Metrics, _: usize| {};
    let receiver = "the receiver's thread on kp2 migrates 38 times/s; the sender's on kp1 does not";
    assert_eq!(findings([0.1, 38.0], none), [receiver]);
    let sender = "the sender's thread on kp1 migrates 5.0 times/s; the receiver's on kp2 does not";
    assert_eq!(findings([5.0, 0.0], none), [sender]);
    let both = "the sender's thread on kp1 migrates 5.0 times/s, the receiver's on kp2 38 times/s";
    assert_eq!(findings([5.0, 38.0], none), [both]);
    assert_eq!(findings([0.5, 38.0], none), [""; 0], "neither migrating nor still");
    assert_eq!(findings([0.0, 0.0], none), [""; 0]);
    let sampled = |nth| {
        move |metrics: &mut Metrics, at: usize| {
            own(metrics)
                .threads_mut()
                .iter_mut()
                .filter(|_| at == nth)
                .for_each(|thread| thread.evidence = Evidence::Sampled);
        }
    };
    assert_eq!(findings([0.0, 38.0], sampled(0)), [""; 0], "what is sampled may have missed some");
    assert_eq!(findings([0.0, 38.0], sampled(1)), [receiver.replace("38", "at least 38")]);
}

#[test]
fn what_holds_each_end_back_is_said_with_its_host() {
    let limit = |kind, text: &str| {
        let text = text.to_owned();
        let (numbers, loses) = (Vec::new(), None);
        Some(Limit {
            kind,
            text,
            waits: None,
            lost: String::new(),
            core: None,
            name: None,
            pid: None,
            tid: None,
            key: None,
            numbers,
            because: None,
            loses,
        })
    };
    let nothing = "nothing is saturated here: look at the other end";
    let one = findings([0.0, 0.0], |metrics, nth| {
        Arc::make_mut(&mut metrics.conclusions).limit = match nth {
            0 => limit(LimitKind::Nothing, nothing),
            _ => limit(LimitKind::OwnThread, "core 3: iperf3 98 %"),
        };
    });
    assert_eq!(one, ["on kp2: core 3: iperf3 98 %"]);
    let none = findings([0.0, 0.0], |metrics, _| {
        Arc::make_mut(&mut metrics.conclusions).limit = limit(LimitKind::Nothing, nothing);
    });
    assert!(none.is_empty(), "what holds it back is at neither end, as far as each knows: {none:?}");
    let of_one_kernel = |kind, pid| {
        let limit = limit(kind, "it is full").map(|limit| Limit { pid, ..limit });
        let hosts = one_kernel(|metrics| Arc::make_mut(&mut metrics.conclusions).limit.clone_from(&limit));
        end_to_end(&named(&hosts)).pop().expect("one test").findings
    };
    assert_eq!(of_one_kernel(LimitKind::OwnThread, Some(RECEIVER)), ["on kp2: it is full"], "said once");
    assert_eq!(of_one_kernel(LimitKind::SendBuffer, None), ["on kp1: it is full"]);
    assert_eq!(of_one_kernel(LimitKind::OwnSoftirq, None), ["it is full"], "whose that is nobody knows");
}
