//! What is said in paragraphs beside a large figure: each has a word that it is called by, and is wrapped, never cut.

use super::Tone;
use super::canvas::{Canvas, cells};
use super::digits;
use super::lines::Line;
use super::text::{without_command, wrap_commands};

/// From so many rows on the rate is written large.
pub(super) const LARGE: u16 = 30;
/// The same in columns.
const LARGE_WIDTH: u16 = 100;
/// Cells of a large rate and its unit, whatever its digits are.
pub(super) const LARGE_CELLS: u16 = 22;

pub(super) fn is_large((width, height): (u16, u16)) -> bool {
    height >= LARGE && width >= LARGE_WIDTH
}

/// A rate in large digits, its unit beside the last row, and beside the first whether it is of now.
pub(super) fn large_rate(canvas: &mut Canvas, ((figure, unit, tone), when): ((String, &str, Tone), &str), utf8: bool) {
    let rows = digits::rows(&figure, utf8);
    let used = u16::try_from(cells(&rows[0])).unwrap_or(0);
    for (y, row) in (0..).zip(rows) {
        canvas.left(0, y, LARGE_CELLS, tone, row);
    }
    canvas.left(used + 1, 0, LARGE_CELLS - used - 1, Tone::Muted, when);
    canvas.left(used + 1, digits::ROWS - 1, LARGE_CELLS - used - 1, Tone::Title, unit);
}

/// Cells of what a line is called.
const LABEL: u16 = 7;

/// The lines below the first, each paragraph with what it is called.
pub(super) struct Paragraphs {
    pub lines: Vec<Line>,
    pub width: u16,
}

impl Paragraphs {
    /// Adds one, wrapped beside its label; nothing where it has no text.
    pub fn add(&mut self, label: &str, tone: Tone, text: &str) {
        let mut piece: Line = vec![(tone, text.to_owned())];
        piece.retain(|(_, text)| !text.is_empty());
        self.add_line(label, piece);
    }

    /// The same of a text whose first pieces are keys.
    pub fn add_line(&mut self, label: &str, mut pieces: Line) {
        let Some((tone, text)) = pieces.pop() else { return };
        let indent = if label.is_empty() { 0 } else { LABEL };
        let before: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
        let (text, room) = (format!("{before}{text}"), self.width.saturating_sub(indent).max(LABEL));
        // Rather below the label than in pieces: one line is copied as it is.
        let split = without_command(&text, room).filter(|(_, command)| cells(command) <= usize::from(self.width));
        let (wrapped, command) = match split {
            Some((text, command)) => (wrap_commands(&format!("{text}:"), room), Some(command.replace('\u{a0}', " "))),
            None => (wrap_commands(&text, room), None),
        };
        for (at, line) in wrapped.into_iter().enumerate() {
            let line = line.replace('\u{a0}', " ");
            let mut all = Line::new();
            if indent > 0 {
                let label = if at == 0 { label } else { "" };
                all.push((Tone::FocusedTitle, format!("{label:<width$}", width = usize::from(LABEL))));
            }
            match line.strip_prefix(&before).filter(|_| at == 0) {
                Some(rest) => {
                    all.append(&mut pieces);
                    all.push((tone, rest.to_owned()));
                }
                None => all.push((tone, line)),
            }
            self.lines.push(all);
        }
        self.lines.extend(command.map(|command| vec![(tone, command)]));
    }
}
