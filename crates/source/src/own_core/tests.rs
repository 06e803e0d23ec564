//! Which core is chosen, on machines built by hand. That it is taken is for the live tests.

use super::*;

fn machine(cores: u32, place: impl Fn(&mut CorePlace)) -> Topology {
    let bare = |core| CorePlace { core, online: true, ..CorePlace::default() };
    let mut topology = Topology { cores: (0..cores).map(bare).collect(), isolated: CoreSet::new(), nodes: 1 };
    topology.cores.iter_mut().for_each(place);
    topology
}

fn set(list: &str) -> CoreSet {
    list.parse().expect("a list of cores")
}

fn idle(_: CoreId) -> OwnCoreLoad {
    OwnCoreLoad::default()
}

#[test]
fn a_core_without_watched_threads_is_taken_and_none_where_there_is_none() {
    let two = machine(2, |_| {});
    assert_eq!(best(&set("0-1"), &set("0"), None, &two, true, idle), Some(1), "the other core is free");
    assert_eq!(best(&set("0-1"), &set("0-1"), None, &two, true, idle), None, "both are taken: it stays as it is");
    assert_eq!(best(&set("0"), &set("0"), None, &two, true, idle), None, "the free core is not allowed");
}

#[test]
fn siblings_and_clusters_of_watched_threads_are_avoided() {
    let smt = machine(4, |place| place.physical = Some(place.core / 2 * 2));
    assert_eq!(best(&set("0-3"), &set("0"), None, &smt, true, idle), Some(2), "not the sibling of core 0");
    assert_eq!(best(&set("0-1"), &set("0"), None, &smt, true, idle), Some(1), "the sibling is better than the core");
    let clusters = machine(12, |place| (place.physical, place.cluster) = (Some(place.core), Some(place.core / 4)));
    assert_eq!(best(&set("0-11"), &set("0,5"), None, &clusters, true, idle), Some(8), "a cluster of its own");
}

#[test]
fn the_seat_is_kept_until_it_is_taken_or_plainly_worse() {
    let four = machine(4, |place| place.physical = Some(place.core));
    assert_eq!(best(&set("0-3"), &set("0"), Some(3), &four, true, idle), Some(3), "it does not wander");
    assert_eq!(best(&set("0-3"), &set("0,3"), Some(3), &four, true, idle), Some(1), "a watched thread goes before");
    let busy =
        |share| move |core| if core == 3 { OwnCoreLoad { softirq: 0.0, busy: share } } else { OwnCoreLoad::default() };
    assert_eq!(best(&set("0-3"), &set("0"), Some(3), &four, true, busy(0.7)), Some(3), "some load moves nobody");
    assert_eq!(best(&set("0-3"), &set("0"), Some(3), &four, true, busy(0.85)), Some(1), "much load does");
}

#[test]
fn packets_and_isolated_cores_are_left_alone() {
    let mut two = machine(2, |_| {});
    let softirq = |_| OwnCoreLoad { softirq: 0.6, busy: 0.6 };
    assert_eq!(best(&set("0-1"), &set("0"), None, &two, true, softirq), None, "there the benchmark's packets wait");
    let full = |_| OwnCoreLoad { softirq: 0.0, busy: 0.95 };
    assert_eq!(best(&set("0-1"), &set("0"), None, &two, true, full), Some(1), "real-time priority gets its time");
    assert_eq!(best(&set("0-1"), &set("0"), None, &two, false, full), None, "an ordinary thread would starve");
    two.isolated = set("1");
    assert_eq!(best(&set("0-1"), &set("0"), None, &two, true, idle), None, "isolated cores are kept for others");
}
