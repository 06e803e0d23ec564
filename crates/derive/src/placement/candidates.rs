//! Every core that a busy thread could be given, with all that choosing between them needs: the domains that cores form, how
//! many threads of a placement each core has. Nothing is compared here: that is `criteria`.

use super::busy_threads::BusyThread;
use super::network_card::{self, NetworkCard};
use crate::TestMetrics;
use crate::recent_load::RecentLoad;
use std::collections::HashMap;
use vnettop_sample::{CoreId, CorePlace, Topology, row_of};

/// Share of a core's time that others use from which on it is taken only where nothing else is left.
const BUSY_WITH_OTHERS: f64 = 0.5;

/// Share of a core's time that others use from which on its whole cluster counts as busy.
const BUSY_NEIGHBOUR: f64 = 0.25;

/// Largest distance by number between two cores of one cluster: no cluster is larger.
const CLUSTER_REACH: CoreId = 16;

/// What the choice of cores rests on.
pub(super) struct Inputs<'a> {
    pub(super) topology: &'a Topology,
    pub(super) recent: &'a RecentLoad,
    /// The network card that the benchmark leaves the machine by; none where it stays within it.
    pub(super) nic: Option<NetworkCard>,
    /// The busy threads, in the order in which they choose.
    pub(super) threads: Vec<BusyThread<'a>>,
    /// The online cores that at least one of the threads may use, sorted by core.
    pub(super) candidates: Vec<CandidateCore>,
}

impl Inputs<'_> {
    /// The candidates that the nth thread may be given.
    pub(super) fn allowed(&self, nth: usize) -> impl Iterator<Item = &CandidateCore> {
        let allowed = &self.threads[nth].allowed.cores;
        self.candidates.iter().filter(|core| allowed.contains(core.core))
    }

    /// The chosen cores, thread by thread.
    pub(super) fn cores(&self, chosen: &[usize]) -> impl Iterator<Item = &CandidateCore> + Clone {
        chosen.iter().map(|&at| &self.candidates[at])
    }

    /// The candidate that is this core; `None` if it is no candidate.
    pub(super) fn candidate(&self, core: CoreId) -> Option<&CandidateCore> {
        row_of(&self.candidates, &core, |candidate| candidate.core)
    }
}

/// A core that may be given to a thread.
#[derive(Debug, Clone)]
pub(super) struct CandidateCore {
    pub(super) core: CoreId,
    /// Its number among the candidates.
    pub(super) index: usize,
    pub(super) place: CorePlace,
    /// Number of its physical core among those of the candidates; SMT siblings have the same.
    pub(super) physical: usize,
    /// Number of its cluster among those of the candidates; a core without a known cluster is one by itself.
    pub(super) cluster: usize,
    /// Number of its last-level cache (else node) among those of the candidates.
    pub(super) cache: usize,
    /// Tenths of the strongest core's power that this one lacks: others' load on the physical core, less capacity.
    shortfall: u32,
    /// Tenths of its time that go to interrupts of others.
    interrupts: u32,
    /// Others use half of it or more.
    pub(super) busy_with_others: bool,
    /// Its distance from the network card that the benchmark leaves by.
    pub(super) from_nic: NicDistance,
    /// Number of threads pinned already that hold its physical core.
    pub(super) held: u32,
    /// Number of threads pinned already that are on another cache.
    pub(super) held_elsewhere: u32,
    /// Others keep another core of its cluster busy, so that what the cluster shares is not its own.
    pub(super) busy_cluster: bool,
    /// Whether it does the machine's odd jobs.
    pub(super) housekeeping: Housekeeping,
}

/// How far a core is from the network card that the benchmark leaves by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NicDistance {
    /// In the cluster of a core that the card interrupts; or there is no such card.
    SameCluster,
    SameNode,
    OtherNode,
}

/// What a core has to do with core 0, which does the machine's odd jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Housekeeping {
    None,
    /// In the cluster of core 0, or its SMT sibling.
    BesideCore0,
    Core0,
}

impl CandidateCore {
    /// Tenths of power that the core lacks for this thread. The sender's core carries the whole path in softirq: others'
    /// interrupts hurt it most. A core that the thread is bound to already has a tenth's credit: noise of the measurement
    /// moves no thread.
    pub(super) fn shortfall_for(&self, thread: &BusyThread<'_>) -> u32 {
        let shortfall = self.shortfall + if thread.sender { self.interrupts } else { 0 };
        shortfall.saturating_sub(u32::from(thread.bound_to == Some(self.core)))
    }

    /// The core is on none of the nodes that the thread's memory may be on.
    pub(super) fn is_off_memory(&self, thread: &BusyThread<'_>) -> bool {
        let nodes = thread.thread.sample.memory_nodes.as_ref();
        nodes.zip(self.place.node).is_some_and(|(nodes, node)| !nodes.contains(node))
    }
}

/// What the choice of cores for these threads rests on. `held` are the cores of threads that are pinned and stay.
pub(super) fn inputs<'a>(metrics: &'a TestMetrics, threads: Vec<BusyThread<'a>>, held: &[CoreId]) -> Inputs<'a> {
    let (topology, recent, nic) = (&*metrics.machine.facts.topology, &*metrics.recent, network_card::nic(metrics));
    let strongest = topology.cores.iter().filter_map(|place| place.capacity).max();
    let others_of = others_by_physical(topology, recent);
    let odd_jobs = topology.place(0);
    let usable = |core| threads.iter().any(|thread| thread.allowed.cores.contains(core));
    let held: Vec<&CorePlace> = held.iter().filter_map(|&core| topology.place(core)).collect();
    let (mut physicals, mut clusters, mut caches) = (HashMap::new(), HashMap::new(), HashMap::new());
    let candidate = |(index, place): (usize, &CorePlace)| {
        let (core, others) = (place.core, others_of[&physical(place)]);
        let capacity = match (place.capacity, strongest) {
            (Some(own), Some(strongest)) if strongest > 0 => f64::from(own) / f64::from(strongest),
            _ => 1.0,
        };
        let cluster = (place.cluster, place.cluster.is_none().then(|| physical(place)));
        CandidateCore {
            core,
            index,
            place: *place,
            physical: number(&mut physicals, physical(place)),
            cluster: number(&mut clusters, cluster),
            cache: number(&mut caches, TopologyLevel::cache(place)),
            shortfall: tenths(1.0 - capacity * (1.0 - others)),
            interrupts: recent.core(core).map_or(0, |recent| tenths(recent.others_interrupts)),
            busy_with_others: others >= BUSY_WITH_OTHERS,
            from_nic: nic.as_ref().map_or(NicDistance::SameCluster, |nic| from_nic(nic, place, topology)),
            held: count(&held, |held| physical(held) == physical(place)),
            held_elsewhere: count(&held, |held| TopologyLevel::cache(held) != TopologyLevel::cache(place)),
            busy_cluster: place.cluster.is_some() && is_cluster_busy(topology, place, &others_of),
            housekeeping: match core {
                0 => Housekeeping::Core0,
                _ if odd_jobs.is_some_and(|first| {
                    physical(first) == physical(place) || first.cluster.is_some() && first.cluster == place.cluster
                }) =>
                {
                    Housekeeping::BesideCore0
                }
                _ => Housekeeping::None,
            },
        }
    };
    let usable = topology.cores.iter().filter(|place| place.online && usable(place.core));
    let candidates = usable.enumerate().map(candidate).collect();
    Inputs { topology, recent, nic, threads, candidates }
}

/// Whether others use more than a quarter of another physical core of the cluster.
fn is_cluster_busy(topology: &Topology, place: &CorePlace, others: &HashMap<CoreId, f64>) -> bool {
    let from = topology.cores.partition_point(|other| other.core + CLUSTER_REACH < place.core);
    let near = topology.cores[from..].iter().take_while(|other| other.core <= place.core + CLUSTER_REACH);
    let beside = near.filter(|other| other.cluster == place.cluster && physical(other) != physical(place));
    beside.filter_map(|other| others.get(&physical(other))).any(|&load| load > BUSY_NEIGHBOUR)
}

fn count(held: &[&CorePlace], is: impl Fn(&CorePlace) -> bool) -> u32 {
    u32::try_from(held.iter().filter(|place| is(place)).count()).unwrap_or(u32::MAX)
}

fn from_nic(nic: &NetworkCard, place: &CorePlace, topology: &Topology) -> NicDistance {
    let beside = |core| topology.place(core).is_some_and(|other| other.cluster == place.cluster);
    match place.node {
        node if node != Some(nic.node) => NicDistance::OtherNode,
        _ if place.cluster.is_some() && nic.interrupted.iter().any(beside) => NicDistance::SameCluster,
        _ => NicDistance::SameNode,
    }
}

/// The load of the busiest sibling of each physical core: work of others on a sibling is taken from this one.
fn others_by_physical(topology: &Topology, recent: &RecentLoad) -> HashMap<CoreId, f64> {
    let mut others: HashMap<CoreId, f64> = HashMap::with_capacity(topology.cores.len());
    for place in topology.cores.iter().filter(|place| place.online) {
        let load = recent.core(place.core).map_or(0.0, |recent| recent.others.min(1.0));
        let most = others.entry(physical(place)).or_default();
        *most = most.max(load);
    }
    others
}

pub(super) fn physical(place: &CorePlace) -> CoreId {
    place.physical.unwrap_or(place.core)
}

fn number<K: std::hash::Hash + Eq>(numbers: &mut HashMap<K, usize>, key: K) -> usize {
    let next = numbers.len();
    *numbers.entry(key).or_insert(next)
}

/// A share in tenths, so that noise of a few percent decides nothing.
fn tenths(share: f64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..10 first")]
    let tenths = (share.clamp(0.0, 1.0) * 10.0).round() as u32;
    tenths
}

/// The levels of the topology around a core, from the inside out. The cores that have one in common are a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TopologyLevel {
    Cluster,
    Llc,
    Node,
    Socket,
    Machine,
}

impl TopologyLevel {
    /// What the cores of one domain have in common; none where the machine does not tell.
    pub(super) fn of(self, place: &CorePlace) -> Option<(u32, Option<u32>)> {
        match self {
            Self::Cluster => Some((place.cluster?, place.node)),
            Self::Llc => Some((place.llc?, place.node)),
            Self::Node => Some((place.node?, None)),
            Self::Socket => Some((place.socket?, None)),
            Self::Machine => Some((0, None)),
        }
    }

    /// The last-level cache, else the node.
    pub(super) fn cache(place: &CorePlace) -> Option<(u32, Option<u32>)> {
        Self::Llc.of(place).or_else(|| Self::Node.of(place))
    }
}

/// Numbers of threads, by the numbers that candidate cores have.
pub(super) struct Occupancy {
    pub(super) core: Vec<u32>,
    pub(super) physical: Vec<u32>,
    pub(super) cluster: Vec<u32>,
    pub(super) cache: Vec<u32>,
    pub(super) total: u32,
}

impl Occupancy {
    /// No thread on any of the candidate cores.
    pub(super) fn none(inputs: &Inputs<'_>) -> Self {
        let none = || vec![0; inputs.candidates.len()];
        Self { core: none(), physical: none(), cluster: none(), cache: none(), total: 0 }
    }

    /// The threads of a placement.
    pub(super) fn of(chosen: &[usize], inputs: &Inputs<'_>) -> Self {
        let mut occupancy = Self::none(inputs);
        for core in inputs.cores(chosen) {
            occupancy.add(core);
        }
        occupancy
    }

    pub(super) fn add(&mut self, core: &CandidateCore) {
        self.counts(core).into_iter().for_each(|count| *count += 1);
    }

    pub(super) fn remove(&mut self, core: &CandidateCore) {
        self.counts(core).into_iter().for_each(|count| *count -= 1);
    }

    fn counts(&mut self, core: &CandidateCore) -> [&mut u32; 5] {
        [
            &mut self.core[core.index],
            &mut self.physical[core.physical],
            &mut self.cluster[core.cluster],
            &mut self.cache[core.cache],
            &mut self.total,
        ]
    }
}
