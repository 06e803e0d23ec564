//! A prepared [`View`] → cells of a terminal buffer, and nothing else: it measures nothing, formats nothing, knows no
//! state. The theme decides how a tone looks; without UTF-8 a last pass leaves ASCII only.

mod ascii;
mod painter;
mod theme;

use crate::view::{Area, Canvas, View};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Position;
use unicode_width::UnicodeWidthChar;

pub use painter::Painter;
pub use theme::Theme;

/// Paints the frame into a buffer that is blank.
pub fn paint(view: &View, theme: Theme, buffer: &mut Buffer) {
    paint_rows(view, theme, buffer, |_| true);
    if !theme.utf8 {
        ascii::translate(&mut buffer.content);
    }
}

/// The same for some rows, still without the pass to ASCII.
fn paint_rows(view: &View, theme: Theme, buffer: &mut Buffer, wanted: impl Fn(u16) -> bool) {
    for canvas in view.layers() {
        paint_canvas(canvas, theme, buffer, &wanted);
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
                hidden = wide(cell.symbol());
            } else {
                hidden -= 1;
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

fn paint_canvas(canvas: &Canvas, theme: Theme, buffer: &mut Buffer, wanted: impl Fn(u16) -> bool) {
    if canvas.opaque {
        clear(canvas.area, buffer, &wanted);
    }
    for span in canvas.spans().filter(|span| wanted(span.y)) {
        let style = theme.style(span.tone);
        let Some(row) = row(buffer, span.y, span.x) else { continue };
        let mut cells = row.iter_mut();
        for c in span.text.chars() {
            let Some(cell) = cells.next() else { break };
            cell.set_char(c).set_style(style);
            if !c.is_ascii()
                && c.width() == Some(2)
                && let Some(hidden) = cells.next()
            {
                hidden.reset();
            }
        }
    }
    for area in canvas.selected.iter().filter(|area| wanted(area.y)) {
        let style = theme.selected();
        let Some(row) = row(buffer, area.y, area.x) else { continue };
        for cell in row.iter_mut().take(usize::from(area.width)) {
            cell.set_style(style);
        }
    }
}

/// The cells of a row from a column on; none outside the buffer.
fn row(buffer: &mut Buffer, y: u16, x: u16) -> Option<&mut [Cell]> {
    let Buffer { area, content } = buffer;
    if x >= area.width || y >= area.height {
        return None;
    }
    let (width, y, x) = (usize::from(area.width), usize::from(y), usize::from(x));
    content.get_mut(y * width + x..(y + 1) * width)
}

/// Blanks an area; a wide character that reaches into it from the left goes with it.
fn clear(area: Area, buffer: &mut Buffer, wanted: impl Fn(u16) -> bool) {
    for y in (area.y..area.y + area.height).filter(|&y| wanted(y)) {
        if let Some(before) = area.x.checked_sub(1).and_then(|x| buffer.cell_mut(Position::new(x, y)))
            && wide(before.symbol()) > 0
        {
            before.reset();
        }
        if let Some(row) = row(buffer, y, area.x) {
            row.iter_mut().take(usize::from(area.width)).for_each(Cell::reset);
        }
    }
}

/// Cells that a symbol takes beyond its own.
fn wide(symbol: &str) -> usize {
    if symbol.len() <= 1 {
        return 0;
    }
    let width = |c: char| if c.is_ascii() { 1 } else { c.width().unwrap_or(1) };
    symbol.chars().next().map_or(0, |c| width(c).saturating_sub(1))
}
