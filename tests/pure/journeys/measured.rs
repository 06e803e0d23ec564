//! What `p` does where a measurement has spoken: a card that said worse, or a search.

use super::*;
use crate::world::change::own;
use vnettop::derive::placement;
use vnettop::sample::{FoundPlacement, PlacementClass};

/// The threads that `p` proposes to pin, each with its core.
fn proposed(stage: &mut Stage) -> Vec<(ThreadId, CoreSet)> {
    let effects = stage.press("pp");
    let [Effect::Pin(requests)] = &effects[..] else { panic!("a placement is applied: {}", stage.text(120, 40)) };
    requests.iter().map(|request| (request.thread, request.cores.clone())).collect()
}

/// Pins these, and lets a card find that worse.
fn pinned_worse(stage: &mut Stage, pins: &[(ThreadId, CoreSet)]) {
    for (thread, core) in pins {
        let old = "0-127".parse::<CoreSet>().expect("a list of cores");
        let (asked, got) = (core.clone(), core.clone());
        stage.event(Event::Pinned { thread: *thread, old, asked, got, at_ns: 0 });
        let runner = stage.world.threads.iter_mut().find(|runner| runner.sample.id == *thread).expect("it runs");
        runner.sample.allowed = Some(core.clone());
    }
    stage.press("<tick>");
    let mut metrics = stage.derive();
    own(&mut metrics).card = Some(scenes::card(Verdict::Worse));
    stage.state.receive(metrics);
}

#[test]
fn after_a_card_that_says_worse_undo_is_offered_first_and_the_same_placement_is_not_proposed_again() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let pins = proposed(&mut stage);
    pinned_worse(&mut stage, &pins);
    assert_eq!(stage.press("p"), [], "nothing is proposed while the pin stands");
    let frame = stage.text(120, 40);
    assert!(
        frame.contains("the pin made it worse (the mean fell") && frame.contains("U undoes it"),
        "U first:\n{frame}"
    );
    assert_eq!(stage.press("U"), [Effect::Restore], "and U is one key away");
    for (thread, _) in &pins {
        let got = "0-127".parse::<CoreSet>().expect("a list of cores");
        stage.event(Event::Restored { thread: *thread, got: got.clone(), at_ns: 0 });
        let runner = stage.world.threads.iter_mut().find(|runner| runner.sample.id == *thread).expect("it runs");
        runner.sample.allowed = Some(got);
    }
    stage.press("<tick><tick>p");
    let frame = stage.text(120, 40);
    assert!(frame.contains("not proposed again") && frame.contains("--pin search"), "what else can be done:\n{frame}");
    assert_eq!(stage.press("p"), [], "and p applies nothing");
    stage.press("<esc>");
    let other = scenes::proposal(pins[0].0, pins[1].0, [4, 96]);
    let metrics = stage.state.newest().expect("it runs");
    assert_eq!(stage.state.worse.against(metrics, &other), None, "another placement may still be proposed");
}

#[test]
fn a_card_that_changes_its_mind_contradicts_nothing() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let pins = proposed(&mut stage);
    pinned_worse(&mut stage, &pins);
    let mut metrics = stage.derive();
    own(&mut metrics).card = Some(scenes::card(Verdict::NoDifference));
    stage.state.receive(metrics);
    let same = scenes::proposal(pins[0].0, pins[1].0, [4, 5]);
    let metrics = stage.state.newest().expect("it runs");
    assert_eq!(stage.state.worse.against(metrics, &same), None, "the window was still filling");
}

/// What a search has found for the test on stage.
fn found(stage: &Stage, class: PlacementClass) -> FoundPlacement {
    let test = placement::test_kind(&stage.state.newest().expect("it runs").subject);
    FoundPlacement { test, class, steered: None, tuned: None, gain_ppm: Some(182_000), day: "2026-01-02".to_owned() }
}

#[test]
fn p_proposes_what_a_search_has_found_for_this_kind_of_test_and_says_so() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let rule = proposed(&mut stage);
    let of_rule: Vec<u32> = rule.iter().filter_map(|(_, core)| core.first()).map(|core| core / 64).collect();
    assert_eq!(of_rule[0], of_rule[1], "the rule keeps both on one socket");
    stage.state.found = vec![found(&stage, PlacementClass::OtherSocket)];
    stage.press("p");
    let frame = stage.text(120, 40);
    assert!(
        frame.contains("measured: other socket, 18 % faster than unpinned (vnettop run --pin search, 2026-01-02)"),
        "why:\n{frame}"
    );
    stage.press("<esc>");
    let sockets: Vec<u32> =
        proposed(&mut stage).iter().filter_map(|(_, core)| core.first()).map(|core| core / 64).collect();
    assert_ne!(sockets[0], sockets[1], "and that is what is applied");
    let mut other = found(&stage, PlacementClass::OtherSocket);
    other.test.streams += 1;
    stage.state.found = vec![other];
    assert_eq!(proposed(&mut stage), rule, "what was found for another kind of test is not proposed for this one");
}

#[test]
fn where_a_search_found_no_pin_faster_none_is_proposed() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    stage.state.found = vec![found(&stage, PlacementClass::Unpinned)];
    assert_eq!(stage.press("pp"), [], "nothing is applied");
    assert!(shows(&stage, "measured: for this kind of test no pin was faster"), "{}", stage.text(120, 40));
}
