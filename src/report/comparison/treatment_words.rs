//! Which treatments were measured of a load, and what the words mean that stand for them.

use crate::derive::comparison::LoadTable;
use crate::sample::{Comparison, Treatment};

/// What was measured of a load beside its unpinned rate.
pub(super) fn measured(comparison: &Comparison, table: &LoadTable) -> Vec<Treatment> {
    let is_there = |treatment: Treatment| table.rows.iter().any(|row| row.side(treatment).is_some());
    let all = [Treatment::Pinned, Treatment::PinnedAndSteered, Treatment::Steered];
    let wanted = |of: &Treatment| is_there(*of) || (*of == Treatment::Pinned && comparison.plan.pins);
    all.into_iter().filter(wanted).collect()
}

/// What the heads mean that are of treatments.
pub(super) fn words(comparison: &Comparison) -> Vec<(&'static str, &'static str)> {
    let mut words = Vec::new();
    let all = || comparison.paths.iter().flat_map(|path| &path.measurements);
    if all().any(|one| one.load.is_bulk() && one.retransmits.is_some()) {
        words.push(("RETRANS", "segments that TCP sent again in one measurement, mean of the rounds"));
    }
    if all().any(|one| one.steered && one.rate.is_some()) {
        words.push(("steered", "rps_cpus puts packets onto the receiver's core, so that they keep order"));
    }
    if comparison.plan.pins {
        words.push(("PINNED", "rate with threads pinned as the key p would; columns to the left: unpinned"));
    }
    if comparison.plan.steers_alone || all().any(|one| one.steered) {
        words.push(("GAIN", "what the treatment changed, of the unpinned rate, round by round"));
    } else if comparison.plan.pins {
        words.push(("GAIN", "what pinning changed, of the unpinned rate, round by round"));
    }
    words
}
