//! Worlds that several tests look at.

use super::stage::Stage;
use super::{NETNS, QUIET, Traffic, Work, World, stream};
use vnettop::derive::experiment::{Card, CardSide, Difference, Phase, Verdict};
use vnettop::derive::flow::{Connection, End};
use vnettop::derive::placement::{CoreChange, Proposal, Step};
use vnettop::derive::{Finding, FindingId, FindingParts, Jitter};
use vnettop::sample::{
    CoreId, CoreSet, FlowPath, Hop, HopBy, HopWay, Ifindex, Kind, LinkKey, LinkState, Owner, OwnerBy, OwnerKind,
    PeerRef, Proto, Space, StretchSide, ThreadId,
};
use vnettop::state::Settings;

/// Gbit/s second by second of one TCP stream over a docker bridge, both ends moved about by the scheduler
/// (Kunpeng 920, published measurement).
pub const SWINGS: [f64; 22] = [
    34.9, 34.9, 34.5, 34.7, 34.5, 34.5, 34.7, 35.1, 30.7, 20.0, 13.8, 20.8, 16.5, 14.2, 15.8, 15.4, 30.9, 35.4, 35.5,
    35.3, 35.7, 35.7,
];

/// The same with both ends pinned, `taskset -cp 0` and `-cp 1`.
pub const PINNED: [f64; 14] = [34.8, 34.7, 35.0, 35.2, 35.0, 35.0, 33.6, 34.8, 35.0, 34.9, 34.9, 35.0, 35.2, 34.9];

/// A small machine, iperf3 between two containers on a docker bridge.
pub fn bridge() -> World {
    let mut world = World::small();
    containers(&mut world);
    world.iperf3(39_081, &[0, 0, 1, 0, 1, 1], 38.0);
    world.iperf3(39_082, &[1, 1, 0, 1, 0, 0], 22.0);
    *world.work(0) = Work { user: 0.04, system: 0.30, softirq: 0.55, net_rx: 412_000.0, hrtimer: 12_000.0, ..QUIET };
    *world.work(1) = Work { user: 0.06, system: 0.80, softirq: 0.04, irq: 0.01, steal: 0.02, squeezed: 4.0, ..QUIET };
    world
}

/// The links of that: lo, eth0, docker0 with two ports, a tun that is down.
pub fn containers(world: &mut World) {
    world.link("lo", Kind::Loopback, None, Traffic::default());
    let quiet =
        Traffic { rx_bits: 12_000.0, tx_bits: 90_000.0, rx_packets: 14.0, tx_packets: 18.0, ..Traffic::default() };
    world.link("eth0", Kind::Virtio, None, quiet);
    let bridge = world.link("docker0", Kind::Bridge, Some(10_000), stream(34.8e9, 212e6));
    for (name, rx, tx) in [("vetha6c37c1", 34.8e9, 106e6), ("vethe61f5c0", 106e6, 34.8e9)] {
        let port = world.link(name, Kind::Veth, Some(10_000), stream(rx, tx));
        let facts = world.facts(port);
        facts.master = Some(bridge);
        facts.peer = Some(PeerRef {
            netnsid: Some(i32::try_from(port.0).expect("worlds are small") - 4),
            netns: None,
            ifindex: Ifindex(2),
        });
    }
    let tun = world.link("tun0", Kind::Tun, Some(10_000), Traffic::default());
    world.facts(tun).state = LinkState::Down;
}

/// The bridge with everybody whom its links may belong to.
pub fn owned() -> World {
    let mut world = bridge();
    let tun = Ifindex(6);
    world.facts(tun).state = LinkState::Unknown;
    *world.traffic(tun) = stream(1.2e9, 4e6);
    for (name, kind) in [("cali1a2b3c4d5e6", Kind::Veth), ("vnet0", Kind::Tap), ("br-0d2c4b6a8f9e", Kind::Bridge)] {
        world.link(name, kind, Some(10_000), stream(2e6, 1e6));
    }
    let owners = [
        (3, OwnerKind::Network, "bridge", Some("3f1e0a9b8c7d"), OwnerBy::Docker, false),
        (4, OwnerKind::Container, "container1", Some("a51cac518006"), OwnerBy::Docker, false),
        (5, OwnerKind::Container, "b62dbd629117", Some("b62dbd629117"), OwnerBy::Podman, false),
        (6, OwnerKind::Process, "openvpn 812", None, OwnerBy::Tun, false),
        (7, OwnerKind::Network, "calico", None, OwnerBy::Kubernetes, true),
        (8, OwnerKind::Vm, "bench-guest-with-a-long-name", None, OwnerBy::Qemu, false),
        (9, OwnerKind::Network, "0d2c4b6a8f9e", Some("0d2c4b6a8f9e"), OwnerBy::Docker, true),
    ];
    for (ifindex, kind, name, id, by, guess) in owners {
        let (name, id) = (name.to_owned(), id.map(str::to_owned));
        world.owned(Ifindex(ifindex), Owner { kind, name, id, by, guess, pod_namespace: None });
    }
    world
}

/// The same bridge with the containers' own ends: one kept under a name, one known by a process in it only.
pub fn namespaces() -> World {
    let mut world = bridge();
    let own = Space { netns: NETNS, name: None, pid: Some(1), rests: false };
    let blue = Space { netns: NETNS + 451, name: Some("blue".into()), pid: Some(39_081), rests: false };
    let nameless = Space { netns: NETNS + 520, name: None, pid: Some(39_082), rests: true };
    for (space, port, rx, tx) in [(&blue, 4, 106e6, 34.8e9), (&nameless, 5, 34.8e9, 106e6)] {
        let netns = space.netns;
        let end = world.link_in(netns, "eth0", Kind::Veth, Some(10_000), stream(rx, tx));
        let outside = PeerRef { netnsid: Some(0), netns: Some(NETNS), ifindex: Ifindex(port) };
        world.facts(end).peer = Some(outside);
        let inside = world.facts(Ifindex(port)).peer.as_mut().expect("a pair");
        (inside.netns, inside.ifindex) = (Some(netns), end);
        world.link_in(netns, "lo", Kind::Loopback, None, Traffic::default());
    }
    world.spaces = vec![own, blue, nameless];
    world
}

/// The bridge after 24 seconds in which the rate swung as it really did.
pub fn swinging(settings: Settings) -> Stage {
    let mut stage = Stage::with(1, bridge(), settings);
    stage.play(SWINGS.len(), |world, second| {
        let rate = SWINGS[second] * 1e9;
        *world.traffic(Ifindex(3)) = stream(rate, 212e6);
        *world.traffic(Ifindex(4)) = stream(rate, 106e6);
        *world.traffic(Ifindex(5)) = stream(106e6, rate);
    });
    stage
}

/// 128 cores in 4 nodes, the two ends of the stream wandering between nodes; a core offline, four isolated.
pub fn kunpeng() -> World {
    let mut world = World::kunpeng();
    containers(&mut world);
    world.iperf3(39_081, &[5, 5, 5, 9, 9, 37, 37, 37, 64, 5], 38.0);
    world.iperf3(39_082, &[91, 91, 12, 12, 91, 91, 91, 100], 22.0);
    for (core, softirq) in [(5, 0.61), (9, 0.22), (37, 0.3), (64, 0.1), (91, 0.04)] {
        *world.work(core) = Work { user: 0.02, system: 0.2, softirq, net_rx: 412_000.0 * softirq, ..QUIET };
    }
    world.offline(127);
    world.isolated = "120-123".parse().expect("a list of cores");
    world.changed();
    world
}

/// A host of containers: 2,000 links, of which every 250th moves something.
pub fn crowd() -> World {
    let mut world = World::kunpeng();
    let bridge = world.link("br0", Kind::Bridge, Some(10_000), stream(8e9, 8e9));
    for n in 1..2000_u32 {
        let busy = if n % 250 == 0 { stream(f64::from(n) * 4e6, 2e6) } else { Traffic::default() };
        let port = world.link(&format!("veth{n}"), Kind::Veth, Some(10_000), busy);
        world.facts(port).master = Some(bridge);
    }
    world
}

/// A host of 300 containers on one bridge, each in a namespace of its own: every second is down and never moved, what the
/// others say to everybody reaches them all, two carry something, and one of these is last by name.
pub fn containers_by_the_hundred() -> World {
    let mut world = World::small();
    let chatter = Traffic { rx_bits: 0.0, tx_bits: 12_000.0, tx_packets: 24.0, ..Traffic::default() };
    let seen = |n: u32, moved: Traffic| match n {
        _ if n % 2 == 1 => (LinkState::Down, Traffic::default()),
        150 | 300 => (LinkState::Up, moved),
        _ => (LinkState::Up, chatter),
    };
    let bridge = world.link("br0", Kind::Bridge, Some(10_000), Traffic::default());
    for n in 1..=300_u32 {
        let (state, traffic) = seen(n, stream(9.4e9, 20e6));
        let port = world.link(&format!("h{n}"), Kind::Veth, Some(10_000), traffic);
        let inner = PeerRef { netnsid: None, netns: Some(NETNS + u64::from(n)), ifindex: Ifindex(300 + 2 * n + 1) };
        let facts = world.facts(port);
        (facts.state, facts.master, facts.peer) = (state, Some(bridge), Some(inner));
    }
    world.spaces = vec![Space { netns: NETNS, name: None, pid: Some(1), rests: false }];
    for n in 1..=300_u32 {
        let netns = NETNS + u64::from(n);
        world.link_in(netns, "lo", Kind::Loopback, None, Traffic::default());
        let (state, traffic) = seen(n, stream(20e6, 9.4e9));
        let end = world.link_in(netns, "eth0", Kind::Veth, Some(10_000), traffic);
        let outer = PeerRef { netnsid: Some(0), netns: Some(NETNS), ifindex: Ifindex(1 + n) };
        let facts = world.facts(end);
        (facts.state, facts.peer) = (state, Some(outer));
        world.spaces.push(Space { netns, name: Some(format!("c{n}")), pid: None, rests: false });
    }
    world
}

/// Names that would like to be more than names.
pub fn hostile() -> World {
    let mut world = World::small();
    let names = [
        "\u{1b}[31mred\u{7}",
        "网络接口零一二三四五",
        "a\u{301}\u{301}\u{301}b",
        "\u{202e}gnp.exe",
        "👩\u{200d}👩\u{200d}👧🇩🇪",
        "",
        "tab\there",
    ];
    for name in names {
        world.link(name, Kind::Other("网\u{1b}]0;x\u{7}kind".into()), Some(u32::MAX), stream(1e9, 9e17));
    }
    world.host.name = "主机\u{1b}[2J".into();
    world.iperf3(7, &[0], 1.0);
    world.threads[0].sample.name = "线程\u{1b}[0m".into();
    world.iperf3(8, &[1], 1.0);
    world
}

/// The placement that one would propose for the two ends.
pub fn proposal(server: ThreadId, client: ThreadId, cores: [CoreId; 2]) -> Proposal {
    let step = |thread: ThreadId, role: &str, core: CoreId, reason: &str| Step {
        thread,
        label: format!("iperf3 {role}"),
        old: Some("0-127".parse().expect("a list of cores")),
        core,
        on: 91,
        reason: reason.to_owned(),
        as_good: CoreSet::new(),
        runner_up: None,
    };
    Proposal {
        steers: Vec::new(),
        steps: vec![
            step(server, "server", cores[0], "idle, no interrupt work there"),
            step(client, "client", cores[1], "same cluster as its server, another physical core"),
        ],
        cores: [(server, cores[0]), (client, cores[1])]
            .map(|(thread, core)| CoreChange {
                core,
                node: Some(0),
                load: None,
                now: Vec::new(),
                then: vec![thread.tid],
            })
            .to_vec(),
        doubt: None,
        reasons: vec!["both ends on node 0, where the bridge's memory is; core 0 is left to the rest".to_owned()],
    }
}

/// The spread of a rate with this mean, Gbit/s, and coefficient of variation, over so many seconds of 100 ms bins.
pub fn jitter(mean: f64, cv: f64, seconds: usize) -> Jitter {
    let deviation = mean * cv;
    let gigabits = |value: f64| value.max(0.1) * 1e9;
    Jitter {
        bins: seconds * 10,
        bin_s: 0.1,
        window_s: seconds as f64,
        mean: gigabits(mean),
        deviation: gigabits(deviation),
        cv: Some(cv),
        p5: gigabits(mean - 1.1 * deviation),
        p50: gigabits(mean + deviation),
        p95: gigabits(mean + 1.2 * deviation),
        longest_dip_s: if cv > 0.1 { 2.1 } else { 0.0 },
    }
}

/// A card with this verdict.
pub fn card(verdict: Verdict) -> Card {
    let (swings, steady, as_before) = ((24.1, 0.38), (34.9, 0.012), (24.6, 0.36));
    let (before, after, mean, cv) = match verdict {
        Verdict::NoDifference => (swings, swings, [0.0, -0.5, 0.4], [0.0, -0.02, 0.01]),
        Verdict::Inconclusive => (swings, as_before, [0.5, -1.4, 2.3], [-0.02, -0.06, 0.03]),
        Verdict::Worse => (steady, swings, [-10.8, -12.4, -9.1], [0.368, 0.33, 0.40]),
        _ => (swings, steady, [10.8, 9.1, 12.4], [-0.368, -0.40, -0.33]),
    };
    let side =
        |(mean, cv), moves| CardSide { jitter: jitter(mean, cv, 30), moves_per_s: Some(moves), others: Some(0.42) };
    let difference =
        |[is, from, to]: [f64; 3], unit: f64| Difference { estimate: is * unit, from: from * unit, to: to * unit };
    let phase = |nth: u64| {
        let pinned = nth >= 15;
        let mean = if pinned { after.0 } else { before.0 } * 1e9;
        let side = if pinned { StretchSide::Pinned } else { StretchSide::Unpinned };
        Phase { side, from_ns: nth * 2_000_000_000, to_ns: (nth + 1) * 2_000_000_000, mean_bits_per_s: mean }
    };
    Card {
        pinned_at_ns: Some(1),
        piece_ns: Some(2_000_000_000),
        before: side(before, 59.0),
        after: side(after, 0.0),
        phases: (0..30).map(phase).collect(),
        mean: difference(mean, 1e9),
        cv: Some(difference(cv, 1.0)),
        latency: None,
        verdict,
    }
}

/// Findings as a bad day has them.
pub fn findings() -> Vec<Finding> {
    let finding = |id, key, text: &str, numbers: &[(&'static str, f64)]| Finding {
        id,
        text: text.to_owned(),
        parts: FindingParts { why: text.to_owned(), ..FindingParts::default() },
        numbers: numbers.to_vec(),
        key,
    };
    vec![
        finding(
            FindingId::Jitter,
            Some('p'),
            "Unsteady over 30 s: 24.1 ± 9.2 Gbit/s (CV 38 %). 14.9 Gbit/s while threads migrate across nodes, \
             34.6 otherwise; each migration across nodes costs ≈ 205 MB (47 ms of traffic); 59 migrations/s, 11 across nodes. In 100 ms bins",
            &[("mean_bits_per_s", 2.41e10), ("cv", 0.38), ("p_value", 0.001), ("moves_per_s", 59.0)],
        ),
        finding(
            FindingId::OtherNode,
            Some('p'),
            "sender and receiver are on different nodes: 91 on node 2, 5 on node 0",
            &[],
        ),
        finding(
            FindingId::Softnet,
            None,
            "core 5 drops 812 packets/s: its backlog is full (net.core.netdev_max_backlog)",
            &[("softnet_dropped_per_s", 812.0)],
        ),
        finding(
            FindingId::Steal,
            None,
            "2 % steal on your threads' cores: other guests of the hypervisor take it",
            &[("steal", 0.02), ("difference", -0.004)],
        ),
        finding(
            FindingId::Label,
            None,
            "docker0 carries 34.8 Gbit/s, 3.5× its nominal 10 Gbit/s, which is that of its fastest port and not enforced",
            &[("times", 3.48)],
        ),
    ]
}

/// The bridge with both containers' own ends of their pairs: namespaces 4026532291 and 4026532377, the second with a
/// smaller MTU.
pub fn between_containers() -> World {
    let mut world = bridge();
    for (netns, rx, tx) in [(CONTAINERS[0], 106e6, 34.8e9), (CONTAINERS[1], 34.8e9, 106e6)] {
        let end = world.link("eth0", Kind::Veth, Some(10_000), stream(rx, tx));
        let (facts, counters, _) = world.links.iter_mut().find(|(facts, ..)| facts.ifindex == end).expect("just made");
        (facts.netns, counters.netns) = (netns, netns);
        facts.mtu = if netns == CONTAINERS[1] { 1450 } else { 1500 };
    }
    world.traffic(Ifindex(4)).drops = 812.0;
    world
}

/// Where the containers live.
const CONTAINERS: [u64; 2] = [4_026_532_291, 4_026_532_377];

/// Their namespaces.
pub fn spaces() -> std::sync::Arc<Vec<Space>> {
    let space = |netns, name: Option<&str>, pid| Space { netns, name: name.map(str::to_owned), pid, rests: false };
    std::sync::Arc::new(vec![
        space(NETNS, None, Some(1)),
        space(CONTAINERS[0], None, Some(39_001)),
        space(CONTAINERS[1], Some("container2"), Some(39_002)),
    ])
}

/// Two streams one way, a control connection, and one that leaves through a tun.
pub fn ways() -> (Vec<Connection>, std::sync::Arc<Vec<FlowPath>>) {
    let at = |text: &str| text.parse().expect("an address");
    let end = |netns, address, pid| End { netns: Some(netns), address, pid: Some(pid) };
    let connection = |from: &str, to: &str, bits_per_s| Connection {
        bits_per_s: Some(bits_per_s),
        ..Connection::between(end(CONTAINERS[0], at(from), 39_082), end(CONTAINERS[1], at(to), 39_081))
    };
    let hop = |netns, ifindex, way, by| Hop { link: LinkKey { netns, ifindex: Ifindex(ifindex) }, way, by };
    let across = [
        hop(CONTAINERS[0], 7, HopWay::Sent, HopBy::Route),
        hop(NETNS, 4, HopWay::Received, HopBy::Peer),
        hop(NETNS, 3, HopWay::Passed, HopBy::Bridge),
        hop(NETNS, 5, HopWay::Sent, HopBy::Fdb),
        hop(CONTAINERS[1], 8, HopWay::Received, HopBy::Peer),
    ];
    let path = |from: &str, to: &str, hops: &[Hop], gap: Option<&str>| FlowPath {
        netns: CONTAINERS[0],
        proto: Proto::Tcp,
        from: at(from),
        to: at(to),
        hops: hops.to_vec(),
        gap: gap.map(str::to_owned),
        note: None,
        ends: None,
        outside: None,
        silent: None,
        neighbours: Vec::new(),
        carriers: Vec::new(),
    };
    let tun = [hop(NETNS, 6, HopWay::Sent, HopBy::Route), hop(NETNS, 99, HopWay::Sent, HopBy::Lower)];
    let gap = "the packets exit through tun0, to the program that holds it open";
    let rows = [
        ("172.17.0.2:43210", "172.17.0.3:5201", 17.4e9, &across[..], None),
        ("172.17.0.2:43211", "172.17.0.3:5201", 17.3e9, &across[..], None),
        ("172.17.0.2:43209", "172.17.0.3:5201", 900.0, &across[..], None),
        ("172.17.0.2:43300", "10.8.0.1:5201", 1.2e6, &tun[..], Some(gap)),
    ];
    let connections = rows.iter().map(|(from, to, bits, ..)| connection(from, to, *bits)).collect();
    let paths = rows.iter().map(|(from, to, _, hops, gap)| path(from, to, hops, *gap)).collect();
    (connections, std::sync::Arc::new(paths))
}
