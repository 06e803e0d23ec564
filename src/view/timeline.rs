//! The test on one axis of time: its rate as a graph; below it, in the same columns, a row of the
//! moves and losses, the threads' cores and what was done, and what limits it, or what was at the selected time.

mod axis;
mod curve;
mod events;
mod moment;
mod past;
mod scale;

use super::canvas::{Area, Canvas};
use super::format::{Rate, Seconds};
use super::strip::{self, CoreLetters, StripSigns, StripWindow};
use super::{Tone, finding, latency};
use crate::action::Action;
use crate::derive::history::History;
use crate::derive::timeline::{Incident, KEPT_NS};
use crate::derive::{Metrics, ThreadMetrics};
use crate::sample::Word;
use crate::state::{GraphStyle, State, Units};
use axis::Axis;
use std::cmp::Reverse;

/// Packets were lost then: no dot, as migrations are, and the same where there is only ASCII.
pub(super) const LOSS: char = '!';
/// Cells at the left for what a row is.
const MARGIN: u16 = 7;
/// A lower screen has no room for the graph; these and the next are without the list of tests.
const LEAST_HEIGHT: u16 = 21;
/// A lower graph says nothing.
const LEAST_LOW: u16 = 2;
/// In fewer rows above one pane what happened stands on the axis.
const LEAST_LOW_WITH_EVENTS: u16 = 6;
/// A graph of so many rows gives one of them to what happened.
const LEAST_FOR_EVENTS: u16 = 4;
/// From here on the latency has a row of its own.
const LEAST_FOR_LATENCY: u16 = 30;
/// From here on the busiest threads have too.
const LEAST_FOR_THREADS: u16 = 40;

/// The parts of the pane, in rows, from top to bottom; the axis is a row of its own below the graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub graph: u16,
    /// A row for migrations and losses; without one they stand on the axis.
    events: bool,
    /// How long packets took.
    latency: bool,
    threads: u16,
    /// What limits it, or what was at the selected time.
    sentence: bool,
}

impl Parts {
    /// Above the panes, on a screen of this height; none where there is no rate, or no room.
    pub fn above_panes(state: &State, height: u16) -> Option<Self> {
        let metrics = state.metrics().filter(|metrics| !metrics.subject.timeline.bins.is_empty())?;
        let (graph, most) = match height {
            0..LEAST_HEIGHT => return None,
            LEAST_HEIGHT..LEAST_FOR_LATENCY => (3, 0),
            LEAST_FOR_LATENCY..LEAST_FOR_THREADS => (6, 0),
            LEAST_FOR_THREADS..50 => (8, 2),
            _ => (10, 4),
        };
        let sentence = metrics.conclusions.limit.is_some() || state.axis.selected_ns().is_some();
        let latency = height >= LEAST_FOR_LATENCY && is_timed(metrics);
        // Where no test runs the panes below have little else to show.
        let graph = if metrics.traffic.is_some() { (height / 3).max(graph) } else { graph };
        let (graph, events) = with_events(graph);
        Some(Self { graph, events, latency, threads: thread_lanes(metrics, most), sentence })
    }

    /// In so many rows, the axis among them; none where that is too few, or there is no rate.
    pub fn above_one_pane(state: &State, rows: u16) -> Option<Self> {
        let has_rate = state.metrics().is_some_and(|metrics| !metrics.subject.timeline.bins.is_empty());
        let parts = |rows: u16| {
            let parts = Self::in_bands(state, rows - 1, 0);
            let has_events = parts.events && rows >= LEAST_LOW_WITH_EVENTS;
            let graph = parts.graph + u16::from(parts.events && !has_events);
            Self { graph, events: has_events, ..parts }
        };
        (has_rate && rows > LEAST_LOW).then(|| parts(rows))
    }

    /// With so many lanes below the graph; the limit stands elsewhere.
    pub fn in_bands(state: &State, graph: u16, lanes: u16) -> Self {
        let Some(metrics) = state.metrics() else { return Self { graph, ..Self::default() } };
        let sentence = state.axis.selected_ns().is_some() && graph > 1;
        let latency = lanes > 0 && is_timed(metrics);
        let (graph, events) = with_events(graph - u16::from(sentence));
        Self { graph, events, latency, threads: lanes - u16::from(latency), sentence }
    }

    /// Over so many rows, with lanes for every thread up to a third of them.
    pub fn alone(state: &State, rows: u16) -> Self {
        let lanes = lanes_wanted(state, rows / 3);
        let mut parts = Self::in_bands(state, rows.saturating_sub(lanes + 1), lanes);
        if !parts.sentence && parts.graph > 1 && has_limit(state) {
            (parts.sentence, parts.graph) = (true, parts.graph - 1);
        }
        parts
    }

    pub fn rows(self) -> u16 {
        self.graph + 1 + u16::from(self.events) + u16::from(self.latency) + self.threads + u16::from(self.sentence)
    }
}

/// What is in the graph and its lanes, so that the legend has that and no more.
#[derive(Debug, Clone, Default)]
struct Drawn {
    /// For each cell, whether something was pinned then.
    placed: Vec<bool>,
    has_dip: bool,
    /// The curve is of dots.
    is_dots: bool,
    lanes: StripSigns,
    /// What a digit in the lanes means, in words and in few.
    digits: [&'static str; 2],
}

/// Of so many rows, those of the curve, and whether what happened has one.
fn with_events(rows: u16) -> (u16, bool) {
    let events = rows >= LEAST_FOR_EVENTS;
    (rows - u16::from(events), events)
}

fn has_limit(state: &State) -> bool {
    state.metrics().is_some_and(|metrics| metrics.conclusions.limit.is_some())
}

/// Its latency is measured, or was in the last minute.
fn is_timed(metrics: &Metrics) -> bool {
    metrics.subject.latency.as_ref().is_some_and(|one| !one.seconds.is_empty())
}

/// Rows for the threads at the ends, and between them half as many at most.
fn thread_lanes(metrics: &Metrics, most: u16) -> u16 {
    let rows = |count: usize, most| u16::try_from(count).unwrap_or(u16::MAX).min(most);
    rows(metrics.subject.threads.len(), most) + rows(metrics.subject.workers.len(), most / 2)
}

/// Rows for lanes, of so many at most.
pub(super) fn lanes_wanted(state: &State, most: u16) -> u16 {
    let wanted = |metrics| thread_lanes(metrics, most) + u16::from(is_timed(metrics));
    state.metrics().map_or(0, wanted).min(most)
}

/// The pane, in an area that has room for these parts.
pub(super) fn prepare(state: &State, history: &History, (area, parts): (Area, Parts)) -> Canvas {
    let mut canvas = Canvas::new(area);
    let Some(metrics) = state.metrics() else { return canvas };
    let Some(cells) = area.width.checked_sub(MARGIN + 1).filter(|cells| *cells > 0) else { return canvas };
    let axis = Axis::of(&metrics.subject.timeline, (cells, parts.graph), &state.axis);
    figures(&axis, &mut canvas, parts.graph);
    let mut drawn = Drawn {
        placed: past::placed_cells(state, &axis),
        is_dots: state.graph == GraphStyle::Braille,
        ..Drawn::default()
    };
    drawn.has_dip = curve::prepare(&axis, &mut canvas, (MARGIN, parts.graph), state, &drawn.placed);
    unmeasured(&axis, &mut canvas, parts.graph);
    let mut y = parts.graph + 1;
    if parts.events {
        canvas.right(0, y, MARGIN - 1, Tone::Muted, "events");
        events::row(&axis, &mut canvas, (MARGIN, y));
        y += 1;
    }
    if parts.latency {
        latency_lane(&axis, &mut canvas, y, metrics);
        y += 1;
    }
    (drawn.lanes, drawn.digits) = thread_strips(&axis, &mut canvas, (y, parts.threads), metrics, history);
    y += parts.threads;
    // A graph that stands still is of a test that has ended.
    let now_ns = metrics.ended_test().map_or(axis.newest_ns, |_| metrics.machine.at_ns);
    line(&axis, &mut canvas, (parts.graph, now_ns), parts, &drawn);
    places_to_click(&axis, &mut canvas, y);
    match (axis.selected_ns, &metrics.conclusions.limit) {
        _ if !parts.sentence => {}
        (Some(at_ns), _) => selected(&axis, &mut canvas, y, (metrics, history, at_ns)),
        (None, Some(limit)) => finding::limit_line(&mut canvas, state, limit, (1, y)),
        (None, None) => {}
    }
    canvas
}

/// Why a graph begins late: its left part is empty for want of samples, not of packets.
fn unmeasured(axis: &Axis<'_>, canvas: &mut Canvas, rows: u16) {
    let begun_ns = axis.begun_ns();
    let first = axis.cell(begun_ns).map_or(0, usize::from);
    // One that is as long, but for a sample's time, has left out what was before.
    let is_all = axis.newest_ns.saturating_sub(begun_ns) + 2_000_000_000 < KEPT_NS;
    let text = if is_all { " not measured before " } else { " the last minute is kept " };
    let row = rows / 2;
    if let Some(spare) = first.checked_sub(text.len() + 4)
        && row > 0
    {
        canvas.left(MARGIN + u16::try_from(spare / 2 + 2).unwrap_or(0), row, axis.cells, Tone::Muted, text);
    }
}

/// One lane a thread: on which cores it was, from where the graph starts. What stands in them, and what a digit means.
fn thread_strips(
    axis: &Axis<'_>,
    canvas: &mut Canvas,
    (y, count): (u16, u16),
    metrics: &Metrics,
    history: &History,
) -> (StripSigns, [&'static str; 2]) {
    let letters = CoreLetters::of(&metrics.machine.facts.topology);
    let threads = lanes(metrics, count);
    let first = axis.cell(axis.begun_ns()).unwrap_or(0);
    let mut signs = StripSigns::default();
    for (y, thread) in (y..).zip(&threads) {
        let role = thread.sample.role();
        // Several of one role are told apart by their numbers.
        let is_alone = threads.iter().filter(|other| other.sample.role() == role).count() == 1;
        let name = if is_alone { role.to_owned() } else { thread.sample.id.tid.to_string() };
        canvas.right(0, y, MARGIN - 1, Tone::Muted, name);
        if let Some(track) = history.thread(thread.sample.id) {
            let window = StripWindow::until(axis.end_ns(), axis.cell_ns());
            signs |= strip::cores(canvas, (MARGIN + first, y, axis.cells - first), &letters, track, window);
        }
    }
    (signs, letters.meaning())
}

/// How long packets took in the slowest stage, second by second: the 99th percentile on a scale from 1 us to 1 s.
fn latency_lane(axis: &Axis<'_>, canvas: &mut Canvas, y: u16, metrics: &Metrics) {
    canvas.right(0, y, MARGIN - 1, Tone::Muted, "p99".to_owned());
    let Some(latency) = &metrics.subject.latency else { return };
    let in_cell = |cell: u16| {
        let (from_ns, to_ns) = (axis.begin_ns(cell), axis.begin_ns(cell + 1));
        let first = latency.seconds.partition_point(|one| one.at_ns <= from_ns);
        let here = latency.seconds.range(first..).take_while(|one| one.at_ns.saturating_sub(one.for_ns) < to_ns);
        here.filter_map(|one| one.slowest_s).reduce(f64::max)
    };
    for cell in 0..axis.cells {
        if let Some(p99_s) = in_cell(cell) {
            // Six powers of ten.
            let height = ((p99_s * 1e6).max(1.0).log10() / 6.0).min(1.0);
            canvas.glyph(MARGIN + cell, y, latency::tone(p99_s), strip::block(height));
        }
    }
}

/// The threads at the ends that have taken most CPU time so far, then those between them, each in the order of the list: those
/// that are busiest at the moment would change places from tick to tick.
fn lanes(metrics: &Metrics, count: u16) -> Vec<&ThreadMetrics> {
    let count = usize::from(count);
    let workers = metrics.subject.workers.iter().filter(|worker| !worker.polls()).map(|worker| &worker.thread);
    let between = busiest(workers, count.div_ceil(3));
    let mut lanes = busiest(metrics.subject.threads.iter(), count - between.len());
    lanes.extend(between);
    lanes
}

fn busiest<'a>(threads: impl Iterator<Item = &'a ThreadMetrics>, count: usize) -> Vec<&'a ThreadMetrics> {
    let mut threads: Vec<&ThreadMetrics> = threads.collect();
    threads.sort_by_key(|thread| Reverse(thread.sample.cpu_ns));
    threads.truncate(count);
    threads.sort_by_key(|thread| (thread.sample.id.pid, thread.sample.id.tid));
    threads
}

/// The figures of the scale at the left.
fn figures(axis: &Axis<'_>, canvas: &mut Canvas, rows: u16) {
    for y in 0..rows {
        let rate = axis.scale.line_at(y);
        if let Some(rate) = rate {
            canvas.right(0, y, MARGIN - 1, Tone::Muted, short(&Rate(Some(rate), Units::Bits).to_string()));
        }
        canvas.glyph(MARGIN - 1, y, Tone::Line, if rate.is_some() { '┤' } else { '│' });
    }
}

/// At the right end of the axis of a test that is over.
const STOPPED: &str = " stopped ";

/// The zero of the graph, with how long ago it starts, what was done, and the time that something was pinned or steered.
fn line(axis: &Axis<'_>, canvas: &mut Canvas, (y, now_ns): (u16, u64), parts: Parts, drawn: &Drawn) {
    canvas.right(0, y, MARGIN - 1, Tone::Muted, "0");
    canvas.glyph(MARGIN - 1, y, Tone::Line, '┼');
    for at in 0..axis.cells {
        let is_placed = drawn.placed.get(usize::from(at)) == Some(&true);
        canvas.glyph(MARGIN + at, y, Tone::Line, if is_placed { '═' } else { '─' });
    }
    if !parts.events {
        events::signs(axis, canvas, (MARGIN, y));
    }
    let ago = |at_ns: u64| Seconds((now_ns.saturating_sub(at_ns) as f64 / 1e9).floor());
    let text = format!(" {} ago ", ago(axis.from_ns));
    let left = text.len() + 2;
    let is_free = |incident: &Incident| axis.cell(incident.at_ns).is_none_or(|at| usize::from(at) > text.len());
    // What was done there says when it was by its place.
    if axis.timeline.incidents.iter().all(is_free) {
        canvas.left(MARGIN + 1, y, axis.cells, Tone::Muted, text);
    }
    if axis.end_ns() < axis.newest_ns {
        canvas.right(MARGIN, y, axis.cells - 1, Tone::Warning, format_args!(" {} ago ", ago(axis.end_ns())));
    }
    let stopped = if axis.newest_ns < now_ns && axis.end_ns() >= axis.newest_ns { STOPPED } else { "" };
    canvas.right(MARGIN, y, axis.cells - 1, Tone::Muted, stopped);
    // Where the signs stand on the axis themselves, it would hide them.
    if parts.events {
        events::legend(axis, canvas, (y, left, stopped.len()), drawn);
    }
    for incident in &axis.timeline.incidents {
        let Some(at) = axis.cell(incident.at_ns) else { continue };
        canvas.glyph(MARGIN + at, y, Tone::Accent, '┬');
        let word = format!(" {} ", incident.kind.word());
        if usize::from(axis.cells - at - 1) >= word.len() + stopped.len() {
            canvas.left(MARGIN + at + 1, y, axis.cells, Tone::Accent, word);
        }
    }
    if let Some(at) = axis.selected_ns.and_then(|at_ns| axis.cell(at_ns)) {
        canvas.glyph(MARGIN + at, y, Tone::Accent, '▲');
    }
}

/// A click in so many rows selects the time that was clicked at.
fn places_to_click(axis: &Axis<'_>, canvas: &mut Canvas, rows: u16) {
    for at in 0..axis.cells {
        canvas.tall_spot(MARGIN + at, 0, rows, Action::SelectTime(axis.begin_ns(at)));
    }
}

/// The marker of the selected time through every row above this one, and in it what was then.
fn selected(axis: &Axis<'_>, canvas: &mut Canvas, y: u16, (metrics, history, at_ns): (&Metrics, &History, u64)) {
    if let Some(at) = axis.cell(at_ns) {
        (0..y).for_each(|y| canvas.select(MARGIN + at, y, 1));
    }
    let width = canvas.area.width;
    let mut x = 1;
    for (tone, text) in moment::line(metrics, history, axis, at_ns) {
        x += canvas.left(x, y, width.saturating_sub(x), tone, text);
    }
    canvas.spot(0, y, width, Action::ReleaseTime);
}

/// Without digits that say nothing: `35G`, `17.5G`.
fn short(number: &str) -> String {
    let unit = number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let digits = &number[..number.len() - unit.len()];
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    format!("{digits}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_has_no_digits_that_say_nothing() {
        let short = ["35.0G", "17.5G", "3.50M", "600M", "10", "1.00G"].map(short);
        assert_eq!(short, ["35G", "17.5G", "3.5M", "600M", "10", "1G"]);
    }
}
