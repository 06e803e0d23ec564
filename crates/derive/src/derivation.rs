//! The fold: the stream of a run → metrics, sample by sample.

use super::history::History;
use super::machine_stage::MachineStage;
use super::metrics::Metrics;
use super::passing_traffic::TrafficTrack;
use super::scope::Scope;
use super::test::Tests;
use super::test_stages::{OwnPart, TestStages};
use std::sync::Arc;
use vnettop_sample::{Item, Sample};

/// Folds the stream of a run into metrics; keeps the previous sample and what needs more than two. A sample goes through two
/// stages: what it says of the machine, and of that what concerns a benchmark, from its flows to what is found.
#[derive(Debug, Clone)]
pub struct Derivation {
    previous: Option<Sample>,
    machine: MachineStage,
    /// What belongs to the command, or everything that is watched while no test runs.
    pub(super) stages_without_test: TestStages,
    traffic: TrafficTrack,
    /// Tells tests apart; `None` when everything counts as one test.
    tests: Option<Tests>,
    /// Part of each sample that is looked at; `None` for all of it.
    pub(super) scope: Option<Scope>,
}

impl Default for Derivation {
    /// One that tells tests apart.
    fn default() -> Self {
        Self { tests: Some(Tests::default()), ..Self::of_everything() }
    }
}

impl Derivation {
    /// One that looks at what belongs to the command that vnettop runs, and at nothing else that is watched.
    #[must_use]
    pub fn of_command() -> Self {
        Self { scope: Some(Scope::default()), ..Self::of_everything() }
    }

    /// One to which everything that is watched is one test.
    #[must_use]
    pub fn of_everything() -> Self {
        Self {
            previous: None,
            machine: MachineStage::default(),
            stages_without_test: TestStages::default(),
            traffic: TrafficTrack::default(),
            tests: None,
            scope: None,
        }
    }

    /// Takes the next item of the stream; a sample gives metrics, an event is remembered.
    pub fn advance(&mut self, item: Item) -> Option<Metrics> {
        match item {
            Item::Sample(sample) => Some(self.sample(*sample)),
            Item::Event(event) => {
                self.machine.events.push(event);
                None
            }
        }
    }

    /// The strips of the links and the trails of the threads.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.machine.history
    }

    /// The newest sample.
    #[must_use]
    pub fn latest(&self) -> Option<&Sample> {
        self.previous.as_ref()
    }

    fn sample(&mut self, mut next: Sample) -> Metrics {
        let previous = self.previous.take();
        if let Some(scope) = &mut self.scope {
            self.stages_without_test.flow.beside = scope.narrow(&mut next);
        }
        let machine = Arc::new(self.machine.observe(previous.as_ref(), &next));
        let history = &self.machine.history;
        let tests = self.tests.as_mut().map(|tests| tests.observe(previous.as_ref(), &next, &machine, history));
        let (tests, leading) = tests.unwrap_or_default();
        let (subject, conclusions) = if let Some(test) = &leading {
            // Conclusions from before this test say nothing of the time after it.
            self.stages_without_test = TestStages::default();
            (Arc::clone(&test.metrics), Arc::clone(&test.conclusions))
        } else {
            let all = OwnPart::of_everything(&machine);
            let (mut metrics, conclusions) = self.stages_without_test.observe(previous.as_ref(), &next, all, history);
            // The card of the last test stays when the test has ended.
            let last_card = || tests.iter().rev().find_map(|test| test.metrics.card.clone());
            metrics.card = metrics.card.take().or_else(last_card);
            (Arc::new(metrics), Arc::new(conclusions))
        };
        let traffic = if tests.is_empty() {
            self.traffic.observe(previous.as_ref(), &next, &machine)
        } else {
            self.traffic = TrafficTrack::default();
            None
        };
        self.previous = Some(next);
        Metrics {
            traffic,
            test: leading.map(|test| test.number),
            threads: Arc::clone(&machine.threads),
            moves: Arc::clone(&machine.moves),
            machine,
            tests,
            subject,
            conclusions,
        }
    }
}
