//! Busy watched threads that are moved, that share a core, or whose cores are too far from each other or too near; the traps
//! of iperf3.

use super::{Diagnostic, LintInput, MOVES_PER_S};
use crate::figure::{count, percent, rate};
use crate::flow::connections;
use crate::history::History;
use crate::moves::Evidence;
use crate::placement::BUSY;
use crate::threads::ThreadMetrics;
use crate::{TestMetrics, plural};
use vnettop_sample::{CorePlace, CoreSet, Duty, Side, ThreadId};

/// A move counts as present for so long, so that the sentence does not flicker from tick to tick.
const RECENT_S: f64 = 5.0;
/// What is shown as 0.0 a second.
const LEAST_RATE: f64 = 0.05;
/// Threads share a core when they were seen on it together so many samples in a row.
pub(super) const SAMPLES_TOGETHER: usize = 3;

pub(super) fn busy(metrics: &TestMetrics) -> impl Iterator<Item = &ThreadMetrics> {
    metrics.threads.iter().filter(|thread| thread.cpu.is_some_and(|cpu| cpu > BUSY))
}

/// Busy threads that the scheduler moves from core to core.
pub(super) fn moving(input: &LintInput<'_>) -> Option<Diagnostic> {
    let moving = moved(input);
    let (per_s, over) = how_often(input, &moving)?;
    if per_s < LEAST_RATE {
        return None;
    }
    let at_least = if moving.iter().any(|thread| thread.evidence == Evidence::Sampled) { "at least " } else { "" };
    let verb = if moving.len() == 1 { "migrates" } else { "together migrate" };
    Some(diagnostic(input, &moving, per_s, &format!("{verb} between cores {at_least}{} times/s{over}", rate(per_s))))
}

/// Busy threads that moved a moment ago and not often enough for a rate: between two moves the rate of one interval is zero.
pub(super) fn moved_lately(input: &LintInput<'_>) -> Option<Diagnostic> {
    let moving = moved(input);
    let (per_s, _) = how_often(input, &moving)?;
    let lately: usize = moving.iter().map(|thread| moves_lately(thread, input.metrics, input.history)).sum();
    let times = if lately == 1 { "once".to_owned() } else { format!("{lately} times") };
    (per_s < LEAST_RATE && lately > 0).then(|| {
        let often = format!("migrated between cores {times} in the last {RECENT_S:.0} s");
        diagnostic(input, &moving, lately as f64 / RECENT_S, &often)
    })
}

/// Busy threads that moved lately; none where a finding tells what their moves cost.
fn moved<'a>(input: &LintInput<'a>) -> Vec<&'a ThreadMetrics> {
    if input.diagnosis.conclusion.cause.is_some() {
        return Vec::new();
    }
    busy(input.metrics).filter(|thread| has_moved(thread, input.metrics, input.history)).collect()
}

/// Moves a second, and over which time: the window of the rate's spread where there is one, because the figure of one tick jumps.
fn how_often(input: &LintInput<'_>, moving: &[&ThreadMetrics]) -> Option<(f64, String)> {
    let conclusion = &input.diagnosis.conclusion;
    let of_tick = || moving.iter().filter_map(|thread| thread.moves_per_s).sum();
    let tick = || input.metrics.machine.elapsed_s.map_or_else(String::new, |seconds| format!(" over {seconds:.1} s"));
    (!moving.is_empty()).then(|| match conclusion.jitter.map(|jitter| jitter.window_s) {
        Some(seconds) => (conclusion.moves_per_s, format!(" over {seconds:.0} s")),
        None => (of_tick(), tick()),
    })
}

fn diagnostic(input: &LintInput<'_>, moving: &[&ThreadMetrics], per_s: f64, often: &str) -> Diagnostic {
    let seen: u64 = moving.iter().map(|thread| thread.by_class.all()).sum();
    let far: u64 = moving.iter().map(|thread| thread.by_class.far()).sum();
    let threads = plural(moving.len(), "busy thread");
    let crossing = if seen > 0 && input.metrics.machine.facts.topology.nodes > 1 {
        format!("; of {seen} so far whose cores are known, {far} went to another cache or node")
    } else {
        String::new()
    };
    let numbers = [
        ("threads", count(moving.len())),
        (MOVES_PER_S, per_s),
        ("moves_seen", seen as f64),
        ("moves_seen_across_nodes", far as f64),
    ];
    Diagnostic::new(format!("{threads} {often}{crossing}"), numbers)
}

/// In this tick, or within the last seconds of its trail.
fn has_moved(thread: &ThreadMetrics, metrics: &TestMetrics, history: &History) -> bool {
    // Pinned to one core it has made its last move.
    let is_bound = thread.sample.allowed.as_ref().is_some_and(|allowed| allowed.len() == 1);
    let moves = || thread.moves_per_s.is_some_and(|per_s| per_s > 0.0) || moves_lately(thread, metrics, history) > 0;
    !is_bound && moves()
}

/// Moves within the last seconds that are known one by one.
fn moves_lately(thread: &ThreadMetrics, metrics: &TestMetrics, history: &History) -> usize {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of samples")]
    let samples = (RECENT_S * 1e9 / metrics.machine.own.interval_ns.max(1) as f64) as usize;
    let Some(track) = history.thread(thread.sample.id) else { return 0 };
    let trail = || track.last(samples.saturating_add(1));
    let changes = trail().zip(trail().skip(1)).filter(|(after, before)| after != before).count();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive time")]
    let since_ns = thread.sample.at_ns.saturating_sub((RECENT_S * 1e9) as u64);
    changes.max(track.moves_in(since_ns, thread.sample.at_ns))
}

/// The thread was on its core in each of the last samples that are known of it.
pub(super) fn stays(input: &LintInput<'_>, thread: &ThreadMetrics) -> bool {
    let track = input.history.thread(thread.sample.id);
    track.is_some_and(|track| track.last(SAMPLES_TOGETHER).all(|&core| core == thread.sample.core))
}

/// Least share of a core that interrupts and softirqs of others take before a finding names them.
const INTERRUPTED: f64 = 0.10;
/// Least time that interrupts and softirqs were watched before a finding names them, s.
const WATCHED_S: f64 = 2.0;

/// A busy thread whose core works for others' packets and devices too.
pub(super) fn among_interrupts(input: &LintInput<'_>) -> Option<Diagnostic> {
    let recent = &input.metrics.recent;
    let share = |thread: &ThreadMetrics| recent.core(thread.sample.core).map_or(0.0, |core| core.others_interrupts);
    let threads = busy(input.metrics).filter(|thread| stays(input, thread)).map(|thread| (thread, share(thread)));
    let (thread, share) = threads.max_by(|one, other| one.1.total_cmp(&other.1))?;
    let (label, core) = (format!("{} {}", thread.sample.name, thread.sample.role()), thread.sample.core);
    (share >= INTERRUPTED && recent.seconds >= WATCHED_S).then(|| {
        let much = percent(share);
        let text = format!("{label} shares core {core} with unrelated interrupts and softirqs ({much} % of time)");
        let numbers = [("core", f64::from(core)), ("others_interrupts", share)];
        Diagnostic { cost: Some(share), ..Diagnostic::new(text, numbers) }
    })
}

/// Samples in a row in which both ends stayed on their nodes before a sentence says so.
const SAMPLES_APART: usize = 6;

/// A sender and a receiver that stay on different NUMA nodes.
pub(super) fn other_node(input: &LintInput<'_>) -> Option<Diagnostic> {
    if input.metrics.machine.facts.topology.nodes < 2 {
        return None;
    }
    let node = |thread: &ThreadMetrics| stays_in(input, thread, SAMPLES_APART, |place| place.node);
    let ends: Vec<(&ThreadMetrics, u32)> =
        busy(input.metrics).filter_map(|thread| Some((thread, node(thread)?))).collect();
    let (client, server, from, to) = pairs(&ends).find(|(_, _, from, to)| from != to)?;
    // One of several streams may well sit next to its other end, so every pair has to be apart.
    if pairs(&ends).any(|(_, _, from, to)| from == to) {
        return None;
    }
    let text = format!(
        "client {} runs on core {} of node {from}, server {} on core {} of node {to}: every byte crosses nodes",
        client.sample.id.tid, client.sample.core, server.sample.id.tid, server.sample.core,
    );
    Some(Diagnostic::new(text, [("client_node", f64::from(from)), ("server_node", f64::from(to))]))
}

/// Two busy threads that stay on the two halves of one physical core.
pub(super) fn siblings(input: &LintInput<'_>) -> Option<Diagnostic> {
    let physical = |thread: &ThreadMetrics| stays_in(input, thread, SAMPLES_TOGETHER, |place| place.physical);
    let mut placed: Vec<(u32, &ThreadMetrics)> =
        busy(input.metrics).filter_map(|thread| Some((physical(thread)?, thread))).collect();
    placed.sort_by_key(|(physical, thread)| (*physical, thread.sample.core));
    let apart =
        |pair: &&[(u32, &ThreadMetrics)]| pair[0].0 == pair[1].0 && pair[0].1.sample.core != pair[1].1.sample.core;
    let pair = placed.windows(2).find(apart)?;
    let (one, other) = (&pair[0].1.sample, &pair[1].1.sample);
    let text = format!(
        "busy threads {} and {} share one physical core: cores {} and {} are SMT siblings",
        one.id.tid, other.id.tid, one.core, other.core,
    );
    Some(Diagnostic::new(text, [("core", f64::from(one.core)), ("sibling", f64::from(other.core))]))
}

/// Every client with every server.
fn pairs<'a>(
    ends: &[(&'a ThreadMetrics, u32)],
) -> impl Iterator<Item = (&'a ThreadMetrics, &'a ThreadMetrics, u32, u32)> {
    let of = |side| ends.iter().filter(move |(thread, _)| thread.sample.side == Some(side));
    of(Side::Client).flat_map(move |(client, from)| of(Side::Server).map(|(server, to)| (*client, *server, *from, *to)))
}

/// The level that the thread's core lies in, where it did not leave it for some samples.
fn stays_in(
    input: &LintInput<'_>,
    thread: &ThreadMetrics,
    samples: usize,
    level: fn(&CorePlace) -> Option<u32>,
) -> Option<u32> {
    let topology = &input.metrics.machine.facts.topology;
    let track = input.history.thread(thread.sample.id).filter(|track| track.cores.len() >= samples)?;
    let now = level(topology.place(thread.sample.core)?)?;
    let same = |core: &u32| topology.place(*core).and_then(level) == Some(now);
    track.last(samples).all(same).then_some(now)
}

// The traps of iperf3: threads that are not there, and pins of the thread that carries nothing.

fn is_iperf3(thread: &ThreadMetrics) -> bool {
    thread.sample.name == "iperf3"
}

/// Several streams in the only thread of a process: iperf3 before 3.16 has one thread whatever `-P` says.
pub(super) fn one_thread_for_all(input: &LintInput<'_>) -> Option<Diagnostic> {
    let threads_of = |pid: u32| input.metrics.threads.iter().filter(|thread| thread.sample.id.pid == pid).count();
    let tokens = &input.diagnosis.conclusion.connections;
    // One connection of each test is for control.
    let streams =
        |id: ThreadId| tokens.get(&id.pid).map_or(0, |all| connections(all.iter().copied()).saturating_sub(1));
    let alone = |thread: &&ThreadMetrics| streams(thread.sample.id) > 1 && threads_of(thread.sample.id.pid) == 1;
    let thread = busy(input.metrics).filter(|thread| is_iperf3(thread)).find(alone)?;
    let (pid, streams) = (thread.sample.id.pid, streams(thread.sample.id));
    let text = format!(
        "iperf3 ({pid}) runs {streams} streams in one thread, so they share one core; iperf3 ≥ 3.16 uses a thread \
         per stream"
    );
    Some(Diagnostic::new(text, [("streams", count(streams)), ("threads", 1.0)]))
}

/// The main thread is pinned, its workers are not: `taskset -p` of a process whose threads carry the traffic.
pub(super) fn only_the_main_thread(input: &LintInput<'_>) -> Option<Diagnostic> {
    let cores = |thread: &ThreadMetrics| thread.sample.allowed.as_ref().map_or(0, CoreSet::len);
    let main = |worker: &ThreadMetrics| {
        let mut all = input.metrics.threads.iter();
        all.find(|thread| thread.sample.id.pid == worker.sample.id.pid && thread.sample.duty == Duty::Control)
    };
    let free = busy(input.metrics)
        .filter(|thread| is_iperf3(thread))
        .filter(|worker| worker.sample.duty == Duty::Worker && cores(worker) > 1);
    let (main, worker) = free.filter_map(|worker| Some((main(worker)?, worker))).find(|(main, _)| cores(main) == 1)?;
    let (one, all) = (main.sample.allowed.as_ref()?, worker.sample.allowed.as_ref()?);
    let text = format!(
        "only the main thread of iperf3 ({}) is pinned (core {one}); it carries no traffic; pin its workers, which may run on {all} (taskset -cp CORE TID)",
        main.sample.id.pid
    );
    Some(Diagnostic::new(text, [("worker_cores", count(cores(worker)))]))
}
