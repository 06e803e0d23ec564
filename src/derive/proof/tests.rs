//! Cards of made-up processes whose difference is known, and the windows around a pin.

use super::*;
use crate::derive::flow::BIN_NS;
use crate::derive::moves::MovesByClass;
use crate::sample::{CoreSet, Event, ThreadId};
use std::collections::VecDeque;

const RUNS: u32 = 200;
const SECOND: u64 = 1_000_000_000;

/// Bins whose neighbours correlate by `phi`, from the `first` on.
fn process(chance: &mut Chance, first: u64, count: u64, mean: f64, cv: f64, phi: f64) -> Vec<Bin> {
    let mut wander = chance.normal();
    let bin = |at: u64| {
        wander = phi * wander + (1.0 - phi * phi).sqrt() * chance.normal();
        let from_ns = at * BIN_NS;
        Bin {
            from_ns,
            to_ns: from_ns + BIN_NS,
            bits_per_s: Some(mean * (1.0 + cv * wander)),
            moves: MovesByClass::default(),
            unclassed: 0.0,
        }
    };
    (first..first + count).map(bin).collect()
}

/// The card of two processes of half a minute each.
fn card(seed: u64, count: u64, one: (f64, f64), other: (f64, f64), phi: f64) -> Card {
    let mut chance = Chance::seeded(seed);
    let before = process(&mut chance, 0, count, one.0, one.1, phi);
    let after = process(&mut chance, 1000, count, other.0, other.1, phi);
    Card::of(&before, &after).expect("enough bins")
}

fn share(holds: impl Fn(u64) -> bool) -> f64 {
    f64::from((0..RUNS).map(|run| u32::from(holds(u64::from(run)))).sum::<u32>()) / f64::from(RUNS)
}

#[test]
fn equal_processes_make_no_difference() {
    for (count, phi) in [(300, 0.0), (300, 0.5), (300, 0.8), (100, 0.5)] {
        let same = share(|seed| card(seed, count, (30e9, 0.15), (30e9, 0.15), phi).verdict == Verdict::NoDifference);
        println!("{count} bins, neighbours correlate by {phi}: no difference in {:.1} %", same * 100.0);
        assert!(same >= 0.95, "{count} bins, phi {phi}: equal processes are told equal in {same}");
    }
}

#[test]
fn the_interval_holds_the_truth_as_often_as_it_says() {
    for (count, phi) in [(300, 0.0), (300, 0.5), (300, 0.7), (100, 0.5)] {
        let holds = share(|seed| {
            let Difference { from, to, .. } = card(seed + 7000, count, (20e9, 0.3), (24e9, 0.1), phi).mean;
            (from..=to).contains(&4e9)
        });
        println!(
            "{count} bins, neighbours correlate by {phi}: the 95 % interval holds the truth in {:.1} %",
            holds * 100.0
        );
        assert!((0.91..=0.985).contains(&holds), "{count} bins, phi {phi}: about 95 %, not {holds}");
    }
}

#[test]
fn known_differences_are_told_by_their_names() {
    let told = |one, other, wanted| {
        let share = share(|seed| card(seed, 300, one, other, 0.5).verdict == wanted);
        assert!(share >= 0.9, "{one:?} → {other:?} is {wanted:?} in {share} of the runs");
    };
    told((24e9, 0.38), (35e9, 0.02), Verdict::SteadierAndFaster);
    told((30e9, 0.10), (30e9, 0.03), Verdict::Steadier);
    told((30e9, 0.10), (25e9, 0.02), Verdict::Worse);
    told((30e9, 0.05), (30e9, 0.30), Verdict::Worse);
    told((30e9, 0.10), (36e9, 0.10), Verdict::Faster);
}

#[test]
fn the_sentence_has_the_figures() {
    let sentence = card(5, 300, (29e9, 0.38), (34.7e9, 0.02), 0.3).sentence();
    let told = sentence.starts_with("steadier and faster: mean +1") && sentence.contains(" % (95 %: +");
    assert!(told && sentence.ends_with(" % → 2 %"), "{sentence}");
}

#[test]
fn stretches_that_took_turns_are_compared_with_their_gaps() {
    let mut chance = Chance::seeded(9);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for turn in 0..4 {
        before.extend(process(&mut chance, turn * 200, 100, 25e9, 0.3, 0.5));
        after.extend(process(&mut chance, turn * 200 + 100, 100, 30e9, 0.05, 0.5));
    }
    let card = Card::of(&before, &after).expect("enough bins");
    assert_eq!((card.verdict, card.before.jitter.bins), (Verdict::SteadierAndFaster, 400), "{}", card.sentence());
    assert_eq!(Card::of(&before[..5], &after), None, "half a second is no side");
}

/// A run of ticks every half second with a pin at 20 s, and what the trial says at each whole second.
struct Runner {
    trial: Trial,
    bins: VecDeque<Bin>,
    at_ns: u64,
}

impl Runner {
    fn new() -> Self {
        let mut chance = Chance::seeded(3);
        let mut bins: Vec<Bin> = process(&mut chance, 0, 200, 24e9, 0.3, 0.3);
        bins.extend(process(&mut chance, 200, 600, 34e9, 0.02, 0.3));
        Self { trial: Trial::default(), bins: bins.into(), at_ns: 0 }
    }

    fn until(&mut self, second: u64) -> Option<Card> {
        while self.at_ns < second * SECOND {
            let before_ns = self.at_ns;
            self.at_ns += SECOND / 2;
            let known: VecDeque<Bin> = self.bins.iter().filter(|bin| bin.to_ns <= self.at_ns).copied().collect();
            self.trial.tick(before_ns, self.at_ns, &known);
        }
        self.trial.card().cloned()
    }

    fn pin(&mut self, tid: u32) {
        let thread = ThreadId { pid: 1, tid, start: 1 };
        let (old, new) = (CoreSet::single(0), CoreSet::single(1));
        self.trial.event(&Event::Pinned { thread, old, asked: new.clone(), got: new, at_ns: 0 });
    }

    fn restore(&mut self) {
        let thread = ThreadId { pid: 1, tid: 1, start: 1 };
        self.trial.event(&Event::Restored { thread, got: CoreSet::single(0), at_ns: 0 });
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
fn a_short_time_before_the_pin_is_said_to_be_short_and_worse_says_by_what() {
    let mut runner = Runner::new();
    runner.until(4);
    runner.pin(1);
    let short = runner.until(18).expect("four seconds are a window, too");
    assert!(short.is_short(), "but a short one: {:?}", short.before.jitter);
    assert_eq!(short.before.jitter.bins, short.after.jitter.bins, "equal windows");
    let mut runner = Runner::new();
    runner.until(20);
    runner.pin(1);
    assert!(runner.until(34).is_some_and(|card| !card.is_short()), "twenty seconds are enough");

    let mut chance = Chance::seeded(5);
    let mut side = |mean, cv| process(&mut chance, 0, 300, mean, cv, 0.3);
    let (steady, swinging, slow, both) = (side(30e9, 0.02), side(30e9, 0.4), side(20e9, 0.02), side(15e9, 0.4));
    let why = |after: &[Bin]| Card::of(&steady, after).map(|card| (card.verdict, card.why_worse()));
    assert_eq!(why(&swinging), Some((Verdict::Worse, "the spread rose")));
    assert_eq!(why(&slow), Some((Verdict::Worse, "the mean fell by more than 3 %")));
    assert_eq!(why(&both), Some((Verdict::Worse, "the spread rose and the mean fell by more than 3 %")));
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
    assert!((kept.after.jitter.window_s - 17.5).abs() < 0.11, "until the masks went back: {:?}", kept.after.jitter);
    assert_eq!(runner.until(60), Some(kept), "it stays");
}
