//! What an experiment with the cores of packets tries: placements of the threads, each with the packets left alone and put onto
//! cores of the receivers, of the senders, or onto one that idles.

use super::classes::{ClassPlacements, by_class};
use super::steers::{cores_of_target, ends_then, request, unsteerable};
use super::{Step, class_of, propose};
use crate::TestMetrics;
use crate::first_backlog::{self, FirstBacklog};
use crate::spare_core::idle_beside;
use vnettop_sample::{
    CoreSet, PinMode, PlacedThread, PlacementClass, RunAsked, SteerMode, SteerTarget, ThreadId, TriedPlacement,
    TriedSteer,
};

/// The treatments of an experiment that steers packets, untouched first.
///
/// # Errors
/// A sentence why there is nothing to try: no place where packets could be steered, or no busy thread.
pub(super) fn treatments(metrics: &TestMetrics, asked: &RunAsked) -> Result<ClassPlacements, String> {
    let RunAsked { pin, steer, .. } = *asked;
    if steer == SteerMode::Never {
        return by_class(metrics);
    }
    let backlogs = first_backlog::all(metrics);
    let open: Vec<&FirstBacklog<'_>> = backlogs.iter().filter(|one| !one.is_steered()).collect();
    if open.is_empty() {
        return Err(format!("nothing was steered: {}", unsteerable(metrics)));
    }
    let ClassPlacements { placements, left_out } = pins(metrics, pin)?;
    let with = |one: &TriedPlacement| {
        let steered = variants(metrics, &open, one, steer).into_iter();
        let steered = steered.map(|steers| TriedPlacement { steers, is_rule: false, ..one.clone() });
        std::iter::once(one.clone()).chain(steered).collect::<Vec<_>>()
    };
    Ok(ClassPlacements { placements: placements.iter().flat_map(with).collect(), left_out })
}

/// Nothing is changed.
pub(super) fn untouched() -> TriedPlacement {
    TriedPlacement { class: PlacementClass::Unpinned, is_rule: false, threads: Vec::new(), steers: Vec::new() }
}

/// The placements of the threads alone.
fn pins(metrics: &TestMetrics, pin: PinMode) -> Result<ClassPlacements, String> {
    match pin {
        PinMode::Search => by_class(metrics),
        PinMode::Never | PinMode::Propose => {
            Ok(ClassPlacements { placements: vec![untouched()], left_out: Vec::new() })
        }
        PinMode::Compare => {
            let steps = propose(metrics)?.steps;
            let cores: Vec<(ThreadId, u32)> = steps.iter().map(|step| (step.thread, step.core)).collect();
            let class = class_of(metrics, &cores).unwrap_or(PlacementClass::Proposal);
            let placed = |step: &Step| PlacedThread { thread: step.thread, label: step.label.clone(), core: step.core };
            let threads = steps.iter().map(placed).collect();
            let pinned = TriedPlacement { class, is_rule: true, threads, steers: Vec::new() };
            Ok(ClassPlacements { placements: vec![untouched(), pinned], left_out: Vec::new() })
        }
    }
}

/// The sets of settings that are tried with a placement.
pub(super) fn variants(
    metrics: &TestMetrics,
    backlogs: &[&FirstBacklog<'_>],
    placement: &TriedPlacement,
    steer: SteerMode,
) -> Vec<Vec<TriedSteer>> {
    let placed: Vec<(ThreadId, u32)> = placement.threads.iter().map(|at| (at.thread, at.core)).collect();
    let ends: Vec<[CoreSet; 2]> = backlogs.iter().map(|one| ends_then(metrics, one, &placed)).collect();
    let of = |target: SteerTarget, whose: &str| -> Option<Vec<TriedSteer>> {
        let one = |(backlog, ends): (&&FirstBacklog<'_>, &[CoreSet; 2])| {
            let cores = cores_of_target(metrics, ends, target);
            let is_idle = idle_beside(metrics, [&ends[0], &ends[1]]).is_some();
            let whose = if target == SteerTarget::Idle && !is_idle { "the calmest" } else { whose };
            let plural = if cores.len() == 1 { "core" } else { "cores" };
            let whose = format!("{whose} {plural} {cores}");
            let request = request(backlog, cores.clone());
            let space = metrics.machine.space_entry(request.link.netns);
            (!cores.is_empty()).then_some(TriedSteer { request, whose, target, space })
        };
        let steers: Option<Vec<TriedSteer>> = backlogs.iter().zip(&ends).map(one).collect();
        steers.filter(|steers| !steers.is_empty())
    };
    let to_receivers = of(SteerTarget::Receiver, "the receiver's");
    let to_senders = of(SteerTarget::Sender, "the sender's");
    let to_idle = of(SteerTarget::Idle, "idle");
    let is_tcp = backlogs.iter().all(|one| one.is_tcp());
    let tried = match steer {
        SteerMode::Never => Vec::new(),
        // A TCP receiver gains by the order that its own core keeps, datagrams by a core that has time for them.
        SteerMode::Compare if is_tcp => vec![to_receivers.or(to_idle)],
        SteerMode::Compare => vec![to_idle.or(to_receivers)],
        SteerMode::Search => vec![to_receivers, to_senders, to_idle],
    };
    let mut found: Vec<Vec<TriedSteer>> = Vec::new();
    for steers in tried.into_iter().flatten() {
        // The same cores would be measured twice.
        let is_known = |one: &Vec<TriedSteer>| one.iter().map(|at| &at.request).eq(steers.iter().map(|at| &at.request));
        if !found.iter().any(is_known) {
            found.push(steers);
        }
    }
    found
}
