//! A ratio of two means and how sure it is: Student's t on the log scale. All intervals that a verdict rests on are made here.
//!
//! What is counted is the phase or the round, not the bin: bins of one phase resemble each other, and what changes from phase to
//! phase (other work, where a thread happens to sit) would be in no interval made of bins. With four to eight of them a bootstrap of
//! their mean comes out too narrow, by a third to more than half at 99 %; Student's t knows how little so few tell.
//!
//! No rate falls by more than all of it, so an interval lies around the logarithm of the ratio. How wide it is comes of how far each
//! phase is from the mean of its side, as a share of that mean (the logarithm of a ratio of means, to the first order): a phase in
//! which nothing arrived is an ordinary figure there, and a logarithm of its own is never needed.

use crate::migration_cost::series::mean;
use serde::Serialize;

/// A difference (pinned minus unpinned) and its interval at [`CONFIDENCE`], in the unit of what differs; a share of the second of
/// two rates where it comes of [`Difference::paired`] and the like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the figure and the two ends of its interval")]
pub struct Difference {
    #[serde(rename = "is")]
    pub estimate: f64,
    pub from: f64,
    pub to: f64,
}

/// How often one interval holds the truth. A verdict of a pin looks at two of them, mean and spread: where nothing differs, two
/// cards of a hundred say that something does.
pub const CONFIDENCE: f64 = 0.99;

/// What differs by less than this share of the mean does not differ.
pub(crate) const LEAST: f64 = 0.03;

/// A mean of 0 counts as this share of the other one, and no interval reaches further: the log scale has no 0.
const NOTHING: f64 = 1e-6;

/// More degrees of freedom count as so many.
const MOST_FREEDOM: usize = 1000;

/// What can be said of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Significance {
    /// It is surely above 0, and large enough to matter.
    More,
    /// It is surely below 0, and large enough to matter.
    Less,
    /// It surely is too small to matter.
    Same,
    /// None of these is sure.
    Open,
}

/// A ratio of two means of which each phase of one side has its neighbour on the other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PairedRatio {
    /// First over second.
    ratio: f64,
    /// The second mean: what a share is a share of.
    whole: f64,
    /// How far each pair is from it, as a share.
    apart: Vec<f64>,
}

impl PairedRatio {
    /// Of the means of both sides as they are shown, and of the figures of each pair that they are means of.
    pub(crate) fn of(means: [f64; 2], pairs: &[[f64; 2]]) -> Self {
        let means = divisible(means);
        let apart = pairs.iter().map(|[one, other]| one / means[0] - other / means[1]).collect();
        Self { ratio: means[0] / means[1], whole: means[1], apart }
    }

    /// How many pairs there are.
    pub(crate) fn count(&self) -> usize {
        self.apart.len()
    }

    /// First over second.
    pub(crate) fn ratio(&self) -> f64 {
        self.ratio
    }

    /// Squares of how far the pairs are from their mean, added up.
    pub(crate) fn squares(&self) -> f64 {
        squares(&self.apart)
    }

    /// The ratio minus 1; `None` for fewer than two pairs.
    pub(crate) fn difference(&self) -> Option<Difference> {
        let freedom = self.count().checked_sub(2)? + 1;
        Some(self.resting_on((self.squares() / freedom as f64).sqrt(), freedom, CONFIDENCE))
    }

    /// The difference of the two means in their own unit; `None` for fewer than two pairs.
    pub(crate) fn in_units(&self) -> Option<Difference> {
        let Difference { estimate, from, to } = self.difference()?;
        Some(Difference { estimate: estimate * self.whole, from: from * self.whole, to: to * self.whole })
    }

    /// The ratio minus 1 at this confidence, where the pairs vary by this standard deviation, which rests on `freedom` degrees
    /// of freedom.
    pub(crate) fn resting_on(&self, deviation: f64, freedom: usize, confidence: f64) -> Difference {
        let error = deviation / (self.count().max(1) as f64).sqrt();
        Difference::of_ratio(self.ratio, quantile(confidence, freedom) * error)
    }
}

impl Difference {
    /// A ratio minus 1, where its logarithm is sure to within ± `half`.
    fn of_ratio(ratio: f64, half: f64) -> Self {
        let wide = spread(half);
        Self { estimate: ratio - 1.0, from: ratio / wide - 1.0, to: ratio * wide - 1.0 }
    }

    /// How much more these rates are in the mean than the others, as a share, each with its neighbour; none of fewer than two.
    #[must_use]
    pub fn paired(pairs: &[[f64; 2]]) -> Option<Self> {
        let side = |nth: usize| mean(&pairs.iter().map(|pair| pair[nth]).collect::<Vec<_>>());
        PairedRatio::of([side(0), side(1)], pairs).difference()
    }

    /// How much more the first rates are in the mean than the others, as a share, where rates have no neighbours (Welch): each
    /// side varies by itself. `None` when a side has fewer than two.
    #[must_use]
    pub fn unpaired(one: &[f64], other: &[f64]) -> Option<Self> {
        let sides = [one, other];
        let means = divisible(sides.map(mean));
        let [a, b] = [0, 1].map(|nth| Some((error(sides[nth], means[nth])?.powi(2), (sides[nth].len() - 1) as f64)));
        let ((a, a_freedom), (b, b_freedom)) = a.zip(b)?;
        let freedom = (a + b).powi(2) / (a.powi(2) / a_freedom + b.powi(2) / b_freedom);
        // Both sides without any spread leave nothing to be unsure of, and no number of degrees.
        let freedom = if freedom.is_finite() { freedom.max(1.0) } else { 1.0 };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "as many as there are figures at most"
        )]
        let whole = freedom as usize;
        // Between whole degrees a straight line, which is above the curve.
        let [near, far] = [whole, whole + 1].map(|freedom| quantile(CONFIDENCE, freedom));
        let quantile = near + (far - near) * freedom.fract();
        Some(Self::of_ratio(means[0] / means[1], quantile * (a + b).sqrt()))
    }

    /// The mean of these rates with its interval, which never holds a rate below 0; none of fewer than two.
    #[must_use]
    pub fn of_mean(values: &[f64]) -> Option<Self> {
        let mean = mean(values);
        let half = quantile(CONFIDENCE, values.len().checked_sub(2)? + 1) * error(values, mean)?;
        Some(Self { estimate: mean, from: mean / spread(half), to: mean * spread(half) })
    }

    /// The difference of two coefficients of variation, from the squares of each pair whose means are their squares; none of fewer
    /// than two. The lower end is on the log scale, for no spread falls by more than all of it; a spread that rises has no such end.
    pub(super) fn of_spreads([one, other]: [f64; 2], squares_of: &[[f64; 2]]) -> Option<Self> {
        let freedom = squares_of.len().checked_sub(2)? + 1;
        // A difference of squares is that of the roots times the sum of the roots.
        let roots = (one + other).max(f64::MIN_POSITIVE);
        let apart: Vec<f64> = squares_of.iter().map(|[one, other]| (one - other) / roots).collect();
        let deviation = (squares(&apart) / freedom as f64).sqrt();
        let half = quantile(CONFIDENCE, freedom) * deviation / (apart.len() as f64).sqrt();
        // The geometric mean: such an end is above 0 only where that of the plain difference is, too.
        let from = one / spread(half / (one * other).sqrt().max(f64::MIN_POSITIVE)) - other;
        Some(Self { estimate: one - other, from, to: one - other + half })
    }

    /// The direction of the difference: `Same` if it surely is within ± `least`, and open if its estimate is within ± `least`,
    /// however sure: on a steady machine chance makes such differences too.
    #[must_use]
    pub fn significance(self, least: f64) -> Significance {
        match self {
            Self { from, to, .. } if from >= -least && to <= least => Significance::Same,
            Self { from, estimate, .. } if from > 0.0 && estimate > least => Significance::More,
            Self { to, estimate, .. } if to < 0.0 && estimate < -least => Significance::Less,
            _ => Significance::Open,
        }
    }

    /// The direction of a difference that is a share of another rate: it is `Same` if it surely is within ± 3 %, whichever of
    /// the two rates it is a share of.
    #[must_use]
    pub fn direction(self) -> Significance {
        match self.significance(LEAST) {
            Significance::Same if 1.0 / (1.0 + self.from) - 1.0 > LEAST => Significance::Open,
            direction => direction,
        }
    }
}

/// What both ends of an interval on the log scale are from its middle, a factor.
fn spread(half: f64) -> f64 {
    half.exp().min(1.0 / NOTHING)
}

/// Two means that can be divided by each other.
fn divisible([one, other]: [f64; 2]) -> [f64; 2] {
    let least = (one.max(other) * NOTHING).max(f64::MIN_POSITIVE);
    [one.max(least), other.max(least)]
}

/// The standard error of the mean of these values as a share of it; none of fewer than two.
fn error(values: &[f64], mean: f64) -> Option<f64> {
    let freedom = values.len().checked_sub(2)? + 1;
    Some((squares(values) / freedom as f64 / values.len() as f64).sqrt() / mean.max(f64::MIN_POSITIVE))
}

/// Squares of how far values are from their mean, added up.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// What the absolute value of Student's t with `freedom` degrees of freedom, at least one, stays below with this probability.
fn quantile(probability: f64, freedom: usize) -> f64 {
    // More degrees of freedom would take longer and hardly lower the quantile.
    let freedom = freedom.min(MOST_FREEDOM);
    let (mut low, mut high) = (0.0, 1.0);
    while within(high, freedom) < probability && high < 1e9 {
        high *= 2.0;
    }
    // After 80 halvings nothing is left that a double can hold.
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
    use crate::migration_cost::chance::Chance;

    /// Of Student's t, two-sided at 99 %, for 1 to 30 degrees of freedom, as printed tables have them.
    const PRINTED: [f64; 30] = [
        63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
        2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
    ];

    #[test]
    fn quantiles_are_those_of_printed_tables() {
        for (nth, known) in PRINTED.iter().enumerate() {
            let found = quantile(CONFIDENCE, nth + 1);
            assert!((found / known - 1.0).abs() < 2e-4, "{} degrees of freedom: {found}, not {known}", nth + 1);
        }
        for (probability, freedom, known) in
            [(0.95, 1, 12.706), (0.95, 10, 2.228), (0.999, 4, 8.610), (0.9, 120, 1.658)]
        {
            assert!((quantile(probability, freedom) - known).abs() < 1e-3, "{probability} at {freedom}");
        }
    }

    #[test]
    fn no_rate_falls_by_more_than_all_of_it_however_little_is_known() {
        let mut chance = Chance::seeded(8);
        for _ in 0..20_000 {
            let count = 2 + chance.below(5);
            // From steady to one phase of many that carries anything.
            let wild = 3.0 * chance.share();
            let rate =
                |chance: &mut Chance| if chance.share() < 0.2 { 0.0 } else { 1e9 * (wild * chance.normal()).exp() };
            let pairs: Vec<[f64; 2]> = (0..count).map(|_| [rate(&mut chance), rate(&mut chance)]).collect();
            let side = |nth: usize| pairs.iter().map(|pair| pair[nth]).collect::<Vec<_>>();
            let all = [Difference::paired(&pairs), Difference::unpaired(&side(0), &side(1))];
            for of in all.into_iter().map(|of| of.expect("two at least")) {
                assert!(of.from >= -1.0 && of.from <= of.estimate && of.estimate <= of.to, "{of:?} of {pairs:?}");
                assert!(!of.to.is_nan(), "{of:?} of {pairs:?}");
            }
            let of = Difference::of_mean(&side(0)).expect("two at least");
            assert!(of.from >= 0.0 && of.from <= of.estimate && of.estimate <= of.to, "{of:?} of {pairs:?}");
        }
    }

    #[test]
    fn intervals_of_ratios_hold_the_truth_as_often_as_they_say() {
        let mut chance = Chance::seeded(9);
        for (counts, noises) in
            [([3, 3], [0.03, 0.03]), ([3, 3], [0.02, 0.3]), ([5, 5], [0.1, 0.1]), ([10, 3], [0.2, 0.05])]
        {
            let mut outside = 0;
            for _ in 0..4000 {
                let [one, other] = [0, 1].map(|side| {
                    (0..counts[side]).map(|_| 1e9 * (1.0 + noises[side] * chance.normal())).collect::<Vec<_>>()
                });
                let of = Difference::unpaired(&one, &other).expect("enough");
                outside += u32::from(of.from > 0.0 || of.to < 0.0);
            }
            println!("{counts:?} rounds that vary by {noises:?}: {} % outside", f64::from(outside) / 40.0);
            assert!(outside <= 60, "{counts:?} {noises:?}: {outside} of 4000, and 40 are promised");
        }
    }

    #[test]
    fn a_drift_that_both_sides_share_widens_no_interval() {
        let pairs: Vec<[f64; 2]> = (1..=6).map(|round| [f64::from(round) * 2e9, f64::from(round) * 1e9]).collect();
        let of = Difference::paired(&pairs).expect("six");
        assert!((of.estimate - 1.0).abs() < 1e-9 && of.to - of.from < 1e-9, "{of:?}");
    }
}
