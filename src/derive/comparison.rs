//! The table of a comparison of paths: means over the rounds with their intervals, what pinning brought, and which paths differ at all.
//!
//! The round is what is counted, not the second: seconds of one run resemble each other, and what changes from run to run would be in no
//! interval made of them. The intervals are of Student's t at 95 %; two paths differ where theirs do not overlap, which two that are the
//! same do less often than once in twenty.

mod window;

pub use window::{LoadFigures, LoadWindow};

use crate::sample::{ComparedPath, Comparison, Load, Measurement};
use std::collections::BTreeMap;

/// Quantiles of Student's t at 95 %, two-sided, for 1 to 30 degrees of freedom; of more the last is taken, which is wider than need be.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// A mean over rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// How many rounds it is the mean of.
    pub rounds: usize,
    /// Standard deviation of the rounds (n − 1); none of one round.
    pub deviation: Option<f64>,
    /// The interval that holds the true mean 95 times of 100; none of one round.
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// Of these rounds; none of no round.
    #[must_use]
    pub fn of(rounds: &[f64]) -> Option<Self> {
        let count = rounds.len();
        let mean = rounds.iter().sum::<f64>() / count as f64;
        let known = Self { mean, rounds: count, deviation: None, interval: None };
        let Some(quantile) = count.checked_sub(2).map(|freedom| QUANTILES[freedom.min(QUANTILES.len() - 1)]) else {
            return (count == 1).then_some(known);
        };
        let squares = rounds.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
        let deviation = (squares / (count - 1) as f64).sqrt();
        let half = quantile * deviation / (count as f64).sqrt();
        Some(Self { deviation: Some(deviation), interval: Some((mean - half, mean + half)), ..known })
    }

    /// Half of the interval; none of one round.
    #[must_use]
    pub fn half(&self) -> Option<f64> {
        self.interval.map(|(_, to)| to - self.mean)
    }

    /// Above the other one, and not by chance; false where either has no interval.
    #[must_use]
    pub fn is_above(&self, other: &Self) -> bool {
        self.interval.zip(other.interval).is_some_and(|((from, _), (_, to))| from > to)
    }

    /// Above or below, and not by chance; none where either has no interval.
    #[must_use]
    pub fn differs_from(&self, other: &Self) -> Option<bool> {
        self.interval.and(other.interval)?;
        Some(self.is_above(other) || other.is_above(self))
    }
}

/// A load on a path, unpinned or pinned, over all rounds. Whatever is not the rate is a mean of the rounds in which it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct SideFigures {
    /// What arrived, a second ([`Load::unit`]).
    pub rate: Estimate,
    /// Coefficient of variation within a run, in bins of 100 ms.
    pub cv: Option<f64>,
    /// Migrations a second.
    pub moves_per_s: Option<f64>,
    /// Cores' worth of the whole machine but vnettop.
    pub busy_cores: Option<f64>,
    /// Of it in softirqs.
    pub softirq_cores: Option<f64>,
    /// Packets that did not arrive, share.
    pub lost_share: Option<f64>,
}

impl SideFigures {
    /// CPU time for each bit, transaction or packet that arrived, seconds, from cores' worth; none where nothing arrived.
    #[must_use]
    pub fn cpu_s_each(&self, cores: Option<f64>) -> Option<f64> {
        cores.filter(|_| self.rate.mean > 0.0).map(|cores| cores / self.rate.mean)
    }
}

/// A path in the table of one load.
#[derive(Debug, Clone, PartialEq)]
pub struct PathRow {
    /// Its name.
    pub name: String,
    /// Unpinned; none where there is no rate.
    pub unpinned: Option<SideFigures>,
    /// Pinned.
    pub pinned: Option<SideFigures>,
    /// What pinning changed, share of the unpinned rate of the same round.
    pub gain: Option<Estimate>,
    /// Its place by the unpinned rate, from 1: the best and the worst that it can have; none without an interval.
    pub place: Option<(usize, usize)>,
    /// Why something is not known, as it was last.
    pub missing: Option<String>,
}

/// One load on all paths, the fastest first; those without a rate last.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadTable {
    /// The load.
    pub load: Load,
    /// The paths.
    pub rows: Vec<PathRow>,
}

impl LoadTable {
    /// Groups of paths in which each interval overlaps with each, the names in the table's order; no group is part of another one.
    #[must_use]
    pub fn alike(&self) -> Vec<Vec<&str>> {
        let interval = |row: &PathRow| row.unpinned.as_ref().and_then(|side| side.rate.interval);
        let known: Vec<(&str, (f64, f64))> =
            self.rows.iter().filter_map(|row| Some((row.name.as_str(), interval(row)?))).collect();
        // Intervals that all overlap share the lower end of one of them.
        let around = |point: f64| {
            let holds = |at: &usize| (known[*at].1.0..=known[*at].1.1).contains(&point);
            (0..known.len()).filter(holds).collect::<Vec<_>>()
        };
        let mut groups: Vec<Vec<usize>> = known.iter().map(|(_, (from, _))| around(*from)).collect();
        groups.sort();
        groups.dedup();
        let all = groups.clone();
        let is_part = |group: &Vec<usize>| {
            all.iter().any(|other| other.len() > group.len() && group.iter().all(|at| other.contains(at)))
        };
        groups.retain(|group| group.len() > 1 && !is_part(group));
        groups.into_iter().map(|group| group.into_iter().map(|at| known[at].0).collect()).collect()
    }
}

/// The tables of a comparison, one for each load that was measured.
#[must_use]
pub fn tables(comparison: &Comparison) -> Vec<LoadTable> {
    comparison.plan.loads.iter().map(|&load| table(comparison, load)).filter(|table| !table.rows.is_empty()).collect()
}

fn table(comparison: &Comparison, load: Load) -> LoadTable {
    let mut rows: Vec<PathRow> = comparison.paths.iter().filter_map(|path| row(path, load)).collect();
    let rate = |row: &PathRow| row.unpinned.as_ref().map(|side| side.rate);
    rows.sort_by(|a, b| {
        let mean = |row| rate(row).map_or(f64::NEG_INFINITY, |rate| rate.mean);
        mean(b).total_cmp(&mean(a))
    });
    let rates: Vec<Estimate> = rows.iter().filter_map(rate).collect();
    for row in &mut rows {
        let Some(own) = rate(row).filter(|own| own.interval.is_some()) else { continue };
        let above = rates.iter().filter(|other| other.is_above(&own)).count();
        let below = rates.iter().filter(|other| own.is_above(other)).count();
        row.place = Some((above + 1, rates.len() - below));
    }
    LoadTable { load, rows }
}

/// None where the load was not tried on the path.
fn row(path: &ComparedPath, load: Load) -> Option<PathRow> {
    let of_load = || path.measurements.iter().filter(move |one| one.load == load);
    let last = of_load().next_back()?;
    let missing = of_load().rev().find_map(|one| one.missing.clone()).or(last.missing.clone());
    let side = |pinned: bool| of_side(&of_load().filter(|one| one.pinned == pinned).collect::<Vec<_>>());
    let (mut unpinned, mut pinned) = (BTreeMap::new(), BTreeMap::new());
    for one in of_load() {
        if let Some(rate) = one.rate {
            if one.pinned { &mut pinned } else { &mut unpinned }.insert(one.round, rate);
        }
    }
    let gains: Vec<f64> = unpinned
        .iter()
        .filter(|(_, before)| **before > 0.0)
        .filter_map(|(round, before)| Some(pinned.get(round)? / before - 1.0))
        .collect();
    let gain = Estimate::of(&gains);
    Some(PathRow { name: path.name.clone(), unpinned: side(false), pinned: side(true), gain, place: None, missing })
}

fn of_side(measurements: &[&Measurement]) -> Option<SideFigures> {
    let mean = |figure: fn(&Measurement) -> Option<f64>| {
        let known: Vec<f64> = measurements.iter().filter_map(|one| figure(one)).collect();
        Estimate::of(&known)
    };
    let plain = |figure| mean(figure).map(|estimate| estimate.mean);
    Some(SideFigures {
        rate: mean(|one| one.rate)?,
        cv: plain(|one| one.cv),
        moves_per_s: plain(|one| one.moves_per_s),
        busy_cores: plain(|one| one.busy_cores),
        softirq_cores: plain(|one| one.softirq_cores),
        lost_share: plain(|one| one.lost_share),
    })
}

#[cfg(test)]
mod tests;
