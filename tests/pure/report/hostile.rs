//! A recording whose names are what nobody should have called anything, and the list of all names of a recording.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use vnettop::record::{Recorder, Recording};
use vnettop::sample::{
    Benchmark, CoreCounters, CorePlace, CoreSet, EndName, Ends, Event, FlowPath, FlowProgress, FlowSample, Holder, Hop,
    HopBy, HopWay, Host, Ifindex, Item, Kind, LinkCounters, LinkFacts, LinkKey, OvsBridge, OvsPort, OvsSwitch, Owned,
    Owner, OwnerBy, OwnerKind, Policy, Problem, ProblemSource, Program, Proto, RunAsked, Runner, Sample, Side,
    SilentNeighbour, Space, TcpState, ThreadId, ThreadSample, Topology, WireNames,
};

const NETNS: u64 = 4_026_531_840;
const SECOND: u64 = 1_000_000_000;
const LINKS: u32 = 20;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn key(ifindex: u32) -> LinkKey {
    LinkKey { netns: NETNS, ifindex: Ifindex(ifindex) }
}

fn link_name(nth: u32) -> String {
    match nth {
        1 => "lo".to_owned(),
        2 => "<script>".to_owned(),
        nth => format!("acme\"{nth}"),
    }
}

/// As many seconds of a test through hostile links on so many cores.
pub fn record(file: &Path, seconds: u64, cores: u32) {
    let mut recorder = Recorder::create(file).expect("a file");
    let asked = RunAsked {
        wall_ms: 1_700_000_000_000,
        command: ["iperf3", "-c", "acme-server", "--password=hunter2"].map(str::to_owned).to_vec(),
        repeat: 1,
        ..RunAsked::default()
    };
    recorder.write(&Item::Event(Event::RunAsked(asked))).expect("written");
    recorder.write(&Item::Event(Event::RunStarted { at_ns: SECOND, pid: 4711 })).expect("written");
    for second in 1..=seconds {
        recorder.write(&Item::Sample(Box::new(sample(second, cores, true)))).expect("written");
        if second == 6 {
            let why = "acme-server is in no namespace".to_owned();
            recorder.write(&Item::Event(Event::NotPinned { at_ns: second * SECOND, why })).expect("written");
            recorder.write(&Item::Event(Event::Mark { at_ns: second * SECOND })).expect("written");
        }
    }
    recorder.finish().expect("written");
}

/// A machine on which nothing is watched.
pub fn record_idle(file: &Path) {
    let mut recorder = Recorder::create(file).expect("a file");
    for second in 1..=8 {
        recorder.write(&Item::Sample(Box::new(sample(second, 4, false)))).expect("written");
    }
    recorder.finish().expect("written");
}

fn sample(second: u64, cores: u32, has_test: bool) -> Sample {
    let at_ns = second * SECOND;
    let counters = (1..=LINKS).map(|nth| LinkCounters {
        rx_bytes: second * 1_000_000_000 * u64::from(nth % 5),
        tx_bytes: second * 10_000_000,
        rx_packets: second * 1000,
        tx_packets: second * 1000,
        rx_dropped: second * u64::from(nth),
        ..LinkCounters::zero(key(nth), at_ns)
    });
    let core = |core: u32| CoreCounters {
        core,
        user: second * u64::from(core % 7) * 10,
        softirq: second * u64::from(core % 3) * 10,
        idle: second * 100,
        softirqs: [Some(second * 1000); 10],
        ..CoreCounters::default()
    };
    let thread = |tid: u32| ThreadSample {
        id: ThreadId { pid: 4711, tid, start: 1 },
        at_ns,
        name: if tid == 4711 { "acme-program".into() } else { "iperf3".into() },
        side: Some(Side::Client),
        core: u32::try_from((second + u64::from(tid)) % u64::from(cores)).expect("small"),
        allowed: Some((0..cores).collect::<CoreSet>()),
        cpu_ns: second * 900_000_000,
        wait_ns: Some(second * 1_000_000),
        migrations: Some(second * 3),
        ..ThreadSample::default()
    };
    let (here, there) = (address("198.51.100.77:40000"), address("[2001:db8::5ec]:5201"));
    let mut flow = FlowSample::new(9, (NETNS, 4711), (here, there));
    let bytes = |at: u64| at / 8 * 5;
    flow.pulses = (0..10)
        .map(|nth| at_ns - (9 - nth) * SECOND / 10)
        .map(|at_ns| FlowProgress { at_ns, acked: bytes(at_ns), received: 0 })
        .collect();
    let retransmits = u32::try_from(second).expect("small");
    flow.tcp = Some(TcpState { mss: 1448, cwnd: 10, rtt_us: 50, retransmits, ..TcpState::default() });
    let mut sample = Sample {
        wall_ms: 1_700_000_000_000 + second * 1000,
        at_ns,
        netns: NETNS,
        cores_at_ns: at_ns,
        counters: counters.collect(),
        cores: (0..cores).map(core).collect(),
        threads: if has_test { vec![thread(4711), thread(4712)] } else { Vec::new() },
        flows: if has_test { vec![flow] } else { Vec::new() },
        ..Sample::default()
    };
    sample.own.interval_ns = SECOND;
    let facts = sample.facts_mut();
    facts.host = Arc::new(Host {
        name: "acme-host".into(),
        kernel: "6.12.0-acmebank-alice".into(),
        arch: "x86_64".into(),
        policy: Policy { governor: Some("powersave".into()), ..Policy::default() },
    });
    let place =
        |core| CorePlace { core, online: true, node: Some(core % 2), physical: Some(core), ..CorePlace::default() };
    facts.topology = Arc::new(Topology { cores: (0..cores).map(place).collect(), nodes: 2, ..Topology::default() });
    let link = |nth: u32| {
        let kind = if nth == 1 { Kind::Loopback } else { Kind::Veth };
        let alias = Some(format!("uplink of acme-customer-{nth}"));
        Arc::new(LinkFacts { alias, speed_mbps: Some(10_000), ..LinkFacts::new(key(nth), &link_name(nth), kind) })
    };
    facts.links = Arc::new((1..=LINKS).map(link).collect());
    names_of_facts(facts, has_test);
    sample
}

/// Everything else that has a name.
fn names_of_facts(facts: &mut vnettop::sample::Facts, has_test: bool) {
    let text = "cannot read /home/acme-user/secret (10.9.8.7): run vnettop as root".to_owned();
    facts.problems = Arc::new(vec![Problem { source: ProblemSource::Other("acme-source".into()), text }]);
    let space = |netns, name: &str| Space { netns, name: Some(name.to_owned()), pid: Some(1), rests: false };
    facts.spaces = Arc::new(vec![space(NETNS, "acme-ns"), space(NETNS + 1, "acme-other-ns")]);
    let owned = |nth, kind, name: &str| {
        let owner = Owner {
            kind,
            name: name.to_owned(),
            id: Some("a51cac518006".to_owned()),
            by: OwnerBy::Docker,
            guess: false,
            pod_namespace: (kind == OwnerKind::Pod).then(|| "acme-team".to_owned()),
        };
        Owned { link: key(nth), owner }
    };
    facts.owners = Arc::new(vec![
        owned(2, OwnerKind::Container, "<script>alert(1)</script>"),
        owned(3, OwnerKind::Pod, "<b>web</b>"),
        owned(4, OwnerKind::Vm, "acme-guest"),
        owned(5, OwnerKind::Process, "acme-vpn 812"),
        owned(6, OwnerKind::Network, "acme-network"),
    ]);
    let port = OvsPort {
        error: Some("acme-error".into()),
        remote_ip: Some("203.0.113.9".into()),
        ..OvsPort::new("acme-port", "vxlan", Some(key(7)))
    };
    let bridge = OvsBridge {
        name: "acme-br".into(),
        datapath: "system".into(),
        fail_mode: Some("acme-mode".into()),
        ports: vec![port],
    };
    let switch = OvsSwitch {
        socket: "/run/acme/db.sock".into(),
        netns: NETNS,
        version: Some("3.1".into()),
        pid: Some(7),
        bridges: vec![bridge],
    };
    facts.ovs = Arc::new(vec![switch]);
    if !has_test {
        return;
    }
    let (here, there) = (address("198.51.100.77:40000"), address("[2001:db8::5ec]:5201"));
    let hop = |nth| Hop { link: key(nth), way: HopWay::Sent, by: HopBy::Route };
    let end = EndName { netns: NETNS, local: here, remote: address("192.0.2.55:7") };
    facts.paths = Arc::new(vec![FlowPath {
        netns: NETNS,
        proto: Proto::Tcp,
        from: here,
        to: there,
        hops: vec![hop(2), hop(3)],
        gap: Some("no route from acme-gateway (192.0.2.200)".into()),
        note: Some("packets with the mark of acme-policy".into()),
        ends: Some(Ends {
            near: end,
            far: end,
            holders: vec![Holder { pid: 9, name: "acme-holder".into(), accepts: true }],
        }),
        outside: Some(WireNames { from: address("203.0.113.66:40000"), to: there }),
        silent: Some(SilentNeighbour { link: hop(2).link, ip: there.ip() }),
        neighbours: Vec::new(),
        carriers: Vec::new(),
    }]);
    facts.benchmarks = Arc::new(vec![Benchmark {
        target: Some("acme-server".into()),
        streams: Some(1),
        affinity: Some("acme-affinity".into()),
        ..Benchmark::new(4711, Program::Iperf3, Side::Client, 5201)
    }]);
    facts.runners = Arc::new(vec![Runner {
        pid: 3,
        tid: 3,
        name: "acme-daemon".into(),
        core: 1,
        cpu_ns: 900_000_000,
        over_ns: SECOND,
        kernel: Some(false),
    }]);
    facts.family = Some(Arc::new(vec![4711]));
}

/// Every name and address in a recording.
pub fn names(file: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::from([file.file_stem().expect("a name").to_string_lossy().into_owned()]);
    let mut recording = Recording::open(file).expect("a recording");
    while let Some(item) = recording.next_item().expect("an item") {
        match item {
            Item::Sample(sample) => of_sample(&sample, &mut names),
            Item::Event(Event::RunAsked(asked)) => names.extend(asked.command.into_iter().skip(1)),
            Item::Event(Event::NotPinned { why, .. }) => drop(names.insert(why)),
            Item::Event(_) => {}
        }
    }
    // What everybody has, words too short to be looked for in sentences, and what is no name but a word that vnettop itself writes.
    let known = [
        "lo",
        "client",
        "over",
        "server",
        "iperf3",
        "iperf",
        "host",
        "bridge",
        "ovs-vswitchd",
        "docker-proxy",
        "socat",
        "openvpn",
        "vhost",
    ];
    names.retain(|name| name.len() > 3 && !known.contains(&&**name) && !name.starts_with("127.") && name != "0.0.0.0");
    names
}

fn of_sample(sample: &Sample, names: &mut BTreeSet<String>) {
    let facts = &sample.facts;
    names.insert(facts.host.name.clone());
    names.extend(facts.links.iter().flat_map(|link| [Some(link.name.clone()), link.alias.clone()]).flatten());
    names.extend(facts.spaces.iter().filter_map(|space| space.name.clone()));
    names.extend(
        facts.owners.iter().flat_map(|owned| [Some(owned.owner.name.clone()), owned.owner.id.clone()]).flatten(),
    );
    names.extend(
        facts.problems.iter().filter(|problem| problem.text.contains("acme")).map(|problem| problem.text.clone()),
    );
    for switch in &*facts.ovs {
        names.insert(switch.socket.clone());
        for bridge in &switch.bridges {
            names.extend([Some(bridge.name.clone()), bridge.fail_mode.clone()].into_iter().flatten());
            let words = |port: &OvsPort| {
                [
                    Some(port.name.clone()),
                    port.peer.clone(),
                    port.remote_ip.clone(),
                    port.local_ip.clone(),
                    port.error.clone(),
                ]
            };
            names.extend(bridge.ports.iter().flat_map(words).flatten());
        }
    }
    let mut add = |address: SocketAddr| {
        names.insert(address.ip().to_string());
        names.insert(address.ip().to_canonical().to_string());
    };
    for path in &*facts.paths {
        [path.from, path.to].into_iter().for_each(&mut add);
        for end in path.ends.iter().flat_map(|ends| [ends.near, ends.far]) {
            [end.local, end.remote].into_iter().for_each(&mut add);
        }
    }
    for flow in &sample.flows {
        [flow.local, flow.remote].into_iter().for_each(&mut add);
    }
    names.extend(facts.paths.iter().flat_map(|path| [path.gap.clone(), path.note.clone()]).flatten());
    names.extend(
        facts
            .benchmarks
            .iter()
            .flat_map(|one| [one.target.clone(), one.affinity.clone().filter(|of| of.contains("acme"))])
            .flatten(),
    );
    names.extend(facts.runners.iter().map(|runner| runner.name.clone()).filter(|name| name.contains("acme")));
    names.extend(sample.threads.iter().map(|thread| thread.name.to_string()));
}
