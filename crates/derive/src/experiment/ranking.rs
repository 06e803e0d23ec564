//! How the treatments of an experiment rank, by the means of their phases. It knows nothing of threads or cores. Rates are compared
//! round by round: what the machine did in a round, it did to all of them.

use super::{CONFIDENCE, Difference, LEAST, PairedRatio, Significance};
use crate::migration_cost::series;
use std::collections::BTreeMap;

/// Nothing is said of fewer rounds.
pub const LEAST_ROUNDS: u32 = 3;
/// A paired deviation larger than the pooled one by this factor speaks against pooling: the pair then counts alone.
const UNLIKE: f64 = 1.5;

/// Means of phases, bits/s, by placement and round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PhaseMeans(Vec<BTreeMap<u32, f64>>);

impl PhaseMeans {
    /// None yet, of so many placements.
    #[must_use]
    pub fn none(placements: usize) -> Self {
        Self(vec![BTreeMap::new(); placements])
    }

    /// Takes the mean of a phase.
    pub fn add(&mut self, placement: usize, round: u32, mean: f64) {
        if let Some(rounds) = self.0.get_mut(placement) {
            rounds.insert(round, mean);
        }
    }

    /// The means of one placement.
    pub fn of(&self, placement: usize) -> impl Iterator<Item = f64> {
        self.0[placement].values().copied()
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    /// The rate of a placement over that of another, of the rounds that have both.
    fn ratio(&self, placement: usize, to: usize) -> PairedRatio {
        let other = &self.0[to];
        let pairs: Vec<[f64; 2]> =
            self.0[placement].iter().filter_map(|(round, mean)| Some([*mean, *other.get(round)?])).collect();
        let side = |nth: usize| series::mean(&pairs.iter().map(|pair| pair[nth]).collect::<Vec<_>>());
        PairedRatio::of([side(0), side(1)], &pairs)
    }
}

/// How a placement compares with the best one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum PlacementStanding {
    /// It is the best one.
    Best,
    /// The difference is surely within 3 %.
    Same,
    /// It may be worse or not.
    Open,
    /// It is worse by more than 3 %, surely.
    Worse,
}

/// A placement and its rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedPlacement {
    /// Its number.
    pub placement: usize,
    /// How it compares with the best placement.
    pub standing: PlacementStanding,
    /// Its rate against that of the best one, as a share (−0.1: a tenth less); none where no two rounds have both.
    pub against_best: Option<Difference>,
}

/// The placements that have a phase, the best first. `left` are those that were not dropped: one of them is the best.
#[must_use]
pub fn ranking(means: &PhaseMeans, left: &[bool]) -> Vec<RankedPlacement> {
    ranking_at(CONFIDENCE, means, left)
}

pub(super) fn ranking_at(confidence: f64, means: &PhaseMeans, left: &[bool]) -> Vec<RankedPlacement> {
    let has_phase = |placement: &usize| means.of(*placement).next().is_some();
    let known: Vec<usize> = (0..means.count()).filter(has_phase).collect();
    let Some(best) = best(means, left, &known) else { return Vec::new() };
    let pooled = Pooled::of(means, &known, confidence);
    let stands = |&placement: &usize| {
        if placement == best {
            return RankedPlacement { placement, standing: PlacementStanding::Best, against_best: None };
        }
        let against_best = pooled.difference(&means.ratio(placement, best));
        let standing = match against_best.filter(|_| means.of(placement).count() >= LEAST_ROUNDS as usize) {
            Some(Difference { to, .. }) if to < -LEAST => PlacementStanding::Worse,
            Some(of) if of.direction() == Significance::Same => PlacementStanding::Same,
            _ => PlacementStanding::Open,
        };
        RankedPlacement { placement, standing, against_best }
    };
    let mut ranked: Vec<RankedPlacement> = known.iter().map(stands).collect();
    let place = |one: &RankedPlacement| match one.standing {
        PlacementStanding::Best => f64::INFINITY,
        _ => one.against_best.map_or(f64::NEG_INFINITY, |of| of.estimate),
    };
    ranked.sort_by(|one, other| place(other).total_cmp(&place(one)));
    ranked
}

/// The placement that has the highest rate among those left: none of the others is above it in the rounds that both have.
fn best(means: &PhaseMeans, left: &[bool], known: &[usize]) -> Option<usize> {
    let mut rivals = known.iter().copied().filter(|&placement| left.get(placement) == Some(&true));
    let first = rivals.next()?;
    // When rounds are whole, it does not matter which placement all are compared with.
    let height = |placement: usize| means.ratio(placement, first).ratio();
    std::iter::once(first).chain(rivals).max_by(|&a, &b| height(a).total_cmp(&height(b)))
}

/// Any two of these placements are within 3 % of each other, surely: what is within 3 % of the best need not be.
#[must_use]
pub fn are_alike(means: &PhaseMeans, placements: &[usize]) -> bool {
    let known: Vec<usize> = (0..means.count()).filter(|&placement| means.of(placement).next().is_some()).collect();
    let pooled = Pooled::of(means, &known, CONFIDENCE);
    let is_same = |one: usize, other: usize| {
        pooled.difference(&means.ratio(one, other)).is_some_and(|of| of.direction() == Significance::Same)
    };
    placements.iter().enumerate().all(|(nth, &one)| placements[nth + 1..].iter().all(|&other| is_same(one, other)))
}

/// How much the ratio of two placements varies from round to round, as a share, from all pairs of placements: a few rounds of one pair
/// tell too little of that.
struct Pooled {
    deviation: f64,
    freedom: usize,
    /// Confidence of one interval, such that all pairs of placements together have the confidence asked for.
    confidence: f64,
}

impl Pooled {
    fn of(means: &PhaseMeans, known: &[usize], confidence: f64) -> Self {
        let (mut squares, mut weight) = (0.0, 0);
        for (nth, &one) in known.iter().enumerate() {
            for &other in &known[nth + 1..] {
                let ratio = means.ratio(one, other);
                squares += ratio.squares();
                weight += ratio.count().saturating_sub(1);
            }
        }
        let cells: usize = known.iter().map(|&placement| means.of(placement).count()).sum();
        let rounds = known.iter().map(|&placement| means.of(placement).count()).max().unwrap_or(0);
        let pairs = (known.len() * known.len().saturating_sub(1) / 2).max(1);
        Self {
            deviation: (squares / weight.max(1) as f64).sqrt(),
            freedom: (cells + 1).saturating_sub(known.len() + rounds),
            confidence: 1.0 - (1.0 - confidence) / pairs as f64,
        }
    }

    /// The ratio minus 1 and its interval; none of fewer than two rounds.
    fn difference(&self, ratio: &PairedRatio) -> Option<Difference> {
        let count = ratio.count();
        if count < 2 || self.freedom == 0 {
            return None;
        }
        let own = (ratio.squares() / (count - 1) as f64).sqrt();
        let freedom = if own > UNLIKE * self.deviation { count - 1 } else { self.freedom };
        Some(ratio.resting_on(own.max(self.deviation), freedom, self.confidence))
    }
}

#[cfg(test)]
mod tests;
