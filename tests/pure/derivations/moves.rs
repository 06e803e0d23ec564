//! Moves of threads, from counters and from a trace, and whether a thread is pinned.

use super::*;
use vnettop::derive::FindingId;

#[test]
fn moves_are_classed_by_the_smallest_circle_that_holds_both() {
    let machine = topology(32);
    let class = |from, to| MoveClass::of(&machine, from, to);
    assert_eq!(class(0, 1), Some(MoveClass::Smt));
    assert_eq!(class(0, 2), Some(MoveClass::Cluster));
    assert_eq!(class(0, 5), Some(MoveClass::Llc));
    assert_eq!(class(0, 9), Some(MoveClass::Node));
    assert_eq!(class(0, 20), Some(MoveClass::Socket));
    assert_eq!(class(0, 99), None, "a core nobody knows has no class");
    let mut bare = topology(32);
    bare.cores.iter_mut().for_each(|place| place.cluster = None);
    assert_eq!(MoveClass::of(&bare, 0, 2), Some(MoveClass::Llc), "without cluster files it is the cache");
}

#[test]
fn counted_moves_are_the_kernels_and_sampled_ones_are_an_under_count() {
    let at =
        |at_ns, core, migrations| Sample { threads: vec![thread(101, 7, at_ns, core, migrations)], ..sample(at_ns) };
    let counted = last(vec![at(SECOND, 0, Some(40)), at(2 * SECOND, 1, Some(43))]);
    let moves = &counted.threads[0];
    assert_eq!((moves.moves, moves.moves_per_s, moves.evidence), (43, Some(3.0), Evidence::Counted));
    assert_eq!(moves.by_class.smt, 1, "of the three moves one was seen from 0 to its sibling 1");
    assert_eq!(moves.cpu, Some(0.5), "half a core");
    let sampled = last(vec![at(SECOND, 0, None), at(2 * SECOND, 1, None), at(3 * SECOND, 1, None)]);
    let moves = &sampled.threads[0];
    assert_eq!((moves.moves, moves.moves_per_s, moves.evidence), (1, Some(0.0), Evidence::Sampled));
}

fn traced(at_ns: u64, core: CoreId, count: Option<u64>, moves: &[(u64, CoreId, CoreId)]) -> Sample {
    let moves = moves.iter().map(|&(at_ns, from, to)| Move { at_ns, tid: 101, from, to }).collect();
    let trace = Some(Trace { source: TraceSource::Ftrace, lost: 0, moves, partly: vec![], short_lived: None });
    let mut traced = Sample { threads: vec![thread(101, 7, at_ns, core, count)], trace, ..sample(at_ns) };
    traced.facts_mut().topology = Arc::new(topology(4));
    traced
}

fn known(by: MovesByClass) -> u64 {
    by.smt + by.cluster + by.llc + by.node + by.socket
}

#[test]
fn traced_moves_are_told_one_by_one_and_never_twice() {
    let mut derivation = Derivation::default();
    let mut advance = |sample: Sample| derivation.advance(Item::Sample(Box::new(sample))).expect("a sample");
    let first = advance(traced(SECOND, 0, Some(40), &[]));
    assert_eq!(first.threads[0].evidence, Evidence::Counted, "nothing is known of the time before the first sample");
    let there_and_back = [(SECOND + 10, 0, 1), (SECOND + 20, 1, 2), (SECOND + 30, 2, 0)];
    let second = advance(traced(2 * SECOND, 0, Some(43), &there_and_back));
    let row = &second.threads[0];
    assert_eq!((row.moves, row.evidence), (43, Evidence::Traced), "the count is the kernel's, each move is known");
    assert_eq!(known(row.by_class), 3, "all three are classed: {:?}", row.by_class);
    let told: Vec<_> = second.moves.iter().map(|one| (one.at_ns, one.thread.tid, one.from, one.to)).collect();
    assert_eq!(told, there_and_back.map(|(at_ns, from, to)| (at_ns, 101, from, to)), "events with their times");
    // The last one happened after the thread was read and before the trace was.
    let third = advance(traced(3 * SECOND, 1, Some(44), &[(2 * SECOND + 5, 0, 1), (3 * SECOND + 5, 1, 0)]));
    let fourth = advance(traced(4 * SECOND, 0, Some(45), &[]));
    assert_eq!(known(third.threads[0].by_class), 5, "the trace is a little ahead");
    let row = &fourth.threads[0];
    assert_eq!(known(row.by_class), 5, "the change of core that a sample shows is not counted again");
    let track = derivation.history().thread(row.sample.id).expect("it has a track");
    assert_eq!(
        track.trail(SECOND + 25).next().map(|(_, core)| core),
        Some(2),
        "where it was between two samples is known"
    );
    assert_eq!(track.moves_in(SECOND, 2 * SECOND), 3, "and how often it moved");
    assert_eq!((track.moves_in(2 * SECOND, 3 * SECOND), track.moves_in(3 * SECOND, 4 * SECOND)), (1, 1), "by its time");
}

#[test]
fn a_trace_with_holes_falls_back_to_the_count() {
    let evidence = |change: fn(&mut Trace)| {
        let mut second = traced(2 * SECOND, 2, Some(3), &[]);
        second.trace.iter_mut().for_each(change);
        let metrics = last(vec![traced(SECOND, 0, Some(1), &[]), second]);
        (metrics.threads[0].evidence, metrics.threads[0].by_class)
    };
    assert_eq!(evidence(|_| ()).0, Evidence::Traced, "without holes each move is an event");
    let (lossy, by_class) = evidence(|trace| trace.lost = 1);
    assert_eq!(lossy, Evidence::Counted, "something was lost");
    assert_eq!(known(by_class), 1, "a change of core that no event told is still a move");
    let mut still = traced(2 * SECOND, 0, Some(1), &[]);
    still.trace.iter_mut().for_each(|trace| trace.lost = 5);
    let still = last(vec![traced(SECOND, 0, Some(1), &[]), still]);
    assert_eq!(still.threads[0].evidence, Evidence::Traced, "what was lost is not of a thread that did not move");
    assert_eq!(evidence(|trace| trace.partly = vec![101]).0, Evidence::Counted, "not asked for all the time");
    let begun = last(vec![sample_of(0, Some(1)), traced(2 * SECOND, 2, Some(2), &[])]);
    assert_eq!(begun.threads[0].evidence, Evidence::Counted, "the trace began in between");
}

#[test]
fn a_thread_found_after_its_first_moves_has_them_and_one_that_ended_too() {
    let mut derivation = Derivation::default();
    let mut advance = |sample: Sample| derivation.advance(Item::Sample(Box::new(sample))).expect("a sample");
    advance(Sample { threads: vec![], ..traced(SECOND, 0, None, &[]) });
    let born = advance(traced(2 * SECOND, 2, Some(2), &[(SECOND + 10, 0, 1), (SECOND + 20, 1, 2)]));
    assert_eq!((born.moves.len(), born.threads[0].evidence), (2, Evidence::Traced), "traced from its first move");
    let by_class = born.threads[0].by_class;
    assert_eq!(known(by_class), 2, "both are classed");
    let ended = advance(Sample { threads: vec![], ..traced(3 * SECOND, 0, None, &[(2 * SECOND + 10, 2, 0)]) });
    assert_eq!(ended.moves.len(), 1, "its last move is told though it is gone");
}

fn sample_of(core: CoreId, count: Option<u64>) -> Sample {
    Sample { threads: vec![thread(101, 7, SECOND, core, count)], trace: None, ..traced(SECOND, core, count, &[]) }
}

#[test]
fn a_reused_tid_is_a_new_thread() {
    let at = |at_ns, start, core| Sample { threads: vec![thread(101, start, at_ns, core, Some(5))], ..sample(at_ns) };
    let metrics = last(vec![at(SECOND, 7, 0), at(2 * SECOND, 8, 1)]);
    let thread = &metrics.threads[0];
    assert_eq!(
        (thread.cpu, thread.moves_per_s, thread.last_class),
        (None, None, None),
        "nothing of the old thread is its"
    );
}

#[test]
fn pinned_is_told_until_it_is_put_back() {
    let id = ThreadId { pid: 100, tid: 101, start: 7 };
    let at = |at_ns, allowed: &CoreSet| {
        let thread = ThreadSample { allowed: Some(allowed.clone()), ..thread(101, 7, at_ns, 0, Some(0)) };
        Item::Sample(Box::new(Sample { threads: vec![thread], ..sample(at_ns) }))
    };
    let (one, both) = (CoreSet::single(0), CoreSet::from_words(&[3]));
    let mut derivation = Derivation::default();
    derivation.advance(at(SECOND, &both));
    derivation.advance(Item::Event(Event::Pinned {
        thread: id,
        old: both.clone(),
        asked: one.clone(),
        got: one.clone(),
        at_ns: 0,
    }));
    let metrics = derivation.advance(at(2 * SECOND, &one)).expect("metrics");
    assert!(metrics.threads[0].pinned, "it is pinned");
    assert_eq!(metrics.machine.events.len(), 1, "and the sample after it says so");
    let undone = derivation.advance(at(3 * SECOND, &both)).expect("metrics");
    assert!(!undone.threads[0].pinned && undone.machine.events.is_empty(), "a pin that someone else undid is none");
    derivation.advance(Item::Event(Event::Restored { thread: id, got: one.clone(), at_ns: 0 }));
    assert!(!derivation.advance(at(4 * SECOND, &one)).expect("metrics").threads[0].pinned, "it is put back");
}

/// Whether this sample makes anybody look like having changed the thread's mask.
fn is_blamed(derivation: &mut Derivation, at_ns: u64, mask: &CoreSet) -> bool {
    let threads = vec![ThreadSample { allowed: Some(mask.clone()), ..thread(101, 7, at_ns, 0, Some(1)) }];
    let sample = Sample { threads, ..sample(at_ns) };
    let metrics = derivation.advance(Item::Sample(Box::new(sample))).expect("a sample");
    metrics.conclusions.findings.iter().any(|finding| finding.id == FindingId::MaskChanged)
        || !metrics.machine.undone.is_empty()
}

#[test]
fn samples_that_were_read_before_a_pin_accuse_nobody_of_undoing_it() {
    let (all, one): (CoreSet, CoreSet) = ((0..2).collect(), CoreSet::single(0));
    let id = thread(101, 7, 0, 0, None).id;
    let pinned = |at_ns| Event::Pinned { thread: id, old: all.clone(), asked: one.clone(), got: one.clone(), at_ns };
    let restored = |at_ns| Event::Restored { thread: id, got: all.clone(), at_ns };
    let mut derivation = Derivation::default();
    // On a busy machine samples wait to be taken, while pins are set and put back.
    let mut follow = |events: Vec<Event>, samples: &[(u64, &CoreSet)]| {
        for event in events {
            derivation.advance(Item::Event(event));
        }
        samples.iter().any(|&(at_ns, mask)| is_blamed(&mut derivation, at_ns * SECOND / 10, mask))
    };
    let s = |tenths: u64| tenths * SECOND / 10;
    assert!(!follow(vec![], &[(10, &all)]), "nothing was changed");
    let late = [(12, &all), (14, &all), (16, &all), (22, &one)];
    assert!(!follow(vec![pinned(s(20))], &late), "three samples are older than the pin");
    let late = [(28, &one), (32, &all), (38, &all), (42, &one)];
    assert!(!follow(vec![restored(s(30)), pinned(s(40))], &late), "put back and pinned again meanwhile");
    let late = [(46, &one), (48, &one), (52, &all), (54, &all)];
    assert!(!follow(vec![restored(s(50))], &late), "two are older than the old mask's return");
    assert!(!follow(vec![pinned(s(60))], &[(62, &one)]), "seen at once");
    assert!(follow(vec![], &[(64, &all)]), "what something else really undid is told");
}
