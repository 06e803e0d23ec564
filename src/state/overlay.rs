//! What lies over the panes: at most one thing.

use crate::action::{Pane, RowId};
use crate::derive::placement::Proposal;
use crate::sample::ThreadId;
use std::collections::BTreeSet;

/// A half of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpPage {
    /// Keys and mouse.
    Keys,
    /// Marks, columns and words.
    Words,
}

impl HelpPage {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Keys => Self::Words,
            Self::Words => Self::Keys,
        }
    }
}

/// What lies over the panes.
#[derive(Debug, Clone, PartialEq)]
pub enum Overlay {
    /// Nothing.
    None,
    /// The help.
    Help {
        /// Which half of it.
        page: HelpPage,
        /// First line shown.
        scroll: usize,
    },
    /// Every finding, with its numbers.
    Findings {
        /// First line shown.
        scroll: usize,
    },
    /// The path of each flow.
    Paths {
        /// First line shown.
        scroll: usize,
    },
    /// Every drop of the machine.
    Drops {
        /// First line shown.
        scroll: usize,
    },
    /// Before and after a pin.
    Card {
        /// First line shown.
        scroll: usize,
    },
    /// Every figure of a row; it stays with what stood there.
    Details {
        /// Which.
        row: RowId,
        /// First line shown.
        scroll: usize,
    },
    /// A filter being typed; the text is the list's own, so that it works while it is typed.
    Filter {
        /// Links or threads.
        pane: Pane,
    },
    /// A proposed placement, or why there is none. It is what was shown that is applied, whatever happens meanwhile.
    Proposal {
        /// The placement.
        result: Result<Proposal, String>,
        /// First line shown, where no thread is chosen.
        scroll: usize,
        /// The thread that is chosen, by its place among the steps.
        chosen: Option<usize>,
        /// Threads that were taken off.
        off: BTreeSet<ThreadId>,
    },
    /// Cores being typed for one thread.
    ChooseCores {
        /// The thread.
        thread: ThreadId,
        /// Its name and role.
        label: String,
        /// What was typed.
        text: String,
        /// Why it was not accepted.
        error: Option<String>,
    },
}
