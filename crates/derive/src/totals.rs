//! What was counted since the start, by names that stay: threads by program and role, tests by their ends, losses by place and
//! reason, links of containers by their owner. Processes, ports and veths come and go, so of each kind at most so many are kept;
//! what has been quiet longest makes room, and what finds none is counted.

mod bounded;
mod latency;
mod links;
mod losses;
mod saves;
mod space_labels;
mod test_steps;
mod threads;

use super::{Jitter, LossPlace, Metrics, MoveClass, MovesByClass};
use bounded::Bounded;
use test_steps::TestSteps;
use threads::ThreadSteps;

pub use latency::{LATENCY_BOUNDS_NS, LatencyTotal, LatencyTotals};
pub use links::{LinkCounts, LinkName, LinkSeries, LinkTotal};
pub use saves::SaveTotals;
pub use space_labels::SpaceLabels;

/// Groups of threads, of tests and of losses kept, each.
pub const MOST_GROUPS: usize = 200;

/// Threads that count together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadGroup {
    /// What the threads are called (`comm`).
    pub program: String,
    /// As [`vnettop_sample::ThreadSample::role`] says.
    pub role: &'static str,
}

/// What the threads of a group did since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ThreadTotals {
    /// Threads now.
    pub threads: usize,
    /// Moves whose cores are known.
    pub moves: MovesByClass,
    /// Moves of which only the number is known.
    pub unclassed: u64,
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// Time runnable without a core, seconds.
    pub wait_s: f64,
}

/// Tests that count together: of the same program between the same addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestGroup {
    /// `iperf3`, or what the client's threads are called; `unknown` where neither is known.
    pub program: String,
    /// `tcp`, `udp`.
    pub protocol: &'static str,
    /// The client's address, without its port, which is another one in each test; `unknown` where it is.
    pub client: String,
    /// The server's address and port; `unknown` where it is.
    pub server: String,
}

/// What the tests of a group did since the start, and how the newest of those that run is now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TestTotals {
    /// Tests that run now.
    pub running: usize,
    /// Payload, bytes: what arrived, or where that is not known what was sent.
    pub bytes: f64,
    /// TCP segments sent again.
    pub retransmits: f64,
    /// Packets lost, wherever.
    pub lost: f64,
    /// Spread of the rate of the one that began last; none where none runs.
    pub jitter: Option<Jitter>,
    /// How long their packets and threads waited; empty where that was not measured.
    pub latency: LatencyTotals,
}

/// Losses that count together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LossGroup {
    /// Where.
    pub place: LossPlace,
    /// The kernel's reason; empty where counters tell.
    pub reason: String,
    /// What its namespace was called then; empty where the packet was in none.
    pub netns: String,
    /// The pod that this namespace was: Kubernetes namespace and name; none of others.
    pub pod: Option<(String, String)>,
}

/// All of it.
#[derive(Debug, Clone)]
pub struct Totals {
    threads: Bounded<ThreadGroup, ThreadTotals>,
    tests: Bounded<TestGroup, TestTotals>,
    losses: Bounded<LossGroup, f64>,
    /// The links, at most as many as asked for.
    pub links: LinkSeries,
    /// Tests that have begun.
    pub begun: u64,
    /// Recordings that were saved by themselves.
    pub saves: SaveTotals,
    thread_steps: ThreadSteps,
    test_steps: TestSteps,
}

impl Totals {
    /// Nothing counted yet; of links at most so many are kept.
    #[must_use]
    pub fn new(most_links: usize) -> Self {
        Self {
            threads: Bounded::new(MOST_GROUPS),
            tests: Bounded::new(MOST_GROUPS),
            losses: Bounded::new(MOST_GROUPS),
            links: LinkSeries::new(most_links),
            begun: 0,
            saves: SaveTotals::default(),
            thread_steps: ThreadSteps::default(),
            test_steps: TestSteps::default(),
        }
    }

    /// Adds what happened since the sample before.
    pub fn observe(&mut self, metrics: &Metrics) {
        self.links.observe(metrics);
        self.threads.begin_round();
        self.threads.values_mut().for_each(|group| group.threads = 0);
        for (thread, step) in metrics.threads.iter().zip(self.thread_steps.advance(metrics)) {
            let key = ThreadGroup { program: thread.sample.name.to_string(), role: thread.sample.role() };
            if let Some(group) = self.threads.entry(key) {
                group.add(&step);
            }
        }
        self.tests.begin_round();
        for group in self.tests.values_mut() {
            (group.running, group.jitter) = (0, None);
        }
        self.begun = self.begun.max(metrics.tests.iter().map(|test| u64::from(test.number)).max().unwrap_or_default());
        for (group, step) in self.test_steps.advance(metrics) {
            if let Some(group) = self.tests.entry(group) {
                group.add(&step);
            }
        }
        self.losses.begin_round();
        for (group, packets) in losses::of(metrics) {
            if let Some(sum) = self.losses.entry(group) {
                *sum += packets;
            }
        }
    }

    /// The threads, by group.
    pub fn threads(&self) -> impl Iterator<Item = (&ThreadGroup, &ThreadTotals)> {
        self.threads.iter()
    }

    /// The tests, by group.
    pub fn tests(&self) -> impl Iterator<Item = (&TestGroup, &TestTotals)> {
        self.tests.iter()
    }

    /// Packets lost, by group.
    pub fn losses(&self) -> impl Iterator<Item = (&LossGroup, &f64)> {
        self.losses.iter()
    }

    /// What finds no room now, by kind.
    #[must_use]
    pub fn left_out(&self) -> [(&'static str, usize); 4] {
        [
            ("links", self.links.left_out()),
            ("threads", self.threads.left_out()),
            ("tests", self.tests.left_out()),
            ("losses", self.losses.left_out()),
        ]
    }
}

impl ThreadTotals {
    fn add(&mut self, step: &Self) {
        self.threads += step.threads;
        self.moves.add_all(step.moves);
        self.unclassed += step.unclassed;
        self.cpu_s += step.cpu_s;
        self.wait_s += step.wait_s;
    }

    /// Every move, by what it crossed, those that there were none of too; none: not known.
    #[must_use]
    pub fn by_class(&self) -> [(Option<MoveClass>, u64); 6] {
        let MovesByClass { smt, cluster, llc, node, socket } = self.moves;
        [
            (Some(MoveClass::Smt), smt),
            (Some(MoveClass::Cluster), cluster),
            (Some(MoveClass::Llc), llc),
            (Some(MoveClass::Node), node),
            (Some(MoveClass::Socket), socket),
            (None, self.unclassed),
        ]
    }
}

#[cfg(test)]
mod tests;
