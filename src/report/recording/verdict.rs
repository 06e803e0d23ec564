//! What a report says first: of a pin whether it helped, else how steady it was, what held it back and how fast it was, then why.

use super::ReportedRecording;
use super::all_tests::{largest, leading, loses_much, which};
use super::cause::{HELD_BACK, STEADY, SWINGS, asked, cause, main_kind, main_limit, state, state_and_cause};
use super::lost::{LEAST, all_lost, limit_in_all, what_in_all};
use super::moment::{Momentary, beside};
use super::thread_names::{ReportedTest, ThreadNames};
use super::words::{for_so_long, is_udp, known_percent, length, ran_s, with_aside};
use crate::derive::experiment::{CONFIDENCE, CardSide};
use crate::derive::finding::FindingId;
use crate::derive::run::{RunCard, Seen};
use crate::derive::summary::{LimitSeen, TreatedTime};
use crate::derive::timeline::IncidentKind;
use crate::derive::{Card, Finding, FindingParts, LimitKind, RecordingSummary, TestSummary};
use crate::report::card::pins;
use crate::report::figures::{CommonUnit, percent, rate, scale, signed_digits};
use crate::report::run::best_placement;

/// What the line of the limit begins with.
const LIMIT: &str = "Limit: ";
/// What a cost says that nobody measured.
const UNMEASURED: &str = "not measured";
/// A finding that was there for less than this share of a test is not what it was like.
const LONG: f64 = 0.25;
/// So much of what did not arrive is what was lost at a known place.
const MOST_LOST: f64 = 0.5;

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
    /// It is of no measurement: seconds of it repeat, so that an interval over them says nothing.
    pub is_rebuilt: bool,
}

/// That of the test that leads its report; `None` where no test ran. Of several it says which one it is of.
pub(super) fn of_recording(recording: &ReportedRecording) -> Option<Result<'_>> {
    let summary = recording.summary.as_ref()?;
    let test = led(recording)?;
    let mut result = of_test((summary, test, &ThreadNames::of(summary)), recording.run.as_ref());
    if let Some(which) = which(summary, test).filter(|_| recording.run.is_none()) {
        result.headline = format!("{which}: {}", result.headline);
    }
    Some(result)
}

/// The test that leads its report: of a command, which has a card of its own, the largest.
pub(super) fn led(recording: &ReportedRecording) -> Option<&TestSummary> {
    let summary = recording.summary.as_ref()?;
    if recording.run.is_some() { largest(summary) } else { leading(summary) }
}

/// That of a test; `run` is the card of the command that it is of.
pub(super) fn of_test<'a>(
    (summary, test, names): (&RecordingSummary, &'a TestSummary, &ThreadNames),
    run: Option<&'a RunCard>,
) -> Result<'a> {
    let compared = run.and_then(|run| run.comparison.as_ref()).map(|both| both.card.as_ref());
    let of_screen = || test.test.as_ref().and_then(|test| test.metrics.card.as_ref());
    let card = compared.unwrap_or_else(of_screen);
    let (reasons, sentence) = (reasons((summary, test, names)), None);
    let is_rebuilt = summary.origin.is_some();
    if let Some(headline) = run.and_then(best_placement) {
        return Result { headline, sentence, reasons, card: None, is_mixed: true, is_rebuilt };
    }
    let treated = test.treated();
    let Some(card) = card else {
        let is_mixed = compared.is_some() || treated.is_some();
        let headline = treated.map_or_else(|| state_and_rate(test), |both| too_short(&both));
        return Result { headline, sentence, reasons, card, is_mixed, is_rebuilt };
    };
    let is_pin = compared.is_some() || test.incidents.iter().any(|done| done.kind == IncidentKind::Pin);
    let what = if is_pin { "Pinning" } else { "Steering" };
    let effect = card.effect().map(|effect| format!("{what} made {effect}:"));
    let effect = effect.unwrap_or_else(|| format!("{what}: inconclusive,"));
    let range = if is_rebuilt { String::new() } else { format!(" ({})", range(card)) };
    Result {
        headline: format!("{effect} {}{range}", change(card)),
        sentence: Some(both_sides(card, is_pin)),
        reasons: with_fix(reasons, keep(test, card)),
        card: Some(card),
        is_mixed: true,
        is_rebuilt,
    }
}

/// How far the mean changed: `+8.85 Gbit/s`.
pub(super) fn change(card: &Card) -> String {
    let (bits, unit) = scale_of(card);
    format!("{} {unit}", signed_digits(card.mean.estimate / bits))
}

/// In which interval: `99 % interval: +0.71 to +19.5`, in the unit of the change.
pub(super) fn range(card: &Card) -> String {
    let (bits, _) = scale_of(card);
    let [from, to] = [card.mean.from, card.mean.to].map(|end| signed_digits(end / bits));
    format!("{:.0} % interval: {from} to {to}", CONFIDENCE * 100.0)
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
/// Gbit/s (asked for 2.00 Gbit/s; CV 63.0 %)`; what is lost before both where it is much: `8.26 % of packets lost (64,118), steady: …`.
fn state_and_rate(test: &TestSummary) -> String {
    let lost = all_lost(test);
    let jitter = test.rate.jitter.as_ref();
    let datagrams = datagrams(test);
    let asked = test
        .asked_bits_per_s
        .or(asked(test))
        .filter(|_| jitter.is_some() && datagrams.is_none())
        .map(|asked| format!("asked for {}", rate(asked)));
    let none_lost = datagrams.is_some() && lost.is_none() && test.lost_share.is_some_and(|share| share < LEAST);
    let spread = jitter.and_then(|jitter| jitter.cv).map(|cv| format!("CV {}", percent(cv)));
    let none_lost = none_lost.then(|| "0 % lost".to_owned());
    let beside: Vec<String> = asked.into_iter().chain(none_lost).chain(spread).collect();
    let beside = if beside.is_empty() { String::new() } else { format!(" ({})", beside.join("; ")) };
    let mean = test.mean_bits_per_s.or(jitter.map(|jitter| jitter.mean));
    let mean = mean.map_or_else(String::new, |mean| format!(": {}{beside}", datagrams.unwrap_or_else(|| rate(mean))));
    match lost {
        Some(lost) if loses_much(test) => {
            let cause = cause(test).filter(|_| main_kind(test).is_none_or(|(kind, _)| kind != LimitKind::Loss));
            let cause = cause.map_or_else(String::new, |cause| format!(", {cause}"));
            // Beside what is lost, and why, that it is held back says nothing more.
            let state = Some(state(test)).filter(|state| !state.starts_with(HELD_BACK));
            let state = state.map_or_else(String::new, |state| format!(", {}", state.to_lowercase()));
            format!("{lost}{state}{cause}{mean}")
        }
        Some(lost) => format!("{}{mean}; {lost}", state_and_cause(test)),
        None => format!("{}{mean}", state_and_cause(test)),
    }
}

/// Of a UDP test what was asked for, what its sender sent and what arrived, in one unit: `asked for 900, sent 437, arrived 305 Mbit/s`; none of
/// another one, and where one rate alone is known.
fn datagrams(test: &TestSummary) -> Option<String> {
    let mean = test.mean_bits_per_s.filter(|_| is_udp(test))?;
    // Where the receiver is elsewhere, the rate is what was sent.
    let arrived = test.read_bits_per_s.map(|_| mean);
    let sent = test.sent_bits_per_s.or(arrived.is_none().then_some(mean));
    let all = [("asked for", test.asked_bits_per_s), ("sent", sent), ("arrived", arrived)];
    let known: Vec<(&str, f64)> = all.into_iter().filter_map(|(word, rate)| Some((word, rate?))).collect();
    let unit = CommonUnit::of_rates(&known.iter().map(|(_, rate)| *rate).collect::<Vec<f64>>());
    let words: Vec<String> = known.iter().map(|(word, rate)| format!("{word} {}", unit.digits(*rate))).collect();
    let unknown = if arrived.is_none() { ", arrived: not known here" } else { "" };
    (words.len() > 1).then(|| format!("{} {}{unknown}", words.join(", "), unit.name))
}

/// What was wrong, why, what that cost, what to do, and what held it back, always in this order, which is the screen's, with how
/// long each was so.
fn reasons((summary, test, names): ReportedTest<'_>) -> Vec<String> {
    let is_asked = asked(test).is_some();
    // What was asked for may vary a little.
    let usual = if is_asked { SWINGS } else { STEADY };
    let varies = test.rate.jitter.and_then(|jitter| jitter.cv).is_none_or(|cv| cv >= usual);
    let first = main_finding(test).filter(|_| varies || test.lost > 0.0);
    let loses = first.is_some_and(|seen| seen.finding.id == FindingId::Loss);
    // The finding has the same losses, as of another moment.
    let limit = main_limit(test).filter(|seen| !(loses && seen.limit.kind == LimitKind::Loss));
    let said = limit.map(|seen| limit_line((summary, test, names), seen));
    let Some(Seen { finding, seconds, at_ns }) = first else { return said.into_iter().collect() };
    let FindingParts { what, why, cost, fix, by_limit, .. } = &finding.parts;
    let line = |label: &str, text: &str| (!text.is_empty()).then(|| format!("{label}: {}", names.sentence(text)));
    // What the finding counts is of one moment, and so is what that costs.
    let in_all = what_in_all(test, what).filter(|_| loses);
    let for_long = |said: String| {
        let one = Momentary { said: &said, at_ns: *at_ns, id: Some(finding.id), numbers: &finding.numbers };
        let moment = beside((summary, test, names), one).filter(|_| in_all.is_none());
        with_aside(&said, [moment, for_so_long(*seconds, ran_s(test))])
    };
    let cost = if in_all.is_some() || cost == UNMEASURED { "" } else { cost.as_str() };
    let what = line("What", in_all.as_deref().unwrap_or(what));
    // Where the limit is why, the longest one tells it, with who waits: what the finding has is of the last core that was full.
    let by =
        limit.filter(|seen| seen.limit.lacks_cpu()).or_else(|| test.limits.iter().find(|seen| seen.limit.lacks_cpu()));
    let by = by.filter(|_| *by_limit && !is_another_cause(test));
    if let Some(by) = by {
        let said = said.filter(|_| !limit.is_some_and(|first| std::ptr::eq(first, by)));
        return [what, Some(why_of_limit((summary, test, names), by)), line("Cost", cost), line("Do", fix), said]
            .into_iter()
            .flatten()
            .collect();
    }
    let why = line("Why", why);
    // How long packets were lost is not how long they had this cause.
    let is_what = what.is_some() && (loses || why.is_none());
    let what = what.map(|what| if is_what { for_long(what) } else { what });
    let why = why.map(|why| if is_what { why } else { for_long(why) });
    let cost = line("Cost", cost).map(|cost| if what.is_none() && why.is_none() { for_long(cost) } else { cost });
    [what, why, cost, line("Do", fix), said].into_iter().flatten().collect()
}

/// `Limit: core 1 is 100 % busy: … (as at 0:24; for 24.5 s of 24.5 s)`.
fn limit_line((summary, test, names): ReportedTest<'_>, seen: &LimitSeen) -> String {
    let (sentence, lost) = limit_in_all(test, &seen.limit);
    let is_fixed = seen.limit.meets_what_was_asked() || sentence != seen.limit.text_alone();
    let sentence = names.sentence(&sentence);
    let one = Momentary { said: &sentence, at_ns: seen.at_ns, id: None, numbers: &seen.limit.numbers };
    let moment = beside((summary, test, names), one).filter(|_| !is_fixed);
    with_aside(&format!("{LIMIT}{sentence}"), [moment, lost, for_so_long(seen.seconds, ran_s(test))])
}

/// A full core as the reason, with who waits for it.
fn why_of_limit((summary, test, names): ReportedTest<'_>, by: &LimitSeen) -> String {
    let full = by.limit.text_alone();
    let waits = by.limit.waits.as_deref().filter(|waits| !full.contains(waits));
    let waits = waits.map_or_else(String::new, |waits| format!("; {waits}"));
    let whole = names.sentence(&format!("{full}{waits}"));
    let one = Momentary { said: &whole, at_ns: by.at_ns, id: None, numbers: &by.limit.numbers };
    let moment = beside((summary, test, names), one);
    with_aside(&format!("Why: {whole}"), [moment, for_so_long(by.seconds, ran_s(test))])
}

/// What held it back for most of its time is no lack of CPU time: one that was there for a while is not why.
fn is_another_cause(test: &TestSummary) -> bool {
    let lacks = |kind| test.limits.iter().any(|seen| seen.limit.kind == kind && seen.limit.lacks_cpu());
    cause(test).is_some() && main_kind(test).is_some_and(|(kind, _)| !lacks(kind))
}

/// The most important finding of those that were there for long, else the most important one. None that contradicts the cause that the
/// headline names.
pub(super) fn main_finding(test: &TestSummary) -> Option<&Seen> {
    let other = is_another_cause(test);
    let is_cause = |seen: &&Seen| {
        let Finding { id, parts, .. } = &seen.finding;
        // That threads migrate is no cause before it is shown to be one.
        let is_vague = is_unexplained(seen) || *id == FindingId::Moves;
        let is_contradicted = (is_vague && cause(test).is_some())
            || (other && parts.by_limit && *id != FindingId::Loss)
            || (*id == FindingId::Retransmits && cause(test).is_some())
            || is_of_others(test, seen);
        !matches!(id, FindingId::Label | FindingId::Late | FindingId::Untraced) && !is_contradicted
    };
    let long_s = ran_s(test) * LONG;
    let mut causes = test.findings.iter().filter(is_cause);
    // What was there for a moment is not why, where something else is.
    let is_why = |seen: &&Seen| cause(test).is_none() || seen.finding.id == FindingId::Loss;
    let first = causes.clone().next().filter(is_why);
    let main = causes.find(|seen| seen.seconds >= long_s).or(first)?;
    // What is less important than that no cause was found is none.
    let unexplained = test.findings.iter().find(|seen| is_unexplained(seen) && is_cause(seen));
    let is_less = main.finding.id as usize > FindingId::JitterUnexplained as usize;
    unexplained.filter(|_| is_less).or(Some(main))
}

/// It says that no cause is known.
fn is_unexplained(seen: &Seen) -> bool {
    seen.finding.id == FindingId::JitterUnexplained && seen.finding.parts.why.starts_with("No cause found")
}

/// What its namespaces sent again, which is no segment of its own.
fn is_of_others(test: &TestSummary, seen: &Seen) -> bool {
    seen.finding.id == FindingId::Retransmits && test.own_retransmits.is_some_and(|own| own < 1.0)
}

/// The findings that a report lists: that no cause was found goes where one is named.
pub(super) fn listed_findings(test: &TestSummary) -> impl Iterator<Item = &Seen> {
    let is_named = main_finding(test)
        .is_some_and(|seen| (seen.finding.id as usize) < FindingId::JitterUnexplained as usize)
        || cause(test).is_some()
        || test.findings.iter().any(|seen| seen.finding.id == FindingId::Jitter);
    // The figures of the test have its spread.
    let has_cause = cause(test).is_some();
    let is_reordered = test.findings.iter().any(|seen| seen.finding.id == FindingId::Reordered);
    let is_said = move |seen: &Seen| match seen.finding.id {
        FindingId::JitterUnexplained => has_cause || is_named && is_unexplained(seen),
        FindingId::NothingArrives => is_lost_elsewhere(test, seen),
        // Why it sends again is another finding.
        FindingId::Retransmits if is_reordered => true,
        _ => is_of_others(test, seen),
    };
    test.findings.iter().filter(move |seen| !is_said(seen))
}

/// Packets that a finding of losses has a place for: that nothing arrived is the same loss once more.
fn is_lost_elsewhere(test: &TestSummary, seen: &Seen) -> bool {
    let sent_per_s = seen.finding.numbers.iter().find(|(name, _)| *name == "sent_per_s").map(|(_, value)| *value);
    sent_per_s.is_some_and(|sent_per_s| test.lost > 0.0 && test.lost >= MOST_LOST * sent_per_s * seen.seconds)
}
