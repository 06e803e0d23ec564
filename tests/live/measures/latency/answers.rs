//! Questions and answers over TCP: what both ways take is a part of what the client waits, the larger the longer the way is.

use super::{FAR, PROGRAMS, Part, Told, alone, stages};
use crate::ground::forwarder::{self, Forwarder};
use crate::ground::{Netns, needs, needs_two_cores, veth_pair};
use serde_json::Value;

/// The sum of the means of what a packet passes both ways, and the client's own mean from asking to having read the answer, µs.
fn both_ways(near: &Netns, far: &Netns, address: &str, pause_ms: u32) -> (f64, f64) {
    let answers = Part::on(far, "1", &format!("answer {address} 7000"));
    let asks = Part::on(near, "0", &format!("ask {address} 7000 {pause_ms}"));
    let told = Told::of(&[asks.pid(), answers.pid()], 16);
    let of = |name: &str, is_back: bool| {
        let found = stages(told.last(), name, is_back).into_iter();
        found
            .map(|stage| told.mean(stage))
            .inspect(|(_, count)| assert!(*count > 100.0, "{count} {name}"))
            .map(|one| one.0)
            .collect::<Vec<f64>>()
    };
    let mut sum = 0.0;
    for is_back in [false, true] {
        assert!(!of("hop", is_back).is_empty(), "there are hops both ways: {}", told.summary());
        assert_eq!(of("socket", is_back).len(), 1, "there is a socket at both ends: {}", told.summary());
        sum += ["qdisc", "hop", "socket"].iter().flat_map(|name| of(name, is_back)).sum::<f64>();
    }
    // The client's own is how long it rests between two questions.
    let own: Vec<&Value> =
        stages(told.last(), "answer", false).into_iter().filter(|one| one["tid"] == answers.pid()).collect();
    assert_eq!(own.len(), 1, "the server's own time is known: {}", told.summary());
    sum += told.mean(own[0]).0;
    let truth = asks.measured().within(&told.span_ns).mean();
    eprintln!("both ways {sum:.1} of {truth:.1} us: {:.0} %", sum / truth * 100.0);
    (sum, truth)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_question_and_its_answer_wait_is_a_part_of_the_round_trip() {
    needs(PROGRAMS);
    needs_two_cores();
    let _alone = alone();
    let (near, far) = veth_pair();
    let (sum, truth) = both_ways(&near, &far, FAR, 2);
    assert!(sum <= truth, "{sum:.1} us of {truth:.1} us");
    assert!(sum >= truth * 0.85, "{sum:.1} us of {truth:.1} us");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_question_and_its_answer_wait_is_the_round_trip_where_the_way_is_long() {
    needs(PROGRAMS);
    needs_two_cores();
    let _alone = alone();
    let between = Forwarder::start(&["--delay-us", "5000"]);
    let (sum, truth) = both_ways(&between.near, &between.far, forwarder::FAR, 2);
    assert!(sum <= truth * 1.02 && sum >= truth * 0.9, "{sum:.1} us of {truth:.1} us");
}
