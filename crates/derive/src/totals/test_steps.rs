//! What each test did since the sample before, and the group that it counts in.

use super::super::flow::CountedConnections;
use super::super::losses::is_here;
use super::super::{Bin, FlowBasis, MachineMetrics, Metrics, Test, TestKey};
use super::latency::LatencySteps;
use super::{TestGroup, TestTotals};
use std::collections::BTreeMap;
use vnettop_sample::Word;

/// What a client runs is known by then, ns; until then its test waits for its name.
const NAMED_WITHIN_NS: u64 = 3_000_000_000;

/// Every test that there is, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct TestSteps {
    tests: BTreeMap<u32, TestCounts>,
    /// Samples until now: what was there before the second began before vnettop did.
    samples: u64,
}

#[derive(Debug, Clone, Default)]
struct TestCounts {
    /// Once it is known, it stays.
    group: Option<TestGroup>,
    /// Up to when everything was counted, ns.
    until_ns: u64,
    /// Its TCP connections, as counted last.
    connections: CountedConnections,
    /// What was counted before the group was known.
    waiting: TestTotals,
    latency: LatencySteps,
    has_ended: bool,
}

impl TestSteps {
    /// What is to be added to each group; tests in the order in which they began.
    pub fn advance(&mut self, metrics: &Metrics) -> Vec<(TestGroup, TestTotals)> {
        self.samples += 1;
        let mut before = std::mem::take(&mut self.tests);
        let mut steps = Vec::new();
        for test in &metrics.tests {
            let mut counts = before.remove(&test.number).unwrap_or_default();
            if !counts.has_ended {
                counts.advance(test, &metrics.machine, self.samples > 2);
                let is_young = metrics.machine.at_ns.saturating_sub(test.began_ns) < NAMED_WITHIN_NS;
                let is_named = !test.metrics.benchmarks.is_empty() || !is_young || counts.has_ended;
                if is_named && counts.group.is_none() {
                    counts.group = Some(TestGroup::of(test));
                }
                if let Some(group) = &counts.group {
                    steps.push((group.clone(), std::mem::take(&mut counts.waiting)));
                }
            }
            self.tests.insert(test.number, counts);
        }
        steps
    }
}

impl TestCounts {
    /// Counts what happened until the newest sample. A new connection counts from its start, unless it may be older than
    /// vnettop's first sample.
    fn advance(&mut self, test: &Test, machine: &MachineMetrics, counts_from_start: bool) {
        self.has_ended = test.ended_ns.is_some();
        let flow = &test.metrics.flow;
        let is_counted = |bin: &&Bin| bin.from_ns >= self.until_ns;
        let carried = test.metrics.timeline.bins.iter().filter(is_counted);
        let carried = carried.filter_map(|bin| Some(bin.bits_per_s? * bin.length_s())).sum::<f64>() / 8.0;
        // Of datagrams nothing else is known; of connections, what they did after their last sample.
        if flow.basis.as_ref().is_some_and(|basis| matches!(basis, FlowBasis::Datagrams(_))) || self.has_ended {
            // A link's rate is no payload.
            let is_payload = !matches!(flow.basis, Some(FlowBasis::Link(_)));
            self.waiting.bytes += if is_payload { carried } else { 0.0 };
        }
        self.until_ns = machine.at_ns;
        self.waiting.running = usize::from(!self.has_ended);
        self.waiting.jitter = test.metrics.jitter.filter(|_| !self.has_ended);
        if let Some(latency) = test.metrics.latency.as_deref().filter(|_| !self.has_ended) {
            self.latency.advance(latency, &mut self.waiting.latency);
        }
        if self.has_ended {
            self.connections.clear();
            return;
        }
        let lost = test.metrics.losses.places.iter().filter(|loss| is_here(machine, loss));
        self.waiting.lost += lost.map(|loss| loss.packets).sum::<f64>();
        let step = self.connections.advance(flow, counts_from_start);
        self.waiting.bytes += step.bytes;
        self.waiting.retransmits += step.retransmits;
    }
}

impl TestGroup {
    fn of(test: &Test) -> Self {
        let unknown = || "unknown".to_owned();
        let [client, server] = test.ends();
        let program = test.metrics.benchmarks.first().map(|benchmark| benchmark.program.word().to_owned());
        let (TestKey::Client(pid) | TestKey::Server(pid, _)) = test.key;
        let own = test.metrics.threads.iter().find(|thread| thread.sample.id.pid == pid);
        Self {
            program: program.or_else(|| Some(own?.sample.name.to_string())).unwrap_or_else(unknown),
            protocol: test.metrics.flow.connections.first().map_or("", |connection| connection.proto().word()),
            client: client.map_or_else(unknown, |end| end.address.ip().to_string()),
            server: server.map_or_else(unknown, |end| end.address.to_string()),
        }
    }
}

impl TestTotals {
    /// Adds what a test did; of several the spread of the one that began last stands.
    pub(super) fn add(&mut self, step: &Self) {
        self.running += step.running;
        self.bytes += step.bytes;
        self.retransmits += step.retransmits;
        self.lost += step.lost;
        self.jitter = step.jitter.or(self.jitter);
        for (stage, times) in &step.latency {
            self.latency.entry(stage).or_default().add(times);
        }
    }
}
