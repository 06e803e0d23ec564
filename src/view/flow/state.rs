//! How the rate of a test is, in a word.

use super::SWINGS;
use crate::derive::flow::DatagramTest;
use crate::derive::jitter::STEADY;
use crate::derive::{Conclusions, Finding, FindingId, Limit, Metrics, TestMetrics};
use crate::state::LOSING;
use crate::view::Tone;
use crate::view::format::Share;

/// As much as [`LOSING`], of TCP, which sends it again.
const MUCH: f64 = 0.01;
/// Losses by ends and by places that differ by less are one, told once.
const SAME_LOSS: f64 = 0.25;

/// The share that a finding which leads says is lost: TCP sends it again, so that its rate alone does not show it.
fn said_to_be_lost(finding: &Finding) -> Option<f64> {
    let number = |wanted: &str| finding.numbers.iter().find(|(name, _)| *name == wanted).map(|(_, share)| *share);
    number("all_share").or_else(|| number("share")).filter(|_| finding.id == FindingId::Loss)
}

/// How the rate is, in a word.
pub(in crate::view) fn state_word(metrics: &Metrics) -> (Tone, String) {
    if let Some(ended) = metrics.ended_test() {
        let lost = ended.last_findings.first().and_then(said_to_be_lost).filter(|lost| *lost >= MUCH);
        return lost.map_or_else(
            || (Tone::Title, "ENDED".to_owned()),
            |lost| (Tone::Warning, format!("ENDED, LOST {}", Share(lost))),
        );
    }
    state_of(&metrics.subject, &metrics.conclusions)
}

/// The same of a test that runs.
pub(in crate::view) fn state_of(test: &TestMetrics, conclusions: &Conclusions) -> (Tone, String) {
    let word = |tone, word: &str| (tone, word.to_owned());
    let is_first = |id| conclusions.findings.first().is_some_and(|finding| finding.id == id);
    if is_first(FindingId::NothingArrives) {
        return word(Tone::Bad, "STALLED");
    }
    let lost = test.flow.tests.iter().filter_map(DatagramTest::lost).fold(0.0, f64::max);
    let said = conclusions.findings.first().and_then(said_to_be_lost);
    // What both ends of the test tell, unless that is the figure below it of a few other seconds.
    let same = said.filter(|said| (said - lost).abs() <= SAME_LOSS * lost);
    if lost >= LOSING {
        return (Tone::Bad, format!("LOSING {}", Share(same.unwrap_or(lost))));
    }
    if let Some(lost) = said.filter(|lost| *lost >= MUCH) {
        return (Tone::Bad, format!("LOSING {}", Share(lost)));
    }
    let limit = conclusions.limit.as_ref();
    let meets = limit.is_some_and(Limit::meets_what_was_asked);
    let is_held =
        limit.is_some_and(Limit::lacks_cpu) && conclusions.findings.first().is_some_and(|one| one.parts.by_limit);
    match test.jitter.map(|jitter| jitter.cv) {
        // How steady it is says less than that it could be faster.
        Some(Some(cv)) if is_held && cv >= SWINGS => word(Tone::Warning, "HELD BACK, UNSTEADY"),
        Some(_) if is_held => word(Tone::Warning, "HELD BACK"),
        Some(_) if was_unsteady(test).is_some() => {
            word(Tone::Title, if meets { "AS ASKED, WAS UNSTEADY" } else { "WAS UNSTEADY" })
        }
        Some(_) if has_outliers(test) => {
            word(Tone::Title, if meets { "AS ASKED, WITH OUTLIERS" } else { "STEADY, WITH OUTLIERS" })
        }
        Some(Some(cv)) if meets && cv >= SWINGS => word(Tone::Warning, "AS ASKED, BUT UNSTEADY"),
        Some(_) if meets => word(Tone::Good, "AS ASKED"),
        None if test.flow.bits_per_s.is_none() => word(Tone::Muted, "RATE NOT KNOWN YET"),
        None => word(Tone::Muted, "MEASURING"),
        Some(Some(cv)) if cv >= SWINGS => word(Tone::Warning, "UNSTEADY"),
        Some(Some(cv)) if cv < STEADY => word(Tone::Good, "STEADY"),
        Some(_) => word(Tone::Title, "FAIRLY STEADY"),
    }
}

/// Nine of ten rates are close to each other, and a few far from them make the rest of the deviation.
pub(in crate::view) fn has_outliers(test: &TestMetrics) -> bool {
    test.jitter
        .is_some_and(|jitter| jitter.cv.is_some_and(|cv| cv >= SWINGS) && jitter.p95 - jitter.p5 < STEADY * jitter.mean)
}

/// For how many seconds it has been steady, where its spread is of a longer time in which it was not.
pub(in crate::view) fn was_unsteady(test: &TestMetrics) -> Option<f64> {
    let cv = test.jitter.and_then(|jitter| jitter.cv)?;
    test.steady_s.filter(|_| cv >= SWINGS)
}

#[cfg(test)]
mod tests {
    use super::super::tests::SPREAD;
    use super::*;
    use crate::derive::jitter::Jitter;
    use crate::derive::{FindingParts, LimitKind};

    #[test]
    fn a_few_outliers_make_no_test_unsteady() {
        let jitter = Jitter { mean: 1e9, cv: Some(0.2), p5: 0.99e9, p95: 1.01e9, ..SPREAD };
        let word = |p5| {
            state_of(
                &TestMetrics { jitter: Some(Jitter { p5, ..jitter }), ..TestMetrics::default() },
                &Conclusions::default(),
            )
            .1
        };
        assert_eq!([0.99e9, 0.5e9].map(word), ["STEADY, WITH OUTLIERS", "UNSTEADY"]);
    }

    #[test]
    fn a_test_that_others_hold_back_is_not_called_steady() {
        let test = |cv| TestMetrics { jitter: Some(Jitter { cv: Some(cv), ..SPREAD }), ..TestMetrics::default() };
        let conclusions = |kind, by_limit| {
            let limit = Limit {
                kind,
                text: String::new(),
                core: Some(1),
                name: None,
                pid: None,
                tid: None,
                key: None,
                numbers: Vec::new(),
                because: None,
                waits: None,
                lost: String::new(),
                loses: None,
            };
            let finding = Finding {
                id: FindingId::LacksCpu,
                text: String::new(),
                parts: FindingParts { by_limit, ..FindingParts::default() },
                numbers: Vec::new(),
                key: None,
            };
            Conclusions { limit: Some(limit), findings: vec![finding], ..Conclusions::default() }
        };
        let word = |cv, kind, by_limit| state_of(&test(cv), &conclusions(kind, by_limit)).1;
        assert_eq!(word(0.02, LimitKind::Others, true), "HELD BACK");
        assert_eq!(word(0.13, LimitKind::Others, true), "HELD BACK, UNSTEADY");
        assert_eq!(word(0.02, LimitKind::Others, false), "STEADY", "something else counts more");
        assert_eq!(word(0.02, LimitKind::OwnThread, true), "STEADY", "by nobody else");
    }
}
