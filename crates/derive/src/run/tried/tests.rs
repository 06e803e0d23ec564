//! Searches as their recordings tell them.

use super::*;
use crate::ledger::BIN_NS;
use crate::moves::MovesByClass;
use vnettop_sample::{PlacedThread, ThreadId};

/// A phase of half a second.
const PHASE_NS: u64 = 500_000_000;

fn tried(class: PlacementClass, core: Option<u32>, is_rule: bool) -> TriedPlacement {
    let thread = ThreadId { pid: 7, tid: 8, start: 9 };
    let placed = |core| PlacedThread { thread, label: "iperf3 client".to_owned(), core };
    TriedPlacement { class, is_rule, threads: core.map(placed).into_iter().collect(), steers: Vec::new() }
}

/// A search of so many rounds among these placements with these rates, in their order.
fn search(placements: &[TriedPlacement], rates: &[f64], rounds: u32) -> (SearchEvents, Ledger<Bin>) {
    let (mut events, mut bins) = (SearchEvents::default(), Ledger::new());
    let started = SearchStep::Started {
        seed: 5,
        placements: placements.to_vec(),
        left_out: vec!["not tried: same node".to_owned()],
        test: TestKind { streams: 1, ..TestKind::default() },
    };
    events.step(0, &started);
    let mut now_ns = 0;
    for round in 0..rounds {
        for (placement, rate) in (0..).zip(rates) {
            events.step(now_ns, &SearchStep::Phase { placement, round });
            for _ in 0..PHASE_NS / BIN_NS {
                let (from_ns, to_ns) = (now_ns, now_ns + BIN_NS);
                let bits_per_s = Some(rate * (1.0 + f64::from(round % 3) * 0.01));
                bins.add(Bin { from_ns, to_ns, bits_per_s, moves: MovesByClass::default(), unclassed: 0.0 });
                now_ns = to_ns;
            }
        }
    }
    events.step(now_ns, &SearchStep::Ended);
    (events, bins)
}

fn result(placements: &[TriedPlacement], rates: &[f64], rounds: u32) -> SearchResult {
    let (events, bins) = search(placements, rates, rounds);
    let runs = [CommandRun { from_ns: 0, to_ns: Some(u64::MAX), code: Some(0) }];
    let means = events.means(&runs, (&bins, Some(&FlowBasis::Sockets(1))), BIN_NS);
    events.result(&means, PHASE_NS).expect("it has started")
}

/// The class of what is found.
fn class(of: &SearchResult) -> Option<PlacementClass> {
    of.found().map(|found| found.class)
}

fn three() -> [TriedPlacement; 3] {
    [
        tried(PlacementClass::Unpinned, None, false),
        tried(PlacementClass::SameCore, Some(1), false),
        tried(PlacementClass::SameCluster, Some(2), true),
    ]
}

#[test]
fn the_best_one_is_found_where_it_beats_unpinned() {
    let of = result(&three(), &[1e9, 2e9, 0.5e9], 5);
    let order: Vec<PlacementClass> = of.ranking.iter().map(|one| one.tried.class).collect();
    assert_eq!(order, [PlacementClass::SameCore, PlacementClass::Unpinned, PlacementClass::SameCluster], "best first");
    assert_eq!(class(&of), Some(PlacementClass::SameCore), "and that is what p is to propose");
    assert_eq!(of.gain_ppm(), Some(1_000_000), "twice as fast as unpinned");
    assert_eq!(of.best().map(SearchedPlacement::taskset_lines), Some(vec!["taskset -cp 1 8".to_owned()]), "by hand");
    let mean = of.ranking[0].mean;
    assert!((mean / 2e9 - 1.0).abs() < 0.02, "the mean of its phases: {mean}");
}

#[test]
fn a_rule_that_measurement_contradicts_gives_way_to_no_pin() {
    let of = result(&three(), &[1e9, 0.5e9, 0.6e9], 5);
    assert_eq!(class(&of), Some(PlacementClass::Unpinned), "nothing beats unpinned, and the rule's is worse");
    let of = result(&three(), &[1e9, 0.5e9, 1e9], 5);
    assert_eq!(
        (of.differs(), of.found()),
        (Some(true), None),
        "the rule's is as good as unpinned, so the rule may stay"
    );
}

#[test]
fn where_nothing_differs_nothing_is_found() {
    let of = result(&three(), &[1e9, 1e9, 1e9], 8);
    assert_eq!((of.is_enough(), of.differs(), of.found()), (true, Some(false), None));
}

#[test]
fn two_rounds_are_too_few() {
    let of = result(&three(), &[1e9, 0.5e9, 0.5e9], 2);
    assert_eq!((of.is_enough(), of.differs(), of.found()), (false, None, None), "however far apart they are");
    assert!((of.least_s - 6.0).abs() < 1e-9, "four rounds of three phases of half a second: {}", of.least_s);
}

#[test]
fn what_could_not_be_pinned_is_said() {
    let (mut events, bins) = search(&three(), &[1e9, 2e9, 1e9], 4);
    events.step(u64::MAX, &SearchStep::Failed { placement: 1, why: "core 1 is offline".to_owned() });
    let runs = [CommandRun { from_ns: 0, to_ns: None, code: None }];
    let means = events.means(&runs, (&bins, None), 0);
    let of = events.result(&means, PHASE_NS).expect("it has started");
    assert_ne!(of.best().map(|one| one.tried.class), Some(PlacementClass::SameCore), "it is not recommended");
    assert_eq!(of.left_out.last().map(String::as_str), Some("not pinned: same core, core 1 is offline"));
}
