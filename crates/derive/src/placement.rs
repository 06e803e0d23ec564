//! Which core each busy watched thread should have, and why. Pure: the topology, what the threads may do and the last
//! seconds' load go in, a proposal with its reasons comes out. It sets nothing and promises nothing about the rate.
//!
//! `criteria` is the one list by which cores are compared: `fill` makes a placement by it, `thread_reason` says which criterion
//! decided.

mod busy_threads;
mod by_load;
mod candidates;
mod classes;
mod criteria;
mod fill;
mod free_core;
mod network_card;
mod path_settings;
mod phrases;
mod proposal;
mod steers;
mod streams;
#[cfg(test)]
pub(crate) mod tests;
mod thread_reason;
mod treatments;
mod tuning;
mod whole_reasons;

pub use super::recent_load::{CoreRecent, RecentLoad};
pub use busy_threads::BUSY;
pub use classes::{ClassPlacements, by_class, class_of, propose_class};
pub use free_core::no_free_core;
pub(crate) use free_core::{program_on, programs_on};
pub use phrases::label;
pub use proposal::{CoreChange, Proposal, ProposedPin, ProposedSteer, RunnerUp, Step};
pub use steers::{at_receivers, unsteerable};
use steers::{measured_steers, steers, tuned_steers};
pub(crate) use steers::{request, shell_line};
pub use streams::test_kind;

use super::{TestMetrics, Worker, spare_core};
use busy_threads::{BusyThread, bound_to, busy_threads};
use candidates::{Inputs, inputs};
use criteria::coarse_score;
use fill::{Placement, placement};
use std::sync::Arc;
use vnettop_sample::{CoreId, CoreSet, FoundPlacement, RunAsked, ThreadId};

/// Proposes a core of its own for every busy watched thread.
///
/// # Errors
/// A sentence why nothing is proposed and what to do about it.
pub fn propose(metrics: &TestMetrics) -> Result<Proposal, String> {
    if metrics.machine.facts.topology.online().is_empty() {
        return Err("the cores of this machine are not known (is /sys mounted?): press a to choose".to_owned());
    }
    let (threads, left_out) = busy_threads(metrics)?;
    if let Some(core) = only_core(&threads) {
        return Err(whole_reasons::only_core(core, &threads, &metrics.machine.facts.topology));
    }
    let inputs = inputs(metrics, threads, &[]);
    let by_number = placement(&inputs);
    let placement = by_load::spread(&inputs, by_number.clone());
    let is_by_load = placement.chosen != by_number.chosen;
    if let Some(settled) = settled(&inputs)
        && (settled == placement.chosen
            || !is_by_load && coarse_score(&settled, &inputs) <= coarse_score(&placement.chosen, &inputs))
    {
        return Err(whole_reasons::nothing_to_gain(&inputs, &settled));
    }
    let mut proposal = proposal(&inputs, &placement);
    if is_by_load {
        // By number other cores would come next.
        proposal.steps.iter_mut().for_each(|step| (step.as_good, step.runner_up) = (CoreSet::new(), None));
        proposal.reasons.push(by_load::REASON.to_owned());
    }
    proposal.reasons.extend(left_out);
    Ok(proposal)
}

/// The test without the threads between its ends: a search places the ends.
#[must_use]
pub fn ends(metrics: &TestMetrics) -> TestMetrics {
    let mut recent = Arc::clone(&metrics.recent);
    if !metrics.workers.is_empty() {
        let is_end = |id: ThreadId| metrics.threads.iter().any(|thread| thread.sample.id == id);
        let others = metrics.workers.iter().map(Worker::id).filter(|&id| !is_end(id));
        Arc::make_mut(&mut recent).give_to_others(others);
    }
    TestMetrics { workers: Arc::default(), recent, ..metrics.clone() }
}

/// The settings of links that belong to proposed pins added to them; where no pin is proposed, those alone.
///
/// # Errors
/// Why no pin is proposed, where no packets overtake each other and no core idles beside one that is full with them either.
pub fn with_steers(metrics: &TestMetrics, pins: Result<Proposal, String>) -> Result<Proposal, String> {
    match pins {
        Ok(proposal) => Ok(Proposal { steers: steers(metrics, &proposal.steps), ..proposal }),
        // The threads are where they should be, or cannot be moved: the packets may be elsewhere all the same.
        Err(why) => steer(metrics).or_else(|| spare(metrics, &why)).ok_or(why),
    }
}

/// The same where a search has found whose core is best for the packets, or a setting of the links: each is on, for this reason. Where
/// nothing of that can be had now, the rule stands.
///
/// # Errors
/// Why no pin is proposed, where there is nothing to set either.
pub fn with_measured_steers(
    metrics: &TestMetrics,
    pins: Result<Proposal, String>,
    found: &FoundPlacement,
    reason: &str,
) -> Result<Proposal, String> {
    let steps = pins.as_ref().map_or(&[][..], |proposal| &proposal.steps);
    let of_cores = found.steered.map(|target| measured_steers(metrics, steps, (target, reason)));
    let of_links = found.tuned.as_ref().map(|tuned| tuned_steers(metrics, tuned, reason));
    let mut measured: Vec<ProposedSteer> = of_cores.into_iter().chain(of_links).flatten().collect();
    if measured.is_empty() {
        return with_steers(metrics, pins);
    }
    let by_rule = steers(metrics, steps).into_iter();
    let others: Vec<ProposedSteer> = by_rule.filter(|one| !measured.iter().any(|at| at.part() == one.part())).collect();
    measured.extend(others);
    Ok(Proposal { steers: measured, ..pins.unwrap_or_default() })
}

/// What a tuning has found best is how the links of the test's paths are set now, so that nothing is left of it to propose.
#[must_use]
pub fn is_tuned(metrics: &TestMetrics, found: &FoundPlacement) -> bool {
    found.tuned.as_ref().is_some_and(|(setting, value)| path_settings::is_so(metrics, *setting, value))
}

/// Proposes to steer the packets of a test that are seen to overtake each other, and to pin nothing; `None` where none are.
#[must_use]
pub fn steer(metrics: &TestMetrics) -> Option<Proposal> {
    let steers = steers(metrics, &[]);
    steers.iter().any(|steer| steer.is_on).then(|| Proposal { steers, ..Proposal::default() })
}

/// The treatments of an experiment that searches, untouched first.
///
/// # Errors
/// A sentence why there is nothing to try.
pub fn treatments(metrics: &TestMetrics, asked: &RunAsked) -> Result<ClassPlacements, String> {
    if asked.tune { tuning::tuning(metrics) } else { treatments::treatments(metrics, asked) }
}

/// The settings that would put packets onto a core that idles, all off, beside why no pin is proposed; `None` where no core is
/// full with them.
fn spare(metrics: &TestMetrics, why: &str) -> Option<Proposal> {
    spare_core::find(metrics)?;
    let steers = steers(metrics, &[]);
    (!steers.is_empty()).then(|| Proposal { steers, reasons: vec![why.to_owned()], ..Proposal::default() })
}

/// What a search has found for the present kind of test, the newest; none where there was no such search.
#[must_use]
pub fn found_for<'a>(metrics: &TestMetrics, found: &'a [FoundPlacement]) -> Option<&'a FoundPlacement> {
    let test = test_kind(metrics);
    found.iter().rev().find(|found| found.test == test)
}

/// Proposes a core for each of these threads alone, which have just been born: what is pinned stays, and its cores are
/// not given again.
///
/// # Errors
/// A sentence why nothing is proposed: their load is not known yet, or no physical core is left.
pub fn propose_for(metrics: &TestMetrics, new: &[ThreadId]) -> Result<Proposal, String> {
    let (mut threads, _) = busy_threads(metrics)?;
    threads.retain(|busy| new.contains(&busy.thread.sample.id));
    if threads.is_empty() {
        return Err("none of the new threads is busy".to_owned());
    }
    // Whosever they are: two pins share no core.
    let pinned = metrics.machine.threads.iter().filter(|thread| thread.pinned);
    let held: Vec<CoreId> = pinned.filter_map(bound_to).collect();
    let inputs = inputs(metrics, threads, &held);
    let placement = placement(&inputs);
    if placement.shares {
        let tids: Vec<String> = inputs.threads.iter().map(|busy| busy.thread.sample.id.tid.to_string()).collect();
        return Err(format!("no core is left for {}: press p to place all threads anew", tids.join(", ")));
    }
    Ok(proposal(&inputs, &placement))
}

fn proposal(inputs: &Inputs<'_>, placement: &Placement) -> Proposal {
    let steps = thread_reason::steps(inputs, placement);
    let cores = proposal::changes(&steps, inputs.topology, inputs.recent);
    let doubt = whole_reasons::doubt(placement);
    Proposal { steps, steers: Vec::new(), doubt, reasons: whole_reasons::reasons(inputs, placement), cores }
}

/// The cores that the threads have, if each thread is bound to one core already.
fn settled(inputs: &Inputs<'_>) -> Option<Vec<usize>> {
    inputs.threads.iter().map(|busy| Some(inputs.candidate(busy.bound_to?)?.index)).collect()
}

/// The one core that all threads must share.
fn only_core(threads: &[BusyThread<'_>]) -> Option<CoreId> {
    let cores = &threads.first()?.allowed.cores;
    (cores.len() == 1 && threads.iter().all(|busy| busy.allowed.cores == *cores)).then(|| cores.first())?
}
