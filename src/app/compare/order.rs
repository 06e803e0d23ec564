//! What is measured when: every path once a round, there and back, so that what changes slowly on the machine favours none; the treatments
//! of a load one after the other, and each of them first equally often.

use super::ComparePlan;
use crate::config::{hint, short};
use crate::networks::{KINDS, NetworkKind, Through};
use crate::sample::{Load, Treatment, Word};
use strum::VariantArray;

/// A path that is to be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    /// The kind of network.
    pub kind: NetworkKind,
    /// What its row is called: the name of its kind, with a number where it is asked for again.
    pub name: String,
}

/// One visit to a path: the network is made, measured, and taken away.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Visit {
    /// Its place among the selected.
    pub path: usize,
    /// The round, from 1.
    pub round: u32,
    /// The loads, each with a treatment, in their order.
    pub measurements: Vec<(Load, Treatment)>,
}

/// The paths of these names, all where none is given, without those that are to be skipped.
///
/// # Errors
/// A sentence that names the word which is no path, or says that nothing is left.
pub fn select(only: &[String], skip: &[String]) -> Result<Vec<Selected>, String> {
    let kind = |name: &String| {
        NetworkKind::named(name).ok_or_else(|| {
            let names = || KINDS.iter().map(|kind| kind.name);
            let all = || format!("use one of {}", names().collect::<Vec<_>>().join(", "));
            format!("there is no path called '{}': {}", short(name), hint(name, names(), all))
        })
    };
    let skipped = skip.iter().map(kind).collect::<Result<Vec<_>, _>>()?;
    let asked = if only.is_empty() { KINDS.to_vec() } else { only.iter().map(kind).collect::<Result<_, _>>()? };
    let mut selected: Vec<Selected> = Vec::new();
    for kind in asked.into_iter().filter(|kind| !skipped.contains(kind)) {
        let before = selected.iter().filter(|one| one.kind == kind).count();
        let name = if before == 0 { kind.name.to_owned() } else { format!("{} ({})", kind.name, before + 1) };
        selected.push(Selected { kind, name });
    }
    if selected.is_empty() {
        Err("nothing is left to compare: --skip names every path".to_owned())
    } else {
        Ok(selected)
    }
}

/// All visits in their order; `possible` tells of each path whether it can be made here.
pub(super) fn visits(plan: &ComparePlan, possible: &[bool]) -> Vec<Visit> {
    let mut visits = Vec::new();
    for round in 1..=plan.rounds {
        let mut paths: Vec<usize> = (0..plan.paths.len()).filter(|&path| possible[path]).collect();
        if round % 2 == 0 {
            paths.reverse();
        }
        for path in paths {
            let measurements = measurements(plan, path, round);
            if !measurements.is_empty() {
                visits.push(Visit { path, round, measurements });
            }
        }
    }
    visits
}

fn measurements(plan: &ComparePlan, path: usize, round: u32) -> Vec<(Load, Treatment)> {
    let kind = plan.paths[path].kind;
    let possible = kind.loads();
    let carries = |load: Load| possible.as_ref().is_none_or(|loads| loads.contains(&load.word()));
    let mut measurements = Vec::new();
    for (at, load) in plan.loads.iter().copied().filter(|load| carries(*load)).enumerate() {
        let mut treatments = treatments(plan, kind, load);
        let first = (round as usize + at + 1) % treatments.len();
        treatments.rotate_left(first);
        measurements.extend(treatments.into_iter().map(|treatment| (load, treatment)));
    }
    measurements
}

/// The treatments of a load on a kind of path. Only TCP as fast as it goes sends again because packets overtake each other.
fn treatments(plan: &ComparePlan, kind: NetworkKind, load: Load) -> Vec<Treatment> {
    let is_steered = plan.steers && load.is_bulk() && kind.through() == Through::Network;
    let wanted = |treatment: &Treatment| match treatment {
        Treatment::Unpinned => true,
        Treatment::Pinned => plan.pins,
        Treatment::PinnedAndSteered => plan.pins && is_steered,
        Treatment::Steered => is_steered && plan.steers_alone,
    };
    Treatment::VARIANTS.iter().copied().filter(wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn names(only: &[&str], skip: &[&str]) -> Result<Vec<String>, String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        select(&words(only), &words(skip)).map(|all| all.into_iter().map(|one| one.name).collect())
    }

    #[test]
    fn a_way_asked_for_twice_is_two_rows_and_a_word_that_is_none_is_named() {
        assert_eq!(names(&["veth", "veth", "tun"], &["tun"]), Ok(vec!["veth".to_owned(), "veth (2)".to_owned()]));
        assert_eq!(names(&[], &[]).map(|all| all.len()), Ok(KINDS.len()));
        assert!(names(&["vet"], &[]).expect_err("no path").contains("'vet': did you mean 'veth'?"));
        assert!(names(&["veth"], &["veth"]).expect_err("nothing").contains("nothing is left"));
    }

    #[test]
    fn every_path_is_measured_once_a_round_and_no_side_is_always_first() {
        let plan = ComparePlan {
            paths: select(&["veth".to_owned(), "proxy".to_owned(), "tun".to_owned()], &[]).expect("they exist"),
            loads: vec![Load::Tcp, Load::Udp],
            rounds: 4,
            length: Duration::from_secs(1),
            warm_up: Duration::from_secs(1),
            pins: true,
            steers: false,
            steers_alone: false,
            is_root: true,
        };
        let visits = visits(&plan, &[true, true, false]);
        let order: Vec<usize> = visits.iter().map(|visit| visit.path).collect();
        assert_eq!(order, [0, 1, 1, 0, 0, 1, 1, 0], "there and back, without what cannot be made");
        assert_eq!(visits[1].measurements.len(), 2, "the proxy carries no UDP");
        let first = |load| {
            let first = |visit: &Visit| visit.measurements.iter().find(|(other, _)| *other == load).map(|one| one.1);
            let is_pinned = |treatment: &Treatment| treatment.pins();
            visits.iter().filter(|visit| visit.path == 0).filter_map(first).filter(is_pinned).count()
        };
        assert_eq!((first(Load::Tcp), first(Load::Udp)), (2, 2), "pinned is first in half of the rounds");
    }

    #[test]
    fn tcp_is_steered_too_and_each_treatment_is_first_equally_often() {
        let plan = |rounds, pins, alone| ComparePlan {
            paths: select(&["veth".to_owned(), "unix".to_owned()], &[]).expect("they exist"),
            loads: vec![Load::Tcp, Load::Rr],
            rounds,
            length: Duration::from_secs(1),
            warm_up: Duration::from_secs(1),
            pins,
            steers: true,
            steers_alone: alone,
            is_root: true,
        };
        let of = |visit: &Visit, load| {
            let its = visit.measurements.iter().filter(move |(other, _)| *other == load);
            its.map(|one| one.1).collect::<Vec<_>>()
        };
        let visits_of = |plan: &ComparePlan, path| {
            visits(plan, &[true, true]).into_iter().filter(move |visit| visit.path == path).collect::<Vec<_>>()
        };
        for (alone, count) in [(false, 3_usize), (true, 4)] {
            let visits = visits_of(&plan(2 * u32::try_from(count).expect("few"), true, alone), 0);
            for treatment in &Treatment::VARIANTS[..count] {
                let first = visits.iter().filter(|visit| of(visit, Load::Tcp)[0] == *treatment).count();
                assert_eq!(first, 2, "{treatment:?} of {count}");
                assert!(visits.iter().all(|visit| of(visit, Load::Tcp).contains(treatment)));
            }
            assert!(visits.iter().all(|visit| of(visit, Load::Rr).iter().all(|one| !one.steers())));
        }
        let unix = visits_of(&plan(1, true, true), 1);
        assert!(of(&unix[0], Load::Tcp).iter().all(|one| !one.steers()), "nothing to steer in a socket");
        let alone = visits_of(&plan(1, false, true), 0);
        assert!(of(&alone[0], Load::Tcp).iter().all(|one| !one.pins()));
    }
}
