//! Plain sums over series of bins: stretches without a gap, slow trends taken out, correlation.
//! It knows no move and draws no conclusion.

use crate::ledger::Bin;
use std::ops::Range;

/// A bin so many times longer than is usual is that of a standstill: when within it a rate was which is not known.
const MOST_LENGTH: u64 = 2;
/// Two bins are neighbours when less than this share of a bin lies between them.
const GAP: f64 = 0.5;

/// The rates that are known, in the order of time, and where neighbours are missing.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// bits/s.
    pub rates: Vec<f64>,
    /// Which bin of the input each rate is of.
    pub at: Vec<usize>,
    /// Ranges of `rates` that follow each other without a gap.
    pub stretches: Vec<Range<usize>>,
}

impl Series {
    /// The known rates of these bins, oldest first.
    #[must_use]
    pub fn of(bins: &[Bin]) -> Self {
        let mut series = Self::default();
        let mut lengths: Vec<u64> = bins.iter().map(Bin::length_ns).collect();
        lengths.sort_unstable();
        let most_ns = lengths.get(lengths.len() / 2).map_or(0, |usual_ns| usual_ns.saturating_mul(MOST_LENGTH));
        for (at, bin) in bins.iter().enumerate() {
            let Some(rate) = bin.bits_per_s.filter(|_| bin.length_ns() <= most_ns) else { continue };
            let here = series.rates.len();
            let joins = series.at.last().is_some_and(|&last| last + 1 == at && adjoin(&bins[last], bin));
            match series.stretches.last_mut().filter(|_| joins) {
                Some(stretch) => stretch.end = here + 1,
                None => series.stretches.push(here..here + 1),
            }
            series.rates.push(rate);
            series.at.push(at);
        }
        series
    }
}

fn adjoin(earlier: &Bin, later: &Bin) -> bool {
    later.from_ns.abs_diff(earlier.to_ns) as f64 <= GAP * later.length_ns() as f64
}

/// The mean; 0 of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Sum of the products.
#[must_use]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The values without their mean.
#[must_use]
pub fn centred(values: &[f64]) -> Vec<f64> {
    let mean = mean(values);
    values.iter().map(|value| value - mean).collect()
}

/// Pearson's correlation; none where either does not vary.
#[must_use]
pub fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let (a, b) = (centred(a), centred(b));
    let spread = (dot(&a, &a) * dot(&b, &b)).sqrt();
    (spread > f64::EPSILON).then(|| dot(&a, &b) / spread)
}

/// The values without what is slower than `2 * reach + 1` bins: the mean of the neighbourhood is taken off, within each
/// stretch. At the ends of a stretch the neighbourhood is cut on one side only.
#[must_use]
pub fn without_trend(values: &[f64], stretches: &[Range<usize>], reach: usize) -> Vec<f64> {
    let mut sums = Vec::with_capacity(values.len() + 1);
    sums.push(0.0);
    sums.extend(values.iter().scan(0.0, |sum, value| {
        *sum += value;
        Some(*sum)
    }));
    let mut fast = Vec::with_capacity(values.len());
    for stretch in stretches {
        for at in stretch.clone() {
            let from = at.saturating_sub(reach).max(stretch.start);
            let to = (at + reach + 1).min(stretch.end);
            fast.push(values[at] - (sums[to] - sums[from]) / (to - from) as f64);
        }
    }
    fast
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::BIN_NS;
    use crate::moves::MovesByClass;

    fn bin(from: u64, rate: Option<f64>) -> Bin {
        let from_ns = from * BIN_NS;
        Bin { from_ns, to_ns: from_ns + BIN_NS, bits_per_s: rate, moves: MovesByClass::default(), unclassed: 0.0 }
    }

    #[test]
    fn a_gap_in_time_and_an_unknown_rate_both_end_a_stretch() {
        let bins = [bin(0, Some(1.0)), bin(1, Some(2.0)), bin(2, None), bin(3, Some(3.0)), bin(9, Some(4.0))];
        let series = Series::of(&bins);
        assert_eq!(series.rates, [1.0, 2.0, 3.0, 4.0], "what is known, in order");
        assert_eq!(series.stretches, [0..2, 2..3, 3..4], "three stretches");
        assert_eq!(series.at, [0, 1, 3, 4], "and the bin of each");
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init, reason = "one stretch")]
    fn a_slow_line_is_taken_out_and_a_dip_stays() {
        let mut line: Vec<f64> = (0..100_u8).map(f64::from).collect();
        line[50] -= 30.0;
        let fast = without_trend(&line, &[0..100], 5);
        assert!(fast[20].abs() < 1e-9, "of a straight line nothing is left: {}", fast[20]);
        assert!((fast[50] + 30.0 * 10.0 / 11.0).abs() < 1e-9, "of a dip nearly all: {}", fast[50]);
        assert!(correlation(&line, &line).is_some_and(|same| (same - 1.0).abs() < 1e-9), "a series follows itself");
        assert_eq!(correlation(&[1.0, 1.0], &[1.0, 2.0]), None, "what does not vary correlates with nothing");
    }
}
