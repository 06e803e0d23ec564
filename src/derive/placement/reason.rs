//! The sentences of a proposal: why this core, why this circle, what was left out. Numbers with their units, no promise.

use super::place::Placement;
use super::seat::{Circle, Room, Seat};
use super::{RecentLoad, Step, Want, runner_up};
use crate::derive::moves::MoveClass;
use crate::derive::threads::ThreadMetrics;
use crate::sample::{CoreId, CoreSet, Topology};
use std::collections::BTreeSet;

/// Name and role of a thread, for people.
pub(super) fn label(thread: &ThreadMetrics) -> String {
    format!("{} {}", thread.sample.name, thread.sample.role())
}

pub(super) fn steps(room: &Room<'_>, seats: &[Seat], wants: &[Want<'_>], placement: &Placement) -> Vec<Step> {
    let step = |((nth, want), (as_good, runner_up)): ((usize, &Want<'_>), _)| {
        let seat = &seats[placement.seats[nth]];
        let partner = nth.checked_sub(1).map(|before| seats[placement.seats[before]].core);
        let mut parts = vec![whereabouts(room.topology, seat, partner)];
        parts.extend(beside_card(room, seat));
        parts.extend(strength(room.topology, seat));
        parts.push(load(room.recent, seat.core));
        parts.extend(company(placement, seats, seat));
        parts.extend(
            seat.is_off_memory(want)
                .then(|| "off the nodes its memory is on: none of those has a core for it".to_owned()),
        );
        parts.extend(want.sender.then(|| "sends: the softirq work of its path comes along".to_owned()));
        parts.extend(want.allowed.note.clone());
        Step {
            thread: want.thread.sample.id,
            label: label(want.thread),
            old: want.thread.sample.allowed.clone(),
            on: want.thread.sample.core,
            core: seat.core,
            reason: parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "),
            as_good,
            runner_up,
        }
    };
    wants.iter().enumerate().zip(runner_up::all(room, seats, wants, placement)).map(step).collect()
}

/// A word on the network card that the benchmark leaves by.
fn beside_card(room: &Room<'_>, seat: &Seat) -> Option<String> {
    let card = room.card?;
    let far = room.topology.nodes > 1 && seat.from_card == 2;
    match seat.from_card {
        _ if far => Some(format!("far from {} on node {}", card.name, card.node)),
        1 if room.topology.nodes > 1 => Some(format!("the node of {}", card.name)),
        0 => Some(format!("in the cluster of core {}, which {} interrupts", card.interrupted, card.name)),
        _ => None,
    }
}

/// Where the core sits, seen from the core of the thread before it.
fn whereabouts(topology: &Topology, seat: &Seat, partner: Option<CoreId>) -> String {
    let near = partner.filter(|&partner| partner != seat.core).and_then(|partner| {
        let same_node = topology.place(partner).and_then(|place| place.node) == seat.place.node;
        Some(match MoveClass::of(topology, partner, seat.core)? {
            MoveClass::Smt => format!("SMT sibling of core {partner}"),
            MoveClass::Cluster => format!("same cluster as core {partner}"),
            MoveClass::Llc => format!("same cache as core {partner}"),
            MoveClass::Node if same_node => format!("same node as core {partner}"),
            MoveClass::Node => format!("same socket as core {partner}"),
            MoveClass::Socket => format!("another socket than core {partner}"),
        })
    });
    let own = || seat.place.cluster.map(|cluster| format!("cluster {cluster}"));
    let node = seat.place.node.map(|node| format!("node {node}"));
    [near.or_else(own), node].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Which other threads of the proposal it must share its physical core with.
fn company(placement: &Placement, seats: &[Seat], seat: &Seat) -> Option<String> {
    let on = |at: &&usize| seats[**at].physical == seat.physical;
    let others = placement.seats.iter().filter(on).count() - 1;
    (others > 0).then(|| format!("shares its physical core with {} of these", count(others, "other thread")))
}

/// A word on capacity, where cores differ.
fn strength(topology: &Topology, seat: &Seat) -> Option<String> {
    let own = seat.place.capacity?;
    let capacities = || topology.cores.iter().filter_map(|place| place.capacity);
    (capacities().any(|capacity| capacity != own))
        .then(|| format!("capacity {own} of {}", capacities().max().unwrap_or(own)))
}

/// What others do on the core.
fn load(recent: &RecentLoad, core: CoreId) -> String {
    let Some(load) = recent.core(core) else { return "its load is not known".to_owned() };
    let interrupts = match percent(load.others_interrupts) {
        0 => "no interrupts".to_owned(),
        percent => format!("{percent} % interrupts"),
    };
    match percent(load.others) {
        0 => format!("no other work, {interrupts}"),
        percent => format!("{percent} % busy with other work, {interrupts}"),
    }
}

pub(super) fn percent(share: f64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..100 first")]
    let percent = (share.clamp(0.0, 1.0) * 100.0).round() as u32;
    percent
}

/// Bound to a busy core a thread waits for it, which the scheduler would have spared it.
pub(super) fn doubt(placement: &Placement) -> Option<String> {
    (placement.taken && !placement.shares).then(|| {
        "pinning will probably not help: other work keeps half or more of some of these cores busy, and there are no \
         freer ones"
            .to_owned()
    })
}

/// Sentences on the whole placement.
pub(super) fn on_the_whole(room: &Room<'_>, seats: &[Seat], wants: &[Want<'_>], placement: &Placement) -> Vec<String> {
    let mut reasons = vec![circle(room.topology, seats, wants, placement)];
    reasons.extend(card(room));
    reasons.extend(cpuset(room.topology, wants));
    if placement.shares {
        let physical: BTreeSet<_> = seats.iter().map(|seat| seat.physical).collect();
        let cores = count(physical.len(), "physical core");
        reasons.push(format!("{} for {cores} they may use: some share one", count(wants.len(), "busy thread")));
    }
    if let Some(seats) = placement.runner_up.as_ref().map(|chosen| cores(chosen, seats)) {
        let name = if seats.len() == 1 { "core" } else { "cores" };
        reasons.push(format!("next best: {name} {seats}"));
    }
    if room.recent.seconds() < 2.0 {
        reasons.push(format!("this rests on {:.1} s of load only", room.recent.seconds()));
    }
    reasons
}

/// Which card the benchmark leaves by, and where it is.
fn card(room: &Room<'_>) -> Option<String> {
    let card = room.card?;
    let interrupts = match card.interrupted.len() {
        0 => String::new(),
        1 => format!("; core {} takes interrupts there and is left to them", card.interrupted),
        _ => format!("; cores {} take interrupts there and are left to them", card.interrupted),
    };
    Some(format!("{} carries the traffic and is on node {}{interrupts}", card.name, card.node))
}

/// The cpuset that all of them share, where it is less than the machine.
fn cpuset(topology: &Topology, wants: &[Want<'_>]) -> Option<String> {
    let first = wants.first()?.thread.sample.cpuset.as_ref()?;
    let sample = |want: &'_ Want<'_>| (want.thread.sample.cpuset.clone(), want.thread.sample.memory_nodes.clone());
    let same = wants.iter().all(|want| sample(want) == sample(&wants[0]));
    let nodes = wants[0].thread.sample.memory_nodes.as_ref();
    let nodes =
        nodes.filter(|nodes| topology.cores.iter().filter_map(|place| place.node).any(|node| !nodes.contains(node)));
    let memory = nodes.map_or_else(String::new, |nodes| format!(", and memory of node {nodes}"));
    (same && !topology.online().is_subset(first)).then(|| format!("their cpuset allows cores {first} only{memory}"))
}

fn circle(topology: &Topology, seats: &[Seat], wants: &[Want<'_>], placement: &Placement) -> String {
    let places = placement.seats.iter().map(|&at| &seats[at].place);
    let innermost = [Circle::Cluster, Circle::Llc, Circle::Node, Circle::Socket].into_iter().find(|circle| {
        let mut keys = places.clone().map(|place| circle.of(place));
        let first = keys.next().flatten();
        first.is_some() && keys.all(|key| key == first)
    });
    let threads = count(wants.len(), "busy thread");
    let members = |circle: Circle| -> CoreSet {
        let key = circle.of(&seats[placement.seats[0]].place);
        topology.cores.iter().filter(|place| circle.of(place) == key).map(|place| place.core).collect()
    };
    let within = |name: &str, circle: Circle| format!("{threads} within one {name} (cores {})", members(circle));
    match innermost {
        _ if wants.len() == 1 => format!("{threads}: a core of its own"),
        Some(Circle::Cluster) => within("cluster", Circle::Cluster),
        Some(Circle::Llc) => within("last-level cache", Circle::Llc),
        Some(Circle::Node) => within("node", Circle::Node),
        Some(Circle::Socket) => format!("{}: no node has room for all", within("socket", Circle::Socket)),
        Some(Circle::Machine) | None if topology.cores.iter().all(|place| place.node.is_none()) => {
            format!("{threads} on cores {}: the machine tells no caches or nodes", cores(&placement.seats, seats))
        }
        Some(Circle::Machine) | None => {
            format!("{threads} on cores {}: no socket has room for all", cores(&placement.seats, seats))
        }
    }
}

fn cores(chosen: &[usize], seats: &[Seat]) -> CoreSet {
    chosen.iter().map(|&at| seats[at].core).collect()
}

/// The control threads, which carry no traffic.
pub(super) fn left_alone(control: &[u32]) -> Option<String> {
    let tids: Vec<String> = control.iter().map(ToString::to_string).collect();
    let threads = count(control.len(), "control thread");
    (!control.is_empty())
        .then(|| format!("{threads} left alone, idle, and workers born later inherit their masks: {}", tids.join(", ")))
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Why nothing is proposed where every busy thread is bound to the same core.
pub(super) fn only_core(core: CoreId, wants: &[Want<'_>], topology: &Topology) -> String {
    let widest = wants.iter().find_map(|want| want.thread.sample.cpuset.as_ref());
    let wider = widest.map(|cpuset| cpuset.intersection(&topology.online())).filter(|cores| cores.len() > 1);
    let pids: BTreeSet<u32> = wants.iter().map(|want| want.thread.sample.id.pid).collect();
    let mend = wider.map(|cores| {
        let line = |pid: &u32| format!("taskset -acp {cores} {pid}");
        let lines: Vec<String> = pids.iter().map(line).collect();
        format!("; their own masks say so, not their cpuset: {} widens them", lines.join("; "))
    });
    format!("only core {core} may run the busy threads: there is nothing to choose{}", mend.unwrap_or_default())
}

/// Why nothing is proposed where every busy thread sits well.
pub(super) fn nothing_to_gain(room: &Room<'_>, seats: &[Seat], wants: &[Want<'_>], settled: &[usize]) -> String {
    let one = |(want, &at): (&Want<'_>, &usize)| {
        let core = seats[at].core;
        format!("{} on core {core} ({})", want.thread.sample.id.tid, load(room.recent, core))
    };
    let on: Vec<String> = wants.iter().zip(settled).map(one).collect();
    let physicals: BTreeSet<usize> = settled.iter().map(|&at| seats[at].physical).collect();
    let how = match wants.len() {
        1 => "the busy thread is pinned to a core of its own",
        threads if threads > physicals.len() => "the busy threads share cores, and their masks allow nothing better",
        _ => "the busy threads are pinned to cores of their own",
    };
    format!("nothing to gain: {how}: {}", on.join(", "))
}
