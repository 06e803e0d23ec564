//! Searches through made-up rates whose differences are known.

use super::super::Rounds;
use super::*;
use crate::migration_cost::chance::Chance;

/// What a made-up machine does to the rate.
#[derive(Clone, Copy)]
enum Noise {
    /// Each phase by itself, by this share.
    Still(f64),
    /// A walk at random of this share a phase, and 3 % of each phase.
    Walk(f64),
    /// Each phase by itself, by 5 %; one of ten stands still for most of its time.
    Stalls,
    /// Each phase by itself, the first placement by four times as much.
    Unlike(f64),
}

struct Searched {
    alike: bool,
    ranking: Vec<RankedPlacement>,
    dropped: Vec<(usize, u32)>,
    phases: usize,
}

impl Searched {
    fn differs(&self) -> bool {
        self.ranking.iter().any(|one| one.standing == PlacementStanding::Worse)
    }
}

/// A search among placements with these rates that has so many phases at most.
fn searched(seed: u64, rates: &[f64], noise: Noise, most: usize) -> Searched {
    let (mut chance, mut schedule) = (Chance::seeded(seed ^ 0xabcd), Rounds::new(seed, rates.len()));
    let (mut means, mut left, mut walk) = (PhaseMeans::none(rates.len()), vec![true; rates.len()], 0.0_f64);
    let (mut dropped, mut phases) = (Vec::new(), 0);
    while phases < most {
        let turn = schedule.next(&means);
        for placement in turn.dropped {
            left[placement] = false;
            dropped.push((placement, schedule.rounds()));
        }
        let Some((placement, round)) = turn.next else { break };
        let by = match noise {
            Noise::Still(by) => by * chance.normal(),
            Noise::Unlike(by) => by * chance.normal() * if placement == 0 { 4.0 } else { 1.0 },
            Noise::Stalls if chance.share() < 0.1 => -1.5,
            Noise::Stalls => 0.05 * chance.normal(),
            Noise::Walk(step) => {
                walk += step * chance.normal();
                walk + 0.03 * chance.normal()
            }
        };
        means.add(placement, round, rates[placement] * by.exp());
        phases += 1;
    }
    let all: Vec<usize> = (0..rates.len()).collect();
    Searched { alike: are_alike(&means, &all), ranking: ranking(&means, &left), dropped, phases }
}

#[test]
fn a_planted_cost_comes_last_and_a_planted_gain_first() {
    let rates = [1e9, 0.6e9, 1e9, 1.3e9, 1e9, 1e9, 1e9];
    for noise in [Noise::Still(0.08), Noise::Walk(0.05), Noise::Unlike(0.03), Noise::Stalls] {
        let found = |seed| {
            let of = searched(seed, &rates, noise, 120);
            let (first, last) = (of.ranking[0].placement, of.ranking.last().map(|one| (one.placement, one.standing)));
            first == 3 && last == Some((1, PlacementStanding::Worse))
        };
        let right = (0..20).filter(|&seed| found(seed)).count();
        assert!(right >= 18, "{right} of 20");
    }
}

#[test]
fn what_is_clearly_worse_gets_no_more_phases() {
    for seed in 0..20 {
        let of = searched(seed, &[1e9, 0.5e9, 1e9, 1e9], Noise::Still(0.05), 80);
        let rounds = of.dropped.iter().find(|(placement, _)| *placement == 1).map(|(_, rounds)| *rounds);
        assert!(rounds.is_some_and(|rounds| (3..=6).contains(&rounds)), "seed {seed}: {:?}", of.dropped);
        assert_eq!(of.dropped.len(), 1, "and nothing else is dropped: {:?}", of.dropped);
    }
}

#[test]
fn where_nothing_differs_nothing_is_said_to() {
    for noise in [Noise::Still(0.02), Noise::Still(0.2), Noise::Walk(0.1), Noise::Unlike(0.05), Noise::Stalls] {
        for placements in [3, 8] {
            let rates = vec![1e9; placements];
            let wrong = (0..200).filter(|&seed| searched(seed, &rates, noise, 64).differs()).count();
            assert!(wrong <= 4, "{wrong} of 200 searches among {placements} say that placements differ");
        }
    }
}

#[test]
fn a_search_ends_when_it_knows() {
    let alike = searched(1, &[1e9; 4], Noise::Still(0.005), 1000);
    assert_eq!(alike.phases, 24, "surely alike after six rounds of four");
    let one = searched(1, &[1e9, 0.5e9, 0.5e9], Noise::Still(0.02), 1000);
    assert!(one.phases < 20 && one.dropped.len() == 2, "one is left after {} phases", one.phases);
}

#[test]
fn every_round_has_every_placement_that_is_left_once_in_another_order() {
    let (mut schedule, means) = (Rounds::new(7, 5), PhaseMeans::none(5));
    let mut orders = Vec::new();
    for round in 0..4 {
        let order: Vec<usize> = (0..5)
            .map(|_| {
                let (placement, of_round) = schedule.next(&means).next.expect("nothing is known yet");
                assert_eq!(of_round, round, "one round after the other");
                placement
            })
            .collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4], "each has its phase");
        orders.push(order);
    }
    orders.dedup();
    assert!(orders.len() > 1, "and not always in the same order: {orders:?}");
    schedule.exclude(2);
    let next: Vec<usize> = (0..4).filter_map(|_| schedule.next(&means).next).map(|(placement, _)| placement).collect();
    assert!(!next.contains(&2), "what cannot be had is left out: {next:?}");
}

#[test]
fn a_phase_that_was_not_measured_is_no_zero() {
    let mut means = PhaseMeans::none(2);
    for round in 0..5 {
        means.add(0, round, 1e9 + f64::from(round));
        if round != 2 {
            means.add(1, round, 1e9);
        }
    }
    let ranked = ranking(&means, &[true, true]);
    assert!(ranked[1].against_best.is_some_and(|of| of.estimate.abs() < 0.01), "{ranked:?}");
}

/// The interval of an old search was −203 to +45.7 %, and beside it stood that nothing differed.
#[test]
fn nothing_is_called_alike_whose_interval_says_otherwise_and_no_rate_falls_by_more_than_all() {
    let mut seen = [0; 2];
    for noise in [Noise::Still(0.003), Noise::Still(0.02), Noise::Still(0.3), Noise::Walk(0.1), Noise::Stalls] {
        for (seed, rates) in (0..40).flat_map(|seed| [(seed, vec![1e9; 4]), (seed, vec![1e9, 0.98e9, 1e9, 0.4e9])]) {
            let of = searched(seed, &rates, noise, 24);
            for one in of.ranking.iter().filter_map(|one| Some((one.standing, one.against_best?))) {
                let (standing, Difference { estimate, from, to }) = one;
                assert!(-1.0 <= from && from <= estimate && estimate <= to, "{one:?}");
                let is_near = from >= -0.03 && to <= 0.03;
                assert!(is_near || !of.alike && standing != PlacementStanding::Same, "{one:?}");
                seen[usize::from(is_near)] += 1;
            }
            assert!(!of.alike || rates[1] > 0.99e9, "placements of which one has two fifths: {:?}", of.ranking);
        }
    }
    assert!(seen[0] > 100 && seen[1] > 100, "the cases have both: {seen:?}");
}
