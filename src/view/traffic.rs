//! What passes a machine on which no test runs, above its panes: the rate, how the traffic is, why, what it costs, what to do.

use super::Tone;
use super::canvas::{Area, Canvas, cells};
use super::format::{Count, Scale, Seconds, Share};
use super::lines::Line;
use super::paragraphs::{LARGE_CELLS, Paragraphs, is_large, large_rate};
use crate::action::Pane;
use crate::derive::{FindingParts, Metrics, PassingTraffic, TrafficState};
use crate::state::{State, Units};

/// Lines at least, so that a word more or less moves nothing.
const LEAST_ROWS: u16 = 3;
/// On a lower screen it has a smaller part of the rows, and these parts are left out, the first one first.
const ROOMY: u16 = 24;
const LEFT_OUT: [&str; 3] = ["COST", "WHY", "DO"];

/// What passes, where the screen is about that.
pub(super) fn shown(state: &State) -> Option<(&Metrics, &PassingTraffic)> {
    let metrics = state.metrics()?;
    metrics.traffic.as_deref().filter(|_| state.shows_test()).map(|traffic| (metrics, traffic))
}

/// Whether a pane is on the screen: beside traffic without a test not one of threads of which there are none.
pub(super) fn has_pane(state: &State, pane: Pane) -> bool {
    let has_none = || shown(state).is_some_and(|(metrics, _)| metrics.threads.is_empty());
    let is_only = || !state.shows(Pane::Links) && !state.shows(Pane::Cores);
    state.shows(pane) && (pane != Pane::Threads || state.focus == pane || is_only() || !has_none())
}

/// Packets are dropped, or a core that handles them is full.
pub(super) fn is_trouble(state: &State) -> bool {
    let is_trouble = |state| matches!(state, TrafficState::Dropping(_) | TrafficState::CoreFull);
    shown(state).is_some_and(|(_, traffic)| is_trouble(traffic.state()))
}

/// Rows that it takes on a screen of this size; none where there is nothing to show, or no room.
pub(super) fn wanted_rows(state: &State, (width, height): (u16, u16)) -> u16 {
    let Some(shown) = shown(state) else { return 0 };
    let beside = if is_large((width, height)) { LARGE_CELLS } else { 0 };
    let lines = lines(shown, width - 4 - beside, beside > 0, u16::MAX).len();
    let most = if height < ROOMY { height / 4 } else { height / 3 };
    u16::try_from(lines).unwrap_or(u16::MAX).clamp(LEAST_ROWS, most)
}

/// The lines of it.
pub(super) fn prepare(state: &State, area: Area, screen: (u16, u16)) -> Canvas {
    let mut canvas = Canvas::new(area);
    let Some((metrics, traffic)) = shown(state).filter(|_| area.height > 0) else { return canvas };
    let is_large = is_large(screen);
    let x = if is_large { LARGE_CELLS } else { 0 };
    if is_large {
        let bits_per_s = out(traffic).unwrap_or(traffic.bits_per_s);
        let scale = Scale::of(bits_per_s, Units::Bits);
        let rate = (scale.number(bits_per_s), scale.unit, state_word(traffic).0);
        large_rate(&mut canvas, (rate, "now"), state.settings().utf8);
    }
    for (y, line) in (0..area.height).zip(lines((metrics, traffic), area.width - x, is_large, area.height)) {
        let mut at = x;
        for (tone, text) in line {
            at += canvas.left(at, y, area.width - at, tone, &text);
        }
    }
    canvas
}

/// The upper border: what it is, and by which links.
pub(super) fn title(canvas: &mut Canvas, y: u16, (metrics, traffic): (&Metrics, &PassingTraffic)) -> u16 {
    let used = canvas.left(1, y, canvas.area.width, Tone::FocusedTitle, " Traffic ");
    let room = canvas.area.width.saturating_sub(used + 6);
    let text = format!(" {}; no test is running ", traffic.place(&metrics.machine));
    used + canvas.left(used + 2, y, room + 2, Tone::Title, text)
}

/// How it is, in a word.
fn state_word(traffic: &PassingTraffic) -> (Tone, String) {
    match traffic.state() {
        TrafficState::Dropping(Some(share)) => (Tone::Bad, format!("DROPPING {}", Share(share))),
        TrafficState::Dropping(None) => (Tone::Bad, "DROPPING".to_owned()),
        // That packets are not lost yet is seen at once.
        TrafficState::CoreFull if traffic.drops.is_empty() => (Tone::Warning, "CORE FULL, 0 LOST".to_owned()),
        TrafficState::CoreFull => (Tone::Warning, "CORE FULL".to_owned()),
        TrafficState::Forwarding => (Tone::Good, "FORWARDING".to_owned()),
        TrafficState::Carrying => (Tone::Title, "CARRYING".to_owned()),
    }
}

/// In at most so many rows, if what is said last about a cause is left out.
fn lines((metrics, traffic): (&Metrics, &PassingTraffic), width: u16, is_large: bool, rows: u16) -> Vec<Line> {
    let FindingParts { what, why, cost, fix, .. } = traffic.parts(&metrics.machine);
    let cost_word = if traffic.drops.is_empty() { "LOST" } else { "COST" };
    let mut parts = vec![("WHAT", what), ("WHY", why), (cost_word, cost), ("DO", fix)];
    loop {
        let mut all = Paragraphs { lines: vec![first_line(traffic, width, is_large)], width };
        for (label, text) in &parts {
            all.add(label, Tone::Normal, text);
        }
        let dropped = LEFT_OUT.iter().find_map(|label| parts.iter().position(|(part, _)| part == label));
        match dropped.filter(|_| all.lines.len() > usize::from(rows)) {
            Some(at) => parts.remove(at),
            None => return all.lines,
        };
    }
}

/// What is left of what comes in, where some of it is dropped, bits/s: as of a test what arrives.
fn out(traffic: &PassingTraffic) -> Option<f64> {
    let is_dropping = matches!(traffic.state(), TrafficState::Dropping(_)) && traffic.comes_in;
    traffic.other.as_ref().and_then(|other| other.bits_per_s).filter(|_| is_dropping)
}

/// `CORE FULL  113k packets/s of 242 bytes · mean of 18 s 216 · 90 % within 180 to 240`
fn first_line(traffic: &PassingTraffic, width: u16, is_large: bool) -> Line {
    let scale = Scale::of(traffic.bits_per_s, Units::Bits);
    let (tone, word) = state_word(traffic);
    let mut line: Line = Vec::new();
    if !is_large {
        let shown = out(traffic).unwrap_or(traffic.bits_per_s);
        let scale = Scale::of(shown, Units::Bits);
        line.push((tone, format!("{} {}  ", scale.number(shown), scale.unit)));
    }
    line.push((tone, format!("{word}  ")));
    let size = traffic.packet_bytes().map_or_else(String::new, |bytes| format!(" of {bytes:.0} bytes"));
    let mut figures = vec![format!("{} packets/s{size}", Count(Some(traffic.packets_per_s)))];
    if out(traffic).is_some() {
        figures.insert(0, format!("of {} {} that come in", scale.number(traffic.bits_per_s), scale.unit));
    } else if let Some(spread) = &traffic.spread {
        figures.push(format!("mean of {}: {}", Seconds(spread.window_s), scale.number(spread.mean)));
        let (low, high) = (scale.number(spread.p5), scale.number(spread.p95));
        // Where both are one figure it is the mean.
        figures.extend((low != high).then(|| format!("90 % within {low} to {high}")));
    }
    let used: usize = line.iter().map(|(_, text)| cells(text)).sum();
    while figures.len() > 1 && cells(&figures.join(" · ")) > usize::from(width).saturating_sub(used) {
        figures.pop();
    }
    line.push((Tone::Normal, figures.join(" · ")));
    line
}
