//! Frames as text with their tones, for snapshots and for whoever looks for something in one.
#![allow(dead_code, reason = "the live binary uses a part of it")]

pub mod replayed;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use vnettop::ui::{self, Theme};
use vnettop::view::{Tone, View};

/// The painted cells of a view.
pub fn painted(view: &View, theme: Theme) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, view.width, view.height));
    ui::paint(view, theme, &mut buffer);
    buffer
}

/// The frame as snapshots keep it: symbols with a `|` at the right edge, then the tone of every cell.
pub fn frame(view: &View, theme: Theme) -> String {
    let mut out = String::new();
    for line in ui::text(&painted(view, theme)).lines() {
        let used: usize = line.chars().map(|c| unicode_width::UnicodeWidthChar::width(c).unwrap_or(1)).sum();
        out.push_str(line);
        out.extend(std::iter::repeat_n(' ', usize::from(view.width).saturating_sub(used)));
        out.push_str("|\n");
    }
    out.push_str("tones:\n");
    for row in tones(view) {
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}

/// The tone of every cell as a letter; selected cells are `S`, blanks are blank.
fn tones(view: &View) -> Vec<String> {
    let mut grid = vec![vec![' '; usize::from(view.width)]; usize::from(view.height)];
    for canvas in view.layers() {
        let area = canvas.area;
        if canvas.opaque {
            for row in &mut grid[usize::from(area.y)..usize::from(area.y + area.height)] {
                row[usize::from(area.x)..usize::from(area.x + area.width)].fill(' ');
            }
        }
        for span in canvas.spans() {
            let mut x = usize::from(span.x);
            for c in span.text.chars() {
                let wide = unicode_width::UnicodeWidthChar::width(c).unwrap_or(1);
                let letter = if c == ' ' { ' ' } else { letter(span.tone) };
                grid[usize::from(span.y)][x..x + wide].fill(letter);
                x += wide;
            }
        }
        for selected in &canvas.selected {
            let cells = usize::from(selected.x)..usize::from(selected.x + selected.width);
            grid[usize::from(selected.y)][cells].fill('S');
        }
    }
    grid.into_iter().map(|row| row.into_iter().collect()).collect()
}

fn letter(tone: Tone) -> char {
    match tone {
        Tone::Normal => 'n',
        Tone::Muted | Tone::Line | Tone::Placed => '.',
        Tone::Header => 'h',
        Tone::Title => 't',
        Tone::FocusedTitle => 'T',
        Tone::Accent => 'a',
        Tone::Key => 'k',
        Tone::Good => 'g',
        Tone::Warning | Tone::Dip | Tone::DipEdge => 'w',
        Tone::Bad | Tone::Lost => 'b',
        Tone::Watched => '_',
        Tone::Curve(_) | Tone::CurveEdge(_) | Tone::PlacedEdge(_) | Tone::LostEdge(_) | Tone::OnCurve(_) => 'c',
        Tone::CurveDim => 'd',
        Tone::Moved(_) => 'M',
        Tone::Node(number) | Tone::NodeBright(number) | Tone::NodeDim(number) => char::from(b'0' + number % 10),
    }
}
