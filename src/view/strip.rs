//! Strips: a row of characters, one a second or one a sample.

use super::Tone;
use super::canvas::Canvas;
use crate::derive::history::ThreadTrack;
use crate::sample::{CoreId, Topology};
use std::collections::BTreeSet;

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

/// How a core is written in one character: itself in base 36 where that is enough, else a letter for its node (or the
/// circle that tells the cores apart best).
pub(crate) struct CoreLetters<'a> {
    topology: &'a Topology,
    whole: bool,
    circle: fn(&crate::sample::CorePlace) -> Option<u32>,
}

impl<'a> CoreLetters<'a> {
    pub fn of(topology: &'a Topology) -> Self {
        let several = |circle: fn(&crate::sample::CorePlace) -> Option<u32>| {
            topology.cores.iter().filter_map(circle).collect::<BTreeSet<u32>>().len() > 1
        };
        let circle = if topology.nodes > 1 {
            |place: &crate::sample::CorePlace| place.node
        } else if several(|place| place.llc) {
            |place: &crate::sample::CorePlace| place.llc
        } else {
            |place: &crate::sample::CorePlace| place.cluster
        };
        Self { topology, whole: topology.cores.last().is_none_or(|place| place.core < 36), circle }
    }

    /// The circle's number, for its tone.
    fn number(&self, core: CoreId) -> u32 {
        self.topology.place(core).and_then(self.circle).unwrap_or(0)
    }

    /// The character; where several cores share one, a capital tells that the thread has just come to this core.
    fn glyph(&self, core: CoreId, moved: bool) -> char {
        if self.whole {
            return char::from_digit(core, 36).unwrap_or('?');
        }
        let letter = char::from(b'a' + u8::try_from(self.number(core) % 26).unwrap_or(0));
        if moved { letter.to_ascii_uppercase() } else { letter }
    }

    fn tone(&self, core: CoreId, moved: bool) -> Tone {
        let number = if self.whole { core } else { self.number(core) };
        if moved { Tone::Accent } else { Tone::Node(u8::try_from(number % 256).unwrap_or(0)) }
    }
}

/// Where a thread was, the newest at the right; the newest `behind` samples are left out.
pub(crate) fn cores(
    canvas: &mut Canvas,
    (x, y, width): (u16, u16, u16),
    letters: &CoreLetters<'_>,
    track: &ThreadTrack,
    behind: usize,
) {
    let end = track.cores.len().saturating_sub(behind);
    let start = end.saturating_sub(usize::from(width));
    let mut before = start.checked_sub(1).map(|at| track.cores[at]);
    let first = x + width - u16::try_from(end - start).unwrap_or(width);
    for (at, &core) in (first..).zip(track.cores.range(start..end)) {
        let moved = before.is_some_and(|before| before != core);
        canvas.glyph(at, y, letters.tone(core, moved), letters.glyph(core, moved));
        before = Some(core);
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
