//! What makes the rate swing, on generated runs whose cause is known: moves that cost something are found with what they
//! cost, and everything else that swings is not blamed on them. Every run comes from a fixed seed.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive times and places")]

use vnettop::derive::ledger::BIN_NS;
use vnettop::derive::migration_cost::chance::Chance;
use vnettop::derive::moves::{MoveClass, MovesByClass, TracedMove};
use vnettop::derive::{Bin, Cause, Crossing};
use vnettop::sample::ThreadId;

const RUNS: u64 = 200;
/// Half a minute, as vnettop looks at it.
const BINS: usize = 300;
/// Looks at the rate within a bin.
const STEPS: usize = 20;
const FULL: f64 = 35e9;

/// A run before its noise: when moves happened, and how fast it would have been at each step, share of full speed.
struct Run {
    chance: Chance,
    moves: Vec<f64>,
    speed: Vec<f64>,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self { chance: Chance::seeded(seed), moves: Vec::new(), speed: vec![1.0; BINS * STEPS] }
    }

    fn seconds() -> f64 {
        BINS as f64 * 0.1
    }

    /// Moves at random instants.
    fn moving(mut self, per_s: f64) -> Self {
        let mut at = 0.0;
        loop {
            at -= (1.0 - self.chance.share()).ln() / per_s;
            if at >= Self::seconds() {
                return self;
            }
            self.moves.push(at);
        }
    }

    /// Moves on a beat that wavers by a fiftieth.
    fn moving_regularly(mut self, per_s: f64) -> Self {
        let mut at = self.chance.share() / per_s;
        while at < Self::seconds() {
            self.moves.push(at);
            at += (1.0 + 0.02 * self.chance.normal()) / per_s;
        }
        self
    }

    fn slower(&mut self, from: f64, lasts: f64, by: f64) {
        let step = |at: f64| ((at / Self::seconds() * (BINS * STEPS) as f64).round() as usize).min(BINS * STEPS);
        for speed in &mut self.speed[step(from)..step(from + lasts)] {
            *speed = speed.min(1.0 - by);
        }
    }

    /// Each move slows down what follows it.
    fn costing(mut self, lasts: f64, by: f64) -> Self {
        for at in self.moves.clone() {
            self.slower(at, lasts, by);
        }
        self
    }

    /// Stretches of random length at random instants, whatever the moves do; `more` moves a second within them.
    fn episodes(mut self, per_s: f64, mean_s: f64, by: f64, more: f64) -> Self {
        let mut at = 0.0;
        loop {
            at -= (1.0 - self.chance.share()).ln() / per_s;
            if at >= Self::seconds() {
                break;
            }
            let lasts = -(1.0 - self.chance.share()).ln() * mean_s;
            self.slower(at, lasts, by);
            let mut moved = at;
            loop {
                // Without more moves the next one is infinitely far.
                moved -= (1.0 - self.chance.share()).ln() / more;
                if moved >= (at + lasts).min(Self::seconds()) {
                    break;
                }
                self.moves.push(moved);
            }
            at += lasts;
        }
        self.moves.sort_by(f64::total_cmp);
        self
    }

    fn drifting(mut self, by: f64) -> Self {
        let phase = self.chance.share() * 6.0;
        let steps = self.speed.len() as f64;
        for (at, speed) in self.speed.iter_mut().enumerate() {
            *speed *= 1.0 - by * (0.5 + 0.5 * (phase + 7.0 * at as f64 / steps).sin());
        }
        self
    }

    /// The bins, with noise whose neighbours resemble each other, and what a move cost in truth, bytes.
    fn bins(mut self, noise: f64, class: MoveClass) -> (Vec<Bin>, Vec<TracedMove>) {
        let mut wander = 0.0;
        let mut bins = Vec::new();
        for at in 0..BINS {
            wander = 0.5 * wander + (1.0_f64 - 0.25).sqrt() * self.chance.normal();
            let speed: f64 = self.speed[at * STEPS..(at + 1) * STEPS].iter().sum::<f64>() / STEPS as f64;
            let rate = (FULL * speed * (1.0 + noise * wander)).max(0.0);
            let from_ns = 5_000_000_000 + at as u64 * BIN_NS;
            let bin = Bin {
                from_ns,
                to_ns: from_ns + BIN_NS,
                bits_per_s: Some(rate),
                moves: MovesByClass::default(),
                unclassed: 0.0,
            };
            bins.push(bin);
        }
        let mut traced = Vec::new();
        for moved in &self.moves {
            bins[((moved / 0.1) as usize).min(BINS - 1)].moves.add(class, 1);
            let thread = ThreadId { pid: 1, tid: 1, start: 1 };
            let at_ns = 5_000_000_000 + (moved * 1e9) as u64;
            traced.push(TracedMove { at_ns, thread, from: 0, to: 64, class: Some(class) });
        }
        (bins, traced)
    }
}

type Made = (Vec<Bin>, Vec<TracedMove>);

/// How many of the runs blame the moves, by their number in the bins alone and by their instants too, and the mean
/// (absolute) error of the cost against `bytes`.
fn blamed(name: &str, bytes: f64, make: impl Fn(u64) -> Made) -> [(f64, f64); 2] {
    let mut found = [Vec::new(), Vec::new()];
    for seed in 0..RUNS {
        let (bins, traced) = make(seed + 1000);
        for (found, traced) in found.iter_mut().zip([&[][..], &traced[..]]) {
            found.extend(Cause::of(&bins, traced).map(|cause| (cause.bytes_per_move / bytes - 1.0).abs()));
        }
    }
    let told = found.map(|errors| {
        let count = errors.len() as f64;
        (count / RUNS as f64, errors.iter().sum::<f64>() / count.max(1.0))
    });
    for (how, (share, error)) in ["counts", "instants"].iter().zip(told) {
        let error =
            if bytes.is_finite() { format!(", mean error of the cost {:.1} %", error * 100.0) } else { String::new() };
        println!("{name}, by {how}: moves blamed in {:.1} % of {RUNS} runs{error}", share * 100.0);
    }
    told
}

fn innocent(name: &str, make: impl Fn(u64) -> Made) {
    for (share, _) in blamed(name, f64::INFINITY, make) {
        assert!(share <= 0.05, "{name}: moves are blamed in {share} of the runs, at most 0.05 is allowed");
    }
}

fn guilty(name: &str, bytes: f64, make: impl Fn(u64) -> Made) {
    for (share, error) in blamed(name, bytes, make) {
        assert!(share >= 0.95, "{name}: moves are found in {share} of the runs, at least 0.95 is wanted");
        assert!(error <= 0.15, "{name}: the cost is off by {error} in the mean, at most 0.15 is allowed");
    }
}

/// 2 to 20 a second, another in each run.
fn often(seed: u64) -> f64 {
    2.0 * 10.0_f64.powf((seed % 21) as f64 / 20.0)
}

#[test]
fn what_swings_without_the_moves_is_not_blamed_on_them() {
    let any = MoveClass::Llc;
    innocent("plain noise", |seed| Run::new(seed).moving(often(seed)).bins(0.15, any));
    innocent("slow drift", |seed| Run::new(seed).moving(often(seed)).drifting(0.6).bins(0.08, any));
    innocent("softirq contention", |seed| {
        Run::new(seed).moving(often(seed)).episodes(0.5, 0.8, 0.4, 0.0).bins(0.08, any)
    });
    innocent("random half speed", |seed| {
        Run::new(seed).moving(often(seed)).episodes(5.0, 0.1, 0.5, 0.0).bins(0.08, any)
    });
    innocent("no jitter", |seed| Run::new(seed).moving(often(seed)).bins(0.005, any));
}

#[test]
fn a_busy_machine_that_moves_threads_and_slows_them_is_not_blamed_on_the_moves() {
    let any = MoveClass::Llc;
    innocent("busy, long", |seed| Run::new(seed).moving(1.0).episodes(0.3, 1.5, 0.4, 10.0).bins(0.08, any));
    innocent("busy, short", |seed| Run::new(seed).moving(1.0).episodes(1.0, 0.3, 0.5, 20.0).bins(0.08, any));
    innocent("busy, calm else", |seed| Run::new(seed).episodes(0.6, 0.5, 0.5, 8.0).bins(0.08, any));
}

#[test]
fn moves_that_cost_something_are_found_with_what_they_cost() {
    let any = MoveClass::Llc;
    let bytes = |by: f64, lasts: f64| FULL * by * lasts / 8.0;
    guilty("50 % for 100 ms", bytes(0.5, 0.1), |seed| {
        Run::new(seed).moving(often(seed)).costing(0.1, 0.5).bins(0.08, any)
    });
    guilty("20 % for 100 ms", bytes(0.2, 0.1), |seed| {
        Run::new(seed).moving(often(seed)).costing(0.1, 0.2).bins(0.05, any)
    });
    guilty("50 % for 200 ms", bytes(0.5, 0.2), |seed| Run::new(seed).moving(4.0).costing(0.2, 0.5).bins(0.08, any));
}

#[test]
fn moves_on_a_steady_beat_are_found_where_their_instants_are_known() {
    let bytes = FULL * 0.5 * 0.1 / 8.0;
    let make = |seed| Run::new(seed).moving_regularly(5.0).costing(0.1, 0.5).bins(0.08, MoveClass::Llc);
    let [_, (share, error)] = blamed("five a second", bytes, make);
    assert!(share >= 0.95 && error <= 0.15, "found in {share}, cost off by {error}");
}

#[test]
fn only_the_moves_that_cost_are_named() {
    let (mut nodes, mut bytes) = (0, Vec::new());
    for seed in 0..50 {
        let (mut bins, mut traced) = Run::new(seed).moving(4.0).costing(0.1, 0.5).bins(0.08, MoveClass::Socket);
        let (near, more) = Run::new(seed + 500).moving(15.0).bins(0.08, MoveClass::Cluster);
        for (bin, near) in bins.iter_mut().zip(&near) {
            bin.moves.cluster = near.moves.cluster;
        }
        traced.extend(more);
        traced.sort_by_key(|moved| moved.at_ns);
        if let Some(cause) = Cause::of(&bins, &traced).filter(|cause| cause.crossing == Crossing::Nodes) {
            nodes += 1;
            bytes.push(cause.bytes_per_move);
            assert!(cause.rate_with < 0.8 * cause.rate_without, "bins with a move are slower: {cause:?}");
            assert!((2.0..6.5).contains(&cause.moves_per_s), "near moves are not counted: {cause:?}");
        }
    }
    assert!(nodes >= 48, "moves across nodes are named in {nodes} of 50 runs");
    let mean = bytes.iter().sum::<f64>() / f64::from(nodes);
    assert!((mean / (FULL * 0.05 / 8.0) - 1.0).abs() < 0.05, "and their cost is told: {mean}");
}

#[test]
fn gaps_and_unknown_rates_make_no_cause_and_hide_none() {
    let (mut bins, traced) = Run::new(3).moving(5.0).costing(0.1, 0.5).bins(0.08, MoveClass::Llc);
    bins.iter_mut().skip(100).take(20).for_each(|bin| bin.bits_per_s = None);
    bins.iter_mut()
        .skip(200)
        .for_each(|bin| (bin.from_ns, bin.to_ns) = (bin.from_ns + 7 * BIN_NS, bin.to_ns + 7 * BIN_NS));
    assert!(Cause::of(&bins, &[]).is_some(), "two gaps do not hide it");
    assert!(Cause::of(&bins[..40], &traced).is_none(), "four seconds are too few");
    for bin in &mut bins {
        bin.bits_per_s = Some(1e9);
    }
    assert!(Cause::of(&bins, &traced).is_none(), "a rate that does not swing has no cause");
}
