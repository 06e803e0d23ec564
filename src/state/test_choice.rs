//! Which of the tests the screen is about: the one that was chosen, else one that loses much, else the one that leads.

use crate::derive::test::{losing, most_losing};
use crate::derive::{Metrics, Test};
use std::sync::Arc;

/// The tests as they are listed.
#[derive(Debug, Clone, Default)]
pub struct TestList {
    /// By number; it stays so when it has ended.
    pub(crate) chosen: Option<u32>,
    /// The one that lost much when none did before, by number: it is what one came to see, and stays until it ends.
    losing: Option<u32>,
}

impl TestList {
    /// Chooses the one that is so many rows further down.
    pub(crate) fn step(&mut self, metrics: &Metrics, by: usize) {
        let rows = rows(metrics);
        let at = rows.iter().position(|test| Some(test.number) == metrics.test);
        self.chosen = rows.get(at.map_or(0, |at| at + by) % rows.len().max(1)).map(|test| test.number);
    }

    /// Makes the metrics those of the test that the screen is about. After the last test has ended, everything watched is shown
    /// again, unless one was chosen; the last graph stays until another test starts.
    pub(super) fn apply(&mut self, metrics: Metrics) -> Metrics {
        self.chosen = self.chosen.filter(|&number| metrics.tests.iter().any(|test| test.number == number));
        self.losing = self.losing.filter(|&number| runs(&metrics, number)).or_else(|| loses_most(&metrics));
        match self.chosen.or(self.losing).or(metrics.test) {
            Some(number) => metrics.about(number),
            None => metrics.with_last_result().with_traffic(),
        }
    }
}

fn runs(metrics: &Metrics, number: u32) -> bool {
    metrics.tests.iter().any(|test| test.number == number && test.ended_ns.is_none())
}

/// The test that loses most, where one loses much, by number.
fn loses_most(metrics: &Metrics) -> Option<u32> {
    most_losing(metrics.tests.iter().filter_map(|test| Some((losing(test)?, test.number))))
}

/// In the order of the list: as they began.
#[must_use]
pub fn rows(metrics: &Metrics) -> Vec<Arc<Test>> {
    let mut rows: Vec<Arc<Test>> = metrics.tests.clone();
    rows.sort_by_key(|test| test.number);
    rows
}
