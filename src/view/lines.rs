//! Lines of an overlay, before they have a place on the screen.

use super::Tone;
use super::text::wrap;

/// Pieces of one line, one after the other.
pub(super) type Line = Vec<(Tone, String)>;

/// A text broken into lines of one tone.
pub(super) fn sentences(tone: Tone, text: &str, width: u16) -> Vec<Line> {
    wrap(text, width).into_iter().map(|line| vec![(tone, line)]).collect()
}
