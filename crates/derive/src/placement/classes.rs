//! One placement of each class that the machine has, for a search by experiment; and the class of a placement. Which class is best
//! is measured, so nothing here prefers one: within a class the threads get the freest cores, stream by stream.

use super::busy_threads::busy_threads;
use super::candidates::{CandidateCore, Inputs, inputs};
use super::fill::Placement;
use super::network_card::INTERRUPTED;
use super::phrases::label;
use super::streams::{Streams, streams};
use super::{Proposal, propose};
use crate::TestMetrics;
use crate::moves::MoveClass;
use crate::plural;
use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{CoreId, PlacedThread, PlacementClass, ThreadId, Topology, TriedPlacement, Word};

/// What a search tries.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassPlacements {
    /// Unpinned first, then from the nearest class to the farthest.
    pub placements: Vec<TriedPlacement>,
    /// What is not tried and why, a sentence each.
    pub left_out: Vec<String>,
}

/// The classes by the distance of the two ends of a stream, the nearest first.
const BY_DISTANCE: [PlacementClass; 8] = [
    PlacementClass::SameCore,
    PlacementClass::Siblings,
    PlacementClass::SameCluster,
    PlacementClass::SameCache,
    PlacementClass::SameNode,
    PlacementClass::OtherNode,
    PlacementClass::OtherSocket,
    PlacementClass::TwoCores,
];

/// The core of each placed thread, by its number among the inputs' candidates.
type Chosen = Vec<usize>;

/// The class of two ends of a stream on these cores; none where a core is not in the topology.
fn class_between(topology: &Topology, one: CoreId, other: CoreId) -> Option<PlacementClass> {
    let (a, b) = (topology.place(one)?, topology.place(other)?);
    Some(match MoveClass::of(topology, one, other) {
        _ if one == other => PlacementClass::SameCore,
        None => PlacementClass::TwoCores,
        Some(MoveClass::Smt) => PlacementClass::Siblings,
        Some(MoveClass::Cluster) => PlacementClass::SameCluster,
        Some(MoveClass::Llc) => PlacementClass::SameCache,
        Some(MoveClass::Node) if a.node.is_some() && a.node == b.node => PlacementClass::SameNode,
        Some(MoveClass::Node) => PlacementClass::OtherNode,
        Some(MoveClass::Socket) => PlacementClass::OtherSocket,
    })
}

/// One placement of each class for the busy watched threads, the rule's own among them.
///
/// # Errors
/// A sentence why there is nothing to try: no busy thread, or no class but one has room.
pub fn by_class(metrics: &TestMetrics) -> Result<ClassPlacements, String> {
    let (inputs, streams, mut left_out) = placed_threads(metrics)?;
    let tried = |class, is_rule, chosen: &Chosen| {
        let placed = inputs.threads.iter().zip(inputs.cores(chosen));
        let threads = placed.map(|(busy, core)| PlacedThread {
            thread: busy.thread.sample.id,
            label: label(busy.thread),
            core: core.core,
        });
        TriedPlacement { class, is_rule, threads: threads.collect(), steers: Vec::new() }
    };
    let mut found: Vec<(PlacementClass, Chosen)> = Vec::new();
    let there = classes_of(inputs.topology);
    for class in BY_DISTANCE.into_iter().filter(|class| !streams.pairs.is_empty() && there.contains(class)) {
        match at_distance(&inputs, &streams, class) {
            Some(chosen) => found.push((class, chosen)),
            None => left_out.push(format!("not tried: {}, too few allowed cores", class.word())),
        }
    }
    if streams.pairs.is_empty() {
        found.extend(own_cores(&inputs).map(|chosen| (PlacementClass::OwnCores, chosen)));
    }
    if let Some([beside, away]) = around_interrupts(&inputs, &streams) {
        found.push((PlacementClass::BesideInterrupts, beside));
        found.push((PlacementClass::AwayFromInterrupts, away));
    }
    let rule = rule(metrics, &inputs);
    let class_of_rule = rule.as_ref().map(|chosen| class_of_chosen(&inputs, &streams, chosen));
    let mut placements = vec![tried(PlacementClass::Unpinned, false, &Vec::new())];
    for (class, chosen) in &found {
        let is_rule = class_of_rule == Some(*class);
        placements.push(tried(*class, is_rule, rule.as_ref().filter(|_| is_rule).unwrap_or(chosen)));
    }
    // Placements of the same cores would be measured twice.
    let mut cores = BTreeMap::new();
    placements.retain(|one| {
        let same: Vec<CoreId> = one.threads.iter().map(|at| at.core).collect();
        let known: PlacementClass = *cores.entry(same).or_insert(one.class);
        if known != one.class {
            left_out.push(format!("not tried: {}, the same cores as {}", one.class.word(), known.word()));
        }
        known == one.class
    });
    if let Some(chosen) = rule.filter(|_| !placements.iter().any(|one| one.is_rule)) {
        placements.push(tried(PlacementClass::Proposal, true, &chosen));
    }
    if placements.len() < 2 {
        return Err("no core may be chosen for the busy threads, so there is nothing to search".to_owned());
    }
    Ok(ClassPlacements { placements, left_out })
}

/// The proposal of the placement of one class; its reasons say only where the cores are, not why this class.
///
/// # Errors
/// A sentence why there is none: no busy thread, or too few allowed cores.
pub fn propose_class(metrics: &TestMetrics, class: PlacementClass) -> Result<Proposal, String> {
    let (inputs, streams, left_out) = placed_threads(metrics)?;
    let chosen = match class {
        PlacementClass::Unpinned => return Err("unpinned needs no placement".to_owned()),
        PlacementClass::Proposal => return propose(metrics),
        PlacementClass::OwnCores => own_cores(&inputs),
        PlacementClass::BesideInterrupts => around_interrupts(&inputs, &streams).map(|[beside, _]| beside),
        PlacementClass::AwayFromInterrupts => around_interrupts(&inputs, &streams).map(|[_, away]| away),
        _ if streams.pairs.is_empty() => None,
        _ => rule(metrics, &inputs)
            .filter(|chosen| class_of_chosen(&inputs, &streams, chosen) == class)
            .or_else(|| at_distance(&inputs, &streams, class)),
    };
    let chosen = chosen.ok_or_else(|| format!("too few allowed cores for {}", class.word()))?;
    let physicals: BTreeSet<usize> = inputs.cores(&chosen).map(|core| core.physical).collect();
    let shares = physicals.len() < chosen.len();
    let placement = Placement { chosen, shares, busy_with_others: false, runner_up: None };
    let mut proposal = super::proposal(&inputs, &placement);
    // The next best by the rule is no alternative to what was measured.
    for step in &mut proposal.steps {
        (step.as_good, step.runner_up) = (vnettop_sample::CoreSet::new(), None);
    }
    proposal.reasons.extend(left_out);
    Ok(proposal)
}

/// The class of all streams on the cores in `placed`; `None` when streams differ, an end has no core there, or no stream is known.
#[must_use]
pub fn class_of(metrics: &TestMetrics, placed: &[(ThreadId, CoreId)]) -> Option<PlacementClass> {
    let (threads, _) = busy_threads(metrics).ok()?;
    let streams = streams(metrics, &threads);
    let core = |at: usize| {
        let id = threads[at].thread.sample.id;
        placed.iter().find(|(thread, _)| *thread == id).map(|(_, core)| *core)
    };
    let mut classes = streams
        .pairs
        .iter()
        .map(|&(sender, receiver)| class_between(&metrics.machine.facts.topology, core(sender)?, core(receiver)?));
    let first = classes.next()??;
    classes.all(|class| class == Some(first)).then_some(first)
}

/// The threads that are placed: the ends of streams, or where no stream has both ends here all busy ones; and sentences on
/// those that are left out.
fn placed_threads(metrics: &TestMetrics) -> Result<(Inputs<'_>, Streams, Vec<String>), String> {
    if metrics.machine.facts.topology.online().is_empty() {
        return Err("the cores of this machine are not known (is /sys mounted?)".to_owned());
    }
    let (mut threads, mut left_out) = busy_threads(metrics)?;
    let both_ends = streams(metrics, &threads).ends();
    if !both_ends.is_empty() {
        let mut at = 0..;
        let (ends, others): (Vec<_>, Vec<_>) =
            threads.into_iter().partition(|_| at.next().is_some_and(|at| both_ends.contains(&at)));
        threads = ends;
        let tids: Vec<String> = others.iter().map(|busy| busy.thread.sample.id.tid.to_string()).collect();
        if !tids.is_empty() {
            let threads = plural(tids.len(), "busy thread");
            left_out.push(format!("{threads} without another end here, not pinned: {}", tids.join(", ")));
        }
    }
    let streams = streams(metrics, &threads);
    Ok((inputs(metrics, threads, &[]), streams, left_out))
}

/// The classes of two cores that a machine has.
fn classes_of(topology: &Topology) -> BTreeSet<PlacementClass> {
    let online: Vec<CoreId> = topology.online().iter().collect();
    let pairs = online.iter().enumerate().flat_map(|(nth, &one)| online[nth..].iter().map(move |&other| (one, other)));
    pairs.filter_map(|(one, other)| class_between(topology, one, other)).collect()
}

/// The rule's own placement of these threads; none where the rule proposes nothing for one of them.
fn rule(metrics: &TestMetrics, inputs: &Inputs<'_>) -> Option<Chosen> {
    let proposal = propose(metrics).ok()?;
    let core = |id: ThreadId| proposal.steps.iter().find(|step| step.thread == id).map(|step| step.core);
    inputs.threads.iter().map(|busy| Some(inputs.candidate(core(busy.thread.sample.id)?)?.index)).collect()
}

fn class_of_chosen(inputs: &Inputs<'_>, streams: &Streams, chosen: &[usize]) -> PlacementClass {
    let core = |at: usize| inputs.candidates[chosen[at]].core;
    let mut classes = streams.pairs.iter().map(|&(a, b)| class_between(inputs.topology, core(a), core(b)));
    match classes.next() {
        None => PlacementClass::OwnCores,
        Some(first) => first.filter(|_| classes.all(|class| class == first)).unwrap_or(PlacementClass::Proposal),
    }
}

/// The cores that a thread may be given, the freest first: like the rule, but for where the other threads are.
fn freest<'a>(inputs: &'a Inputs<'a>, nth: usize) -> Vec<&'a CandidateCore> {
    let busy = &inputs.threads[nth];
    let home = inputs.candidate(busy.thread.sample.core).and_then(|core| core.place.node);
    let mut cores: Vec<&CandidateCore> = inputs.allowed(nth).collect();
    cores.sort_by_key(|core| {
        let is_away = home.is_none() || home != core.place.node;
        let amiss = (core.busy_with_others, core.is_off_memory(busy), core.shortfall_for(busy));
        (amiss, core.from_nic as u32, core.housekeeping as u32, is_away, core.core)
    });
    cores
}

/// Every stream at this distance, no two streams on one physical core; none where there is no room.
fn at_distance(inputs: &Inputs<'_>, streams: &Streams, class: PlacementClass) -> Option<Chosen> {
    let mut taken = BTreeSet::new();
    let mut chosen = vec![usize::MAX; inputs.threads.len()];
    for &(sender, receiver) in &streams.pairs {
        let open = |core: &CandidateCore| !taken.contains(&core.physical);
        let (one, other) = pair(inputs, (sender, receiver), &open, class)?;
        taken.extend([one.physical, other.physical]);
        (chosen[sender], chosen[receiver]) = (one.index, other.index);
    }
    Some(chosen)
}

/// The freest two of the open cores for the ends of a stream at this distance; the sender chooses first, because the softirq work of
/// a virtual path is done on its core.
fn pair<'a>(
    inputs: &'a Inputs<'a>,
    (sender, receiver): (usize, usize),
    open: &dyn Fn(&CandidateCore) -> bool,
    class: PlacementClass,
) -> Option<(&'a CandidateCore, &'a CandidateCore)> {
    let [senders, receivers] =
        [sender, receiver].map(|nth| freest(inputs, nth).into_iter().filter(|core| open(core)).collect::<Vec<_>>());
    let is_apart = |one: &CandidateCore, other: &CandidateCore| {
        class_between(inputs.topology, one.core, other.core) == Some(class)
    };
    senders.iter().find_map(|one| {
        let other = receivers.iter().find(|other| is_apart(one, other))?;
        Some((*one, *other))
    })
}

/// A physical core for each thread; none where there are too few.
fn own_cores(inputs: &Inputs<'_>) -> Option<Chosen> {
    alone(inputs, &|_| true)
}

/// The freest physical core for each thread among those that are as asked.
fn alone(inputs: &Inputs<'_>, fits: &dyn Fn(&CandidateCore) -> bool) -> Option<Chosen> {
    let mut taken = BTreeSet::new();
    (0..inputs.threads.len())
        .map(|nth| {
            let free = freest(inputs, nth).into_iter().find(|core| !taken.contains(&core.physical) && fits(core))?;
            taken.insert(free.physical);
            Some(free.index)
        })
        .collect()
}

/// How far a core is from the one that handles interrupts: 0 is that core itself, or its SMT sibling.
fn distance(topology: &Topology, from: CoreId, to: CoreId) -> usize {
    let class = class_between(topology, from, to);
    let at = BY_DISTANCE.iter().position(|one| Some(*one) == class).unwrap_or(BY_DISTANCE.len() - 1);
    at.saturating_sub(1)
}

/// All threads beside the core that handles most interrupts of others, and all of them as far from it as there is room; none where
/// no core does, or where both would be equally far.
fn around_interrupts(inputs: &Inputs<'_>, streams: &Streams) -> Option<[Chosen; 2]> {
    let load = |core: CoreId| inputs.recent.core(core).map_or(0.0, |recent| recent.others_interrupts);
    let busiest = inputs.topology.online().iter().max_by(|&a, &b| load(a).total_cmp(&load(b)));
    let interrupted = busiest.filter(|&core| load(core) >= INTERRUPTED)?;
    let from = |core: &CandidateCore| distance(inputs.topology, interrupted, core.core);
    let levels = 1..BY_DISTANCE.len() - 1;
    let within = |fits: &dyn Fn(usize) -> bool| together(inputs, streams, &|core| fits(from(core)));
    let beside = levels.clone().find_map(|level| within(&|from| (1..=level).contains(&from)))?;
    let away = levels.rev().find_map(|level| within(&|from| from >= level))?;
    let farthest = inputs.cores(&beside).map(from).max()?;
    (inputs.cores(&away).map(from).min()? > farthest).then_some([beside, away])
}

/// The ends of each stream on two cores as near to each other as there is room among those that are as asked; threads without
/// another end on one each.
fn together(inputs: &Inputs<'_>, streams: &Streams, fits: &dyn Fn(&CandidateCore) -> bool) -> Option<Chosen> {
    if streams.pairs.is_empty() {
        return alone(inputs, fits);
    }
    let mut taken = BTreeSet::new();
    let mut chosen = vec![usize::MAX; inputs.threads.len()];
    for &ends in &streams.pairs {
        let open = |core: &CandidateCore| !taken.contains(&core.physical) && fits(core);
        let (one, other) = BY_DISTANCE[2..].iter().find_map(|class| pair(inputs, ends, &open, *class))?;
        taken.extend([one.physical, other.physical]);
        (chosen[ends.0], chosen[ends.1]) = (one.index, other.index);
    }
    Some(chosen)
}

#[cfg(test)]
mod tests;
