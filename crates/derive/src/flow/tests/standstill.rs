//! A time in which nothing was read: vnettop was held up, or the whole machine stood still.

use super::*;
use crate::jitter::Jitter;

/// The ticks of before, then one late by 1.5 s whose pulses all lie at its end, then as before.
const LATE: u64 = 8;
const STOOD_NS: u64 = 3 * TICK;

/// A test of which `moved` says what has arrived at an instant, sampled with that gap.
fn sampled(moved: impl Fn(u64) -> u64 + Copy) -> FlowTrack {
    let (mut track, mut previous) = (FlowTrack::default(), None);
    for tick in 0..20 {
        let shift = if tick >= LATE { STOOD_NS } else { 0 };
        let mut next = sample(tick);
        next.at_ns += shift;
        let mut flow = end(tick, 2, SERVER, |at| Some((0, moved(at + shift)))).expect("it exists");
        flow.pulses.iter_mut().for_each(|pulse| pulse.at_ns += shift);
        next.flows = vec![flow];
        track.observe(previous.as_ref(), &next, &links::between(previous.as_ref(), &next));
        previous = Some(next);
    }
    track
}

/// Bytes over time, from the first bin to the last, bits/s.
fn truth(track: &FlowTrack, moved: impl Fn(u64) -> u64) -> f64 {
    let (from_ns, to_ns) =
        track.bins.first().zip(track.bins.last()).map_or((0, 1), |(one, end)| (one.from_ns, end.to_ns));
    (moved(to_ns) - moved(from_ns)) as f64 * 8e9 / (to_ns - from_ns) as f64
}

#[test]
fn while_vnettop_alone_is_held_up_the_rate_goes_on_and_there_is_no_dip() {
    let moved = |at_ns| steady(0, at_ns);
    let track = sampled(moved);
    assert_steady(&track, 40, 1e8);
    assert!(track.bins.iter().zip(track.bins.iter().skip(1)).all(|(one, next)| one.to_ns == next.from_ns), "no gap");
    let longest_ns = track.bins.iter().map(Bin::length_ns).max().expect("there are bins");
    assert!((STOOD_NS..STOOD_NS + 3 * BIN_NS).contains(&longest_ns), "of the gap the sum is known: {longest_ns} ns");
    let jitter = Jitter::of(&track.bins).expect("enough bins");
    assert!(jitter.longest_dip_s == 0.0 && jitter.cv.is_some_and(|cv| cv < 1e-3), "{jitter:?}");
}

#[test]
fn a_standstill_of_the_whole_machine_is_a_dip_and_the_mean_is_bytes_over_time() {
    let stop_ns = tick_ns(LATE - 1);
    // It stands still, then catches up at twice the rate.
    let moved = |at_ns: u64| {
        let behind_ns =
            STOOD_NS.saturating_sub(at_ns.saturating_sub(stop_ns + STOOD_NS)).min(at_ns.saturating_sub(stop_ns));
        steady(0, at_ns - behind_ns)
    };
    let track = sampled(moved);
    let jitter = Jitter::of(&track.bins).expect("enough bins");
    let mean = truth(&track, moved);
    assert!((jitter.mean / mean - 1.0).abs() < 0.01, "{jitter:?}, bytes over time {mean}");
    assert!((1.4..1.9).contains(&jitter.longest_dip_s), "it stood for 1.5 s: {jitter:?}");
    assert!(jitter.cv.is_some_and(|cv| cv > 0.3), "{jitter:?}");
}

#[test]
fn a_connection_that_was_idle_before_is_not_stuck_with_what_it_has_just_sent() {
    let track = |last: u64| {
        run(0..last, |tick, sample| sample.flows.extend(stuck(tick, CLIENT, (400, 300), u32::from(tick > 20) * 37)))
            .metrics()
    };
    let one = &track(22).connections[0];
    assert!(
        one.controls() && one.silent_s() > Some(9.0) && one.stuck_s() < Some(1.0),
        "it has just been sent: {one:?}"
    );
    let one = &track(26).connections[0];
    assert!(one.is_stuck() && one.stuck_s() < Some(4.0), "nothing arrives since then: {one:?}");
}
