//! What happened while the rate ran, in a row of its own below the curve, so that nothing of that is hidden; and what its signs mean.

use super::MARGIN;
use super::axis::{Axis, RateSpan};
use crate::view::Tone;
use crate::view::canvas::{self, Canvas};
use std::collections::BTreeSet;

/// Where nothing happened, so that the row is seen to be one.
const RAIL: char = '┈';

/// A sign a cell: packets that were lost, else the farthest migration.
pub(super) fn row(axis: &Axis<'_>, canvas: &mut Canvas, at: (u16, u16)) {
    for cell in 0..axis.cells {
        canvas.glyph(at.0 + cell, at.1, Tone::Line, RAIL);
    }
    signs(axis, canvas, at);
}

/// The signs alone, over what is there.
pub(super) fn signs(axis: &Axis<'_>, canvas: &mut Canvas, (x, y): (u16, u16)) {
    for cell in 0..axis.cells {
        if let Some((tone, glyph)) = axis.lost(cell).or_else(|| axis.moves(cell)) {
            canvas.glyph(x + cell, y, tone, glyph);
        }
    }
}

/// A cell whose lowest rate is below this part of its highest is seen to be shaded.
const VARIES: f64 = 0.95;

/// Cells beside what was done there that say what it was.
const DONE: usize = 14;

/// What the signs of the graph mean that are in it: at the right end of the axis, or of its widest part between what was done there;
/// between so many cells from its left and so many from its right.
pub(super) fn legend(axis: &Axis<'_>, canvas: &mut Canvas, (y, left, right): (u16, usize, usize), placed: &[bool]) {
    let cells = || 0..axis.cells;
    let migrations: BTreeSet<char> = cells().filter_map(|at| Some(axis.moves(at)?.1)).collect();
    let mut all = Vec::new();
    all.extend(placed.contains(&true).then_some("░ pinned"));
    let one = migrations.first().filter(|_| migrations.len() == 1);
    all.extend(match one {
        None => (!migrations.is_empty()).then_some("● • · migrations, far to near"),
        Some('●') => Some("● migration"),
        Some('•') => Some("• migration"),
        Some(_) => Some("· migration"),
    });
    all.extend(cells().find_map(|at| axis.lost(at)).map(|_| "! loss"));
    let varies = |pair: &&[Option<RateSpan>]| {
        let high = pair.iter().flatten().map(|span| span.high).fold(0.0, f64::max);
        pair.iter().flatten().any(|span| span.low < VARIES * high)
    };
    all.extend(axis.rates.chunks_exact(2).find(varies).map(|_| "▒ lowest to highest"));
    let end = usize::from(axis.cells).saturating_sub(right + 1);
    let done = axis.timeline.incidents.iter().filter_map(|incident| axis.cell(incident.at_ns)).map(usize::from);
    let done: Vec<usize> = done.collect();
    let begins = std::iter::once(left).chain(done.iter().map(|at| at + DONE));
    let parts = begins.zip(done.iter().copied().chain([end]));
    let parts = parts.map(|(from, to)| (to.min(end).saturating_sub(from), to.min(end)));
    let Some((room, to)) = parts.max_by_key(|&(room, _)| room) else { return };
    let width = |all: &[&str]| all.iter().map(|text| canvas::cells(text) + 2).sum::<usize>();
    while width(&all) > room {
        if all.pop().is_none() {
            return;
        }
    }
    let at = MARGIN + u16::try_from(to.saturating_sub(width(&all))).unwrap_or(0);
    if !all.is_empty() {
        let text = format!(" {} ", all.join("  "));
        let range = text.chars().position(|sign| sign == '▒').and_then(|x| u16::try_from(x).ok());
        canvas.left(at, y, axis.cells, Tone::Muted, text);
        // As it is in the graph.
        if let Some(x) = range {
            canvas.glyph(at + x, y, Tone::CurveDim, '▒');
        }
    }
}
