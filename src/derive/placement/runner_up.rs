//! For each thread of a placement the cores that would do as well, and the core that would have been next with the words
//! for what decided against it.

use super::candidates::{CandidateCore, Inputs};
use super::criteria::{CoreChoice, Rejection};
use super::improve::Placement;
use super::occupancy::Occupancy;
use super::proposal::RunnerUp;
use crate::derive::moves::MoveClass;
use crate::sample::CoreSet;

/// For every thread the cores that are as good as its own, and the best of those that are not.
pub(super) fn runners_up(inputs: &Inputs<'_>, placement: &Placement) -> Vec<(CoreSet, Option<RunnerUp>)> {
    let chosen = &placement.chosen;
    let mut occupancy = Occupancy::of(chosen, inputs);
    let mut runner_up = |(nth, &at): (usize, &usize)| {
        let own = &inputs.candidates[at];
        occupancy.remove(own);
        let choice = CoreChoice::of(nth, chosen, &occupancy, inputs);
        let others = inputs.allowed(nth).filter(|core| core.index != at);
        let (as_good, less): (Vec<&CandidateCore>, Vec<_>) =
            others.partition(|other| choice.decisive(own, other).is_none());
        let next = choice.best(less.into_iter()).and_then(|other| {
            let no = Rejection { inputs, chosen, nth, own, other, other_end: choice.other_end };
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
