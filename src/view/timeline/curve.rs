//! The curve itself: the rate of each cell as blocks or dots, a line for what was before a pin, a scale
//! behind it, and the time that something was pinned shaded.

use super::axis::{Axis, RateSpan};
use super::past;
use super::scale::RateScale;
use crate::derive::jitter::DIP;
use crate::state::{GraphStyle, State, Units};
use crate::view::Tone;
use crate::view::canvas::Canvas;
use crate::view::format::Scale;
use crate::view::strip;

/// A cell is so many dots high, or so many eighths.
const DOTS: usize = 4;
const EIGHTHS: usize = 8;
/// The line of a mean.
const MEAN_LINE: char = '─';
/// From the lowest rate of a cell to its highest.
pub(super) const RANGE: char = '▒';
/// From what arrived to what was sent.
pub(super) const LOST: char = '▒';
/// Where something was pinned.
pub(super) const SHADE: char = '░';
/// The lines of the scale: no sign of what happened looks like it.
const GRID: char = '┈';
/// Cells at both sides of one that are asked whether it lies in a dip: half a second on the finest axis.
const BESIDE: usize = 2;

/// The cells of the graph, row by row: what is drawn later hides what was drawn before.
struct Cells {
    width: usize,
    glyphs: Vec<Option<(Tone, char)>>,
}

impl Cells {
    fn new(width: usize, rows: usize) -> Self {
        Self { width, glyphs: vec![None; width * rows] }
    }

    fn set(&mut self, x: usize, y: usize, tone: Tone, glyph: char) {
        self.glyphs[y * self.width + x] = Some((tone, glyph));
    }

    fn tone(&self, x: usize, y: usize) -> Option<Tone> {
        self.glyphs[y * self.width + x].map(|(tone, _)| tone)
    }

    fn is_empty(&self, x: usize, y: usize) -> bool {
        self.glyphs[y * self.width + x].is_none()
    }
}

/// Draws so many rows of it from a column on, with these cells in a time that was pinned; returns whether there is a dip.
pub(super) fn prepare(
    axis: &Axis<'_>,
    canvas: &mut Canvas,
    (x, rows): (u16, u16),
    state: &State,
    placed: &[bool],
) -> bool {
    let (width, height) = (usize::from(axis.cells), usize::from(rows));
    let mut cells = Cells::new(width, height);
    let lows: Vec<Option<f64>> = axis.rates.chunks_exact(2).map(low).collect();
    let top = top_row(axis, height);
    let mut has_dip = false;
    for at in 0..width {
        let is_dip = is_in_dip(axis, &lows, at);
        has_dip |= is_dip;
        let tone = |y: usize| if is_dip { Tone::Dip } else { Tone::Curve(depth(y, top, height)) };
        match state.graph {
            GraphStyle::Blocks => blocks(&mut cells, (at, height), axis, tone, placed.get(at) == Some(&true)),
            GraphStyle::Braille => dots(&mut cells, (at, height), axis, tone),
        }
    }
    if let Some(line) = past::mean_line(state, axis, height).filter(|_| height > 1) {
        let y = height.saturating_sub((steps(line.bits_per_s / axis.scale.top, height, EIGHTHS) + EIGHTHS) / EIGHTHS);
        let scale = Scale::of(axis.scale.top, Units::Bits);
        let label = format!("─ {} {} ", line.word, scale.number(line.bits_per_s));
        let glyphs = label.chars().chain(std::iter::repeat(MEAN_LINE));
        let y = y.min(height - 1);
        for (at, glyph) in (line.from..width).zip(glyphs) {
            cells.set(at, y, over(cells.tone(at, y), placed.get(at) == Some(&true)), glyph);
        }
    }
    ground(&mut cells, (width, height), placed, &axis.scale);
    // Row by row: neighbours of one tone become one piece of text.
    for (y, row) in (0..rows).zip(cells.glyphs.chunks(width.max(1))) {
        for (x, glyph) in (x..).zip(row) {
            if let Some((tone, glyph)) = *glyph {
                canvas.glyph(x, y, tone, glyph);
            }
        }
    }
    has_dip
}

fn low(pair: &[Option<RateSpan>]) -> Option<f64> {
    pair.iter().flatten().map(|span| span.low).reduce(f64::min)
}

/// A dip is where most of a second is below [`DIP`] of the median: a rate that is noisy all the time has none.
fn is_in_dip(axis: &Axis<'_>, lows: &[Option<f64>], at: usize) -> bool {
    let beside = &lows[at.saturating_sub(BESIDE)..(at + BESIDE + 1).min(lows.len())];
    let known = beside.iter().flatten().count();
    let low = beside.iter().flatten().filter(|low| **low < DIP * axis.median).count();
    let is_low = lows[at].is_some_and(|low| low < DIP * axis.median);
    is_low && 2 * low > known
}

/// The highest row that the curve reaches.
fn top_row(axis: &Axis<'_>, rows: usize) -> usize {
    let most = axis.rates.iter().flatten().map(|span| span.low).fold(0.0, f64::max);
    rows.saturating_sub(steps(most / axis.scale.top, rows, EIGHTHS).div_ceil(EIGHTHS))
}

/// How deep below the highest row of the curve one is, in eighths of what lies below that: all cells of a row have one
/// shade, so that a row is still written with few changes of colour.
fn depth(y: usize, top: usize, rows: usize) -> u8 {
    let below = y.saturating_sub(top) * 8 / rows.saturating_sub(top).max(1);
    u8::try_from(below.min(7)).unwrap_or(7)
}

/// How many of the steps of so many rows show a share, each row of so many steps; at least one, so that a rate of nothing is not as
/// blank as one that is not known. The lines of the scale, and that of its zero, stand in the middle of their rows: half a row
/// lies between the axis and the foot of a column.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the height")]
fn steps(share: f64, rows: usize, in_row: usize) -> usize {
    let height = (rows * in_row) as f64;
    (share * height - in_row as f64 / 2.0).round().clamp(1.0, height) as usize
}

/// Full up to the lowest rate of the cell, shaded up to the highest.
fn blocks(
    cells: &mut Cells,
    (at, rows): (usize, usize),
    axis: &Axis<'_>,
    tone: impl Fn(usize) -> Tone,
    is_placed: bool,
) {
    let pair = &axis.rates[2 * at..2 * at + 2];
    let Some(low) = low(pair) else { return };
    let high = pair.iter().flatten().map(|span| span.high).fold(low, f64::max);
    // Above what arrived stands what was lost of it, and how far the rate reached does not.
    let [low, high, lost] = match axis.lost[at] {
        Some(part) if part.within => [(low - part.bits_per_s).max(0.0), 0.0, low],
        Some(part) => [low, 0.0, low + part.bits_per_s],
        None => [low, high, 0.0],
    };
    let [low, high, lost] = [low, high, lost].map(|rate| steps(rate / axis.scale.top, rows, EIGHTHS));
    for y in 0..rows {
        let below = (rows - 1 - y) * EIGHTHS;
        let filled = low.saturating_sub(below).min(EIGHTHS);
        let lost_here = lost.saturating_sub(below).min(EIGHTHS);
        match filled {
            1..EIGHTHS if lost_here == EIGHTHS => cells.set(at, y, on_lost(tone(y)), strip::eighths(filled)),
            // What lies between the lowest and the highest begins in this cell.
            1..EIGHTHS if high >= below + EIGHTHS => cells.set(at, y, on_range(tone(y)), strip::eighths(filled)),
            1..EIGHTHS if is_placed => cells.set(at, y, on_ground(tone(y)), strip::eighths(filled)),
            1.. => cells.set(at, y, tone(y), strip::eighths(filled)),
            _ if high >= below + EIGHTHS / 2 => cells.set(at, y, Tone::CurveDim, RANGE),
            _ if lost_here == EIGHTHS => cells.set(at, y, Tone::Lost, LOST),
            _ if lost_here > 0 => cells.set(at, y, Tone::Lost, strip::eighths(lost_here)),
            _ => {}
        }
    }
}

/// Of text over a cell: its ground stays.
fn over(cell: Option<Tone>, is_placed: bool) -> Tone {
    match cell {
        Some(Tone::Curve(depth) | Tone::CurveEdge(depth) | Tone::PlacedEdge(depth)) => Tone::OnCurve(depth),
        Some(Tone::CurveDim) => Tone::CurveEdge(0),
        None if is_placed => Tone::PlacedEdge(0),
        _ => Tone::Title,
    }
}

fn on_ground(tone: Tone) -> Tone {
    match tone {
        Tone::Curve(depth) => Tone::PlacedEdge(depth),
        other => other,
    }
}

fn on_lost(tone: Tone) -> Tone {
    match tone {
        Tone::Curve(depth) => Tone::LostEdge(depth),
        other => other,
    }
}

fn on_range(tone: Tone) -> Tone {
    match tone {
        Tone::Curve(depth) => Tone::CurveEdge(depth),
        _ => Tone::DipEdge,
    }
}

/// Two columns of dots, each filled up to the lowest rate of it, with a dot at the highest.
fn dots(cells: &mut Cells, (at, rows): (usize, usize), axis: &Axis<'_>, tone: impl Fn(usize) -> Tone) {
    let of = |span: Option<RateSpan>| {
        span.map(|span| [span.low, span.high].map(|rate| steps(rate / axis.scale.top, rows, DOTS)))
    };
    let spans = [0, 1].map(|half| of(axis.rates[2 * at + half]));
    for y in 0..rows {
        let below = (rows - 1 - y) * DOTS;
        let glyph = braille(spans.map(|span| column(span, below)));
        if glyph != EMPTY {
            cells.set(at, y, tone(y), glyph);
        }
    }
}

/// What lies behind: lines of the scale, and the ground of the time in which something was pinned. Where the theme has no ground its
/// shade is seen, in every other row: it is not to be taken for a part of the curve.
fn ground(cells: &mut Cells, (width, rows): (usize, usize), placed: &[bool], scale: &RateScale) {
    for y in 0..rows {
        let is_line = u16::try_from(y).is_ok_and(|y| scale.line_at(y).is_some());
        let is_shaded = !y.is_multiple_of(2);
        for x in 0..width {
            if !cells.is_empty(x, y) {
                continue;
            }
            let glyph = match (is_line, placed.get(x)) {
                (true, _) => GRID,
                (_, Some(true)) if is_shaded => SHADE,
                (_, Some(true)) => ' ',
                _ => continue,
            };
            cells.set(x, y, if placed.get(x) == Some(&true) { Tone::Placed } else { Tone::Line }, glyph);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_span_nothing_to_everything() {
        assert_eq!(
            [0.0, 0.001, 0.5, 1.0, 2.0].map(|share| steps(share, 2, 8)),
            [1, 1, 4, 12, 16],
            "1 is a line in its row"
        );
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
    fn what_was_pinned_is_shaded_in_every_other_row_and_hides_no_line_of_the_scale() {
        let mut cells = Cells::new(2, 8);
        cells.set(1, 7, Tone::Curve(0), '█');
        ground(&mut cells, (2, 8), &[false, true], &RateScale::of(3.6e10, 8));
        let column =
            |x: usize| (0..8).map(|y| cells.glyphs[2 * y + x].map_or('.', |(_, glyph)| glyph)).collect::<String>();
        assert_eq!((column(0), column(1)), ("┈...┈...".to_owned(), "┈░ ░┈░ █".to_owned()));
    }
}
