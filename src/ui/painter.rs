//! The frame on the terminal, and the least that makes it the next one. A row whose text, tones and selection are those
//! of the row shown is not touched: most of a screen stands still from tick to tick, and blanking, painting and
//! comparing every cell cost more than everything else that the screen thread does (0.25 of 0.6 ms at 200×60).

use super::{Theme, ascii, paint_rows, wide};
use crate::view::View;
use foldhash::quality::FixedState;
use ratatui::backend::Backend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use std::hash::{BuildHasher, Hash, Hasher};

/// What the terminal shows.
#[derive(Debug, Default)]
pub struct Painter {
    /// One a row; equal fingerprints are equal rows.
    fingerprints: Vec<u64>,
    shown: Buffer,
    next: Buffer,
}

impl Painter {
    /// Makes the terminal show the frame. True when there was anything to change.
    ///
    /// # Errors
    /// The terminal cannot be written to.
    pub fn show<B: Backend>(&mut self, view: &View, theme: Theme, terminal: &mut B) -> Result<bool, B::Error> {
        let area = Rect::new(0, 0, view.width, view.height);
        if self.shown.area != area {
            terminal.clear()?;
            *self = Self { fingerprints: Vec::new(), shown: Buffer::empty(area), next: Buffer::empty(area) };
        }
        let fingerprints = fingerprints(view);
        let changed: Vec<bool> = (0..fingerprints.len())
            .map(|row| self.fingerprints.get(row).is_none_or(|shown| *shown != fingerprints[row]))
            .collect();
        if !changed.contains(&true) {
            return Ok(false);
        }
        self.repaint(view, theme, &changed);
        let updates = changed.iter().zip(0u16..).filter(|(changed, _)| **changed).flat_map(|(_, y)| {
            let (shown, next) = (row(&self.shown, y), row(&self.next, y));
            differing(shown, next).map(move |(x, cell)| (x, y, cell))
        });
        terminal.draw(updates)?;
        terminal.flush()?;
        for (y, _) in (0u16..).zip(&changed).filter(|(_, changed)| **changed) {
            let range = range(&self.shown, y);
            // What is in `next` after that is blanked before it is painted again.
            self.shown.content[range.clone()].swap_with_slice(&mut self.next.content[range]);
        }
        self.fingerprints = fingerprints;
        Ok(true)
    }

    /// Forgets what the terminal shows, so that the next frame is painted whole.
    pub fn forget(&mut self) {
        self.shown = Buffer::default();
    }

    fn repaint(&mut self, view: &View, theme: Theme, changed: &[bool]) {
        for (y, _) in (0u16..).zip(changed).filter(|(_, changed)| **changed) {
            let range = range(&self.next, y);
            self.next.content[range].iter_mut().for_each(Cell::reset);
        }
        paint_rows(view, theme, &mut self.next, |y| changed.get(usize::from(y)) == Some(&true));
        if !theme.utf8 {
            for (y, _) in (0u16..).zip(changed).filter(|(_, changed)| **changed) {
                let range = range(&self.next, y);
                ascii::translate(&mut self.next.content[range]);
            }
        }
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

fn range(buffer: &Buffer, y: u16) -> std::ops::Range<usize> {
    let width = usize::from(buffer.area.width);
    usize::from(y) * width..(usize::from(y) + 1) * width
}

fn row(buffer: &Buffer, y: u16) -> &[Cell] {
    &buffer.content[range(buffer, y)]
}

/// The cells of a row to send. In a row with a wide character, now or before, that is every cell: what a terminal does
/// to the other half of an overwritten wide character differs from one to the next.
fn differing<'a>(shown: &'a [Cell], next: &'a [Cell]) -> impl Iterator<Item = (u16, &'a Cell)> {
    let any_wide = shown.iter().chain(next).any(|cell| wide(cell.symbol()) > 0);
    let mut hidden = 0;
    (0u16..).zip(shown.iter().zip(next)).filter_map(move |(x, (shown, next))| {
        if hidden > 0 {
            hidden -= 1;
            return None;
        }
        hidden = if any_wide { wide(next.symbol()) } else { 0 };
        (any_wide || shown != next).then_some((x, next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::backend::TestBackend;

    /// A frame of one pane with these rows.
    fn view(rows: &[&str]) -> View {
        View::of_rows(20, rows)
    }

    fn shown(painter: &mut Painter, terminal: &mut TestBackend, rows: &[&str]) -> Vec<String> {
        let theme = Theme { color: true, utf8: true };
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
        let theme = Theme { color: true, utf8: true };
        let same = view(&["one", "two"]);
        assert_eq!(painter.show(&same, theme, &mut terminal), Ok(true), "the first frame is drawn");
        assert_eq!(painter.show(&same, theme, &mut terminal), Ok(false), "the same again is not");
        painter.forget();
        assert_eq!(painter.show(&same, theme, &mut terminal), Ok(true), "unless the terminal lost it");
    }
}
