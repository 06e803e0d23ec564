//! A core that is full with packets beside who else runs there while another one idles: what is said of it, and what is not.

use super::cores::flowing;
use super::*;
use crate::flow::{DisorderRates, UdpFigures};
use crate::placement::{self, Proposal};
use vnettop_sample::{CoreId, CoreSet, Steering};

/// What each core does: user, system, softirq; it idles for the rest.
fn doing(mut metrics: TestMetrics, cores: &[(CoreId, [f64; 3])]) -> TestMetrics {
    for core in &mut metrics.machine_mut().cores {
        let all = cores.iter().find(|(number, _)| *number == core.place.core).map_or([0.0; 3], |(_, all)| *all);
        let shares = core.load.as_mut().and_then(|load| load.shares.as_mut()).expect("known");
        (shares.user, shares.system, shares.softirq) = (all[0], all[1], all[2]);
        (shares.irq, shares.idle) = (0.0, 1.0 - all.iter().sum::<f64>());
    }
    metrics.flow.connections[0].carries = true;
    metrics
}

const FULL: [f64; 3] = [0.1, 0.64, 0.26];

/// Both ends on core 1, which is full, with the settings of all links.
fn crowded(change: impl FnOnce(&mut Vec<Steering>)) -> TestMetrics {
    doing(flowing(4, 1, 1, change), &[(1, FULL)])
}

/// The ends may run nowhere else.
fn bound(mut metrics: TestMetrics) -> TestMetrics {
    let threads = Arc::make_mut(&mut metrics.machine_mut().threads);
    for thread in threads.iter_mut() {
        thread.sample.allowed = Some(CoreSet::single(thread.sample.core));
    }
    metrics.threads = Arc::clone(&metrics.machine.threads);
    metrics
}

fn key(metrics: &TestMetrics, id: &str) -> Option<char> {
    findings(metrics).into_iter().find(|finding| finding.id.word() == id).and_then(|finding| finding.key)
}

fn proposed(metrics: &TestMetrics) -> Proposal {
    placement::with_steers(metrics, placement::propose(metrics)).expect("something is proposed")
}

const NOTHING: &str = "no finding 'spare_core'";

#[test]
fn a_full_core_beside_an_idle_one_is_named_with_the_line_that_moves_packets() {
    let metrics = bound(crowded(|_| ()));
    let expected = "core 1 is full (64 % system, 26 % softirq) with the test's packets and both of its ends; core 0 is \
                    idle: packets from x0 (c1) could go there (ip netns exec c1 sh -c 'echo 1 | tee \
                    /sys/class/net/x0/queues/rx-*/rps_cpus'); only a measurement shows it (vnettop run --steer search)";
    assert_eq!(said(&metrics, "spare_core"), expected);
    let found = findings(&metrics).into_iter().find(|finding| finding.id.word() == "spare_core").expect("there");
    let numbers = [("core", 1.0), ("system", 0.64), ("softirq", 0.26), ("idle_core", 0.0)];
    assert_eq!((found.numbers, found.key), (numbers.to_vec(), Some('p')));
    let Proposal { steps, steers, reasons, .. } = proposed(&metrics);
    let [steer] = &steers[..] else { panic!("one line for the one link: {steers:?}") };
    assert_eq!((steps.len(), steer.is_on, steer.request.value.to_text()), (0, false, "1".to_owned()));
    assert_eq!(steer.reason, "core 0 is idle; only a measurement shows whether it helps");
    assert_eq!(reasons.len(), 1, "why nothing is pinned: {reasons:?}");
}

#[test]
fn datagrams_are_compared_and_who_is_there_is_said() {
    let mut udp = doing(flowing(4, 1, 2, |_| ()), &[(1, FULL), (2, [0.1, 0.7, 0.1]), (3, [0.5, 0.0, 0.0])]);
    Arc::make_mut(&mut udp.paths)[0].proto = Proto::Udp;
    udp.flow.connections[0].speaks = Speaks::Udp(UdpFigures::default());
    let text = said(&udp, "spare_core");
    assert!(text.contains("with the test's packets and its sender; core 0 is idle: packets from x0"), "{text}");
    assert!(text.ends_with("(vnettop run --steer compare)"), "{text}");
}

#[test]
fn nothing_is_said_without_a_full_core_an_idle_one_or_a_choice() {
    let quiet = |metrics: TestMetrics, why: &str| assert_eq!(said(&metrics, "spare_core"), NOTHING, "{why}");
    let both = |one: [f64; 3], others: [f64; 3]| {
        doing(flowing(4, 1, 1, |_| ()), &[(0, others), (1, one), (2, others), (3, others)])
    };
    quiet(doing(flowing(4, 1, 1, |_| ()), &[(1, [0.02, 0.1, 0.05])]), "the machine idles");
    quiet(both(FULL, [0.5, 0.2, 0.0]), "no core idles");
    quiet(both([0.5, 0.24, 0.26], [0.0; 3]), "a program computes there");
    quiet(both([0.05, 0.9, 0.05], [0.0; 3]), "packets take little of it");
    quiet(crowded(|all| all[1].rps = vec!["3".parse().expect("a core")]), "RPS puts them elsewhere");
    let elsewhere = doing(flowing(2, 1, 0, |_| ()), &[(1, FULL), (0, [0.0, 0.05, 0.0])]);
    quiet(elsewhere, "the only idle core is the receiver's");
    let mut isolated = doing(flowing(2, 1, 1, |_| ()), &[(1, FULL)]);
    let topology = &mut Arc::make_mut(&mut isolated.machine_mut().facts).topology;
    Arc::make_mut(topology).isolated = CoreSet::single(0);
    quiet(isolated, "the kernel refuses it");
    let mut away = crowded(|_| ());
    away.flow.connections[0].from.pid = None;
    quiet(away, "where its packets are handled is not known");
}

#[test]
fn packets_out_of_order_are_another_finding() {
    let disorder = DisorderRates {
        over_s: 5.0,
        retransmits_per_s: 400.0,
        dsack_dups_per_s: 30.0,
        reord_seen_per_s: 0.0,
        out_of_order_per_s: None,
    };
    let mut metrics = doing(flowing(4, 1, 2, |_| ()), &[(1, FULL)]);
    assert_ne!(said(&metrics, "spare_core"), NOTHING, "the sender's core is full");
    metrics.flow.connections[0].speaks = Speaks::Tcp(TcpFigures { disorder: Some(disorder), ..TcpFigures::default() });
    assert_eq!(said(&metrics, "spare_core"), NOTHING);
    assert_ne!(said(&metrics, "reordered"), "no finding 'reordered'");
}

#[test]
fn a_core_that_only_forwards_is_said_so_and_has_the_key_where_a_line_is_listed() {
    let forwarding = |change: fn(&mut Vec<Steering>)| {
        let mut metrics = bound(doing(flowing(3, 1, 1, change), &[(0, [0.5, 0.0, 0.0]), (1, [0.0, 0.1, 0.9])]));
        metrics.machine_mut().cores[1].load.as_mut().expect("online").softirqs_per_s[3] = Some(9e4);
        metrics
    };
    let metrics = forwarding(|_| ());
    let text = said(&metrics, "one_core");
    let expected = "core 1 forwards packets 90 % of the time, all softirq of 2 hops; core 2 is idle: RPS spreads";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!((key(&metrics, "one_core"), said(&metrics, "spare_core").as_str()), (Some('p'), NOTHING), "once");
    let set = forwarding(|all| all[1].rps = vec!["1".parse().expect("a core")]);
    assert_eq!(key(&set, "one_core"), None, "what is set already p does not list");
}
