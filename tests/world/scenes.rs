//! Worlds that several tests look at.

use super::stage::Stage;
use super::{QUIET, Traffic, Work, World, stream};
use vnettop::derive::placement::{CoreChange, Proposal, Step};
use vnettop::derive::proof::{Card, Difference, Side, Verdict};
use vnettop::derive::{Finding, Jitter};
use vnettop::sample::{CoreId, CoreSet, Ifindex, Kind, LinkState, PeerRef, ThreadId};
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
        facts.peer =
            Some(PeerRef { netnsid: Some(i32::try_from(port.0).expect("worlds are small") - 4), ifindex: Ifindex(2) });
    }
    let tun = world.link("tun0", Kind::Tun, Some(10_000), Traffic::default());
    world.facts(tun).state = LinkState::Down;
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
        Verdict::NoDifference => (swings, as_before, [0.5, -1.4, 2.3], [-0.02, -0.06, 0.03]),
        Verdict::Worse => (steady, swings, [-10.8, -12.4, -9.1], [0.368, 0.33, 0.40]),
        _ => (swings, steady, [10.8, 9.1, 12.4], [-0.368, -0.40, -0.33]),
    };
    let side = |(mean, cv), moves| Side { jitter: jitter(mean, cv, 30), moves_per_s: Some(moves) };
    let difference =
        |[is, from, to]: [f64; 3], unit: f64| Difference { is: is * unit, from: from * unit, to: to * unit };
    Card {
        pinned_at_ns: Some(1),
        before: side(before, 59.0),
        after: side(after, 0.0),
        mean: difference(mean, 1e9),
        cv: Some(difference(cv, 1.0)),
        verdict,
    }
}

/// Findings as a bad day has them.
pub fn findings() -> Vec<Finding> {
    let finding = |id, key, text: &str, numbers: &[(&'static str, f64)]| Finding {
        id,
        text: text.to_owned(),
        numbers: numbers.to_vec(),
        key,
    };
    vec![
        finding(
            "jitter",
            Some('p'),
            "moves lower the rate: bins with a move to another node run at 14.9 Gbit/s, others at 34.6; 59 moves/s, 11 of \
             them across nodes, cost 2.1 GB each second",
            &[("mean_bits_per_s", 2.41e10), ("cv", 0.38), ("p_value", 0.001), ("moves_per_s", 59.0)],
        ),
        finding("nodes", Some('p'), "sender and receiver are on different nodes: 91 on node 2, 5 on node 0", &[]),
        finding("softnet", None, "core 5 drops 812 packets/s from its backlog", &[("softnet_dropped_per_s", 812.0)]),
        finding("steal", None, "core 1 is stolen 2 % of the time", &[("steal", 0.02), ("difference", -0.004)]),
        finding("label", None, "docker0 moves 34.8 Gbit/s, 3.5 times the 10 Gbit/s it claims", &[("times", 3.48)]),
    ]
}
