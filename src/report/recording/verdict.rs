//! What a report says first: of a pin whether it helped, else how steady it was, what held it back and how fast it was, then why.

use super::ReportedRecording;
use super::cause::cause;
use super::thread_names::ThreadNames;
use super::words::{count, for_so_long, known_percent, length};
use crate::derive::experiment::{CONFIDENCE, CardSide};
use crate::derive::finding::FindingId;
use crate::derive::run::{RunCard, Seen};
use crate::derive::summary::TreatedTime;
use crate::derive::timeline::IncidentKind;
use crate::derive::{Card, Finding, FindingParts, Limit, LimitKind, RecordingSummary, TestSummary};
use crate::report::card::pins;
use crate::report::figures::{percent, rate, scale, signed_digits};
use crate::report::run::best_placement;

/// Below this coefficient of variation a rate is steady, from that one on unsteady, as on the screen.
const STEADY: f64 = 0.05;
const SWINGS: f64 = 0.10;
/// What the line of the limit begins with.
const LIMIT: &str = "Limit: ";
/// A finding that was there for less than this share of a test is not what it was like.
const LONG: f64 = 0.25;

/// What came out of a test.
pub(super) struct Result<'a> {
    /// The verdict in a few words with its figures, without a point at its end.
    pub headline: String,
    /// The figures of both sides of a comparison.
    pub sentence: Option<String>,
    /// Why it was so, what held it back, and what to do about it: a sentence each.
    pub reasons: Vec<String>,
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
    let summary = recording.summary.as_ref()?;
    Some(of_test((main_test(summary)?, &ThreadNames::of(summary)), recording.run.as_ref()))
}

/// That of a test; `run` is the card of the command that it is of.
pub(super) fn of_test<'a>((test, names): (&'a TestSummary, &ThreadNames), run: Option<&'a RunCard>) -> Result<'a> {
    let compared = run.and_then(|run| run.comparison.as_ref()).map(|both| both.card.as_ref());
    let of_screen = || test.test.as_ref().and_then(|test| test.metrics.card.as_ref());
    let card = compared.unwrap_or_else(of_screen);
    let (reasons, sentence) = (reasons(test, names), None);
    if let Some(headline) = run.and_then(best_placement) {
        return Result { headline, sentence, reasons, card: None, is_mixed: true };
    }
    let treated = test.treated();
    let Some(card) = card else {
        let is_mixed = compared.is_some() || treated.is_some();
        let headline = treated.map_or_else(|| state_and_rate(test), |both| too_short(&both));
        return Result { headline, sentence, reasons, card, is_mixed };
    };
    let is_pin = compared.is_some() || test.incidents.iter().any(|done| done.kind == IncidentKind::Pin);
    let what = if is_pin { "Pinning" } else { "Steering" };
    let effect = card.effect().map(|effect| format!("{what} made {effect}:"));
    let effect = effect.unwrap_or_else(|| format!("{what}: inconclusive,"));
    Result {
        headline: format!("{effect} {} ({})", change(card), range(card)),
        sentence: Some(both_sides(card, is_pin)),
        reasons: with_fix(reasons, keep(test, card)),
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

/// Each with the time that it is of: `30 s before the pin: 26.0 Gbit/s (CV 49.6 %). 30 s after the pin: …`.
fn both_sides(card: &Card, is_pin: bool) -> String {
    let side = |of: &CardSide| format!("{} (CV {})", rate(of.jitter.mean), known_percent(of.jitter.cv));
    let [before, after] = side_names(card, is_pin);
    format!("{before}: {}. {after}: {}.", side(&card.before), side(&card.after))
}

/// What the two sides of a card are of: `30 s before the pin`, `30 s after the pin`; `50 s unpinned`, `50 s pinned`.
pub(super) fn side_names(card: &Card, is_pin: bool) -> [String; 2] {
    let [before, after] = [&card.before, &card.after].map(|side| length(side.jitter.window_s));
    match (card.pinned_at_ns, is_pin) {
        (Some(_), true) => [format!("{before} before the pin"), format!("{after} after the pin")],
        (Some(_), false) => [format!("{before} before the change"), format!("{after} after the change")],
        (None, _) => [format!("{before} unpinned"), format!("{after} pinned")],
    }
}

/// Both were there, and no card came of it.
fn too_short([unpinned, pinned]: &[TreatedTime; 2]) -> String {
    let side = |of: &TreatedTime| format!("{} in {}", rate(of.mean_bits_per_s), length(of.seconds));
    format!("{} unpinned, {} pinned: too short to say whether it helped", side(unpinned), side(pinned))
}

/// What keeps the threads where they are, where that was better.
fn keep(test: &TestSummary, card: &Card) -> Option<String> {
    let is_better = card.verdict.is_better();
    let metrics = &test.test.as_ref().filter(|_| is_better)?.metrics;
    let placed: Vec<String> =
        pins(&metrics.threads).iter().map(|(name, _, cores)| format!("{name} on core {cores}")).collect();
    (!placed.is_empty()).then(|| format!("Do: keep the pin: {}", placed.join(", ")))
}

/// What to do stands before the limit, as on the screen.
fn with_fix(mut reasons: Vec<String>, fix: Option<String>) -> Vec<String> {
    let at = reasons.iter().position(|reason| reason.starts_with(LIMIT)).unwrap_or(reasons.len());
    reasons.splice(at..at, fix);
    reasons
}

/// State and cause before the figures: `Unsteady, other programs fill core 0: 3.21 Gbit/s (CV 39.9 %)`, `As asked, but unsteady: 1.95
/// Gbit/s (asked for 2.00 Gbit/s; CV 63.0 %)`.
fn state_and_rate(test: &TestSummary) -> String {
    let lost = if test.lost > 0.0 { format!("; {} packets lost", count(test.lost)) } else { String::new() };
    let cause = cause(test, ran_s(test)).map_or_else(String::new, |cause| format!(", {cause}"));
    let Some(jitter) = &test.rate.jitter else {
        return match test.mean_bits_per_s {
            Some(mean) => format!("Too short for a spread{cause}: {}{lost}", rate(mean)),
            None => format!("Its rate is not known{lost}"),
        };
    };
    let asked = asked(test);
    let state = match (jitter.cv, asked.is_some()) {
        (Some(..STEADY), false) => "Steady",
        (Some(..STEADY), true) => "As asked and steady",
        (Some(..SWINGS), false) => "Fairly steady",
        (Some(..SWINGS), true) => "As asked and fairly steady",
        (Some(_), false) => "Unsteady",
        (Some(_), true) => "As asked, but unsteady",
        (None, false) => "Its spread is not known",
        (None, true) => "As asked",
    };
    let asked = asked.map(|asked| format!("asked for {}", rate(asked)));
    let spread = jitter.cv.map(|cv| format!("CV {}", percent(cv)));
    let beside: Vec<String> = asked.into_iter().chain(spread).collect();
    let beside = if beside.is_empty() { String::new() } else { format!(" ({})", beside.join("; ")) };
    format!("{state}{cause}: {}{beside}{lost}", rate(test.mean_bits_per_s.unwrap_or(jitter.mean)))
}

/// What its client was asked for, bits/s, where it carried that for most of its time.
fn asked(test: &TestSummary) -> Option<f64> {
    let longest = test.limits.first().filter(|seen| seen.seconds >= ran_s(test) / 2.0);
    longest.and_then(|seen| seen.limit.asked_bits_per_s())
}

/// What was wrong, why, what that cost, what to do, and what held it back, always in this order, which is the screen's, with how
/// long each was so.
fn reasons(test: &TestSummary, names: &ThreadNames) -> Vec<String> {
    let ran_s = ran_s(test);
    let is_asked = asked(test).is_some();
    // What was asked for may vary a little.
    let usual = if is_asked { SWINGS } else { STEADY };
    let varies = test.rate.jitter.and_then(|jitter| jitter.cv).is_none_or(|cv| cv >= usual);
    let first = main_finding(test).filter(|_| varies || test.lost > 0.0);
    let line = |label: &str, text: &str| (!text.is_empty()).then(|| format!("{label}: {}", names.sentence(text)));
    // The finding has the same losses, as of another moment.
    let is_said = first.is_some_and(|seen| seen.finding.id == FindingId::Loss);
    let words = |limit: &Limit| if is_said { limit.text_alone().to_owned() } else { limit.text.clone() };
    let limit = test.limits.first().filter(|seen| !(is_said && seen.limit.kind == LimitKind::Loss));
    let limit = limit.map(|seen| {
        let (sentence, lost) = limit_in_all(test, &seen.limit, &words(&seen.limit));
        let lost = lost.map_or_else(String::new, |lost| format!("{lost}; "));
        format!("{LIMIT}{} ({lost}{})", names.sentence(&sentence), for_so_long(seen.seconds, ran_s))
    });
    let Some(Seen { finding, seconds }) = first else { return limit.into_iter().collect() };
    let FindingParts { what, why, cost, fix, by_limit, .. } = &finding.parts;
    let for_long = |said: String| format!("{said} ({})", for_so_long(*seconds, ran_s));
    // Where the limit is why, the longest one tells it, with who waits: what the finding has is of the last core that was full.
    let by = || test.limits.iter().find(|seen| seen.limit.lacks_cpu());
    if let Some(by) = by().filter(|_| *by_limit) {
        let for_long = for_so_long(by.seconds, ran_s);
        let waits = by.limit.waits.as_deref().filter(|waits| !by.limit.text.contains(waits));
        let waits = waits.map_or_else(String::new, |waits| format!("; {waits}"));
        let whole = format!("{}{waits}", by.limit.text);
        let why = format!("Why: what limits it: {} ({for_long})", names.sentence(&whole));
        let limit = limit.filter(|_| !test.limits.first().is_some_and(|first| std::ptr::eq(first, by)));
        return [Some(why), line("Cost", cost), line("Do", fix), limit].into_iter().flatten().collect();
    }
    // What the finding counts is of one moment.
    let in_all = lost_in_all(test, what).filter(|_| is_said);
    let (what, cost) = in_all.as_deref().map_or((what.as_str(), cost.as_str()), |in_all| (in_all, ""));
    let mut all: Vec<String> = [line("What", what), line("Why", why)].into_iter().flatten().collect();
    let cost = line("Cost", cost);
    match all.last_mut() {
        Some(last) => *last = for_long(std::mem::take(last)),
        None => return cost.map(for_long).into_iter().chain(line("Do", fix)).chain(limit).collect(),
    }
    all.into_iter().chain(cost).chain(line("Do", fix)).chain(limit).collect()
}

/// `8,685 packets over the whole test`: beside a rate of its last moment; none where nothing was lost.
fn lost_over_all(test: &TestSummary) -> Option<String> {
    (test.lost > 0.0).then(|| format!("{} packets lost over the whole test", count(test.lost)))
}

/// A sentence that begins with what was lost in its last moment, with what that came to instead, where most was lost at that place:
/// `losses: 2.4 % of packets lost by link tap0` → `losses: 25,223 packets lost (4,204/s), most by link tap0`.
fn with_all_lost(test: &TestSummary, sentence: &str) -> Option<String> {
    let (head, rest) = sentence.split_once(" lost ")?;
    let is_amount = head.ends_with("packets") || head.ends_with("packets/s");
    let rest = rest.strip_prefix('(').and_then(|rest| Some(rest.split_once(") ")?.1)).unwrap_or(rest);
    let is_place = test.losses.first().is_some_and(|most| rest.contains(&most.words()));
    let label = if head.starts_with("losses: ") { "losses: " } else { "" };
    let per_s = test.lost / ran_s(test).max(1.0);
    (is_amount && is_place)
        .then(|| format!("{label}{} packets lost ({}/s), most {rest}", count(test.lost), count(per_s)))
}

/// A limit, and what it came to in all beside a rate that it has.
pub(super) fn limit_in_all(test: &TestSummary, limit: &Limit, sentence: &str) -> (String, Option<String>) {
    let says_so = !limit.lost.is_empty() && sentence.ends_with(&limit.lost);
    let has_rate = says_so || matches!(limit.kind, LimitKind::Loss | LimitKind::Qdisc);
    match with_all_lost(test, sentence).filter(|_| limit.kind == LimitKind::Loss) {
        Some(words) => (words, None),
        None => (sentence.to_owned(), lost_over_all(test).filter(|_| has_rate)),
    }
}

/// The same of a finding.
pub(super) fn finding_in_all(test: &TestSummary, finding: &Finding) -> (String, Option<String>) {
    let again = || test.retransmits.map(|again| format!("{} retransmits over the whole test", count(again)));
    match finding.id {
        FindingId::Loss => match with_all_lost(test, &finding.text) {
            Some(words) => (words, None),
            None => (finding.text.clone(), lost_over_all(test)),
        },
        FindingId::Retransmits => (finding.text.clone(), again()),
        _ => (finding.text.clone(), None),
    }
}

/// `8,685 packets lost (1,580/s), most by link nb0`: over the whole test; none where nothing was.
fn lost_in_all(test: &TestSummary, what: &str) -> Option<String> {
    let (_, place) = what.split_once(" lost ").filter(|_| test.lost > 0.0)?;
    // Shares are of that moment.
    let place = place.strip_prefix('(').and_then(|rest| Some(rest.split_once(") ")?.1)).unwrap_or(place);
    let place = place.split_once("; ").map_or(place, |(place, _)| place);
    let per_s = test.lost / ran_s(test).max(1.0);
    Some(format!("{} packets lost ({}/s), most {place}", count(test.lost), count(per_s)))
}

/// The most important finding of those that were there for long, else the most important one.
fn main_finding(test: &TestSummary) -> Option<&Seen> {
    let is_cause = |seen: &&Seen| !matches!(seen.finding.id, FindingId::Label | FindingId::Late | FindingId::Untraced);
    let long_s = ran_s(test) * LONG;
    let mut causes = test.findings.iter().filter(is_cause);
    let first = causes.clone().next();
    causes.find(|seen| seen.seconds >= long_s).or(first)
}
