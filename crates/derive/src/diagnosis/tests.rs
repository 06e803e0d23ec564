//! What the diagnosis concludes from made-up ticks, and the sentences that come of it.

use super::*;
use crate::finding::{self, Finding, FindingId};
use crate::history::History;
use crate::jitter::Jitter;
use crate::ledger::BIN_NS;
use crate::migration_cost::chance::Chance;
use crate::moves::{MoveClass, MovesByClass};
use crate::placement::tests::machine::Machine;
use std::sync::Arc;
use vnettop_sample::{CoreSet, Duty, FlowSample, Policy, Side, ThreadId, TraceSource, Word};

const TICK_NS: u64 = 500_000_000;

/// A machine that is watched for some time: its bins are given, its metrics are those of `machine` at every tick.
struct WatchedMachine {
    machine: Machine,
    change: fn(&mut TestMetrics, u64),
    bins: VecDeque<Bin>,
    traced: Vec<TracedMove>,
    flows: Vec<FlowSample>,
    diagnosis: RateDiagnosis,
    history: History,
    previous: Option<Sample>,
    at_ns: u64,
}

impl WatchedMachine {
    fn new(machine: Machine) -> Self {
        Self {
            machine,
            change: |_, _| {},
            bins: VecDeque::new(),
            traced: Vec::new(),
            flows: Vec::new(),
            diagnosis: RateDiagnosis::default(),
            history: History::default(),
            previous: None,
            at_ns: 0,
        }
    }

    /// Half a minute of bins at 35 Gbit/s; each has a move to another socket with this chance, which halves the rest of
    /// it and the beginning of the next.
    fn moved(mut self, often: f64, costs: bool) -> Self {
        let mut chance = Chance::seeded(11);
        let mut left = 0.0;
        for at in 0..300 {
            let (is_moved, share) = (chance.share() < often, chance.share());
            let here = if is_moved { 1.0 - share } else { 0.0 };
            let lost: f64 = if costs { (here + left * (1.0 - here)) * 0.5 } else { 0.0 };
            left = if is_moved { share } else { 0.0 };
            let from_ns = at * BIN_NS;
            let mut moves = MovesByClass::default();
            if is_moved {
                moves.add(MoveClass::Socket, 1);
            }
            let rate = 35e9 * (1.0 - lost + 0.03 * chance.normal());
            self.bins.push_back(Bin {
                from_ns,
                to_ns: from_ns + BIN_NS,
                bits_per_s: Some(rate),
                moves,
                unclassed: 0.0,
            });
        }
        self
    }

    /// Ticks until that second, and what is found then.
    fn until(&mut self, second: u64) -> Vec<Finding> {
        self.until_ns(second * 1_000_000_000)
    }

    fn until_ns(&mut self, end_ns: u64) -> Vec<Finding> {
        let mut metrics = self.machine.metrics();
        while self.at_ns < end_ns {
            self.at_ns += TICK_NS;
            metrics = self.machine.metrics();
            metrics.machine_mut().at_ns = self.at_ns;
            (self.change)(&mut metrics, self.at_ns / TICK_NS);
            let over: Ledger<Bin> = self.bins.iter().filter(|bin| bin.to_ns <= self.at_ns).copied().collect();
            metrics.jitter = Jitter::of(&over);
            let now = self.traced.iter().filter(|moved| self.at_ns.abs_diff(moved.at_ns) < TICK_NS);
            metrics.moves = Arc::new(now.copied().collect());
            let mut sample = crate::finding::tests::sample(&metrics);
            sample.flows.clone_from(&self.flows);
            self.history.observe_threads(self.previous.as_ref(), &sample);
            self.diagnosis.observe(&sample, &metrics, &over, Some(&FlowBasis::Sockets(2)));
            self.previous = Some(sample);
        }
        finding::tests::all(&metrics, &self.history, &self.diagnosis)
    }
}

fn text(findings: &[Finding], id: &str) -> String {
    let finding = findings.iter().find(|finding| finding.id.word() == id);
    finding.map_or_else(|| format!("no finding '{id}' among {findings:?}"), |finding| finding.text.clone())
}

#[test]
fn moves_that_cost_something_are_named_with_their_price_and_the_key() {
    let findings = WatchedMachine::new(Machine::kunpeng().pair(5, 91)).moved(0.4, true).until(30);
    let reported = text(&findings, "jitter");
    let begins =
        reported.starts_with("Unsteady over 30 s: ") && reported.ends_with(". In 100 ms bins of 2 connections");
    assert!(begins && reported.contains(" migrations/s, 4."), "{reported}");
    assert!(reported.contains(" while threads migrate, 34.9 otherwise; each migration costs ≈ 2"), "{reported}");
    let finding = findings.iter().find(|finding| finding.id == FindingId::Jitter).expect("just seen");
    assert_eq!(finding.key, Some('p'), "p mends it");
    let bytes = finding.numbers.iter().find(|(name, _)| *name == "bytes_per_move").expect("its price").1;
    assert!((bytes / (35e9 * 0.5 * 0.1 / 8.0) - 1.0).abs() < 0.15, "half of the rate for 100 ms, not {bytes} bytes");
    assert!(text(&findings, "jitter_unexplained").starts_with("no finding"), "it is explained");
    assert!(text(&findings, "moves").starts_with("no finding"), "what they cost is told already");
}

#[test]
fn a_pin_begins_a_new_diagnosis() {
    let mut watched = WatchedMachine::new(Machine::kunpeng().pair(5, 91)).moved(0.4, true);
    assert!(text(&watched.until(20), "jitter").starts_with("Unsteady"), "moves cost something");
    let (old, new) = (CoreSet::single(0), CoreSet::single(1));
    let thread = ThreadId { pid: 39081, tid: 39081, start: 7 };
    watched.diagnosis.event(&Event::Pinned { thread, old, asked: new.clone(), got: new, at_ns: 0 });
    let findings = watched.until_ns(20_000_000_000 + TICK_NS);
    assert!(
        text(&findings, "jitter").starts_with("no finding"),
        "what was before the pin is over with the next sample"
    );
    let findings = watched.until(23);
    assert!(text(&findings, "jitter").starts_with("no finding"), "and stays over");
    assert!(text(&findings, "jitter_unexplained").starts_with("no finding"), "and swings no more: {findings:?}");
}

#[test]
fn jitter_without_a_known_cause_says_so_and_what_it_follows_instead() {
    let mut watched = WatchedMachine::new(Machine::small(4).pair(0, 1)).moved(0.3, false);
    // The hypervisor takes a third of the time in some seconds, and the rate with it.
    let stolen = |tick: u64| tick / 4 % 3 == 1;
    watched.change = |metrics, tick| {
        for core in &mut metrics.machine_mut().cores {
            let shares = core.load.as_mut().and_then(|load| load.shares.as_mut()).expect("online");
            shares.steal = if tick / 4 % 3 == 1 { 0.33 } else { 0.01 };
        }
    };
    for bin in &mut watched.bins {
        let tick = bin.to_ns.div_ceil(TICK_NS);
        bin.bits_per_s = bin.bits_per_s.map(|rate| if stolen(tick) { rate * 0.6 } else { rate });
    }
    let findings = watched.until(30);
    let reported = text(&findings, "jitter_unexplained");
    assert!(
        reported.contains(" The rate falls with steal on the test cores (1")
            && reported.contains(" migrations/s, not shown to be the cause. In 100 ms bins"),
        "{reported}"
    );
    assert!(reported.contains("correlation −"), "{reported}");
    assert!(text(&findings, "steal").contains(" % steal on your threads' cores"), "steal is told on its own too");
    assert!(text(&findings, "jitter").starts_with("no finding"), "moves are not blamed");

    watched = WatchedMachine::new(Machine::small(4).pair(0, 1)).moved(0.0, false);
    let mut chance = Chance::seeded(4);
    watched.bins.iter_mut().for_each(|bin| bin.bits_per_s = Some(20e9 * (1.0 + 0.2 * chance.normal())));
    let young = text(&watched.until(9), "jitter_unexplained");
    let too_few = "No cause found. No migrations; 17 samples are too few to compare with steal and waits (20 needed)";
    assert!(young.contains(too_few), "what was not looked at is not denied: {young}");
    let reported = text(&watched.until(30), "jitter_unexplained");
    assert!(
        reported.contains("No cause found. Ruled out: migrations (none), steal, other softirqs, CPU wait, squeezes"),
        "{reported}"
    );
    assert!(
        WatchedMachine::new(Machine::small(4).pair(0, 1)).moved(0.0, false).until(30).is_empty(),
        "3 % is no jitter"
    );
}

#[test]
fn moves_are_told_over_the_time_of_the_spread_not_of_one_tick() {
    let mut watched = WatchedMachine::new(Machine::small(4).pair(0, 1)).moved(0.3, false);
    watched.change =
        |metrics, tick| metrics.threads_mut()[0].moves_per_s = Some(if tick % 2 == 0 { 28.0 } else { 8.0 });
    let reported = text(&watched.until(30), "moves");
    let wanted = format!("{:.1} times/s over 30 s", watched.diagnosis.conclusion.moves_per_s);
    assert!(reported.contains(&wanted) && wanted.starts_with("2.") || wanted.starts_with("3."), "{wanted}: {reported}");
    assert!(reported.starts_with("1 busy thread migrates between cores "), "{reported}");
}

#[test]
fn ends_on_different_nodes_and_on_siblings_are_told_once_they_stay() {
    let mut watched = WatchedMachine::new(Machine::kunpeng().pair(5, 91));
    assert!(text(&watched.until(2), "other_node").starts_with("no finding"), "two seconds may be chance");
    let reported = text(&watched.until(5), "other_node");
    let wanted = "client 39082 runs on core 91 of node 2, server 39081 on core 5 of node 0: every byte crosses nodes";
    assert_eq!(reported, wanted);
    let near = WatchedMachine::new(Machine::kunpeng().pair(5, 6)).until(5);
    assert_eq!(near, [], "on one node there is nothing to say");

    let smt = Machine::small(4).placed(|place| place.physical = Some(place.core % 2));
    let reported = text(&WatchedMachine::new(smt.pair(1, 3)).until(5), "smt_siblings");
    let wanted = "busy threads 39081 and 39082 share one physical core: cores 1 and 3 are SMT siblings";
    assert_eq!(reported, wanted);
}

#[test]
fn a_core_shared_with_interrupts_of_others_is_told() {
    let machine = Machine::small(4).pair(0, 1).interrupted("1", 0.3);
    let reported = text(&WatchedMachine::new(machine).until(5), "shared_core");
    assert_eq!(reported, "iperf3 client shares core 1 with unrelated interrupts and softirqs (30 % of time)");
}

#[test]
fn a_pin_that_a_sample_saw_before_its_news_came_is_nobody_elses() {
    let mut watched = WatchedMachine::new(Machine::small(4).pair(0, 1));
    watched.until(2);
    watched.change = |metrics, _| metrics.threads_mut()[0].sample.allowed = Some(CoreSet::single(2));
    assert!(!text(&watched.until(3), "mask_changed").starts_with("no finding"), "as yet nobody knows whose it is");
    let (id, old, new) =
        (ThreadId { pid: 39081, tid: 39081, start: 7 }, "0-3".parse().expect("cores"), CoreSet::single(2));
    watched.diagnosis.event(&Event::Pinned { thread: id, old, asked: new.clone(), got: new, at_ns: 0 });
    assert!(text(&watched.until(4), "mask_changed").starts_with("no finding"), "it was vnettop's own");
    watched.change = |_, _| {};
    let reported = text(&watched.until(6), "mask_changed");
    assert!(reported.contains("undid the pin"), "and it is known for a pin: {reported}");
}

#[test]
fn a_mask_that_something_else_changed_is_told_and_vnettops_own_is_not() {
    let mut watched = WatchedMachine::new(Machine::small(4).pair(0, 1));
    watched.until(2);
    let (id, old, new) =
        (ThreadId { pid: 39081, tid: 39081, start: 7 }, "0-3".parse().expect("cores"), CoreSet::single(2));
    watched.diagnosis.event(&Event::Pinned { thread: id, old, asked: new.clone(), got: new, at_ns: 0 });
    assert!(text(&watched.until(3), "mask_changed").starts_with("no finding"), "a sample may be older than the pin");
    watched.change = |metrics, _| metrics.threads_mut()[0].sample.allowed = Some(CoreSet::single(2));
    assert!(text(&watched.until(5), "mask_changed").starts_with("no finding"), "vnettop's own pin");
    watched.change = |_, _| {};
    let reported = text(&watched.until(7), "mask_changed");
    let wanted = "another process undid the pin of thread 39081: cores 2 → 0-3 (an iperf3 server does it after a \
                  client's -A n,m)";
    assert_eq!(reported, wanted);
    assert!(text(&watched.until(60), "mask_changed").starts_with("no finding"), "told for half a minute");
}

/// Core 3 is offline in every second second, and the kernel takes it out of the masks and puts it back.
fn core_3_comes_and_goes(metrics: &mut TestMetrics, tick: u64) {
    let is_online = (tick / 2).is_multiple_of(2);
    Arc::make_mut(&mut Arc::make_mut(&mut metrics.machine_mut().facts).topology).cores[3].online = is_online;
    let mask = if is_online { "0-3" } else { "0-2" };
    metrics.threads_mut()[0].sample.allowed = mask.parse().ok();
}

#[test]
fn a_core_that_goes_offline_and_comes_back_is_no_change_of_masks() {
    let mut watched = WatchedMachine::new(Machine::small(4).pair(0, 1));
    watched.change = core_3_comes_and_goes;
    let reported = text(&watched.until(10), "mask_changed");
    assert!(reported.starts_with("no finding"), "nobody has set a mask: {reported}");
    watched.change = |metrics, tick| {
        core_3_comes_and_goes(metrics, tick);
        metrics.threads_mut()[0].sample.allowed = "2".parse().ok();
    };
    let reported = text(&watched.until(12), "mask_changed");
    assert!(reported.starts_with("another process changed the affinity of thread 39081: cores 0-"), "{reported}");
}

#[test]
fn a_pin_to_a_core_that_goes_offline_among_others_is_not_undone() {
    let mut pins = crate::pins::Pins::default();
    let machine = Machine::small(4).pair(0, 1);
    let mut metrics = machine.metrics();
    let (thread, both) = (metrics.threads[0].sample.id, "2-3".parse::<CoreSet>().expect("cores"));
    let old = "0-3".parse().expect("cores");
    pins.event(&Event::Pinned { thread, old, asked: both.clone(), got: both.clone(), at_ns: 0 });
    metrics.threads_mut()[0].sample.allowed = Some(both);
    assert_eq!(
        pins.undone(metrics.threads.iter().map(|thread| &thread.sample), &metrics.machine.facts.topology),
        [],
        "it is in force"
    );
    core_3_comes_and_goes(&mut metrics, 2);
    metrics.threads_mut()[0].sample.allowed = Some(CoreSet::single(2));
    assert_eq!(
        pins.undone(metrics.threads.iter().map(|thread| &thread.sample), &metrics.machine.facts.topology),
        [],
        "core 3 is offline, the pin stands"
    );
    metrics.threads_mut()[0].sample.allowed = "0-2".parse().ok();
    let undone = pins.undone(metrics.threads.iter().map(|thread| &thread.sample), &metrics.machine.facts.topology);
    assert_eq!(undone.len(), 1, "that mask is somebody else's: {undone:?}");
}

#[test]
fn the_traps_of_iperf3_are_told() {
    let flow = |cookie| {
        FlowSample::new(
            cookie,
            (1, 39082),
            ("198.18.0.2:43210".parse().expect("an address"), "198.18.0.1:5201".parse().expect("an address")),
        )
    };
    let mut watched = WatchedMachine::new(Machine::small(4).pair(0, 1));
    watched.flows = vec![flow(1), flow(2)];
    assert!(
        text(&watched.until(2), "iperf3_single").starts_with("no finding"),
        "one stream and its control connection"
    );
    watched.flows = (1..=9).map(flow).collect();
    let reported = text(&watched.until(4), "iperf3_single");
    assert!(reported.starts_with("iperf3 (39082) runs 8 streams in one thread, so they share one core"), "{reported}");
    watched.flows = [7, 7, 8, 8]
        .into_iter()
        .zip(1..)
        .map(|(token, cookie)| FlowSample { mptcp: Some(token), ..flow(cookie) })
        .collect();
    assert!(
        text(&watched.until(6), "iperf3_single").starts_with("no finding"),
        "one stream and its control connection, each of MPTCP with two subflows"
    );

    let machine = Machine::small(4).thread(39082, 39083, Side::Client, 1).thread_with(39082, 39082, 0, |main| {
        (main.sample.duty, main.cpu) = (Duty::Control, Some(0.0));
        main.sample.allowed = Some(CoreSet::single(0));
    });
    let reported = text(&WatchedMachine::new(machine).until(3), "iperf3_main");
    let wanted = "only the main thread of iperf3 (39082) is pinned (core 0); it carries no traffic; pin its workers, which may run on 0-3 (taskset -cp CORE TID)";
    assert_eq!(reported, wanted);
}

#[test]
fn the_machines_policy_is_told_beside_a_benchmark_only() {
    let policy = |metrics: &mut TestMetrics| {
        Arc::make_mut(&mut Arc::make_mut(&mut metrics.machine_mut().facts).host).policy = Policy {
            governor: Some("powersave".to_owned()),
            limit_khz: Some(1_200_000),
            most_khz: Some(2_600_000),
            numa_balancing: Some(true),
            irqbalance: Some(true),
            default_qdisc: None,
            netdev_max_backlog: None,
        };
    };
    let reported = |machine: Machine| {
        let mut metrics = machine.metrics();
        policy(&mut metrics);
        finding::tests::all(&metrics, &History::default(), &RateDiagnosis::default())
    };
    assert_eq!(reported(Machine::kunpeng()), [], "nobody runs a benchmark");
    let findings = reported(Machine::kunpeng().pair(5, 6).each_thread(|thread| thread.pinned = true));
    let ids: Vec<&str> = findings.iter().map(|finding| finding.id.word()).collect();
    assert_eq!(ids, ["frequency", "governor", "numa_balancing", "irqbalance"], "each has its sentence");
    assert_eq!(findings[0].text, "core 0 is capped at 1.2 of its 2.6 GHz (cpufreq/scaling_max_freq)");
}

#[test]
fn coarse_counts_are_said_to_be_too_coarse() {
    let mut watched = WatchedMachine::new(Machine::small(4).pair(0, 1)).moved(0.4, true);
    watched.change = |metrics, _| metrics.machine_mut().own.interval_ns = TICK_NS;
    let bins: Vec<f64> = watched.bins.iter().map(|bin| bin.moves.socket as f64).collect();
    for (bins, counts) in watched.bins.make_contiguous().chunks_mut(5).zip(bins.chunks(5)) {
        let each = counts.iter().sum::<f64>() / 5.0;
        for bin in bins {
            (bin.moves, bin.unclassed) = (MovesByClass::default(), each);
        }
    }
    let findings = watched.until(30);
    assert!(text(&findings, "jitter").starts_with("no finding"), "half a second says too little: {findings:?}");
    assert!(
        text(&findings, "jitter_unexplained").starts_with("Unsteady over 30 s: "),
        "that it swings is said: {findings:?}"
    );
    assert!(text(&findings, "untraced").contains("run as root to trace each"), "and what would tell: {findings:?}");
    watched.bins.extend(watched.bins.clone().into_iter().map(|bin| Bin {
        from_ns: bin.from_ns + 30_000_000_000,
        to_ns: bin.to_ns + 30_000_000_000,
        ..bin
    }));
    watched.change = |metrics, _| {
        let machine = metrics.machine_mut();
        (machine.own.interval_ns, machine.trace) = (TICK_NS, Some((TraceSource::Ftrace, 0)));
    };
    let traced = watched.until(50);
    assert!(text(&traced, "untraced").starts_with("no finding"), "who has the trace is not told to get it: {traced:?}");
    watched.change = |metrics, _| {
        let machine = metrics.machine_mut();
        (machine.own.interval_ns, machine.trace) = (TICK_NS, Some((TraceSource::Perf, 9)));
    };
    let sampled = watched.until(55);
    assert!(text(&sampled, "untraced").contains("perf misses some"), "perf is called by its name: {sampled:?}");
}
