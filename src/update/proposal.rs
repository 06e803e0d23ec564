//! What `p` opens: first what a card has said of the pin that stands, then what a search has measured, then what the rule
//! proposes. What a measurement has contradicted is not proposed.

use crate::derive::Metrics;
use crate::derive::experiment::Verdict;
use crate::derive::placement::{
    Proposal, ends, found_for, is_tuned, no_free_core, propose, propose_class, steer, with_measured_steers, with_steers,
};
use crate::sample::{CoreSet, FoundPlacement, PlacementClass, Word};
use crate::state::{Mode, State};

/// Opens the box of a proposal, or of the reason why there is none.
pub(super) fn open(state: &mut State) {
    let at_ns = state.newest().map_or(0, |metrics| metrics.machine.at_ns);
    let is_insisted = state.told_no_free_core_ns.take().is_some_and(|told| at_ns.saturating_sub(told) <= INSIST_NS);
    let crowd = state.newest().and_then(|metrics| no_free_core(&metrics.subject)).filter(|_| !is_insisted);
    let result = match state.newest() {
        Some(metrics) => proposed(state, metrics, crowd.as_deref()),
        None => Err("nothing is known yet: wait for the first samples".to_owned()),
    };
    if crowd.is_some_and(|crowd| result.as_ref().is_err_and(|why| why.starts_with(&crowd))) {
        state.told_no_free_core_ns = Some(at_ns);
    }
    state.open_proposal(result);
}

/// Whoever asks again within this time after a refusal for want of a free core gets a proposal all the same, ns.
const INSIST_NS: u64 = 30_000_000_000;

/// The proposal; `crowd` says who keeps every core busy, where that is the case and nobody has insisted.
fn proposed(state: &State, metrics: &Metrics, crowd: Option<&str>) -> Result<Proposal, String> {
    if let Some(why) = undo_first(state, metrics) {
        // What the pins have cost may be the order of the packets, which one setting brings back.
        return steer(&metrics.subject).ok_or(why);
    }
    let measured = found_for(&metrics.subject, &state.found)
        .filter(|found| sets_something(found) && !is_tuned(&metrics.subject, found));
    let mut pins = found(state, metrics).unwrap_or_else(|| propose(&metrics.subject));
    if let (Ok(_), Some(crowd)) = (&pins, crowd) {
        let again = state.keys().key("propose");
        pins = Err(format!("{crowd}. Stop them first; {again} again proposes cores anyway"));
    }
    let proposal = match measured {
        Some(found) => {
            let what = if found.tuned.is_some() { "a setting" } else { "steered packets" };
            with_measured_steers(&metrics.subject, pins, found, &gain(found, what))
        }
        None => with_steers(&metrics.subject, pins),
    }?;
    let worse = state.worse.against(metrics, &proposal);
    worse.map_or(Ok(proposal), |why| {
        Err(format!(
            "not proposed again: for this test the same placement was worse ({why}); vnettop run --pin search -- COMMAND finds a better one"
        ))
    })
}

/// A pin stands that a card found worse: it is to be undone before anything else is proposed.
fn undo_first(state: &State, metrics: &Metrics) -> Option<String> {
    let card = metrics.subject.card.as_ref().filter(|card| card.verdict == Verdict::Worse)?;
    let is_pinned = metrics.subject.threads.iter().any(|thread| thread.pinned);
    let stands = is_pinned || !metrics.machine.steers.is_empty();
    (stands && state.settings().mode != Mode::Replay).then(|| {
        let [undo, propose] = ["undo", "propose"].map(|name| state.keys().key(name));
        format!("the pin made it worse ({}): {undo} undoes it; {propose} proposes again after that", card.why())
    })
}

/// The best placement that a search has found for this kind of test; `None` when there was no search, or that placement cannot
/// be had now.
fn found(state: &State, metrics: &Metrics) -> Option<Result<Proposal, String>> {
    let found = found_for(&metrics.subject, &state.found)?;
    let when = format!("vnettop run --pin search, {}", found.day);
    if found.class == PlacementClass::Unpinned && sets_something(found) {
        return Some(Err("measured: for this kind of test no pin was faster".to_owned()));
    }
    if found.class == PlacementClass::Unpinned {
        let why = "for this kind of test no pin was faster, and the rule's was slower";
        return Some(Err(format!("measured: {why} ({when})")));
    }
    let mut proposal = propose_class(&ends(&metrics.subject), found.class).ok()?;
    let class = found.class.word();
    let is_there = |step: &crate::derive::placement::Step| step.old == Some(CoreSet::single(step.core));
    if proposal.steps.iter().all(is_there) {
        return Some(Err(format!("nothing to gain: the busy threads are pinned as was best for this test: {class}")));
    }
    proposal.reasons.insert(0, gain(found, class));
    Some(Ok(proposal))
}

/// Something beside the pins was best.
fn sets_something(found: &FoundPlacement) -> bool {
    found.steered.is_some() || found.tuned.is_some()
}

/// `measured: same cluster, 12 % faster than untouched (…)`
fn gain(found: &FoundPlacement, what: &str) -> String {
    let percent = found.gain_ppm.map(|ppm| ppm as f64 / 1e4).filter(|percent| *percent > 0.0);
    let gain = percent.map_or_else(String::new, |percent| format!(", {percent:.0} % faster than unpinned"));
    let option = match found {
        FoundPlacement { tuned: Some(_), .. } => "--tune",
        FoundPlacement { steered: Some(_), .. } => "--steer or --tune",
        _ => "--pin search",
    };
    format!("measured: {what}{gain} (vnettop run {option}, {})", found.day)
}
