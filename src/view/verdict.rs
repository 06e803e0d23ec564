//! What a test is like, in the first lines of its screen: rate, state, why, what that costs, what holds it back, what to press. It
//! is wrapped and never cut: with less room the graph is lower.

use super::canvas::{Area, Canvas, cells};
use super::format::{Count, Scale, Seconds, Share, speed};
use super::lines::Line;
use super::paragraphs::{LARGE_CELLS, Paragraphs, is_large, large_rate};
use super::text::plural;
use super::{Tone, advice, card, finding, flow};
use crate::action::{Action, Key};
use crate::derive::{Finding, FindingId, FindingParts, FlowBasis, Jitter, Limit, LimitKind, Metrics};
use crate::state::{State, Units};

/// The figures that are needed most: the mean's time, the rate now, p5 to p95.
const SPREAD: usize = 3;
/// How a figure begins that is the longest dip.
const DIP: &str = "longest dip";
/// A shorter dip is not worth a word in the first line, s.
const LEAST_DIP_S: f64 = 0.1;
/// A mean below this part of what was asked for is less than that: a first second of TCP alone is no lack.
const UNMET: f64 = 0.95;
/// So many times the mean has no room in its unit.
const FAR: f64 = 1000.0;
/// From so many cells on a line has room for them.
const ROOMY_WIDTH: usize = 70;

/// How much is said where there is little room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// Not what it costs.
    WithoutCost,
    /// Neither why it is as it is.
    LimitAlone,
}

/// Rows of a test's verdict at least, so that a word more or less moves nothing.
fn least_rows((width, height): (u16, u16)) -> u16 {
    match (is_large((width, height)), height) {
        (true, _) => 5,
        (_, 21..) => 4,
        _ => 3,
    }
}

/// Rows that it takes on a screen of this size.
pub(super) fn wanted_rows(state: &State, (width, height): (u16, u16)) -> u16 {
    let beside = if is_large((width, height)) { LARGE_CELLS } else { 0 };
    let lines = lines(state, width - 4 - beside, (beside > 0, Extent::Whole)).len();
    u16::try_from(lines).unwrap_or(u16::MAX).max(least_rows((width, height)))
}

/// The lines of it, in an area that is high enough.
pub(super) fn prepare(state: &State, area: Area, screen: (u16, u16)) -> Canvas {
    let mut canvas = Canvas::new(area);
    let is_large = is_large(screen);
    let x = if is_large { LARGE_CELLS } else { 0 };
    let rate = |metrics| Some((rate(metrics)?, if is_mean(metrics) { "mean" } else { "now" }));
    if let Some(rate) = state.metrics().filter(|_| is_large).and_then(rate) {
        large_rate(&mut canvas, rate, state.settings().utf8);
    }
    let mut all = lines(state, area.width - x, (is_large, Extent::Whole));
    // On the smallest screens: what holds it back and what a pin has brought go before what else there is to say.
    for extent in [Extent::WithoutCost, Extent::LimitAlone] {
        if all.len() > usize::from(area.height) {
            all = lines(state, area.width - x, (is_large, extent));
        }
    }
    for (y, line) in (0..area.height).zip(all) {
        let mut at = x;
        for (tone, text) in line {
            let used = canvas.left(at, y, area.width - at, tone, &text);
            if tone == Tone::Key {
                canvas.spot(at, y, used, key_action(state, &text));
            }
            at += used;
        }
    }
    canvas
}

/// What a click on a key in brackets does.
fn key_action(state: &State, text: &str) -> Action {
    let key = text.chars().find(|c| !matches!(c, '[' | ' '));
    let action = key.and_then(|key| state.keys().action_for(Key::Char(key), state.context()));
    action.unwrap_or(Action::Findings)
}

/// The mean rate of the spread's window, else the rate now; of a test that has stopped its own mean. Figure, unit, tone.
fn rate(metrics: &Metrics) -> Option<(String, &'static str, Tone)> {
    let of = |bits: f64, tone| {
        let scale = Scale::of(bits, Units::Bits);
        (scale.number(bits), scale.unit, tone)
    };
    if let Some(ended) = metrics.ended_test() {
        return ended.mean.map(|mean| of(mean.bits_per_s, Tone::Title));
    }
    let now = metrics.subject.rate_now();
    if let Some(bits) = now.filter(|_| is_past(metrics)) {
        return Some(of(bits, Tone::Title));
    }
    // The rate has the colour of its word: lost packets are no good rate, however steady.
    let tone = |cv| match flow::state_word(metrics).0 {
        tone @ (Tone::Bad | Tone::Warning) => tone,
        _ if flow::was_unsteady(&metrics.subject).is_some() => Tone::Title,
        _ => flow::tone(cv),
    };
    let jitter = metrics.subject.jitter.map(|jitter| of(jitter.mean, tone(jitter.cv)));
    jitter.or_else(|| metrics.subject.flow.bits_per_s.map(|bits| of(bits, Tone::Title)))
}

/// Everything but a large rate, for lines of this width.
fn lines(state: &State, width: u16, (is_large, extent): (bool, Extent)) -> Vec<Line> {
    let Some(metrics) = state.metrics() else { return Vec::new() };
    let says_cause = extent != Extent::LimitAlone;
    let mut all = Paragraphs { lines: first_line(state, metrics, (width, is_large)), width };
    if let Some((tone, text)) = compared(state, metrics) {
        all.add("PIN", tone, &text);
    }
    if metrics.ended_test().is_some() {
        if says_cause {
            of_ended(&mut all, state, metrics);
        }
        return all.lines;
    }
    // What was asked for is met: LIMIT leads, and why the rate is unsteady all the same stands below it.
    let leads = metrics.conclusions.limit_leads;
    let is_unsteady = metrics.subject.jitter.and_then(|jitter| jitter.cv).is_some_and(|cv| cv >= flow::SWINGS);
    let first = told(state, metrics).filter(|_| says_cause && (!leads || is_unsteady));
    let limit = metrics.conclusions.limit.as_ref();
    let by_limit = first.is_some_and(|finding| finding.parts.by_limit);
    // What explains no trouble is worth knowing all the same: behind what would hold the test back.
    let is_trouble = advice::is_trouble(metrics);
    let leads = leads || (first.is_some() && !is_trouble && !by_limit);
    let add_limit = |all: &mut Paragraphs| {
        let is_said = first.is_some_and(|finding| finding.id == FindingId::Loss);
        // The same loss, of other seconds: two figures for one thing.
        let limit = limit.filter(|limit| !(is_said && limit.kind == LimitKind::Loss));
        let text = |limit: &Limit| {
            let text = if is_said { limit.text_alone() } else { &limit.text };
            // The cause is of a longer time.
            let when = if first.is_some_and(|first| is_of_migrations(first.id)) { "now: " } else { "" };
            format!("{when}{text}")
        };
        // Beside a cause it is what would hold the test back next.
        let tone = if first.is_some() && !leads { Tone::Muted } else { Tone::Normal };
        all.add("LIMIT", tone, &limit.map(text).unwrap_or_default());
    };
    if leads {
        add_limit(&mut all);
    }
    let sign = super::plus_minus(state);
    if let Some(FindingParts { what, why, cost, fix, .. }) = first.map(|finding| &finding.parts) {
        all.add("WHAT", Tone::Normal, &what.replace('±', sign));
        let limit = limit.filter(|_| by_limit).map_or("", |limit| limit.text_alone());
        let why = because(&why.replace('±', sign), limit);
        // Its figures are of the time of the mean.
        let over_s = metrics.subject.jitter.filter(|_| steady_since(metrics).is_some() && !why.is_empty());
        let why = over_s.map_or_else(String::new, |one| format!("in these {}: ", Seconds(one.window_s))) + &why;
        all.add(if is_trouble { "WHY" } else { "NOTE" }, Tone::Normal, &why);
        // Of what explains no trouble the list has cost and remedy.
        let [cost, fix] = [cost, fix].map(|text| if is_trouble { text.as_str() } else { "" });
        let cost = if extent == Extent::Whole { cost } else { "" };
        all.add("COST", Tone::Normal, &cost.replace('±', sign));
        advice::add(&mut all, (state, metrics), fix, says_cause);
    } else {
        advice::add(&mut all, (state, metrics), "", says_cause);
        if says_cause && !leads && !state.is_placed() {
            all.add("", Tone::Normal, &finding::aside(state).unwrap_or_default());
        }
    }
    if !leads && !by_limit {
        add_limit(&mut all);
    }
    all.lines
}

const fn is_of_migrations(id: FindingId) -> bool {
    matches!(id, FindingId::Jitter | FindingId::JitterUnexplained | FindingId::Moves)
}

/// `iperf3 server waits 44 % of the time for core 1, which is 100 % busy …`: two clauses, where they are about one core as one.
fn because(why: &str, limit: &str) -> String {
    let core =
        limit.split_once(" is ").map(|(core, _)| core).filter(|core| core.starts_with("core ") && why.ends_with(core));
    match core {
        Some(core) => format!("{why}, which{}", &limit[core.len()..]),
        None if why.is_empty() || limit.is_empty() => format!("{why}{limit}"),
        None => format!("{why}; {limit}"),
    }
}

/// The finding that explains how the test is; after a pin none of those that only keep from being misled.
fn told<'a>(state: &State, metrics: &'a Metrics) -> Option<&'a Finding> {
    let first = metrics.conclusions.findings.first()?;
    let misleads = matches!(
        first.id,
        FindingId::Label | FindingId::Governor | FindingId::Irqbalance | FindingId::Late | FindingId::Untraced
    );
    (!misleads || !state.is_placed()).then_some(first)
}

/// What was found of a test that has stopped.
fn of_ended(all: &mut Paragraphs, state: &State, metrics: &Metrics) {
    let first = metrics.ended_test().and_then(|test| test.last_findings.first());
    let Some(FindingParts { what, why, cost, fix, .. }) = first.map(|finding| &finding.parts) else {
        return all.add("", Tone::Normal, &finding::aside(state).unwrap_or_default());
    };
    let sign = super::plus_minus(state);
    let mut before = "before it stopped: ";
    for (label, text) in [("WHAT", what), ("WHY", why), ("COST", cost)] {
        if !text.is_empty() {
            all.add(label, Tone::Normal, &format!("{before}{}", text.replace('±', sign)));
            before = "";
        }
    }
    if !fix.is_empty() {
        all.add("DO", Tone::Normal, &format!("{fix}{}", advice::more(state).unwrap_or_default()));
    }
}

/// `30.4 Gbit/s  UNSTEADY  5.69 to 35.7 · CV 34 %      [p] pin to cores 4, 6`; on two lines where it is too long for one.
fn first_line(state: &State, metrics: &Metrics, (width, is_large): (u16, bool)) -> Vec<Line> {
    let mut line: Line = Vec::new();
    if let Some((figure, unit, tone)) = rate(metrics).filter(|_| !is_large) {
        line.push((tone, format!("{figure} {unit}")));
        line.push((Tone::Title, flow::beside(metrics).unwrap_or_default()));
        let when = if is_past(metrics) { " now  " } else { "  " };
        line.push((Tone::Normal, when.to_owned()));
    } else if is_large && let Some(beside) = flow::beside(metrics) {
        line.push((Tone::Title, format!("{}  ", beside.trim_start())));
    }
    let (tone, mut word) = flow::state_word(metrics);
    // The figures behind it are of a longer time than the graph's last part, which is seen to be steady.
    if let Some((steady_s, rest)) = steady_since(metrics).zip(word.strip_suffix("WAS UNSTEADY")) {
        word = format!("{rest}STEADY FOR {}, UNSTEADY BEFORE", Seconds(steady_s.floor()));
    }
    line.push((tone, word));
    line.push((Tone::Normal, "  ".to_owned()));
    let used = |line: &Line| line.iter().map(|(_, text)| cells(text)).sum::<usize>();
    // What to do about a test stands in a line of its own; what to do about a pin, here.
    let press = if state.is_placed() { advice::press(state, metrics) } else { Line::new() };
    let keys = used(&press) + usize::from(!press.is_empty()) * 2;
    let width = usize::from(width);
    let mut below = Vec::new();
    let mut figures = figures(metrics);
    // The spread is worth more than to have the key beside it, where there are rows.
    let spread: usize = figures.iter().take(SPREAD).map(|text| cells(text) + 3).sum();
    let least = if width >= ROOMY_WIDTH && !state.is_placed() { spread.saturating_sub(3) } else { 0 };
    let is_beside = used(&line) + keys + least <= width;
    let room = width.saturating_sub(used(&line) + if is_beside { keys } else { 0 });
    let is_too_long = |figures: &[String]| cells(&figures.join(" · ")) > room;
    // From where on it is unsteady is worth more than the longest dip, which the graph shows.
    let told = with_threshold(metrics, &figures);
    let without_dip: Vec<String> = told.iter().filter(|text| !text.starts_with(DIP)).cloned().collect();
    if let Some(fits) = [told, without_dip].into_iter().find(|some| !is_too_long(some)) {
        figures = fits;
    }
    while !figures.is_empty() && is_too_long(&figures) {
        figures.pop();
    }
    line.push((Tone::Normal, figures.join(" · ")));
    if is_beside {
        line.push((Tone::Normal, " ".repeat(width.saturating_sub(used(&line) + used(&press)))));
        line.extend(press);
    } else {
        below = press;
    }
    [line, below].into_iter().filter(|line| !line.is_empty()).collect()
}

/// For how long a test that runs has been steady, where its state says that it was not.
fn steady_since(metrics: &Metrics) -> Option<f64> {
    let is_said = metrics.ended_test().is_none() && flow::state_word(metrics).1.ends_with("WAS UNSTEADY");
    flow::was_unsteady(&metrics.subject).filter(|_| is_said)
}

/// The mean is of a time that was unlike the present, and the rate now is known.
fn is_past(metrics: &Metrics) -> bool {
    steady_since(metrics).is_some() && metrics.subject.rate_now().is_some()
}

/// The rate that is told first is a mean.
fn is_mean(metrics: &Metrics) -> bool {
    metrics.ended_test().is_some() || (metrics.subject.jitter.is_some() && !is_past(metrics))
}

/// Rate and state, for what lies over them.
pub(super) fn in_short(metrics: &Metrics) -> String {
    let rate = rate(metrics).map(|(figure, unit, _)| format!("{figure} {unit}, ")).unwrap_or_default();
    format!("{rate}{}", flow::state_word(metrics).1)
}

/// What stands behind the word, what is needed most first.
fn figures(metrics: &Metrics) -> Vec<String> {
    if let Some(ended) = metrics.ended_test() {
        let seconds = |ns: u64| Seconds((ns as f64 / 1e9).round());
        let ago = seconds(metrics.machine.at_ns.saturating_sub(ended.ended_ns.unwrap_or(metrics.machine.at_ns)));
        let ran = seconds(ended.metrics.machine.at_ns.saturating_sub(ended.began_ns));
        let ran = ended.mean.map_or(ran, |mean| Seconds(mean.known_s));
        let mut all = vec![format!("{ago} ago"), format!("mean over {ran}")];
        all.push(format!("{} lost", Count(Some(ended.lost))));
        let last = ended.metrics.jitter.as_ref().and_then(|jitter| Some((jitter.cv?, jitter.window_s)));
        all.extend(last.map(|(cv, window_s)| format!("CV {} in its last {}", Share(cv), Seconds(window_s))));
        return all;
    }
    let Some(jitter) = &metrics.subject.jitter else { return Vec::new() };
    let scale = Scale::of(jitter.mean, Units::Bits);
    // Beside a rate of nearly nothing it has a unit of its own.
    let number = |bits: f64| if bits < FAR * jitter.mean { scale.number(bits) } else { speed(bits) };
    let all = flow::figures(metrics, None, "±").into_iter().map(|piece| trimmed(&piece.text));
    let now = metrics.subject.rate_now().map(|bits| {
        let sent = sent(metrics).filter(|sent| bits < UNMET * sent);
        let of = sent.map_or_else(String::new, |sent| format!(" of {} sent", number(sent)));
        format!("now {}{of}", scale.number(bits))
    });
    let range = [format!("90 % within {} to {}", scale.number(jitter.p5), scale.number(jitter.p95))];
    let outlier =
        farthest(metrics).map(|(bits, ago_s)| format!("outlier {} ({} ago)", scale.number(bits), Seconds(ago_s)));
    let wanted = ["CV", DIP];
    let is_wanted = |text: &String| wanted.iter().any(|word| text.starts_with(word));
    let has_dip = jitter.longest_dip_s >= LEAST_DIP_S;
    let mut rest: Vec<String> = all.filter(is_wanted).filter(|text| has_dip || !text.starts_with(DIP)).collect();
    rest.sort_by_key(|text| wanted.iter().position(|word| text.starts_with(word)));
    // Where the mean is of a time that was unlike the present, the rate now is the large one.
    let first: Vec<String> = if is_past(metrics) {
        vec![format!("mean of {}: {}", Seconds(jitter.window_s), scale.number(jitter.mean))]
    } else {
        let asked = unmet(metrics, jitter.mean).map(|bits| format!("{} asked for", number(bits)));
        let mean = std::iter::once(format!("mean of {}", Seconds(jitter.window_s)));
        mean.chain(now).chain(asked).chain(outlier).collect()
    };
    first.into_iter().chain(range).chain(rest).collect()
}

/// What UDP tests send now, bits/s; none where that is not known of all of them, and where the rate is of TCP.
fn sent(metrics: &Metrics) -> Option<f64> {
    let flow = &metrics.subject.flow;
    let tests = flow.tests.iter().filter(|_| matches!(flow.basis, Some(FlowBasis::Datagrams(_))));
    tests.map(|test| test.sent.map(|sent| sent.bits_per_s)).sum::<Option<f64>>().filter(|sent| *sent > 0.0)
}

/// What the clients were asked for, bits/s, where clearly less is sent; the mean rate where it is not known how much is.
fn unmet(metrics: &Metrics, mean: f64) -> Option<f64> {
    let sends = sent(metrics).unwrap_or(mean);
    metrics.subject.asked_bits_per_s().filter(|asked| sends < UNMET * asked)
}

/// The same, and from where on the deviation is called unsteady.
fn with_threshold(metrics: &Metrics, figures: &[String]) -> Vec<String> {
    let is_unsteady = flow::state_word(metrics).1.ends_with("UNSTEADY");
    let said = |text: &String| match text.strip_prefix("CV ") {
        Some(cv) if is_unsteady => format!("CV {cv}, unsteady from {}", Share(flow::SWINGS)),
        _ => text.clone(),
    };
    figures.iter().map(said).collect()
}

/// Where a few outliers make the deviation: the rate that is farthest from the median, bits/s, and how long ago that was, s.
fn farthest(metrics: &Metrics) -> Option<(f64, f64)> {
    let jitter = metrics.subject.jitter.filter(|_| flow::has_outliers(&metrics.subject))?;
    let bins = &metrics.subject.timeline.bins;
    let newest_ns = bins.last()?.to_ns;
    let ago_s = |ns: u64| newest_ns.saturating_sub(ns) as f64 / 1e9;
    let known = bins.iter().filter(|bin| ago_s(bin.to_ns) < jitter.window_s);
    let known = known.filter_map(|bin| Some((bin.bits_per_s?, ago_s(bin.to_ns))));
    known.max_by(|one, other| (one.0 - jitter.p50).abs().total_cmp(&(other.0 - jitter.p50).abs()))
}

fn trimmed(text: &str) -> String {
    text.trim_start_matches([' ', '·']).to_owned()
}

/// What a pin has brought, or when that is known.
fn compared(state: &State, metrics: &Metrics) -> Option<(Tone, String)> {
    if !state.is_placed() {
        return None;
    }
    let Some(result) = &metrics.subject.card else {
        let what = if state.pins() > 0 {
            format!("{} pinned", plural(state.pins(), "thread"))
        } else {
            format!("{} steered", plural(state.steers(), "link"))
        };
        return Some((Tone::Muted, format!("{what}; {}", card::waiting(state, metrics))));
    };
    let [before, after] = [&result.before.jitter, &result.after.jitter];
    let scale = Scale::of(before.mean.max(after.mean), Units::Bits);
    let side = |jitter: &Jitter| scale.number(jitter.mean);
    let so_far = card::final_in(state, metrics).map(|left| format!("; preliminary, final in {left:.0} s"));
    let so_far = so_far.unwrap_or_default();
    let [headline, ..] = result.headlines();
    // What is not final yet is no reason to keep it or not.
    let keep = if so_far.is_empty() { advice::kept(result.verdict) } else { "so far: " };
    let text = format!("{keep}before {}, after {} {}: {headline}{so_far}", side(before), side(after), scale.unit);
    Some((card::verdict_tone(result.verdict, Tone::Normal), text))
}
