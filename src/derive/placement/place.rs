//! Seats for threads: the innermost circle that has a physical core for each, and in it the best cores. Greedy on
//! purpose: threads with the fewest choices go first, every thread looks at every seat once, so 64 threads on 512 cores
//! stay well under a millisecond; single threads are moved to better seats after. The same input always gives the same
//! placement.

use super::Want;
use super::merit::{self, Company};
use super::seat::{Circle, Seat};
use std::collections::BTreeMap;

/// Which seat each thread gets.
#[derive(Debug, Clone)]
pub(super) struct Placement {
    /// Index into the seats, thread by thread.
    pub(super) seats: Vec<usize>,
    /// There were not enough physical cores: threads share one, as siblings or in turns.
    pub(super) shares: bool,
    /// Cores that others keep busy had to be considered.
    pub(super) taken: bool,
    /// The seats of the next best circle of the same kind.
    pub(super) runner_up: Option<Vec<usize>>,
    score: Score,
}

/// The less the better, first field first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    /// Threads that would run off the nodes their memory is bound to.
    off_memory: usize,
    /// Pinned threads on other caches, for each thread.
    strangers: u32,
    /// Sum of what the cores lack, roughly.
    heavy: u32,
    /// Sum of how far the cores are from the network card.
    from_card: u32,
    /// Sum of what the cores lack, in tenths.
    lack: u32,
    /// Threads that would leave the one core they are bound to.
    unsettled: usize,
    /// Threads that would leave the node they are on, where their memory is.
    uprooted: usize,
    /// Cores whose cluster others keep busy.
    noisy: usize,
    rather_not: u32,
    first: u32,
}

/// How a circle is filled.
#[derive(Clone, Copy)]
struct Manner {
    circle: Circle,
    /// Also cores that others keep busy.
    taken: bool,
    /// Also two threads to a physical core.
    share: bool,
}

/// The best placement there is: there always is one, if only by sharing.
pub(super) fn best(seats: &[Seat], wants: &[Want<'_>]) -> Placement {
    let mut placement = greedy(seats, wants);
    merit::mend(&mut placement, seats, wants);
    placement
}

/// What counts of a placement when it is asked whether another is worth moving for: sharing, others' work, memory, the
/// ends of streams on one cache, the network card, and cores that lack much.
pub(super) fn gist(chosen: &[usize], seats: &[Seat], wants: &[Want<'_>]) -> impl Ord + use<> {
    let mut company = Company::of(chosen, seats, wants);
    let merits = (0..wants.len()).filter_map(|nth| {
        let merits = company.merits(nth, chosen);
        merits.into_iter().find(|&(_, at)| at == chosen[nth]).map(|(merit, _)| merit)
    });
    merits.fold((0, 0, 0, 0, 0, 0, 0), |sum, merit| {
        (
            sum.0 + merit.sharers.0 + merit.sharers.1,
            sum.1 + u32::from(merit.taken),
            sum.2 + u32::from(merit.off_memory),
            sum.3 + u32::from(merit.parted),
            sum.4 + merit.outside,
            sum.5 + merit.heavy,
            sum.6 + merit.from_card / 2,
        )
    })
}

fn greedy(seats: &[Seat], wants: &[Want<'_>]) -> Placement {
    let pair = [Circle::Cluster, Circle::Llc, Circle::Node, Circle::Socket, Circle::Machine];
    let circles = if wants.len() == 2 { &pair[..] } else { &pair[1..] };
    for taken in [false, true] {
        for &circle in circles {
            let Some(found) = best_in(Manner { circle, taken, share: false }, seats, wants) else { continue };
            // A common cluster is worth less than free cores elsewhere on the same cache.
            let wider = (circle == Circle::Cluster)
                .then(|| best_in(Manner { circle: Circle::Llc, taken, share: false }, seats, wants))
                .flatten();
            return wider.filter(|wider| wider.score.lack < found.score.lack).unwrap_or(found);
        }
    }
    best_in(Manner { circle: Circle::Machine, taken: true, share: true }, seats, wants)
        .expect("every thread has an allowed core and sharing refuses none")
}

/// The best of all circles of one kind.
fn best_in(manner: Manner, seats: &[Seat], wants: &[Want<'_>]) -> Option<Placement> {
    let mut circles: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, seat) in seats.iter().enumerate().filter(|(_, seat)| manner.taken || !seat.taken) {
        if let Some(key) = manner.circle.of(&seat.place) {
            circles.entry(key).or_default().push(at);
        }
    }
    let mut filled: Vec<Placement> =
        circles.values().filter_map(|members| fill(manner, members, seats, wants)).collect();
    filled.sort_by_key(|placement| placement.score);
    let mut filled = filled.into_iter();
    let mut best = filled.next()?;
    best.runner_up = filled.next().map(|second| second.seats);
    Some(best)
}

/// Gives every thread its best seat in this circle; none where there is not a physical core for each.
fn fill(manner: Manner, members: &[usize], seats: &[Seat], wants: &[Want<'_>]) -> Option<Placement> {
    let ranks = cache_ranks(members, seats);
    let mut used = Used::new(seats, members, &ranks);
    if !manner.share && used.room.iter().sum::<usize>() < wants.len() {
        return None;
    }
    let (mut chosen, mut taken_in): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    for (nth, want) in wants.iter().enumerate() {
        let partner = nth.checked_sub(1).filter(|&before| wants[before].is_partner_of(want));
        let need = Need {
            want,
            beside: partner.map(|before| (taken_in[before], seats[chosen[before]].cluster)),
            leads: wants.get(nth + 1).is_some_and(|next| next.is_partner_of(want)),
            spread: wants.len() > 2,
        };
        let open = |&(at, _): &(usize, usize)| {
            want.allowed.cores.contains(seats[at].core)
                && (manner.share || used.physical[seats[at].physical] + seats[at].held == 0)
        };
        let ranked = members.iter().copied().zip(ranks.iter().copied());
        let (at, rank) = ranked.filter(open).min_by_key(|&(at, rank)| used.key(at, rank, &seats[at], &need))?;
        used.take(at, rank, &seats[at]);
        chosen.push(at);
        taken_in.push(rank);
    }
    let (score, shares) = (score(&chosen, seats, wants), used.physical.iter().any(|&threads| threads > 1));
    Some(Placement { seats: chosen, shares, taken: manner.taken, runner_up: None, score })
}

/// For each member the rank of its cache (or node) among those in this circle, roomiest first: a circle of several
/// caches is filled cache by cache, so that the two ends of a stream stay together.
fn cache_ranks(members: &[usize], seats: &[Seat]) -> Vec<usize> {
    let key = |at: usize| Circle::cache(&seats[at].place);
    let mut rooms: BTreeMap<_, usize> = BTreeMap::new();
    for &at in members {
        *rooms.entry(key(at)).or_default() += 1;
    }
    let mut order: Vec<_> = rooms.iter().map(|(key, room)| (std::cmp::Reverse(*room), *key)).collect();
    order.sort_unstable();
    let ranks: BTreeMap<_, usize> = order.into_iter().zip(0..).map(|((_, key), rank)| (key, rank)).collect();
    members.iter().map(|&at| ranks[&key(at)]).collect()
}

/// One thread's turn.
struct Need<'a> {
    want: &'a Want<'a>,
    /// Rank of the cache and number of the cluster in which the other end of its stream has just been seated.
    beside: Option<(usize, usize)>,
    /// The other end of its stream comes next.
    leads: bool,
    /// There are more than two threads: streams spread over the clusters.
    spread: bool,
}

/// Threads given to each core, physical core and cluster so far, and physical cores left in each cache.
struct Used {
    core: Vec<u32>,
    physical: Vec<u32>,
    cluster: Vec<u32>,
    room: Vec<usize>,
}

impl Used {
    fn new(seats: &[Seat], members: &[usize], ranks: &[usize]) -> Self {
        let free = members.iter().zip(ranks).filter(|&(&at, _)| seats[at].held == 0);
        let mut physicals: Vec<_> = free.map(|(&at, &rank)| (seats[at].physical, rank)).collect();
        physicals.sort_unstable();
        physicals.dedup();
        let mut room = vec![0; members.len()];
        for (_, rank) in physicals {
            room[rank] += 1;
        }
        Self { core: vec![0; seats.len()], physical: vec![0; seats.len()], cluster: vec![0; seats.len()], room }
    }

    fn take(&mut self, at: usize, rank: usize, seat: &Seat) {
        if self.physical[seat.physical] == 0 {
            self.room[rank] = self.room[rank].saturating_sub(1);
        }
        self.core[at] += 1;
        self.physical[seat.physical] += 1;
        self.cluster[seat.cluster] += 1;
    }

    /// What makes one seat better than another for this thread: the less the better, first field first.
    fn key(&self, at: usize, rank: usize, seat: &Seat, need: &Need<'_>) -> impl Ord + use<> {
        let sharers = (self.core[at], self.physical[seat.physical] + seat.held);
        // The ends of a stream share a cache; so the first of them does not take a cache's last core.
        let parted = need.beside.map_or(need.leads && self.room[rank] < 2, |(partners, _)| partners != rank);
        let lack = seat.lack_for(need.want);
        let settled = need.want.bound_to == Some(seat.core);
        // The ends of a stream belong together; streams spread over the clusters.
        let neighbours = match need.beside {
            Some((_, cluster)) => u32::from(cluster != seat.cluster),
            None if need.spread => self.cluster[seat.cluster],
            None => 0,
        };
        let off_memory = seat.is_off_memory(need.want);
        let load = (lack / 3, seat.from_card, lack);
        (sharers, off_memory, parted, rank, load, !settled, (neighbours, seat.noisy), seat.rather_not, seat.core)
    }
}

fn score(chosen: &[usize], seats: &[Seat], wants: &[Want<'_>]) -> Score {
    let pairs = || chosen.iter().map(|&at| &seats[at]).zip(wants);
    Score {
        off_memory: pairs().filter(|(seat, want)| seat.is_off_memory(want)).count(),
        strangers: pairs().map(|(seat, _)| seat.strangers).sum(),
        heavy: pairs().map(|(seat, want)| seat.lack_for(want) / 3).sum(),
        from_card: pairs().map(|(seat, _)| seat.from_card).sum(),
        lack: pairs().map(|(seat, want)| seat.lack_for(want)).sum(),
        unsettled: pairs().filter(|(seat, want)| want.bound_to.is_some_and(|core| core != seat.core)).count(),
        uprooted: pairs().filter(|(seat, want)| merit::is_uprooted(seat, want, seats)).count(),
        noisy: pairs().filter(|(seat, _)| seat.noisy).count(),
        rather_not: pairs().map(|(seat, _)| seat.rather_not).max().unwrap_or(0),
        first: chosen.iter().map(|&at| seats[at].core).min().unwrap_or(0),
    }
}
