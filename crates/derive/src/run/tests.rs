//! Made-up runs with known figures.

use super::*;
use crate::FindingId;
use crate::experiment::pairs;
use crate::jitter::LEAST_BINS;
use crate::ledger::{BIN_NS, Bin, FlowBasis, Ledger};
use crate::moves::MovesByClass;
use std::collections::BTreeMap;

const S: u64 = 1_000_000_000;

fn bin(nth: u64, bits_per_s: Option<f64>) -> Bin {
    let moves = MovesByClass { node: 1, ..MovesByClass::default() };
    Bin { from_ns: nth * BIN_NS, to_ns: (nth + 1) * BIN_NS, bits_per_s, moves, unclassed: 1.0 }
}

fn asked(pin: PinMode, settle_ns: u64) -> RunAsked {
    RunAsked {
        wall_ms: 0,
        command: vec!["iperf3".to_owned()],
        watch: vec!["iperf3".to_owned()],
        measure: None,
        pin,
        steer: vnettop_sample::SteerMode::Never,
        tune: false,
        ends_only: false,
        repeat: 1,
        stretch_ns: 4 * S,
        settle_ns,
        max_cv_ppm: Some(100_000),
        max_drops: Some(0),
    }
}

/// A run of 20 s; its rates begin after `idle` bins.
fn observed(pin: PinMode, settle_ns: u64, turns: &[(u64, Option<StretchSide>)], rates: &[Option<f64>]) -> Observation {
    let mut seen = Observation::default();
    let mut tell = |event| seen.event(&event);
    tell(Event::RunAsked(asked(pin, settle_ns)));
    tell(Event::RunStarted { at_ns: 0, pid: 7 });
    for (at_ns, side) in turns {
        tell(Event::Stretch { at_ns: *at_ns, side: *side });
    }
    tell(Event::RunEnded { at_ns: 20 * S, code: 0 });
    follow(&mut seen, &FlowBasis::Sockets(2), rates);
    let id = ThreadId { pid: 7, tid: 8, start: 9 };
    seen.watched.insert(id, ("iperf3".into(), "client"));
    seen.busy.insert(id, ("iperf3".into(), "client"));
    seen.evidence = Some(Evidence::Counted);
    seen
}

/// The bins as they come: some twice.
fn follow(seen: &mut Observation, basis: &FlowBasis, rates: &[Option<f64>]) {
    let bins: Ledger<Bin> = rates.iter().enumerate().map(|(nth, rate)| bin(nth as u64, *rate)).collect();
    seen.tracks.follow(&bins.iter().take(bins.len() / 2).copied().collect(), Some(basis));
    seen.tracks.follow(&bins, Some(basis));
}

const UNPINNED: Option<StretchSide> = Some(StretchSide::Unpinned);
const PINNED: Option<StretchSide> = Some(StretchSide::Pinned);

#[test]
fn what_is_idle_before_and_after_the_traffic_and_the_settling_do_not_count() {
    let mut rates = vec![None; 10];
    rates.extend([Some(0.0); 5]);
    rates.extend([Some(1e9); 10]);
    rates.extend([Some(10e9); 100]);
    rates.extend([Some(0.0); 20]);
    let card = observed(PinMode::Never, S, &[(0, UNPINNED)], &rates).card().expect("a run");
    let jitter = card.jitter.expect("enough bins");
    assert_eq!(
        (jitter.bins, jitter.mean, jitter.cv),
        (100, 10e9, Some(0.0)),
        "the ramp of the first second is dropped, and the idle ends are no dip"
    );
    let moves = card.moves.expect("counted");
    assert_eq!((moves.per_s.round(), moves.by_class.node), (20.0, 100), "moves of the same bins, both kinds of them");
    assert_eq!(card.missing, Vec::<String>::new(), "nothing is missing");
}

#[test]
fn a_command_that_becomes_another_program_is_named_as_that() {
    let mut machine = crate::placement::tests::machine::Machine::small(4).pair(0, 1).metrics();
    let mut threads = BTreeMap::new();
    let thread = &mut machine.threads_mut()[0];
    for (now, side) in [("ip", None), ("iperf3", Some(vnettop_sample::Side::Client))] {
        thread.sample.name = now.into();
        thread.sample.side = side;
        super::name(&mut threads, thread);
    }
    assert_eq!(threads[&thread.sample.id], ("iperf3".into(), "client"), "ip netns exec was there for a moment");
}

#[test]
fn a_dip_in_the_middle_counts() {
    let mut rates = vec![Some(10e9); 60];
    rates[30..40].fill(Some(0.0));
    let card = observed(PinMode::Never, 0, &[(0, UNPINNED)], &rates).card().expect("a run");
    let jitter = card.jitter.expect("enough bins");
    assert_eq!((jitter.bins, jitter.longest_dip_s), (60, 1.0), "a second without a byte is the longest dip");
    assert!(
        card.limits[0].is_broken() && matches!(card.limits[0], CardLimit::MaxCv { .. }),
        "and breaks the limit of 10 %"
    );
    assert!(!card.limits[1].is_broken() && card.limits[1].measured().is_none(), "drops were not read, so not judged");
}

#[test]
fn the_partly_filled_bins_at_both_ends_of_a_link_do_not_count() {
    let mut rates = vec![Some(10e9); 40];
    rates[0] = Some(3e9);
    rates[39] = Some(2e9);
    let mut seen = observed(PinMode::Never, 0, &[(0, UNPINNED)], &[]);
    follow(&mut seen, &FlowBasis::Link("v0".to_owned()), &rates);
    follow(&mut seen, &FlowBasis::Link("eth0".to_owned()), &[Some(1e3); 40]);
    let jitter = seen.card().and_then(|card| card.jitter).expect("enough bins");
    assert_eq!((jitter.bins, jitter.deviation), (38, 0.0), "a link's first and last bins are partly without traffic");
}

#[test]
fn stretches_are_told_apart_and_each_settles() {
    // 2 s unpinned at 1, pinned at 2, unpinned at 1, pinned at 2; the first half second of each is another rate.
    let rates: Vec<Option<f64>> = (0..80)
        .map(|nth| match (nth % 20 < 5, nth / 20 % 2) {
            (true, _) => Some(5e9),
            (false, 0) => Some(1e9),
            (false, _) => Some(2e9),
        })
        .collect();
    let turns = [(0, UNPINNED), (2 * S, None), (2 * S, PINNED), (4 * S, None), (4 * S, UNPINNED), (6 * S, PINNED)];
    let seen = observed(PinMode::Compare, S / 2, &turns, &rates);
    let phases = seen.phases.counted((0, 20 * S), (seen.tracks.best().0, None), S / 2);
    let sides: Vec<StretchSide> = phases.iter().map(|phase| phase.treatment).collect();
    assert_eq!(sides, [StretchSide::Unpinned, StretchSide::Pinned].repeat(2), "four phases in the order of time");
    for phase in &phases {
        let rate = if phase.treatment == StretchSide::Pinned { 2e9 } else { 1e9 };
        let own = phase.bins.iter().all(|bin| bin.bits_per_s == Some(rate));
        assert!(phase.bins.len() == 15 && own, "1.5 s each, only its own bins: {phase:?}");
    }
    let both = seen.card().and_then(|card| card.comparison).expect("compared");
    let card = both.card.expect("two pairs");
    assert_eq!((card.pairs(), card.verdict), (2, crate::experiment::Verdict::Inconclusive), "too few to be sure");
    let means: Vec<f64> = card.phases.iter().map(|phase| phase.mean_bits_per_s).collect();
    assert_eq!(means, [1e9, 2e9, 1e9, 2e9], "and each of them is told");
}

#[test]
fn phases_are_paired_with_a_neighbour_and_what_was_cut_short_is_left_out() {
    let rates = [Some(1e9); 100];
    let at = [0, 20, 40, 60, 80, 95].map(|tenths| tenths * S / 10);
    let turns: Vec<_> = at.into_iter().zip([UNPINNED, PINNED, PINNED, UNPINNED, PINNED, UNPINNED]).collect();
    let seen = observed(PinMode::Compare, 0, &turns, &rates);
    let phases = seen.phases.counted((0, 20 * S), (seen.tracks.best().0, None), 0);
    let pairs = pairs(&phases);
    let began: Vec<[u64; 2]> = pairs.iter().map(|pair| [0, 1].map(|kind| pair[kind][0].from_ns / S)).collect();
    assert_eq!(began, [[0, 2], [6, 4]], "U P, P U; of the last two one has half a second only");
}

#[test]
fn what_is_missing_is_one_sentence() {
    let says = |seen: &Observation, words: &str| {
        let card = seen.card().expect("a run");
        assert!(card.missing.len() == 1 && card.missing[0].contains(words), "{words}: {:?}", card.missing);
    };
    let short = vec![Some(1e9); LEAST_BINS + 5];
    let full = observed(PinMode::Never, 0, &[(0, UNPINNED)], &short);
    assert!(full.card().is_some_and(|card| card.jitter.is_some() && card.missing.is_empty()), "enough is enough");
    let mut seen = observed(PinMode::Never, S, &[(0, UNPINNED)], &short);
    says(&seen, "too short");
    assert!(seen.card().is_some_and(|card| card.jitter.is_none() && card.moves.is_none()), "no figures of five bins");
    seen.tracks = BinStore::default();
    says(&seen, "is not known");
    seen.busy.clear();
    says(&seen, "5 % of a core");
    seen.watched.clear();
    says(&seen, "--watch");
    let long = vec![Some(1e9); 100];
    let mut short = observed(PinMode::Compare, 0, &[(0, UNPINNED)], &long);
    short.asked.as_mut().expect("asked").stretch_ns = 15 * S;
    says(&short, "the run ended before the first pinned phase");
    let mut pinned = observed(PinMode::Compare, S, &[(0, UNPINNED), (8 * S + S / 2, PINNED)], &long);
    pinned.pins.insert(ThreadId { pid: 7, tid: 8, start: 9 }, CoreSet::single(1));
    says(&pinned, "pinned part");
    let mut once = observed(PinMode::Compare, 0, &[(0, UNPINNED), (5 * S, PINNED)], &long);
    once.pins.insert(ThreadId { pid: 7, tid: 8, start: 9 }, CoreSet::single(1));
    says(&once, "one pair of phases, and a verdict needs at least 4");
}

#[test]
fn a_comparison_in_which_nothing_was_worth_pinning_says_why() {
    let long = vec![Some(1e9); 100];
    let missing = |change: &dyn Fn(&mut Observation)| {
        let mut seen = observed(PinMode::Compare, 0, &[(0, UNPINNED)], &long);
        change(&mut seen);
        seen.card().expect("a run").missing.join(" | ")
    };
    let reported = |why: &str| Event::NotPinned { at_ns: 5 * S, why: why.to_owned() };
    let refused = |seen: &mut Observation| seen.event(&reported("only core 0 may run the busy threads"));
    assert_eq!(
        missing(&refused),
        "nothing was pinned: only core 0 may run the busy threads",
        "not that it was too short"
    );
    let idle = missing(&|seen| seen.busy.clear());
    assert!(idle.starts_with("nothing was pinned: no watched thread used more than 5 % of a core"), "{idle}");
    let hardly = missing(&|seen| seen.known.busy_s = 1.5);
    assert!(hardly.contains("were busy for only 1.5 s, an unpinned phase takes 4 s"), "{hardly}");
    let unwritten = missing(&|seen| seen.event(&reported("nothing was pinned, because the disk is full")));
    assert_eq!(unwritten, "nothing was pinned, because the disk is full", "and it is not said twice");
}

#[test]
fn moves_are_told_of_the_whole_run_and_as_traced_where_each_was() {
    let finding = Finding {
        id: FindingId::Moves,
        text: "1 busy thread moved from core to core in the last 5 s".to_owned(),
        parts: crate::FindingParts::default(),
        numbers: vec![("threads", 1.0), ("moves_per_s", 0.0)],
        key: Some('p'),
    };
    let mut seen = observed(PinMode::Never, 0, &[(0, UNPINNED)], &[Some(10e9); 100]);
    seen.known.findings = vec![Seen { finding, seconds: 14.1, at_ns: 0 }];
    seen.traced = true;
    let card = seen.card().expect("a run");
    let reported = &card.findings[0].finding;
    assert_eq!(reported.text, "busy threads migrate between cores (how often: above)", "not of its last seconds");
    assert!((reported.numbers[1].1 - 20.0).abs() < 0.5, "the figure of the run: {reported:?}");
    assert_eq!(card.moves.map(|moves| moves.evidence), Some(Evidence::Counted), "half of them have no class");
    seen.tracks = BinStore::default();
    let known: Ledger<Bin> = (0..100).map(|nth| Bin { unclassed: 0.0, ..bin(nth, Some(10e9)) }).collect();
    seen.tracks.follow(&known, Some(&FlowBasis::Sockets(2)));
    let moves = seen.card().and_then(|card| card.moves).expect("moves");
    assert_eq!(moves.evidence, Evidence::Traced, "what was counted before the trace began is not in these bins");
    seen.tracks = BinStore::default();
    let still = |nth| Bin { unclassed: 0.0, moves: MovesByClass::default(), ..bin(nth, Some(10e9)) };
    seen.tracks.follow(&(0..100).map(still).collect(), Some(&FlowBasis::Sockets(2)));
    let card = seen.card().expect("a run");
    assert!(card.moves.is_some_and(|moves| moves.per_s < 1e-9), "nobody moved in what is measured");
    assert!(card.findings.is_empty(), "so no finding beside it says they do: {:?}", card.findings);
}

#[test]
fn a_run_that_was_never_asked_for_has_no_card() {
    assert!(Observation::default().card().is_none(), "a plain recording is no run");
}

#[test]
fn bins_of_a_link_do_not_mix_with_those_of_connections_and_late_corrections_count() {
    let mut seen = observed(PinMode::Never, 0, &[(0, UNPINNED)], &[Some(10e9); 100]);
    follow(&mut seen, &FlowBasis::Link("v0".to_owned()), &[Some(99e9); 120]);
    let mut rates = [Some(10e9); 100];
    rates[95] = None;
    follow(&mut seen, &FlowBasis::Sockets(3), &rates);
    let card = seen.card().expect("a run");
    assert_eq!(card.basis, Some(FlowBasis::Sockets(3)), "connections are what was asked for, the most there were");
    assert_eq!(card.jitter.map(|jitter| (jitter.bins, jitter.p95)), Some((99, 10e9)), "a bin became unknown later");
}
