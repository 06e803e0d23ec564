//! Proposals on machines built by hand, from one core to 512, as a user would read them.

pub(crate) mod machine;

use super::{Proposal, propose, propose_for};
use crate::MachineMetrics;
use insta::assert_snapshot;
use machine::Machine;
use proptest::prelude::*;
use std::collections::HashSet;
use vnettop_sample::{CoreSet, Direction, Duty, Side};

fn proposed(machine: &Machine) -> Result<Proposal, String> {
    propose(&machine.metrics())
}

/// The proposal as text: reasons, steps, the same by hand.
fn read(machine: &Machine) -> String {
    let proposal = match proposed(machine) {
        Ok(proposal) => proposal,
        Err(sentence) => return format!("nothing is proposed: {sentence}"),
    };
    let steps = proposal.steps.iter().map(|step| {
        let old = step.old.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string);
        let next = step.others().map_or_else(String::new, |others| format!("\n  {others}"));
        format!("{} {}: {old} → core {}: {}{next}", step.label, step.thread.tid, step.core, step.reason)
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
fn pinning_to_cores_that_others_keep_busy_is_doubted() {
    let busy = Machine::small(2).pair(0, 1).each_thread(|thread| thread.cpu = Some(0.4)).busy("0-1", 0.6, 0.0);
    let doubt = proposed(&busy).expect("it is proposed all the same").doubt.expect("but doubted");
    assert!(doubt.starts_with("pinning may lower the rate: others use half or more"), "{doubt}");
    let free = proposed(&Machine::small(2).pair(0, 1)).expect("proposed");
    assert_eq!(free.doubt, None, "free cores are no reason to doubt");
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
    let narrowed = |thread: &mut crate::ThreadMetrics| {
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
        move |thread: &mut crate::ThreadMetrics| {
            (thread.sample.duty, thread.cpu, thread.sample.id.tid) = (Duty::Control, Some(0.0), tid);
        }
    };
    assert_snapshot!(read(&machine.thread_with(500, 500, 9, control(500)).thread_with(600, 600, 9, control(600))));
}

#[test]
fn xeon_with_its_card_on_the_second_node() {
    // One end only: what it sends or receives leaves the machine, and core 22 takes the card's interrupts.
    let receiving = Machine::xeon().interrupted("22", 0.3).card("docker0", None, 9e9).card("eth0", Some(1), 9.4e9);
    let server = receiving.clone().thread(500, 500, Side::Server, 22);
    assert_snapshot!("xeon_server_on_the_interrupted_core", read(&server));
    let two = receiving.thread(500, 501, Side::Client, 3).thread(500, 502, Side::Client, 62);
    assert_snapshot!("xeon_two_senders", read(&two));
    // Between containers of this machine the card carries next to nothing, and its node is no reason to go there.
    let inside = Machine::xeon().card("eth0", Some(1), 2e6).card("veth1", None, 30e9).pair(3, 5);
    assert_snapshot!("xeon_within_the_machine", read(&inside));
}

#[test]
fn on_arm_the_cluster_of_the_interrupted_core_is_next_to_the_card() {
    let machine = Machine::kunpeng().interrupted("70", 0.3).card("eth0", Some(2), 9.4e9);
    assert_snapshot!(read(&machine.thread(500, 500, Side::Server, 5)));
}

#[test]
fn offline_cores_of_an_smt_machine() {
    let machine = smt_laptop().placed(|place| place.online = ![1, 5, 6, 7].contains(&place.core));
    assert_snapshot!(read(&machine.pair(0, 4)));
}

#[test]
fn a_container_with_a_core_it_may_not_use() {
    // docker run --cpuset-cpus 30-35 --cpuset-mems 1, and a taskset inside that leaves core 33 out.
    let inside = Machine::kunpeng().busy("32", 0.4, 0.0).pair(30, 34).each_thread(|thread| {
        thread.sample.cpuset = Some(cores("30-35"));
        thread.sample.allowed = Some(cores("30-32,34-35"));
        thread.sample.memory_nodes = Some(cores("1"));
    });
    assert_snapshot!(read(&inside));
}

#[test]
fn one_stream_on_two_sockets_keeps_to_one_of_them() {
    assert_snapshot!(read(&Machine::xeon().busy("1", 0.0, 0.12).pair(3, 25)));
}

#[test]
fn the_server_sends_when_its_client_runs_in_reverse() {
    let machine = Machine::small(4).busy("1", 0.0, 0.2).pair(0, 0).each_thread(|thread| {
        thread.sample.direction = (thread.sample.side == Some(Side::Client)).then_some(Direction::Reverse);
    });
    let steps = proposed(&machine).expect("a proposal").steps;
    let first = &steps[0];
    assert!(first.label.contains("server") && first.reason.contains("sender: "), "it chooses first: {first:?}");
    assert!(!steps[1].reason.contains("sends"), "and the client only receives: {:?}", steps[1]);
}

#[test]
fn a_pin_of_vnettop_does_not_widen_what_its_owner_allowed() {
    let pinned = Machine::kunpeng().pair(70, 70).each_thread(|thread| {
        (thread.pinned, thread.before_pin) = (true, Some(cores("70-71")));
        thread.sample.allowed = Some(CoreSet::single(70));
    });
    let given: CoreSet = proposed(&pinned).expect("they share a core").steps.iter().map(|step| step.core).collect();
    assert_eq!(given.to_string(), "70-71", "the mask from before the pin still counts");
}

#[test]
fn masks_of_one_core_are_told_with_the_line_that_widens_them() {
    let machine = Machine::small(4).pair(2, 2).each_thread(|thread| thread.sample.allowed = Some(CoreSet::single(2)));
    let reported = proposed(&machine).expect_err("one core for both");
    assert!(reported.contains("taskset -acp 0-3 39081; taskset -acp 0-3 39082 widens them"), "{reported}");
}

#[test]
fn a_tenth_more_or_less_moves_nobody_who_is_pinned() {
    let pinned = |machine: Machine| {
        machine.pair(9, 8).each_thread(|thread| {
            (thread.pinned, thread.sample.allowed) = (true, Some(CoreSet::single(thread.sample.core)));
        })
    };
    let reported = proposed(&pinned(Machine::kunpeng().busy("8-9", 0.12, 0.0))).expect_err("it is not worth a move");
    assert!(reported.starts_with("nothing to gain"), "{reported}");
    let parted = Machine::kunpeng().pair(9, 72).each_thread(|thread| {
        (thread.pinned, thread.sample.allowed) = (true, Some(CoreSet::single(thread.sample.core)));
    });
    let steps = proposed(&parted).expect("two sockets are worth it").steps;
    assert_eq!(steps.iter().filter(|step| step.core == step.on).count(), 1, "and one of the two stays: {steps:?}");
}

#[test]
fn new_threads_alone_get_cores_that_nobody_holds() {
    let pin = |thread: &mut crate::ThreadMetrics| {
        if thread.sample.id.tid <= 602 {
            (thread.pinned, thread.sample.allowed) = (true, Some(CoreSet::single(thread.sample.core)));
        }
    };
    let machine = Machine::kunpeng().thread(500, 601, Side::Server, 36).thread(600, 602, Side::Client, 37);
    let machine = machine.thread(500, 603, Side::Server, 99).thread(600, 604, Side::Client, 100).each_thread(pin);
    let new: Vec<_> =
        machine.metrics().threads.iter().map(|thread| thread.sample.id).filter(|id| id.tid > 602).collect();
    let steps = propose_for(&machine.metrics(), &new).expect("there is room").steps;
    assert_eq!(steps.len(), 2, "only the new ones are placed");
    assert!(steps.iter().all(|step| (32..64).contains(&step.core)), "beside the pinned ones: {steps:?}");
    assert!(steps.iter().all(|step| step.core != 36 && step.core != 37), "on cores of their own: {steps:?}");
    let full = Machine::small(2).thread(500, 601, Side::Server, 0).thread(600, 602, Side::Client, 1);
    let full = full.thread(500, 603, Side::Server, 0).each_thread(pin);
    let reported = propose_for(&full.metrics(), &[new[0]]).expect_err("both cores are held");
    assert!(reported.contains("no core is left for 603"), "{reported}");
    // The test's own is the new one alone: whosever the two pinned ones are, their cores are held.
    let mut own = full.metrics();
    own.threads_mut().retain(|thread| thread.sample.id == new[0]);
    let reported = propose_for(&own, &[new[0]]).expect_err("both cores are held");
    assert!(reported.contains("no core is left for 603"), "{reported}");
}

#[test]
fn the_preview_has_every_core_before_and_after() {
    let cores = proposed(&Machine::kunpeng().pair(5, 91)).expect("a proposal").cores;
    let read: Vec<_> = cores.iter().map(|core| (core.core, core.now.as_slice(), core.then.as_slice())).collect();
    let (server, client) = ([39_081], [39_082]);
    assert_eq!(
        read,
        [(4, &[][..], &client[..]), (5, &server, &server), (91, &client, &[])],
        "who was and will be where"
    );
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
fn a_machine_that_tells_no_levels() {
    assert_snapshot!(read(&Machine::bare(6).pair(0, 0)));
}

#[test]
fn one_core_only() {
    assert_snapshot!(read(&Machine::small(1).pair(0, 0)));
}

#[test]
fn nothing_is_proposed_without_a_busy_thread() {
    let idle = Machine::small(4).pair(0, 1).each_thread(|thread| thread.cpu = Some(0.04));
    let reported = "no watched thread uses or wants more than 5 % of a core: a pin gains little";
    assert_eq!(proposed(&idle), Err(reported.to_owned()));
    let none = proposed(&Machine::small(4)).expect_err("no thread");
    assert!(none.contains("--watch NAME"), "it says how to watch one: {none}");
    let unknown = Machine::small(4).pair(0, 1).each_thread(|thread| thread.cpu = None);
    let reported = proposed(&unknown).expect_err("no load");
    assert!(reported.contains("wait for the next sample"), "the first sample knows no load: {reported}");
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
    let reported = proposed(&pinned).expect_err("nothing is to be changed");
    assert!(reported.starts_with("nothing to gain: the busy threads are pinned to cores of their own"), "{reported}");
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
    let core = machine.metrics().recent.core(1).expect("it is known");
    assert!(core.busy > 0.8, "the core is busy");
    assert!(core.others < 0.01 && core.others_interrupts < 0.01, "but not with others' work: {core:?}");
}

#[test]
fn loads_fade_and_a_break_in_the_stream_forgets_them() {
    let (busy, idle) = (Machine::small(2).busy("0", 0.9, 0.0), Machine::small(2));
    let mut recent = (*busy.metrics().recent).clone();
    let idle = idle.metrics();
    (0..12).for_each(|_| recent.observe(&idle.machine, &idle.threads, &[]));
    let faded = recent.core(0).expect("known").busy;
    assert!((0.05..0.2).contains(&faded), "after 6 s a load of 0.9 has faded to about 0.12, it is {faded}");
    recent.observe(&MachineMetrics { elapsed_s: None, ..(*idle.machine).clone() }, &idle.threads, &[]);
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
            let reported = proposal.reasons.iter().any(|reason| reason.contains("some share one"));
            prop_assert_eq!(physicals.len() < proposal.steps.len(), reported, "sharing is told, and only then");
            for step in &proposal.steps {
                let next = step.runner_up.as_ref().map(|next| next.core);
                prop_assert!(next != Some(step.core) && !step.as_good.contains(step.core), "it is no other than itself");
                let may = step.old.as_ref().map_or(0, CoreSet::len);
                prop_assert_eq!(next.is_some() || !step.as_good.is_empty(), may > 1, "whoever has a choice has a next");
            }
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
    let metrics = machine.metrics();
    let begin = std::time::Instant::now();
    let proposal = propose(&metrics).expect("a proposal");
    let took = begin.elapsed();
    println!("64 threads on 512 cores: {took:?}");
    assert_eq!(proposal.steps.len(), 64, "every thread has a step");
    assert!(took.as_millis() < 250, "no search explodes, even unoptimised on a loaded machine: {took:?}");
}
