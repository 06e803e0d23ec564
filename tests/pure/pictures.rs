//! The pictures of README: a frame of the recording in `assets/`, ten seconds after its pin, as SVG on a dark and on a light background.
//!
//! `INSTA_UPDATE=always cargo test --test pure pictures::` writes them anew.

use crate::story;
use crate::world::story::PINNED_FROM_S;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::fmt::Write as _;
use std::path::Path;
use vnettop::ui::{Colors, Palette};

/// Columns and rows of the frame.
const SIZE: (u16, u16) = (120, 36);
/// Of one cell, in the picture's own units.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
const MARGIN: f64 = 10.0;

#[test]
fn the_pictures_are_frames_of_today() {
    for (name, is_dark) in [("dark", true), ("light", false)] {
        let colors = Colors::Palette(Palette::usual(is_dark));
        let mut stage = story::played(PINNED_FROM_S + 10);
        stage.colors = colors;
        let made = picture(&stage.paint(&stage.view(SIZE.0, SIZE.1)), is_dark);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("assets/screen-{name}.svg"));
        if std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
            std::fs::write(&path, &made).expect("assets can be written to");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == made,
            "{} is of another day; INSTA_UPDATE=always cargo test --test pure pictures::",
            path.display()
        );
    }
}

/// Text of one style stands together, stretched to its cells: no font has every character in the same width.
fn picture(buffer: &Buffer, is_dark: bool) -> String {
    let (text, background) = if is_dark { ("#d8d8d8", "#101418") } else { ("#1a1a1a", "#ffffff") };
    let (columns, rows) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
    let (width, height) = (columns as f64 * WIDTH + 2.0 * MARGIN, rows as f64 * HEIGHT + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         font-family=\"'DejaVu Sans Mono',Menlo,Consolas,monospace\" font-size=\"14\" fill=\"{text}\">\n\
         <title>vnettop replays a benchmark that swings between 13 and 35 Gbit/s until its threads are pinned</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{background}\"/>\n"
    );
    for (row, cells) in buffer.content.chunks(columns).enumerate() {
        let mut begin = 0;
        for run in cells.chunk_by(|one, other| look(one) == look(other) && shape(one) == shape(other)) {
            run_of(&mut svg, run, begin, row, (text, background));
            begin += run.len();
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn run_of(svg: &mut String, run: &[Cell], column: usize, row: usize, (text, background): (&str, &str)) {
    let (x, y) = (MARGIN + column as f64 * WIDTH, MARGIN + row as f64 * HEIGHT);
    let (color, modifier) = look(&run[0]);
    let own = hex(color).unwrap_or_else(|| text.to_owned());
    let is_reversed = modifier.contains(Modifier::REVERSED);
    if is_reversed {
        let width = run.len() as f64 * WIDTH;
        let _ =
            writeln!(svg, "<rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{own}\"/>");
    }
    let ink = if is_reversed { background.to_owned() } else { own };
    if shape(&run[0]) != Shape::Text {
        let mut path = String::new();
        for (at, cell) in run.iter().enumerate() {
            draw(&mut path, cell.symbol().chars().next().unwrap_or(' '), x + at as f64 * WIDTH, y);
        }
        let _ = writeln!(svg, "<path d=\"{path}\" fill=\"{ink}\"/>");
        return;
    }
    let symbols: String = run.iter().map(Cell::symbol).collect();
    let trimmed = symbols.trim_start();
    let skipped = symbols.chars().count() - trimmed.chars().count();
    let trimmed = trimmed.trim_end();
    if trimmed.is_empty() {
        return;
    }
    let mut style = String::new();
    if modifier.contains(Modifier::BOLD) {
        style.push_str(" font-weight=\"bold\"");
    }
    if modifier.contains(Modifier::UNDERLINED) {
        style.push_str(" text-decoration=\"underline\"");
    }
    if modifier.contains(Modifier::DIM) {
        style.push_str(" opacity=\"0.7\"");
    }
    if ink != text {
        let _ = write!(style, " fill=\"{ink}\"");
    }
    let escaped = trimmed.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let length = trimmed.chars().count() as f64 * WIDTH;
    let (x, y) = (x + skipped as f64 * WIDTH, y + 13.5);
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\"{style}>{escaped}</text>"
    );
}

/// What is drawn as lines and areas, so that cells meet without gaps, and what is written.
#[derive(PartialEq, Eq)]
enum Shape {
    Text,
    Braille,
    Block,
    Line,
}

fn shape(cell: &Cell) -> Shape {
    match cell.symbol().chars().next().unwrap_or(' ') {
        '\u{2801}'..='\u{28ff}' => Shape::Braille,
        '▁'..='█' => Shape::Block,
        '─' | '│' | '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' | '╭' | '╮' | '╰' | '╯' => {
            Shape::Line
        }
        _ => Shape::Text,
    }
}

/// Adds a character, drawn at the upper left corner of its cell, to a path.
fn draw(path: &mut String, symbol: char, x: f64, y: f64) {
    let mut area = |x: f64, y: f64, width: f64, height: f64| {
        let _ = write!(path, "M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
    };
    let (middle, centre) = (x + WIDTH / 2.0 - 0.5, y + HEIGHT / 2.0 - 0.5);
    match symbol {
        '\u{2801}'..='\u{28ff}' => {
            let dots = u32::from(symbol) - 0x2800;
            // Bits 0 to 2 and 6 go down on the left, 3 to 5 and 7 on the right.
            for (column, bits) in [[0, 1, 2, 6], [3, 4, 5, 7]].into_iter().enumerate() {
                for (row, _) in bits.into_iter().enumerate().filter(|(_, bit)| dots >> bit & 1 == 1) {
                    area(x + 0.6 + column as f64 * WIDTH / 2.0, y + 0.5 + row as f64 * HEIGHT / 4.0, 3.2, 3.6);
                }
            }
        }
        '▁'..='█' => {
            let height = f64::from(u32::from(symbol) - 0x2580) * HEIGHT / 8.0;
            area(x, y + HEIGHT - height, WIDTH, height);
        }
        _ => {
            let (left, right) = ("─┐┘┤┬┴┼╮╯".contains(symbol), "─┌└├┬┴┼╭╰".contains(symbol));
            let (up, down) = ("│└┘├┤┴┼╰╯".contains(symbol), "│┌┐├┤┬┼╭╮".contains(symbol));
            if left {
                area(x, centre, WIDTH / 2.0 + 0.5, 1.0);
            }
            if right {
                area(middle, centre, WIDTH / 2.0 + 0.5, 1.0);
            }
            if up {
                area(middle, y, 1.0, HEIGHT / 2.0 + 0.5);
            }
            if down {
                area(middle, centre, 1.0, HEIGHT / 2.0 + 0.5);
            }
        }
    }
}

fn look(cell: &Cell) -> (Color, Modifier) {
    // A blank has no colour unless it is reversed.
    match cell.symbol() {
        " " if !cell.modifier.contains(Modifier::REVERSED) => (Color::Reset, Modifier::empty()),
        _ => (cell.fg, cell.modifier),
    }
}

/// The palettes use the colours 16 to 255 only: a cube of six steps a colour, then greys.
fn hex(color: Color) -> Option<String> {
    let Color::Indexed(number) = color else { return None };
    let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    let [r, g, b] = match number {
        0..16 => return None,
        16..232 => [(number - 16) / 36, (number - 16) / 6 % 6, (number - 16) % 6].map(step),
        232.. => [8 + 10 * (number - 232); 3],
    };
    Some(format!("#{r:02x}{g:02x}{b:02x}"))
}
