//! Placements that a card found worse, test by test: they are not proposed again for that test.

use crate::derive::Metrics;
use crate::derive::experiment::Verdict;
use crate::derive::placement::{Proposal, class_of};
use crate::sample::{CoreId, PlacementClass, ThreadId};

/// More are forgotten, the oldest first.
const MOST: usize = 100;

/// What was pinned when cards said *worse*.
#[derive(Debug, Default)]
pub struct WorsePlacements(Vec<WorsePlacement>);

#[derive(Debug)]
struct WorsePlacement {
    /// The test, by number; none where everything watched counts.
    test: Option<u32>,
    /// When the pin was, `CLOCK_MONOTONIC`, ns.
    pinned_at_ns: Option<u64>,
    placed: Vec<(ThreadId, CoreId)>,
    /// Class of the placement; `None` when its streams were not all alike.
    class: Option<PlacementClass>,
    /// What its card rests on.
    why: String,
}

impl WorsePlacements {
    /// Takes the card of these metrics into account. A card that still fills may change its mind.
    pub(super) fn observe(&mut self, metrics: &Metrics) {
        let Some(card) = &metrics.subject.card else { return };
        let is_of_it = |one: &WorsePlacement| one.test == metrics.test && one.pinned_at_ns == card.pinned_at_ns;
        if card.verdict != Verdict::Worse {
            return self.0.retain(|one| !is_of_it(one));
        }
        if let Some(known) = self.0.iter_mut().find(|one| is_of_it(one)) {
            known.why = card.why();
            return;
        }
        let pinned = metrics.subject.threads.iter().filter(|thread| thread.pinned);
        let bound = pinned.filter_map(|thread| {
            let mask = thread.sample.allowed.as_ref().filter(|mask| mask.len() == 1)?;
            Some((thread.sample.id, mask.first()?))
        });
        let placed: Vec<(ThreadId, CoreId)> = bound.collect();
        // When the masks have been put back, no placement is left to remember.
        if placed.is_empty() {
            return;
        }
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        let (test, class) = (metrics.test, class_of(&metrics.subject, &placed));
        self.0.push(WorsePlacement { test, pinned_at_ns: card.pinned_at_ns, placed, class, why: card.why() });
    }

    /// Why this proposal is withheld: a card found its placement worse, on the same cores or on others as near to each other.
    /// `None` if no card did.
    #[must_use]
    pub fn against(&self, metrics: &Metrics, proposal: &Proposal) -> Option<&str> {
        let placed: Vec<(ThreadId, CoreId)> = proposal.steps.iter().map(|step| (step.thread, step.core)).collect();
        // What pins nobody is not what a card of pins was about.
        if placed.is_empty() {
            return None;
        }
        let class = class_of(&metrics.subject, &placed);
        let is_same = |one: &&WorsePlacement| {
            let has_cores = placed.iter().all(|at| one.placed.contains(at));
            one.test == metrics.test && (has_cores || class.is_some() && one.class == class)
        };
        self.0.iter().find(is_same).map(|one| one.why.as_str())
    }
}
