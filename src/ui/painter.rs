//! The frame on the terminal, and the least that makes it the next one. A row whose text, tones and selection are those
//! of the row shown is not touched: most of a screen stands still from tick to tick, and blanking, painting and
//! comparing every cell cost more than everything else that the screen thread does (0.25 of 0.6 ms at 200×60).

use super::Theme;
use super::grid::{Glyph, Grid};
use crate::view::View;
use foldhash::quality::FixedState;
use ratatui::backend::Backend;
use ratatui::buffer::Cell;
use std::hash::{BuildHasher, Hash, Hasher};

/// What the terminal shows.
#[derive(Debug, Default)]
pub struct Painter {
    /// One a row; equal fingerprints are equal rows.
    fingerprints: Vec<u64>,
    shown: Grid,
    next: Grid,
}

impl Painter {
    /// Makes the terminal show the frame. True when there was anything to change.
    ///
    /// # Errors
    /// The terminal cannot be written to.
    pub fn show<B: Backend>(&mut self, view: &View, theme: Theme, terminal: &mut B) -> Result<bool, B::Error> {
        if self.shown.size() != (usize::from(view.width), usize::from(view.height)) {
            terminal.clear()?;
            let blank = || Grid::new(view.width, view.height);
            *self = Self { fingerprints: Vec::new(), shown: blank(), next: blank() };
        }
        let fingerprints = fingerprints(view);
        let is_new = |row: usize| self.fingerprints.get(row).is_none_or(|shown| *shown != fingerprints[row]);
        let changed: Vec<usize> = (0..fingerprints.len()).filter(|&row| is_new(row)).collect();
        if changed.is_empty() {
            return Ok(false);
        }
        self.next.paint(view, theme, is_new);
        let mut updates: Vec<(u16, u16, Cell)> = Vec::new();
        for &y in &changed {
            let row = u16::try_from(y).unwrap_or(u16::MAX);
            let differing = differing(self.shown.row(y), self.next.row(y));
            updates.extend(differing.map(|(x, glyph)| (x, row, glyph.cell(theme))));
            self.shown.take_row(y, &self.next);
        }
        terminal.draw(updates.iter().map(|(x, y, cell)| (*x, *y, cell)))?;
        terminal.flush()?;
        self.fingerprints = fingerprints;
        Ok(true)
    }

    /// Forgets what the terminal shows, so that the next frame is painted whole.
    pub fn forget(&mut self) {
        self.shown = Grid::default();
    }
}

/// One number a row, of everything that is painted on it in the order of painting.
fn fingerprints(view: &View) -> Vec<u64> {
    let mut rows = vec![FixedState::default().build_hasher(); usize::from(view.height)];
    for (layer, canvas) in view.layers().into_iter().enumerate() {
        let area = canvas.area;
        if canvas.opaque {
            for hasher in rows.iter_mut().skip(usize::from(area.y)).take(usize::from(area.height)) {
                (layer, area.x, area.width).hash(hasher);
            }
        }
        for span in canvas.spans() {
            if let Some(hasher) = rows.get_mut(usize::from(span.y)) {
                (span.x, span.tone, span.text).hash(hasher);
            }
        }
        for selected in &canvas.selected {
            if let Some(hasher) = rows.get_mut(usize::from(selected.y)) {
                ("selected", selected.x, selected.width).hash(hasher);
            }
        }
    }
    rows.iter().map(Hasher::finish).collect()
}

/// The cells of a row to send. In a row with a wide character, now or before, that is every cell: what a terminal does
/// to the other half of an overwritten wide character differs from one to the next.
fn differing<'a>(shown: &'a [Glyph], next: &'a [Glyph]) -> impl Iterator<Item = (u16, Glyph)> {
    let any_wide = shown.iter().chain(next).any(|glyph| glyph.wide() > 0);
    let mut hidden = 0;
    (0u16..).zip(shown.iter().zip(next)).filter_map(move |(x, (shown, next))| {
        if hidden > 0 {
            hidden -= 1;
            return None;
        }
        hidden = if any_wide { next.wide() } else { 0 };
        (any_wide || shown != next).then_some((x, *next))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Colors;
    use super::*;
    use ratatui::backend::TestBackend;

    /// A frame of one pane with these rows.
    fn view(rows: &[&str]) -> View {
        View::of_rows(20, rows)
    }

    fn shown(painter: &mut Painter, terminal: &mut TestBackend, rows: &[&str]) -> Vec<String> {
        let theme = Theme { colors: Colors::Terminal, utf8: true };
        painter.show(&view(rows), theme, terminal).expect("a test terminal takes everything");
        super::super::text(terminal.buffer()).lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_terminal_shows_each_frame_whatever_was_there_before() {
        let (mut painter, mut terminal) = (Painter::default(), TestBackend::new(20, 3));
        for rows in [["one", "two", "three"], ["one", "", "four"], ["a", "网络0", "x"], ["a", "ab", "x"], ["", "", ""]]
        {
            assert_eq!(shown(&mut painter, &mut terminal, &rows), rows, "the rows are those of the frame");
        }
    }

    #[test]
    fn a_frame_where_nothing_changed_draws_nothing() {
        let (mut painter, mut terminal) = (Painter::default(), TestBackend::new(20, 2));
        let theme = Theme { colors: Colors::Terminal, utf8: true };
        let same = view(&["one", "two"]);
        assert_eq!(painter.show(&same, theme, &mut terminal), Ok(true), "the first frame is drawn");
        assert_eq!(painter.show(&same, theme, &mut terminal), Ok(false), "the same again is not");
        painter.forget();
        assert_eq!(painter.show(&same, theme, &mut terminal), Ok(true), "unless the terminal lost it");
    }
}
