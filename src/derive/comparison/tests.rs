//! Comparisons made up of known rates.

use super::*;
use crate::sample::{COMPARISON_VERSION, ComparisonPlan, Machine};

fn path(name: &str, unpinned: &[f64], pinned: &[f64]) -> ComparedPath {
    let measured = |pinned: bool, rates: &[f64]| {
        let one = move |(at, &rate): (usize, &f64)| Measurement {
            rate: Some(rate),
            busy_cores: Some(1.5),
            ..Measurement::begun(u32::try_from(at + 1).expect("few"), Load::Tcp, pinned)
        };
        rates.iter().enumerate().map(one).collect::<Vec<_>>()
    };
    ComparedPath {
        name: name.to_owned(),
        what: String::new(),
        skipped: None,
        links: Vec::new(),
        measurements: [measured(false, unpinned), measured(true, pinned)].concat(),
    }
}

fn comparison(paths: Vec<ComparedPath>) -> Comparison {
    Comparison {
        version: COMPARISON_VERSION,
        vnettop: String::new(),
        began_ms: 0,
        machine: Machine::default(),
        plan: ComparisonPlan {
            seconds: 3.0,
            warm_up_s: 1.0,
            rounds: 3,
            loads: vec![Load::Tcp, Load::Rr],
            pins: true,
            iperf3: None,
            is_root: true,
        },
        interrupted: false,
        paths,
    }
}

#[test]
fn the_interval_is_that_of_student_and_one_round_has_none() {
    let known = Estimate::of(&[10.0, 11.0, 12.0]).expect("three rounds");
    let (from, to) = known.interval.expect("an interval");
    assert!((known.mean - 11.0).abs() < 1e-9 && (to - 11.0 - 4.303 / 3.0_f64.sqrt()).abs() < 1e-3, "{known:?}");
    assert!((from + to - 22.0).abs() < 1e-9, "it lies around the mean");
    assert_eq!(Estimate::of(&[7.0]).and_then(|one| one.interval), None);
    assert_eq!(Estimate::of(&[]), None);
}

#[test]
fn the_order_names_the_places_that_a_path_can_have() {
    let table = &tables(&comparison(vec![
        path("slow", &[1.0, 1.1, 0.9], &[2.0, 2.2, 1.8]),
        path("fast", &[10.0, 10.1, 9.9], &[]),
        path("as-fast", &[10.05, 9.95, 10.1], &[]),
        path("once", &[5.0], &[]),
    ]))[0];
    let told: Vec<(&str, Option<(usize, usize)>)> = table.rows.iter().map(|row| (&*row.name, row.place)).collect();
    assert_eq!(
        told,
        [("as-fast", Some((1, 3))), ("fast", Some((1, 3))), ("once", None), ("slow", Some((3, 4)))],
        "of one round nothing is said, and it may stand anywhere"
    );
    let gain = table.rows[3].gain.expect("both sides in three rounds");
    assert!((gain.mean - 1.0).abs() < 1e-9 && gain.interval.is_some_and(|(from, to)| to - from < 1e-9), "{gain:?}");
    let slow = table.rows[3].unpinned.as_ref().expect("it has a rate");
    assert_eq!(slow.cpu_s_each(slow.busy_cores), Some(1.5), "seconds for a bit");
}

/// The same path twice, many times over: what is said to differ is what chance makes differ.
#[test]
fn the_same_path_twice_is_seldom_told_apart() {
    let mut state = 42_u64;
    let mut noise = || {
        // The sum of twelve uniform numbers is near enough to normal.
        (0..12)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1_u64 << 53) as f64
            })
            .sum::<f64>()
            - 6.0
    };
    for rounds in [2, 3, 5, 10] {
        let mut told_apart = 0;
        for _ in 0..1000 {
            let mut rates = || (0..rounds).map(|_| 20.0 + 2.0 * noise()).collect::<Vec<_>>();
            let (one, other) = (Estimate::of(&rates()), Estimate::of(&rates()));
            told_apart += u32::from(one.zip(other).and_then(|(one, other)| one.differs_from(&other)) == Some(true));
        }
        assert!(told_apart <= 50, "{told_apart} of 1000 with {rounds} rounds");
    }
}

#[test]
fn each_group_of_paths_that_do_not_differ_is_named_once_and_whole() {
    let spread = |name: &str, from: f64, to: f64| path(name, &[from, to, f64::midpoint(from, to)], &[]);
    // With three rounds half an interval is about 1.24 of what lies between the outer two.
    let paths = vec![
        spread("a", 99.0, 101.0),
        spread("b", 95.0, 99.0),
        spread("c", 92.0, 93.0),
        spread("d", 50.0, 50.5),
        spread("e", 30.0, 31.0),
        spread("f", 1.0, 70.0),
        path("g", &[40.0], &[]),
    ];
    let tables = tables(&comparison(paths));
    assert_eq!(tables[0].alike(), [vec!["a", "b", "f"], vec!["b", "c", "f"], vec!["d", "f"], vec!["f", "e"]]);
}
