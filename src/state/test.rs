//! Which of the tests the screen is about: the one that was chosen, else the busiest of those that ran when the last one ended.

use crate::derive::{Metrics, Test};
use std::cmp::Reverse;
use std::sync::Arc;

/// The tests as they are listed.
#[derive(Debug, Default)]
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

    /// Makes the metrics those of the test that the screen is about. One that is alone is all there is.
    pub(super) fn apply(&mut self, metrics: &mut Metrics) {
        let rows = rows(metrics);
        let stands =
            |test: &&Arc<Test>| Some(test.number) == self.selected && (self.is_chosen || test.ended_ns.is_none());
        if !rows.iter().any(|test| stands(&test)) {
            let rate = |test: &&Arc<Test>| test.told.flow.bits_per_s.or(test.mean_bits_per_s).unwrap_or(0.0);
            let running = rows.iter().filter(|test| test.ended_ns.is_none());
            let busiest = running.max_by(|one, other| rate(one).total_cmp(&rate(other))).or(rows.first());
            (self.selected, self.is_chosen) = (busiest.map(|test| test.number), false);
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
