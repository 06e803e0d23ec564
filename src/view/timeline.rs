//! The test on one axis of time: its rate as a graph, below it in the same columns the moves, the losses, the threads' cores and
//! what was done, and what limits it. Two bins of 100 ms a cell.

use super::canvas::{Area, Canvas};
use super::format::{Interval, Rate};
use super::strip::{self, CoreLetters, StripWindow};
use super::{Tone, finding};
use crate::derive::flow::BIN_NS;
use crate::derive::history::History;
use crate::derive::timeline::Timeline;
use crate::derive::{Bin, Metrics, ThreadMetrics};
use crate::state::{State, Units};
use std::cmp::Reverse;
use std::time::Duration;

/// A cell is two bins wide.
const CELL_NS: u64 = 2 * BIN_NS;
/// And four dots high.
const DOTS: usize = 4;
/// Cells at the left for what a row is.
const MARGIN: u16 = 7;
/// A lower screen has no room for the graph.
const LEAST_HEIGHT: u16 = 24;
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
    threads: u16,
    limit: bool,
}

impl Parts {
    fn of(state: &State, height: u16) -> Option<Self> {
        let metrics = state.metrics().filter(|metrics| !metrics.timeline.bins.is_empty())?;
        let (graph, most) = match height {
            0..LEAST_HEIGHT => return None,
            LEAST_HEIGHT..LEAST_FOR_LANES => (3, 0),
            LEAST_FOR_LANES..LEAST_FOR_THREADS => (4, 0),
            LEAST_FOR_THREADS..50 => (6, 2),
            _ => (8, 4),
        };
        let threads = u16::try_from(metrics.benchmark().count()).unwrap_or(u16::MAX).min(most);
        Some(Self { graph, lanes: height >= LEAST_FOR_LANES, threads, limit: metrics.limit.is_some() })
    }

    fn rows(self) -> u16 {
        self.graph + 1 + 2 * u16::from(self.lanes) + self.threads + u16::from(self.limit)
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
    let axis = Axis::of(&metrics.timeline, cells);
    axis.graph(&mut canvas, parts.graph);
    let mut y = parts.graph;
    axis.line(&mut canvas, y, !parts.lanes);
    y += 1;
    if parts.lanes {
        axis.lane(&mut canvas, y, "migr", |at| axis.moves(at));
        axis.lane(&mut canvas, y + 1, "lost", |at| axis.lost(at));
        y += 2;
    }
    let letters = CoreLetters::of(&metrics.facts.topology);
    let threads = busiest(metrics, parts.threads);
    for thread in &threads {
        let role = thread.sample.role();
        // Several of one role are told apart by their numbers.
        let is_alone = threads.iter().filter(|other| other.sample.role() == role).count() == 1;
        let name = if is_alone { role.to_owned() } else { thread.sample.id.tid.to_string() };
        canvas.left(0, y, MARGIN - 1, Tone::Muted, name);
        if let Some(track) = history.thread(thread.sample.id) {
            strip::cores(&mut canvas, (MARGIN, y, cells), &letters, track, axis.window());
        }
        y += 1;
    }
    if let Some(limit) = &metrics.limit {
        finding::limit_line(&mut canvas, limit, y);
    }
    canvas
}

/// The threads of the benchmark that have taken most CPU time so far, in the order of the list: those that are busiest at the moment would change
/// places from tick to tick.
fn busiest(metrics: &Metrics, count: u16) -> Vec<&ThreadMetrics> {
    let mut threads: Vec<&ThreadMetrics> = metrics.benchmark().collect();
    threads.sort_by_key(|thread| Reverse(thread.sample.cpu_ns));
    threads.truncate(usize::from(count));
    threads.sort_by_key(|thread| (thread.sample.id.pid, thread.sample.id.tid));
    threads
}

/// The time that is shown: so many cells, the newest at the right, each beginning at a multiple of its length, so that what
/// is over stands still.
struct Axis<'a> {
    timeline: &'a Timeline,
    cells: u16,
    from_ns: u64,
    /// One a bin; none where no rate is known.
    rates: Vec<Option<f64>>,
    /// The scale's upper end, bits/s.
    top: f64,
    median: f64,
}

impl<'a> Axis<'a> {
    fn of(timeline: &'a Timeline, cells: u16) -> Self {
        let newest_ns = timeline.bins.last().map_or(0, |bin| bin.to_ns);
        let from_ns = (newest_ns.div_ceil(CELL_NS) * CELL_NS).saturating_sub(u64::from(cells) * CELL_NS);
        let mut rates = vec![None; 2 * usize::from(cells)];
        let first = timeline.bins.partition_point(|bin| bin.to_ns <= from_ns);
        for bin in &timeline.bins[first..] {
            let column =
                |at_ns: u64| usize::try_from(at_ns.saturating_sub(from_ns).div_ceil(BIN_NS)).unwrap_or(usize::MAX);
            // One of a whole interval is as wide as that.
            let end = column(bin.to_ns).min(rates.len());
            rates[column(bin.from_ns).min(end)..end].fill(bin.bits_per_s);
        }
        let mut known: Vec<f64> = rates.iter().flatten().copied().collect();
        known.sort_by(f64::total_cmp);
        let median = known.get(known.len() / 2).copied().unwrap_or(0.0);
        let top = above(known.last().copied().unwrap_or(0.0));
        Self { timeline, cells, from_ns, rates, top, median }
    }

    fn window(&self) -> StripWindow {
        StripWindow::until(self.from_ns + u64::from(self.cells) * CELL_NS, CELL_NS)
    }

    /// The rate, from 0 to the top.
    fn graph(&self, canvas: &mut Canvas, rows: u16) {
        let height = usize::from(rows) * DOTS;
        let label = |share: f64| short(&Rate(Some(self.top * share), Units::Bits).to_string());
        canvas.right(0, 0, MARGIN - 1, Tone::Muted, label(1.0));
        if rows.is_multiple_of(2) {
            canvas.right(0, rows / 2, MARGIN - 1, Tone::Muted, label(0.5));
        }
        let cell = |pair: &[Option<f64>]| {
            let dots = [pair[0], pair[1]].map(|rate| rate.map_or(0, |rate| dots(rate / self.top, height)));
            (self.tone(pair), dots)
        };
        let cells: Vec<_> = self.rates.chunks_exact(2).map(cell).collect();
        // Row by row: neighbours of one tone become one piece of text.
        for y in 0..rows {
            let below = usize::from(rows - 1 - y) * DOTS;
            for (x, &(tone, dots)) in (MARGIN..).zip(&cells) {
                let filled = dots.map(|dots| dots.saturating_sub(below).min(DOTS));
                if filled != [0, 0] {
                    canvas.glyph(x, y, tone, braille(filled));
                }
            }
        }
    }

    /// By the lower rate of a cell, so that no dip hides.
    fn tone(&self, rates: &[Option<f64>]) -> Tone {
        let lowest = rates.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        match lowest / self.median {
            share if share < DEEP_DIP => Tone::Bad,
            share if share < DIP => Tone::Warning,
            _ => Tone::Good,
        }
    }

    /// The zero of the graph, with how long ago it begins, and what was done; `marked`: with moves and losses on it.
    fn line(&self, canvas: &mut Canvas, y: u16, marked: bool) {
        canvas.right(0, y, MARGIN - 1, Tone::Muted, "0");
        for at in 0..self.cells {
            let mark = if marked { self.lost(at).or_else(|| self.moves(at)) } else { None };
            let (tone, glyph) = mark.unwrap_or((Tone::Muted, '─'));
            canvas.glyph(MARGIN + at, y, tone, glyph);
        }
        let span = Interval(Duration::from_nanos(u64::from(self.cells) * CELL_NS));
        if marked {
            // On the axis it would hide marks.
            canvas.right(0, y.saturating_sub(2), MARGIN - 1, Tone::Muted, "last");
            canvas.right(0, y.saturating_sub(1), MARGIN - 1, Tone::Muted, span);
        } else {
            canvas.left(MARGIN + 1, y, self.cells, Tone::Muted, format_args!(" {span} ago "));
        }
        for incident in &self.timeline.incidents {
            let Some(at) = self.cell(incident.at_ns) else { continue };
            canvas.glyph(MARGIN + at, y, Tone::Accent, '┬');
            let word = format!(" {} ", incident.kind.word());
            if usize::from(self.cells - at - 1) >= word.len() {
                canvas.left(MARGIN + at + 1, y, self.cells, Tone::Accent, word);
            }
        }
    }

    fn lane(&self, canvas: &mut Canvas, y: u16, name: &str, mark: impl Fn(u16) -> Option<(Tone, char)>) {
        canvas.left(0, y, MARGIN - 1, Tone::Muted, name);
        for (at, (tone, mark)) in (0..self.cells).filter_map(|at| Some((at, mark(at)?))) {
            canvas.glyph(MARGIN + at, y, tone, mark);
        }
    }

    fn cell(&self, at_ns: u64) -> Option<u16> {
        let at = u16::try_from(at_ns.checked_sub(self.from_ns)? / CELL_NS).ok()?;
        (at < self.cells).then_some(at)
    }

    fn begin_ns(&self, cell: u16) -> u64 {
        self.from_ns + u64::from(cell) * CELL_NS
    }

    /// Those that reach into a cell: one of a whole interval is wider than it.
    fn bins(&self, cell: u16) -> impl Iterator<Item = &Bin> {
        let begin_ns = self.begin_ns(cell);
        let first = self.timeline.bins.partition_point(|bin| bin.to_ns <= begin_ns);
        self.timeline.bins[first..].iter().take_while(move |bin| bin.from_ns < begin_ns + CELL_NS)
    }

    /// By the farthest: to another node or socket, to another last-level cache, nearer, or to somewhere.
    fn moves(&self, cell: u16) -> Option<(Tone, char)> {
        let (mut far, mut middle, mut near, mut unknown) = (0, 0, 0, 0.0);
        for bin in self.bins(cell) {
            far += bin.moves.node + bin.moves.socket;
            middle += bin.moves.llc;
            near += bin.moves.smt + bin.moves.cluster;
            unknown += bin.unclassed;
        }
        match (far, middle, near) {
            (1.., ..) => Some((Tone::Warning, '●')),
            (_, 1.., _) => Some((Tone::Warning, '•')),
            (_, _, 1..) => Some((Tone::Warning, '·')),
            // Of a move whose instant is not known each bin of its tick has a part.
            _ => (unknown > 0.0).then_some((Tone::Muted, '·')),
        }
    }

    /// A loss is known to have been between two samples.
    fn lost(&self, cell: u16) -> Option<(Tone, char)> {
        let (begin_ns, losses) = (self.begin_ns(cell), &self.timeline.losses);
        let next = losses.get(losses.partition_point(|lost| lost.to_ns <= begin_ns));
        next.is_some_and(|lost| lost.from_ns < begin_ns + CELL_NS).then_some((Tone::Bad, '×'))
    }
}

/// How many dots of so many show a share; at least one, so that a rate of nothing is not as blank as one that is not known.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the height")]
fn dots(share: f64, height: usize) -> usize {
    (share * height as f64).round().clamp(1.0, height as f64) as usize
}

/// Two columns of dots, filled from below.
fn braille(filled: [usize; 2]) -> char {
    const LEFT: [u32; 5] = [0, 0x40, 0x44, 0x46, 0x47];
    const RIGHT: [u32; 5] = [0, 0x80, 0xa0, 0xb0, 0xb8];
    char::from_u32(0x2800 + LEFT[filled[0]] + RIGHT[filled[1]]).unwrap_or(' ')
}

/// Without digits that say nothing: `35G`, `17.5G`.
fn short(number: &str) -> String {
    let unit = number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let digits = &number[..number.len() - unit.len()];
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    format!("{digits}{unit}")
}

/// A round number not below a rate.
fn above(rate: f64) -> f64 {
    const STEPS: [f64; 14] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 10.0];
    if rate <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(rate.log10().floor());
    STEPS.iter().map(|step| step * power).find(|&top| top >= rate).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::moves::MovesByClass;
    use crate::derive::timeline::LostTime;

    /// One bin a number, in Gbit/s; the first begins at 10 s.
    fn timeline(rates: &[Option<f64>]) -> Timeline {
        let bin = |(n, rate): (u64, &Option<f64>)| Bin {
            from_ns: 10_000_000_000 + n * BIN_NS,
            to_ns: 10_000_000_000 + (n + 1) * BIN_NS,
            bits_per_s: rate.map(|rate| rate * 1e9),
            moves: MovesByClass::default(),
            unclassed: 0.0,
        };
        Timeline { bins: (0..).zip(rates).map(bin).collect(), ..Timeline::default() }
    }

    #[test]
    fn each_bin_has_its_column_and_unknown_has_none() {
        let timeline = timeline(&[Some(1.0), Some(2.0), None, Some(4.0), Some(0.0)]);
        let axis = Axis::of(&timeline, 4);
        let whole: Vec<_> = axis.rates.iter().map(|rate| rate.map(|rate| rate / 1e9)).collect();
        assert_eq!(
            whole,
            [None, None, Some(1.0), Some(2.0), None, Some(4.0), Some(0.0), None],
            "the newest at the right"
        );
        assert_eq!((axis.top, axis.median), (4e9, 2e9));
        let narrow = Axis::of(&timeline, 1);
        assert_eq!(narrow.rates, [Some(0.0), None], "older ones are left out");
    }

    #[test]
    fn a_bin_of_a_whole_interval_is_as_wide_as_that() {
        let mut timeline = timeline(&[Some(3.0)]);
        timeline.bins[0].to_ns = timeline.bins[0].from_ns + 5 * BIN_NS;
        let axis = Axis::of(&timeline, 3);
        assert_eq!(axis.rates.iter().filter(|rate| **rate == Some(3e9)).count(), 5);
    }

    #[test]
    fn moves_losses_and_incidents_stand_in_the_cell_of_their_time() {
        let mut timeline = timeline(&[Some(1.0); 8]);
        timeline.bins[3].moves.node = 1;
        timeline.bins[6].unclassed = 0.2;
        timeline.losses.push(LostTime { from_ns: 10_250_000_000, to_ns: 10_390_000_000, packets: 1.0 });
        let axis = Axis::of(&timeline, 4);
        let mark = |mark: Option<(Tone, char)>| mark.map_or(' ', |(_, mark)| mark);
        let moves: String = (0..4).map(|cell| mark(axis.moves(cell))).collect();
        let lost: String = (0..4).map(|cell| mark(axis.lost(cell))).collect();
        assert_eq!((&*moves, &*lost), (" ● ·", " ×  "));
        assert_eq!(
            [9_999, 10_000, 10_399, 10_799, 10_800].map(|ms| axis.cell(ms * 1_000_000)),
            [None, Some(0), Some(1), Some(3), None]
        );
    }

    #[test]
    fn dots_span_nothing_to_everything() {
        assert_eq!([0.0, 0.001, 0.5, 1.0, 2.0].map(|share| dots(share, 8)), [1, 1, 4, 8, 8]);
        assert_eq!([braille([0, 0]), braille([4, 4]), braille([1, 0]), braille([0, 2])], ['\u{2800}', '⣿', '⡀', '⢠']);
    }

    #[test]
    fn the_scale_ends_at_a_round_number() {
        let tops = [34.8e9, 36.0, 1.0, 0.97e6, 0.0].map(above).map(|top| top.to_string());
        assert_eq!(tops, ["35000000000", "40", "1", "1000000", "1"]);
        let short = ["35.0G", "17.5G", "3.50M", "600M", "10", "1.00G"].map(short);
        assert_eq!(short, ["35G", "17.5G", "3.5M", "600M", "10", "1G"]);
    }
}
