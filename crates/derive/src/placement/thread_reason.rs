//! The reason of a placement, thread by thread: where the core is, how it does, what is amiss with it; the cores that would do
//! as well, and the core that would have been next with the words for what decided against it.

use super::busy_threads::BusyThread;
use super::candidates::{CandidateCore, Inputs, NicDistance, Occupancy};
use super::criteria::{CoreChoice, Rejection};
use super::fill::Placement;
use super::phrases::{label, load};
use super::proposal::{RunnerUp, Step};
use crate::moves::MoveClass;
use crate::plural;
use vnettop_sample::{CoreId, CoreSet, Topology};

/// One step for each thread, with its reason and its runner-up.
pub(super) fn steps(inputs: &Inputs<'_>, placement: &Placement) -> Vec<Step> {
    let cores = inputs.cores(&placement.chosen);
    let before = std::iter::once(None).chain(cores.clone().map(|core| Some(core.core)));
    let threads = inputs.threads.iter().zip(cores).zip(before).zip(runners_up(inputs, placement));
    let step = |(((busy, core), before), (as_good, runner_up)): (((&BusyThread<'_>, &CandidateCore), _), _)| Step {
        thread: busy.thread.sample.id,
        label: label(busy.thread),
        old: busy.thread.sample.allowed.clone(),
        on: busy.thread.sample.core,
        core: core.core,
        reason: reason(inputs, placement, busy, core, before),
        as_good,
        runner_up,
    };
    threads.map(step).collect()
}

/// Why this core, seen from the core of the thread before.
fn reason(
    inputs: &Inputs<'_>,
    placement: &Placement,
    busy: &BusyThread<'_>,
    core: &CandidateCore,
    before: Option<CoreId>,
) -> String {
    let parts = [
        Some(whereabouts(inputs.topology, core, before)),
        beside_nic(inputs, core),
        strength(inputs.topology, core),
        Some(load(inputs.recent, core.core)),
        sharing(inputs, placement, core),
        core.is_off_memory(busy).then(|| "not on the nodes of its memory: none of them has a core for it".to_owned()),
        busy.sender.then(|| "sender: its softirq work follows it to this core".to_owned()),
        busy.carries.clone(),
        busy.allowed.note.clone(),
    ];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Where the core sits, seen from the core of the thread before it.
fn whereabouts(topology: &Topology, core: &CandidateCore, before: Option<CoreId>) -> String {
    let near = before.filter(|&before| before != core.core).and_then(|before| {
        let same_node = topology.place(before).and_then(|place| place.node) == core.place.node;
        Some(match MoveClass::of(topology, before, core.core)? {
            MoveClass::Smt => format!("SMT sibling of core {before}"),
            MoveClass::Cluster => format!("same cluster as core {before}"),
            MoveClass::Llc => format!("same cache as core {before}"),
            MoveClass::Node if same_node => format!("same node as core {before}"),
            MoveClass::Node => format!("same socket as core {before}"),
            MoveClass::Socket => format!("a different socket from core {before}"),
        })
    });
    let own = || core.place.cluster.map(|cluster| format!("cluster {cluster}"));
    let node = core.place.node.map(|node| format!("node {node}"));
    [near.or_else(own), node].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A word on the network card that the benchmark leaves by.
fn beside_nic(inputs: &Inputs<'_>, core: &CandidateCore) -> Option<String> {
    let nic = inputs.nic.as_ref()?;
    let nodes = inputs.topology.nodes > 1;
    match core.from_nic {
        NicDistance::OtherNode if nodes => Some(format!("far from {} on node {}", nic.name, nic.node)),
        NicDistance::SameNode if nodes => Some(format!("the node of {}", nic.name)),
        NicDistance::SameCluster => {
            Some(format!("in the cluster of core {}, which {} interrupts", nic.interrupted, nic.name))
        }
        NicDistance::OtherNode | NicDistance::SameNode => None,
    }
}

/// A word on capacity, where cores differ.
fn strength(topology: &Topology, core: &CandidateCore) -> Option<String> {
    let own = core.place.capacity?;
    let capacities = || topology.cores.iter().filter_map(|place| place.capacity);
    (capacities().any(|capacity| capacity != own))
        .then(|| format!("capacity {own} of {}", capacities().max().unwrap_or(own)))
}

/// How many other threads of the proposal the thread must share its physical core with.
fn sharing(inputs: &Inputs<'_>, placement: &Placement, core: &CandidateCore) -> Option<String> {
    let others = inputs.cores(&placement.chosen).filter(|other| other.physical == core.physical).count() - 1;
    (others > 0).then(|| format!("shares its physical core with {} of these", plural(others, "other thread")))
}

/// For every thread the cores that are as good as its own, and the best of those that are not.
fn runners_up(inputs: &Inputs<'_>, placement: &Placement) -> Vec<(CoreSet, Option<RunnerUp>)> {
    let chosen = &placement.chosen;
    let mut occupancy = Occupancy::of(chosen, inputs);
    let mut runner_up = |(nth, &at): (usize, &usize)| {
        let own = &inputs.candidates[at];
        occupancy.remove(own);
        let choice = CoreChoice::of(nth, chosen, &occupancy, inputs);
        let others = inputs.allowed(nth).filter(|core| core.index != at);
        let (as_good, less): (Vec<&CandidateCore>, Vec<_>) = others.partition(|other| choice.are_alike(own, other));
        let next = choice.best(less.into_iter()).and_then(|other| {
            let no = Rejection { inputs, chosen, nth, own, other, choice: &choice };
            let why = (choice.decisive(own, other)?.against)(&no);
            let near = nearness(MoveClass::of(inputs.topology, own.core, other.core));
            Some(RunnerUp { core: other.core, why: format!("{near}{why}") })
        });
        let as_good = as_good.into_iter().map(|core| core.core).collect();
        occupancy.add(own);
        (as_good, next)
    };
    chosen.iter().enumerate().map(&mut runner_up).collect()
}

/// Where a core is, seen from the core that was chosen.
fn nearness(class: Option<MoveClass>) -> &'static str {
    match class {
        None => "",
        Some(MoveClass::Smt) => "its SMT sibling, but ",
        Some(MoveClass::Cluster) => "same cluster, but ",
        Some(MoveClass::Llc) => "same cache, but ",
        Some(MoveClass::Node) => "same socket, but ",
        Some(MoveClass::Socket) => "another socket, but ",
    }
}
