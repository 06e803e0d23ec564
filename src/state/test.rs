//! Which of the tests the screen is about: the one that was chosen, else the busiest of those that ran when the last one ended.

use crate::derive::{Metrics, Test};
use std::cmp::Reverse;
use std::sync::Arc;

/// The tests as they are listed.
#[derive(Debug, Clone, Default)]
pub struct TestList {
    selected: Option<u32>,
    /// A person chose it: it stays so when it has ended.
    is_chosen: bool,
}

impl TestList {
    /// By number.
    #[must_use]
    pub fn selected(&self) -> Option<u32> {
        self.selected
    }

    /// Chooses this one.
    pub(crate) fn choose(&mut self, number: u32) {
        (self.selected, self.is_chosen) = (Some(number), true);
    }

    /// Chooses the one that is so many rows further down.
    pub(crate) fn step(&mut self, metrics: &Metrics, by: usize) {
        let rows = rows(metrics);
        let at = rows.iter().position(|test| Some(test.number) == self.selected);
        if let Some(next) = rows.get((at.unwrap_or(0) + by) % rows.len().max(1)) {
            self.choose(next.number);
        }
    }

    /// Nobody has chosen.
    pub(crate) fn release(&mut self) {
        self.is_chosen = false;
    }

    /// Makes the metrics those of the test that the screen is about. One that is alone is all there is; after the last one
    /// has ended everything that is watched is shown again, unless one was chosen.
    pub(super) fn apply(&mut self, metrics: &mut Metrics) {
        let rows = rows(metrics);
        let rate = |test: &Test| test.told.flow.bits_per_s.unwrap_or(0.0);
        let mut running = rows.iter().filter(|test| test.ended_ns.is_none());
        let is_there = |test: &&Arc<Test>| Some(test.number) == self.selected;
        self.is_chosen &= rows.iter().any(|test| is_there(&test));
        let busiest = running.clone().max_by(|one, other| rate(one).total_cmp(&rate(other)));
        let is_idle = busiest.is_some_and(|test| rate(test) == 0.0);
        if !self.is_chosen && !running.any(|test| is_there(&test) && (is_idle || rate(test) > 0.0)) {
            self.selected = busiest.map(|test| test.number);
        }
        if let Some(number) = self.selected.filter(|_| rows.len() > 1) {
            metrics.look_at(number);
        }
    }
}

/// In the order of the list: those that run as they began, then those that have ended, the last one first.
#[must_use]
pub fn rows(metrics: &Metrics) -> Vec<Arc<Test>> {
    let mut rows: Vec<Arc<Test>> = metrics.tests.clone();
    rows.sort_by_key(|test| (test.ended_ns.is_some(), Reverse(test.ended_ns), test.number));
    rows
}
