//! What a report says first: of a pin whether it helped, else how fast and how steady, then why.

use super::ReportedRecording;
use super::words::{count, known_percent};
use crate::derive::experiment::CONFIDENCE;
use crate::derive::finding::FindingId;
use crate::derive::run::RunCard;
use crate::derive::timeline::IncidentKind;
use crate::derive::{Card, RecordingSummary, TestSummary};
use crate::report::figures::{percent, rate, scale, signed_digits};
use crate::report::run::best_placement;

/// What came out of a test.
pub(super) struct Result<'a> {
    /// The verdict in a few words with its figures, without a point at its end.
    pub headline: String,
    /// The figures and reasons behind it.
    pub sentence: Option<String>,
    /// The comparison that it rests on; none where nothing was compared.
    pub card: Option<&'a Card>,
    /// Several treatments were measured, so that figures of the whole time are of none of them.
    pub is_mixed: bool,
}

/// The test that stands for a recording: that which carried most.
pub(super) fn main_test(summary: &RecordingSummary) -> Option<&TestSummary> {
    let carried = |test: &TestSummary| test.mean_bits_per_s.unwrap_or(0.0) * ran_s(test);
    summary.tests.iter().max_by(|one, other| carried(one).total_cmp(&carried(other)))
}

/// How long a test ran, seconds.
pub(super) fn ran_s(test: &TestSummary) -> f64 {
    test.to_ns.saturating_sub(test.from_ns) as f64 / 1e9
}

/// That of the test that stands for it; `None` where no test ran.
pub(super) fn of_recording(recording: &ReportedRecording) -> Option<Result<'_>> {
    let test = recording.summary.as_ref().and_then(main_test)?;
    Some(of_test(test, recording.run.as_ref()))
}

/// That of a test; `run` is the card of the command that it is of.
pub(super) fn of_test<'a>(test: &'a TestSummary, run: Option<&'a RunCard>) -> Result<'a> {
    let compared = run.and_then(|run| run.comparison.as_ref()).map(|both| both.card.as_ref());
    let of_screen = || test.test.as_ref().and_then(|test| test.metrics.card.as_ref());
    let card = compared.unwrap_or_else(of_screen);
    if let Some(best) = run.and_then(best_placement) {
        return Result { headline: best, sentence: why(test), card: None, is_mixed: true };
    }
    let Some(card) = card else {
        return Result {
            headline: rate_and_spread(test),
            sentence: why(test),
            card: None,
            is_mixed: compared.is_some(),
        };
    };
    let is_pin = compared.is_some() || test.incidents.iter().any(|done| done.kind == IncidentKind::Pin);
    let what = if is_pin { "Pinning" } else { "Steering" };
    let effect = card.effect().map(|effect| format!("{what} made {effect}:"));
    let effect = effect.unwrap_or_else(|| format!("{what}: inconclusive,"));
    Result {
        headline: format!("{effect} {} ({})", change(card), range(card)),
        sentence: Some(both_sides(card)),
        card: Some(card),
        is_mixed: true,
    }
}

/// How far the mean changed: `+8.85 Gbit/s`.
pub(super) fn change(card: &Card) -> String {
    let (bits, unit) = scale_of(card);
    format!("{} {unit}", signed_digits(card.mean.estimate / bits))
}

/// In which interval: `99 %: +0.71 to +19.5`, in the unit of the change.
pub(super) fn range(card: &Card) -> String {
    let (bits, _) = scale_of(card);
    let [from, to] = [card.mean.from, card.mean.to].map(|end| signed_digits(end / bits));
    format!("{:.0} %: {from} to {to}", CONFIDENCE * 100.0)
}

fn scale_of(card: &Card) -> (f64, &'static str) {
    scale(card.mean.from.abs().max(card.mean.to.abs()))
}

fn both_sides(card: &Card) -> String {
    let side = |of: &crate::derive::experiment::CardSide| {
        format!("{} (CV {})", rate(of.jitter.mean), known_percent(of.jitter.cv))
    };
    format!("Without it {}, with it {}.", side(&card.before), side(&card.after))
}

/// `31.5 Gbit/s, unsteady (CV 28.5 %)`.
fn rate_and_spread(test: &TestSummary) -> String {
    let lost = if test.lost > 0.0 { format!("; {} packets lost", count(test.lost)) } else { String::new() };
    let Some(jitter) = &test.rate.jitter else {
        return match test.mean_bits_per_s {
            Some(mean) => format!("{}, too short for a spread{lost}", rate(mean)),
            None => format!("Its rate is not known{lost}"),
        };
    };
    let mean = rate(test.mean_bits_per_s.unwrap_or(jitter.mean));
    let spread = jitter.cv.map_or_else(String::new, |cv| {
        let word = match cv {
            ..0.05 => "steady",
            ..0.10 => "uneven",
            _ => "unsteady",
        };
        format!(", {word} (CV {})", percent(cv))
    });
    format!("{mean}{spread}{lost}")
}

/// Why it was not steadier and not faster, as far as that was found.
fn why(test: &TestSummary) -> Option<String> {
    let is_of_spread =
        |seen: &&crate::derive::run::Seen| matches!(seen.finding.id, FindingId::Jitter | FindingId::JitterUnexplained);
    let jitter = test.findings.iter().find(is_of_spread);
    let spread = jitter.map(|seen| format!("{}.", seen.finding.text));
    let limit = test.limits.first().map(|seen| format!("Limit: {}.", seen.limit.text));
    let all: Vec<String> = spread.into_iter().chain(limit).collect();
    (!all.is_empty()).then(|| all.join(" "))
}
