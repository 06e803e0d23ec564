//! The order of the phases of an experiment, so that what drifts on the machine or comes in turns favours no treatment: turns of two,
//! or rounds of many in which each that is left has one phase in a random order. After the third round, and each one after it,
//! those go that are clearly worse than the best.

use super::ranking::{LEAST_ROUNDS, PhaseMeans, PlacementStanding, RankedPlacement, ranking, ranking_at};
use crate::migration_cost::chance::Chance;
use vnettop_sample::StretchSide;

/// How sure it must be that a placement is worse before it gets no more phases: it is looked at after each round, and a
/// chance that comes again and again must be smaller each time.
const DROPPED: f64 = 0.999;
/// Placements that surely do not differ are not measured longer than so many rounds.
const ALIKE_ROUNDS: u32 = 6;

/// What an experiment does next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// These placements get no more phases.
    pub dropped: Vec<usize>,
    /// The placement of the next phase, and its round, from 0; none where there is nothing left to find out.
    pub next: Option<(usize, u32)>,
}

/// Whose turn it is.
#[derive(Debug)]
pub struct Rounds {
    chance: Chance,
    left: Vec<bool>,
    /// Placements that still have a phase in this round, the next one last.
    order: Vec<usize>,
    /// Rounds that have started.
    begun: u32,
}

impl Rounds {
    /// Before the first phase of so many placements; the seed decides the order of their phases.
    #[must_use]
    pub fn new(seed: u64, placements: usize) -> Self {
        Self { chance: Chance::seeded(seed), left: vec![true; placements], order: Vec::new(), begun: 0 }
    }

    /// The next phase, by the means of those before it.
    pub fn next(&mut self, means: &PhaseMeans) -> Turn {
        let mut turn = Turn::default();
        if self.order.is_empty() {
            if self.begun >= LEAST_ROUNDS {
                turn.dropped = self.drop_worse(means);
            }
            if self.is_over(means) {
                return turn;
            }
            self.begun += 1;
            self.order = (0..self.left.len()).filter(|&placement| self.left[placement]).collect();
            for at in (1..self.order.len()).rev() {
                self.order.swap(at, self.chance.below(at + 1));
            }
        }
        turn.next = self.order.pop().map(|placement| (placement, self.begun - 1));
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
        if self.order.is_empty() { self.begun } else { self.begun.saturating_sub(1) }
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
            || self.begun >= ALIKE_ROUNDS && ranking(means, &self.left).iter().filter(is_left).all(is_alike)
    }
}

/// Whose turn it is, unpinned or pinned, where phases take turns.
///
/// By the number of the phase, from 0: U P P U P U U P, P U U P U P P U, and so on (Thue and Morse). In plain turns
/// the pinned phases would come later than their neighbours each time, so that a rate that drifts would pass for their gain, and
/// other work that comes and goes in step with the turns would fall on one kind. Here a steady drift cancels after four phases, a
/// bent one after eight, and no two phases that follow each other are of one kind more than twice.
#[must_use]
pub fn side_of(phase: u32) -> StretchSide {
    if phase.count_ones() % 2 == 1 { StretchSide::Pinned } else { StretchSide::Unpinned }
}
