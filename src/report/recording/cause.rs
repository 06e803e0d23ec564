//! The cause in the verdict of a test: what held it back for most of its time, in a few words.

use super::words::is_udp;
use crate::derive::{Limit, LimitKind, TestSummary};
use crate::sample::CoreId;

/// A limit that was there for less than this share of a test is not what it was like.
const MOST: f64 = 0.5;

/// `other programs fill core 0`; none where no kind of limit was there for most of the time, or nothing was saturated.
pub(super) fn cause(test: &TestSummary, ran_s: f64) -> Option<String> {
    let of_kind = |kind: LimitKind| test.limits.iter().filter(move |seen| seen.limit.kind == kind);
    let seconds = |kind: LimitKind| of_kind(kind).map(|seen| seen.seconds).sum::<f64>();
    let kinds = test.limits.iter().map(|seen| seen.limit.kind);
    let kind = kinds.max_by(|one, other| seconds(*one).total_cmp(&seconds(*other)))?;
    let whole = seconds(kind);
    let longest = of_kind(kind).max_by(|one, other| one.seconds.total_cmp(&other.seconds))?;
    // Of a test that was on several cores none stands for all.
    let core = longest.limit.core.filter(|_| longest.seconds >= MOST * whole);
    (whole >= MOST * ran_s && whole > 0.0).then(|| words(test, &longest.limit, core)).flatten()
}

/// Where its packets are lost is not known, or whether they are.
fn is_unplaced(limit: &Limit) -> bool {
    limit.name.as_deref() == Some("unknown") && limit.numbers.iter().any(|(name, _)| *name == "share")
}

fn words(test: &TestSummary, limit: &Limit, core: Option<CoreId>) -> Option<String> {
    let which = core.map_or_else(|| "a core".to_owned(), |core| format!("core {core}"));
    let name = || limit.name.clone();
    Some(match limit.kind {
        LimitKind::OwnThread if limit.core.is_none() => "one thread is busy nearly all the time".to_owned(),
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
