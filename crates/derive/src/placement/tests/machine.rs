//! Machines and benchmarks built by hand, for tests of what is derived from them.

use crate::cores::{CoreLoad, CoreMetrics, Shares};
use crate::links::Basis;
use crate::links::{LinkMetrics, LinkRates};
use crate::moves::{Evidence, MovesByClass};
use crate::placement::RecentLoad;
use crate::threads::ThreadMetrics;
use crate::{MachineMetrics, TestMetrics};
use std::sync::Arc;
use vnettop_sample::{
    CoreId, CorePlace, CoreSet, Facts, Ifindex, Kind, LinkFacts, LinkKey, OwnCost, Side, ThreadId, ThreadSample,
    Topology,
};

/// A machine with watched threads, at one instant.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) topology: Topology,
    /// (core, process, irq, softirq): what others do.
    loads: Vec<(CoreId, f64, f64, f64)>,
    threads: Vec<ThreadMetrics>,
    links: Vec<LinkMetrics>,
}

impl Machine {
    /// `cores` cores of which nothing is known but that they are online.
    pub(crate) fn bare(cores: u32) -> Self {
        let place = |core| CorePlace { core, online: true, ..CorePlace::default() };
        let topology = Topology { cores: (0..cores).map(place).collect(), isolated: CoreSet::new(), nodes: 0 };
        Self { topology, loads: Vec::new(), threads: Vec::new(), links: Vec::new() }
    }

    /// Changes every place.
    pub(crate) fn placed(mut self, change: impl Fn(&mut CorePlace)) -> Self {
        self.topology.cores.iter_mut().for_each(change);
        let nodes: std::collections::BTreeSet<_> = self.topology.cores.iter().filter_map(|place| place.node).collect();
        self.topology.nodes = u32::try_from(nodes.len()).expect("few nodes");
        self
    }

    /// One cache, one node, no SMT.
    pub(crate) fn small(cores: u32) -> Self {
        Self::bare(cores).placed(|place| {
            place.physical = Some(place.core);
            (place.llc, place.node, place.socket) = (Some(0), Some(0), Some(0));
        })
    }

    /// Kunpeng 920, two sockets: 128 cores, 4 nodes of 32 which are the caches, clusters of 4.
    pub(crate) fn kunpeng() -> Self {
        Self::bare(128).placed(|place| {
            let core = place.core;
            (place.physical, place.cluster) = (Some(core), Some(core / 4));
            (place.llc, place.node, place.socket) = (Some(core / 32), Some(core / 32), Some(core / 64));
        })
    }

    /// Others use these shares of each of these cores.
    pub(crate) fn busy(mut self, cores: &str, process: f64, softirq: f64) -> Self {
        let cores: CoreSet = cores.parse().expect("a list of cores");
        self.loads.extend(cores.iter().map(|core| (core, process, 0.0, softirq)));
        self
    }

    /// Devices interrupt these cores.
    pub(crate) fn interrupted(mut self, cores: &str, irq: f64) -> Self {
        let cores: CoreSet = cores.parse().expect("a list of cores");
        self.loads.extend(cores.iter().map(|core| (core, 0.0, irq, 0.0)));
        self
    }

    /// A physical link on this node receives so much.
    pub(crate) fn card(mut self, name: &str, node: Option<u32>, bits_per_s: f64) -> Self {
        let facts = LinkFacts {
            node,
            ..LinkFacts::new(
                LinkKey { netns: 1, ifindex: Ifindex(u32::try_from(self.links.len()).expect("few links") + 1) },
                name,
                if node.is_some() { Kind::Physical } else { Kind::Veth },
            )
        };
        let rates = LinkRates { rx_bits_per_s: Some(bits_per_s), ..LinkRates::still() };
        let (facts, rates) = (Arc::new(facts), Some(rates));
        self.links.push(LinkMetrics { facts, basis: Basis::None, counters: None, rates, ovs: None });
        self
    }

    /// Two Xeons: a node each of 20 physical cores with two threads; siblings are 40 apart.
    pub(crate) fn xeon() -> Self {
        Self::bare(80).placed(|place| {
            let physical = place.core % 40;
            place.physical = Some(physical);
            (place.llc, place.node, place.socket) = (Some(physical / 20), Some(physical / 20), Some(physical / 20));
        })
    }

    pub(crate) fn isolated(mut self, cores: &str) -> Self {
        self.topology.isolated = cores.parse().expect("a list of cores");
        self
    }

    /// A thread of an iperf3 process that uses 90 % of its core, its mask that of all cores.
    pub(crate) fn thread(self, pid: u32, tid: u32, side: Side, core: CoreId) -> Self {
        let all = self.topology.online();
        self.thread_with(pid, tid, core, |thread| {
            thread.sample.side = Some(side);
            (thread.sample.allowed, thread.sample.cpuset) = (Some(all.clone()), Some(all));
        })
    }

    /// A thread of which `change` says the rest.
    pub(crate) fn thread_with(
        mut self,
        pid: u32,
        tid: u32,
        core: CoreId,
        change: impl FnOnce(&mut ThreadMetrics),
    ) -> Self {
        let sample = ThreadSample {
            id: ThreadId { pid, tid, start: 7 },
            name: "iperf3".into(),
            core,
            migrations: Some(0),
            ..ThreadSample::default()
        };
        let mut thread = ThreadMetrics {
            sample,
            cpu: Some(0.9),
            moves: 0,
            moves_per_s: Some(0.0),
            evidence: Evidence::Counted,
            last_class: None,
            by_class: MovesByClass::default(),
            voluntary_per_s: None,
            involuntary_per_s: None,
            wait: None,
            pinned: false,
            before_pin: None,
            moves_lately_per_s: None,
            moved: false,
            settled: true,
        };
        change(&mut thread);
        self.threads.push(thread);
        self.threads.sort_by_key(|thread| (thread.sample.id.pid, thread.sample.id.tid));
        self
    }

    /// One client and one server, single-threaded, on these cores.
    pub(crate) fn pair(self, server: CoreId, client: CoreId) -> Self {
        self.thread(39081, 39081, Side::Server, server).thread(39082, 39082, Side::Client, client)
    }

    /// The last changed thread-by-thread.
    pub(crate) fn each_thread(mut self, change: impl Fn(&mut ThreadMetrics)) -> Self {
        self.threads.iter_mut().for_each(change);
        self
    }

    /// What vnettop derives of it: watched threads use their core, 60 % as process and the rest of it as softirq; its load
    /// has been so for ten ticks.
    pub(crate) fn metrics(&self) -> TestMetrics {
        let core = |place: &CorePlace| {
            let mut shares = Shares::default();
            for &(_, process, irq, softirq) in self.loads.iter().filter(|load| load.0 == place.core) {
                (shares.user, shares.irq, shares.softirq) =
                    (shares.user + process, shares.irq + irq, shares.softirq + softirq);
            }
            for thread in self.threads.iter().filter(|thread| thread.sample.core == place.core) {
                let cpu = thread.cpu.unwrap_or(0.0);
                (shares.system, shares.softirq) = (shares.system + 0.6 * cpu, shares.softirq + 0.4 * cpu);
            }
            shares.idle = (1.0 - shares.busy()).max(0.0);
            let load = CoreLoad { shares: Some(shares), ..CoreLoad::default() };
            CoreMetrics { place: *place, load: place.online.then_some(load) }
        };
        let facts = Facts { topology: Arc::new(self.topology.clone()), ..Facts::default() };
        let threads = Arc::new(self.threads.clone());
        let machine = MachineMetrics {
            at_ns: 1_000_000_000,
            elapsed_s: Some(0.5),
            netns: 1,
            facts: Arc::new(facts),
            links: Arc::new(self.links.clone()),
            cores: self.topology.cores.iter().map(core).collect(),
            threads: Arc::clone(&threads),
            own: OwnCost { interval_ns: 500_000_000, ..OwnCost::default() },
            ..MachineMetrics::default()
        };
        let mut recent = RecentLoad::default();
        (0..10).for_each(|_| recent.observe(&machine, &threads, &[]));
        TestMetrics { machine: Arc::new(machine), threads, recent: Arc::new(recent), ..TestMetrics::default() }
    }
}
