//! Columns: which fit, where they begin, what goes first when there is no room.

use super::Tone;
use super::canvas::{Canvas, cells};
use crate::action::{Action, Pane};
use crate::state::State;
use std::fmt::Display;

/// A column as it may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<C> {
    pub id: C,
    pub title: &'static str,
    /// Cells it needs.
    pub least: u16,
    /// Cells it can use.
    pub most: u16,
    /// The highest rank goes first when there is no room.
    pub rank: u8,
    pub right: bool,
}

/// A column as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed<C> {
    pub id: C,
    pub title: &'static str,
    pub x: u16,
    pub width: u16,
    pub right: bool,
}

/// A column whose numbers are right-aligned, or whose words are not, of a fixed width.
pub(crate) const fn fixed<C>(id: C, title: &'static str, width: u16, rank: u8, right: bool) -> Column<C> {
    Column { id, title, least: width, most: width, rank, right }
}

/// The chosen columns, in their order, those named first dropped last for want of room; `None` when the usual ones are chosen.
pub(crate) fn in_order<C: Copy + PartialEq>(usual: &[Column<C>], chosen: &[C]) -> Option<Vec<Column<C>>> {
    if usual.len() == chosen.len() && usual.iter().zip(chosen).all(|(column, id)| column.id == *id) {
        return None;
    }
    let ranked =
        |(rank, id): (u8, &C)| usual.iter().find(|column| column.id == *id).map(|column| Column { rank, ..*column });
    Some((0..).zip(chosen).filter_map(ranked).collect())
}

/// Which end of the sorted column is on top: `▲` the smallest, `▼` the largest.
pub(crate) fn sort_mark(ascends: bool) -> char {
    if ascends { '▲' } else { '▼' }
}

/// A column with room for the mark beside its title.
pub(crate) fn marked<C>(column: Column<C>) -> Column<C> {
    let needed = u16::try_from(cells(column.title)).unwrap_or(u16::MAX).saturating_add(1);
    Column { least: column.least.max(needed), most: column.most.max(needed), ..column }
}

/// Room before the first column, for the mark of the selected row.
const MARK: u16 = 1;

/// The columns that fit, in their given order; what is left over makes those of low rank wider.
pub(crate) fn fit<C: Copy>(columns: &[Column<C>], width: u16) -> Vec<Placed<C>> {
    let mut by_rank: Vec<usize> = (0..columns.len()).collect();
    by_rank.sort_by_key(|&at| columns[at].rank);
    let mut widths = vec![0; columns.len()];
    let mut room = width.saturating_sub(MARK);
    for &at in &by_rank {
        let needed = columns[at].least + 1;
        if needed <= room + 1 {
            widths[at] = columns[at].least;
            room = room.saturating_sub(needed);
        }
    }
    for &at in by_rank.iter().filter(|&&at| columns[at].most > columns[at].least) {
        if widths[at] > 0 {
            let more = (columns[at].most - columns[at].least).min(room);
            widths[at] += more;
            room -= more;
        }
    }
    let mut x = MARK;
    let mut placed = Vec::with_capacity(columns.len());
    for (column, width) in columns.iter().zip(widths).filter(|(_, width)| *width > 0) {
        placed.push(Placed { id: column.id, title: column.title, x, width, right: column.right });
        x += width + 1;
    }
    placed
}

/// Writes one cell.
pub(crate) fn cell<C>(canvas: &mut Canvas, column: &Placed<C>, y: u16, tone: Tone, value: impl Display) {
    if column.right {
        canvas.right(column.x, y, column.width, tone, value);
    } else {
        canvas.left(column.x, y, column.width, tone, value);
    }
}

/// The mark of the selected row over all its cells where its pane has the focus, and what a click on a row asks for.
pub(crate) fn row(canvas: &mut Canvas, (x, y, width): (u16, u16, u16), selected: bool, focused: bool, select: Action) {
    canvas.spot(x, y, width, if selected && focused { Action::Details } else { select });
    if selected {
        canvas.glyph(x, y, Tone::Accent, '▸');
        if focused {
            canvas.select(x, y, width);
        }
    }
}

/// What is hidden, and the key that shows it.
pub(crate) fn hidden(canvas: &mut Canvas, state: &State, y: u16, pane: Pane, what: impl Display) {
    let width = canvas.area.width;
    let mut x = 1;
    let reported = format!("{what} hidden (");
    let key = state.keys().key("idle");
    for (tone, text) in [(Tone::Muted, &*reported), (Tone::Key, &*key), (Tone::Muted, " to show)")] {
        x += canvas.left(x, y, width.saturating_sub(x), tone, text);
    }
    canvas.spot(0, y, width, Action::ToggleIdle(Some(pane)));
}

/// First row shown, so that the row to keep in sight is in the middle where it can be.
pub(crate) fn window(anchor: usize, rows: usize, height: usize) -> usize {
    anchor.saturating_sub(height / 2).min(rows.saturating_sub(height))
}

/// Rows that a table of this height shows below its head: `(first, last)` counted from 1, none when all are shown.
pub(crate) fn shown_range(anchor: usize, rows: usize, height: u16) -> Option<(usize, usize)> {
    let body = usize::from(height.saturating_sub(1));
    let first = window(anchor, rows, body);
    (rows > body && body > 0).then(|| (first + 1, (first + body).min(rows)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column<char>; 3] = [
        Column { id: 'n', title: "NAME", least: 8, most: 12, rank: 0, right: false },
        fixed('k', "KIND", 6, 2, false),
        fixed('r', "RX", 6, 1, true),
    ];

    fn ids(width: u16) -> String {
        fit(&COLUMNS, width).iter().map(|column| column.id).collect()
    }

    #[test]
    fn the_highest_rank_goes_first() {
        assert_eq!(ids(40), "nkr", "all fit, in their order");
        assert_eq!(ids(22), "nr", "the kind goes first");
        assert_eq!(ids(10), "n", "the name goes last");
    }

    #[test]
    fn columns_never_pass_the_width_and_never_touch() {
        for width in 0..60 {
            let placed = fit(&COLUMNS, width);
            assert!(placed.iter().all(|column| column.x + column.width <= width), "all within {width} cells");
            assert!(placed.windows(2).all(|two| two[0].x + two[0].width < two[1].x), "a gap between two at {width}");
        }
    }

    #[test]
    fn the_selected_row_is_always_in_sight() {
        for anchor in 0..30 {
            let first = window(anchor, 30, 7);
            assert!((first..first + 7).contains(&anchor), "row {anchor} is among those from {first}");
        }
        assert_eq!(window(0, 3, 7), 0, "a short list begins at its top");
    }
}
