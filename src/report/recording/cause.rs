//! The state of a test and its cause, as its verdict has them: how steady it was, and what held it back for most of its time, in a few
//! words.

use super::words::{is_udp, ran_s};
use crate::derive::summary::LimitSeen;
use crate::derive::{FindingId, Limit, LimitKind, TestSummary};
use crate::sample::CoreId;

/// Below this coefficient of variation a rate is steady, as on the screen.
pub(super) const STEADY: f64 = 0.05;
/// From this coefficient of variation on a rate is unsteady, as on the screen.
pub(super) const SWINGS: f64 = 0.10;
/// A limit that was there for less than this share of a test is not what it was like.
const MOST: f64 = 0.5;
/// A smaller part of the packets says nothing of the rate.
const LITTLE_LOST: f64 = 0.000_05;

/// How the state begins of a test whose threads lack CPU time that others have, as on the screen.
pub(super) const HELD_BACK: &str = "Held back";

/// `Unsteady, other programs fill core 0`.
pub(super) fn state_and_cause(test: &TestSummary) -> String {
    let is_known = test.rate.jitter.is_some() || test.mean_bits_per_s.is_some();
    let cause = shown_cause(test).map(str::to_owned).or_else(|| cause(test)).filter(|_| is_known);
    let cause = cause.map_or_else(String::new, |cause| format!(", {cause}"));
    format!("{}{cause}", state(test))
}

/// What was shown to make an unsteady rate so for most of the test, where its own work fills a core besides: *Why* says that.
fn shown_cause(test: &TestSummary) -> Option<&'static str> {
    let is_unsteady = test.rate.jitter.as_ref().and_then(|jitter| jitter.cv).is_some_and(|cv| cv >= SWINGS);
    let is_own = matches!(main_kind(test)?.0, LimitKind::OwnThread | LimitKind::OwnSoftirq | LimitKind::Nothing);
    let long = test.findings.iter().filter(|seen| seen.seconds >= MOST * ran_s(test));
    let mut words = long.filter_map(|seen| match seen.finding.id {
        FindingId::Reordered => Some("packets overtake each other"),
        FindingId::Jitter => Some("threads migrate"),
        _ => None,
    });
    words.next().filter(|_| is_unsteady && is_own)
}

/// `Unsteady`.
pub(super) fn state(test: &TestSummary) -> &'static str {
    let Some(jitter) = &test.rate.jitter else {
        return if test.mean_bits_per_s.is_some() { "Too short for a spread" } else { "Its rate is not known" };
    };
    let is_held = main_kind(test).is_some_and(|(kind, seconds)| {
        seconds >= MOST * ran_s(test) && of_kind(test, kind).any(|seen| seen.limit.lacks_cpu())
    });
    if is_held && asked(test).is_none() {
        let is_unsteady = jitter.cv.is_some_and(|cv| cv >= SWINGS);
        return if is_unsteady { "Held back and unsteady" } else { HELD_BACK };
    }
    match (jitter.cv, asked(test).is_some()) {
        (Some(..STEADY), false) => "Steady",
        (Some(..STEADY), true) => "As asked and steady",
        (Some(..SWINGS), false) => "Fairly steady",
        (Some(..SWINGS), true) => "As asked and fairly steady",
        (Some(_), false) => "Unsteady",
        (Some(_), true) => "As asked, but unsteady",
        (None, false) => "Its spread is not known",
        (None, true) => "As asked",
    }
}

/// What its client was asked for, bits/s, where it carried that for most of its time.
pub(super) fn asked(test: &TestSummary) -> Option<f64> {
    let longest = limits(test).next().filter(|seen| seen.seconds >= ran_s(test) / 2.0);
    longest.and_then(|seen| seen.limit.asked_bits_per_s())
}

/// The kind of limit that was there for most of the time, and for how long, s.
pub(super) fn main_kind(test: &TestSummary) -> Option<(LimitKind, f64)> {
    let seconds = |kind: LimitKind| of_kind(test, kind).map(|seen| seen.seconds).sum::<f64>();
    let kinds = limits(test).map(|seen| (seen.limit.kind, seconds(seen.limit.kind)));
    kinds.max_by(|one, other| one.1.total_cmp(&other.1))
}

fn of_kind(test: &TestSummary, kind: LimitKind) -> impl Iterator<Item = &LimitSeen> {
    limits(test).filter(move |seen| seen.limit.kind == kind)
}

/// What held it back, the longest first: a few packets of millions did not.
pub(super) fn limits(test: &TestSummary) -> impl Iterator<Item = &LimitSeen> {
    let is_little = test.lost_share.is_some_and(|share| share < LITTLE_LOST);
    test.limits.iter().filter(move |seen| !(is_little && seen.limit.kind == LimitKind::Loss))
}

/// The limit that the headline names, else the one that was there longest.
pub(super) fn main_limit(test: &TestSummary) -> Option<&LimitSeen> {
    let kind = main_kind(test).map(|(kind, _)| kind).filter(|_| cause(test).is_some());
    limits(test).find(|seen| Some(seen.limit.kind) == kind).or(limits(test).next())
}

/// `other programs fill core 0`; none where no kind of limit was there for most of the time, or nothing was saturated.
pub(super) fn cause(test: &TestSummary) -> Option<String> {
    let (kind, whole) = main_kind(test)?;
    let longest = of_kind(test, kind).max_by(|one, other| one.seconds.total_cmp(&other.seconds))?;
    // Of a test that was on several cores none stands for all.
    let core = longest.limit.core.filter(|_| longest.seconds >= MOST * whole);
    (whole >= MOST * ran_s(test) && whole > 0.0).then(|| words(test, &longest.limit, core)).flatten()
}

/// Where its packets are lost is not known, or whether they are.
fn is_unplaced(limit: &Limit) -> bool {
    limit.name.as_deref() == Some("unknown") && limit.numbers.iter().any(|(name, _)| *name == "share")
}

fn words(test: &TestSummary, limit: &Limit, core: Option<CoreId>) -> Option<String> {
    let which = core.map_or_else(|| "a core".to_owned(), |core| format!("core {core}"));
    let name = || limit.name.clone();
    Some(match limit.kind {
        LimitKind::OwnThread if limit.core.is_none() => "one thread fills a core".to_owned(),
        LimitKind::OwnThread => format!("its own threads fill {which}"),
        LimitKind::OwnSoftirq => format!("its packets' softirqs fill {which}"),
        LimitKind::Others => format!("other programs fill {which}"),
        LimitKind::Worker => "a thread between the ends lacks CPU time".to_owned(),
        LimitKind::Steal => format!("the hypervisor takes {which}"),
        LimitKind::Frequency => format!("{which} is full and its clock capped"),
        LimitKind::Quota => "its CPU quota is used up".to_owned(),
        LimitKind::Qdisc => {
            name().map_or_else(|| "a qdisc is full".to_owned(), |name| format!("the qdisc {name} is full"))
        }
        LimitKind::Loss if is_unplaced(limit) && is_udp(test) => "datagrams do not arrive".to_owned(),
        LimitKind::Loss if is_unplaced(limit) => "segments are sent again".to_owned(),
        LimitKind::Loss => "packets are lost".to_owned(),
        LimitKind::ReceiveWindow => "the receive window is full".to_owned(),
        LimitKind::SendBuffer => "the send buffer is full".to_owned(),
        LimitKind::CongestionWindow => "the congestion window is full".to_owned(),
        LimitKind::Pacing => "it is paced".to_owned(),
        LimitKind::Application if limit.meets_what_was_asked() => return None,
        LimitKind::Application => "its program sends no more".to_owned(),
        LimitKind::Claim => name().map_or_else(|| "a link is full".to_owned(), |name| format!("{name} is full")),
        LimitKind::Nothing => return None,
    })
}
