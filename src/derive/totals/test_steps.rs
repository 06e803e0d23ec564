//! What each test did since the sample before, and the group that it counts in.

use super::super::{Bin, FlowBasis, Metrics, Test, TestKey};
use super::{TestGroup, TestTotals};
use crate::sample::{Proto, Word};
use std::collections::BTreeMap;

/// What a client runs is known by then, ns; until then its test waits for its name.
const NAMED_WITHIN_NS: u64 = 3_000_000_000;

/// Every test that there is, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct TestSteps(BTreeMap<u32, TestCounts>);

#[derive(Debug, Clone, Default)]
struct TestCounts {
    /// Once it is known, it stays.
    group: Option<TestGroup>,
    /// End of the last bin that was counted, ns.
    until_ns: u64,
    /// What was counted before the group was known.
    waiting: TestTotals,
    has_ended: bool,
}

impl TestSteps {
    /// What is to be added to each group; tests in the order in which they began.
    pub fn advance(&mut self, metrics: &Metrics) -> Vec<(TestGroup, TestTotals)> {
        let elapsed_s = metrics.elapsed_s.unwrap_or_default();
        let mut before = std::mem::take(&mut self.0);
        let mut steps = Vec::new();
        for test in &metrics.tests {
            let mut counts = before.remove(&test.number).unwrap_or_default();
            if !counts.has_ended {
                counts.advance(test, elapsed_s);
                let is_young = metrics.at_ns.saturating_sub(test.began_ns) < NAMED_WITHIN_NS;
                let is_named = !test.metrics.benchmarks.is_empty() || !is_young || counts.has_ended;
                if is_named && counts.group.is_none() {
                    counts.group = Some(TestGroup::of(test));
                }
                if let Some(group) = &counts.group {
                    steps.push((group.clone(), std::mem::take(&mut counts.waiting)));
                }
            }
            self.0.insert(test.number, counts);
        }
        steps
    }
}

impl TestCounts {
    fn advance(&mut self, test: &Test, elapsed_s: f64) {
        self.has_ended = test.ended_ns.is_some();
        let flow = &test.metrics.flow;
        let bins = &test.metrics.timeline.bins;
        let is_new = |bin: &&Bin| bin.from_ns >= self.until_ns;
        // A link's rate is no payload.
        if !matches!(flow.basis, Some(FlowBasis::Link(_))) {
            let carried = bins.iter().filter(is_new).filter_map(|bin| Some(bin.bits_per_s? * bin.length_s()));
            self.waiting.bytes += carried.sum::<f64>() / 8.0;
        }
        self.until_ns = bins.last().map_or(self.until_ns, |bin| bin.to_ns);
        self.waiting.running = usize::from(!self.has_ended);
        self.waiting.jitter = test.metrics.jitter.filter(|_| !self.has_ended);
        if !self.has_ended {
            let sent_again = flow.connections.iter().filter(|one| !one.relayed && one.proto == Proto::Tcp);
            self.waiting.retransmits += sent_again.filter_map(|one| one.retransmits_per_s).sum::<f64>() * elapsed_s;
            self.waiting.lost += test.metrics.losses.places.iter().map(|loss| loss.packets).sum::<f64>();
        }
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
            protocol: test.metrics.flow.connections.first().map_or("", |connection| connection.proto.word()),
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
    }
}
