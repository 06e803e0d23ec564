//! Lines before they have a place on the screen: of an overlay, or of pieces some of which are left out where it is narrow.

use super::Tone;
use super::canvas::cells;
use super::text::wrap_commands;

/// Pieces of one line, one after the other.
pub(super) type Line = Vec<(Tone, String)>;

/// A text broken into lines of one tone.
pub(super) fn sentences(tone: Tone, text: &str, width: u16) -> Vec<Line> {
    wrap_commands(text, width).into_iter().map(|line| vec![(tone, line)]).collect()
}

/// A piece of a line that is cut to any width; the highest rank goes first when there is no room.
pub(super) struct Piece {
    pub rank: u8,
    pub tone: Tone,
    pub text: String,
    /// Cells that its widest form takes: it comes and goes with the width of the screen, never with its figures.
    pub widest: usize,
}

impl Piece {
    /// One that never gets wider than it is.
    pub fn new(rank: u8, tone: Tone, text: String) -> Self {
        Self { rank, tone, text, widest: 0 }
    }

    /// One whose widest form takes so many cells.
    pub fn up_to(self, widest: usize) -> Self {
        Self { widest, ..self }
    }

    fn cells(&self) -> usize {
        cells(&self.text).max(self.widest)
    }
}

/// Takes pieces in the order of their rank as long as there is room, each with a gap of so many cells.
pub(super) fn fitting(mut pieces: Vec<Piece>, mut room: usize, gap: usize) -> Vec<Piece> {
    let mut by_rank: Vec<usize> = (0..pieces.len()).collect();
    by_rank.sort_by_key(|&at| pieces[at].rank);
    let mut fits = vec![false; pieces.len()];
    for at in by_rank {
        let needed = pieces[at].cells() + gap;
        fits[at] = needed <= room;
        room -= if fits[at] { needed } else { 0 };
    }
    let mut fits = fits.into_iter();
    pieces.retain(|_| fits.next() == Some(true));
    pieces
}
