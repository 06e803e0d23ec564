//! The test of each socket: named after the client's process, or for a client elsewhere after its address and the server's
//! process.

use super::TestKey;
use crate::flow::join::{self, Translated};
use crate::flow::proxied::{self, ProxiedConnection};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use vnettop_sample::{Benchmark, FlowPath, FlowSample, Proto, Sample, Side, SocketKey, row_of};

/// The sockets of the newest sample.
#[derive(Debug, Clone, Default)]
pub(super) struct Sockets {
    /// The test of each socket, which stays when its other end has gone.
    tests: BTreeMap<SocketKey, TestKey>,
    /// What the tests were made from: each socket and its remote address, the benchmarks, the paths.
    ends: Vec<(SocketKey, SocketAddr)>,
    benchmarks: Arc<Vec<Benchmark>>,
    paths: Arc<Vec<FlowPath>>,
}

impl Sockets {
    /// Takes the next sample. Joining ends takes the square of their number, so it is done only where one is new.
    pub fn observe(&mut self, sample: &Sample) {
        let facts = &sample.facts;
        let ends: Vec<_> = sample.flows.iter().map(|flow| (flow.key(), flow.remote)).collect();
        let is_same = Arc::ptr_eq(&self.benchmarks, &facts.benchmarks) && Arc::ptr_eq(&self.paths, &facts.paths);
        if !is_same || self.ends != ends {
            self.tests = tests_of(sample, &self.tests);
            self.ends = ends;
            (self.benchmarks, self.paths) = (Arc::clone(&facts.benchmarks), Arc::clone(&facts.paths));
        }
        follow_relays(sample, &mut self.tests);
        follow_subflows(sample, &mut self.tests);
    }

    /// The test that a flow belongs to; `None` for a socket that listens.
    pub fn test_of(&self, flow: &FlowSample) -> Option<TestKey> {
        self.tests.get(&flow.key()).copied()
    }

    /// The sockets of each test.
    pub fn by_test(&self) -> BTreeMap<TestKey, BTreeSet<SocketKey>> {
        let mut all: BTreeMap<TestKey, BTreeSet<SocketKey>> = BTreeMap::new();
        for (&socket, &key) in &self.tests {
            all.entry(key).or_default().insert(socket);
        }
        all
    }
}

/// Whose each socket is.
fn tests_of(sample: &Sample, before: &BTreeMap<SocketKey, TestKey>) -> BTreeMap<SocketKey, TestKey> {
    let (mut tests, names) = (BTreeMap::new(), Translated::on(&sample.facts.paths));
    for proto in [Proto::Tcp, Proto::Udp] {
        let flows: Vec<&FlowSample> = sample.flows.iter().filter(|flow| flow.proto == proto).collect();
        let places = names.places(flows.iter().copied());
        let pairs = join::pairs(&places, &sample.facts.paths);
        // Among the connections of two programs one goes to the server's known port; the others may be between any two ports.
        let lowest = |of: &FlowSample, with: &FlowSample| {
            let joined = pairs.iter().filter_map(|&(one, other)| Some([flows[one], flows[other?]]));
            let ends = joined.flat_map(|[one, other]| [(one, other), (other, one)]);
            ends.filter(|(own, other)| (own.pid, other.pid) == (of.pid, with.pid))
                .map(|(own, _)| own.local.port())
                .min()
        };
        for &(one, other) in &pairs {
            let ends = || [Some(one), other].into_iter().flatten().map(|at| flows[at]);
            // A server's end alone is not known to be that of a client here.
            let is_reported = |key: &&TestKey| matches!(key, TestKey::Client(_)) || other.is_none();
            let connected = ends().filter(|flow| flow.remote.port() != 0);
            let known = connected.filter_map(|flow| before.get(&flow.key())).find(is_reported);
            let key = known
                .copied()
                .or_else(|| key(flows[one], other.map(|at| flows[at]), &sample.facts.benchmarks, &lowest));
            tests.extend(key.into_iter().flat_map(|key| ends().map(move |flow| (flow.key(), key))));
        }
    }
    tests
}

/// A connection behind a program that copies data belongs to the test whose data it carries. If several tests carried as much,
/// it belongs to the test that its server is known to serve, or to its previous test; else to none.
fn follow_relays(sample: &Sample, tests: &mut BTreeMap<SocketKey, TestKey>) {
    let seconds = proxied::seconds(&sample.flows, &sample.facts.paths);
    let firsts = |second: &ProxiedConnection, tests: &BTreeMap<SocketKey, TestKey>| -> BTreeSet<TestKey> {
        second.firsts.iter().filter_map(|(socket, _)| tests.get(socket).copied()).collect()
    };
    let mut serves: BTreeMap<u32, BTreeSet<TestKey>> = BTreeMap::new();
    for second in &seconds {
        serves
            .entry(second.pid)
            .or_default()
            .extend(firsts(second, tests).into_iter().filter(|_| second.firsts.len() == 1));
    }
    for second in seconds {
        let may = firsts(&second, tests);
        let only = |keys: &BTreeSet<TestKey>| keys.first().copied().filter(|_| keys.len() == 1);
        let before = tests.remove(&second.key);
        let alone = || {
            let flow = row_of(&sample.flows, &second.key, FlowSample::key)?;
            key(flow, None, &sample.facts.benchmarks, &|_, _| None)
        };
        let reported = || only(&may).or_else(|| only(&serves[&second.pid])).or(before).filter(|key| may.contains(key));
        let key = if may.is_empty() { alone() } else { reported() };
        tests.extend(key.map(|key| (second.key, key)));
    }
}

/// The subflows of one connection of MPTCP are of one test, whatever their addresses: that of the first.
fn follow_subflows(sample: &Sample, tests: &mut BTreeMap<SocketKey, TestKey>) {
    let mut firsts: BTreeMap<(u64, u32), TestKey> = BTreeMap::new();
    let (later, first): (Vec<_>, Vec<_>) = sample.flows.iter().partition(|flow| flow.joined);
    for flow in first.into_iter().chain(later) {
        let Some(token) = flow.mptcp else { continue };
        let Some(&own) = tests.get(&flow.key()) else { continue };
        let first = *firsts.entry((flow.netns, token)).or_insert(own);
        tests.insert(flow.key(), first);
    }
}

/// The test of a connection; `None` for a socket that listens.
fn key(
    one: &FlowSample,
    other: Option<&FlowSample>,
    benchmarks: &[Benchmark],
    lowest: &dyn Fn(&FlowSample, &FlowSample) -> Option<u16>,
) -> Option<TestKey> {
    let side = |flow: &FlowSample| row_of(benchmarks, &flow.pid, |benchmark| benchmark.pid).map(|one| one.side);
    // A server's port is no ephemeral one, which are the high ones.
    let serves = |flow: &FlowSample, faced: Option<&FlowSample>| match (side(flow), faced) {
        (Some(side), _) => side == Side::Server,
        (None, Some(faced)) if flow.pid != faced.pid && flow.remote.port() != 0 => {
            lowest(flow, faced) < lowest(faced, flow)
        }
        (None, _) => flow.remote.port() == 0 || flow.local.port() < flow.remote.port(),
    };
    match other {
        Some(other) if serves(one, Some(other)) && !serves(other, Some(one)) => Some(TestKey::Client(other.pid)),
        Some(_) => Some(TestKey::Client(one.pid)),
        None if !serves(one, None) => Some(TestKey::Client(one.pid)),
        None if one.remote.port() == 0 => None,
        None => Some(TestKey::Server(one.pid, one.remote.ip().to_canonical())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::tests::{end, of};

    fn keys(sample: &Sample) -> Vec<(u64, TestKey)> {
        tests_of(sample, &BTreeMap::new()).into_iter().map(|(socket, key)| (socket.cookie, key)).collect()
    }

    #[test]
    fn a_test_is_its_clients_and_a_server_of_two_is_told_apart_by_its_connections() {
        let flows = vec![
            end(1, 50, "10.0.0.1:40000", "10.0.0.9:5201"),
            end(2, 90, "10.0.0.9:5201", "10.0.0.1:40000"),
            end(3, 60, "10.0.0.2:40000", "10.0.0.9:5201"),
            end(4, 90, "10.0.0.9:5201", "10.0.0.2:40000"),
        ];
        let (one, other) = (TestKey::Client(50), TestKey::Client(60));
        let reported = [(1, one), (2, one), (3, other), (4, other)];
        assert_eq!(keys(&of(flows.clone(), &[])), reported, "by their ports");
        let sides = [(50, Side::Client), (60, Side::Client), (90, Side::Server)];
        assert_eq!(keys(&of(flows, &sides)), reported, "by their command lines");
        // A port that looks like a client's.
        let flows = vec![end(1, 50, "10.0.0.1:400", "10.0.0.9:50000"), end(2, 90, "10.0.0.9:50000", "10.0.0.1:400")];
        assert_eq!(keys(&of(flows, &sides)), [(1, one), (2, one)], "who is a known benchmark says itself what it is");
    }

    #[test]
    fn tests_in_namespaces_that_count_their_own_cookies_stay_apart() {
        // Each namespace's first socket, before Linux 5.4.
        let flows = vec![
            end(1, 50, "10.0.0.1:40000", "10.0.0.9:5201"),
            end(1, 60, "10.0.0.2:40000", "10.0.0.8:5201"),
            end(1, 80, "10.0.0.8:5201", "10.0.0.2:40000"),
            end(1, 90, "10.0.0.9:5201", "10.0.0.1:40000"),
        ];
        let mut sockets = Sockets::default();
        sockets.observe(&of(flows, &[]));
        let reported =
            sockets.by_test().into_iter().map(|(key, own)| (key, own.into_iter().map(|one| one.netns).collect()));
        let reported: Vec<(TestKey, Vec<u64>)> = reported.collect();
        assert_eq!(
            reported,
            [(TestKey::Client(50), vec![50, 90]), (TestKey::Client(60), vec![60, 80])],
            "two of two ends"
        );
    }

    #[test]
    fn a_data_connection_between_any_two_ports_is_of_whoever_asked_for_it() {
        for (clients, servers) in [("10.0.0.1:50000", "10.0.0.9:40000"), ("10.0.0.1:40000", "10.0.0.9:50000")] {
            let flows = vec![
                end(1, 50, clients, servers),
                end(2, 90, servers, clients),
                end(3, 50, "10.0.0.1:45000", "10.0.0.9:12865"),
                end(4, 90, "10.0.0.9:12865", "10.0.0.1:45000"),
            ];
            let one = TestKey::Client(50);
            assert_eq!(keys(&of(flows, &[])), [(1, one), (2, one), (3, one), (4, one)], "netperf's, {clients}");
        }
    }

    #[test]
    fn a_client_elsewhere_is_known_by_its_address() {
        let flows = vec![
            end(1, 90, "10.0.0.9:5201", "10.0.0.1:40000"),
            end(2, 90, "10.0.0.9:5201", "10.0.0.1:40002"),
            end(3, 90, "10.0.0.9:5201", "10.0.0.2:40000"),
            end(4, 50, "10.0.0.1:40004", "10.0.7.7:5201"),
        ];
        let of_address = |address: &str| TestKey::Server(90, address.parse().expect("an address"));
        let (one, other) = (of_address("10.0.0.1"), of_address("10.0.0.2"));
        assert_eq!(keys(&of(flows, &[])), [(1, one), (2, one), (3, other), (4, TestKey::Client(50))], "or its process");
    }

    #[test]
    fn the_subflows_of_one_connection_are_of_one_test_whatever_their_addresses() {
        let of_token = |flow: FlowSample, token| FlowSample { mptcp: Some(token), ..flow };
        let flows = vec![
            of_token(end(1, 90, "10.0.0.9:5201", "10.0.0.1:40000"), 7),
            of_token(end(2, 90, "10.0.1.9:5201", "10.0.1.1:40001"), 7),
            of_token(end(3, 90, "10.0.0.9:5201", "10.0.2.1:40002"), 8),
        ];
        let mut sockets = Sockets::default();
        sockets.observe(&of(flows, &[]));
        let cookies = sockets.by_test().into_values().map(|own| own.into_iter().map(|one| one.cookie).collect());
        let cookies: Vec<Vec<u64>> = cookies.collect();
        assert_eq!(cookies, [vec![1, 2], vec![3]], "a client elsewhere with two addresses, and another one");
    }

    #[test]
    fn who_waits_for_anybody_has_no_test_and_a_socket_stays_whose_it_was() {
        let waits = FlowSample { proto: Proto::Udp, ..end(1, 90, "0.0.0.0:5201", "0.0.0.0:0") };
        assert_eq!(keys(&of(vec![waits], &[])), [], "a server without a client");
        let alone = of(vec![end(2, 90, "10.0.0.9:5201", "10.0.0.1:40000")], &[]);
        let socket = alone.flows[0].key();
        let before = BTreeMap::from([(socket, TestKey::Client(50))]);
        assert_eq!(tests_of(&alone, &before)[&socket], TestKey::Client(50), "its client's end has gone already");
    }
}
