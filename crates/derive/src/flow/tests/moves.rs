//! Moves in the bins of the flow.

use super::*;

#[test]
fn traced_moves_fall_into_the_bin_of_their_instant() {
    let at = |ms: u64| 10_000 * MS + ms * MS;
    let moves = [(at(1234), 0, 1), (at(1250), 1, 2), (at(1399), 2, 3), (at(1530), 3, 9)];
    let track = run(0..8, |tick, sample| {
        sample.flows.extend(end(tick, 1, SERVER, |at| Some((0, steady(0, at)))));
        let here = |at_ns: u64| at_ns > tick_ns(tick) - TICK && at_ns <= tick_ns(tick);
        let moves = moves.iter().filter(|(at_ns, ..)| here(*at_ns));
        let moves = moves.map(|&(at_ns, from, to)| Move { at_ns, tid: 7, from, to }).collect();
        sample.trace =
            Some(Trace { source: TraceSource::Ftrace, lost: 0, partly: Vec::new(), short_lived: None, moves });
    });
    let bin = |ms: u64| *track.bins.iter().find(|bin| bin.from_ns == at(ms)).expect("a bin");
    assert_eq!((bin(1200).moves.llc, bin(1200).moves.node), (1, 1), "two moves in one bin, by class");
    assert_eq!(bin(1300).moves.llc, 1, "the next bin has the third");
    assert!((bin(1500).unclassed - 1.0).abs() < 1e-9, "a core that no topology knows has no class");
    let (moves, unclassed) = track
        .bins
        .iter()
        .fold((0, 0.0), |(moves, unclassed), bin| (moves + bin.moves.llc + bin.moves.node, unclassed + bin.unclassed));
    assert!(moves == 3 && (unclassed - 1.0).abs() < 1e-9, "each of them once: {moves} {unclassed}");
}

#[test]
fn records_that_a_trace_lost_are_moves_of_watched_threads_only_as_far_as_these_were_counted() {
    let moved = |source, migrations: fn(u64) -> Option<u64>| {
        let track = run(0..8, |tick, sample| {
            sample.flows.extend(end(tick, 1, SERVER, |at| Some((0, steady(0, at)))));
            sample.threads.push(thread(0, tick_ns(tick), migrations(tick), 0));
            // One event comes a tick before the count that holds it.
            let moves =
                if tick == 3 { vec![Move { at_ns: tick_ns(3) + 1, tid: 7, from: 0, to: 1 }] } else { Vec::new() };
            sample.trace = Some(Trace { source, lost: 10 * tick, partly: Vec::new(), short_lived: None, moves });
        });
        let all = |bin: &Bin| bin.unclassed + (bin.moves.llc + bin.moves.node) as f64;
        track.bins.iter().map(all).sum::<f64>()
    };
    let near = |is: f64, wanted: f64| (is - wanted).abs() < 1e-9;
    let still = moved(TraceSource::Perf, |tick| Some(40 + u64::from(tick > 3)));
    assert!(near(still, 1.0), "a thread that moved once moved once, whoever else was moved: {still}");
    let counted = moved(TraceSource::Perf, |tick| Some(40 + u64::from(tick > 3) + 2 * u64::from(tick > 4)));
    assert!(near(counted, 3.0), "what was counted and not told has happened: {counted}");
    let unknown = moved(TraceSource::Perf, |_| None);
    assert!(near(unknown, 1.0), "whose the lost records of a whole machine are is not known: {unknown}");
    let filtered = moved(TraceSource::Ftrace, |_| None);
    assert!(filtered > 50.0, "a trace that asks for watched threads alone lost theirs: {filtered}");
}

#[test]
fn counted_moves_are_spread_over_the_bins_of_their_tick() {
    let counted = |migrations: fn(u64) -> Option<u64>| {
        run(0..8, |tick, sample| {
            sample.flows.extend(end(tick, 1, SERVER, |at| Some((0, steady(0, at)))));
            let core = u32::from(tick >= 4);
            sample.threads.push(thread(0, tick_ns(tick), migrations(tick), core));
        })
    };
    for (track, moves) in [(counted(|tick| Some(if tick >= 4 { 17 } else { 7 })), 10.0), (counted(|_| None), 1.0)] {
        let sum: f64 = track.bins.iter().map(|bin| bin.unclassed).sum();
        assert!((sum - moves).abs() < 1e-9, "all {moves} are in the bins: {sum}");
        let inside = track.bins.iter().filter(|bin| bin.unclassed > 0.0);
        let inside: Vec<f64> = inside.map(|bin| bin.unclassed / moves).collect();
        assert_eq!(inside.len(), 6, "five bins' time, beginning and ending within one: {inside:?}");
        assert!(inside[1..5].iter().all(|share| (share - 0.2).abs() < 1e-9), "evenly: {inside:?}");
    }
}
