//! What happened while the rate ran, in a row of its own below the curve, so that nothing of that is hidden; and what its signs mean.

use super::axis::{Axis, RateSpan};
use super::curve::{LOST, RANGE, SHADE};
use super::{Drawn, LOSS, MARGIN};
use crate::view::Tone;
use crate::view::canvas::{self, Canvas};
use crate::view::strip::StripSigns;
use std::collections::BTreeSet;

/// Where nothing happened, so that the row is seen to be one.
const RAIL: char = '┈';

/// A sign a cell: packets that were lost, else the farthest migration, else a dip.
pub(super) fn row(axis: &Axis<'_>, canvas: &mut Canvas, at: (u16, u16)) {
    for cell in 0..axis.cells {
        canvas.glyph(at.0 + cell, at.1, Tone::Line, RAIL);
    }
    signs(axis, canvas, at);
}

/// The signs alone, over what is there; none before the curve starts.
pub(super) fn signs(axis: &Axis<'_>, canvas: &mut Canvas, (x, y): (u16, u16)) {
    for cell in axis.cell(axis.begun_ns()).unwrap_or(0)..axis.cells {
        if let Some((tone, glyph)) = axis.lost(cell).or_else(|| axis.moves(cell)).or_else(|| axis.dips(cell)) {
            canvas.glyph(x + cell, y, tone, glyph);
        }
    }
}

/// A cell whose lowest rate is below this part of its highest is seen to be shaded.
const VARIES: f64 = 0.95;

/// Cells beside what was done there that say what it was.
const DONE: usize = 14;

/// Migrations of several distances.
const MIGRATIONS: &str = "● • ·";

/// A sign of the graph and what it means, in words and in a few letters; it is drawn as it is in the graph.
struct SignMeaning {
    sign: String,
    tone: Tone,
    words: [String; 2],
}

impl SignMeaning {
    fn new(sign: impl Into<String>, tone: Tone, words: [&str; 2]) -> Self {
        Self { sign: sign.into(), tone, words: words.map(str::to_owned) }
    }

    /// In words (2), in a few letters, or not at all.
    fn words(&self, form: usize) -> Option<&str> {
        let [words, brief] = &self.words;
        [None, Some(brief.as_str()), Some(words.as_str())].into_iter().nth(form).flatten()
    }

    /// Cells that it takes so, with a blank at each side.
    fn cells(&self, form: usize) -> usize {
        self.words(form).map_or(0, |words| canvas::cells(&self.sign) + canvas::cells(words) + 3)
    }
}

/// What the signs of the graph and its lanes mean that are in it: at the right end of the axis, or of its widest part between what was
/// done there; between so many cells from its left and so many from its right. With less room what is needed least is left out, the
/// others are in as many words as there is room for.
pub(super) fn legend(axis: &Axis<'_>, canvas: &mut Canvas, (y, left, right): (u16, usize, usize), drawn: &Drawn) {
    let mut all = signs_of_graph(axis, drawn);
    let of_graph = all.len();
    all.extend(signs_of_lanes(drawn));
    let end = usize::from(axis.cells).saturating_sub(right + 1);
    let done = axis.timeline.incidents.iter().filter_map(|incident| axis.cell(incident.at_ns)).map(usize::from);
    let done: Vec<usize> = done.collect();
    let begins = std::iter::once(left).chain(done.iter().map(|at| at + DONE));
    let parts = begins.zip(done.iter().copied().chain([end]));
    let parts = parts.map(|(from, to)| (to.min(end).saturating_sub(from), to.min(end)));
    let Some((room, to)) = parts.max_by_key(|&(room, _)| room) else { return };
    let forms = forms(&all, of_graph, room);
    let used: usize = all.iter().zip(&forms).map(|(one, &form)| one.cells(form)).sum();
    let mut x = MARGIN + u16::try_from(to.saturating_sub(used)).unwrap_or(u16::MAX);
    let mut write = |tone, text: &str| x += canvas.left(x, y, axis.cells, tone, text);
    for (one, words) in all.iter().zip(forms).filter_map(|(one, form)| Some((one, one.words(form)?))) {
        write(Tone::Muted, " ");
        write(one.tone, &one.sign);
        write(Tone::Muted, " ");
        write(Tone::Muted, words);
        write(Tone::Muted, " ");
    }
}

/// For each sign whether it is left out (0), in a few letters or in words. Those of the graph come first, then how far migrations were,
/// then those of the lanes.
fn forms(all: &[SignMeaning], of_graph: usize, room: usize) -> Vec<usize> {
    let migrations = all.iter().position(|one| one.sign == MIGRATIONS);
    let first = (0..of_graph).map(|at| (at, 1)).chain(migrations.map(|at| (at, 2)));
    let order = first.chain((of_graph..all.len()).map(|at| (at, 1))).chain((0..all.len()).map(|at| (at, 2)));
    let (mut forms, mut used) = (vec![0; all.len()], 0);
    for (at, form) in order {
        let with = used + all[at].cells(form) - all[at].cells(forms[at]);
        if with <= room {
            (used, forms[at]) = (with, form);
        }
    }
    forms
}

fn signs_of_graph(axis: &Axis<'_>, drawn: &Drawn) -> Vec<SignMeaning> {
    let cells = || 0..axis.cells;
    let mut all = Vec::new();
    let mut tell = |sign: &str, tone, words| all.push(SignMeaning::new(sign, tone, words));
    if drawn.placed.contains(&true) {
        tell(&SHADE.to_string(), Tone::Placed, ["pinned"; 2]);
    }
    let migrations: BTreeSet<char> = cells().filter_map(|at| Some(axis.moves(at)?.1)).collect();
    match (migrations.len(), migrations.first()) {
        (0, _) => {}
        (1, Some('●')) => tell("●", Tone::Warning, ["migration"; 2]),
        (1, Some('•')) => tell("•", Tone::Warning, ["migration"; 2]),
        (1, _) => tell("·", Tone::Warning, ["migration"; 2]),
        _ => tell(MIGRATIONS, Tone::Warning, ["migrations, far to near", "migrations"]),
    }
    // Where it is drawn how much was lost, that says what the sign means as well.
    if !drawn.is_dots && axis.lost.iter().any(Option::is_some) {
        tell(&LOST.to_string(), Tone::Lost, ["lost"; 2]);
    } else if cells().any(|at| axis.lost(at).is_some()) {
        tell(&LOSS.to_string(), Tone::Bad, ["loss"; 2]);
    }
    let is_dip = |at| axis.dips(at).is_some() && axis.lost(at).is_none() && axis.moves(at).is_none();
    if cells().any(is_dip) && !drawn.has_dip {
        tell("▾", Tone::Warning, ["a moment below half the median", "dip"]);
    }
    let varies = |pair: &[Option<RateSpan>]| {
        let high = pair.iter().flatten().map(|span| span.high).fold(0.0, f64::max);
        pair.iter().flatten().any(|span| span.low < VARIES * high)
    };
    let (range, full) = if drawn.is_dots { ('⠁', "⣿") } else { (RANGE, "█") };
    let mut drawn_so = axis.rates.chunks_exact(2).zip(&axis.lost).filter(|(_, lost)| drawn.is_dots || lost.is_none());
    if drawn_so.any(|(pair, _)| varies(pair)) {
        let words = if drawn.is_dots {
            ["above the lowest: the highest", "highest"]
        } else {
            ["range, lowest to highest", "range"]
        };
        tell(&range.to_string(), if drawn.is_dots { Tone::Curve(0) } else { Tone::CurveDim }, words);
    }
    if drawn.has_dip {
        tell(full, Tone::Dip, ["dip, below half the median", "dip"]);
    }
    all
}

/// What stands in the lanes of the threads.
fn signs_of_lanes(drawn: &Drawn) -> Vec<SignMeaning> {
    let StripSigns { digits, returned } = drawn.lanes;
    let mut all = Vec::new();
    if digits {
        all.push(SignMeaning::new("2▄▄", Tone::Muted, drawn.digits));
    }
    if returned {
        all.push(SignMeaning::new("*", Tone::Muted, ["and back at once", "and back"]));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_less_room_the_lanes_lose_their_words_first() {
        let sign = |sign: &str, words| SignMeaning::new(sign, Tone::Muted, words);
        let all = [
            sign(MIGRATIONS, ["migrations, far to near", "migrations"]),
            sign("▒", ["range, lowest to highest", "range"]),
            sign("2▄▄", ["migrated to NUMA node 2", "node 2"]),
        ];
        let told = |room| {
            let words = all.iter().zip(forms(&all, 2, room)).filter_map(|(one, form)| one.words(form));
            words.collect::<Vec<_>>().join("; ")
        };
        assert_eq!(told(90), "migrations, far to near; range, lowest to highest; migrated to NUMA node 2");
        assert_eq!(told(60), "migrations, far to near; range; node 2");
        assert_eq!(told(45), "migrations, far to near; range");
        assert_eq!((told(30), told(12), told(3)), ("migrations; range".to_owned(), "range".to_owned(), String::new()));
    }
}
