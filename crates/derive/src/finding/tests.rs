//! Each finding on a machine built by hand, and its silence where there is nothing to say.

use super::{Finding, FindingId};
use crate::diagnosis::RateDiagnosis;
use crate::history::History;
use crate::links::{LinkMetrics, LinkRates};
use crate::moves::{Evidence, MovesByClass};
use crate::placement::tests::machine::Machine;
use crate::{Basis, Derivation, TestMetrics, placement};
use std::sync::Arc;
use vnettop_sample::{Facts, Ifindex, Item, Kind, LinkFacts, LinkKey, RealtimeRefusal, Sample, Word};

fn found<'a>(findings: &'a [Finding], id: &str) -> Option<&'a Finding> {
    findings.iter().find(|finding| finding.id.word() == id)
}

/// The findings, with the key that mends them where a proposal does not doubt itself.
pub(crate) fn all(metrics: &TestMetrics, history: &History, diagnosis: &RateDiagnosis) -> Vec<Finding> {
    let may_help = placement::propose(metrics).is_ok_and(|proposal| proposal.doubt.is_none());
    super::all(metrics, None, may_help, history, diagnosis).0
}

/// The findings on metrics that are the first of their run.
fn at_once(metrics: &TestMetrics) -> Vec<Finding> {
    let mut history = History::default();
    history.observe_links(&sample(metrics), metrics.machine.elapsed_s, &metrics.machine.links);
    all(metrics, &history, &RateDiagnosis::default())
}

fn text(findings: &[Finding], id: &str) -> String {
    found(findings, id).map_or_else(|| format!("no finding '{id}'"), |finding| finding.text.clone())
}

fn link(name: &str, bits: f64, mbps: Option<u32>, basis: Basis) -> LinkMetrics {
    let facts = LinkFacts {
        born: 0,
        speed_mbps: mbps,
        ..LinkFacts::new(LinkKey { netns: 1, ifindex: Ifindex(4) }, name, Kind::Veth)
    };
    let rates = LinkRates {
        rx_bits_per_s: Some(bits),
        rx_packets_per_s: Some(1.0),
        tx_packets_per_s: Some(1.0),
        ..LinkRates::still()
    };
    LinkMetrics { facts: Arc::new(facts), basis, counters: None, rates: Some(rates), ovs: None }
}

#[test]
fn a_quiet_machine_has_no_finding() {
    let quiet = Machine::small(4).pair(0, 1).metrics();
    assert_eq!(at_once(&quiet), [], "nothing is wrong, nothing is said");
}

#[test]
fn a_link_beyond_its_label_is_told_with_what_the_claim_is() {
    let mut metrics = Machine::small(2).metrics();
    metrics.machine_mut().links = Arc::new(vec![
        link("eth0", 2e10, Some(10_000), Basis::Real),
        link("lo", 5e10, None, Basis::None),
        link("tap0", 2.4e7, Some(10), Basis::Constant),
        link("vetha6c37c1", 3.48e10, Some(10_000), Basis::Constant),
    ]);
    let findings = at_once(&metrics);
    assert_eq!(
        text(&findings, "label"),
        "vetha6c37c1 carries 34.8 Gbit/s, 3.5× its nominal 10 Gbit/s, which the driver hard-codes and does not \
         enforce; 1 more link exceeds its nominal speed"
    );
    let finding = found(&findings, "label").expect("there is one");
    assert_eq!((finding.key, finding.numbers[2]), (None, ("claim_mbps", 10_000.0)), "no key mends a label");
}

#[test]
fn moves_of_busy_threads_are_told_without_blaming_them() {
    let mut machine = Machine::kunpeng().pair(5, 91).each_thread(|thread| {
        thread.moves_per_s = Some(29.5);
        thread.by_class = MovesByClass { smt: 0, cluster: 10, llc: 4, node: 2, socket: 4 };
    });
    let findings = at_once(&machine.metrics());
    let reported = "2 busy threads together migrate between cores 59 times/s over 0.5 s; of 40 so far whose cores are known, 12 went to another cache \
                or node";
    assert_eq!(text(&findings, "moves"), reported);
    assert_eq!(found(&findings, "moves").expect("there is one").key, Some('p'), "p mends it");

    machine = machine.each_thread(|thread| (thread.evidence, thread.moves_per_s) = (Evidence::Sampled, Some(2.0)));
    let reported = text(&at_once(&machine.metrics()), "moves");
    assert!(reported.contains("at least 4.0 times/s"), "an under-count is marked: {reported}");

    let idle = machine.each_thread(|thread| thread.cpu = Some(0.0)).metrics();
    assert!(found(&at_once(&idle), "moves").is_none(), "moves of idle threads matter to nobody");
}

#[test]
fn backlog_trouble_names_the_worst_core() {
    let mut metrics = Machine::small(4).metrics();
    for (core, dropped, squeezed) in [(1, 30.0, 0.0), (2, 120.0, 4.5)] {
        let load = metrics.machine_mut().cores[core].load.as_mut().expect("it is online");
        (load.softnet_dropped_per_s, load.softnet_squeezed_per_s) = (Some(dropped), Some(squeezed));
    }
    let findings = at_once(&metrics);
    assert_eq!(
        text(&findings, "softnet"),
        "core 2 drops 120 packets/s: its backlog is full; 150 packets/s on 2 cores together \
         (net.core.netdev_max_backlog)"
    );
    assert!(text(&findings, "squeeze").starts_with("core 2 exhausts its softirq budget"), "squeezes are told too");
    assert_eq!(findings[0].id, FindingId::Softnet, "lost packets come first");
}

#[test]
fn two_busy_threads_on_one_core_are_told_once_it_lasts() {
    let machine = Machine::small(4).pair(1, 1).each_thread(|thread| thread.wait = Some(0.48));
    let metrics = machine.metrics();
    let mut derivation = Derivation::default();
    for samples in 1..=4 {
        derivation.advance(Item::Sample(Box::new(sample(&metrics))));
        let findings = all(&metrics, derivation.history(), &RateDiagnosis::default());
        let reported = text(&findings, "same_core");
        if samples < 3 {
            assert_eq!(reported, "no finding 'same_core'", "{samples} samples may be chance");
        } else {
            assert_eq!(
                reported,
                "iperf3 server 39081 and iperf3 client 39082 share core 1 and wait for it up to 48 % of the time"
            );
            let cost = &found(&findings, "same_core").expect("it is told").parts.cost;
            let (time, rate) = cost.split_once("; ").expect("two parts");
            assert!(time.starts_with("iperf3 ") && time.contains(" waits 48 % of the time and runs "), "{time}");
            assert_eq!(rate, "in bits/s: not known before it is tried");
        }
    }
}

#[test]
fn a_move_stays_told_for_some_seconds() {
    let machine = Machine::small(4).pair(1, 2);
    let mut derivation = Derivation::default();
    derivation.advance(Item::Sample(Box::new(sample(&Machine::small(4).pair(0, 2).metrics()))));
    let mut ticks = 0;
    while found(&all(&machine.metrics(), derivation.history(), &RateDiagnosis::default()), "moves").is_some()
        || ticks == 0
    {
        derivation.advance(Item::Sample(Box::new(sample(&machine.metrics()))));
        ticks += 1;
        if let Some(reported) =
            found(&all(&machine.metrics(), derivation.history(), &RateDiagnosis::default()), "moves")
        {
            assert_eq!(
                reported.text, "1 busy thread migrated between cores once in the last 5 s",
                "as often as it did"
            );
            assert_eq!(
                (reported.numbers[1], reported.key),
                (("moves_per_s", 0.2), None),
                "and no pin is offered for that"
            );
        }
        assert!(ticks < 100, "an old move is forgotten");
    }
    assert_eq!(ticks, 11, "at two samples a second it is told for five seconds");
}

#[test]
fn late_ticks_are_counted_and_the_remedy_named() {
    let mut metrics = Machine::small(2).metrics();
    metrics.machine_mut().own.late_ticks = 12;
    let reported = "12 samples were late since the start; within such a gap only the mean rate is known; as root or \
                with CAP_SYS_NICE vnettop can sample at real-time priority";
    assert_eq!(text(&at_once(&metrics), "late"), reported);
    for (why, words) in [
        (RealtimeRefusal::NoRight, "as root or with CAP_SYS_NICE"),
        (RealtimeRefusal::NotAsked, "without --no-realtime"),
        (RealtimeRefusal::Refused, "cpu.rt_runtime_us"),
        (RealtimeRefusal::GivenBack, "too much of a core for real-time priority"),
    ] {
        metrics.machine_mut().own.ordinary = Some(why);
        let reported = text(&at_once(&metrics), "late");
        assert!(reported.contains(words), "{why:?}: {reported}");
        assert_eq!(
            reported.contains("as root"),
            why == RealtimeRefusal::NoRight,
            "who is root is not told to be root: {reported}"
        );
    }
    let own = &mut metrics.machine_mut().own;
    (own.realtime, own.ordinary) = (true, None);
    assert!(!text(&at_once(&metrics), "late").contains("CAP_SYS_NICE"), "who has the right needs no advice");
    let mut history = History::default();
    history.observe_links(&sample(&metrics), metrics.machine.elapsed_s, &[]);
    metrics.machine_mut().at_ns += 31_000_000_000;
    history.observe_links(&sample(&metrics), metrics.machine.elapsed_s, &[]);
    assert!(
        found(&all(&metrics, &history, &RateDiagnosis::default()), "late").is_none(),
        "half a minute later only the header still counts them"
    );
}

/// A sample with the threads of these metrics, for a history of where they ran.
pub(crate) fn sample(metrics: &TestMetrics) -> Sample {
    let (host, topology) = (Arc::clone(&metrics.machine.facts.host), Arc::clone(&metrics.machine.facts.topology));
    Sample {
        at_ns: metrics.machine.at_ns,
        netns: metrics.machine.netns,
        cores_at_ns: metrics.machine.at_ns,
        own: metrics.machine.own,
        threads: metrics.threads.iter().map(|thread| thread.sample.clone()).collect(),
        facts: Arc::new(Facts { host, topology, ..Facts::default() }),
        ..Sample::default()
    }
}
