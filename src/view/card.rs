//! The card after a pin: before and after side by side, what differs and how surely, a verdict in words. While its windows
//! fill it says for how long still. It compares nothing itself.

use super::Tone;
use super::canvas::cells;
use super::format::{Count, Elapsed, Scale, Seconds, Share, UNKNOWN};
use super::lines::{Line, sentences};
use crate::derive::experiment::{
    CONFIDENCE, CardSide, Difference, LEAST_AFTER_NS, MOST_AFTER_NS, SETTLING_NS, Verdict, needed_ns,
};
use crate::derive::ledger::BIN_NS;
use crate::derive::{Card, Metrics};
use crate::state::{Mode, State, Units};

/// What is dropped after a pin until things have settled, and the least that is compared after it, s.
const SETTLING_S: f64 = SETTLING_NS as f64 / 1e9;
const LEAST_WINDOW_S: f64 = LEAST_AFTER_NS as f64 / 1e9;

/// Cells of the name of a figure, and of each side.
const NAME: usize = 9;
const SIDE: usize = 12;

/// The card, or why there is none yet.
pub(super) fn lines(state: &State, width: u16) -> Vec<Line> {
    let Some(metrics) = state.metrics() else { return sentences(Tone::Muted, "nothing is known yet", width) };
    match &metrics.subject.card {
        Some(card) => filled(card, final_in(state, metrics), width),
        None => empty(state, metrics, width),
    }
}

/// The pin that stands is one that the card found worse.
fn is_to_be_undone(state: &State) -> bool {
    let card = state.metrics().and_then(|metrics| metrics.subject.card.as_ref());
    let is_worse = card.is_some_and(|card| card.verdict == Verdict::Worse);
    is_worse && state.settings().mode != Mode::Replay && state.is_placed()
}

/// The title of the box.
pub(super) fn title(state: &State) -> &'static str {
    match (state.pins(), state.steers()) {
        (0, 1..) => "Before and after the steer",
        (_, 0) => "Before and after the pin",
        _ => "Before and after pin and steer",
    }
}

/// The keys that make sense beside the reason why nothing is proposed.
pub(super) fn foot_of_refusal(state: &State) -> &'static str {
    if is_to_be_undone(state) { "U undoes it · Esc closes" } else { "Esc closes" }
}

/// The keys that make sense beside this card.
pub(super) fn foot(state: &State) -> &'static str {
    match state.metrics().and_then(|metrics| metrics.subject.card.as_ref()) {
        Some(_) if is_to_be_undone(state) => "U undoes it · s saves · Esc closes",
        Some(_) => "s saves · Esc closes",
        None => "Esc closes",
    }
}

fn empty(state: &State, metrics: &Metrics, width: u16) -> Vec<Line> {
    let carded = metrics.tests.iter().find(|test| Some(test.number) != metrics.test && test.metrics.card.is_some());
    if let Some(test) = carded {
        let text =
            format!("no card of this test; test {} has one: {} shows it", test.number, state.keys().key("next_test"));
        return sentences(Tone::Normal, &text, width);
    }
    let Some(pinned_ns) = state.pinned_at_ns else {
        let key = state.keys().key("propose");
        let text = format!(
            "nothing pinned yet: {key} proposes cores; about 13 s after the pin this card compares the rate before and after it"
        );
        return sentences(Tone::Normal, &text, width);
    };
    let text = if let Some(left_s) = left_s(metrics, pinned_ns) {
        let (settling, window) = (Seconds(SETTLING_S), Seconds(LEAST_WINDOW_S));
        format!(
            "comparing: ready in {left_s:.0} s ({settling} to settle after the pin, then at least {window} of rates)"
        )
    } else {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some seconds at most")]
        let bin_ns = metrics.subject.jitter.map_or(BIN_NS, |jitter| (jitter.bin_s * 1e9) as u64);
        let [before, after] = needed_ns(bin_ns).map(|length| Seconds(length as f64 / 1e9));
        format!("too few rates: the benchmark must run {before} before the pin and {after} after it")
    };
    sentences(Tone::Normal, &text, width)
}

/// Whole seconds until there is a card; none where it should be there, or the test has ended.
fn left_s(metrics: &Metrics, pinned_ns: u64) -> Option<f64> {
    let since_s = metrics.machine.at_ns.saturating_sub(pinned_ns) as f64 / 1e9;
    let left_s = (SETTLING_S + LEAST_WINDOW_S - since_s).ceil();
    (left_s > 0.0 && metrics.ended_test().is_none()).then_some(left_s)
}

/// When there is a card of the pin that stands, in a few words.
pub(super) fn waiting(state: &State, metrics: &Metrics) -> String {
    let left_s = state.pinned_at_ns.and_then(|pinned_ns| left_s(metrics, pinned_ns));
    left_s.map_or_else(
        || "too few rates to compare with before".to_owned(),
        |left_s| format!("comparison ready in {left_s:.0} s"),
    )
}

/// For so many seconds more the window after the pin grows, so that the verdict may change.
pub(super) fn final_in(state: &State, metrics: &Metrics) -> Option<f64> {
    let until_ns = metrics
        .subject
        .card
        .as_ref()
        .and_then(|card| card.pinned_at_ns)
        .map(|at_ns| at_ns + SETTLING_NS + MOST_AFTER_NS);
    let left_ns = until_ns?.checked_sub(metrics.machine.at_ns).filter(|left_ns| *left_ns > 0)?;
    (state.is_placed() && metrics.ended_test().is_none()).then(|| (left_ns as f64 / 1e9).ceil())
}

fn filled(card: &Card, final_in: Option<f64>, width: u16) -> Vec<Line> {
    let Card { before, after, .. } = card;
    let scale = Scale::of(before.jitter.mean.max(after.jitter.mean), Units::Bits);
    let rate = |bits: f64| scale.number(bits);
    let cv = |side: &CardSide| side.jitter.cv.map_or_else(|| UNKNOWN.to_owned(), |cv| Share(cv).to_string());
    let moves = |side: &CardSide| Count(side.moves_per_s).to_string();
    let window = |side: &CardSide| Seconds(side.jitter.window_s).to_string();
    let change = format!("change ({:.0} % interval)", CONFIDENCE * 100.0);
    let mut lines = vec![row("", "before", "after", &change, Tone::Header)];
    let mean = scale.with_unit(before.jitter.mean);
    let plain = |name, before: &str, after: &str| row(name, before, after, "", Tone::Normal);
    lines.push(row("mean", &mean, &rate(after.jitter.mean), &difference(&card.mean, &rate), Tone::Normal));
    let points = |share: f64| {
        if share.abs() < 0.0995 { format!("{:.1}", share * 100.0) } else { format!("{:.0}", share * 100.0) }
    };
    let of_cv = card.cv.as_ref().map_or_else(String::new, |cv| format!("{} pp", difference(cv, &points)));
    lines.push(row("CV", &cv(before), &cv(after), &of_cv, Tone::Normal));
    lines.push(plain("p5", &rate(before.jitter.p5), &rate(after.jitter.p5)));
    lines.push(plain("migr/s", &moves(before), &moves(after)));
    for (name, one) in card.latency.iter().flat_map(|latency| [("p50 path", latency.p50), ("p99 path", latency.p99)]) {
        let time = |seconds: f64| Elapsed(seconds).to_string();
        let signed = |seconds: f64| {
            let sign = if seconds < 0.0 { "-" } else { "" };
            format!("{sign}{}", Elapsed(seconds.abs()))
        };
        let change = one.change.as_ref().map_or_else(String::new, |change| difference(change, &signed));
        lines.push(row(name, &time(one.before_s), &time(one.after_s), &change, Tone::Normal));
    }
    let dip = |side: &CardSide| Seconds(side.jitter.longest_dip_s).to_string();
    lines.push(plain("dip", &dip(before), &dip(after)));
    let others = |side: &CardSide| side.others.map_or_else(|| UNKNOWN.to_owned(), |cores| format!("{cores:.1} cores"));
    lines.push(row("others", &others(before), &others(after), "by other programs", Tone::Normal));
    let of_length = card.piece_ns.map_or_else(String::new, |length| format!(" × {}", Seconds(length as f64 / 1e9)));
    let pieces = format!("compared as {}{of_length}", card.pairs());
    lines.push(row("window", &window(before), &window(after), &pieces, Tone::Muted));
    lines.push(Line::new());
    let so_far = final_in.map_or_else(String::new, |left_s| format!(" (preliminary; final in {left_s:.0} s)"));
    lines.extend(sentences(verdict_tone(card.verdict, Tone::Normal), &format!("{}{so_far}", card.sentence()), width));
    if card.pinned_at_ns.is_some() {
        lines.extend(WEIGHT.iter().flat_map(|text| sentences(Tone::Muted, text, width)));
    }
    lines
}

/// The tone of a verdict; `open` where it says neither good nor bad.
pub(super) fn verdict_tone(verdict: Verdict, open: Tone) -> Tone {
    match verdict {
        Verdict::SteadierAndFaster | Verdict::Faster | Verdict::Steadier => Tone::Good,
        Verdict::NoDifference | Verdict::Inconclusive => open,
        Verdict::Worse => Tone::Bad,
    }
}

/// What a single pin can tell.
const WEIGHT: [&str; 2] = [
    "one period before, one after; load may have changed meanwhile",
    "alternating phases are more reliable: vnettop run --pin compare -- COMMAND",
];

/// `name      before      after       what differs`
fn row(name: &str, before: &str, after: &str, differs: &str, tone: Tone) -> Line {
    let pad = |text: &str, width: usize| format!("{text}{}", " ".repeat(width.saturating_sub(cells(text)).max(1)));
    let name_tone = if tone == Tone::Normal { Tone::Header } else { tone };
    vec![
        (name_tone, pad(name, NAME)),
        (tone, format!("{}{}", pad(before, SIDE), pad(after, SIDE - 3))),
        (if tone == Tone::Normal { Tone::Accent } else { tone }, differs.to_owned()),
    ]
}

/// `+10.8 (+9.10 to +12.4)`
fn difference(difference: &Difference, number: &impl Fn(f64) -> String) -> String {
    let signed = |value: f64| format!("{}{}", if value > 0.0 { "+" } else { "" }, number(value).replace('-', "−"));
    let Difference { estimate, from, to } = *difference;
    format!("{} ({} to {})", signed(estimate), signed(from), signed(to))
}
