//! What a tuning tries on a path, and what of it is said not to be tried.

use super::cores::flowing;
use super::*;
use crate::placement;
use vnettop_sample::{FoundPlacement, PlacementClass, RunAsked, SteerSetting, SteerValue, Steering, TestKind};

fn tuned(metrics: &TestMetrics) -> (Vec<String>, Vec<String>) {
    let asked = RunAsked { tune: true, ..RunAsked::default() };
    let found = placement::treatments(metrics, &asked).expect("there is something to try");
    (found.placements.iter().map(vnettop_sample::TriedPlacement::words).collect(), found.left_out)
}

fn two_cores(change: impl FnOnce(&mut Vec<Steering>)) -> TestMetrics {
    let mut metrics = flowing(4, 1, 2, change);
    metrics.flow.connections[0].carries = true;
    metrics
}

#[test]
fn each_setting_is_tried_alone_and_what_is_not_says_why() {
    let (tried, left_out) = tuned(&two_cores(|_| ()));
    insta::assert_snapshot!(tried.into_iter().chain(left_out).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_mask_that_is_set_already_is_tried_without_and_not_twice() {
    let (tried, _) = tuned(&two_cores(|all| all[1].rps = vec!["2".parse().expect("a core")]));
    assert!(tried.contains(&"unpinned, packets on the cores that send them".to_owned()), "{tried:?}");
    assert!(!tried.contains(&"unpinned, packets on the receiver's core 2".to_owned()), "that is how it is: {tried:?}");
    assert!(tried.contains(&"unpinned, packets on the sender's core 1".to_owned()), "{tried:?}");
}

#[test]
fn a_backlog_that_drops_is_lengthened() {
    let mut metrics = two_cores(|_| ());
    let load = metrics.machine_mut().cores[1].load.as_mut().expect("online");
    load.softnet_dropped_per_s = Some(40.0);
    let (tried, left_out) = tuned(&metrics);
    let has = |lines: &[String]| lines.iter().any(|line| line.contains("netdev_max_backlog"));
    // The fixture's namespaces have no loopback link of vnettop's own, which that setting is named by.
    assert!(has(&tried) != has(&left_out), "{tried:?} {left_out:?}");
}

#[test]
fn what_a_tuning_found_is_proposed_on_each_link_of_the_path() {
    let metrics = two_cores(|_| ());
    let found = FoundPlacement {
        test: TestKind::default(),
        class: PlacementClass::Unpinned,
        steered: None,
        tuned: Some((SteerSetting::Gro, SteerValue::Number(1))),
        gain_ppm: Some(80_000),
        day: "2026-01-02".to_owned(),
    };
    let none = || Err("no pin was faster".to_owned());
    let proposal = placement::with_measured_steers(&metrics, none(), &found, "measured").expect("it is proposed");
    let (of_links, others): (Vec<_>, Vec<_>) =
        proposal.steers.iter().partition(|steer| steer.request.setting == SteerSetting::Gro);
    assert_eq!(proposal.steps.len(), 0, "no pin with it");
    let is_line = |line: &str| line.contains("ethtool -K ") && line.contains(" gro on");
    assert!(!of_links.is_empty(), "where the data are received");
    assert!(of_links.iter().all(|steer| steer.is_on && steer.now == "off" && is_line(&steer.shell_line)), "each is on");
    assert!(others.iter().all(|steer| !steer.is_on), "a core for the packets stays a matter of choice");
    assert!(!placement::is_tuned(&metrics, &found), "it is off where the data are received");
    let mut kept = metrics;
    let offloads = &mut Arc::make_mut(&mut kept.machine_mut().facts).offloads;
    for link in Arc::make_mut(offloads) {
        (link.gro, link.unwanted) = (true, Vec::new());
    }
    assert!(placement::is_tuned(&kept, &found), "once it was kept, nothing of it is left to propose");
}
