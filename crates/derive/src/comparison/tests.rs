//! Comparisons made up of known rates.

use super::*;
use crate::migration_cost::chance::Chance;
use vnettop_sample::{COMPARISON_VERSION, ComparisonPlan, Machine, Treatment};

fn path(name: &str, unpinned: &[f64], pinned: &[f64]) -> ComparedPath {
    let measured = |pinned: bool, rates: &[f64]| {
        let one = move |(at, &rate): (usize, &f64)| Measurement {
            rate: Some(rate),
            busy_cores: Some(1.5),
            ..Measurement::begun(
                u32::try_from(at + 1).expect("few"),
                Load::Tcp,
                if pinned { Treatment::Pinned } else { Treatment::Unpinned },
            )
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
            steers: false,
            steers_alone: false,
            unsteered: None,
            iperf3: None,
            is_root: true,
        },
        interrupted: false,
        paths,
    }
}

#[test]
fn the_interval_of_a_mean_is_that_of_student_on_the_log_scale_and_one_round_has_none() {
    let known = Estimate::of(vec![10.0, 11.0, 12.0]).expect("three rounds");
    let Difference { from, to, .. } = known.interval.expect("an interval");
    let half = 9.925 / 3.0_f64.sqrt() / 11.0;
    assert!((known.mean - 11.0).abs() < 1e-9 && (to - 11.0 * half.exp()).abs() < 1e-2, "{known:?}");
    assert!((from - 11.0 / half.exp()).abs() < 1e-2, "it lies around the mean: {known:?}");
    assert!(known.deviation().is_some_and(|deviation| (deviation - 1.0).abs() < 1e-9), "{known:?}");
    assert_eq!(Estimate::of(vec![7.0]).and_then(|one| one.interval), None);
    assert_eq!(Estimate::of(Vec::new()), None);
}

#[test]
fn the_order_names_the_places_that_a_path_can_have() {
    let table = &tables(&comparison(vec![
        path("slow", &[1.0, 1.1, 0.9], &[2.0, 2.2, 1.8]),
        path("fast", &[10.0, 10.1, 9.9], &[]),
        path("as-fast", &[10.05, 9.95, 10.1], &[]),
        path("once", &[5.0], &[]),
    ]))[0];
    let reported: Vec<(&str, Option<(usize, usize)>)> = table.rows.iter().map(|row| (&*row.name, row.place)).collect();
    assert_eq!(
        reported,
        [("as-fast", Some((1, 3))), ("fast", Some((1, 3))), ("once", None), ("slow", Some((3, 4)))],
        "of one round nothing is said, and it may stand anywhere"
    );
    let gain = table.rows[3].gain.expect("both sides in three rounds");
    assert!((gain.mean - 1.0).abs() < 1e-9 && gain.rounds == 3, "{gain:?}");
    assert_eq!(gain.verdict(), Some(PathVerdict::Faster), "{gain:?}");
    let slow = table.rows[3].unpinned.as_ref().expect("it has a rate");
    assert_eq!(slow.cpu_s_each(slow.busy_cores), Some(1.5), "seconds for a bit");
}

/// The same path twice, many times over: what is said to differ is what chance makes differ.
#[test]
fn the_same_path_twice_is_seldom_said_to_differ() {
    let mut chance = Chance::seeded(42);
    for (rounds, noise) in [(2, 0.1), (3, 0.02), (3, 0.1), (3, 0.4), (5, 0.1), (10, 0.3)] {
        let mut wrong = 0;
        for _ in 0..2000 {
            let mut rates = || (0..rounds).map(|_| 20.0 * (1.0 + noise * chance.normal()).max(0.0)).collect::<Vec<_>>();
            let (one, other) = (Estimate::of(rates()).expect("rounds"), Estimate::of(rates()).expect("rounds"));
            let verdict = one.against(&other).map(PathVerdict::from);
            wrong += u32::from(matches!(verdict, Some(PathVerdict::Faster | PathVerdict::Slower)));
        }
        println!("{rounds} rounds that vary by {noise}: {wrong} of 2000 differ");
        assert!(wrong <= 32, "{wrong} of 2000 with {rounds} rounds that vary by {noise}, and 20 are promised");
    }
}

#[test]
fn paths_that_differ_by_a_fifth_are_found_to() {
    let mut chance = Chance::seeded(43);
    for (rounds, noise) in [(3, 0.02), (5, 0.05), (10, 0.1)] {
        let mut found = 0;
        for _ in 0..500 {
            let mut rates = |mean: f64| (0..rounds).map(|_| mean * (1.0 + noise * chance.normal())).collect::<Vec<_>>();
            let (one, other) = (Estimate::of(rates(1.0)).expect("rounds"), Estimate::of(rates(0.8)).expect("rounds"));
            found += u32::from(one.against(&other).map(PathVerdict::from) == Some(PathVerdict::Faster));
        }
        assert!(found >= 450, "{found} of 500 with {rounds} rounds that vary by {noise}");
    }
}

/// `11.1 ± 5.97` and `8.69 ± 1.64` Gbit/s were once no difference.
#[test]
fn what_the_rounds_do_not_show_is_inconclusive_and_no_equality() {
    let tables =
        tables(&comparison(vec![path("veth", &[8.7, 11.1, 13.5], &[]), path("bridge", &[8.0, 8.7, 9.4], &[])]));
    let PathGroups { same, open } = &tables[0].groups;
    assert_eq!((same.len(), &open[..]), (0, &[vec!["veth".to_owned(), "bridge".to_owned()]][..]));
}

#[test]
fn a_group_does_not_differ_only_where_any_two_of_it_are_within_three_percent() {
    let steady = |name: &str, rate: f64| path(name, &[rate * 0.9999, rate, rate * 1.0001], &[]);
    // Each is within 3 % of its neighbour, the outer ones are not of each other.
    let tables = tables(&comparison(vec![
        steady("a", 104.0),
        steady("b", 102.0),
        steady("c", 100.0),
        path("wide", &[60.0, 90.0, 120.0], &[]),
        steady("far", 50.0),
        path("once", &[101.0], &[]),
    ]));
    let PathGroups { same, open } = &tables[0].groups;
    assert_eq!(same, &[vec!["a", "b"], vec!["b", "c"]]);
    assert_eq!(open, &[vec!["a", "b", "wide"], vec!["b", "c", "wide"], vec!["wide", "far"]]);
}

/// Whatever is measured: the groups say of each pair what its own interval says.
#[test]
fn groups_say_of_every_pair_what_its_interval_says() {
    let mut chance = Chance::seeded(44);
    let mut seen = [0; 2];
    for _ in 0..300 {
        let noise = 0.03 * chance.share().powi(3);
        let paths = 2 + chance.below(7);
        let names: Vec<String> = (0..paths).map(|nth| format!("p{nth}")).collect();
        let mut made = |name: &String| {
            let (mean, rounds) = (1e9 * (1.0 + 0.03 * chance.share()), 1 + chance.below(6));
            path(name, &(0..rounds).map(|_| mean * (1.0 + noise * chance.normal())).collect::<Vec<_>>(), &[])
        };
        let table = tables(&comparison(names.iter().map(&mut made).collect())).remove(0);
        for (one, other) in table.rows.iter().flat_map(|one| table.rows.iter().map(move |other| (one, other))) {
            let rate = |row: &PathRow| row.unpinned.as_ref().map(|side| side.rate.clone()).expect("it has one");
            if one.name >= other.name {
                continue;
            }
            let both = |groups: &[Vec<String>]| {
                groups.iter().filter(|group| group.contains(&one.name) && group.contains(&other.name)).count() > 0
            };
            let within = |of: Difference| of.from >= -0.03 && of.to <= 0.03;
            let ways = [rate(one).against(&rate(other)), rate(other).against(&rate(one))];
            let (same, open) = (both(&table.groups.same), both(&table.groups.open));
            assert!(!same || ways.into_iter().flatten().all(within), "{ways:?}");
            assert!(same || open || ways[0].is_none() || ways.iter().flatten().all(|of| of.from > 0.0 || of.to < 0.0));
            seen[0] += u32::from(same);
            seen[1] += u32::from(open);
        }
    }
    assert!(seen[0] > 100 && seen[1] > 100, "the cases have both: {seen:?}");
}

/// Pinning costs, steering mends that, and steering alone was tried in one round.
#[test]
fn each_treatment_has_its_gain_against_the_unpinned_rate_and_its_retransmits() {
    let mut veth = path("veth", &[10.0, 10.1, 9.9], &[8.0, 8.1, 7.9]);
    let mut more = |treatment, rates: &[f64], again| {
        for (at, &rate) in rates.iter().enumerate() {
            let begun = Measurement::begun(u32::try_from(at + 1).expect("few"), Load::Tcp, treatment);
            veth.measurements.push(Measurement { rate: Some(rate), retransmits: again, ..begun });
        }
    };
    more(Treatment::PinnedAndSteered, &[20.0, 20.2, 19.8], Some(4));
    more(Treatment::Steered, &[15.0], None);
    let nothing = Measurement::begun(2, Load::Tcp, Treatment::Steered);
    veth.measurements.push(Measurement { missing: Some("nothing to steer".to_owned()), ..nothing });
    let row = &tables(&comparison(vec![veth]))[0].rows[0];
    let gains = [Treatment::Pinned, Treatment::PinnedAndSteered, Treatment::Steered].map(|of| row.gain_of(of));
    let gains = gains.map(|gain| gain.map(|gain| (format!("{:.0}", gain.mean * 100.0), gain.verdict())));
    let [faster, slower] = [PathVerdict::Faster, PathVerdict::Slower].map(Some);
    let known = |percent: &str, verdict| Some((percent.to_owned(), verdict));
    assert_eq!(gains, [known("-20", slower), known("100", faster), known("50", None)]);
    assert_eq!(row.steered.as_ref().and_then(|side| side.retransmits), Some(4.0));
    assert_eq!(row.pinned.as_ref().and_then(|side| side.retransmits), None, "not known is not 0");
    assert_eq!((row.missing.as_deref(), row.unsteered.as_deref()), (None, Some("nothing to steer")));
}
