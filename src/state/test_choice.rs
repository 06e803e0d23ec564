//! Which of the tests the screen is about: the one that was chosen, else one that loses much, else the one that leads.

use crate::derive::flow::DatagramTest;
use crate::derive::{Metrics, Test};
use std::sync::Arc;

/// A loss below this share is in the figures only.
pub const LOSING: f64 = 0.001;
/// From this share on a test is shown before those that lose nothing.
const MUCH: f64 = 0.01;

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
        self.losing = self.losing.filter(|&number| runs(&metrics, number)).or_else(|| most_losing(&metrics));
        match self.chosen.or(self.losing).or(metrics.test) {
            Some(number) => metrics.about(number),
            None => metrics.with_last_result().with_traffic(),
        }
    }
}

fn runs(metrics: &Metrics, number: u32) -> bool {
    metrics.tests.iter().any(|test| test.number == number && test.ended_ns.is_none())
}

/// The test that loses most, where one loses much.
fn most_losing(metrics: &Metrics) -> Option<u32> {
    let losing = metrics.tests.iter().filter_map(|test| Some((losing(test)?, test.number)));
    losing.filter(|(share, _)| *share >= MUCH).max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, number)| number)
}

/// The share of its packets that a test loses that runs; `None` where it loses next to none.
#[must_use]
pub fn losing(test: &Test) -> Option<f64> {
    let losses = &test.metrics.losses;
    let of_datagrams = test.metrics.flow.tests.iter().filter_map(DatagramTest::lost).reduce(f64::max);
    let of_packets = losses.sent.filter(|sent| *sent > 0.0).map(|sent| losses.packets() / sent);
    let share = of_datagrams.into_iter().chain(of_packets).reduce(f64::max)?;
    (test.ended_ns.is_none() && share >= LOSING).then_some(share.min(1.0))
}

/// In the order of the list: as they began.
#[must_use]
pub fn rows(metrics: &Metrics) -> Vec<Arc<Test>> {
    let mut rows: Vec<Arc<Test>> = metrics.tests.clone();
    rows.sort_by_key(|test| test.number);
    rows
}
