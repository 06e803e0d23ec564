//! The test on one axis of time: its rate as a graph, below it in the same columns the moves, the losses, the threads' cores and
//! what was done, and what limits it, or what was at the selected time.

mod axis;
mod moment;

use super::canvas::{Area, Canvas};
use super::format::{Rate, Seconds};
use super::strip::{self, CoreLetters, StripWindow};
use super::{Tone, finding, latency};
use crate::action::Action;
use crate::derive::history::History;
use crate::derive::timeline::Incident;
use crate::derive::{Metrics, ThreadMetrics};
use crate::sample::Word;
use crate::state::{State, Units};
use axis::{Axis, RateSpan};
use std::cmp::Reverse;

/// A cell is so many dots high.
const DOTS: usize = 4;
/// Cells at the left for what a row is.
const MARGIN: u16 = 7;
/// A lower screen has no room for the graph; these and the next are without the list of tests.
const LEAST_HEIGHT: u16 = 21;
/// From here on moves and losses have rows of their own; else they are marked on the axis.
const LEAST_FOR_LANES: u16 = 30;
/// From here on the busiest threads have too.
const LEAST_FOR_THREADS: u16 = 40;
/// Of these shares of the window's median a rate is a dip, and a deep one.
const DIP: f64 = 0.75;
const DEEP_DIP: f64 = 0.5;

/// The parts of the pane, in rows, from top to bottom; the axis is a row of its own below the graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Parts {
    graph: u16,
    /// Moves and losses.
    lanes: bool,
    /// How long packets took.
    latency: bool,
    threads: u16,
    /// What limits it, or what was at the selected time.
    sentence: bool,
}

impl Parts {
    fn of(state: &State, height: u16) -> Option<Self> {
        let metrics = state.metrics().filter(|metrics| !metrics.subject.timeline.bins.is_empty())?;
        let (graph, most) = match height {
            0..LEAST_HEIGHT => return None,
            LEAST_HEIGHT..LEAST_FOR_LANES => (3, 0),
            LEAST_FOR_LANES..LEAST_FOR_THREADS => (4, 0),
            LEAST_FOR_THREADS..50 => (6, 2),
            _ => (8, 4),
        };
        let (ends, workers) = (metrics.subject.threads.len(), metrics.subject.workers.len());
        let rows = |count: usize, most| u16::try_from(count).unwrap_or(u16::MAX).min(most);
        let threads = rows(ends, most) + rows(workers, most / 2);
        let sentence = metrics.conclusions.limit.is_some() || state.axis.selected_ns().is_some();
        let latency =
            height >= LEAST_FOR_LANES && metrics.subject.latency.as_ref().is_some_and(|one| !one.seconds.is_empty());
        Some(Self { graph, lanes: height >= LEAST_FOR_LANES, latency, threads, sentence })
    }

    fn rows(self) -> u16 {
        self.graph + 1 + 2 * u16::from(self.lanes) + u16::from(self.latency) + self.threads + u16::from(self.sentence)
    }
}

/// Rows of the pane without its border; none where there is no rate, or no room.
pub(super) fn wanted_rows(state: &State, height: u16) -> u16 {
    Parts::of(state, height).map_or(0, Parts::rows)
}

/// The pane, on a screen of this height.
pub(super) fn prepare(state: &State, history: &History, (area, height): (Area, u16)) -> Canvas {
    let mut canvas = Canvas::new(area);
    let (Some(metrics), Some(parts)) = (state.metrics(), Parts::of(state, height)) else { return canvas };
    let Some(cells) = area.width.checked_sub(MARGIN + 1).filter(|cells| *cells > 0) else { return canvas };
    let axis = Axis::of(&metrics.subject.timeline, cells, &state.axis);
    graph(&axis, &mut canvas, parts.graph);
    let mut y = parts.graph;
    // A graph that stands still is of a test that has ended.
    let now_ns = metrics.ended_test().map_or(axis.newest_ns, |_| metrics.machine.at_ns);
    line(&axis, &mut canvas, (y, now_ns), !parts.lanes);
    y += 1;
    if parts.lanes {
        lane(&axis, &mut canvas, y, "migr", |at| axis.moves(at));
        lane(&axis, &mut canvas, y + 1, "lost", |at| axis.lost(at));
        y += 2;
    }
    if parts.latency {
        latency_lane(&axis, &mut canvas, y, metrics);
        y += 1;
    }
    let letters = CoreLetters::of(&metrics.machine.facts.topology);
    let threads = lanes(metrics, parts.threads);
    for thread in &threads {
        let role = thread.sample.role();
        // Several of one role are told apart by their numbers.
        let is_alone = threads.iter().filter(|other| other.sample.role() == role).count() == 1;
        let name = if is_alone { role.to_owned() } else { thread.sample.id.tid.to_string() };
        canvas.left(0, y, MARGIN - 1, Tone::Muted, name);
        if let Some(track) = history.thread(thread.sample.id) {
            let window = StripWindow::until(axis.end_ns(), axis.cell_ns());
            strip::cores(&mut canvas, (MARGIN, y, cells), &letters, track, window);
        }
        y += 1;
    }
    places_to_click(&axis, &mut canvas, y);
    match (axis.selected_ns, &metrics.conclusions.limit) {
        (Some(at_ns), _) => selected(&axis, &mut canvas, y, (metrics, history, at_ns)),
        (None, Some(limit)) => finding::limit_line(&mut canvas, state, limit, y),
        (None, None) => {}
    }
    canvas
}

/// How long packets took in the slowest stage, second by second: the 99th percentile on a scale from 1 us to 1 s.
fn latency_lane(axis: &Axis<'_>, canvas: &mut Canvas, y: u16, metrics: &Metrics) {
    canvas.left(0, y, MARGIN - 1, Tone::Muted, "p99".to_owned());
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

/// The rate, from 0 to the top.
fn graph(axis: &Axis<'_>, canvas: &mut Canvas, rows: u16) {
    let height = usize::from(rows) * DOTS;
    let label = |share: f64| short(&Rate(Some(axis.top * share), Units::Bits).to_string());
    canvas.right(0, 0, MARGIN - 1, Tone::Muted, label(1.0));
    if rows.is_multiple_of(2) {
        canvas.right(0, rows / 2, MARGIN - 1, Tone::Muted, label(0.5));
    }
    let cell = |pair: &[Option<RateSpan>]| {
        let dots =
            |span: Option<RateSpan>| span.map(|span| [span.low, span.high].map(|rate| dots(rate / axis.top, height)));
        (tone(axis, pair), [dots(pair[0]), dots(pair[1])])
    };
    let cells: Vec<_> = axis.rates.chunks_exact(2).map(cell).collect();
    // Row by row: neighbours of one tone become one piece of text.
    for y in 0..rows {
        let below = usize::from(rows - 1 - y) * DOTS;
        for (x, &(tone, dots)) in (MARGIN..).zip(&cells) {
            let glyph = braille(dots.map(|dots| column(dots, below)));
            if glyph != EMPTY {
                canvas.glyph(x, y, tone, glyph);
            }
        }
    }
}

/// By the lowest rate of a cell, so that no dip hides.
fn tone(axis: &Axis<'_>, spans: &[Option<RateSpan>]) -> Tone {
    let lowest = spans.iter().flatten().map(|span| span.low).fold(f64::INFINITY, f64::min);
    match lowest / axis.median {
        share if share < DEEP_DIP => Tone::Bad,
        share if share < DIP => Tone::Warning,
        _ => Tone::Good,
    }
}

/// At the right end of the axis of a test that is over.
const STOPPED: &str = " stopped ";

/// The zero of the graph, with how long ago it begins, and what was done; `marked`: with moves and losses on it.
fn line(axis: &Axis<'_>, canvas: &mut Canvas, (y, now_ns): (u16, u64), marked: bool) {
    canvas.right(0, y, MARGIN - 1, Tone::Muted, "0");
    for at in 0..axis.cells {
        let mark = if marked { axis.lost(at).or_else(|| axis.moves(at)) } else { None };
        let (tone, glyph) = mark.unwrap_or((Tone::Muted, '─'));
        canvas.glyph(MARGIN + at, y, tone, glyph);
    }
    let ago = |at_ns: u64| Seconds((now_ns.saturating_sub(at_ns) as f64 / 1e9).floor());
    if marked {
        // On the axis it would hide marks.
        canvas.right(0, y.saturating_sub(1), MARGIN - 1, Tone::Muted, format_args!("←{}", ago(axis.from_ns)));
    } else {
        let text = format!(" {} ago ", ago(axis.from_ns));
        let is_free = |incident: &Incident| axis.cell(incident.at_ns).is_none_or(|at| usize::from(at) > text.len());
        // What was done there says when it was by its place.
        if axis.timeline.incidents.iter().all(is_free) {
            canvas.left(MARGIN + 1, y, axis.cells, Tone::Muted, text);
        }
    }
    if axis.end_ns() < axis.newest_ns {
        canvas.right(MARGIN, y, axis.cells - 1, Tone::Warning, format_args!(" {} ago ", ago(axis.end_ns())));
    }
    let stopped = if axis.newest_ns < now_ns && axis.end_ns() >= axis.newest_ns { STOPPED } else { "" };
    canvas.right(MARGIN, y, axis.cells - 1, Tone::Muted, stopped);
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

fn lane(axis: &Axis<'_>, canvas: &mut Canvas, y: u16, name: &str, mark: impl Fn(u16) -> Option<(Tone, char)>) {
    canvas.left(0, y, MARGIN - 1, Tone::Muted, name);
    for (at, (tone, mark)) in (0..axis.cells).filter_map(|at| Some((at, mark(at)?))) {
        canvas.glyph(MARGIN + at, y, tone, mark);
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
    let mut x = 0;
    for (tone, text) in moment::line(metrics, history, axis, at_ns) {
        x += canvas.left(x, y, width.saturating_sub(x), tone, text);
    }
    canvas.spot(0, y, width, Action::ReleaseTime);
}

/// How many dots of so many show a share; at least one, so that a rate of nothing is not as blank as one that is not known.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the height")]
fn dots(share: f64, height: usize) -> usize {
    (share * height as f64).round().clamp(1.0, height as f64) as usize
}

/// What a column shows in a row that has so many dots below it: filled up to the lowest rate, and a dot at the highest.
fn column(dots: Option<[usize; 2]>, below: usize) -> (usize, Option<usize>) {
    let Some([low, high]) = dots else { return (0, None) };
    let top = high.checked_sub(below + 1).filter(|dot| *dot < DOTS && high > low);
    (low.saturating_sub(below).min(DOTS), top)
}

/// No dot at all.
const EMPTY: char = '\u{2800}';

/// Two columns of dots, filled from below, each perhaps with a single dot above.
fn braille(columns: [(usize, Option<usize>); 2]) -> char {
    const LEFT: [u32; DOTS] = [0x40, 0x04, 0x02, 0x01];
    const RIGHT: [u32; DOTS] = [0x80, 0x20, 0x10, 0x08];
    let of = |(filled, single): (usize, Option<usize>), dots: [u32; DOTS]| {
        dots[..filled].iter().sum::<u32>() | single.map_or(0, |at| dots[at])
    };
    char::from_u32(u32::from(EMPTY) + of(columns[0], LEFT) + of(columns[1], RIGHT)).unwrap_or(' ')
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
    fn dots_span_nothing_to_everything() {
        assert_eq!([0.0, 0.001, 0.5, 1.0, 2.0].map(|share| dots(share, 8)), [1, 1, 4, 8, 8]);
        let filled = |left, right| braille([(left, None), (right, None)]);
        assert_eq!([filled(0, 0), filled(4, 4), filled(1, 0), filled(0, 2)], ['\u{2800}', '⣿', '⡀', '⢠']);
    }

    #[test]
    fn the_highest_rate_of_a_column_is_a_dot_above_the_lowest() {
        let rows = |span| [4, 0].map(|below| braille([column(Some(span), below), (0, None)]));
        assert_eq!(rows([2, 7]), ['⠂', '⡄'], "two dots filled, the seventh alone");
        assert_eq!(rows([5, 5]), ['⡀', '⡇'], "one rate has no dot of its own");
        assert_eq!(rows([1, 2]), ['⠀', '⡄'], "neighbours touch");
    }

    #[test]
    fn a_scale_has_no_digits_that_say_nothing() {
        let short = ["35.0G", "17.5G", "3.50M", "600M", "10", "1.00G"].map(short);
        assert_eq!(short, ["35G", "17.5G", "3.5M", "600M", "10", "1G"]);
    }
}
