//! A search for the best placement, as numbers: which placement has the next phase, which of them get no more, how they rank. It
//! is fed with the means of phases and knows nothing of threads or cores.
//!
//! Each round every placement that is left has one phase, in a random order, so that what drifts or comes in turns favours none.
//! Rates are compared round by round: what the machine did in a round, it did to all of them. After the third
//! round, and each one after it, those go that are clearly worse than the best.

use crate::derive::before_after::{CONFIDENCE, Difference, LEAST, PairedRatio, Significance};
use crate::derive::cause::chance::Chance;
use crate::derive::cause::series;
use std::collections::BTreeMap;

/// Nothing is said of fewer rounds.
pub const LEAST_ROUNDS: u32 = 3;
/// How sure it must be that a placement is worse before it gets no more phases: it is looked at after each round, and a
/// chance that comes again and again must be smaller each time.
const DROPPED: f64 = 0.999;
/// Placements that surely do not differ are not measured longer than so many rounds.
const ALIKE_ROUNDS: u32 = 6;
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

/// How a placement stands beside the best one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum PlacementStanding {
    /// It is the best one.
    Best,
    /// Whatever the difference is, it is within 3 %.
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
    /// Beside the best one.
    pub standing: PlacementStanding,
    /// Its rate against that of the best one, as a share (−0.1: a tenth less); none where no two rounds have both.
    pub against_best: Option<Difference>,
}

/// The placements that have a phase, the best first. `left` are those that were not dropped: one of them is the best.
#[must_use]
pub fn ranking(means: &PhaseMeans, left: &[bool]) -> Vec<RankedPlacement> {
    ranking_at(CONFIDENCE, means, left)
}

fn ranking_at(confidence: f64, means: &PhaseMeans, left: &[bool]) -> Vec<RankedPlacement> {
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
    // Of a reference that all are compared with the choice of the reference does not matter as long as rounds are whole.
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
    /// Of one interval, so that all pairs of placements together have the confidence asked for.
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

/// What a search does next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchTurn {
    /// These placements get no more phases.
    pub dropped: Vec<usize>,
    /// The placement of the next phase, and its round, from 0; none where there is nothing left to find out.
    pub next: Option<(usize, u32)>,
}

/// Whose turn it is.
#[derive(Debug)]
pub struct SearchSchedule {
    chance: Chance,
    left: Vec<bool>,
    /// Those that still have a phase in this round, the next one last.
    order: Vec<usize>,
    /// Rounds that have started.
    rounds: u32,
}

impl SearchSchedule {
    /// Before the first phase of so many placements; the seed decides the order of their phases.
    #[must_use]
    pub fn new(seed: u64, placements: usize) -> Self {
        Self { chance: Chance::seeded(seed), left: vec![true; placements], order: Vec::new(), rounds: 0 }
    }

    /// The next phase, by the means of those before it.
    pub fn next(&mut self, means: &PhaseMeans) -> SearchTurn {
        let mut turn = SearchTurn::default();
        if self.order.is_empty() {
            if self.rounds >= LEAST_ROUNDS {
                turn.dropped = self.drop_worse(means);
            }
            if self.is_over(means) {
                return turn;
            }
            self.rounds += 1;
            self.order = (0..self.left.len()).filter(|&placement| self.left[placement]).collect();
            for at in (1..self.order.len()).rev() {
                self.order.swap(at, self.chance.below(at + 1));
            }
        }
        turn.next = self.order.pop().map(|placement| (placement, self.rounds - 1));
        turn
    }

    /// A placement that cannot be had gets no more phases.
    pub fn exclude(&mut self, placement: usize) {
        self.left[placement] = false;
        self.order.retain(|&other| other != placement);
    }

    /// Rounds that are over.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        if self.order.is_empty() { self.rounds } else { self.rounds.saturating_sub(1) }
    }

    fn drop_worse(&mut self, means: &PhaseMeans) -> Vec<usize> {
        let is_worse = |one: &RankedPlacement| one.standing == PlacementStanding::Worse && self.left[one.placement];
        let worse: Vec<usize> = ranking_at(DROPPED, means, &self.left)
            .iter()
            .filter(|one| is_worse(one))
            .map(|one| one.placement)
            .collect();
        for &placement in &worse {
            self.left[placement] = false;
        }
        worse
    }

    /// One is left, or those that are left surely do not differ.
    fn is_over(&self, means: &PhaseMeans) -> bool {
        let is_left = |one: &&RankedPlacement| self.left[one.placement];
        let is_alike = |one: &RankedPlacement| !matches!(one.standing, PlacementStanding::Open);
        self.left.iter().filter(|left| **left).count() < 2
            || self.rounds >= ALIKE_ROUNDS && ranking(means, &self.left).iter().filter(is_left).all(is_alike)
    }
}

#[cfg(test)]
mod tests;
