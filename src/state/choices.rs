//! What a screen can be made to look like, and what of that lasts: it comes from the configuration, is changed by keys, and may be
//! saved to it.

use super::cores::CoreChoices;
use super::links::LinkChoices;
use super::threads::ThreadChoices;
use super::{Mode, State};
use crate::action::{KeyMap, Pane};
use crate::derive::Metrics;
use strum::VariantArray;

/// A part of the screen that may be left out, top to bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[allow(missing_docs, reason = "the words of their titles")]
pub enum Part {
    Test,
    Links,
    Cores,
    Threads,
}

impl Part {
    fn of(pane: Pane) -> Self {
        match pane {
            Pane::Links => Self::Links,
            Pane::Cores => Self::Cores,
            Pane::Threads => Self::Threads,
            Pane::Test => Self::Test,
        }
    }
}

/// How a test is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Arrangement {
    /// Its verdict, its graph and its path, over the whole screen.
    #[default]
    Bands,
    /// Its graph above the panes of the machine.
    Panes,
}

/// What the graph is drawn with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum GraphStyle {
    /// Blocks of eight heights, one column of time a cell.
    #[default]
    Blocks,
    /// Dots of braille, two columns of time a cell.
    Braille,
}

/// Layout, columns and sorting.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says what it is")]
pub struct Choices {
    pub arrangement: Arrangement,
    pub graph: GraphStyle,
    /// At least one of them is a pane that can have the focus.
    pub parts: Vec<Part>,
    pub links: LinkChoices,
    pub cores: CoreChoices,
    pub threads: ThreadChoices,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            arrangement: Arrangement::default(),
            graph: GraphStyle::default(),
            parts: Part::VARIANTS.to_vec(),
            links: LinkChoices::default(),
            cores: CoreChoices::default(),
            threads: ThreadChoices::default(),
        }
    }
}

/// The colour themes there are, by name, and the one in use.
#[derive(Debug, Clone, Default)]
pub struct ThemeList {
    pub(crate) names: Vec<String>,
    /// The place of the one in use.
    pub(crate) at: usize,
    /// A key has chosen it.
    pub(crate) changed: bool,
}

impl ThemeList {
    /// The name of the theme in use, if a key has chosen it.
    #[must_use]
    pub fn chosen(&self) -> Option<&str> {
        self.names.get(self.at).filter(|_| self.changed).map(String::as_str)
    }

    /// The one of this name, which suits the terminal, is in use, as long as no key has chosen one.
    pub(crate) fn suit(&mut self, name: &str) {
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
    /// Makes the screen look like this; for the start, before anything is received.
    pub fn choose(&mut self, choices: Choices, keys: KeyMap, themes: ThemeList) {
        (self.links.chosen, self.cores.chosen, self.threads.chosen) = (choices.links, choices.cores, choices.threads);
        (self.parts, self.keys, self.themes) = (choices.parts, keys, themes);
        (self.arrangement, self.graph) = (choices.arrangement, choices.graph);
        if let Some(first) = Pane::LISTS.into_iter().find(|pane| self.shows(*pane)).filter(|_| !self.shows(self.focus))
        {
            self.focus = first;
        }
    }

    /// What the screen looks like now.
    #[must_use]
    pub fn choices(&self) -> Choices {
        Choices {
            arrangement: self.arrangement,
            graph: self.graph,
            parts: self.parts.clone(),
            links: self.links.chosen.clone(),
            cores: self.cores.chosen.clone(),
            threads: self.threads.chosen.clone(),
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

    /// A test is on the screen that has, or will have, a graph of its own: it runs, or it was the last one.
    #[must_use]
    pub fn has_test(&self) -> bool {
        let is_of_test = |metrics: &Metrics| metrics.test.is_some() && self.shows_test();
        self.metrics().is_some_and(is_of_test)
    }

    /// Nothing is tested here, nor was: a person may want to know how to start.
    #[must_use]
    pub(crate) fn awaits_test(&self) -> bool {
        let is_busy = |metrics: &Metrics| metrics.threads.iter().any(|thread| thread.cpu.is_none_or(|cpu| cpu >= 0.05));
        let is_idle = self.metrics().is_some_and(|metrics| metrics.tests.is_empty() && !is_busy(metrics));
        is_idle && self.settings.mode == Mode::Live
    }

    /// The test is shown in bands now.
    #[must_use]
    pub fn shows_bands(&self) -> bool {
        self.arrangement == Arrangement::Bands && !self.reveals_panes && !self.is_zoomed && self.has_test()
    }

    /// Which keys do what.
    #[must_use]
    pub fn keys(&self) -> &KeyMap {
        &self.keys
    }
}
