//! Packets of a flow that change cores and overtake each other: what is said of it, and what is proposed.

use super::cores::flowing;
use super::*;
use crate::flow::DisorderRates;
use crate::placement::{self, Proposal};
use vnettop_sample::{DropFlow, FlowCores, HopCores, KernelCounts, SteerSetting, Steering};

/// What TCP of the first connection noticed: segments sent again a second, and DSACKs.
fn disordered(mut metrics: TestMetrics, again: f64, dsacks: f64) -> TestMetrics {
    let disorder = DisorderRates {
        over_s: 5.0,
        retransmits_per_s: again,
        dsack_dups_per_s: dsacks,
        reord_seen_per_s: 0.0,
        out_of_order_per_s: Some(2.0 * again),
    };
    metrics.flow.connections[0].carries = true;
    metrics.flow.connections[0].speaks = Speaks::Tcp(TcpFigures { disorder: Some(disorder), ..TcpFigures::default() });
    metrics
}

/// What the kernel counted of the flow where it comes in by `x0`: packets by core over half a second, and changes of core.
fn counted(mut metrics: TestMetrics, cores: &[(u32, u64)], switches: u64) -> TestMetrics {
    let path = &metrics.paths[0];
    let flow = DropFlow { proto: path.proto, from: path.from, to: path.to };
    let hop = HopCores {
        link: path.hops[1].link,
        way: path.hops[1].way,
        cores: cores.to_vec(),
        for_ns: Some(500_000_000),
        at_ns: Some(1),
        flows: vec![FlowCores { flow, cores: cores.to_vec(), switches }],
    };
    metrics.machine_mut().kernel = Some(Arc::new(KernelCounts { hops: vec![hop], ..KernelCounts::default() }));
    metrics
}

/// Client on core 1, server on core 2.
fn two_cores(change: impl FnOnce(&mut Vec<Steering>)) -> TestMetrics {
    flowing(4, 1, 2, change)
}

fn proposed(metrics: &TestMetrics) -> Result<Proposal, String> {
    placement::with_steers(metrics, placement::propose(metrics))
}

/// `[x] x0 4`: on or off, the link, the mask.
fn steers(metrics: &TestMetrics) -> Vec<String> {
    let all = proposed(metrics).map(|proposal| proposal.steers).unwrap_or_default();
    let line = |steer: &placement::ProposedSteer| {
        assert_eq!(steer.request.setting, SteerSetting::RpsCpus);
        let mark = if steer.is_on { 'x' } else { ' ' };
        format!("[{mark}] {} {}", steer.request.name, steer.request.value.to_text())
    };
    all.iter().map(line).collect()
}

#[test]
fn packets_that_change_cores_are_found_with_their_price_and_one_core_is_proposed() {
    let metrics = counted(disordered(two_cores(|_| ()), 445.0, 30.0), &[(1, 900), (2, 100)], 450);
    let text = said(&metrics, "reordered");
    let expected = "packets change cores 900 times/s at x0 (c1) (cores 1-2) and overtake each other: TCP takes that for loss \
                    (445 retransmits/s); one core keeps them in order (ip netns exec c1 sh -c 'echo 4 | tee \
                    /sys/class/net/x0/queues/rx-*/rps_cpus')";
    assert_eq!(text, expected);
    assert_eq!(steers(&metrics), ["[x] x0 4"], "the core of the receiver, where they first wait");
    let key = findings(&metrics).into_iter().find(|finding| finding.id.word() == "reordered").and_then(|one| one.key);
    assert_eq!(key, Some('p'));
    let alone = placement::steer(&metrics).expect("without any pin too");
    assert_eq!((alone.steps.len(), alone.shell_lines().len()), (0, 1));
}

#[test]
fn without_a_count_the_cores_of_the_ends_stand_for_it() {
    let text = said(&disordered(two_cores(|_| ()), 445.0, 30.0), "reordered");
    assert!(text.starts_with("packets overtake each other at x0 (c1): they come from cores 1 and 2: TCP"), "{text}");
    let one_core = disordered(flowing(4, 1, 1, |_| ()), 445.0, 30.0);
    assert_eq!(said(&one_core, "reordered"), "no finding 'reordered'", "one core puts them into one backlog");
}

#[test]
fn what_is_lost_or_overtaken_elsewhere_is_not_said_of_cores() {
    let few = counted(disordered(two_cores(|_| ()), 445.0, 0.0), &[(1, 900), (2, 100)], 450);
    assert_eq!(said(&few, "reordered"), "no finding 'reordered'", "nothing came twice: that is loss");
    let steady = counted(disordered(two_cores(|_| ()), 445.0, 30.0), &[(1, 1000)], 0);
    assert_eq!(said(&steady, "reordered"), "no finding 'reordered'", "they stay on one core");
    let rare = counted(disordered(two_cores(|_| ()), 0.5, 0.5), &[(1, 900), (2, 100)], 450);
    assert_eq!(said(&rare, "reordered"), "no finding 'reordered'", "one in two seconds is nothing");
}

#[test]
fn pins_on_two_cores_bring_the_steer_that_belongs_to_them() {
    let mut quiet = two_cores(|_| ());
    quiet.flow.connections[0].carries = true;
    assert!(said(&quiet, "reordered").starts_with("no finding"), "nothing is overtaken yet");
    let bound = |metrics: &mut TestMetrics| {
        let threads = Arc::make_mut(&mut metrics.machine_mut().threads);
        for thread in threads.iter_mut() {
            thread.sample.allowed = Some([thread.sample.core].into_iter().collect());
        }
        metrics.threads = Arc::clone(&metrics.machine.threads);
    };
    bound(&mut quiet);
    let on = placement::with_steers(&quiet, Err("nothing to gain".to_owned())).expect("the steer alone");
    let [steer] = &on.steers[..] else { panic!("one backlog: {on:?}") };
    assert_eq!(
        (steer.is_on, steer.reason.as_str()),
        (true, "packets from cores 1-2 would overtake each other there: one core keeps order")
    );
}

#[test]
fn what_is_steered_already_is_left_alone() {
    let set = |list: &str| list.parse().expect("cores");
    let steered =
        counted(disordered(two_cores(|all| all[1].rps = vec![set("3")]), 445.0, 30.0), &[(1, 900), (2, 100)], 450);
    assert_eq!(steers(&steered), Vec::<String>::new());
    let text = said(&steered, "reordered");
    assert!(text.ends_with("(445 retransmits/s)"), "no command for what is set: {text}");
}
