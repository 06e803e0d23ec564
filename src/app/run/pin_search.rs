//! Where a search for the best placement stands: when the next phase is due. It decides from what was derived and sets nothing
//! itself; whose phase it is decides `derive::run::SearchSchedule`. Threads that start later stay as they are.

use super::pin_schedule::busy;
use crate::derive::Metrics;
use crate::derive::placement::{self, ClassPlacements};
use crate::derive::run::{PhaseMeans, SearchSchedule, SearchTurn};
use crate::sample::{TestKind, TriedPlacement};

/// How long busy threads are looked at before placements are made for them, ns: the load of the cores has to be known.
const LOOK_NS: u64 = 1_000_000_000;

/// What should be done now.
#[derive(Debug, PartialEq)]
pub(super) enum SearchWish {
    /// Start the search with these placements, for this kind of test.
    Start(ClassPlacements, TestKind),
    /// The phase is over.
    NextPhase,
    /// Nothing can be placed, for this reason.
    Refuse(String),
}

/// Where a search stands.
#[derive(Debug)]
pub(super) struct PinSearch {
    /// Length of a phase, ns.
    phase_ns: u64,
    stage: SearchStage,
}

#[derive(Debug)]
enum SearchStage {
    /// Since when a thread is busy; none before that.
    Looking(Option<u64>),
    Trying {
        schedule: SearchSchedule,
        placements: Vec<TriedPlacement>,
        /// When the phase started, ns.
        since_ns: u64,
    },
    Over,
}

impl PinSearch {
    /// Before the first busy thread.
    pub(super) fn new(phase_ns: u64) -> Self {
        Self { phase_ns, stage: SearchStage::Looking(None) }
    }

    /// One that never wishes for anything.
    pub(super) fn over() -> Self {
        Self { phase_ns: 0, stage: SearchStage::Over }
    }

    /// What to do after this sample.
    pub(super) fn next(&mut self, metrics: &Metrics) -> Option<SearchWish> {
        match &mut self.stage {
            SearchStage::Over => None,
            SearchStage::Looking(since_ns) => {
                if busy(metrics).is_empty() {
                    return None;
                }
                let since_ns = *since_ns.get_or_insert(metrics.machine.at_ns);
                let is_known = metrics.machine.at_ns.saturating_sub(since_ns) >= LOOK_NS;
                is_known.then(|| match placement::by_class(&metrics.subject) {
                    Ok(found) => SearchWish::Start(found, placement::test_kind(&metrics.subject)),
                    Err(why) => SearchWish::Refuse(why),
                })
            }
            SearchStage::Trying { since_ns, placements, .. } => {
                let is_over = metrics.machine.at_ns.saturating_sub(*since_ns) >= self.phase_ns;
                // A test that is over while its command goes on is not placed any more.
                let mut placed = placements.iter().flat_map(|tried| &tried.threads);
                let is_there = placed.any(|at| metrics.threads.iter().any(|thread| thread.sample.id == at.thread));
                (is_over && is_there).then_some(SearchWish::NextPhase)
            }
        }
    }

    /// Nothing could be placed: it is looked again later, unless the search was stopped.
    pub(super) fn refused(&mut self, at_ns: u64) {
        if let SearchStage::Looking(since_ns) = &mut self.stage {
            *since_ns = Some(at_ns);
        }
    }

    /// Starts with these placements.
    pub(super) fn start(&mut self, seed: u64, placements: Vec<TriedPlacement>) {
        let schedule = SearchSchedule::new(seed, placements.len());
        self.stage = SearchStage::Trying { schedule, placements, since_ns: 0 };
    }

    /// Whose phase is due by these means, and how many rounds are over.
    pub(super) fn turn(&mut self, means: &PhaseMeans) -> (SearchTurn, u32) {
        match &mut self.stage {
            SearchStage::Trying { schedule, .. } => {
                let rounds = schedule.rounds();
                (schedule.next(means), rounds)
            }
            SearchStage::Looking(_) | SearchStage::Over => (SearchTurn::default(), 0),
        }
    }

    /// A placement by its number.
    pub(super) fn placement(&self, number: usize) -> Option<TriedPlacement> {
        match &self.stage {
            SearchStage::Trying { placements, .. } => placements.get(number).cloned(),
            SearchStage::Looking(_) | SearchStage::Over => None,
        }
    }

    /// A phase has started.
    pub(super) fn began(&mut self, at_ns: u64) {
        if let SearchStage::Trying { since_ns, .. } = &mut self.stage {
            *since_ns = at_ns;
        }
    }

    /// A placement that cannot be had.
    pub(super) fn exclude(&mut self, number: usize) {
        if let SearchStage::Trying { schedule, .. } = &mut self.stage {
            schedule.exclude(number);
        }
    }

    /// Nothing is tried from here on.
    pub(super) fn stop(&mut self) {
        self.stage = SearchStage::Over;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::MachineMetrics;
    use crate::sample::PlacementClass;

    fn at(at_ns: u64) -> Metrics {
        Metrics::of_machine(MachineMetrics { at_ns, ..MachineMetrics::default() })
    }

    #[test]
    fn a_search_that_was_stopped_wishes_for_nothing_whatever_comes() {
        let mut search = PinSearch::new(1);
        assert_eq!(search.next(&at(10 * LOOK_NS)), None, "no thread is busy, so there is nothing to place");
        search.start(7, vec![TriedPlacement { class: PlacementClass::Unpinned, is_rule: false, threads: Vec::new() }]);
        search.stop();
        search.refused(20 * LOOK_NS);
        assert_eq!(search.next(&at(40 * LOOK_NS)), None, "a refusal that comes late does not begin it again");
        assert_eq!(search.turn(&PhaseMeans::none(1)), (SearchTurn::default(), 0), "and no phase is due");
    }
}
