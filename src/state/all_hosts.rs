//! What is chosen where several hosts are watched at once. Everything else is chosen for each host, in its own state.

/// The screen of all hosts, and which host has the screen instead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllHosts {
    /// The host whose own screen is shown, by its place; none shows all of them.
    pub(crate) open: Option<usize>,
    /// The row that is selected, by its place.
    pub(crate) selected: usize,
    /// First line shown of what stands below the list.
    pub(crate) scroll: usize,
    /// Placements of both ends are proposed, and wait for an answer.
    pub(crate) proposes: bool,
}

impl AllHosts {
    /// Of so many hosts; a single one has the screen at once.
    #[must_use]
    pub fn of(hosts: usize) -> Self {
        Self { open: (hosts == 1).then_some(0), ..Self::default() }
    }

    /// The host whose own screen is shown, by its place; none shows all of them.
    #[must_use]
    pub fn open(&self) -> Option<usize> {
        self.open
    }

    /// The frame has no more lines than can be scrolled so far.
    pub fn scroll_within(&mut self, most: usize) {
        self.scroll = self.scroll.min(most);
    }

    /// Placements of both ends wait for an answer.
    #[must_use]
    pub fn proposes(&self) -> bool {
        self.proposes
    }
}
