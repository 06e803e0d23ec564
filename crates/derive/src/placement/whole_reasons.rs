//! The sentences on a whole placement: which domain and why, what the threads may use, why it will probably not help, or
//! why nothing is proposed.

use super::busy_threads::BusyThread;
use super::candidates::{CandidateCore, Inputs, TopologyLevel};
use super::fill::Placement;
use super::phrases::load;
use crate::plural;
use std::collections::BTreeSet;
use vnettop_sample::{CoreId, CoreSet, Topology};

/// Doubt about a placement: a chosen core is half used by others, and a pinned thread cannot leave it. On two cores beside a busy program
/// it cost 25 to 40 % of the rate.
pub(super) fn doubt(placement: &Placement) -> Option<String> {
    (placement.busy_with_others && !placement.shares)
        .then(|| "pinning may lower the rate: others use half or more of some of these cores".to_owned())
}

/// Sentences on the whole placement.
pub(super) fn reasons(inputs: &Inputs<'_>, placement: &Placement) -> Vec<String> {
    let mut reasons = vec![domain(inputs, placement)];
    reasons.extend(nic(inputs));
    reasons.extend(cpuset(inputs));
    if placement.shares {
        let physical: BTreeSet<_> = inputs.candidates.iter().map(|core| core.physical).collect();
        let (threads, cores) = (busy_threads(inputs), plural(physical.len(), "physical core"));
        reasons.push(format!("{threads} for {cores} they may use: some share one"));
    }
    if let Some(cores) = placement.runner_up.as_ref().map(|chosen| cores(chosen, inputs)) {
        let name = if cores.len() == 1 { "core" } else { "cores" };
        reasons.push(format!("next best: {name} {cores}"));
    }
    if inputs.recent.seconds < 2.0 {
        reasons.push(format!("based on only {:.1} s of load", inputs.recent.seconds));
    }
    reasons
}

/// The network card that the benchmark leaves by, and its node.
fn nic(inputs: &Inputs<'_>) -> Option<String> {
    let nic = inputs.nic.as_ref()?;
    let interrupts = match nic.interrupted.len() {
        0 => String::new(),
        1 => format!("; core {} takes interrupts there and is kept for them", nic.interrupted),
        _ => format!("; cores {} take interrupts there and are kept for them", nic.interrupted),
    };
    Some(format!("{} carries the traffic and is on node {}{interrupts}", nic.name, nic.node))
}

/// The cpuset that all threads share, where it is less than the machine.
fn cpuset(inputs: &Inputs<'_>) -> Option<String> {
    let topology = inputs.topology;
    let mut confines = inputs.threads.iter().map(|busy| (&busy.thread.sample.cpuset, &busy.thread.sample.memory_nodes));
    let (cpuset, nodes) = confines.next()?;
    let first = cpuset.as_ref()?;
    let same = confines.all(|other| other == (cpuset, nodes));
    let nodes = nodes.as_ref();
    let nodes =
        nodes.filter(|nodes| topology.cores.iter().filter_map(|place| place.node).any(|node| !nodes.contains(node)));
    let memory = nodes.map_or_else(String::new, |nodes| format!(", and memory of node {nodes}"));
    (same && !topology.online().is_subset(first)).then(|| format!("their cpuset allows cores {first} only{memory}"))
}

/// The innermost domain that holds all of the chosen cores.
fn domain(inputs: &Inputs<'_>, placement: &Placement) -> String {
    let topology = inputs.topology;
    let places = inputs.cores(&placement.chosen).map(|core| &core.place);
    let innermost = [TopologyLevel::Cluster, TopologyLevel::Llc, TopologyLevel::Node, TopologyLevel::Socket]
        .into_iter()
        .find(|level| {
            let mut keys = places.clone().map(|place| level.of(place));
            let first = keys.next().flatten();
            first.is_some() && keys.all(|key| key == first)
        });
    let threads = busy_threads(inputs);
    let members = |level: TopologyLevel| -> CoreSet {
        let key = level.of(&inputs.candidates[placement.chosen[0]].place);
        topology.cores.iter().filter(|place| level.of(place) == key).map(|place| place.core).collect()
    };
    let within = |name: &str, level: TopologyLevel| format!("{threads} within one {name} (cores {})", members(level));
    match innermost {
        _ if inputs.threads.len() == 1 => format!("{threads}: a core of its own"),
        Some(TopologyLevel::Cluster) => within("cluster", TopologyLevel::Cluster),
        Some(TopologyLevel::Llc) => within("last-level cache", TopologyLevel::Llc),
        Some(TopologyLevel::Node) => within("node", TopologyLevel::Node),
        Some(TopologyLevel::Socket) => format!("{}: no node has room for all", within("socket", TopologyLevel::Socket)),
        Some(TopologyLevel::Machine) | None if topology.cores.iter().all(|place| place.node.is_none()) => {
            format!("{threads} on cores {}: the machine reports no caches or nodes", cores(&placement.chosen, inputs))
        }
        Some(TopologyLevel::Machine) | None => {
            format!("{threads} on cores {}: no socket has room for all", cores(&placement.chosen, inputs))
        }
    }
}

fn cores(chosen: &[usize], inputs: &Inputs<'_>) -> CoreSet {
    inputs.cores(chosen).map(|core| core.core).collect()
}

fn busy_threads(inputs: &Inputs<'_>) -> String {
    plural(inputs.threads.len(), "busy thread")
}

/// Why nothing is proposed where every busy thread may use the same core only.
pub(super) fn only_core(core: CoreId, threads: &[BusyThread<'_>], topology: &Topology) -> String {
    let widest = threads.iter().find_map(|busy| busy.thread.sample.cpuset.as_ref());
    let wider = widest.map(|cpuset| cpuset.intersection(&topology.online())).filter(|cores| cores.len() > 1);
    let pids: BTreeSet<u32> = threads.iter().map(|busy| busy.thread.sample.id.pid).collect();
    let remedy = wider.map(|cores| {
        let line = |pid: &u32| format!("taskset -acp {cores} {pid}");
        let lines: Vec<String> = pids.iter().map(line).collect();
        format!("; set by their masks, not their cpuset: {} widens them", lines.join("; "))
    });
    format!("only core {core} may run the busy threads: there is nothing to choose{}", remedy.unwrap_or_default())
}

/// Why nothing is proposed where every busy thread has a good core already.
pub(super) fn nothing_to_gain(inputs: &Inputs<'_>, settled: &[usize]) -> String {
    let cores = inputs.cores(settled);
    let one = |(busy, core): (&BusyThread<'_>, &CandidateCore)| {
        format!("{} on core {} ({})", busy.thread.sample.id.tid, core.core, load(inputs.recent, core.core))
    };
    let on: Vec<String> = inputs.threads.iter().zip(cores.clone()).map(one).collect();
    let physicals: BTreeSet<usize> = cores.map(|core| core.physical).collect();
    let how = match inputs.threads.len() {
        1 => "the busy thread is pinned to a core of its own",
        threads if threads > physicals.len() => "the busy threads share cores, and their masks allow nothing better",
        _ => "the busy threads are pinned to cores of their own",
    };
    format!("nothing to gain: {how}: {}", on.join(", "))
}
