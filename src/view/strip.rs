//! Strips: a row of characters, one a second of a rate or one a slice of time of a thread's cores. It writes letters and
//! tones; what a node's colour is, the theme knows.

use super::Tone;
use super::canvas::Canvas;
use super::format::Interval;
use crate::derive::history::ThreadTrack;
use crate::derive::{Evidence, Metrics};
use crate::sample::{CoreId, CorePlace, Topology};
use std::collections::BTreeSet;
use std::time::Duration;

/// Eight heights.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The block for a share between 0 and 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=7")]
pub(crate) fn block(share: f64) -> char {
    BLOCKS[(share * 8.0).clamp(0.0, 7.0) as usize]
}

/// Rates, scaled to the largest of the row; unknown is a gap.
pub(crate) fn rates(canvas: &mut Canvas, x: u16, y: u16, tone: Tone, values: &[Option<f32>]) {
    let most = values.iter().flatten().copied().fold(0.0_f32, f32::max);
    for (at, value) in (x..).zip(values) {
        if let Some(value) = value {
            let share = if most > 0.0 { f64::from(value / most) } else { 0.0 };
            canvas.glyph(at, y, if *value > 0.0 { tone } else { Tone::Muted }, block(share));
        }
    }
}

/// How a core is written in one character: a letter for its node where there are several; else itself in base 36 where
/// that is enough, else a letter for the circle that tells the cores apart best.
pub(crate) struct CoreLetters<'a> {
    topology: &'a Topology,
    whole: bool,
    word: &'static str,
    circle: CircleNumber,
}

/// The number of a circle around a core.
type CircleNumber = fn(&CorePlace) -> Option<u32>;

impl<'a> CoreLetters<'a> {
    pub fn of(topology: &'a Topology) -> Self {
        let several =
            |circle: CircleNumber| topology.cores.iter().filter_map(circle).collect::<BTreeSet<u32>>().len() > 1;
        let few = topology.cores.last().is_none_or(|place| place.core < 36);
        let whole = topology.nodes <= 1 && few;
        let (word, circle): (_, CircleNumber) = if whole || topology.nodes > 1 {
            (if whole { "CORE" } else { "NODE" }, |place| place.node)
        } else if several(|place| place.llc) {
            ("LLC", |place| place.llc)
        } else {
            ("CLUSTER", |place| place.cluster)
        };
        Self { topology, whole, word, circle }
    }

    /// What a character stands for.
    pub fn word(&self) -> &'static str {
        self.word
    }

    /// How a move is marked, after the word for what moves rest on.
    pub fn mark(&self) -> &'static str {
        if self.whole { ", * = back" } else { ", capital = migrated" }
    }

    /// The circle's number, for its tone.
    fn number(&self, core: CoreId) -> u32 {
        if self.whole { core } else { self.topology.place(core).and_then(self.circle).unwrap_or(0) }
    }

    /// The character. Where several cores share one, a capital tells that the thread moved; where each has its own, it
    /// shows by itself, but for a thread that came back within the slice.
    fn glyph(&self, core: CoreId, number: u32, moved: Moved) -> char {
        match (self.whole, moved) {
            (true, Moved::Back) => '*',
            (true, _) => char::from_digit(core, 36).unwrap_or('?'),
            (false, moved) => {
                let letter = char::from(b'a' + u8::try_from(number % 26).unwrap_or(0));
                if moved == Moved::No { letter } else { letter.to_ascii_uppercase() }
            }
        }
    }

    /// Colour by node, strength by core.
    fn tone(&self, core: CoreId, number: u32, moved: Moved) -> Tone {
        let number = u8::try_from(number % 256).unwrap_or(0);
        match (moved, if self.whole { 0 } else { core % 3 }) {
            (Moved::Away | Moved::Back, _) => Tone::Moved(number),
            (Moved::No, 0) => Tone::Node(number),
            (Moved::No, 1) => Tone::NodeBright(number),
            (Moved::No, _) => Tone::NodeDim(number),
        }
    }
}

/// What a thread did within a slice of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moved {
    No,
    /// It ended on another core.
    Away,
    /// It moved, and ended where it began.
    Back,
}

/// The time that a strip of cores shows: so many slices, one a cell, each beginning at a multiple of its length, so that
/// what is over stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StripWindow {
    slice_ns: u64,
    /// Number of the slice that holds the newest instant.
    last: u64,
}

/// A slice where moves are known to the instant.
const SLICE_NS: u64 = 100_000_000;
/// A strip wider than this has room for slices of half of that.
const VERY_WIDE: u16 = 200;

impl StripWindow {
    /// Slices as fine as what is known: of a tenth of a second where moves are traced, of a tick where they are not.
    pub fn of(metrics: &Metrics, width: u16) -> Self {
        let traced = metrics.threads.iter().any(|thread| thread.evidence == Evidence::Traced);
        let slice_ns = match traced {
            true if width > VERY_WIDE => SLICE_NS / 2,
            true => SLICE_NS,
            false => metrics.own.interval_ns.max(SLICE_NS),
        };
        let newest = metrics.threads.iter().map(|thread| thread.sample.at_ns).fold(metrics.at_ns, u64::max);
        Self { slice_ns, last: newest / slice_ns }
    }

    /// Slices of this length, the last of them ending at an instant.
    pub fn until(end_ns: u64, slice_ns: u64) -> Self {
        Self { slice_ns, last: (end_ns / slice_ns).saturating_sub(1) }
    }

    /// The head of a strip of so many cells: what it shows, the time it spans, the length of a cell.
    pub fn head(self, width: u16, word: &str) -> String {
        let span = Interval(Duration::from_nanos(self.slice_ns.saturating_mul(u64::from(width))));
        let cell = Interval(Duration::from_nanos(self.slice_ns));
        let heads = [
            format!("{word}, LAST {span}, {cell} PER CELL"),
            format!("{word}, LAST {span}"),
            format!("{word}, {span}"),
            format!("LAST {span}"),
        ];
        let fits = |head: &String| head.len() <= usize::from(width);
        heads.into_iter().find(fits).unwrap_or_else(|| word.to_owned())
    }
}

/// Where a thread was, slice by slice, the newest at the right, and in which of them it moved.
pub(crate) fn cores(
    canvas: &mut Canvas,
    (x, y, width): (u16, u16, u16),
    letters: &CoreLetters<'_>,
    track: &ThreadTrack,
    window: StripWindow,
) {
    let first = (window.last + 1).saturating_sub(u64::from(width));
    let from_ns = first * window.slice_ns;
    let mut trail = track.trail(from_ns).peekable();
    let mut core = trail.next_if(|&(at_ns, _)| at_ns <= from_ns).map(|(_, core)| core);
    let mut number = core.map_or(0, |core| letters.number(core));
    for (x, slice) in (x..).zip(first..=window.last) {
        let end_ns = (slice + 1) * window.slice_ns;
        let before = core;
        let mut moved = false;
        while let Some((_, to)) = trail.next_if(|&(at_ns, _)| at_ns < end_ns) {
            moved |= core.is_some_and(|from| from != to);
            core = Some(to);
        }
        let Some(core) = core else { continue };
        let moved = match moved {
            false => Moved::No,
            true if before == Some(core) => Moved::Back,
            true => Moved::Away,
        };
        // A thread that stays needs no second look at the topology.
        if before != Some(core) {
            number = letters.number(core);
        }
        canvas.glyph(x, y, letters.tone(core, number, moved), letters.glyph(core, number, moved));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_span_nothing_to_everything() {
        assert_eq!(block(0.0), '▁', "nothing is the lowest");
        assert_eq!(block(1.0), '█', "everything is the highest");
        assert_eq!(block(0.61), '▅', "between by eighths");
    }
}
