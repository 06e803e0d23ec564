//! What a screen can be made to look like, and what of that lasts: it comes from the configuration, is changed by keys, and may be
//! saved to it.

use super::columns::{LinkColumn, ThreadColumn};
use super::{CoreSort, Idle, LinkSort, ListShape, State, ThreadSort};
use crate::action::{KeyMap, Pane};

/// A part of the screen that may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of their titles")]
pub enum Part {
    Test,
    Links,
    Cores,
    Threads,
}

impl Part {
    /// Every part with the word that it is chosen by, top to bottom.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::Test, "test"), (Self::Links, "links"), (Self::Cores, "cores"), (Self::Threads, "threads")];

    fn of(pane: Pane) -> Self {
        match pane {
            Pane::Links => Self::Links,
            Pane::Cores => Self::Cores,
            Pane::Threads => Self::Threads,
        }
    }
}

/// Layout, columns and sorting.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says what it is")]
pub struct Choices {
    /// At least one of them is a pane that can have the focus.
    pub parts: Vec<Part>,
    pub link_columns: Vec<LinkColumn>,
    pub link_sort: LinkSort,
    pub link_reversed: bool,
    pub link_shape: ListShape,
    /// None: hidden among many links, else shown.
    pub idle: Option<Idle>,
    pub core_sort: CoreSort,
    pub core_reversed: bool,
    pub thread_columns: Vec<ThreadColumn>,
    pub thread_sort: ThreadSort,
    pub thread_reversed: bool,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            parts: Part::ALL.map(|(part, _)| part).to_vec(),
            link_columns: LinkColumn::ALL.map(|(column, _)| column).to_vec(),
            link_sort: LinkSort::Name,
            link_reversed: false,
            link_shape: ListShape::Tree,
            idle: None,
            core_sort: CoreSort::Number,
            core_reversed: false,
            thread_columns: ThreadColumn::ALL.map(|(column, _)| column).to_vec(),
            thread_sort: ThreadSort::Cpu,
            thread_reversed: false,
        }
    }
}

/// The colour themes there are, by name, and the one in use.
#[derive(Debug, Clone, Default)]
pub struct ThemeList {
    names: Vec<String>,
    at: usize,
    changed: bool,
}

impl ThemeList {
    /// These themes, the one at this place in use.
    #[must_use]
    pub fn new(names: Vec<String>, at: usize) -> Self {
        Self { names, at, changed: false }
    }

    /// The place of the theme in use.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The name of the theme in use, if a key has chosen it.
    #[must_use]
    pub fn chosen(&self) -> Option<&str> {
        self.names.get(self.at).filter(|_| self.changed).map(String::as_str)
    }

    /// The one of this name is in use, as long as no key has chosen one.
    fn suit(&mut self, name: &str) {
        if let Some(at) = self.names.iter().position(|known| known == name).filter(|_| !self.changed) {
            self.at = at;
        }
    }

    /// Goes to the next one; its name, where there is another one.
    pub(crate) fn next(&mut self) -> Option<&str> {
        if self.names.len() < 2 {
            return None;
        }
        (self.at, self.changed) = ((self.at + 1) % self.names.len(), true);
        self.chosen()
    }
}

impl State {
    /// Shows the theme of this name, which suits the terminal, as long as no key has chosen one.
    pub fn suit(&mut self, theme: &str) {
        self.themes.suit(theme);
    }

    /// Makes the screen look like this; for the start, before anything is received.
    pub fn choose(&mut self, choices: Choices, keys: KeyMap, themes: ThemeList) {
        let Choices { parts, link_columns, link_sort, link_reversed, link_shape, idle, .. } = choices;
        (self.links.columns, self.links.sort, self.links.reversed) = (link_columns, link_sort, link_reversed);
        (self.links.shape, self.links.idle_chosen) = (link_shape, idle.is_some());
        self.links.idle = idle.unwrap_or(self.links.idle);
        (self.cores.sort, self.cores.reversed) = (choices.core_sort, choices.core_reversed);
        self.threads.columns = choices.thread_columns;
        (self.threads.sort, self.threads.reversed) = (choices.thread_sort, choices.thread_reversed);
        (self.parts, self.keys, self.themes) = (parts, keys, themes);
        if let Some(first) = Pane::ALL.into_iter().find(|pane| self.shows(*pane)).filter(|_| !self.shows(self.focus)) {
            self.focus = first;
        }
    }

    /// What the screen looks like now.
    #[must_use]
    pub fn choices(&self) -> Choices {
        Choices {
            parts: self.parts.clone(),
            link_columns: self.links.columns.clone(),
            link_sort: self.links.sort,
            link_reversed: self.links.reversed,
            link_shape: self.links.shape,
            idle: Some(self.links.idle).filter(|_| self.links.idle_chosen),
            core_sort: self.cores.sort,
            core_reversed: self.cores.reversed,
            thread_columns: self.threads.columns.clone(),
            thread_sort: self.threads.sort,
            thread_reversed: self.threads.reversed,
        }
    }

    /// Whether this pane is on the screen.
    #[must_use]
    pub fn shows(&self, pane: Pane) -> bool {
        self.parts.contains(&Part::of(pane))
    }

    /// Whether the graph of the test is on the screen, where there is one.
    #[must_use]
    pub fn shows_test(&self) -> bool {
        self.parts.contains(&Part::Test)
    }

    /// Which keys do what.
    #[must_use]
    pub fn keys(&self) -> &KeyMap {
        &self.keys
    }

    /// The colour themes there are.
    #[must_use]
    pub fn themes(&self) -> &ThemeList {
        &self.themes
    }
}
