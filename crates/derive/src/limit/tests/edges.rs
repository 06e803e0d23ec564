//! When another limit is shown, and when none.

use super::{RECEIVER, core, is, tcp, thread};
use crate::limit::scene::Scene;
use crate::limit::{Limit, LimitKind, LimitTrack};
use vnettop_sample::CoreSet;

#[test]
fn what_stands_on_an_edge_does_not_flicker() {
    let limit = |kind| Limit::new(kind, String::new(), Vec::new());
    let mut track = LimitTrack::default();
    let mut reported = |kind, is_whole| {
        track.settle_on(limit(kind), is_whole);
        track.shown.as_ref().map(|shown| shown.kind)
    };
    assert_eq!(reported(LimitKind::Nothing, false), Some(LimitKind::Nothing), "the first");
    assert_eq!(reported(LimitKind::Loss, false), Some(LimitKind::Nothing), "once");
    assert_eq!(reported(LimitKind::Nothing, false), Some(LimitKind::Nothing), "and over");
    assert_eq!(reported(LimitKind::Loss, false), Some(LimitKind::Nothing), "once again");
    assert_eq!(reported(LimitKind::Loss, false), Some(LimitKind::Loss), "twice in a row");
    assert_eq!(reported(LimitKind::Quota, true), Some(LimitKind::Quota), "a whole second of its own");
}

#[test]
fn nobody_is_sent_to_the_other_end_while_a_core_here_is_full() {
    let receives = Scene { sender: None, tcp: None, ..tcp() };
    let full = Scene { cores: vec![core(0, 0.5, 0.0), core(1, 1.0, 0.0), core(2, 0.8, 0.2)], ..receives };
    let text = "nothing makes it wait: core 1 is 100 % busy, its threads wait 0 %";
    is("its own core is full of others", &full, LimitKind::Nothing, text);
    let held_up = Scene { threads: vec![thread(RECEIVER, 1, 0.13, 0.27)], ..full.clone() };
    let text = "core 1 is 100 % busy: 87 % others, 13 % iperf3 server";
    is("its thread waits for that core", &held_up, LimitKind::Others, text);
    let elsewhere = Scene { handling: CoreSet::single(2), threads: vec![thread(RECEIVER, 0, 0.3, 0.0)], ..full };
    let text = "no thread waits, but core 2 on the path is 100 % busy";
    is("the core of its packets is full of others", &elsewhere, LimitKind::Nothing, text);
}
