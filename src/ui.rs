//! A prepared [`View`] → cells of a terminal, and nothing else: it measures nothing, formats nothing, knows no state. The
//! theme decides how a tone looks; without UTF-8 only ASCII is left.

mod ascii;
mod grid;
mod painter;
mod palette;
mod theme;

use crate::view::View;
use grid::Grid;
use ratatui::buffer::Buffer;

pub use painter::Painter;
pub use palette::{NAMED, Palette, is_light};
pub use ratatui::style::Color;
pub use theme::{Colors, Theme, reported_dark};

/// Paints the frame into a buffer of its size.
pub fn paint(view: &View, theme: Theme, buffer: &mut Buffer) {
    let mut grid = Grid::new(buffer.area.width, buffer.area.height);
    grid.paint(view, theme, |_| true);
    for y in 0..grid.size().1 {
        let cells = &mut buffer.content[y * grid.size().0..];
        cells.iter_mut().zip(grid.row(y)).for_each(|(cell, glyph)| *cell = glyph.cell(theme));
    }
}

/// The symbols of a painted buffer, one line a row, without trailing blanks.
#[must_use]
pub fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width).max(1);
    let mut out = String::with_capacity(buffer.content.len());
    for row in buffer.content.chunks(width) {
        let mut hidden = 0;
        for cell in row {
            if hidden == 0 {
                out.push_str(cell.symbol());
                hidden = grid::wide(cell.symbol().chars().next().unwrap_or(' '));
            } else {
                hidden -= 1;
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}
