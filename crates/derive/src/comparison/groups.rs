//! Which paths of a load differ, pair by pair, and which groups of them do not.

use super::PathRow;
use crate::experiment::{Difference, Significance};

/// Pairs of more paths are not looked at; there are fewer kinds than that, but a file can name any number.
const MOST_PATHS: usize = 100;

/// How one rate compares with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum PathVerdict {
    /// Surely above, by more than 3 %.
    Faster,
    /// Surely below, by more than 3 %.
    Slower,
    /// The difference is surely within 3 %.
    #[strum(to_string = "no difference")]
    NoDifference,
    /// None of these is sure.
    Inconclusive,
}

impl From<Difference> for PathVerdict {
    fn from(difference: Difference) -> Self {
        match difference.direction() {
            Significance::More => Self::Faster,
            Significance::Less => Self::Slower,
            Significance::Same => Self::NoDifference,
            Significance::Open => Self::Inconclusive,
        }
    }
}

/// Groups of paths, the names in the table's order; no group is part of another one, and each pair of which it is true is in one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathGroups {
    /// Any two paths of a group are surely within 3 % of each other.
    pub same: Vec<Vec<String>>,
    /// No two paths of a group surely differ, and of some it is not sure that they do not.
    pub open: Vec<Vec<String>>,
}

/// How each path compares with each path below it; `None` when either has one round.
pub(super) struct PairVerdicts(Vec<Vec<Option<PathVerdict>>>);

impl PairVerdicts {
    /// The verdicts for these rows.
    pub(super) fn of(rows: &[PathRow]) -> Self {
        let rate = |row: &'_ PathRow| row.unpinned.as_ref().map(|side| side.rate.clone());
        let rates: Vec<_> = rows.iter().take(MOST_PATHS).map(rate).collect();
        let beside = |one: usize, other: usize| Some(rates[one].as_ref()?.against(rates[other].as_ref()?)?.into());
        Self((0..rates.len()).map(|one| (one + 1..rates.len()).map(|other| beside(one, other)).collect()).collect())
    }

    fn get(&self, one: usize, other: usize) -> Option<PathVerdict> {
        let (upper, lower) = (one.min(other), one.max(other));
        *self.0.get(upper)?.get(lower.checked_sub(upper + 1)?)?
    }

    /// How many paths are surely faster than this one, and how many slower.
    pub(super) fn around(&self, at: usize) -> (usize, usize) {
        use PathVerdict::{Faster, Slower};
        let of = |verdict: PathVerdict, others: std::ops::Range<usize>| {
            others.filter(|&other| self.get(at, other) == Some(verdict)).count()
        };
        let (above, below) = (0..at, at + 1..self.0.len());
        // What is said of a pair is said of the upper one.
        (of(Faster, above.clone()) + of(Slower, below.clone()), of(Slower, above) + of(Faster, below))
    }

    /// The groups of these rows.
    pub(super) fn groups(&self, rows: &[PathRow]) -> PathGroups {
        let is = |wanted: &'static [PathVerdict]| {
            move |one, other| self.get(one, other).is_some_and(|verdict| wanted.contains(&verdict))
        };
        let same = is(&[PathVerdict::NoDifference]);
        let unsure = is(&[PathVerdict::Inconclusive]);
        let either = is(&[PathVerdict::NoDifference, PathVerdict::Inconclusive]);
        let named = |groups: Vec<Vec<usize>>| {
            groups.into_iter().map(|group| group.into_iter().map(|at| rows[at].name.clone()).collect()).collect()
        };
        let count = self.0.len();
        PathGroups { same: named(cover(count, &same, &same)), open: named(cover(count, &unsure, &either)) }
    }
}

/// Groups in which `holds` for any two, so that each pair of which `counts` is true is in one of them. Largest groups would take a time
/// that grows without end with the number of paths; these grow from a pair, path by path.
fn cover(
    paths: usize,
    counts: &impl Fn(usize, usize) -> bool,
    holds: &impl Fn(usize, usize) -> bool,
) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for one in 0..paths {
        for other in (one + 1..paths).filter(|&other| counts(one, other)) {
            if groups.iter().any(|group| group.contains(&one) && group.contains(&other)) {
                continue;
            }
            let mut group = vec![one, other];
            for next in 0..paths {
                if !group.contains(&next) && group.iter().all(|&of| holds(of, next)) {
                    group.push(next);
                }
            }
            group.sort_unstable();
            groups.retain(|of| !of.iter().all(|at| group.contains(at)));
            groups.push(group);
        }
    }
    groups.sort();
    groups
}
