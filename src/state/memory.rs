//! What the screen remembers of samples that it no longer shows, for a recording that is shown from another place on.

use super::link_hierarchy::LinkHierarchy;
use super::{Notices, State};
use crate::derive::Metrics;

/// That memory after some sample.
#[derive(Debug, Clone, Default)]
pub struct ScreenMemory {
    links: LinkHierarchy,
    has_many_links: bool,
    notices: Notices,
    had_card: bool,
    pinned_at_ns: Option<u64>,
}

impl State {
    /// What is remembered now.
    #[must_use]
    pub fn memory(&self) -> ScreenMemory {
        let (links, has_many_links) = self.links.memory();
        let (had_card, pinned_at_ns) = (self.had_card, self.pinned_at_ns);
        ScreenMemory { links, has_many_links, notices: self.notices.clone(), had_card, pinned_at_ns }
    }

    /// Forgets what was received, for a recording that is shown from another place on, and remembers this instead; what is chosen stays.
    pub fn rewind(&mut self, memory: ScreenMemory) {
        (self.shown, self.waiting, self.behind_s) = (None, None, 0);
        (self.had_card, self.pinned_at_ns) = (memory.had_card, memory.pinned_at_ns);
        self.links.remember(memory.links, memory.has_many_links);
        self.notices = memory.notices;
        if let Some(playback) = &mut self.playback {
            playback.is_over = false;
        }
    }

    /// Somebody has chosen which test the screen is about.
    #[must_use]
    pub fn has_chosen_test(&self) -> bool {
        self.tests.chosen.is_some()
    }

    /// Takes metrics that are skipped before the ones shown: their notices, pins and link activity count.
    pub fn pass(&mut self, metrics: Metrics) {
        let metrics = self.tests.clone().apply(metrics);
        self.tell(&metrics);
        self.links.follow(&metrics);
    }
}
