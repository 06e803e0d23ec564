//! What was counted since the start, by names that stay: threads by program and role, tests by their ends, losses by place and
//! reason, links of containers by their owner. Processes, ports and veths come and go, so of each kind at most so many are kept;
//! what has been quiet longest makes room, and what finds none is counted.

mod bounded;
mod links;

use super::{Jitter, LossPlace, Metrics, MoveClass, MovesByClass, Test};
use crate::sample::{Proto, ThreadId, Word};
use bounded::Bounded;
use std::collections::BTreeMap;

pub use links::{LinkCounts, LinkName, LinkSeries, LinkTotal};

/// Groups of threads, of tests and of losses kept, each.
pub const MOST_GROUPS: usize = 200;
/// What a client runs is known by then, ns; until then its test waits for its name.
const NAMED_WITHIN_NS: u64 = 3_000_000_000;

/// Threads that count together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadGroup {
    /// What the threads are called (`comm`).
    pub program: String,
    /// As [`crate::sample::ThreadSample::role`] says.
    pub role: &'static str,
}

/// What the threads of a group did since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ThreadTotals {
    /// Threads now.
    pub threads: usize,
    /// Moves whose cores are known.
    pub moves: MovesByClass,
    /// Those of which only the number is.
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
#[derive(Debug, Clone, Copy, Default, PartialEq)]
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
}

/// Losses that count together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LossGroup {
    /// Where.
    pub place: LossPlace,
    /// The kernel's reason; empty where counters tell.
    pub reason: String,
    /// Inode of the namespace; none where the packet was in none.
    pub netns: Option<u64>,
}

/// All of it.
#[derive(Debug, Clone)]
pub struct Totals {
    threads: Bounded<ThreadGroup, ThreadTotals>,
    tests: Bounded<TestGroup, TestTotals>,
    losses: Bounded<LossGroup, f64>,
    /// What tests did whose program is not known yet, by number.
    unnamed: BTreeMap<u32, TestTotals>,
    /// The links, at most as many as asked for.
    pub links: LinkSeries,
    /// Tests that have begun.
    pub begun: u64,
    /// The moves of each thread as of the newest sample.
    counted: BTreeMap<ThreadId, (u64, MovesByClass)>,
    is_first: bool,
}

impl Totals {
    /// Nothing counted yet; of links at most so many are kept.
    #[must_use]
    pub fn new(most_links: usize) -> Self {
        Self {
            threads: Bounded::new(MOST_GROUPS),
            tests: Bounded::new(MOST_GROUPS),
            losses: Bounded::new(MOST_GROUPS),
            unnamed: BTreeMap::new(),
            links: LinkSeries::new(most_links),
            begun: 0,
            counted: BTreeMap::new(),
            is_first: true,
        }
    }

    /// Adds what happened since the sample before.
    pub fn observe(&mut self, metrics: &Metrics) {
        self.links.observe(metrics);
        self.observe_threads(metrics);
        self.observe_tests(metrics);
        self.observe_losses(metrics);
        self.is_first = false;
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

    /// What found no room: its kind, and how many there are now (links) or were in all (the others).
    #[must_use]
    pub fn left_out(&self) -> [(&'static str, u64); 4] {
        [
            ("links", self.links.left_out()),
            ("threads", self.threads.left_out),
            ("tests", self.tests.left_out),
            ("losses", self.losses.left_out),
        ]
    }

    fn observe_threads(&mut self, metrics: &Metrics) {
        self.threads.begin_round();
        self.threads.values_mut().for_each(|group| group.threads = 0);
        let before = std::mem::take(&mut self.counted);
        let elapsed_s = metrics.elapsed_s.unwrap_or_default();
        for thread in &metrics.threads {
            let now = (thread.moves, thread.by_class);
            self.counted.insert(thread.sample.id, now);
            // Of one that was there before vnettop, what it did before does not count.
            let old =
                before.get(&thread.sample.id).copied().unwrap_or(if self.is_first { now } else { <_>::default() });
            let key = ThreadGroup { program: thread.sample.name.to_string(), role: thread.sample.role() };
            let Some(group) = self.threads.entry(key) else { continue };
            let classed = now.1.since(old.1);
            group.threads += 1;
            group.moves.add_all(classed);
            group.unclassed += now.0.saturating_sub(old.0).saturating_sub(classed.all());
            group.cpu_s += thread.cpu.unwrap_or_default() * elapsed_s;
            group.wait_s += thread.wait.unwrap_or_default() * elapsed_s;
        }
    }

    fn observe_tests(&mut self, metrics: &Metrics) {
        self.tests.begin_round();
        for group in self.tests.values_mut() {
            (group.running, group.jitter) = (0, None);
        }
        self.begun = self.begun.max(metrics.tests.iter().map(|test| u64::from(test.number)).max().unwrap_or_default());
        let elapsed_s = metrics.elapsed_s.unwrap_or_default();
        let mut unnamed = std::mem::take(&mut self.unnamed);
        for test in metrics.tests.iter().filter(|test| test.ended_ns.is_none()) {
            let mut counts = unnamed.remove(&test.number).unwrap_or_default();
            counts.add(&TestTotals::of(test, elapsed_s));
            let is_young = metrics.at_ns.saturating_sub(test.began_ns) < NAMED_WITHIN_NS;
            if test.metrics.benchmarks.is_empty() && is_young {
                self.unnamed.insert(test.number, counts);
            } else if let Some(group) = self.tests.entry(TestGroup::of(test)) {
                group.add(&counts);
                group.running += 1;
                // In the order in which they began: the last one stands.
                group.jitter = test.metrics.jitter.or(group.jitter);
            }
        }
    }

    fn observe_losses(&mut self, metrics: &Metrics) {
        self.losses.begin_round();
        let running: Vec<&Test> =
            metrics.tests.iter().map(|test| &**test).filter(|test| test.ended_ns.is_none()).collect();
        // What the kernel tells late of a test that has ended is nobody's.
        let all = if running.is_empty() { vec![metrics] } else { running.iter().map(|test| &*test.metrics).collect() };
        for loss in all.into_iter().flat_map(|of| &of.losses.places) {
            let reason = loss.reason.as_deref().unwrap_or_default().to_owned();
            if let Some(packets) = self.losses.entry(LossGroup { place: loss.place, reason, netns: loss.netns }) {
                *packets += loss.packets;
            }
        }
    }
}

impl TestGroup {
    fn of(test: &Test) -> Self {
        let unknown = || "unknown".to_owned();
        let [client, server] = test.ends();
        let program = test.metrics.benchmarks.first().map(|benchmark| benchmark.program.word().to_owned());
        let named = || test.metrics.threads.first().map(|thread| thread.sample.name.to_string());
        Self {
            program: program.or_else(named).unwrap_or_else(unknown),
            protocol: test.metrics.flow.connections.first().map_or("", |connection| connection.proto.word()),
            client: client.map_or_else(unknown, |end| end.address.ip().to_string()),
            server: server.map_or_else(unknown, |end| end.address.to_string()),
        }
    }
}

impl TestTotals {
    /// What a test did since the sample before.
    fn of(test: &Test, elapsed_s: f64) -> Self {
        let flow = &test.metrics.flow;
        let connections = flow.connections.iter().filter(|one| !one.relayed);
        let retransmits: f64 = connections.clone().filter_map(|one| one.retransmits_per_s).sum();
        let datagrams = flow.tests.iter().filter_map(|one| Some(one.rate()?.bits_per_s));
        let streams = connections.filter(|one| one.proto == Proto::Tcp).filter_map(|one| one.bits_per_s);
        Self {
            bytes: datagrams.chain(streams).sum::<f64>() / 8.0 * elapsed_s,
            retransmits: retransmits * elapsed_s,
            lost: test.metrics.losses.places.iter().map(|loss| loss.packets).sum(),
            ..Self::default()
        }
    }

    fn add(&mut self, more: &Self) {
        self.bytes += more.bytes;
        self.retransmits += more.retransmits;
        self.lost += more.lost;
    }
}

impl ThreadTotals {
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
