//! Every core a busy thread could get, with all that choosing between them needs, and the circles they form. It compares
//! nothing: that is `place` and `merit`.

use super::network_card::NetworkCard;
use super::{RecentLoad, Want};
use crate::sample::{CoreId, CorePlace, Topology};
use std::collections::HashMap;

/// Others use so much of a core that it is taken only where nothing else is left.
pub(super) const TAKEN: f64 = 0.5;

/// How far apart by number cores of one cluster are looked for: no cluster is larger.
const CLUSTER_REACH: CoreId = 16;

/// A core that may be given to a thread.
#[derive(Debug, Clone)]
pub(super) struct Seat {
    pub(super) core: CoreId,
    pub(super) place: CorePlace,
    /// Number of its physical core among the seats; SMT siblings have the same.
    pub(super) physical: usize,
    /// Number of its cluster among the seats; a core without a known cluster is one by itself.
    pub(super) cluster: usize,
    /// Number of its last-level cache (else node) among the seats.
    pub(super) cache: usize,
    /// Tenths of the strongest core's power that this one lacks: others' load on the physical core, less capacity.
    pub(super) lack: u32,
    /// Tenths of its time that go to interrupts of others.
    pub(super) interrupts: u32,
    pub(super) taken: bool,
    /// How far it is from the card that the benchmark leaves by: 0 in the cluster of a core it interrupts (or where there
    /// is no such card), 1 on its node, 2 elsewhere.
    pub(super) from_card: u32,
    /// Threads pinned already that hold its physical core.
    pub(super) held: u32,
    /// Threads pinned already that are on another cache.
    pub(super) strangers: u32,
    /// Others keep another core of its cluster busy, so that what the cluster shares is not its own.
    pub(super) noisy: bool,
    /// 2 for core 0, which does the machine's odd jobs, 1 for its cluster and its SMT sibling, else 0.
    pub(super) rather_not: u32,
}

impl Seat {
    /// What it lacks for this thread. The sender's core carries the whole path in softirq: others' interrupts hurt it
    /// most. A core that the thread is bound to already has a tenth's credit: noise of the measurement moves nobody.
    pub(super) fn lack_for(&self, want: &Want<'_>) -> u32 {
        let lack = self.lack + if want.sender { self.interrupts } else { 0 };
        lack.saturating_sub(u32::from(want.bound_to == Some(self.core)))
    }

    /// On no node that the thread's memory may be on.
    pub(super) fn is_off_memory(&self, want: &Want<'_>) -> bool {
        let nodes = want.thread.sample.memory_nodes.as_ref();
        nodes.zip(self.place.node).is_some_and(|(nodes, node)| !nodes.contains(node))
    }
}

/// The circles around a core, from the inside out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Circle {
    Cluster,
    Llc,
    Node,
    Socket,
    Machine,
}

impl Circle {
    /// What the cores of one such circle have in common; none where the machine does not tell.
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

/// What is the same for all seats.
pub(super) struct Room<'a> {
    pub(super) topology: &'a Topology,
    pub(super) recent: &'a RecentLoad,
    pub(super) card: Option<&'a NetworkCard>,
    /// Cores of threads that are pinned and stay where they are.
    pub(super) held: &'a [CoreId],
}

/// The online cores that at least one of these threads may use, sorted by core.
pub(super) fn seats(room: &Room<'_>, wants: &[Want<'_>]) -> Vec<Seat> {
    let topology = room.topology;
    let strongest = topology.cores.iter().filter_map(|place| place.capacity).max();
    let others_of = others_by_physical(topology, room.recent);
    let odd_jobs = topology.place(0);
    let usable = |core| wants.iter().any(|want| want.allowed.cores.contains(core));
    let held: Vec<&CorePlace> = room.held.iter().filter_map(|&core| topology.place(core)).collect();
    let (mut physicals, mut clusters, mut caches) = (HashMap::new(), HashMap::new(), HashMap::new());
    let seat = |place: &CorePlace| {
        let (core, others) = (place.core, others_of[&physical(place)]);
        let capacity = match (place.capacity, strongest) {
            (Some(own), Some(strongest)) if strongest > 0 => f64::from(own) / f64::from(strongest),
            _ => 1.0,
        };
        let cluster = (place.cluster, place.cluster.is_none().then(|| physical(place)));
        Seat {
            core,
            place: *place,
            physical: number(&mut physicals, physical(place)),
            cluster: number(&mut clusters, cluster),
            cache: number(&mut caches, Circle::cache(place)),
            lack: tenths(1.0 - capacity * (1.0 - others)),
            interrupts: room.recent.core(core).map_or(0, |recent| tenths(recent.others_interrupts)),
            taken: others >= TAKEN,
            from_card: room.card.map_or(0, |card| from_card(card, place, topology)),
            held: count(&held, |held| physical(held) == physical(place)),
            strangers: count(&held, |held| Circle::cache(held) != Circle::cache(place)),
            noisy: place.cluster.is_some() && noisy(topology, place, &others_of),
            rather_not: match core {
                0 => 2,
                _ => u32::from(odd_jobs.is_some_and(|first| {
                    physical(first) == physical(place) || first.cluster.is_some() && first.cluster == place.cluster
                })),
            },
        }
    };
    topology.cores.iter().filter(|place| place.online && usable(place.core)).map(seat).collect()
}

/// Whether others use more than a quarter of another physical core of the cluster.
fn noisy(topology: &Topology, place: &CorePlace, others: &HashMap<CoreId, f64>) -> bool {
    let from = topology.cores.partition_point(|other| other.core + CLUSTER_REACH < place.core);
    let near = topology.cores[from..].iter().take_while(|other| other.core <= place.core + CLUSTER_REACH);
    let beside = near.filter(|other| other.cluster == place.cluster && physical(other) != physical(place));
    beside.filter_map(|other| others.get(&physical(other))).any(|&load| load > 0.25)
}

fn count(held: &[&CorePlace], is: impl Fn(&CorePlace) -> bool) -> u32 {
    u32::try_from(held.iter().filter(|place| is(place)).count()).unwrap_or(u32::MAX)
}

fn from_card(card: &NetworkCard, place: &CorePlace, topology: &Topology) -> u32 {
    let beside = |core| topology.place(core).is_some_and(|other| other.cluster == place.cluster);
    match place.node {
        node if node != Some(card.node) => 2,
        _ if place.cluster.is_some() && card.interrupted.iter().any(beside) => 0,
        _ => 1,
    }
}

/// The busiest of each physical core's siblings: what others do on a sibling is taken from this one.
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
