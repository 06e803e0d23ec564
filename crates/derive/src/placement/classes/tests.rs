//! One placement of each class, on machines built by hand.

use super::*;
use crate::placement::tests::machine::Machine;
use vnettop_sample::{CoreSet, Side};

/// `same core 4 4 | same cluster 4 5 (rule)`: each class with the cores of its threads, by tid.
fn classes(machine: &Machine) -> String {
    match by_class(&machine.metrics()) {
        Ok(found) => found.placements.iter().map(one).chain(found.left_out).collect::<Vec<_>>().join(" | "),
        Err(why) => why,
    }
}

fn one(tried: &TriedPlacement) -> String {
    let mut threads: Vec<_> = tried.threads.iter().collect();
    threads.sort_by_key(|at| at.thread.tid);
    let cores: Vec<String> = threads.iter().map(|at| format!(" {}", at.core)).collect();
    format!("{}{}{}", tried.class.word(), cores.concat(), if tried.is_rule { " (rule)" } else { "" })
}

fn cores(list: &str) -> CoreSet {
    list.parse().expect("a list of cores")
}

#[test]
fn a_machine_of_two_cores_has_three() {
    assert_eq!(classes(&Machine::small(2).pair(0, 1)), "unpinned | same core 1 1 | same cache 0 1 (rule)");
}

#[test]
fn kunpeng_has_every_level_but_siblings() {
    assert_eq!(
        classes(&Machine::kunpeng().pair(5, 91)),
        "unpinned | same core 64 64 | same cluster 5 4 (rule) | same cache 68 64 | other node 96 64 | other socket 4 64"
    );
}

#[test]
fn siblings_are_a_class_where_there_are_some() {
    let found = classes(&Machine::xeon().pair(1, 2));
    assert!(found.contains("SMT siblings 41 1 |") && found.contains("other socket"), "{found}");
}

#[test]
fn a_machine_that_tells_no_levels_has_one_core_or_two() {
    assert_eq!(classes(&Machine::bare(4).pair(0, 1)), "unpinned | same core 1 1 | two cores 2 1 (rule)");
}

#[test]
fn streams_are_placed_alike_and_what_has_no_room_is_said() {
    let pairs = |count: u32| {
        (0..count).fold(Machine::kunpeng(), |machine, nth| {
            let machine = machine.thread(500, 501 + nth, Side::Server, nth);
            machine.thread(600, 601 + nth, Side::Client, 40 + nth)
        })
    };
    let machine = pairs(4);
    let metrics = machine.metrics();
    for tried in by_class(&metrics).expect("there is room").placements.iter().skip(1) {
        let placed: Vec<_> = tried.threads.iter().map(|at| (at.thread, at.core)).collect();
        assert_eq!(class_of(&metrics, &placed), Some(tried.class), "all four: {tried:?}");
        let cores: BTreeSet<_> = placed.iter().map(|(_, core)| core).collect();
        let needed = if tried.class == PlacementClass::SameCore { 4 } else { 8 };
        assert_eq!(cores.len(), needed, "no two streams share a core: {tried:?}");
    }
    let narrow = pairs(3).each_thread(|thread| {
        (thread.sample.cpuset, thread.sample.allowed) = (Some(cores("0-4")), Some(cores("0-4")));
    });
    let found = classes(&narrow);
    assert!(found.contains("same core") && found.contains("not tried: same cluster, too few allowed cores"), "{found}");
}

#[test]
fn masks_and_cpusets_are_kept() {
    let narrow = Machine::kunpeng().pair(8, 9).each_thread(|thread| {
        (thread.sample.cpuset, thread.sample.allowed) = (Some(cores("8-11")), Some(cores("8-11")));
    });
    let found = by_class(&narrow.metrics()).expect("four cores");
    let all = found.placements.iter().flat_map(|tried| &tried.threads);
    assert!(all.clone().all(|at| (8..12).contains(&at.core)), "{found:?}");
    let one = Machine::kunpeng().pair(8, 8).each_thread(|thread| {
        (thread.sample.cpuset, thread.sample.allowed) = (Some(cores("8")), Some(cores("8")));
    });
    let found = classes(&one);
    assert!(found.starts_with("unpinned | same core 8 8"), "what is left is tried: {found}");
}

#[test]
fn both_ends_are_tried_beside_the_core_of_interrupts_and_away_from_it() {
    let metrics = Machine::kunpeng().interrupted("40", 0.5).pair(5, 91).metrics();
    let found = by_class(&metrics).expect("there is room").placements;
    let of = |class| {
        let tried = found.iter().find(|tried| tried.class == class).expect("it is tried");
        tried.threads.iter().map(|at| at.core).collect::<BTreeSet<_>>()
    };
    let beside = of(PlacementClass::BesideInterrupts);
    assert!(beside.iter().all(|core| (41..44).contains(core)), "in its cluster, not on it: {beside:?}");
    let away = of(PlacementClass::AwayFromInterrupts);
    assert!(away.iter().all(|core| *core >= 64), "on the other socket: {away:?}");
    let quiet = by_class(&Machine::kunpeng().pair(5, 91).metrics()).expect("there is room").placements;
    assert!(
        quiet.iter().all(|tried| tried.class != PlacementClass::BesideInterrupts),
        "no core has interrupts: {quiet:?}"
    );
}

#[test]
fn a_test_with_one_end_here_has_no_distance() {
    let found = classes(&Machine::small(4).thread(7, 8, Side::Client, 1));
    assert_eq!(found, "unpinned | own cores 1 (rule)");
}

#[test]
fn what_was_found_is_proposed_as_it_was_tried() {
    let metrics = Machine::kunpeng().pair(5, 91).metrics();
    for tried in by_class(&metrics).expect("there is room").placements.iter().skip(1) {
        let proposal = propose_class(&metrics, tried.class).expect("it was tried");
        let cores: BTreeSet<_> = proposal.steps.iter().map(|step| (step.thread, step.core)).collect();
        assert_eq!(cores, tried.threads.iter().map(|at| (at.thread, at.core)).collect(), "{}", tried.class.word());
    }
    assert!(propose_class(&metrics, PlacementClass::Siblings).is_err(), "what this machine lacks is refused");
}
