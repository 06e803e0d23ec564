//! The tests: what one client process does with its server, each derived by itself from what of a sample is its own. Two that
//! run at once are two, one that starts after another is a new one with a window of its own, and one that has ended keeps
//! its last figures.

mod losing;
mod running;
mod sockets;

use super::conclusions::Conclusions;
use super::finding::Finding;
use super::flow::{Connection, End};
use super::history::History;
use super::machine::MachineMetrics;
use super::scope::{is_busy, moved, waiting};
use super::test_metrics::TestMetrics;
use super::threads::ThreadMetrics;
use super::workers::Worker;
use super::{benchmarks, paths};
use running::Running;
use sockets::Sockets;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use vnettop_sample::{Benchmark, FlowSample, Proto, Sample, Word, row_of};

pub use losing::{LOSING, losing, most_losing};

/// Tests that have ended and are kept.
pub const MOST_ENDED: usize = 20;
/// Tests at once that are derived: what every one takes of a tick adds up.
const MOST_RUNNING: usize = 64;

/// Whose test it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TestKey {
    /// The test of a client process on this machine.
    Client(u32),
    /// The test of a client elsewhere, by its address, with a server process on this machine.
    Server(u32, IpAddr),
}

impl TestKey {
    /// Processes that belong to the test whatever they are connected with.
    fn processes(self) -> Vec<u32> {
        match self {
            Self::Client(pid) => vec![pid],
            Self::Server(..) => Vec::new(),
        }
    }
}

/// One test, as of the newest sample or, where it has ended, as of its last one.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// 1 is the first since vnettop started.
    pub number: u32,
    /// Whose it is.
    pub key: TestKey,
    /// The sample that had its first data, `CLOCK_MONOTONIC`, ns.
    pub began_ns: u64,
    /// The first sample without any connection of it, ns; none while it runs.
    pub ended_ns: Option<u64>,
    /// Its mean rate; none before there is one, and where it is not known.
    pub mean: Option<TestMean>,
    /// The client's and the server's end, as they were last told apart.
    pub ends_seen: Option<[End; 2]>,
    /// Packets that it has lost.
    pub lost: f64,
    /// What was found of it when it ended; empty while it runs.
    pub last_findings: Arc<Vec<Finding>>,
    /// What is measured of it: its connections, threads, losses, jitter, card. Of one that has ended, as it was last.
    pub metrics: Arc<TestMetrics>,
    /// What is concluded of it; nothing of one that has ended.
    pub conclusions: Arc<Conclusions>,
}

/// The ends as of now, or as before when they cannot be told apart any more; the process at an end stays known when its socket
/// has gone.
fn ends_kept(before: Option<[End; 2]>, now: Option<[End; 2]>) -> Option<[End; 2]> {
    let (Some(before), Some(now)) = (before, now) else { return now.or(before) };
    let kept = |end: usize| {
        let has_gone = now[end].pid.is_none() && before[end].address.ip() == now[end].address.ip();
        if has_gone { before[end] } else { now[end] }
    };
    Some([kept(0), kept(1)])
}

/// The mean payload of a test over the bins that are known: where it began or ended within one, that one is not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestMean {
    /// The rate.
    pub bits_per_s: f64,
    /// Where the first of these bins begins and the last one ends, `CLOCK_MONOTONIC`, ns; at most ten minutes.
    pub from_ns: u64,
    /// The end.
    pub to_ns: u64,
    /// How long they are together, s.
    pub known_s: f64,
}

/// Every test there is.
#[derive(Debug, Clone, Default)]
pub(super) struct Tests {
    running: BTreeMap<TestKey, Running>,
    /// Oldest first.
    ended: Vec<Arc<Test>>,
    sockets: Sockets,
    last_number: u32,
    /// The test that is shown when none is chosen, by number: the busiest that ran when the previous leading test ended.
    leading: Option<u32>,
}

/// Its last bin may end that much before a sample that lies within it, ns.
const LAG_NS: u64 = 200_000_000;

impl Test {
    /// It sent from the one instant to the other: what is measured in a sample between them is all of it.
    #[must_use]
    pub fn covers(&self, from_ns: u64, to_ns: u64) -> bool {
        let known = self.metrics.timeline.bins.iter().rev().find(|bin| bin.bits_per_s.is_some());
        let has_stopped = known.is_some_and(|bin| bin.to_ns.saturating_add(LAG_NS.max(bin.length_ns())) < to_ns);
        self.ended_ns.is_none() && self.began_ns <= from_ns && !has_stopped
    }

    /// The threads that work for it now; none where it has ended.
    /// Its threads between the ends; none of a test that has ended.
    pub(super) fn workers(&self) -> &[Worker] {
        if self.ended_ns.is_none() { &self.metrics.workers } else { &[] }
    }

    pub(super) fn threads(&self) -> &[ThreadMetrics] {
        if self.ended_ns.is_none() { &self.metrics.threads } else { &[] }
    }

    /// The client's and the server's end, as a connection has them; none before there is one.
    #[must_use]
    pub fn ends(&self) -> [Option<End>; 2] {
        match self.ends_seen.or_else(|| ends(self.key, &self.metrics.flow.connections, false)) {
            Some([client, server]) => [Some(client), Some(server)],
            None => [None, None],
        }
    }
}

/// The client's and the server's end among these connections. With `certainly` only while the process that the test is named after
/// is seen to hold one: the sockets of one end may be gone before those of the other.
fn ends(key: TestKey, connections: &[Connection], certainly: bool) -> Option<[End; 2]> {
    let pid = match key {
        TestKey::Client(pid) | TestKey::Server(pid, _) => pid,
    };
    let is_own = |end: &End| end.pid == Some(pid);
    let is_clients = |end: &End| is_own(end) == matches!(key, TestKey::Client(_));
    let has_own = |one: &&Connection| is_own(&one.from) || is_own(&one.to);
    let plain = || connections.iter().filter(|one| !one.relayed);
    let likely = || plain().next().or(connections.first()).filter(|_| !certainly);
    let first = plain().find(has_own).or_else(likely)?;
    let (client, server) = if is_clients(&first.from) { (first.from, first.to) } else { (first.to, first.from) };
    // Behind a relay is who serves indeed.
    let behind = connections.iter().filter(|connection| connection.relayed).flat_map(|one| [one.from, one.to]);
    let mut behind = behind.filter(|end| end.pid.is_some() && !is_clients(end));
    Some([client, behind.next().filter(|_| server.pid.is_none()).unwrap_or(server)])
}

#[cfg(test)]
impl Test {
    /// A test that has run since the start, of which nothing else is known.
    pub(crate) fn running(number: u32, key: TestKey, metrics: Arc<TestMetrics>, conclusions: Arc<Conclusions>) -> Self {
        let (ended_ns, mean, ends_seen, last_findings) = (None, None, None, Arc::default());
        Self { number, key, began_ns: 0, ended_ns, mean, ends_seen, lost: 0.0, last_findings, metrics, conclusions }
    }
}

impl Test {
    /// What it is: in the program's own words, else its two ends.
    #[must_use]
    pub fn words(&self) -> String {
        let relay = self.metrics.flow.copied().and_then(|connection| paths::holder(&self.metrics, connection.relay?));
        let through = relay.map_or_else(String::new, |relay| format!(" through {}", relay.name));
        if let Some(words) = benchmarks::words(&self.metrics.benchmarks) {
            return words + &through;
        }
        let end = |end: &Option<End>| end.map_or_else(|| "–".to_owned(), |end| end.address.to_string());
        let [client, server] = self.ends();
        let proto = self.metrics.flow.connections.first().map_or("", |connection| connection.proto().word());
        format!("{} → {} {}{through}", end(&client), end(&server), proto.to_uppercase())
    }
}

impl Tests {
    /// Takes the next sample; `machine` is what the first stage has derived of it. The tests, by number, and the one that is
    /// shown where nobody has chosen.
    pub fn observe(
        &mut self,
        previous: Option<&Sample>,
        next: &Sample,
        machine: &Arc<MachineMetrics>,
        history: &History,
    ) -> (Vec<Arc<Test>>, Option<Arc<Test>>) {
        let Some(previous) = previous.filter(|previous| previous.at_ns < next.at_ns) else {
            // Another stream.
            *self = Self::default();
            self.sockets.observe(next);
            return (Vec::new(), None);
        };
        self.sockets.observe(next);
        let mut own = self.sockets.by_test();
        // A remote client that connects again has another test; a client process here that connects again goes on with its own.
        let again = |key: &TestKey, test: &mut Running| {
            matches!(key, TestKey::Server(..)) && test.ended_ns.is_some() && own.contains_key(key)
        };
        let mut over: Vec<_> = self.running.extract_if(.., again).collect();
        let driving = next.flows.iter().filter(|flow| drives(flow, previous, &next.facts.benchmarks));
        for key in driving.filter_map(|flow| self.sockets.test_of(flow)) {
            if self.running.len() < MOST_RUNNING {
                self.running.entry(key).or_default();
            }
        }
        for (key, test) in &mut self.running {
            test.observe(*key, own.remove(key).unwrap_or_default(), previous, next, machine, history);
        }
        let mut begun: Vec<&mut Running> = self.running.values_mut().filter(|test| test.begins()).collect();
        for test in &mut begun {
            self.last_number += 1;
            (test.number, test.began_ns) = (Some(self.last_number), next.at_ns);
        }
        over.extend(self.running.extract_if(.., |_, test| test.is_over(next.at_ns)));
        self.ended.extend(over.into_iter().filter_map(|(key, test)| test.kept(key)));
        self.ended.sort_by_key(|test| test.number);
        self.ended.drain(..self.ended.len().saturating_sub(MOST_ENDED));
        let shown: Vec<Arc<Test>> = self.running.iter().filter_map(|(key, test)| test.shown(*key)).collect();
        self.lead(&shown);
        let mut all: Vec<Arc<Test>> = shown.iter().chain(&self.ended).cloned().collect();
        all.sort_by_key(|test| test.number);
        (all, shown.into_iter().find(|test| Some(test.number) == self.leading))
    }

    fn lead(&mut self, shown: &[Arc<Test>]) {
        let rate = |test: &Test| test.metrics.flow.bits_per_s.unwrap_or(0.0);
        let running = || shown.iter().filter(|test| test.ended_ns.is_none());
        let busiest = running().max_by(|one, other| rate(one).total_cmp(&rate(other)));
        let is_idle = busiest.is_none_or(|test| rate(test) == 0.0);
        if !running().any(|test| Some(test.number) == self.leading && (is_idle || rate(test) > 0.0)) {
            self.leading = busiest.map(|test| test.number);
        }
    }
}

/// It may be a test's: of a known benchmark, or no connection that only stands there.
fn drives(flow: &FlowSample, previous: &Sample, benchmarks: &[Benchmark]) -> bool {
    let before = row_of(&previous.flows, &flow.key(), FlowSample::key);
    let moves = |before: &FlowSample| moved(before) < moved(flow);
    // Something to send, and nothing leaves: something holds the sender back.
    let is_held = before.is_some_and(|before| waiting(flow) > 0 && !moves(before)) || flow.connecting;
    row_of(benchmarks, &flow.pid, |benchmark| benchmark.pid).is_some()
        || (is_busy(flow) && (flow.proto == Proto::Udp || before.is_none_or(moves)))
        || is_held
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::finding::tests::sample;
    use crate::placement::tests::machine::Machine;
    use vnettop_sample::{FlowProgress, Program, Side};

    pub(super) fn end(cookie: u64, pid: u32, local: &str, remote: &str) -> FlowSample {
        let address = |text: &str| text.parse().expect("an address");
        FlowSample::new(cookie, (u64::from(pid), pid), (address(local), address(remote)))
    }

    pub(super) fn of(flows: Vec<FlowSample>, sides: &[(u32, Side)]) -> Sample {
        let mut of = Sample { flows, ..sample(&Machine::small(2).pair(0, 1).metrics()) };
        let benchmark = |&(pid, side)| Benchmark::new(pid, Program::Iperf3, side, 5201);
        of.facts_mut().benchmarks = Arc::new(sides.iter().map(benchmark).collect());
        of
    }

    /// What is told at each of these instants, a second apart, while these flows are there: number, and whether it has ended.
    fn reported(flows: &[Vec<FlowSample>]) -> Vec<Vec<(u32, bool)>> {
        let machine = Machine::small(2).pair(0, 1).metrics().machine;
        let mut tests = Tests::default();
        let mut before: Option<Sample> = None;
        let mut all = Vec::new();
        for (second, flows) in (10..).zip(flows) {
            let at_ns = second * 1_000_000_000;
            let carried = |flow: &FlowSample| FlowSample {
                pulses: vec![FlowProgress { at_ns, acked: second << 20, received: second << 20 }],
                ..flow.clone()
            };
            let next = Sample { at_ns, ..of(flows.iter().map(carried).collect(), &[]) };
            let (reported, _) = tests.observe(before.as_ref(), &next, &machine, &History::default());
            all.push(reported.iter().map(|test| (test.number, test.ended_ns.is_some())).collect());
            before = Some(next);
        }
        all
    }

    #[test]
    fn the_ends_are_told_apart_by_who_holds_them_and_not_by_who_is_left() {
        let end = |pid: Option<u32>, port| {
            let address = std::net::SocketAddr::from(([198, 18, 0, 1], port));
            End { netns: pid.map(u64::from), address, pid }
        };
        let of = |key, from, to| {
            let connections = [Connection::between(end(from, 45000), end(to, 5201))];
            ends(key, &connections, true).map(|ends| ends.map(|end| end.address.port()))
        };
        let client = TestKey::Client(7);
        for to in [Some(9), None] {
            assert_eq!(of(client, Some(7), to), Some([45000, 5201]), "the client sends");
        }
        let connections = [Connection::between(end(Some(9), 5201), end(Some(7), 45000))];
        let reported = ends(client, &connections, true).expect("told").map(|end| end.address.port());
        assert_eq!(reported, [45000, 5201], "the server sends");
        assert_eq!(of(client, None, Some(9)), None, "the client's socket is gone: as it was before");
        let server = TestKey::Server(9, [198, 18, 0, 1].into());
        assert_eq!(of(server, None, Some(9)), Some([45000, 5201]), "a client elsewhere");
        assert_eq!(of(server, None, None), None, "the server's socket is gone");
        let pids = |before: [Option<u32>; 2], now: [Option<u32>; 2]| {
            let both = |pids: [Option<u32>; 2]| Some([end(pids[0], 45000), end(pids[1], 5201)]);
            ends_kept(both(before), both(now)).expect("told").map(|end| end.pid)
        };
        assert_eq!(pids([Some(7), Some(9)], [None, Some(9)]), [Some(7), Some(9)], "who it was stays known");
        assert_eq!(pids([None, Some(9)], [Some(7), Some(9)]), [Some(7), Some(9)], "and may be found later");
    }

    #[test]
    fn who_comes_again_has_another_test_but_for_a_process_that_goes_on() {
        let server = |cookie| vec![end(cookie, 90, "10.0.0.9:5201", "10.0.0.1:40000")];
        let seen = reported(&[vec![], server(1), vec![], server(2), vec![], vec![], vec![]]);
        assert_eq!(seen[1], [(1, false)], "it has its first data");
        assert_eq!(seen[2], [(1, true)], "it has ended");
        assert_eq!(seen[3], [(1, true), (2, false)], "the same client again");
        assert_eq!(seen[6], [(1, true), (2, true)], "both are kept");
        let client = |cookie| vec![end(cookie, 50, "10.0.0.1:40000", "10.0.0.9:80")];
        let seen = reported(&[vec![], client(1), vec![], client(2)]);
        assert_eq!((&*seen[2], &*seen[3]), (&[(1, true)][..], &[(1, false)][..]), "one connection after another");
    }

    #[test]
    fn thousands_of_idle_connections_are_no_tests() {
        let idle = |at: u16| {
            let remote = format!("10.1.{}.{}:40000", at / 250, at % 250);
            FlowSample { pulses: Vec::new(), ..end(u64::from(at), 90, "10.0.0.9:80", &remote) }
        };
        let flows: Vec<FlowSample> = (0..2_000).map(idle).collect();
        let (mut tests, machine) = (Tests::default(), Machine::small(2).metrics().machine);
        let [one, two] = [1, 2].map(|at_ns| Sample { at_ns, ..of(flows.clone(), &[]) });
        tests.observe(None, &one, &machine, &History::default());
        let (reported, _) = tests.observe(Some(&one), &two, &machine, &History::default());
        assert!(reported.is_empty(), "nobody drives any");
        assert!(tests.running.is_empty(), "and nothing is derived of them");
    }
}
