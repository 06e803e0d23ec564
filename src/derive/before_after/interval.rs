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
