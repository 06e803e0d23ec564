//! Everything derived from two or more samples: the machine, the tests on it, and which of them a face is about.

use super::conclusions::Conclusions;
use super::flow::FlowMetrics;
use super::losses::Losses;
use super::machine::MachineMetrics;
use super::moves::TracedMove;
use super::passing_traffic::PassingTraffic;
use super::scope::kept;
use super::test::Test;
use super::test_metrics::TestMetrics;
use super::threads::ThreadMetrics;
use super::workers::Worker;
use std::collections::BTreeMap;
use std::sync::Arc;
use vnettop_sample::{ProfileOf, ThreadId, row_of};

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
    /// What passes the machine while no test runs; none where hardly anything does.
    pub traffic: Option<Arc<PassingTraffic>>,
}

impl Metrics {
    /// The test that each thread works for now, by number, the newest where that are several; the threads of no test are not in it.
    #[must_use]
    pub fn tests_of_threads(&self) -> BTreeMap<ThreadId, u32> {
        let own = |test: &Arc<Test>| -> Vec<(ThreadId, u32)> {
            let workers = test.workers().iter().map(Worker::id);
            let ends = test.threads().iter().map(|thread| thread.sample.id);
            ends.chain(workers).map(|id| (id, test.number)).collect()
        };
        self.tests.iter().flat_map(own).collect()
    }

    /// The test that all this is about, where it has ended.
    #[must_use]
    pub fn ended_test(&self) -> Option<&Arc<Test>> {
        self.tests.iter().find(|test| Some(test.number) == self.test && test.ended_ns.is_some())
    }

    /// These metrics about this test, without the threads of others; an ended test has no rate and no finding now.
    #[must_use]
    pub fn about(self, number: u32) -> Self {
        let Some(test) = self.tests.iter().find(|test| test.number == number).cloned() else { return self };
        let (tests, own, workers) = (self.tests_of_threads(), test.threads(), test.workers());
        let is_own = |id: ThreadId| {
            row_of(own, &id, |thread| thread.sample.id).is_some() || workers.iter().any(|worker| worker.id() == id)
        };
        let is_shown = |thread: &ThreadMetrics| !tests.contains_key(&thread.sample.id) || is_own(thread.sample.id);
        let threads = kept(&self.machine.threads, is_shown);
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

    /// Where there is no test and no rate of what is watched: with the graph of what passes, and what queues drop of it.
    #[must_use]
    pub fn with_traffic(self) -> Self {
        let is_idle = self.tests.is_empty() && self.subject.timeline.bins.is_empty();
        let Some(traffic) = self.traffic.as_ref().filter(|_| is_idle) else { return Self { traffic: None, ..self } };
        let losses = Losses { qdiscs: traffic.qdiscs(), ..self.subject.losses.clone() };
        let subject = TestMetrics { timeline: Arc::clone(&traffic.timeline), losses, ..(*self.subject).clone() };
        Self { subject: Arc::new(subject), ..self }
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

impl Metrics {
    /// The threads that carry packets between the ends of what this is about, else of the running tests, by thread.
    #[must_use]
    pub fn workers(&self) -> BTreeMap<ThreadId, (&Worker, &TestMetrics)> {
        let tests = self.tests.iter().filter(|test| test.ended_ns.is_none()).map(|test| &*test.metrics);
        let of = |metrics| -> Vec<_> {
            let metrics: &TestMetrics = metrics;
            metrics.workers.iter().map(|worker| (worker.id(), (worker, metrics))).collect()
        };
        tests.chain([&*self.subject]).flat_map(of).collect()
    }

    /// The core that LIMIT names, as what is to be profiled; the one that is profiled already while it names none.
    #[must_use]
    pub fn profiled_limit(&self) -> Option<ProfileOf> {
        let named = self.conclusions.limit.as_ref().and_then(|limit| limit.core);
        named.or(self.machine.profile.as_ref().map(|profile| profile.core)).map(ProfileOf::Core)
    }

    /// About everything that is watched, where that is this.
    #[must_use]
    pub fn of_everything(subject: TestMetrics) -> Self {
        let (threads, moves) = (Arc::clone(&subject.threads), Arc::clone(&subject.moves));
        Self { machine: Arc::clone(&subject.machine), subject: Arc::new(subject), threads, moves, ..Self::default() }
    }

    /// Of a machine on which nothing is watched.
    #[must_use]
    pub fn of_machine(machine: MachineMetrics) -> Self {
        Self::of_everything(TestMetrics { machine: Arc::new(machine), ..TestMetrics::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::tests::machine::Machine;
    use crate::test::TestKey;

    /// A running test that these threads work for, by pid.
    fn test(number: u32, of: &TestMetrics, pids: &[u32]) -> Arc<Test> {
        let mut metrics = of.clone();
        metrics.threads_mut().retain(|thread| pids.contains(&thread.sample.id.pid));
        Arc::new(Test::running(number, TestKey::Client(pids[0]), Arc::new(metrics), Arc::default()))
    }

    #[test]
    fn a_thread_of_two_tests_is_shown_with_either_and_one_of_another_with_neither() {
        let machine = Machine::small(4).pair(0, 1).thread(500, 500, vnettop_sample::Side::Client, 2);
        let all = machine.metrics();
        let [server, one, two] = [39_081, 39_082, 500];
        let tests = vec![test(1, &all, &[one, server]), test(2, &all, &[two, server])];
        let metrics = Metrics { tests, ..Metrics::of_everything(all) };
        let shown = |number| -> Vec<u32> {
            metrics.clone().about(number).threads.iter().map(|thread| thread.sample.id.pid).collect()
        };
        assert_eq!((shown(1), shown(2)), (vec![server, one], vec![two, server]));
        assert_eq!(
            metrics.tests_of_threads().into_values().collect::<Vec<_>>(),
            [2, 2, 1],
            "the newest where it is both's"
        );
    }
}
