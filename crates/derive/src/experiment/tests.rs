//! Cards of made-up processes whose difference is known, and the windows around a pin.

use super::*;
use crate::ledger::{BIN_NS, Bin, Ledger};
use crate::migration_cost::chance::Chance;
use crate::moves::MovesByClass;
use vnettop_sample::{CoreSet, Event, StretchSide, ThreadId, Word};

const RUNS: u32 = 400;
const SECOND: u64 = 1_000_000_000;
/// Bins of a phase.
const PHASE: u64 = 16;

fn bin(at: u64, rate: f64) -> Bin {
    let from_ns = at * BIN_NS;
    let moves = MovesByClass::default();
    Bin { from_ns, to_ns: from_ns + BIN_NS, bits_per_s: Some(rate), moves, unclassed: 0.0 }
}

/// Bins whose neighbours correlate by `phi`, from the `first` on.
fn process(chance: &mut Chance, first: u64, count: u64, mean: f64, cv: f64, phi: f64) -> Vec<Bin> {
    let mut wander = chance.normal();
    let next = |at: u64| {
        wander = phi * wander + (1.0 - phi * phi).sqrt() * chance.normal();
        bin(at, mean * (1.0 + cv * wander))
    };
    (first..first + count).map(next).collect()
}

fn share(holds: impl Fn(u64) -> bool) -> f64 {
    f64::from((0..RUNS).map(|run| u32::from(holds(u64::from(run)))).sum::<u32>()) / f64::from(RUNS)
}

/// What a phase's rate is multiplied by because of the machine, phase by phase.
#[derive(Debug, Clone, Copy)]
enum MachineNoise {
    /// Each phase by itself, by this share.
    Still(f64),
    /// Phases resemble their neighbours by this correlation, and vary by 8 %.
    Slow(f64),
    /// A steady drift by this share over the run.
    Drift(f64),
    /// A walk at random, 5 % a step.
    Walk,
    /// Somebody builds now and then: 40 % less while it lasts, six phases in the mean.
    Builds,
}

fn machine(chance: &mut Chance, machine: MachineNoise, count: u64) -> Vec<f64> {
    let (mut state, mut builds) = (chance.normal(), chance.share() < 0.5);
    let next = |nth: u64| match machine {
        MachineNoise::Still(by) => 1.0 + by * chance.normal(),
        MachineNoise::Slow(phi) => {
            state = phi * state + (1.0 - phi * phi).sqrt() * chance.normal();
            1.0 + 0.08 * state
        }
        MachineNoise::Drift(by) => 1.0 + by * nth as f64 / count as f64 + 0.01 * chance.normal(),
        MachineNoise::Walk => {
            state += chance.normal();
            1.0 + 0.05 * state
        }
        MachineNoise::Builds => {
            builds ^= chance.share() < 0.15;
            if builds { 0.6 + 0.02 * chance.normal() } else { 1.0 + 0.02 * chance.normal() }
        }
    };
    (0..count).map(next).collect()
}

/// The card of a run whose pinned phases run at `gain` times the rate of the others.
fn turns(seed: u64, pairs: u64, on: MachineNoise, gain: f64) -> Card {
    let mut chance = Chance::seeded(seed);
    let by_phase = machine(&mut chance, on, 2 * pairs);
    let phase = |nth: u64, chance: &mut Chance| {
        let pinned = side_of(u32::try_from(nth).expect("few")) == StretchSide::Pinned;
        let mean = 10e9 * by_phase[usize::try_from(nth).expect("few")] * if pinned { gain } else { 1.0 };
        process(chance, nth * 20, PHASE, mean, 0.02, 0.5)
    };
    let pair = |nth: u64| {
        let [one, other] = [2 * nth, 2 * nth + 1].map(|nth| phase(nth, &mut chance));
        if side_of(u32::try_from(2 * nth).expect("few")) == StretchSide::Pinned { [other, one] } else { [one, other] }
    };
    Card::of(&(0..pairs).map(pair).collect::<Vec<_>>(), &Ledger::new()).expect("enough bins")
}

#[test]
fn where_pinning_changes_nothing_fewer_than_one_run_of_twenty_says_it_does() {
    let machines = [
        MachineNoise::Still(0.002),
        MachineNoise::Still(0.05),
        MachineNoise::Slow(0.5),
        MachineNoise::Slow(0.9),
        MachineNoise::Drift(0.3),
        MachineNoise::Walk,
        MachineNoise::Builds,
    ];
    for on in machines {
        for pairs in [4, 5, 8, 12] {
            let reported =
                |seed| matches!(turns(seed, pairs, on, 1.0).verdict, Verdict::NoDifference | Verdict::Inconclusive);
            let wrong = 1.0 - share(reported);
            println!("{on:?}, {pairs} pairs: {:.1} % of the verdicts are wrong", wrong * 100.0);
            assert!(wrong <= 0.05, "{on:?}, {pairs} pairs: {wrong}");
        }
    }
    let same = share(|seed| turns(seed, 8, MachineNoise::Still(0.002), 1.0).verdict == Verdict::NoDifference);
    assert!(same > 0.95, "a rate that stands still is no difference, in {same} of the runs");
    let open = share(|seed| turns(seed, 4, MachineNoise::Still(0.05), 1.0).verdict == Verdict::Inconclusive);
    assert!(open > 0.9, "one that does not is nothing, in {open}");
}

#[test]
fn planted_gains_are_found() {
    for (pairs, noise, gain) in [(5, 0.01, 1.1), (12, 0.03, 1.1), (4, 0.02, 1.3), (8, 0.05, 1.3)] {
        let found = share(|seed| turns(seed, pairs, MachineNoise::Still(noise), gain).verdict == Verdict::Faster);
        println!("{gain} times with {pairs} pairs that vary by {noise}: found in {:.1} %", found * 100.0);
        assert!(found >= 0.9, "{gain} times, {pairs} pairs that vary by {noise}: {found}");
        let lost = share(|seed| turns(seed, pairs, MachineNoise::Still(noise), 1.0 / gain).verdict == Verdict::Worse);
        assert!(lost >= 0.9, "and what it costs: {lost}");
    }
}

#[test]
fn the_interval_holds_the_truth_as_often_as_it_says() {
    for (pairs, on) in [
        (4, MachineNoise::Still(0.05)),
        (8, MachineNoise::Still(0.05)),
        (8, MachineNoise::Slow(0.5)),
        (6, MachineNoise::Walk),
    ] {
        let holds = share(|seed| {
            let Difference { from, to, .. } = turns(seed + 7000, pairs, on, 1.0).mean;
            (from..=to).contains(&0.0)
        });
        println!("{pairs} pairs, {on:?}: the {CONFIDENCE} interval holds the truth in {:.1} %", holds * 100.0);
        assert!((0.975..=1.0).contains(&holds), "{pairs} pairs, {on:?}: {holds}");
    }
}

#[test]
fn other_programs_that_used_more_on_one_side_are_named_beside_the_verdict() {
    let reported = |before, after| {
        let mut card = turns(1, 4, MachineNoise::Still(0.001), 1.5);
        (card.before.others, card.after.others) = (before, after);
        card.sentence()
    };
    let other =
        "faster: the mean rose, the spread stayed; other programs may be the cause: 1.1 cores before, 0.5 after";
    assert_eq!(reported(Some(1.1), Some(0.5)), other);
    let plain = "faster: the mean rose, the spread stayed";
    assert_eq!(reported(Some(1.1), Some(0.9)), plain, "a fifth of a core is little");
    assert_eq!(reported(Some(40.0), Some(39.0)), plain, "and so is one core of forty");
    assert_eq!([reported(None, Some(0.5)), reported(Some(1.1), None)], [plain, plain], "nobody looked");
}

#[test]
fn nothing_is_said_of_fewer_than_four_pairs() {
    let card = turns(1, 3, MachineNoise::Still(0.001), 1.5);
    assert_eq!(card.sentence(), "inconclusive: 3 pairs of phases, at least 4 needed");
    let steady = turns(1, 4, MachineNoise::Still(0.0), 1.0);
    let unsure = Card { cv: Some(Difference { estimate: 0.0, from: -0.145, to: 0.099 }), ..steady };
    assert_eq!(unsure.why_inconclusive(), "the mean stayed within 3 %, the CV changed by −14.5 to +9.9 pp");
    assert!(turns(1, 4, MachineNoise::Still(0.001), 1.5).verdict == Verdict::Faster, "four are enough");
    let none = [
        process(&mut Chance::seeded(1), 0, PHASE, 1e9, 0.1, 0.0),
        process(&mut Chance::seeded(2), 20, PHASE, 1e9, 0.1, 0.0),
    ];
    assert_eq!(Card::of(&[none], &Ledger::new()), None, "one pair has no interval");
}

#[test]
fn no_difference_is_an_interval_within_three_percent() {
    let reported = |from: f64, to: f64| Difference { estimate: f64::midpoint(from, to), from, to }.significance(3.0);
    assert_eq!(
        [reported(-2.9, 2.9), reported(0.5, 2.5), reported(-2.0, -1.0)],
        [Significance::Same; 3],
        "even where it leaves out 0"
    );
    assert_eq!(
        [reported(-4.1, 0.9), reported(-1.0, 3.1)],
        [Significance::Open; 2],
        "what may be more than that is not none"
    );
    assert_eq!([reported(0.1, 7.1), reported(-7.1, -0.1)], [Significance::More, Significance::Less]);
    assert_eq!(
        [reported(0.1, 3.1), reported(-3.1, -0.1)],
        [Significance::Open; 2],
        "too little to be called faster or worse"
    );
}

#[test]
fn phases_that_drift_favour_no_kind() {
    let kinds: String = (0..16).map(|phase| if side_of(phase) == StretchSide::Pinned { 'P' } else { 'U' }).collect();
    assert_eq!(kinds, "UPPUPUUPPUUPUPPU");
    let balance = |power: i32| {
        (0..8)
            .map(|at: u32| f64::from(at).powi(power) * if side_of(at) == StretchSide::Pinned { 1.0 } else { -1.0 })
            .sum::<f64>()
    };
    assert_eq!((balance(0), balance(1), balance(2)), (0.0, 0.0, 0.0), "neither a steady nor a bent one");
}

/// The card of two processes of half a minute each, with one pin between them.
fn card(seed: u64, count: u64, one: (f64, f64), other: (f64, f64), phi: f64) -> Card {
    let mut chance = Chance::seeded(seed);
    let before = process(&mut chance, 0, count, one.0, one.1, phi);
    let after = process(&mut chance, 1000, count, other.0, other.1, phi);
    Card::of(&pin_trial::pairs(&before, &after, 2 * SECOND), &Ledger::new()).expect("enough bins")
}

#[test]
fn equal_processes_make_no_difference() {
    for (count, phi) in [(300, 0.0), (300, 0.5), (300, 0.8), (100, 0.5)] {
        let same = share(|seed| {
            let verdict = card(seed, count, (30e9, 0.15), (30e9, 0.15), phi).verdict;
            matches!(verdict, Verdict::NoDifference | Verdict::Inconclusive)
        });
        println!("{count} bins, neighbours correlate by {phi}: no difference in {:.1} %", same * 100.0);
        assert!(same >= 0.95, "{count} bins, phi {phi}: equal processes are told equal in {same}");
    }
}

#[test]
fn known_differences_are_told_by_their_names() {
    let reported = |one, other, wanted| {
        let share = share(|seed| card(seed, 300, one, other, 0.5).verdict == wanted);
        assert!(share >= 0.9, "{one:?} → {other:?} is {wanted:?} in {share} of the runs");
    };
    reported((24e9, 0.38), (35e9, 0.02), Verdict::SteadierAndFaster);
    reported((30e9, 0.10), (30e9, 0.03), Verdict::Steadier);
    reported((30e9, 0.10), (25e9, 0.02), Verdict::Worse);
    reported((30e9, 0.05), (30e9, 0.30), Verdict::Worse);
    reported((30e9, 0.10), (36e9, 0.10), Verdict::Faster);
}

#[test]
fn a_rate_that_rose_is_not_called_worse() {
    let word = |other| {
        let card = card(1, 300, (30e9, 0.05), other, 0.5);
        assert_eq!(card.verdict, Verdict::Worse, "{card:?}");
        card.headlines()[2].clone()
    };
    assert_eq!(word((36e9, 0.40)), "less steady", "its spread is what is worse");
    assert_eq!(word((24e9, 0.05)), "worse");
}

/// A run of ticks every half second with a pin at 20 s, and what the trial says at each whole second.
struct Runner {
    trial: PinTrial,
    done: Vec<Event>,
    bins: Ledger<Bin>,
    at_ns: u64,
}

impl Runner {
    fn new() -> Self {
        let mut chance = Chance::seeded(3);
        let mut bins: Vec<Bin> = process(&mut chance, 0, 200, 24e9, 0.3, 0.3);
        bins.extend(process(&mut chance, 200, 600, 34e9, 0.02, 0.3));
        Self { trial: PinTrial::default(), done: Vec::new(), bins: bins.into_iter().collect(), at_ns: 0 }
    }

    fn until(&mut self, second: u64) -> Option<Card> {
        while self.at_ns < second * SECOND {
            let before_ns = self.at_ns;
            self.at_ns += SECOND / 2;
            let known: Ledger<Bin> = self.bins.iter().filter(|bin| bin.to_ns <= self.at_ns).copied().collect();
            self.trial.tick(&std::mem::take(&mut self.done), before_ns, self.at_ns, &known, &Ledger::new());
        }
        self.trial.card.clone()
    }

    fn pin(&mut self, tid: u32) {
        let thread = ThreadId { pid: 1, tid, start: 1 };
        let (old, new) = (CoreSet::single(0), CoreSet::single(1));
        self.done.push(Event::Pinned { thread, old, asked: new.clone(), got: new, at_ns: 0 });
    }

    fn restore(&mut self) {
        let thread = ThreadId { pid: 1, tid: 1, start: 1 };
        self.done.push(Event::Restored { thread, got: CoreSet::single(0), at_ns: 0 });
    }
}

#[test]
fn a_card_comes_ten_seconds_after_settling_and_is_final_after_thirty() {
    let mut runner = Runner::new();
    assert_eq!(runner.until(20), None, "nothing was pinned");
    runner.pin(1);
    runner.pin(2);
    assert_eq!(runner.until(32), None, "eleven and a half seconds after the pin, less than ten after settling");
    let early = runner.until(34).expect("ten seconds are full");
    assert_eq!(early.pinned_at_ns, Some(20 * SECOND + SECOND / 2), "the tick that told of the pin");
    assert_eq!(early.before.jitter.bins, early.after.jitter.bins, "equal windows");
    assert_eq!(early.verdict, Verdict::SteadierAndFaster, "{}", early.sentence());
    let whole = runner.until(53).expect("full");
    assert_eq!(whole.before.jitter.bins, 200, "there is no more before than twenty seconds");
    assert_eq!(whole.after.jitter.bins, 200, "so no more is compared with it");
    assert_eq!(runner.until(75), Some(whole.clone()), "it stays as it is");
    runner.pin(1);
    assert_eq!(runner.until(76), None, "another pin, another card");
}

#[test]
fn a_short_time_before_the_pin_is_too_short_and_worse_says_by_what() {
    let mut runner = Runner::new();
    runner.until(4);
    runner.pin(1);
    let short = runner.until(18).expect("four seconds are a window, too");
    assert_eq!(short.sentence(), "inconclusive: 2 pairs of phases of 2 s, at least 4 needed");
    assert_eq!(short.before.jitter.bins, short.after.jitter.bins, "equal windows");
    let mut runner = Runner::new();
    runner.until(20);
    runner.pin(1);
    assert!(runner.until(34).is_some_and(|card| card.verdict != Verdict::Inconclusive), "twenty seconds are enough");

    let mut chance = Chance::seeded(5);
    let mut side = |mean, cv| process(&mut chance, 0, 300, mean, cv, 0.3);
    let (steady, swinging, slow, both) = (side(30e9, 0.02), side(30e9, 0.4), side(20e9, 0.02), side(15e9, 0.4));
    let why = |after: &[Bin]| {
        Card::of(&pin_trial::pairs(&steady, after, 2 * SECOND), &Ledger::new()).expect("enough bins").sentence()
    };
    assert_eq!(why(&swinging), "worse: the spread rose");
    assert_eq!(why(&slow), "worse: the mean fell");
    assert_eq!(why(&both), "worse: the mean fell, the spread rose");
}

#[test]
fn a_test_of_udp_gets_its_card() {
    let bin = |nth: u64| {
        let edge = |nth: u64| nth * SECOND / 2 + (nth * 7 % 5) * 9_000_000;
        let (from_ns, to_ns) = (edge(nth), edge(nth + 1));
        let bits_per_s = Some(if from_ns > 28 * SECOND { 60e6 } else { 30e6 } + (nth * 13 % 7) as f64 * 1e5);
        Bin { from_ns, to_ns, bits_per_s, ..Bin::default() }
    };
    let mut runner = Runner { bins: (0..140).map(bin).collect(), ..Runner::new() };
    runner.until(28);
    runner.pin(1);
    let card = runner.until(66).expect("28 s before the pin and 38 s after it are enough");
    assert_eq!((card.verdict, card.pairs()), (Verdict::Faster, 9), "{}", card.sentence());
    assert!(card.method(0.0).contains("in windows of 3 s"), "{}", card.method(0.0));
    assert_eq!([SECOND / 2, BIN_NS].map(needed_ns), [[6, 12], [4, 12]].map(|both| both.map(|s: u64| s * SECOND)));
}

#[test]
fn masks_put_back_end_the_window_and_keep_the_card() {
    let mut runner = Runner::new();
    runner.until(20);
    runner.pin(1);
    runner.until(24);
    runner.pin(2);
    runner.until(30);
    runner.restore();
    assert_eq!(runner.until(60), None, "four seconds after settling are no window");

    let mut runner = Runner::new();
    runner.until(20);
    runner.pin(1);
    runner.until(40);
    runner.restore();
    let kept = runner.until(41).expect("there was enough");
    assert!(
        (kept.after.jitter.window_s - 16.0).abs() < 0.11,
        "until the masks went back, in windows of 2 s: {:?}",
        kept.after.jitter
    );
    assert_eq!(runner.until(60), Some(kept), "it stays");
}

/// Whatever is measured: a card's words say what its own intervals say.
#[test]
fn every_sentence_of_a_card_is_what_its_intervals_say() {
    let mut chance = Chance::seeded(45);
    let mut seen = std::collections::BTreeMap::<&str, u32>::new();
    for seed in 0..600 {
        let noise = 0.2 * chance.share().powi(4);
        let gain = if chance.share() < 0.4 { 1.0 } else { 0.7 + 0.6 * chance.share() };
        let card = turns(seed, 4 + u64::from(seed % 3 == 0) * 6, MachineNoise::Still(noise), gain);
        let usual = card.before.jitter.mean;
        let (mean, cv) = (card.mean, card.cv.expect("rates have a spread"));
        let (from, to) = (mean.from / usual, mean.to / usual);
        assert!(from >= -1.0 && cv.from >= -card.before.jitter.cv.expect("likewise") - 1e-12, "{card:?}");
        let text = card.sentence();
        let is_near = |from: f64, to: f64| from >= -0.03 && to <= 0.03;
        let holds = match card.verdict {
            Verdict::NoDifference => is_near(from, to) && is_near(cv.from, cv.to),
            Verdict::Faster | Verdict::SteadierAndFaster => from > 0.0 && mean.estimate > 0.03 * usual,
            Verdict::Steadier => cv.to < 0.0 && mean.estimate >= -0.03 * usual,
            Verdict::Worse => to < 0.0 && mean.estimate < -0.03 * usual || cv.from > 0.0,
            Verdict::Inconclusive => !(is_near(from, to) && is_near(cv.from, cv.to)),
        };
        assert!(holds, "{text}: {card:?}");
        assert!(!text.contains("the mean stayed") || is_near(from, to), "{text}: {card:?}");
        assert!(!text.contains("the spread stayed") || is_near(cv.from, cv.to), "{text}: {card:?}");
        assert!(!text.contains("the mean rose") || from > 0.0, "{text}: {card:?}");
        *seen.entry(card.verdict.word()).or_default() += 1;
    }
    assert!(["no difference", "faster", "worse", "inconclusive"].iter().all(|word| seen[word] > 20), "{seen:?}");
}
