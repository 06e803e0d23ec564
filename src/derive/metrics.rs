//! Everything derived from two or more samples: the machine, the tests on it, and which of them a face is about.

use super::conclusions::Conclusions;
use super::flow::FlowMetrics;
use super::machine::MachineMetrics;
use super::moves::TracedMove;
use super::test::Test;
use super::test_metrics::TestMetrics;
use super::threads::ThreadMetrics;
use crate::sample::{ThreadId, row_of};
use std::sync::Arc;

/// What every face shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics {
    /// The machine.
    pub machine: Arc<MachineMetrics>,
    /// The tests, in the order in which they began: those that run, and the last ones that have ended. Empty where what belongs
    /// to one command is derived.
    pub tests: Vec<Arc<Test>>,
    /// The test that `subject` is of, by number; none: everything that is watched, or what belongs to one command.
    pub test: Option<u32>,
    /// What is measured of that test.
    pub subject: Arc<TestMetrics>,
    /// What is concluded of it.
    pub conclusions: Arc<Conclusions>,
    /// The threads to show beside it: its own and those of no test where a test was chosen, else all that are watched, and those of
    /// switches; sorted by (pid, tid).
    pub threads: Arc<Vec<ThreadMetrics>>,
    /// The moves of these threads since the sample before, as traced; where a test was chosen, of its own alone.
    pub moves: Arc<Vec<TracedMove>>,
}

impl Metrics {
    /// The test that a thread works for now, by number; none where that is no test's.
    #[must_use]
    pub fn test_of(&self, thread: ThreadId) -> Option<u32> {
        let works =
            |test: &&Arc<Test>| test.threads().is_some_and(|own| row_of(own, &thread, |of| of.sample.id).is_some());
        self.tests.iter().rev().find(works).map(|test| test.number)
    }

    /// The test that all this is about, where it has ended.
    #[must_use]
    pub fn ended_test(&self) -> Option<&Arc<Test>> {
        self.tests.iter().find(|test| Some(test.number) == self.test && test.ended_ns.is_some())
    }

    /// The same about this test, without the threads of the others; of one that has ended there is no rate and no finding now.
    #[must_use]
    pub fn about(self, number: u32) -> Self {
        let Some(test) = self.tests.iter().find(|test| test.number == number).cloned() else { return self };
        let is_shown = |thread: &ThreadMetrics| self.test_of(thread.sample.id).is_none_or(|of| of == number);
        let all = &self.machine.threads;
        let threads = if all.iter().all(is_shown) {
            Arc::clone(all)
        } else {
            Arc::new(all.iter().filter(|thread| is_shown(thread)).cloned().collect())
        };
        let moves = Arc::clone(&test.metrics.moves);
        let (subject, conclusions) = if test.ended_ns.is_none() {
            (Arc::clone(&test.metrics), Arc::clone(&test.conclusions))
        } else {
            let own = (*test.metrics).clone();
            let (machine, threads) = (Arc::clone(&self.machine), Arc::default());
            let flow = FlowMetrics { bits_per_s: None, ..own.flow };
            let ended = TestMetrics { machine, threads, flow, jitter: None, ..own };
            (Arc::new(ended), Arc::default())
        };
        Self { test: Some(number), subject, conclusions, threads, moves, ..self }
    }

    /// Where nothing is measured now: with the graph, the ends and the card of the test that ended last, so that its result can
    /// be read. Everything else stays as it is now.
    #[must_use]
    pub fn with_last_result(self) -> Self {
        let ended = self.tests.iter().filter(|test| test.ended_ns.is_some());
        let is_idle = self.subject.timeline.bins.is_empty();
        let Some(last) = ended.max_by_key(|test| test.ended_ns).filter(|_| is_idle).cloned() else { return self };
        let own = &last.metrics;
        let subject = TestMetrics {
            threads: Arc::default(),
            flow: FlowMetrics { bits_per_s: None, ..own.flow.clone() },
            benchmarks: own.benchmarks.clone(),
            timeline: Arc::clone(&own.timeline),
            card: own.card.clone(),
            ..(*self.subject).clone()
        };
        Self { test: Some(last.number), subject: Arc::new(subject), ..self }
    }
}

#[cfg(test)]
impl Metrics {
    /// About everything that is watched, where that is this.
    pub(crate) fn of_everything(subject: TestMetrics) -> Self {
        let (threads, moves) = (Arc::clone(&subject.threads), Arc::clone(&subject.moves));
        Self { machine: Arc::clone(&subject.machine), subject: Arc::new(subject), threads, moves, ..Self::default() }
    }

    /// Of a machine on which nothing is watched.
    pub(crate) fn of_machine(machine: MachineMetrics) -> Self {
        Self::of_everything(TestMetrics { machine: Arc::new(machine), ..TestMetrics::default() })
    }
}
