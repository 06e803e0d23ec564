//! Where prepared text goes: spans of one tone, already cut to their width, in one string a pane. It measures in cells
//! and knows no colours. A wide character never pushes another cell; one that has no width of its own is shown as `?`.

use super::Tone;
use crate::action::Action;
use std::fmt::{Display, Write as _};
use unicode_width::UnicodeWidthChar;

/// A rectangle of cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "in cells, from the top left")]
pub struct Area {
    pub x: u16,
    pub y: u16,
    pub width: u16,
    pub height: u16,
}

impl Area {
    /// A rectangle.
    #[must_use]
    pub fn new(x: u16, y: u16, width: u16, height: u16) -> Self {
        Self { x, y, width, height }
    }

    /// Whether the cell is in it.
    #[must_use]
    pub fn contains(&self, x: u16, y: u16) -> bool {
        (self.x..self.x + self.width).contains(&x) && (self.y..self.y + self.height).contains(&y)
    }
}

/// A piece of text of one tone.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TextStretch {
    x: u16,
    y: u16,
    cells: u16,
    start: usize,
    end: usize,
    tone: Tone,
}

/// A piece of text of one tone and where it begins on the screen.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "cells from the top left of the screen")]
pub struct Span<'a> {
    pub x: u16,
    pub y: u16,
    pub text: &'a str,
    pub tone: Tone,
}

/// What one region of the screen shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Canvas {
    /// Where it lies on the screen.
    pub area: Area,
    /// It hides what lies under it.
    pub opaque: bool,
    /// Cells drawn as selected, whatever their tone.
    pub selected: Vec<Area>,
    text: String,
    stretches: Vec<TextStretch>,
    spots: Vec<(Area, Action)>,
}

impl Canvas {
    pub(crate) fn new(area: Area) -> Self {
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let (text, stretches) = (String::with_capacity(width * height), Vec::with_capacity(height * 8));
        Self { area, text, stretches, ..Self::default() }
    }

    /// Everything on it, in the order it is painted.
    pub fn spans(&self) -> impl Iterator<Item = Span<'_>> {
        self.stretches.iter().map(|piece| Span {
            x: piece.x,
            y: piece.y,
            text: &self.text[piece.start..piece.end],
            tone: piece.tone,
        })
    }

    /// What a click on this cell asks for.
    #[must_use]
    pub fn action_at(&self, x: u16, y: u16) -> Option<Action> {
        self.spots.iter().find(|(area, _)| area.contains(x, y)).map(|(_, action)| *action)
    }

    /// Writes from `x` of row `y` (counted within the canvas), cut to `width` cells. Returns the cells used.
    pub(crate) fn left(&mut self, x: u16, y: u16, width: u16, tone: Tone, value: impl Display) -> u16 {
        let start = self.text.len();
        let used = self.append(width.min(self.room(x, y)), value);
        self.keep(x, y, used, start, tone);
        used
    }

    /// Writes so that the text ends `width` cells from `x`.
    pub(crate) fn right(&mut self, x: u16, y: u16, width: u16, tone: Tone, value: impl Display) {
        let start = self.text.len();
        let width = width.min(self.room(x, y));
        let used = self.append(width, value);
        self.keep(x + width - used, y, used, start, tone);
    }

    /// Writes one character into each cell of a run.
    pub(crate) fn run(&mut self, x: u16, y: u16, count: u16, tone: Tone, glyph: char) {
        let start = self.text.len();
        let count = count.min(self.room(x, y));
        self.text.extend(std::iter::repeat_n(glyph, usize::from(count)));
        self.keep(x, y, count, start, tone);
    }

    /// One character; it joins the span before it when that ends here and has the same tone.
    pub(crate) fn glyph(&mut self, x: u16, y: u16, tone: Tone, glyph: char) {
        if self.room(x, y) == 0 {
            return;
        }
        let start = self.text.len();
        self.text.push(glyph);
        let (column, row) = (self.area.x + x, self.area.y + y);
        let joins = |last: &&mut TextStretch| {
            last.y == row && last.tone == tone && last.end == start && last.x + last.cells == column
        };
        if let Some(last) = self.stretches.last_mut().filter(joins) {
            last.end = self.text.len();
            last.cells += 1;
            return;
        }
        self.keep(x, y, 1, start, tone);
    }

    /// Draws these cells as selected.
    pub(crate) fn select(&mut self, x: u16, y: u16, width: u16) {
        let width = width.min(self.room(x, y));
        self.selected.push(Area::new(self.area.x + x, self.area.y + y, width, 1));
    }

    /// What a click on these cells asks for.
    pub(crate) fn spot(&mut self, x: u16, y: u16, width: u16, action: Action) {
        let width = width.min(self.room(x, y));
        self.spots.push((Area::new(self.area.x + x, self.area.y + y, width, 1), action));
    }

    /// What a click on a column of so many cells asks for.
    pub(crate) fn tall_spot(&mut self, x: u16, y: u16, height: u16, action: Action) {
        if self.room(x, y) > 0 {
            self.spots.push((Area::new(self.area.x + x, self.area.y + y, 1, height.min(self.area.height - y)), action));
        }
    }

    fn room(&self, x: u16, y: u16) -> u16 {
        if y < self.area.height { self.area.width.saturating_sub(x) } else { 0 }
    }

    fn keep(&mut self, x: u16, y: u16, cells: u16, start: usize, tone: Tone) {
        let end = self.text.len();
        if end > start {
            self.stretches.push(TextStretch { x: self.area.x + x, y: self.area.y + y, cells, start, end, tone });
        }
    }

    /// Appends the text, cut to so many cells; returns the cells it takes.
    fn append(&mut self, width: u16, value: impl Display) -> u16 {
        let start = self.text.len();
        let _ = write!(self.text, "{value}");
        let added = &self.text[start..];
        let plain = |byte: u8| (b' '..0x7f).contains(&byte);
        if let Ok(cells) = u16::try_from(added.len())
            && cells <= width
            && added.bytes().all(plain)
        {
            return cells;
        }
        let added = added.to_owned();
        self.text.truncate(start);
        cut_into(&mut self.text, &added, width)
    }
}

/// Appends as much of a text as fits; a cut text ends with `…`.
fn cut_into(out: &mut String, text: &str, width: u16) -> u16 {
    let whole = cells(text) <= usize::from(width);
    let limit = if whole { width } else { width.saturating_sub(1) };
    let mut used = 0;
    for c in text.chars() {
        let (c, wide) = shown(c);
        if used + wide > limit {
            break;
        }
        out.push(c);
        used += wide;
    }
    if !whole && width > 0 {
        out.push('…');
        used += 1;
    }
    used
}

/// A text in just so many cells: cut, or with blanks behind it.
pub(crate) fn fitted(text: &str, cells: usize) -> String {
    let cells = u16::try_from(cells).unwrap_or(u16::MAX);
    let mut out = String::with_capacity(text.len());
    let used = cut_into(&mut out, text, cells);
    out.extend(std::iter::repeat_n(' ', usize::from(cells - used)));
    out
}

/// How many cells a text takes.
pub(crate) fn cells(text: &str) -> usize {
    text.chars().map(|c| usize::from(shown(c).1)).sum()
}

/// A character as it is shown, and its width. A character without a width of its own would change its neighbour, so it becomes
/// `?`, as do characters that terminals join with their neighbour (flags, skin tones).
fn shown(c: char) -> (char, u16) {
    if (' '..'\u{7f}').contains(&c) {
        return (c, 1);
    }
    match c.width() {
        _ if matches!(c, '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}') => ('?', 1),
        Some(1) => (c, 1),
        Some(2) => (c, 2),
        _ => ('?', 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, width: u16) -> String {
        let mut out = String::new();
        let used = cut_into(&mut out, text, width);
        assert_eq!(cells(&out), usize::from(used), "'{out}' takes the cells it says");
        assert!(used <= width, "'{out}' does not pass {width} cells");
        out
    }

    #[test]
    fn text_is_cut_by_cells_and_says_so() {
        assert_eq!(cut("vetha6c37c1", 6), "vetha…", "a cut is visible");
        assert_eq!(cut("docker0", 7), "docker0", "what fits is whole");
        assert_eq!(cut("网络网络", 6), "网络…", "half a wide character is left out");
        assert_eq!(cut("abc", 0), "", "no room, no text");
    }

    #[test]
    fn characters_without_a_width_cannot_reach_their_neighbours() {
        assert_eq!(cut("a\u{301}b", 9), "a?b", "a combining accent");
        assert_eq!(cut("\u{1b}[31m", 9), "?[31m", "an escape code");
        assert_eq!(cut("\u{1f1e9}\u{1f1ea}", 9), "??", "a flag");
        assert_eq!(cut("👩\u{200d}👩", 9), "👩?👩", "a joined emoji");
    }

    #[test]
    fn writing_outside_the_canvas_writes_nothing() {
        let mut canvas = Canvas::new(Area::new(0, 0, 5, 2));
        canvas.left(7, 0, 5, Tone::Normal, "x");
        canvas.left(0, 2, 5, Tone::Normal, "x");
        canvas.right(3, 0, 9, Tone::Normal, "abcdef");
        let texts: Vec<String> = canvas.spans().map(|span| format!("{}@{}", span.text, span.x)).collect();
        assert_eq!(texts, ["a…@3"], "only what is inside stays");
    }
}
