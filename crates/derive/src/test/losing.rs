//! Which of several tests loses packets, and how much: the one that loses much is what one came to see.

use super::Test;
use crate::flow::DatagramTest;

/// A loss below this share is in the figures only.
pub const LOSING: f64 = 0.001;
/// From this share on a test comes before those that lose nothing.
const MUCH: f64 = 0.01;

/// The one that loses most, where one loses much; each comes with its share.
pub fn most_losing<T>(tests: impl Iterator<Item = (f64, T)>) -> Option<T> {
    tests.filter(|(share, _)| *share >= MUCH).max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, test)| test)
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
