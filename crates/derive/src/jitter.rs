//! The spread of a rate over a window of bins.

use super::ledger::{Bin, Mean};
use serde::Serialize;

/// The spread of the watched flow's rate; every rate in bits/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Jitter {
    /// Bins with a known rate.
    pub bins: usize,
    /// Length of a bin, seconds (the median, where they differ).
    pub bin_s: f64,
    /// The time of these bins, seconds: without the gaps between stretches.
    pub window_s: f64,
    /// Mean.
    #[serde(rename = "mean_bits_per_s")]
    pub mean: f64,
    /// Standard deviation (of the sample, n - 1).
    #[serde(rename = "deviation_bits_per_s")]
    pub deviation: f64,
    /// Coefficient of variation: deviation / mean; none where the mean is 0.
    pub cv: Option<f64>,
    /// 5th percentile.
    #[serde(rename = "p5_bits_per_s")]
    pub p5: f64,
    /// Median.
    #[serde(rename = "p50_bits_per_s")]
    pub p50: f64,
    /// 95th percentile.
    #[serde(rename = "p95_bits_per_s")]
    pub p95: f64,
    /// Longest time in a row below [`DIP`] of the median, or without any payload, seconds.
    pub longest_dip_s: f64,
}

/// Below this share of its median a rate is in a dip, wherever one is shown, marked or waited for. A report and a card have the
/// longest one in a row; a graph and the bar of a replay mark where a second is so; `--on dip` takes this unless it is given
/// another share.
pub const DIP: f64 = 0.5;
/// Below this coefficient of variation a rate is steady.
pub const STEADY: f64 = 0.05;
/// A shorter time, seconds, is not said to be steady apart from what was before it.
pub const LEAST_STEADY_S: f64 = 5.0;
/// Fewer bins than this have no spread worth a number.
pub const LEAST_BINS: usize = 10;

impl Jitter {
    /// The spread over these bins; none below [`LEAST_BINS`] known rates.
    #[must_use]
    pub fn of<'a>(bins: impl IntoIterator<Item = &'a Bin>) -> Option<Self> {
        let bins: Vec<&Bin> = bins.into_iter().filter(|bin| bin.bits_per_s.is_some()).collect();
        if bins.len() < LEAST_BINS {
            return None;
        }
        let mut lengths: Vec<u64> = bins.iter().map(|bin| bin.length_ns()).collect();
        lengths.sort_unstable();
        let usual_ns = lengths[lengths.len() / 2].max(1);
        // A bin as long as several, as over a standstill, counts as several.
        let times = |bin: &Bin| (bin.length_ns().saturating_add(usual_ns / 2) / usual_ns).max(1);
        let mut sorted: Vec<(f64, u64)> = bins.iter().filter_map(|bin| Some((bin.bits_per_s?, times(bin)))).collect();
        sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mean = Bin::mean(bins.iter().copied()).or_else(|| Some(sorted.first()?.0))?;
        let mut squares = Mean::default();
        let weight = |bin: &Bin| bin.length_ns() as f64;
        for bin in &bins {
            squares.add(bin.bits_per_s.map(|rate| (rate - mean).powi(2)), weight(bin));
        }
        let count = bins.len() as f64;
        let deviation = (squares.value().unwrap_or(0.0) * count / (count - 1.0)).sqrt();
        let p50 = percentile(&sorted, 0.5);
        Some(Self {
            bins: bins.len(),
            bin_s: lengths[lengths.len() / 2] as f64 / 1e9,
            window_s: lengths.iter().fold(0_u64, |sum, length_ns| sum.saturating_add(*length_ns)) as f64 / 1e9,
            mean,
            deviation,
            cv: (mean > 0.0).then(|| deviation / mean),
            p5: percentile(&sorted, 0.05),
            p50,
            p95: percentile(&sorted, 0.95),
            longest_dip_s: longest_dip_s(&bins, DIP * p50),
        })
    }
}

/// For how long, seconds, the newest of these bins have been steady: the longest stretch up to now whose coefficient of variation
/// is below [`STEADY`]. None where that is shorter than [`LEAST_STEADY_S`], in which a rate that swings is steady now and then.
#[must_use]
pub fn steady_s(bins: &[Bin]) -> Option<f64> {
    let (mut count, mut mean, mut squares, mut length_ns) = (0.0, 0.0, 0.0, 0_u64);
    let mut steady_ns = 0;
    for bin in bins.iter().rev() {
        let Some(rate) = bin.bits_per_s else { continue };
        // Welford's: a mean and a deviation that grow by one rate at a time.
        count += 1.0;
        let off = rate - mean;
        mean += off / count;
        squares += off * (rate - mean);
        length_ns = length_ns.saturating_add(bin.length_ns());
        if count > 1.0 && mean > 0.0 && (squares / (count - 1.0)).sqrt() < STEADY * mean {
            steady_ns = length_ns;
        }
    }
    let for_s = steady_ns as f64 / 1e9;
    (for_s >= LEAST_STEADY_S).then_some(for_s)
}

/// Linear between the two nearest ranks, as most tools do it (Hyndman and Fan's type 7); each value stands so many times.
pub(crate) fn percentile(sorted: &[(f64, u64)], share: f64) -> f64 {
    let last = sorted.iter().fold(0_u64, |sum, (_, times)| sum.saturating_add(*times)).saturating_sub(1);
    let at = share * last as f64;
    let value = |rank: f64| {
        let mut end = 0.0;
        let ranks = |&&(_, times): &&(f64, u64)| {
            end += times as f64;
            rank < end
        };
        sorted.iter().find(ranks).or(sorted.last()).map_or(0.0, |(value, _)| *value)
    };
    let (below, above) = (value(at.floor()), value(at.floor() + 1.0));
    below + (above - below) * at.fract()
}

/// Longest run of neighbouring bins below a rate, seconds.
fn longest_dip_s(bins: &[&Bin], below: f64) -> f64 {
    let (mut longest, mut current, mut ended_ns) = (0_u64, 0_u64, 0_u64);
    for bin in bins {
        let is_dip = bin.bits_per_s.is_some_and(|rate| rate < below || rate == 0.0);
        let joins = bin.from_ns == ended_ns;
        current = match (is_dip, joins) {
            (true, true) => current + bin.length_ns(),
            (true, false) => bin.length_ns(),
            (false, _) => 0,
        };
        ended_ns = bin.to_ns;
        longest = longest.max(current);
    }
    longest as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::BIN_NS;
    use crate::moves::MovesByClass;

    fn bins(rates: &[f64]) -> Vec<Bin> {
        let bin = |(n, &rate): (usize, &f64)| Bin {
            from_ns: n as u64 * BIN_NS,
            to_ns: (n as u64 + 1) * BIN_NS,
            bits_per_s: Some(rate),
            moves: MovesByClass::default(),
            unclassed: 0.0,
        };
        rates.iter().enumerate().map(bin).collect()
    }

    #[test]
    fn the_published_seconds_have_the_spread_that_any_other_tool_computes() {
        // Unpinned, FACTS of the Kunpeng case; figures by numpy (ddof = 1, default percentiles).
        let rates = [
            34.9, 34.9, 34.5, 34.7, 34.5, 34.5, 34.7, 35.1, 30.7, 20.0, 13.8, 20.8, 16.5, 14.2, 15.8, 15.4, 30.9, 35.4,
            35.5, 35.3, 35.7, 35.7,
        ];
        let jitter = Jitter::of(&bins(&rates)).expect("enough bins");
        let near = |got: f64, wanted: f64| (got - wanted).abs() < 0.005;
        assert!(near(jitter.mean, 28.795), "{jitter:?}");
        assert!(near(jitter.deviation, 8.714), "{jitter:?}");
        assert!(near(jitter.p50, 34.5), "{jitter:?}");
        assert!(near(jitter.p5, 14.26), "{jitter:?}");
        assert!(near(jitter.p95, 35.69), "{jitter:?}");
        assert!(near(jitter.longest_dip_s, 0.4), "13.8, then 16.5 14.2 15.8 15.4 below 17.25: {jitter:?}");
        assert_eq!((jitter.bins, jitter.bin_s), (22, 0.1));
    }

    #[test]
    fn a_rate_that_has_become_steady_is_so_for_the_time_since() {
        let swings = |n: usize| if n.is_multiple_of(2) { 6.0 } else { 35.0 };
        let since = |steady: usize| {
            let rates: Vec<f64> =
                (0..100).map(swings).chain((0..steady).map(|n| 34.5 + 0.5 * (n % 3) as f64)).collect();
            steady_s(&bins(&rates)).map(|s| (s * 10.0).round() / 10.0)
        };
        assert_eq!([0, 20, 47].map(since), [None; 3], "not so soon");
        let late = since(130).expect("13 s of it");
        assert!((12.9..=13.2).contains(&late), "{late}");
        let mut again = vec![35.0; 130];
        again.extend([7.0; 3]);
        assert_eq!(steady_s(&bins(&again)), None, "three tenths of a dip end it");
        assert_eq!(steady_s(&bins(&[0.0; 100])), None, "a standstill is not steady");
    }

    #[test]
    fn too_few_bins_have_no_spread_and_unknown_ones_do_not_count() {
        let mut some = bins(&[1.0; LEAST_BINS]);
        assert!(Jitter::of(&some).is_some_and(|jitter| jitter.cv == Some(0.0) && jitter.longest_dip_s == 0.0));
        let window_s = Jitter::of(some.iter().chain(&bins(&[1.0; 5]))).map(|jitter| jitter.window_s);
        assert_eq!(window_s, Some(1.5), "the time of the bins, however far apart");
        some[3].bits_per_s = None;
        assert_eq!(Jitter::of(&some), None);
        assert_eq!(Jitter::of(&bins(&[0.0; 20])).and_then(|jitter| jitter.cv), None, "no mean, no share of it");
    }
}
