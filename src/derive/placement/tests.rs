//! Proposals on machines built by hand, from one core to 512, as a user would read them.

use super::machine::Machine;
use super::{Proposal, propose};
use crate::derive::Metrics;
use crate::sample::{CoreSet, Duty, Side};
use insta::assert_snapshot;
use proptest::prelude::*;
use std::collections::HashSet;

fn proposed(machine: &Machine) -> Result<Proposal, String> {
    propose(&machine.metrics(), &machine.recent())
}

/// The proposal as text: reasons, steps, the same by hand.
fn read(machine: &Machine) -> String {
    let proposal = match proposed(machine) {
        Ok(proposal) => proposal,
        Err(sentence) => return format!("nothing is proposed: {sentence}"),
    };
    let steps = proposal.steps.iter().map(|step| {
        let old = step.old.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string);
        format!("{} {}: {old} → core {}: {}", step.label, step.thread.tid, step.core, step.reason)
    });
    let lines: Vec<String> = proposal.reasons.iter().cloned().chain(steps).chain(proposal.taskset_lines()).collect();
    lines.join("\n")
}

fn cores(list: &str) -> CoreSet {
    list.parse().expect("a list of cores")
}

fn smt_laptop() -> Machine {
    Machine::small(8).placed(|place| {
        place.physical = Some(place.core % 4);
        place.cluster = Some(place.core % 4);
    })
}

fn big_little() -> Machine {
    Machine::small(8).placed(|place| {
        place.cluster = Some(place.core / 4);
        place.capacity = Some(if place.core < 4 { 446 } else { 1024 });
    })
}

#[test]
fn two_cores() {
    assert_snapshot!(read(&Machine::small(2).pair(1, 1)));
}

#[test]
fn smt_laptop_never_uses_two_siblings() {
    assert_snapshot!(read(&smt_laptop().pair(0, 4)));
}

#[test]
fn big_little_prefers_the_strong() {
    assert_snapshot!(read(&big_little().pair(0, 1)));
}

#[test]
fn kunpeng_idle() {
    assert_snapshot!(read(&Machine::kunpeng().pair(5, 91)));
}

#[test]
fn kunpeng_with_a_busy_node() {
    assert_snapshot!(read(&Machine::kunpeng().busy("0-31", 0.3, 0.1).busy("34,38,42,46", 0.02, 0.3).pair(5, 40)));
}

#[test]
fn kunpeng_with_a_cpuset_over_two_nodes() {
    let narrowed = |thread: &mut crate::derive::ThreadMetrics| {
        (thread.sample.cpuset, thread.sample.allowed) = (Some(cores("29-34")), Some(cores("29-34")));
    };
    let pair = Machine::kunpeng().pair(30, 33).each_thread(narrowed);
    assert_snapshot!("cpuset_two_threads", read(&pair));
    let two_pairs =
        Machine::kunpeng().pair(30, 33).thread(39083, 39083, Side::Server, 31).thread(39084, 39084, Side::Client, 34);
    assert_snapshot!("cpuset_four_threads", read(&two_pairs.each_thread(narrowed)));
}

#[test]
fn kunpeng_with_isolated_cores() {
    let machine = Machine::kunpeng().isolated("1-31").pair(5, 91);
    assert_snapshot!("isolated_avoided", read(&machine));
    let only = machine.each_thread(|thread| {
        (thread.sample.cpuset, thread.sample.allowed) = (Some(cores("8-11")), Some(cores("8-11")));
    });
    assert_snapshot!("isolated_only", read(&only));
}

#[test]
fn kunpeng_with_eight_streams() {
    let mut machine = Machine::kunpeng();
    for stream in 0..8 {
        machine = machine.thread(500, 501 + stream, Side::Server, stream).thread(
            600,
            601 + stream,
            Side::Client,
            40 + stream,
        );
    }
    let control = |tid| {
        move |thread: &mut crate::derive::ThreadMetrics| {
            (thread.sample.duty, thread.cpu, thread.sample.id.tid) = (Duty::Control, Some(0.0), tid);
        }
    };
    assert_snapshot!(read(&machine.thread_with(500, 500, 9, control(500)).thread_with(600, 600, 9, control(600))));
}

#[test]
fn more_threads_than_cores_share_fairly() {
    let mut machine = smt_laptop();
    for tid in 1..=10 {
        machine = machine.thread(500, 500 + tid, Side::Client, 0);
    }
    assert_snapshot!(read(&machine));
}

#[test]
fn a_machine_that_tells_no_circles() {
    assert_snapshot!(read(&Machine::bare(6).pair(0, 0)));
}

#[test]
fn one_core_only() {
    let told = read(&Machine::small(1).pair(0, 0));
    assert_eq!(told, "nothing is proposed: only core 0 may run the busy threads: there is nothing to choose");
}

#[test]
fn nothing_is_proposed_without_a_busy_thread() {
    let idle = Machine::small(4).pair(0, 1).each_thread(|thread| thread.cpu = Some(0.04));
    let told = "no watched thread uses more than 5 % of a core: start the benchmark first";
    assert_eq!(proposed(&idle), Err(told.to_owned()));
    let none = proposed(&Machine::small(4)).expect_err("no thread");
    assert!(none.contains("--watch NAME"), "it says how to watch one: {none}");
    let unknown = Machine::small(4).pair(0, 1).each_thread(|thread| thread.cpu = None);
    let told = proposed(&unknown).expect_err("no load");
    assert!(told.contains("wait for the next sample"), "the first sample knows no load: {told}");
}

#[test]
fn a_busy_main_thread_is_a_worker() {
    let machine = Machine::small(4).pair(0, 1).each_thread(|thread| thread.sample.duty = Duty::Control);
    assert_eq!(proposed(&machine).expect("both are busy").steps.len(), 2, "it carries the traffic itself");
}

#[test]
fn a_mask_that_the_owner_narrowed_is_kept_and_one_of_vnettop_is_not() {
    let narrow = Machine::kunpeng().pair(5, 91).each_thread(|thread| thread.sample.allowed = Some(cores("70-71")));
    let steps = proposed(&narrow).expect("a proposal").steps;
    assert_eq!([steps[0].core, steps[1].core], [70, 71], "the owner's mask is respected");
    assert!(steps[0].reason.contains("its own mask allows only 70-71"), "and named: {}", steps[0].reason);
    let steps = proposed(&narrow.each_thread(|thread| thread.pinned = true)).expect("a proposal").steps;
    assert!(!steps[0].reason.contains("its own mask"), "a pin of vnettop is no wish of the owner's");
}

#[test]
fn what_is_pinned_well_is_proposed_to_stay() {
    let machine = Machine::kunpeng().pair(5, 91);
    let steps = proposed(&machine).expect("a proposal").steps;
    let pinned = machine.each_thread(|thread| {
        let step = steps.iter().find(|step| step.thread == thread.sample.id).expect("each has a step");
        (thread.pinned, thread.sample.core, thread.sample.allowed) =
            (true, step.core, Some(CoreSet::single(step.core)));
    });
    let told = proposed(&pinned).expect_err("nothing is to be changed");
    assert!(told.starts_with("the busy threads already are where they would be pinned"), "{told}");
    // An interrupt storm on the sender's core is a reason to move.
    let client = steps.iter().find(|step| step.label.contains("client")).expect("a client").core;
    let moved = proposed(&pinned.interrupted(&client.to_string(), 0.3)).expect("another core is better now");
    assert!(moved.steps.iter().all(|step| step.core != client), "no thread stays beside the storm");
}

#[test]
fn offline_cores_are_never_proposed() {
    let machine = Machine::small(4).placed(|place| place.online = place.core % 2 == 0).pair(0, 2);
    let machine = machine.each_thread(|thread| thread.sample.allowed = Some(cores("0-3")));
    let mut given: Vec<u32> = proposed(&machine).expect("a proposal").steps.iter().map(|step| step.core).collect();
    given.sort_unstable();
    assert_eq!(given, [0, 2], "only what is online");
}

#[test]
fn the_senders_core_is_the_one_without_interrupts() {
    let steps = proposed(&Machine::small(2).busy("1", 0.0, 0.2).pair(0, 0)).expect("a proposal").steps;
    let client = steps.iter().find(|step| step.label.contains("client")).expect("a client");
    assert_eq!(client.core, 0, "the client leaves the noisy core to the server, though the other is core 0");
}

#[test]
fn the_threads_own_softirq_is_not_held_against_their_core() {
    let machine = Machine::small(2).pair(0, 1);
    let core = machine.recent().core(1).expect("it is known");
    assert!(core.busy > 0.8, "the core is busy");
    assert!(core.others < 0.01 && core.others_interrupts < 0.01, "but not with others' work: {core:?}");
}

#[test]
fn loads_fade_and_a_break_in_the_stream_forgets_them() {
    let (busy, idle) = (Machine::small(2).busy("0", 0.9, 0.0), Machine::small(2));
    let mut recent = busy.recent();
    (0..12).for_each(|_| recent.observe(&idle.metrics()));
    let faded = recent.core(0).expect("known").busy;
    assert!((0.05..0.2).contains(&faded), "after 6 s a load of 0.9 has faded to about 0.12, it is {faded}");
    recent.observe(&Metrics { elapsed_s: None, ..idle.metrics() });
    assert_eq!(recent.core(0), None, "a first sample knows nothing");
}

proptest! {
    #[test]
    fn every_thread_gets_a_core_it_may_use_and_a_physical_one_of_its_own_where_there_are_enough(
        size in 1u32..40,
        threads in proptest::collection::vec((any::<u64>(), 0u32..40), 1..12),
        busy in any::<u64>(),
    ) {
        let mut machine = Machine::small(size).placed(|place| {
            place.physical = Some(place.core / 2 * 2);
            (place.cluster, place.llc) = (Some(place.core / 4), Some(place.core / 8));
        });
        let within = |word: u64| CoreSet::from_words(&[word]).intersection(&machine.topology.online());
        let busy = within(busy).to_string();
        let masks: Vec<CoreSet> = threads.iter().map(|&(mask, _)| within(mask)).collect();
        for ((tid, mask), &(_, core)) in (1..).zip(masks).zip(&threads) {
            machine = machine.thread_with(500, tid, core % size, |thread| thread.sample.allowed = Some(mask));
        }
        if let Ok(proposal) = proposed(&machine.busy(&busy, 0.7, 0.0)) {
            let physicals: HashSet<u32> = proposal.steps.iter().map(|step| step.core / 2).collect();
            for step in &proposal.steps {
                prop_assert!(step.old.as_ref().is_some_and(|old| old.contains(step.core)), "it may run there");
            }
            let told = proposal.reasons.iter().any(|reason| reason.contains("some share one"));
            prop_assert_eq!(physicals.len() < proposal.steps.len(), told, "sharing is told, and only then");
        }
    }
}

#[test]
fn five_hundred_cores_and_sixty_four_threads_take_no_time() {
    let mut machine = Machine::bare(512).placed(|place| {
        let core = place.core;
        (place.physical, place.cluster, place.llc) = (Some(core / 2 * 2), Some(core / 8), Some(core / 16));
        (place.node, place.socket) = (Some(core / 64), Some(core / 256));
    });
    for tid in 0..64 {
        machine = machine.thread(500 + tid % 2, 600 + tid, if tid % 2 == 0 { Side::Client } else { Side::Server }, tid);
    }
    let (metrics, recent) = (machine.metrics(), machine.recent());
    let begin = std::time::Instant::now();
    let proposal = propose(&metrics, &recent).expect("a proposal");
    let took = begin.elapsed();
    println!("64 threads on 512 cores: {took:?}");
    assert_eq!(proposal.steps.len(), 64, "every thread has a step");
    assert!(took.as_millis() < 250, "no search explodes, even unoptimised on a loaded machine: {took:?}");
}
