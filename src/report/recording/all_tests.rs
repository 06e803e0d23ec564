//! Several tests of a recording: which one leads the report, and all of them at a glance.

use super::cause::{SWINGS, state_and_cause};
use super::lost::share_and_count;
use super::thread_names::ThreadNames;
use super::words::{UNKNOWN, count, is_udp, known, known_percent, length, ran_s, test_title};
use crate::derive::test::most_losing;
use crate::derive::{RecordingSummary, TestSummary};
use crate::report::document::{Block, ReportTable};
use crate::report::figures::CommonUnit;

/// A test that ran for less leads no longer one, and is folded below it, seconds.
pub(super) const SHORT_S: f64 = 2.0;

/// The test that a report starts with: the one that loses most, where one loses much, as on the screen; else one that was pinned;
/// else, of those with an unsteady rate and then of all, the one that carried most.
pub(super) fn leading(summary: &RecordingSummary) -> Option<&TestSummary> {
    let long = || summary.tests.iter().filter(|test| ran_s(test) >= SHORT_S);
    if let Some(worst) = most_losing(long().filter_map(|test| Some((test.lost_share?, test)))) {
        return Some(worst);
    }
    let is_compared = |test: &&TestSummary| test.test.as_ref().is_some_and(|of| of.metrics.card.is_some());
    let is_unsteady = |test: &&TestSummary| test.rate.jitter.and_then(|of| of.cv).is_some_and(|cv| cv >= SWINGS);
    let largest = |one: &&TestSummary, other: &&TestSummary| carried(one).total_cmp(&carried(other));
    let pinned = long().filter(is_compared).max_by(largest);
    pinned.or(long().filter(is_unsteady).max_by(largest)).or(summary.tests.iter().max_by(largest))
}

/// The test that carried most: what a command measured, and what recordings are compared by.
pub(super) fn largest(summary: &RecordingSummary) -> Option<&TestSummary> {
    summary.tests.iter().max_by(|one, other| carried(one).total_cmp(&carried(other)))
}

/// It loses so much that this is said first.
pub(super) fn loses_much(test: &TestSummary) -> bool {
    most_losing(test.lost_share.map(|share| (share, ())).into_iter()).is_some()
}

fn carried(test: &TestSummary) -> f64 {
    test.mean_bits_per_s.unwrap_or(0.0) * ran_s(test)
}

/// `Test 2 of 3`; none of a single test.
pub(super) fn which(summary: &RecordingSummary, test: &TestSummary) -> Option<String> {
    let number = test.test.as_ref()?.number;
    let all = summary.tests.len() + summary.tests_left_out;
    (all > 1).then(|| format!("Test {number} of {all}"))
}

/// A row each, the one that leads first; nothing of a single test.
pub(super) fn table(summary: &RecordingSummary, names: &ThreadNames) -> Option<Block> {
    let led = leading(summary)?;
    let rest = summary.tests.iter().filter(|test| !std::ptr::eq(*test, led));
    let all: Vec<&TestSummary> = std::iter::once(led).chain(rest).filter(|test| ran_s(test) >= SHORT_S).collect();
    if all.len() < 2 {
        return None;
    }
    let unit = CommonUnit::of_rates(&all.iter().filter_map(|test| test.mean_bits_per_s).collect::<Vec<f64>>());
    let row = |test: &&TestSummary| {
        let again = if is_udp(test) { UNKNOWN.to_owned() } else { known(test.own_retransmits, count) };
        vec![
            test_title(test),
            known(test.mean_bits_per_s, |mean| unit.figure(mean)),
            share_and_count(test),
            again,
            known_percent(test.rate.jitter.and_then(|of| of.cv)),
            length(ran_s(test)),
            names.sentence(&state_and_cause(test)),
        ]
    };
    let columns = ["test", ">mean rate", ">packets lost", ">own retransmits", ">CV", ">length", "result"];
    let first = if loses_much(all[0]) { "the one that loses most first" } else { "the main one first" };
    let caption = format!("All tests, {first}");
    Some(Block::Table(ReportTable::new(&caption, &columns, all.iter().map(row).collect())))
}
