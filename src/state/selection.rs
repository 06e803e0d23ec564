//! A selection by identity: it stays on its link, core or thread wherever the row goes, and on nothing when that is gone.

use crate::action::Motion;

/// Rows that Page Up and Page Down move by.
const PAGE: usize = 10;

/// Which one is selected, and in which row it is now.
#[derive(Debug, Clone, Copy)]
pub struct Selection<T> {
    id: Option<T>,
    row: Option<usize>,
    /// Where the selection was last, so that moving goes on from there when what was selected is gone.
    last: usize,
}

impl<T> Default for Selection<T> {
    fn default() -> Self {
        Self { id: None, row: None, last: 0 }
    }
}

impl<T: Copy + PartialEq> Selection<T> {
    /// What is selected.
    #[must_use]
    pub fn id(&self) -> Option<T> {
        self.id
    }

    /// The row it is in; none when it is not shown.
    #[must_use]
    pub fn row(&self) -> Option<usize> {
        self.row
    }

    /// The row to keep in sight.
    #[must_use]
    pub fn anchor(&self) -> usize {
        self.row.unwrap_or(self.last)
    }

    pub(crate) fn set(&mut self, id: T) {
        self.id = Some(id);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Tells whether what is selected is still there, and its row, after the rows were arranged anew.
    pub(super) fn settle(&mut self, is_there: bool, row: Option<usize>, rows: usize) {
        self.id = self.id.filter(|_| is_there);
        self.row = row;
        self.last = row.unwrap_or(self.last).min(rows.saturating_sub(1));
    }

    /// The row that a motion leads to; the first motion only shows where the selection is.
    #[must_use]
    pub(crate) fn target(&self, motion: Motion, rows: usize) -> Option<usize> {
        let end = rows.checked_sub(1)?;
        let from = match (motion, self.row) {
            (Motion::Home, _) => return Some(0),
            (Motion::End, _) => return Some(end),
            (_, None) => return Some(self.last.min(end)),
            (_, Some(row)) => row,
        };
        let to = match motion {
            Motion::Up | Motion::Left => from.saturating_sub(1),
            Motion::PageUp => from.saturating_sub(PAGE),
            Motion::PageDown => from + PAGE,
            _ => from + 1,
        };
        Some(to.min(end))
    }

    /// The row that lies so many rows from here.
    #[must_use]
    pub(crate) fn offset(&self, by: i8, rows: usize) -> Option<usize> {
        let end = rows.checked_sub(1)?;
        Some(self.anchor().saturating_add_signed(isize::from(by)).min(end))
    }
}
