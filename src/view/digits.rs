//! A figure in digits of three rows: of half blocks, or where these cannot be shown of lines.

/// Rows that they take.
pub(super) const ROWS: u16 = 3;

/// Three cells wide, five half cells high.
const BLOCKS: [[&str; 3]; 10] = [
    ["█▀█", "█ █", "▀▀▀"],
    ["▀█ ", " █ ", "▀▀▀"],
    ["▀▀█", "█▀▀", "▀▀▀"],
    ["▀▀█", "▀▀█", "▀▀▀"],
    ["█ █", "▀▀█", "  ▀"],
    ["█▀▀", "▀▀█", "▀▀▀"],
    ["█▀▀", "█▀█", "▀▀▀"],
    ["▀▀█", "  █", "  ▀"],
    ["█▀█", "█▀█", "▀▀▀"],
    ["█▀█", "▀▀█", "▀▀▀"],
];
const LINES: [[&str; 3]; 10] = [
    [" _ ", "| |", "|_|"],
    ["   ", "  |", "  |"],
    [" _ ", " _|", "|_ "],
    [" _ ", " _|", " _|"],
    ["   ", "|_|", "  |"],
    [" _ ", "|_ ", " _|"],
    [" _ ", "|_ ", "|_|"],
    [" _ ", "  |", "  |"],
    [" _ ", "|_|", "|_|"],
    [" _ ", "|_|", " _|"],
];

/// The rows of a figure of digits and a point; anything else in it is written small, in the last row.
pub(super) fn rows(figure: &str, utf8: bool) -> [String; 3] {
    let mut rows: [String; 3] = Default::default();
    let (digits, point) = if utf8 { (&BLOCKS, "▀") } else { (&LINES, ".") };
    for c in figure.chars() {
        let digit = c.to_digit(10).and_then(|digit| digits.get(digit as usize));
        let small = c.to_string();
        let parts = match digit {
            Some(parts) => *parts,
            None if c == '.' => [" ", " ", point],
            None => [" ", " ", small.as_str()],
        };
        for (row, part) in rows.iter_mut().zip(parts) {
            if !row.is_empty() {
                row.push(' ');
            }
            row.push_str(part);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_three_rows_of_one_width() {
        let shown = rows("30.4", true);
        assert_eq!(shown, ["▀▀█ █▀█   █ █", "▀▀█ █ █   ▀▀█", "▀▀▀ ▀▀▀ ▀   ▀"]);
        let plain = rows("30.4", false);
        assert_eq!(plain, [" _   _       ", " _| | |   |_|", " _| |_| .   |"]);
    }
}
