//! For terminals without UTF-8: every symbol becomes one ASCII character that says the same.

/// The character that stands for it; a wide one keeps its cells, as one `?` and a blank.
pub(super) fn plain(c: char) -> char {
    match c {
        c if c.is_ascii() => c,
        '─' | '–' | '−' | '▃' => '-',
        '│' | '║' => '|',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' | '╔' | '╗' | '╚' | '╝' | '▅' | '±' => {
            '+'
        }
        '▁' | '·' | '┈' => '.',
        '◆' => 'm',
        '▂' | '░' => ':',
        '▄' | '▒' | '━' | '═' => '=',
        '▌' => '/',
        '▆' | '●' | '❄' => '*',
        '▇' | '▓' => '%',
        '█' | '■' => '#',
        // Dots, by how many there are.
        '\u{2800}'..='\u{28ff}' => [' ', '.', ':', '+', '#'][(u32::from(c) & 0xff).count_ones().div_ceil(2) as usize],
        '•' => 'o',
        '×' => 'x',
        '≥' | '▸' | '▶' | '→' => '>',
        '←' => '<',
        '↓' | '▼' | '▾' => 'v',
        '↑' | '▲' => '^',
        '…' | '≈' => '~',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_row_of_events_has_is_told_apart_by_its_shape() {
        let symbols: std::collections::BTreeSet<char> = ['●', '•', '·', '!', '┈', '▾'].map(plain).into();
        assert_eq!(symbols.len(), 5, "{symbols:?}: only a migration nearby and the rail are both dots");
    }

    #[test]
    fn every_symbol_becomes_ascii() {
        let symbols: String = "├ 网≥3.5×▁█–".chars().map(plain).collect();
        assert_eq!(symbols, "+ ?>3.5x.#-", "one character for one");
    }
}
