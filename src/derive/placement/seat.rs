//! Every core a busy thread could get, with all that choosing between them needs, and the circles they form. It compares
//! nothing: that is `place`.

use super::{RecentLoad, Want};
use crate::sample::{CoreId, CorePlace, Topology};
use std::collections::HashMap;

/// Others use so much of a core that it is taken only where nothing else is left.
pub(super) const TAKEN: f64 = 0.5;

/// A core that may be given to a thread.
#[derive(Debug, Clone)]
pub(super) struct Seat {
    pub(super) core: CoreId,
    pub(super) place: CorePlace,
    /// Number of its physical core among the seats; SMT siblings have the same.
    pub(super) physical: usize,
    /// Number of its cluster among the seats; a core without a known cluster is one by itself.
    pub(super) cluster: usize,
    /// Tenths of the strongest core's power that this one lacks: others' load on the physical core, less capacity.
    pub(super) lack: u32,
    /// Tenths of its time that go to interrupts of others.
    pub(super) interrupts: u32,
    pub(super) taken: bool,
    /// 2 for core 0, which does the machine's odd jobs, 1 for its cluster, else 0.
    pub(super) rather_not: u32,
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
}

/// The online cores that at least one of these threads may use, sorted by core.
pub(super) fn seats(topology: &Topology, recent: &RecentLoad, wants: &[Want<'_>]) -> Vec<Seat> {
    let strongest = topology.cores.iter().filter_map(|place| place.capacity).max();
    let others = others_by_physical(topology, recent);
    let odd_jobs = topology.place(0).and_then(|place| place.cluster);
    let usable = |core| wants.iter().any(|want| want.allowed.cores.contains(core));
    let (mut physicals, mut clusters) = (HashMap::new(), HashMap::new());
    let seat = |place: &CorePlace| {
        let (core, others) = (place.core, others[&physical(place)]);
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
            lack: tenths(1.0 - capacity * (1.0 - others)),
            interrupts: recent.core(core).map_or(0, |recent| tenths(recent.others_interrupts)),
            taken: others >= TAKEN,
            rather_not: match core {
                0 => 2,
                _ => u32::from(odd_jobs.is_some() && place.cluster == odd_jobs),
            },
        }
    };
    topology.cores.iter().filter(|place| place.online && usable(place.core)).map(seat).collect()
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

fn physical(place: &CorePlace) -> CoreId {
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
