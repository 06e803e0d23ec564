//! The table of a comparison of paths: means over the rounds with their intervals, what pinning brought, and which paths differ at all.
//!
//! The round is what is counted, not the second: seconds of one run resemble each other, and what changes from run to run would be in no
//! interval made of them. Two paths are judged by the interval of their ratio, to which each brings its own spread: a tun varies
//! otherwise than a veth pair. Of a hundred pairs that are the same, one is said to differ.

mod groups;
mod window;

pub use groups::{PathGroups, PathVerdict};
pub use window::{LoadFigures, LoadWindow};

use super::experiment::Difference;
use super::migration_cost::series;
use groups::PairVerdicts;
use std::collections::BTreeMap;
use vnettop_sample::{ComparedPath, Comparison, Load, Measurement, RoundTrips, Treatment};

/// A mean over rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The rounds that it is the mean of.
    pub rounds: Vec<f64>,
    /// The mean.
    pub mean: f64,
    /// The interval that holds the true mean 99 times of 100; none of one round.
    pub interval: Option<Difference>,
}

impl Estimate {
    /// The estimate from these rounds; `None` without rounds.
    #[must_use]
    pub fn of(rounds: Vec<f64>) -> Option<Self> {
        let (mean, interval) = (series::mean(&rounds), Difference::of_mean(&rounds));
        (!rounds.is_empty()).then_some(Self { rounds, mean, interval })
    }

    /// Standard deviation of the rounds (n − 1); none of one round.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        let freedom = self.rounds.len().checked_sub(2)? + 1;
        let centred = series::centred(&self.rounds);
        Some((series::dot(&centred, &centred) / freedom as f64).sqrt())
    }

    /// How much higher this rate is than the other one, as a share of the other; `None` when either has one round or the other
    /// is 0.
    #[must_use]
    pub fn against(&self, other: &Self) -> Option<Difference> {
        Difference::unpaired(&self.rounds, &other.rounds).filter(|_| other.mean > 0.0)
    }
}

/// A load on a path after one treatment, over all rounds. Figures other than the rate are means of the rounds in which they are
/// known.
#[derive(Debug, Clone, PartialEq)]
pub struct SideFigures {
    /// What arrived, a second ([`Load::unit`]).
    pub rate: Estimate,
    /// Coefficient of variation within a run, in bins of 100 ms.
    pub cv: Option<f64>,
    /// Migrations a second.
    pub moves_per_s: Option<f64>,
    /// CPU use of the whole machine but vnettop, cores' worth.
    pub busy_cores: Option<f64>,
    /// Part of `busy_cores` spent in softirqs, cores' worth.
    pub softirq_cores: Option<f64>,
    /// Packets that did not arrive, share.
    pub lost_share: Option<f64>,
    /// Segments that TCP sent again in one measurement.
    pub retransmits: Option<f64>,
    /// Round trips beside the load; none where nobody asked.
    pub round_trips: Option<RoundTripFigures>,
}

impl SideFigures {
    /// CPU time for each bit, transaction or packet that arrived, seconds, from cores' worth; none where nothing arrived.
    #[must_use]
    pub fn cpu_s_each(&self, cores: Option<f64>) -> Option<f64> {
        cores.filter(|_| self.rate.mean > 0.0).map(|cores| cores / self.rate.mean)
    }
}

/// How long one byte there and one back took, over all rounds: of each round its own quantiles, of these the mean.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundTripFigures {
    /// Median, us.
    pub p50_us: Estimate,
    /// 99th percentile, us.
    pub p99_us: Estimate,
}

impl RoundTripFigures {
    /// Of these rounds; `None` without rounds.
    fn of(rounds: &[RoundTrips]) -> Option<Self> {
        let figure = |of: fn(&RoundTrips) -> f64| Estimate::of(rounds.iter().map(of).collect());
        Some(Self { p50_us: figure(|one| one.p50_us)?, p99_us: figure(|one| one.p99_us)? })
    }
}

/// A path in the table of one load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PathRow {
    /// Its name.
    pub name: String,
    /// Round trips while nothing was sent; none where nobody asked.
    pub idle: Option<RoundTripFigures>,
    /// Unpinned; none where there is no rate.
    pub unpinned: Option<SideFigures>,
    /// Pinned.
    pub pinned: Option<SideFigures>,
    /// Pinned, and its packets steered.
    pub steered: Option<SideFigures>,
    /// Its packets steered and nothing pinned.
    pub steer_alone: Option<SideFigures>,
    /// What pinning changed.
    pub gain: Option<PinningGain>,
    /// What pinning and steering changed together, of the unpinned rate too.
    pub steered_gain: Option<PinningGain>,
    /// What steering changed alone, of the unpinned rate too.
    pub steer_alone_gain: Option<PinningGain>,
    /// Its place by the unpinned rate, from 1: the best and the worst that it can have; none without an interval.
    pub place: Option<(usize, usize)>,
    /// Why something is not known, as it was last.
    pub missing: Option<String>,
    /// Why it was not steered, as it was last; `missing` is of the rest.
    pub unsteered: Option<String>,
}

impl PathRow {
    /// Its figures after a treatment.
    #[must_use]
    pub fn side(&self, treatment: Treatment) -> Option<&SideFigures> {
        match treatment {
            Treatment::Unpinned => self.unpinned.as_ref(),
            Treatment::Pinned => self.pinned.as_ref(),
            Treatment::PinnedAndSteered => self.steered.as_ref(),
            Treatment::Steered => self.steer_alone.as_ref(),
        }
    }

    /// What a treatment changed.
    #[must_use]
    pub fn gain_of(&self, treatment: Treatment) -> Option<&PinningGain> {
        match treatment {
            Treatment::Unpinned => None,
            Treatment::Pinned => self.gain.as_ref(),
            Treatment::PinnedAndSteered => self.steered_gain.as_ref(),
            Treatment::Steered => self.steer_alone_gain.as_ref(),
        }
    }
}

/// What a treatment (pinning, steering, both) changed, as a share of the unpinned rate, round by round: what the machine did in a round, it did to both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PinningGain {
    /// By the means of both.
    pub mean: f64,
    /// Rounds that have both.
    pub rounds: usize,
    /// The gain with its interval; `None` for one round.
    pub interval: Option<Difference>,
}

impl PinningGain {
    /// The gain from treated and unpinned rates of the same rounds; `None` without rounds, or when nothing arrived unpinned.
    fn of(pairs: &[[f64; 2]]) -> Option<Self> {
        let [treated, unpinned] = [0, 1].map(|side| pairs.iter().map(|pair| pair[side]).sum::<f64>());
        (unpinned > 0.0).then(|| Self {
            mean: treated / unpinned - 1.0,
            rounds: pairs.len(),
            interval: Difference::paired(pairs),
        })
    }

    /// Whether it makes a difference; `None` for one round.
    #[must_use]
    pub fn verdict(&self) -> Option<PathVerdict> {
        self.interval.map(PathVerdict::from)
    }
}

/// One load on all paths, the fastest first; those without a rate last.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadTable {
    /// The load.
    pub load: Load,
    /// The paths.
    pub rows: Vec<PathRow>,
    /// Paths that do not differ unpinned, and paths of which that is not known.
    pub groups: PathGroups,
}

/// The tables of a comparison, one for each load that was measured.
#[must_use]
pub fn tables(comparison: &Comparison) -> Vec<LoadTable> {
    comparison.plan.loads.iter().map(|&load| table(comparison, load)).filter(|table| !table.rows.is_empty()).collect()
}

fn table(comparison: &Comparison, load: Load) -> LoadTable {
    let mut rows: Vec<PathRow> = comparison.paths.iter().filter_map(|path| row(path, load)).collect();
    let mean = |row: &PathRow| row.unpinned.as_ref().map_or(f64::NEG_INFINITY, |side| side.rate.mean);
    rows.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
    let pairs = PairVerdicts::of(&rows);
    let known = rows.iter().filter(|row| row.unpinned.is_some()).count();
    for (at, row) in rows.iter_mut().enumerate() {
        if row.unpinned.as_ref().is_some_and(|side| side.rate.interval.is_some()) {
            let (above, below) = pairs.around(at);
            row.place = Some((above + 1, known - below));
        }
    }
    let groups = pairs.groups(&rows);
    LoadTable { load, rows, groups }
}

/// A path's row for one load; `None` when the load was not tried on the path.
fn row(path: &ComparedPath, load: Load) -> Option<PathRow> {
    let of_load = || path.measurements.iter().filter(move |one| one.load == load);
    of_load().next()?;
    let missing =
        |steered: bool| of_load().rev().filter(|one| one.steered == steered).find_map(|one| one.missing.clone());
    let of = |treatment| of_load().filter(move |one| one.treatment() == treatment);
    let side = |treatment| of_side(&of(treatment).collect::<Vec<_>>());
    let rates =
        |treatment| of(treatment).filter_map(|one| Some((one.round, one.rate?))).collect::<BTreeMap<u32, f64>>();
    let before = rates(Treatment::Unpinned);
    let gain = |treatment| {
        let after = rates(treatment);
        let pairs = after.iter().filter_map(|(round, rate)| Some([*rate, *before.get(round)?]));
        PinningGain::of(&pairs.collect::<Vec<_>>())
    };
    // One a visit, and all measurements of a visit have it.
    let idle: BTreeMap<u32, RoundTrips> =
        path.measurements.iter().filter_map(|one| Some((one.round, one.idle_round_trips?))).collect();
    Some(PathRow {
        name: path.name.clone(),
        idle: RoundTripFigures::of(&idle.into_values().collect::<Vec<_>>()),
        unpinned: side(Treatment::Unpinned),
        pinned: side(Treatment::Pinned),
        steered: side(Treatment::PinnedAndSteered),
        steer_alone: side(Treatment::Steered),
        gain: gain(Treatment::Pinned),
        steered_gain: gain(Treatment::PinnedAndSteered),
        steer_alone_gain: gain(Treatment::Steered),
        place: None,
        missing: missing(false),
        unsteered: missing(true),
    })
}

fn of_side(measurements: &[&Measurement]) -> Option<SideFigures> {
    let mean = |figure: fn(&Measurement) -> Option<f64>| {
        Estimate::of(measurements.iter().filter_map(|one| figure(one)).collect())
    };
    let plain = |figure| mean(figure).map(|estimate| estimate.mean);
    Some(SideFigures {
        rate: mean(|one| one.rate)?,
        cv: plain(|one| one.cv),
        moves_per_s: plain(|one| one.moves_per_s),
        busy_cores: plain(|one| one.busy_cores),
        softirq_cores: plain(|one| one.softirq_cores),
        lost_share: plain(|one| one.lost_share),
        retransmits: plain(|one| one.retransmits.map(|count| count as f64)),
        round_trips: RoundTripFigures::of(&measurements.iter().filter_map(|one| one.round_trips).collect::<Vec<_>>()),
    })
}

#[cfg(test)]
mod tests;
