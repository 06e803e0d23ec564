//! The whole placement: first the innermost domain that has a physical core for each thread, and in it the best cores; then
//! threads are moved to better cores one by one. Greedy on purpose: threads with the fewest choices go first, every thread
//! looks at every core once, so 64 threads on 512 cores take about 2 ms. The same input always gives the same placement.

use super::candidates::{CandidateCore, Inputs, Occupancy, TopologyLevel};
use super::criteria::{CacheOrder, CoreChoice, PlacingStage, score_of_domain};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Number of the candidate core of each thread, in the best domain and in the next best of the same level.
type Filled = (Vec<usize>, Option<Vec<usize>>);

/// What a domain may be filled with.
#[derive(Clone, Copy)]
struct FillPolicy {
    level: TopologyLevel,
    /// Also cores that others keep busy.
    busy_with_others: bool,
    /// Also two threads to a physical core.
    share: bool,
}

/// The innermost domain with a core for each thread, filled; there always is one, if only by sharing.
fn fill(inputs: &Inputs<'_>) -> Filled {
    let pair = [
        TopologyLevel::Cluster,
        TopologyLevel::Llc,
        TopologyLevel::Node,
        TopologyLevel::Socket,
        TopologyLevel::Machine,
    ];
    let levels = if inputs.threads.len() == 2 { &pair[..] } else { &pair[1..] };
    for busy_with_others in [false, true] {
        for &level in levels {
            let Some(found) = best_of(FillPolicy { level, busy_with_others, share: false }, inputs) else { continue };
            // A common cluster is worth less than free cores elsewhere on the same cache.
            let wider = (level == TopologyLevel::Cluster)
                .then(|| best_of(FillPolicy { level: TopologyLevel::Llc, busy_with_others, share: false }, inputs))
                .flatten();
            let shortfall = |(chosen, _): &Filled| -> u32 {
                inputs.cores(chosen).zip(&inputs.threads).map(|(core, thread)| core.shortfall_for(thread)).sum()
            };
            return wider.filter(|wider| shortfall(wider) < shortfall(&found)).unwrap_or(found);
        }
    }
    best_of(FillPolicy { level: TopologyLevel::Machine, busy_with_others: true, share: true }, inputs)
        .expect("every thread has an allowed core and sharing refuses none")
}

/// The best domain of one level.
fn best_of(policy: FillPolicy, inputs: &Inputs<'_>) -> Option<Filled> {
    let mut domains: BTreeMap<_, Vec<&CandidateCore>> = BTreeMap::new();
    for core in inputs.candidates.iter().filter(|core| policy.busy_with_others || !core.busy_with_others) {
        if let Some(key) = policy.level.of(&core.place) {
            domains.entry(key).or_default().push(core);
        }
    }
    let mut nobody = Occupancy::none(inputs);
    let domains = domains.values();
    let mut filled: Vec<Vec<usize>> =
        domains.filter_map(|members| fill_domain(policy, members, &mut nobody, inputs)).collect();
    filled.sort_by_cached_key(|chosen| score_of_domain(chosen, &nobody, inputs));
    let mut filled = filled.into_iter();
    Some((filled.next()?, filled.next()))
}

/// Gives every thread its best core in this domain; `None` if there is not a physical core for each. `occupancy` is empty
/// before and after.
fn fill_domain(
    policy: FillPolicy,
    members: &[&CandidateCore],
    occupancy: &mut Occupancy,
    inputs: &Inputs<'_>,
) -> Option<Vec<usize>> {
    let mut order = cache_order(members, inputs);
    if !policy.share && order.free.iter().sum::<usize>() < inputs.threads.len() {
        return None;
    }
    let mut chosen = Vec::with_capacity(inputs.threads.len());
    for (nth, thread) in inputs.threads.iter().enumerate() {
        let choice =
            CoreChoice { stage: PlacingStage::Filling(&order), ..CoreChoice::of(nth, &chosen, occupancy, inputs) };
        let allowed = members.iter().copied().filter(|core| thread.allowed.cores.contains(core.core));
        let open = |core: &&CandidateCore| policy.share || occupancy.physical[core.physical] + core.held == 0;
        let Some(core) = choice.best(allowed.filter(open)) else { break };
        if occupancy.physical[core.physical] == 0 {
            order.free[core.cache] = order.free[core.cache].saturating_sub(1);
        }
        occupancy.add(core);
        chosen.push(core.index);
    }
    for core in inputs.cores(&chosen) {
        occupancy.remove(core);
    }
    (chosen.len() == inputs.threads.len()).then_some(chosen)
}

/// The caches of the domain, roomiest first: a domain of several caches is filled cache by cache, so that the two ends of
/// a stream stay together.
fn cache_order(members: &[&CandidateCore], inputs: &Inputs<'_>) -> CacheOrder {
    let candidates = inputs.candidates.len();
    let mut rooms: BTreeMap<_, (u32, usize)> = BTreeMap::new();
    let (mut free, mut counted) = (vec![0; candidates], vec![false; candidates]);
    for core in members {
        rooms.entry(TopologyLevel::cache(&core.place)).or_insert((0, core.cache)).0 += 1;
        if core.held == 0 && !std::mem::replace(&mut counted[core.physical], true) {
            free[core.cache] += 1;
        }
    }
    let mut roomiest: Vec<_> = rooms.into_values().collect();
    // Caches with the same room keep the order of their numbers.
    roomiest.sort_by_key(|&(room, _)| Reverse(room));
    let mut rank = vec![0; candidates];
    (0..).zip(roomiest).for_each(|(nth, (_, cache))| rank[cache] = nth);
    CacheOrder { rank, free, spread: inputs.threads.len() > 2 }
}

/// Most rounds of moving threads: in each, a thread may find a better core that another thread has left.
const ROUNDS: usize = 2;

/// A core for each thread.
#[derive(Clone)]
pub(super) struct Placement {
    /// Number of the candidate core of each thread.
    pub(super) chosen: Vec<usize>,
    /// There were not enough physical cores: threads share one, as siblings or in turns.
    pub(super) shares: bool,
    /// Some of the cores are kept busy by others.
    pub(super) busy_with_others: bool,
    /// The cores of the next best domain of the same level.
    pub(super) runner_up: Option<Vec<usize>>,
}

/// The best placement found: there always is one, if only by sharing.
pub(super) fn placement(inputs: &Inputs<'_>) -> Placement {
    let (first, runner_up) = fill(inputs);
    let chosen = improve(first, inputs);
    let occupancy = Occupancy::of(&chosen, inputs);
    let shares = inputs.cores(&chosen).any(|core| occupancy.physical[core.physical] + core.held > 1);
    let busy_with_others = inputs.cores(&chosen).any(|core| core.busy_with_others);
    Placement { chosen, shares, busy_with_others, runner_up }
}

/// Moves single threads to better cores as long as there are any, in a few rounds at most.
fn improve(mut chosen: Vec<usize>, inputs: &Inputs<'_>) -> Vec<usize> {
    let mut occupancy = Occupancy::of(&chosen, inputs);
    for _ in 0..ROUNDS {
        let before = chosen.clone();
        for nth in 0..chosen.len() {
            let own = &inputs.candidates[chosen[nth]];
            occupancy.remove(own);
            let choice = CoreChoice::of(nth, &chosen, &occupancy, inputs);
            let best = choice.best(inputs.allowed(nth)).unwrap_or(own);
            occupancy.add(best);
            chosen[nth] = best.index;
        }
        if chosen == before {
            break;
        }
    }
    chosen
}
