//! A difference and how sure it is: Student's t over the differences of pairs.
//!
//! The pair is what is counted, not the bin: bins of one phase resemble each other, and what changes from phase to phase (other
//! work, where a thread happens to sit) would be in no interval made of bins. With four to eight pairs a bootstrap of their mean
//! comes out too narrow, by a third to more than half at 99 %; Student's t knows how little so few tell.

use serde::Serialize;

/// A difference (pinned minus unpinned) and its interval at [`CONFIDENCE`], in the unit of what differs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the figure and the two ends of its interval")]
pub struct Difference {
    #[serde(rename = "is")]
    pub estimate: f64,
    pub from: f64,
    pub to: f64,
}

/// How often one interval holds the truth. A verdict looks at two of them, mean and spread: where nothing differs, two cards of a
/// hundred say that something does.
pub const CONFIDENCE: f64 = 0.99;

/// Quantiles of Student's t for [`CONFIDENCE`], two-sided, for 1 to 30 degrees of freedom; of more the last is taken, which is
/// wider than need be.
const QUANTILES: [f64; 30] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947, 2.921,
    2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
];

/// What can be said of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Significance {
    /// It is not 0 and above it.
    More,
    /// It is not 0 and below it.
    Less,
    /// It is too small to matter, whatever it is.
    Same,
    /// None of these.
    Open,
}

impl Difference {
    /// The difference of two figures from the differences of their pairs; none of fewer than two.
    pub(super) fn of(estimate: f64, of_pairs: &[f64]) -> Option<Self> {
        let count = of_pairs.len();
        let quantile = QUANTILES[count.checked_sub(2)?.min(QUANTILES.len() - 1)];
        let mean = of_pairs.iter().sum::<f64>() / count as f64;
        let squares = of_pairs.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
        let half = quantile * (squares / (count - 1) as f64 / count as f64).sqrt();
        Some(Self { estimate, from: estimate - half, to: estimate + half })
    }

    /// The mean of these values with its interval; none of fewer than two.
    pub(in crate::derive) fn of_mean(values: &[f64]) -> Option<Self> {
        Self::of(values.iter().sum::<f64>() / values.len().max(1) as f64, values)
    }

    /// The same of differences with this standard deviation, which rests on `freedom` degrees of freedom, at this confidence.
    pub(in crate::derive) fn pooled(
        estimate: f64,
        deviation: f64,
        count: usize,
        freedom: usize,
        confidence: f64,
    ) -> Self {
        let half = quantile(confidence, freedom) * deviation / (count.max(1) as f64).sqrt();
        Self { estimate, from: estimate - half, to: estimate + half }
    }

    /// The direction of the difference; one within ± `least` is none.
    pub(super) fn significance(self, least: f64) -> Significance {
        match self {
            Self { from, to, .. } if from >= -least && to <= least => Significance::Same,
            Self { from, .. } if from > 0.0 => Significance::More,
            Self { to, .. } if to < 0.0 => Significance::Less,
            _ => Significance::Open,
        }
    }
}

/// What the absolute value of Student's t with `freedom` degrees of freedom, at least one, stays below with this probability.
pub(in crate::derive) fn quantile(probability: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while within(high, freedom) < probability && high < 1e9 {
        high *= 2.0;
    }
    // Of a half each time nothing is left that a double could tell.
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if within(middle, freedom) < probability { low = middle } else { high = middle }
    }
    high
}

/// The probability that Student's t is within ± `t`: a finite sum for whole degrees of freedom (Abramowitz and Stegun, 26.7.3
/// and 26.7.4).
fn within(t: f64, freedom: usize) -> f64 {
    let freedom = freedom.max(1);
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    // The first term is 1, or cos θ where the degrees are odd.
    let (mut term, mut sum) = if is_odd { (cosine, 0.0) } else { (1.0, 0.0) };
    for step in 0..freedom / 2 {
        sum += term;
        let (above, below) = if is_odd { (2 * step + 2, 2 * step + 3) } else { (2 * step + 1, 2 * step + 2) };
        term *= above as f64 / below as f64 * cosine * cosine;
    }
    if is_odd { std::f64::consts::FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_of_any_confidence_are_those_of_the_table() {
        for (nth, known) in QUANTILES.iter().enumerate() {
            let found = quantile(CONFIDENCE, nth + 1);
            assert!((found / known - 1.0).abs() < 2e-4, "{} degrees of freedom: {found}, not {known}", nth + 1);
        }
        for (probability, freedom, known) in
            [(0.95, 1, 12.706), (0.95, 10, 2.228), (0.999, 4, 8.610), (0.9, 120, 1.658)]
        {
            assert!((quantile(probability, freedom) - known).abs() < 1e-3, "{probability} at {freedom}");
        }
    }
}
