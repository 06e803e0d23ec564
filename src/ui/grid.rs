//! The frame as cells of a character and a tone, eight bytes each: what is compared and kept from frame to frame. A cell of
//! ratatui is six times as large and owns its text; only those that change are made into one.

use super::palette::is_fixed;
use super::{Colors, Theme, ascii};
use crate::view::{Area, Canvas, Tone, View};
use ratatui::buffer::Cell;
use ratatui::style::Modifier;
use std::ops::Range;
use unicode_width::UnicodeWidthChar;

/// One cell. The right half of a wide character is blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Glyph {
    symbol: char,
    tone: Tone,
    selected: bool,
}

const BLANK: Glyph = Glyph { symbol: ' ', tone: Tone::Normal, selected: false };

impl Glyph {
    /// The cell for the terminal.
    pub fn cell(self, theme: Theme) -> Cell {
        let mut cell = Cell::EMPTY;
        let Self { tone, symbol, .. } = self.in_theme(theme);
        let style = theme.style(tone);
        cell.set_char(symbol).set_style(style);
        // A full block of many fonts is smaller than its cell, and a wall of them has seams; the ground behind has none.
        let is_solid = match symbol {
            '█' => !style.add_modifier.contains(Modifier::REVERSED),
            // A shade of its own needs no pattern.
            '▒' => matches!(tone, Tone::CurveDim | Tone::Lost) && style.fg.is_some_and(is_fixed),
            _ => false,
        };
        if let Some(color) = style.fg.filter(|_| is_solid) {
            cell.set_bg(color);
        }
        if self.selected {
            cell.set_style(theme.selected());
        }
        cell
    }

    /// What stands there: a shade that a ground shows anyway is blank, and a dip that no colour shows has a pattern of its own.
    fn in_theme(self, theme: Theme) -> Self {
        let is_plain = theme.colors == Colors::None;
        let symbol = match (self.tone, self.symbol) {
            (Tone::Lost | Tone::LostEdge(_), _) => return self.of_lost(theme),
            (Tone::Placed, '░' | ':') if theme.style(Tone::Placed).bg.is_some() => ' ',
            (Tone::Dip, '█') if is_plain => '▓',
            (Tone::Dip, '⣿') if is_plain => '⡪',
            (Tone::Dip, '#') if is_plain => '%',
            (_, symbol) => symbol,
        };
        Self { symbol, ..self }
    }

    /// What is lost is a ground that a part of a cell can be of; where there is none, whole cells have a pattern, which is not that of
    /// how far a rate reaches.
    fn of_lost(self, theme: Theme) -> Self {
        let has_ground = theme.style(Tone::LostEdge(0)).bg.is_some() && !self.symbol.is_ascii();
        if has_ground {
            return self;
        }
        let (full, pattern) = match (self.symbol.is_ascii(), theme.colors == Colors::None) {
            (false, false) => ('█', '▒'),
            (false, true) => ('█', '!'),
            (true, false) => ('#', '='),
            (true, true) => ('#', '!'),
        };
        let is_most = matches!(self.symbol, '▄' | '▅' | '▆' | '▇' | '█' | '▒' | '=' | '+' | '*' | '%' | '#');
        let (tone, symbol) = match self.tone {
            Tone::LostEdge(depth) if is_most => (Tone::Curve(depth), full),
            Tone::LostEdge(_) => (Tone::Lost, pattern),
            tone => (tone, if is_most { pattern } else { ' ' }),
        };
        Self { symbol, tone, ..self }
    }

    /// Cells that it takes beyond its own.
    pub fn wide(self) -> usize {
        wide(self.symbol)
    }
}

/// Cells that a character takes beyond its own.
pub(super) fn wide(symbol: char) -> usize {
    if symbol.is_ascii() { 0 } else { symbol.width().unwrap_or(1).saturating_sub(1) }
}

/// The cells of a screen, row after row.
#[derive(Debug, Default)]
pub(super) struct Grid {
    width: usize,
    cells: Vec<Glyph>,
}

impl Grid {
    /// Blank cells.
    pub fn new(width: u16, height: u16) -> Self {
        let width = usize::from(width);
        Self { width, cells: vec![BLANK; width * usize::from(height)] }
    }

    /// How many columns and rows it has.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.cells.len().checked_div(self.width).unwrap_or(0))
    }

    /// The cells of a row.
    pub fn row(&self, y: usize) -> &[Glyph] {
        &self.cells[self.range(y)]
    }

    /// Paints these rows of a frame anew.
    pub fn paint(&mut self, view: &View, theme: Theme, wanted: impl Fn(usize) -> bool) {
        for y in (0..self.size().1).filter(|&y| wanted(y)) {
            let range = self.range(y);
            self.cells[range].fill(BLANK);
        }
        for canvas in view.layers() {
            self.paint_canvas(canvas, |y| wanted(usize::from(y)));
        }
        if !theme.utf8 {
            for y in (0..self.size().1).filter(|&y| wanted(y)) {
                let range = self.range(y);
                self.cells[range].iter_mut().for_each(|glyph| glyph.symbol = ascii::plain(glyph.symbol));
            }
        }
    }

    /// Takes over a row of another grid of the same size.
    pub fn take_row(&mut self, y: usize, from: &Self) {
        let range = self.range(y);
        self.cells[range.clone()].copy_from_slice(&from.cells[range]);
    }

    fn range(&self, y: usize) -> Range<usize> {
        y * self.width..(y + 1) * self.width
    }

    fn paint_canvas(&mut self, canvas: &Canvas, wanted: impl Fn(u16) -> bool) {
        if canvas.opaque {
            // A column of air on each side, where the frame of the screen is not: no letter of what lies below stands alone there.
            let Area { x, width, .. } = canvas.area;
            let (left, right) = (u16::from(x > 1), u16::from(usize::from(x + width) + 1 < self.width));
            self.clear(Area { x: x - left, width: left + width + right, ..canvas.area }, &wanted);
        }
        for span in canvas.spans().filter(|span| wanted(span.y)) {
            let mut cells = self.from(span.x, span.y).iter_mut();
            for symbol in span.text.chars() {
                let Some(cell) = cells.next() else { break };
                *cell = Glyph { symbol, tone: span.tone, selected: false };
                if cell.wide() > 0
                    && let Some(hidden) = cells.next()
                {
                    *hidden = BLANK;
                }
            }
        }
        for area in canvas.selected.iter().filter(|area| wanted(area.y)) {
            let cells = self.from(area.x, area.y).iter_mut().take(usize::from(area.width));
            cells.for_each(|cell| cell.selected = true);
        }
    }

    /// The cells of a row from a column on; none outside of the screen.
    fn from(&mut self, x: u16, y: u16) -> &mut [Glyph] {
        let (x, y) = (usize::from(x), usize::from(y));
        if x >= self.width {
            &mut []
        } else {
            self.cells.get_mut(y * self.width + x..(y + 1) * self.width).unwrap_or(&mut [])
        }
    }

    /// Blanks an area; a wide character that reaches into it from the left goes with it.
    fn clear(&mut self, area: Area, wanted: impl Fn(u16) -> bool) {
        for y in (area.y..area.y + area.height).filter(|&y| wanted(y)) {
            if let Some(before) = area.x.checked_sub(1).and_then(|x| self.from(x, y).first_mut())
                && before.wide() > 0
            {
                *before = BLANK;
            }
            self.from(area.x, y).iter_mut().take(usize::from(area.width)).for_each(|cell| *cell = BLANK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::palette::DARK;
    use super::*;

    #[test]
    fn what_no_colour_tells_a_shade_does() {
        let shown = |tone, symbol, theme| {
            let cell = Glyph { symbol, tone, selected: false }.cell(theme);
            (cell.symbol().to_owned(), cell.bg != ratatui::style::Color::Reset)
        };
        let colours = Theme { colors: Colors::Palette(DARK), utf8: true };
        let themes = [colours, Theme { colors: Colors::Terminal, utf8: true }, Theme::plain(true)];
        let dips = themes.map(|theme| shown(Tone::Dip, '█', theme).0);
        assert_eq!(dips, ["█", "█", "▓"], "a dip is of another colour, or of another shade");
        assert_eq!(shown(Tone::Dip, ascii::plain('█'), Theme::plain(false)).0, "%", "in ASCII too");
        let lost = |theme| {
            [(Tone::LostEdge(2), '▃'), (Tone::LostEdge(2), '▅'), (Tone::Lost, '▒')]
                .map(|(tone, symbol)| shown(tone, symbol, theme).0)
        };
        assert_eq!(lost(colours), ["▃", "▅", "▒"], "before a ground a part of a cell");
        assert_eq!(lost(Theme::plain(true)), ["!", "█", "!"], "where there is none, a whole one");
        let grounds = themes.map(|theme| shown(Tone::Placed, '░', theme));
        let wanted = [(" ", true), ("░", false), ("░", false)].map(|(symbol, has)| (symbol.to_owned(), has));
        assert_eq!(grounds, wanted, "what was pinned has a ground, or a shade");
    }
}
