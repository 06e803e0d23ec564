//! A machine made by hand: links, cores and threads with rates, ticked by a clock of its own. Its samples go through the
//! real derivation, so a screen test shows what the same numbers would show live.

pub mod change;
pub mod scenes;
pub mod stage;
pub mod story;

use std::sync::Arc;
use vnettop::sample::*;

pub const NETNS: u64 = 4_026_531_840;
/// The kernel's clock tick, as everywhere.
const HERTZ: f64 = 100.0;

/// What a link moves a second.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traffic {
    pub rx_bits: f64,
    pub tx_bits: f64,
    pub rx_packets: f64,
    pub tx_packets: f64,
    pub drops: f64,
    pub errors: f64,
}

/// Traffic of full-size packets in one direction, with acknowledgements of 66 bytes in the other.
pub fn stream(rx_bits: f64, tx_bits: f64) -> Traffic {
    let packets = |bits: f64| bits / 8.0 / 1448.0;
    Traffic { rx_bits, tx_bits, rx_packets: packets(rx_bits), tx_packets: packets(tx_bits), ..Traffic::default() }
}

/// Shares of a core's time and softirqs a second.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    pub user: f64,
    pub system: f64,
    pub irq: f64,
    pub softirq: f64,
    pub steal: f64,
    pub net_rx: f64,
    pub hrtimer: f64,
    pub squeezed: f64,
    pub dropped: f64,
}

pub const QUIET: Work = Work {
    user: 0.01,
    system: 0.01,
    irq: 0.0,
    softirq: 0.0,
    steal: 0.0,
    net_rx: 0.0,
    hrtimer: 0.0,
    squeezed: 0.0,
    dropped: 0.0,
};

/// A machine.
pub struct World {
    pub host: Host,
    pub links: Vec<(LinkFacts, LinkCounters, Traffic)>,
    pub cores: Vec<(CorePlace, CoreCounters, Work)>,
    pub isolated: CoreSet,
    pub threads: Vec<Runner>,
    pub problems: Vec<Problem>,
    pub owners: Arc<Vec<Owned>>,
    /// The other namespaces, sorted by inode.
    pub spaces: Vec<Space>,
    /// The paths of the watched flows.
    pub paths: Arc<Vec<FlowPath>>,
    pub own: OwnCost,
    pub own_share: f64,
    at_ns: u64,
    wall_ms: u64,
    topology: Arc<Topology>,
    facts: Arc<Vec<Arc<LinkFacts>>>,
    ticks: usize,
}

/// A watched thread and how it behaves.
pub struct Runner {
    pub sample: ThreadSample,
    pub cpu: f64,
    pub moves_per_s: f64,
    pub wait: f64,
    /// The cores it goes through, one a tick.
    pub trail: Vec<CoreId>,
}

impl World {
    /// So many cores, in so many nodes of clusters of `cluster` cores; one node a socket up to two, else two.
    pub fn new(cores: u32, nodes: u32, cluster: Option<u32>) -> Self {
        let per_node = cores / nodes;
        let place = |core: u32| {
            let node = core / per_node;
            CorePlace {
                core,
                online: true,
                physical: Some(core),
                cluster: cluster.map(|cluster| core / cluster),
                llc: Some(node),
                node: Some(node),
                socket: Some(if nodes > 2 { node / 2 } else { node }),
                capacity: None,
            }
        };
        let host = Host { name: "bench1".into(), kernel: "6.18.1".into(), arch: "x86_64".into(), ..Host::default() };
        Self {
            host,
            links: Vec::new(),
            cores: (0..cores).map(|core| (place(core), idle_core(core), QUIET)).collect(),
            isolated: CoreSet::new(),
            threads: Vec::new(),
            problems: Vec::new(),
            owners: Arc::default(),
            spaces: Vec::new(),
            paths: Arc::default(),
            own: OwnCost { interval_ns: 500_000_000, realtime: true, ..OwnCost::default() },
            own_share: 0.0031,
            at_ns: 98_000_000_000_000,
            wall_ms: 1_767_323_045_678,
            topology: Arc::default(),
            facts: Arc::default(),
            ticks: 0,
        }
    }

    /// Two cores, one node: a small virtual machine.
    pub fn small() -> Self {
        Self::new(2, 1, None)
    }

    /// 128 cores, 4 nodes, clusters of 4, no SMT.
    pub fn kunpeng() -> Self {
        let mut world = Self::new(128, 4, Some(4));
        world.host = Host { name: "kp920".into(), kernel: "6.6.0".into(), arch: "aarch64".into(), ..Host::default() };
        world
    }

    /// Adds a link; its ifindex is its place.
    pub fn link(&mut self, name: &str, kind: Kind, speed_mbps: Option<u32>, traffic: Traffic) -> Ifindex {
        self.link_in(NETNS, name, kind, speed_mbps, traffic)
    }

    /// Adds a link in another namespace; namespaces are added in the order of their inodes.
    pub fn link_in(
        &mut self,
        netns: u64,
        name: &str,
        kind: Kind,
        speed_mbps: Option<u32>,
        traffic: Traffic,
    ) -> Ifindex {
        let ifindex = Ifindex(u32::try_from(self.links.len()).expect("worlds are small") + 1);
        let facts = LinkFacts {
            born: u64::from(ifindex.0),
            mtu: if kind == Kind::Loopback { 65_535 } else { 1500 },
            speed_mbps,
            ..LinkFacts::new(LinkKey { netns, ifindex }, name, kind)
        };
        let counters = LinkCounters {
            rx_bytes: 1_000,
            tx_bytes: 1_000,
            rx_packets: 10,
            tx_packets: 10,
            ..LinkCounters::zero(LinkKey { netns, ifindex }, 0)
        };
        self.links.push((facts, counters, traffic));
        self.changed();
        ifindex
    }

    /// Gives a link an owner; the links are given theirs in their order.
    pub fn owned(&mut self, ifindex: Ifindex, owner: Owner) {
        let link = LinkKey { netns: NETNS, ifindex };
        Arc::make_mut(&mut self.owners).push(Owned { link, owner });
    }

    /// The facts of a link, to be changed.
    pub fn facts(&mut self, ifindex: Ifindex) -> &mut LinkFacts {
        self.changed();
        let at = self.links.iter().position(|(facts, ..)| facts.ifindex == ifindex).expect("the link is there");
        &mut self.links[at].0
    }

    /// The traffic of a link, to be changed.
    pub fn traffic(&mut self, ifindex: Ifindex) -> &mut Traffic {
        let at = self.links.iter().position(|(facts, ..)| facts.ifindex == ifindex).expect("the link is there");
        &mut self.links[at].2
    }

    /// Takes a link away.
    pub fn remove(&mut self, ifindex: Ifindex) {
        self.links.retain(|(facts, ..)| facts.ifindex != ifindex);
        self.changed();
    }

    /// A thread of iperf3: a server's worker when its number is odd, a client's when it is even.
    pub fn iperf3(&mut self, tid: u32, trail: &[CoreId], moves_per_s: f64) -> ThreadId {
        let id = ThreadId { pid: tid, tid, start: 4_000 + u64::from(tid) };
        let highest = u32::try_from(self.cores.len()).expect("worlds are small") - 1;
        let all: CoreSet = (0..=highest).collect();
        let sample = ThreadSample {
            id,
            name: "iperf3".into(),
            side: Some(if tid % 2 == 1 { Side::Server } else { Side::Client }),
            core: trail[0],
            allowed: Some(all.clone()),
            cpuset: Some(all),
            wait_ns: Some(0),
            migrations: Some(0),
            voluntary: Some(0),
            involuntary: Some(0),
            ..ThreadSample::default()
        };
        self.threads.push(Runner { sample, cpu: 0.97, moves_per_s, wait: 0.02, trail: trail.to_vec() });
        id
    }

    /// The work of a core, to be changed.
    pub fn work(&mut self, core: CoreId) -> &mut Work {
        &mut self.cores[core as usize].2
    }

    /// Takes a core offline.
    pub fn offline(&mut self, core: CoreId) {
        self.cores[core as usize].0.online = false;
        self.changed();
    }

    /// Facts or topology are no longer what the last sample said.
    pub fn changed(&mut self) {
        self.facts = Arc::default();
        self.topology = Arc::default();
    }

    /// Lets so much time pass and reads everything.
    pub fn tick(&mut self, seconds: f64) -> Sample {
        self.at_ns += whole(seconds * 1e9);
        self.wall_ms += whole(seconds * 1e3);
        self.ticks += 1;
        self.own.cpu_ns += whole(self.own_share * seconds * 1e9);
        let at_ns = self.at_ns;
        self.links.iter_mut().for_each(|(_, counters, traffic)| move_link(counters, traffic, seconds, at_ns));
        self.cores.iter_mut().for_each(|(_, counters, work)| run_core(counters, work, seconds));
        let ticks = self.ticks;
        self.threads.iter_mut().for_each(|runner| run_thread(runner, seconds, at_ns, ticks));
        if self.facts.is_empty() {
            self.facts = Arc::new(self.links.iter().map(|(facts, ..)| Arc::new(facts.clone())).collect());
        }
        if self.topology.cores.is_empty() {
            self.topology = Arc::new(self.read_topology());
        }
        let facts = Facts {
            host: Arc::new(self.host.clone()),
            topology: Arc::clone(&self.topology),
            links: Arc::clone(&self.facts),
            problems: Arc::new(self.problems.clone()),
            spaces: Arc::new(self.spaces.clone()),
            owners: Arc::clone(&self.owners),
            paths: Arc::clone(&self.paths),
            ..Facts::default()
        };
        Sample {
            wall_ms: self.wall_ms,
            at_ns,
            netns: NETNS,
            cores_at_ns: at_ns,
            own: self.own,
            counters: self.links.iter().map(|(_, counters, _)| *counters).collect(),
            cores: self.cores.iter().filter(|(place, ..)| place.online).map(|(_, counters, _)| *counters).collect(),
            threads: self.threads.iter().map(|runner| runner.sample.clone()).collect(),
            facts: Arc::new(facts),
            ..Sample::default()
        }
    }

    fn read_topology(&self) -> Topology {
        let cores: Vec<CorePlace> = self.cores.iter().map(|(place, ..)| *place).collect();
        let mut nodes: Vec<u32> = cores.iter().filter_map(|place| place.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        Topology {
            cores,
            isolated: self.isolated.clone(),
            nodes: u32::try_from(nodes.len()).expect("worlds are small"),
        }
    }
}

fn idle_core(core: CoreId) -> CoreCounters {
    CoreCounters {
        core,
        softirqs: [Some(0); 10],
        softnet: Some(Softnet::default()),
        ksoftirqd_ns: Some(0),
        ..CoreCounters::default()
    }
}

fn move_link(counters: &mut LinkCounters, traffic: &Traffic, seconds: f64, at_ns: u64) {
    counters.at_ns = at_ns;
    counters.rx_bytes += whole(traffic.rx_bits / 8.0 * seconds);
    counters.tx_bytes += whole(traffic.tx_bits / 8.0 * seconds);
    counters.rx_packets += whole(traffic.rx_packets * seconds);
    counters.tx_packets += whole(traffic.tx_packets * seconds);
    counters.rx_dropped += whole(traffic.drops * seconds);
    counters.rx_errors += whole(traffic.errors * seconds);
}

#[allow(clippy::cast_possible_truncation, reason = "the kernel keeps 32 bits of these")]
fn run_core(counters: &mut CoreCounters, work: &Work, seconds: f64) {
    let ticks = |share: f64| whole(share * HERTZ * 100.0 * seconds);
    let busy = work.user + work.system + work.irq + work.softirq + work.steal;
    counters.user += ticks(work.user);
    counters.system += ticks(work.system);
    counters.irq += ticks(work.irq);
    counters.softirq += ticks(work.softirq);
    counters.steal += ticks(work.steal);
    counters.idle += ticks(1.0 - busy);
    let mut rise = |kind: SoftirqKind, per_s: f64| {
        *counters.softirqs[kind as usize].as_mut().expect("counted") += whole(per_s * seconds);
    };
    rise(SoftirqKind::NetRx, work.net_rx);
    rise(SoftirqKind::Hrtimer, work.hrtimer);
    rise(SoftirqKind::Timer, 100.0);
    let softnet = counters.softnet.as_mut().expect("counted");
    softnet.processed = softnet.processed.wrapping_add(whole(work.net_rx * 7.0 * seconds) as u32);
    softnet.squeezed += whole(work.squeezed * seconds) as u32;
    softnet.dropped += whole(work.dropped * seconds) as u32;
}

fn run_thread(runner: &mut Runner, seconds: f64, at_ns: u64, ticks: usize) {
    let sample = &mut runner.sample;
    sample.at_ns = at_ns;
    sample.cpu_ns += whole(runner.cpu * seconds * 1e9);
    sample.core = runner.trail[ticks % runner.trail.len()];
    let rise = |counter: &mut Option<u64>, by: f64| {
        if let Some(counter) = counter {
            *counter += whole(by);
        }
    };
    rise(&mut sample.wait_ns, runner.wait * seconds * 1e9);
    rise(&mut sample.migrations, runner.moves_per_s * seconds);
    rise(&mut sample.voluntary, 1_200.0 * seconds);
    rise(&mut sample.involuntary, 40.0 * seconds);
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "worlds are small and not negative")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}
