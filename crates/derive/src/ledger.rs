//! The ledger of what was measured: ticks in the order of time. All that ask what happened between two moments (LIMIT, the card
//! of a pin, a phase of an experiment, a comparison, a report) ask a ledger: there is one rule for what counts of a tick that
//! reaches over an edge (`TimeSpan`), and one for how long a bin of the rate can still change (`Ledger::follow`).

mod bins;
mod span;

use std::collections::{VecDeque, vec_deque};

pub(crate) use bins::known;
pub use bins::{BIN_NS, Bin, FlowBasis, MOST_BINS};
pub(crate) use span::{Mean, Ticked, TimeSpan};

/// Ticks of one kind, the oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Ledger<T>(VecDeque<T>);

impl<T> Ledger<T> {
    /// A ledger without ticks.
    #[must_use]
    pub const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Takes the tick that follows.
    pub fn add(&mut self, tick: T) {
        self.0.push_back(tick);
    }

    /// All ticks.
    #[must_use]
    pub fn iter(&self) -> vec_deque::Iter<'_, T> {
        self.0.iter()
    }

    /// All ticks, to be changed.
    pub fn iter_mut(&mut self) -> vec_deque::IterMut<'_, T> {
        self.0.iter_mut()
    }

    /// The oldest.
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.0.front()
    }

    /// The newest.
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.0.back()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no ticks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Lets go of all of them.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Lets go of the oldest, so that at most so many are left.
    pub fn keep_newest(&mut self, most: usize) {
        self.0.drain(..self.0.len().saturating_sub(most));
    }
}

#[allow(private_bounds, reason = "what is a tick is decided here")]
impl<T: Ticked> Ledger<T> {
    /// Lets go of the ticks that were over by then, monotonic ns.
    pub fn forget(&mut self, until_ns: u64) {
        while self.0.pop_front_if(|tick| tick.span().to_ns <= until_ns).is_some() {}
    }

    /// The first tick that was not over by then, to be changed.
    pub fn after_mut(&mut self, at_ns: u64) -> Option<&mut T> {
        let after = self.0.partition_point(|tick| tick.span().to_ns <= at_ns);
        self.0.get_mut(after)
    }

    /// The ticks that began then or later.
    #[must_use]
    pub fn since(&self, from_ns: u64) -> vec_deque::Iter<'_, T> {
        self.0.range(self.0.partition_point(|tick| tick.span().from_ns < from_ns)..)
    }

    /// The ticks that lie wholly between two moments.
    #[must_use]
    pub fn within(&self, from_ns: u64, to_ns: u64) -> vec_deque::Iter<'_, T> {
        let from = self.0.partition_point(|tick| tick.span().from_ns < from_ns);
        let to = self.0.partition_point(|tick| tick.span().to_ns <= to_ns);
        self.0.range(from.min(to)..to)
    }

    /// The ticks of which a part lies between two moments: their figures are weighted by that part ([`TimeSpan`]).
    pub(crate) fn reaching_in(&self, span: TimeSpan) -> vec_deque::Iter<'_, T> {
        let from = self.0.partition_point(|tick| tick.span().to_ns <= span.from_ns);
        // One that takes no time lies where it ends.
        let reaches = |tick: TimeSpan| tick.from_ns < span.to_ns || tick.to_ns <= span.to_ns;
        let to = self.0.partition_point(|tick| reaches(tick.span()));
        self.0.range(from.min(to)..to)
    }
}

impl<T> Default for Ledger<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> FromIterator<T> for Ledger<T> {
    fn from_iter<I: IntoIterator<Item = T>>(ticks: I) -> Self {
        Self(ticks.into_iter().collect())
    }
}

impl<T> Extend<T> for Ledger<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, ticks: I) {
        self.0.extend(ticks);
    }
}

impl<'a, T> IntoIterator for &'a mut Ledger<T> {
    type Item = &'a mut T;
    type IntoIter = vec_deque::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<'a, T> IntoIterator for &'a Ledger<T> {
    type Item = &'a T;
    type IntoIter = vec_deque::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
