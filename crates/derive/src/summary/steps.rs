//! Where the rate of a test changed for long, just as something else began or ended: another test, or what holds this one back.

use super::limits::LimitSeen;
use crate::ledger::Bin;
use crate::limit::Limit;

/// A rate is compared over this time on each side, ns.
const SIDE_NS: u64 = 2_000_000_000;
/// It changes by this part of the higher side at least.
const LEAST: f64 = 0.25;
/// Times as far as it varies on either side that it changes at least.
const CLEARLY: f64 = 3.0;
/// What is as close as this is at the same time, ns.
const CLOSE_NS: u64 = 1_000_000_000;
/// Bins that a side has at least, and steps that are told.
const BINS: usize = 3;
const MOST_STEPS: usize = 6;

/// A change of a rate for long.
#[derive(Debug, Clone, PartialEq)]
pub struct RateStep {
    /// When what explains it began or ended, monotonic ns.
    pub at_ns: u64,
    /// What that was.
    pub cause: StepCause,
}

/// What happened as a rate changed.
#[derive(Debug, Clone, PartialEq)]
pub enum StepCause {
    /// The test of this number began.
    TestBegan(u32),
    /// The test of this number ended.
    TestEnded(u32),
    /// This began to hold it back.
    Limit(Limit),
}

/// Another test by its number: when it began, and when it ended, monotonic ns.
pub(super) type OtherTest = (u32, u64, Option<u64>);

/// The steps of the rate of these bins that something explains.
pub(super) fn steps_of(bins: &[Bin], limits: &[LimitSeen], others: &[OtherTest]) -> Vec<RateStep> {
    let mut events: Vec<RateStep> = Vec::new();
    for &(number, from_ns, to_ns) in others {
        events.push(RateStep { at_ns: from_ns, cause: StepCause::TestBegan(number) });
        events.extend(to_ns.map(|at_ns| RateStep { at_ns, cause: StepCause::TestEnded(number) }));
    }
    let limit = |seen: &LimitSeen| RateStep { at_ns: seen.from_ns, cause: StepCause::Limit(seen.limit.clone()) };
    events.extend(limits.iter().map(limit));
    let steps = places(bins);
    let mut told: Vec<RateStep> = Vec::new();
    for at_ns in steps {
        let closest = events.iter().min_by_key(|event| event.at_ns.abs_diff(at_ns));
        let Some(event) = closest.filter(|event| event.at_ns.abs_diff(at_ns) <= CLOSE_NS) else { continue };
        if !told.contains(event) {
            told.push(event.clone());
        }
    }
    told
}

/// When a rate changed, the largest changes, in the order of time.
fn places(bins: &[Bin]) -> Vec<u64> {
    let mut found: Vec<(f64, u64)> = Vec::new();
    for bin in bins.iter().skip(1) {
        let at_ns = bin.from_ns;
        let first = bins.partition_point(|one| one.from_ns < at_ns.saturating_sub(SIDE_NS));
        let middle = bins.partition_point(|one| one.from_ns < at_ns);
        let last = bins.partition_point(|one| one.to_ns <= at_ns.saturating_add(SIDE_NS));
        let (Some(before), Some(after)) = (side(&bins[first..middle]), side(&bins[middle..last.max(middle)])) else {
            continue;
        };
        let change = (after.0 - before.0).abs();
        if change >= LEAST * before.0.max(after.0) && change >= CLEARLY * before.1.max(after.1) && change > 0.0 {
            found.push((change, at_ns));
        }
    }
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut largest: Vec<u64> = Vec::new();
    for (_, at_ns) in found {
        if largest.len() < MOST_STEPS && largest.iter().all(|other| other.abs_diff(at_ns) > SIDE_NS) {
            largest.push(at_ns);
        }
    }
    largest.sort_unstable();
    largest
}

/// Mean and standard deviation; none of too few bins.
fn side(bins: &[Bin]) -> Option<(f64, f64)> {
    let rates: Vec<f64> = bins.iter().filter_map(|bin| bin.bits_per_s).collect();
    if rates.len() < BINS {
        return None;
    }
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    Some((mean, (squares / (count - 1.0)).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::BIN_NS;

    fn bins(rates: impl Iterator<Item = f64>) -> Vec<Bin> {
        let bin = |(nth, rate): (u64, f64)| Bin {
            from_ns: nth * BIN_NS,
            to_ns: (nth + 1) * BIN_NS,
            bits_per_s: Some(rate),
            ..Bin::default()
        };
        (0..).zip(rates).map(bin).collect()
    }

    #[test]
    fn a_change_for_long_is_a_step_and_a_dip_or_a_rate_that_swings_is_none() {
        let step = |nth: u32| if nth < 70 { 480.0 + f64::from(nth % 3) } else { 240.0 + f64::from(nth % 5) };
        assert_eq!(places(&bins((0..200).map(step))), [70 * BIN_NS], "at 7 s");
        let dip = |nth: u32| if (70..73).contains(&nth) { 10.0 } else { 480.0 };
        assert!(places(&bins((0..200).map(dip))).is_empty(), "it is back at once");
        let swings = |nth: u32| if nth % 7 < 3 { 480.0 } else { 100.0 };
        assert!(places(&bins((0..200).map(swings))).is_empty(), "it does so all the time");
    }
}
