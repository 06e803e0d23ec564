//! The sentences that the last thing done has left; they age with the stream, not with a clock.

use crate::derive::FindingId;

/// A notice stays this long unless another takes its place.
const LIFE_NS: u64 = 20_000_000_000;

/// More than these are not kept beside one another.
const MOST: usize = 6;

/// One sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// It went otherwise than asked.
    pub warning: bool,
    /// The sentence.
    pub text: String,
    /// The finding that says the same, by its id: once is enough.
    pub finding: Option<FindingId>,
}

/// The sentences of the last thing done.
#[derive(Debug, Clone, Default)]
pub struct Notices {
    list: Vec<Notice>,
    /// When the newest sample was taken; none before the first one.
    now_ns: Option<u64>,
    since_ns: Option<u64>,
}

impl Notices {
    /// The sentences, in order.
    #[must_use]
    pub fn list(&self) -> &[Notice] {
        &self.list
    }

    pub(super) fn replace(&mut self, lines: impl Iterator<Item = (bool, String)>) {
        self.list = lines.map(|(warning, text)| Notice { warning, text, finding: None }).collect();
        self.since_ns = self.now_ns;
    }

    /// One more; the oldest go when there are many.
    pub(super) fn add(&mut self, notice: Notice) {
        self.list.push(notice);
        let surplus = self.list.len().saturating_sub(MOST);
        self.list.drain(..surplus);
        self.since_ns = self.now_ns;
    }

    /// Lets sentences go that have been read; one that was there before the first sample ages from that sample on.
    pub(super) fn age(&mut self, now_ns: u64) {
        self.now_ns = Some(now_ns);
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) > LIFE_NS {
            self.clear();
        }
    }

    /// What they point to is looked at: only warnings stay.
    pub(crate) fn read(&mut self) {
        self.list.retain(|notice| notice.warning);
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.since_ns = None;
    }
}
