//! Which treatments were measured of a load, and what the words mean that stand for them.

use crate::derive::comparison::{LoadTable, PathRow, tables};
use crate::sample::{Comparison, Treatment};

/// The treatments have a table of their own: there is more than the rate to say of them.
pub(super) fn is_apart(table: &LoadTable) -> bool {
    let is_treated = |row: &PathRow| row.pinned.is_some() || row.steered.is_some() || row.steer_alone.is_some();
    let is_steered = |row: &PathRow| row.steered.is_some() || row.steer_alone.is_some();
    table.rows.iter().any(is_steered) || (tells_retransmits(table) && table.rows.iter().any(is_treated))
}

/// It is known of some path how much TCP sent again.
pub(super) fn tells_retransmits(table: &LoadTable) -> bool {
    let known = |row: &PathRow| row.unpinned.as_ref().is_some_and(|side| side.retransmits.is_some());
    table.load.is_bulk() && table.rows.iter().any(known)
}

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
    if comparison.plan.pins && !tables(comparison).iter().all(is_apart) {
        words.push(("PINNED", "rate with threads pinned as the key p would; columns to the left: unpinned"));
    }
    if comparison.plan.steers_alone || all().any(|one| one.steered) {
        words.push(("GAIN", "what the treatment changed, of the unpinned rate, round by round"));
    } else if comparison.plan.pins {
        words.push(("GAIN", "what pinning changed, of the unpinned rate, round by round"));
    }
    words
}
