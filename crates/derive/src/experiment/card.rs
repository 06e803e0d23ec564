//! The card of two treatments: phases without a pin and phases with it, compared pair by pair, and a verdict.

use super::{Difference, LEAST, LatencyChange, OtherLoad, PairedRatio, Significance};
use crate::jitter::Jitter;
use crate::ledger::{Bin, Ledger, Mean};
use crate::migration_cost::{Crossing, moves_in};
use serde::Serialize;
use vnettop_sample::StretchSide;

/// What the comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    /// Less spread and a higher mean.
    #[strum(to_string = "steadier and faster")]
    SteadierAndFaster,
    /// Less spread, the mean not lower by more than 3 %.
    Steadier,
    /// A higher mean, the spread not larger.
    Faster,
    /// The difference is surely within 3 % of the mean.
    #[strum(to_string = "no difference")]
    NoDifference,
    /// More spread, or a lower mean.
    Worse,
    /// The phases differ among themselves too much, or are too few.
    Inconclusive,
}

impl Verdict {
    /// What was changed has helped.
    #[must_use]
    pub const fn is_better(self) -> bool {
        matches!(self, Self::SteadierAndFaster | Self::Steadier | Self::Faster)
    }
}

/// One side of the card.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CardSide {
    /// Spread of the rate.
    #[serde(flatten)]
    pub jitter: Jitter,
    /// Moves of watched threads a second; none where they are not counted.
    pub moves_per_s: Option<f64>,
    /// CPU time of other work on the machine a second, cores' worth; none where it is not known.
    #[serde(rename = "other_cores")]
    pub others: Option<f64>,
}

/// Some seconds of one kind, settling time dropped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Whether these seconds were unpinned or pinned.
    pub side: StretchSide,
    /// Its first bin began, `CLOCK_MONOTONIC`, ns.
    pub from_ns: u64,
    /// Its last bin ended, ns.
    pub to_ns: u64,
    /// Mean rate.
    pub mean_bits_per_s: f64,
}

/// Unpinned against pinned.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// When the pin was, `CLOCK_MONOTONIC`, ns; none where phases with and without it took turns.
    pub pinned_at_ns: Option<u64>,
    /// How long the pieces are that stand for phases before and after that pin, ns; none where phases took turns.
    pub piece_ns: Option<u64>,
    /// Unpinned.
    pub before: CardSide,
    /// Pinned.
    pub after: CardSide,
    /// What is compared, in the order of time; half of them unpinned, half pinned.
    pub phases: Vec<Phase>,
    /// Of the means, bits/s.
    pub mean: Difference,
    /// Of the coefficients of variation.
    pub cv: Option<Difference>,
    /// Of how long packets took; `None` where that was not looked at on both sides.
    pub latency: Option<LatencyChange>,
    /// In words.
    pub verdict: Verdict,
}

/// Unpinned and pinned bins that are compared with each other.
pub type Pair = [Vec<Bin>; 2];

/// Of fewer pairs nothing is said.
pub const LEAST_PAIRS: usize = 4;
/// A phase with fewer known rates has no mean worth comparing.
pub const LEAST_BINS: usize = 5;

impl Card {
    /// Compares phases pair by pair; none while there are fewer than two pairs.
    #[must_use]
    pub fn of(pairs: &[Pair], others: &Ledger<OtherLoad>) -> Option<Self> {
        let [before, after] = [0, 1].map(|kind| {
            let phases: Vec<&Vec<Bin>> = pairs.iter().map(|pair| &pair[kind]).collect();
            CardSide::of(&phases, others)
        });
        let (before, after) = (before?, after?);
        let by_pair = |figure: &dyn Fn(&[Bin], &CardSide) -> f64| -> Vec<[f64; 2]> {
            pairs.iter().map(|[one, other]| [figure(other, &after), figure(one, &before)]).collect()
        };
        // What the two sides show is what differs; how much the pairs differ among themselves is how sure it is.
        let means = [after.jitter.mean, before.jitter.mean];
        let mean = PairedRatio::of(means, &by_pair(&|bins, _| mean(bins))).in_units()?;
        let cv = after.jitter.cv.zip(before.jitter.cv).and_then(|(after_cv, before_cv)| {
            Difference::of_spreads([after_cv, before_cv], &by_pair(&|bins, side| square(bins, side.jitter.mean)))
        });
        let mut phases: Vec<Phase> = pairs
            .iter()
            .flat_map(|[one, other]| [phase(StretchSide::Unpinned, one), phase(StretchSide::Pinned, other)])
            .collect();
        phases.sort_by_key(|phase| phase.from_ns);
        let verdict = Verdict::Inconclusive;
        let mut card =
            Self { pinned_at_ns: None, piece_ns: None, before, after, phases, mean, cv, latency: None, verdict };
        card.verdict = card.judged();
        Some(card)
    }

    /// How many pairs there are.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.phases.len() / 2
    }

    pub(super) fn mean_significance(&self) -> Significance {
        self.mean.significance(LEAST * self.before.jitter.mean)
    }

    /// A coefficient of variation is a share of the mean already.
    pub(super) fn cv_significance(&self) -> Significance {
        self.cv.map_or(Significance::Same, |cv| cv.significance(LEAST))
    }

    /// The rule: it is better only if the spread falls and the mean does not drop by more than 3 %.
    fn judged(&self) -> Verdict {
        if self.pairs() < LEAST_PAIRS {
            return Verdict::Inconclusive;
        }
        match (self.mean_significance(), self.cv_significance()) {
            (Significance::Less, _) | (_, Significance::More) => Verdict::Worse,
            (Significance::More, Significance::Less) => Verdict::SteadierAndFaster,
            (Significance::More, _) => Verdict::Faster,
            (Significance::Same, Significance::Less) => Verdict::Steadier,
            (Significance::Open, Significance::Less) if self.mean.estimate >= -LEAST * self.before.jitter.mean => {
                Verdict::Steadier
            }
            (Significance::Same, Significance::Same) => Verdict::NoDifference,
            (Significance::Open, _) | (_, Significance::Open) => Verdict::Inconclusive,
        }
    }
}

impl CardSide {
    fn of(phases: &[&Vec<Bin>], others: &Ledger<OtherLoad>) -> Option<Self> {
        let bins = || phases.iter().flat_map(|bins| bins.iter());
        let jitter = Jitter::of(bins())?;
        let known = || bins().filter(|bin| bin.bits_per_s.is_some());
        let moves: f64 = known().map(|bin| moves_in(bin, Crossing::Any)).sum();
        let seconds: f64 = known().map(Bin::length_s).sum();
        let mut busy = Mean::default();
        for (from_ns, to_ns) in phases.iter().filter_map(|bins| Some((bins.first()?.from_ns, bins.last()?.to_ns))) {
            let length = to_ns.saturating_sub(from_ns) as f64;
            busy.add(others.mean_between(from_ns, to_ns), length);
        }
        Some(Self { jitter, moves_per_s: (seconds > 0.0).then(|| moves / seconds), others: busy.value() })
    }
}

fn phase(side: StretchSide, bins: &[Bin]) -> Phase {
    let ends = bins.first().zip(bins.last()).map_or((0, 0), |(first, last)| (first.from_ns, last.to_ns));
    Phase { side, from_ns: ends.0, to_ns: ends.1, mean_bits_per_s: mean(bins) }
}

fn mean(bins: &[Bin]) -> f64 {
    Bin::mean(bins).unwrap_or(0.0)
}

/// The mean square of how far the rates of a phase are from the mean of its side, as a share of it: differences
/// between phases count too.
fn square(bins: &[Bin], mean_of_side: f64) -> f64 {
    let mut squares = Mean::default();
    for bin in bins {
        squares.add(bin.bits_per_s.map(|rate| (rate / mean_of_side - 1.0).powi(2)), bin.length_s());
    }
    squares.value().unwrap_or(0.0)
}
