//! Whose is whose, on made-up samples.

use super::*;
use crate::finding::tests::sample;
use crate::placement::tests::machine::Machine;
use vnettop_sample::{FlowProgress, Program, ProtocolCounters, Side, ThreadId};

const NOBODY: &str = "0.0.0.0:0";

/// A connection's end: its process, which is its namespace too, and how many bytes it has received.
fn tcp(pid: u32, local: &str, remote: &str, received: u64) -> FlowSample {
    let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
    let cookie = u64::from(pid) * 100_000 + u64::from(address(local).port()) * 7 + u64::from(address(remote).port());
    let plain = FlowSample::new(cookie, (u64::from(pid), pid), (address(local), address(remote)));
    FlowSample { pulses: vec![FlowProgress { at_ns: 5_000_000_000, acked: 0, received }], ..plain }
}

fn udp(pid: u32, local: &str, remote: &str) -> FlowSample {
    FlowSample { proto: Proto::Udp, pulses: Vec::new(), ..tcp(pid, local, remote, 0) }
}

/// A thread for each process that holds a socket; processes from 50 on are iperf3's.
fn of(family: Option<&[u32]>, flows: Vec<FlowSample>) -> Sample {
    let mut of = sample(&Machine::small(2).pair(0, 1).metrics());
    let plain = of.threads[0].clone();
    let pids: BTreeSet<u32> = flows.iter().map(|flow| flow.pid).chain(family.into_iter().flatten().copied()).collect();
    let id = |pid| ThreadId { pid, tid: pid, start: 1 };
    of.threads = pids.iter().map(|&pid| vnettop_sample::ThreadSample { id: id(pid), ..plain.clone() }).collect();
    let test = |&pid: &u32| Benchmark::new(pid, Program::Iperf3, Side::Client, 5201);
    of.facts_mut().benchmarks = Arc::new(pids.iter().filter(|&&pid| pid >= 50).map(test).collect());
    of.protocols =
        pids.iter().map(|&pid| ProtocolCounters { netns: pid.into(), ..ProtocolCounters::default() }).collect();
    of.facts_mut().family = family.map(|family| Arc::new(family.to_vec()));
    of.flows = flows;
    of.flows.sort_by_key(FlowSample::key);
    of
}

fn pids(sample: &Sample) -> (Vec<u32>, Vec<u32>) {
    let mut flows: Vec<u32> = sample.flows.iter().map(|flow| flow.pid).collect();
    flows.sort_unstable();
    (sample.threads.iter().map(|thread| thread.id.pid).collect(), flows)
}

const MUCH: u64 = 1 << 30;

/// A test of 50 with 60, and one of 70 with 80 that uses the same addresses elsewhere.
fn two_tests() -> Vec<FlowSample> {
    vec![
        tcp(50, "10.0.0.1:4000", "10.0.0.2:5201", 0),
        tcp(60, "10.0.0.2:5201", "10.0.0.1:4000", MUCH),
        tcp(70, "10.0.0.1:4001", "10.0.0.2:5201", 0),
        tcp(80, "10.0.0.2:5201", "10.0.0.1:4001", MUCH),
    ]
}

#[test]
fn the_commands_client_and_its_server_belong_and_the_test_beside_does_not() {
    let (mut scope, mut seen) = (Scope::default(), of(Some(&[49, 50]), two_tests()));
    let beside = scope.narrow(&mut seen);
    assert_eq!(pids(&seen), (vec![49, 50, 60], vec![50, 60]), "the shell, its iperf3 and the server that it calls");
    assert!(scope.has_benchmark && beside.flows && scope.shared.is_none());
    let spaces: Vec<u64> = seen.protocols.iter().map(|one| one.netns).collect();
    assert_eq!(spaces, [50, 60], "what other namespaces lose is somebody else's");
    assert_eq!(seen.facts.benchmarks.iter().map(|one| one.pid).collect::<Vec<_>>(), [50, 60]);
}

#[test]
fn before_the_commands_processes_are_known_nothing_belongs() {
    for family in [None, Some(&[][..])] {
        let (mut scope, mut seen) = (Scope::default(), of(family, two_tests()));
        scope.narrow(&mut seen);
        assert_eq!((pids(&seen), scope.has_benchmark), ((vec![], vec![]), false), "nobody is guessed");
    }
}

#[test]
fn an_iperf3_of_the_commands_that_connects_to_nothing_is_its_benchmark_all_the_same() {
    let others = two_tests().split_off(2);
    let (mut scope, mut seen) = (Scope::default(), of(Some(&[49, 50]), others));
    scope.narrow(&mut seen);
    assert_eq!((pids(&seen), scope.has_benchmark), ((vec![49, 50], vec![]), true), "the test beside is not measured");
}

#[test]
fn a_connection_that_only_brings_the_output_of_a_benchmark_is_none() {
    // 7 is ssh, 60 the server of the test that it has run elsewhere.
    let with = |bytes| {
        let flows =
            vec![tcp(7, "10.0.0.1:4000", "10.0.0.9:22", bytes), tcp(60, "10.0.0.2:5201", "10.0.0.9:4000", MUCH)];
        let (mut scope, mut seen) = (Scope::default(), of(Some(&[7]), flows));
        scope.narrow(&mut seen);
        scope.has_benchmark
    };
    assert!(!with(100 * 1024), "some pages of text");
    assert!(with(DRIVES), "any program that moves so much is measured itself");
}

#[test]
fn a_server_of_two_counts_by_its_connections_and_its_threads_are_nobodys() {
    let mut flows = two_tests();
    flows[3] = tcp(60, "10.0.0.2:5201", "10.0.0.1:4001", MUCH);
    let (mut scope, mut seen) = (Scope::default(), of(Some(&[50]), flows.clone()));
    scope.narrow(&mut seen);
    assert_eq!(pids(&seen), (vec![50], vec![50, 60]), "its connection with the command's client alone");
    assert_eq!(scope.shared, Some(60), "and it is told");
    flows[3] = tcp(60, "10.0.0.2:5201", "10.0.0.1:4001", 400);
    let (mut scope, mut seen) = (Scope::default(), of(Some(&[50]), flows));
    scope.narrow(&mut seen);
    assert_eq!((pids(&seen).0, scope.shared), (vec![50, 60], None), "one that it refuses changes nothing");
}

#[test]
fn a_server_that_is_no_known_benchmark_is_the_commands_alone_or_nobodys() {
    // 5 and 6 are programs that nobody knows by name; 7 is connected with 6 too.
    let pair = || vec![tcp(5, "10.0.0.1:4000", "10.0.0.2:99", 0), tcp(6, "10.0.0.2:99", "10.0.0.1:4000", MUCH)];
    let mut scope = Scope::default();
    let mut seen = of(Some(&[5]), pair());
    scope.narrow(&mut seen);
    assert_eq!((pids(&seen), scope.shared), ((vec![5, 6], vec![5, 6]), None), "its server belongs");
    let stranger = || [pair(), vec![tcp(6, "10.0.0.2:99", "10.0.7.7:4001", 100)]].concat();
    for (threads, why) in [(vec![5, 6], "an end that was just seen may be the command's"), (vec![5], "it is not")] {
        let mut seen = of(Some(&[5]), stranger());
        scope.narrow(&mut seen);
        assert_eq!(pids(&seen), (threads, vec![5, 6]), "{why}");
    }
    assert_eq!(scope.shared, Some(6), "and it is told");
    let mut seen = of(Some(&[5]), pair());
    scope.narrow(&mut seen);
    assert_eq!(pids(&seen).0, [5], "who has served others may do so again");
}

#[test]
fn a_test_that_asks_and_answers_and_one_of_datagrams_are_the_commands() {
    let mut scope = Scope::default();
    let mut asks = |second: u64, bytes| {
        let mut flow = tcp(7, "10.0.0.1:4000", "10.0.0.9:99", bytes);
        flow.pulses[0].at_ns = second * 1_000_000_000;
        scope.narrow(&mut of(Some(&[7]), vec![flow]));
        scope.has_benchmark
    };
    assert!(!asks(1, 1000) && !asks(2, 16_000), "a little at first, as of anybody");
    assert!(asks(3, 40_000), "20,000 bytes a second, and more");
    let mut scope = Scope::default();
    let mut sends = |datagrams| {
        let mut seen = of(Some(&[7]), vec![udp(7, "10.0.0.1:4000", NOBODY)]);
        seen.protocols[0].udp_out_datagrams = datagrams;
        scope.narrow(&mut seen);
        scope.has_benchmark
    };
    assert!(!sends(1_000_000) && !sends(1_000_010), "what was sent before it was there is not its, and a few are none");
    assert!(sends(1_001_000), "a thousand");
}

#[test]
fn a_connection_stays_the_commands_when_one_of_its_ends_is_gone() {
    let mut scope = Scope::default();
    scope.narrow(&mut of(Some(&[50]), two_tests()));
    let mut seen = of(Some(&[]), two_tests().split_off(1));
    scope.narrow(&mut seen);
    assert_eq!(pids(&seen).1, [60], "the server has not heard of the end yet");
}

#[test]
fn datagrams_of_others_in_the_same_namespace_are_told() {
    let mut other = udp(70, "10.0.0.1:4001", "10.0.0.2:5202");
    other.netns = 50;
    let listens = udp(80, "10.0.0.3:5203", NOBODY);
    let (mut scope, mut seen) =
        (Scope::default(), of(Some(&[50]), vec![udp(50, "10.0.0.1:4000", "10.0.0.2:5201"), other, listens]));
    let beside = scope.narrow(&mut seen);
    assert_eq!(pids(&seen).1, [50], "the command's own");
    assert_eq!(beside.datagrams, BTreeSet::from([50]), "one that only listens sends nothing");
}

#[test]
fn one_socket_that_answers_several_is_known_to_each_and_its_figures_to_none() {
    let server = FlowSample { udp: Some(vnettop_sample::UdpState::default()), ..udp(80, "[::]:4433", "[::]:0") };
    let clients = [udp(50, "10.0.0.1:4000", "10.0.0.9:4433"), udp(70, "10.0.0.2:4000", "10.0.0.9:4433")];
    let flows: Vec<FlowSample> = clients.iter().cloned().chain([server.clone()]).collect();
    let (mut scope, mut seen) = (Scope::default(), of(Some(&[50]), flows));
    let beside = scope.narrow(&mut seen);
    assert_eq!(pids(&seen), (vec![50], vec![50, 80]), "who answers is known, and does so for others too");
    assert_eq!(scope.shared, Some(80), "which is told");
    let known = seen.flows.iter().find(|flow| flow.pid == 80).expect("the server");
    assert_eq!(known.udp, None, "what it has read is not the command's");
    assert_eq!((beside.servers, beside.datagrams), (BTreeSet::from([server.key()]), BTreeSet::from([70, 80])));
    let (mut scope, mut seen) = (Scope::default(), of(Some(&[50]), vec![clients[0].clone(), server.clone()]));
    let beside = scope.narrow(&mut seen);
    assert_eq!(beside.servers, BTreeSet::new(), "of one client it is the other end");
    assert!(seen.flows.iter().all(|flow| flow.pid != 80 || flow.udp.is_some()), "with all its figures");
}
