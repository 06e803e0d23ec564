//! For terminals without UTF-8: every symbol becomes one ASCII character that says the same.

use ratatui::buffer::Cell;

/// Leaves ASCII only; a wide character keeps its cells, as one `?` and a blank.
pub(super) fn translate(cells: &mut [Cell]) {
    for cell in cells {
        let Some(c) = cell.symbol().chars().next().filter(|c| !c.is_ascii()) else { continue };
        cell.set_char(plain(c));
    }
}

fn plain(c: char) -> char {
    match c {
        '─' | '═' | '–' | '▃' | '░' => '-',
        '│' | '║' => '|',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '╔' | '╗' | '╚' | '╝' | '▅' | '±' => {
            '+'
        }
        '▁' | '·' => '.',
        '▂' => ':',
        '▄' | '▒' => '=',
        '▆' | '●' | '❄' => '*',
        '▇' | '▓' => '%',
        '█' => '#',
        '×' => 'x',
        '≥' | '▸' | '▶' | '→' => '>',
        '←' => '<',
        '↓' => 'v',
        '↑' => '^',
        '…' => '~',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::buffer::{Buffer, Cell};
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn every_symbol_becomes_ascii_and_keeps_its_cell() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 1));
        buffer.set_string(0, 0, "├ 网≥3.5×▁█–", Style::new());
        translate(&mut buffer.content);
        let symbols: String = buffer.content.iter().map(Cell::symbol).collect();
        assert_eq!(symbols, "+ ? >3.5x.#-", "one character for one, a wide one with its blank");
    }
}
