//! A program between two taps that holds what it carries, as a guest that is slow does.

use super::{PROGRAMS, Part, Told, alone, assert_same, so_far, stages};
use crate::ground::forwarder::{FAR, Forwarder};
use crate::ground::group::Group;
use crate::ground::{needs, needs_two_cores};

/// A program that holds each frame so long, ms: that is what the hop through it takes, and no other takes a millisecond.
fn held(ms: u32) {
    needs(PROGRAMS);
    needs_two_cores();
    let _alone = alone();
    let first = Group::first();
    let between = Forwarder::start(&["--delay-us", &(ms * 1_000).to_string()]);
    let reader = Part::on(&between.far, "1", &format!("read {FAR} 7000"));
    let sender = Part::on(&between.near, "0", &format!("send {FAR} 7000 500"));
    // Nobody of it waits for a core that another program has.
    for pid in [between.pid(), reader.pid(), sender.pid()] {
        first.take(pid);
    }
    let told = Told::of(&[sender.pid(), reader.pid()], 16);
    let through = told.hop_from("t1");
    assert_eq!(through["to"]["name"], "t2", "{through}");
    assert_same("the mean through the program", told.mean(through).0, f64::from(ms) * 1e3, 0.1);
    assert_same("the median through the program", so_far(through, "p50_us"), f64::from(ms) * 1e3, 0.1);
    for hop in stages(told.last(), "hop", false).into_iter().filter(|hop| hop["from"]["name"] != "t1") {
        assert!(so_far(hop, "p50_us") < 500.0, "no other step takes long: {}", told.summary());
    }
    told.says(&["packets wait", &format!("in python3 {}", between.pid())]);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_program_that_holds_what_it_carries_for_5_ms_is_the_wait() {
    held(5);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_program_that_holds_what_it_carries_for_20_ms_is_the_wait() {
    held(20);
}
