//! A rate that swings: because of moves, where that is shown, or for another reason, which is said too.

use super::reordered::reordered;
use super::{Diagnostic, FindingParts, LintInput};
use crate::diagnosis::{ComparedCauses, Conclusion, LEAST_TICKS, OtherCause};
use crate::figure::{Unit, bytes, decimal, percent, rate};
use crate::held_back::Limit;
use crate::jitter::Jitter;
use crate::migration_cost::{Cause, Crossing, LEAST_BINS};
use crate::{FlowBasis, TestMetrics};
use vnettop_sample::{Problem, ProblemSource, TraceSource, TracerStage};

/// Least coefficient of variation at which moves that lower the rate are reported.
const SWINGS: f64 = 0.05;
/// Least coefficient of variation at which a swing without a known cause is reported.
const SWINGS_MUCH: f64 = 0.10;
/// A rate below this is no benchmark, bits/s.
const TRAFFIC: f64 = 1e6;
/// Fewer moves a second than this are shown as 0.0.
const LEAST_RATE: f64 = 0.05;
/// So much of a test tells whether its migrations cost anything, s.
const LONG_S: f64 = 20.0;

fn swinging<'a>(input: &LintInput<'a>, from: f64) -> Option<(&'a Jitter, f64)> {
    let jitter = input.diagnosis.conclusion.jitter.as_ref().filter(|jitter| jitter.mean >= TRAFFIC)?;
    Some((jitter, jitter.cv.filter(|&cv| cv >= from)?))
}

/// Moves lower the rate: how often, how much, what one costs.
pub(super) fn by_moves(input: &LintInput<'_>) -> Option<Diagnostic> {
    let (jitter, cv) = swinging(input, SWINGS)?;
    let conclusion = &input.diagnosis.conclusion;
    let cause = conclusion.cause?;
    let unit = Unit::of(jitter.mean);
    let kind = match cause.crossing {
        Crossing::Any => "",
        Crossing::Nodes => " across nodes",
    };
    let text = format!(
        "{}. {} {} while threads migrate{kind}, {} otherwise; each migration{kind} costs ≈ {} ({:.0} ms of traffic); \
         {}. {}",
        swing(jitter, cv),
        unit.figure(cause.rate_with),
        unit.word,
        unit.figure(cause.rate_without),
        bytes(cause.bytes_per_move),
        cause.bytes_per_move * 8.0 / cause.rate_without * 1e3,
        moves(conclusion, input.metrics.machine.facts.topology.nodes),
        measured(jitter, conclusion),
    );
    let mut numbers = spread(jitter, cv, conclusion);
    numbers.extend(figures(&cause));
    let parts = Some(parts_of_moves(input, &cause));
    Some(Diagnostic { text, parts, cost: Some(cause.lost), numbers })
}

/// `threads migrate 1.6/s, 1.1/s across NUMA nodes`, and what that costs.
fn parts_of_moves(input: &LintInput<'_>, cause: &Cause) -> FindingParts {
    let conclusion = &input.diagnosis.conclusion;
    let nodes = input.metrics.machine.facts.topology.nodes;
    let is_far = nodes > 1 && conclusion.far_per_s >= LEAST_RATE;
    let kind = if cause.crossing == Crossing::Nodes { " across nodes" } else { "" };
    let far = if is_far { format!(", {:.1}/s across NUMA nodes", conclusion.far_per_s) } else { String::new() };
    let each_ms = cause.bytes_per_move * 8.0 / cause.rate_without * 1e3;
    let unit = Unit::of(cause.rate_without);
    // What is missing of it: the figures beside it are these.
    let jitter = input.metrics.jitter.or(conclusion.jitter);
    // Their difference too, as they are shown.
    let shown = |bits: f64| unit.rounded(bits);
    let missing = jitter.map(|jitter| shown(cause.rate_without) - shown(jitter.mean)).filter(|missing| *missing > 0.0);
    let of_all = |missing: f64| {
        let (missing, all) = (unit.figure(missing), unit.figure(cause.rate_without));
        let [mean, with] = [jitter.map_or(0.0, |jitter| jitter.mean), cause.rate_with].map(|rate| unit.figure(rate));
        format!("{missing} {}: mean {mean} instead of {all}, {with} while threads migrate{kind}", unit.word)
    };
    FindingParts {
        why: format!("threads migrate {:.1}/s{far}", conclusion.moves_per_s),
        cost: missing.map_or_else(|| format!("each migration costs ≈ {each_ms:.0} ms of traffic"), of_all),
        ..FindingParts::default()
    }
}

/// The rate swings, and moves are not shown to be why.
pub(super) fn unexplained(input: &LintInput<'_>) -> Option<Diagnostic> {
    let (jitter, cv) = swinging(input, SWINGS_MUCH)?;
    let conclusion = &input.diagnosis.conclusion;
    // No cause is looked for in fewer bins.
    if conclusion.cause.is_some() || jitter.bins < LEAST_BINS {
        return None;
    }
    // Packets that overtake each other are a cause, and have a finding of their own.
    if reordered(input).is_some() {
        return None;
    }
    let (moves, ruled_out, doubt) = if conclusion.moves_per_s < LEAST_RATE {
        ("no migrations".to_owned(), "migrations (none)".to_owned(), "")
    } else {
        let moves = moves(conclusion, input.metrics.machine.facts.topology.nodes);
        let ruled_out = format!("migrations ({})", moves.replacen(" migrations/s", "/s", 1));
        (moves, ruled_out, ", not shown to be the cause")
    };
    let mut numbers = spread(jitter, cv, conclusion);
    let instead = if let Some(probes) = conclusion.probes {
        numbers.extend([("dips", probes.dips as f64), ("every_s", probes.every_s), ("explained", probes.explained)]);
        format!(
            "bbr measures the round trip (PROBE_RTT): {} dips of {} s, one every {} s",
            probes.dips,
            decimal(probes.lasts_s),
            decimal(probes.every_s)
        )
    } else if let Some(rival) = conclusion.rival {
        numbers.extend([("correlation", rival.correlation), ("correlates_with_mean", rival.mean)]);
        let share = percent(rival.mean);
        let what = match rival.suspect {
            OtherCause::Steal => format!("steal on the test cores ({share} % of time)"),
            OtherCause::Softirq => format!("unrelated interrupts and softirqs on test cores ({share} % of time)"),
            OtherCause::Wait => format!("the threads' CPU wait ({share} % of the time)"),
            OtherCause::Starved => format!("the CPU time that its busiest thread does not get ({share} % of a core)"),
            OtherCause::Worker => {
                format!("the CPU time that the busiest thread between the ends lacks ({share} % of a core)")
            }
            OtherCause::Squeezed => format!("squeezes on test cores ({} times/s)", rate(rival.mean)),
        };
        let follows = format!("The rate falls with {what}, correlation {:.2}", rival.correlation).replace('-', "−");
        format!("{follows}; {moves}{doubt}")
    } else {
        unfound(input, jitter, &moves, &ruled_out)
    };
    let text = format!("{}. {instead}. {}", swing(jitter, cv), measured(jitter, conclusion));
    // That it is unsteady, the state says.
    let parts = FindingParts { why: instead, ..FindingParts::default() };
    Some(Diagnostic::new(text, numbers).in_parts(parts))
}

/// Where nothing is found that the rate follows: what was looked at, and what else is known to make it swing.
fn unfound(input: &LintInput<'_>, jitter: &Jitter, moves: &str, ruled_out: &str) -> String {
    let conclusion = &input.diagnosis.conclusion;
    let is_early = jitter.window_s < LONG_S && conclusion.moves_per_s >= LEAST_RATE;
    let none = || if is_early { "No cause found yet".to_owned() } else { "No cause found".to_owned() };
    let found = input.limit.and_then(Limit::makes_unsteady).map_or_else(none, |by| format!("Cause: {by}"));
    let ComparedCauses { ticks, starved, worker } = conclusion.compared;
    let last = match (starved, worker) {
        (false, false) => "",
        (true, false) => ", lack of CPU time at the ends",
        (false, true) => ", lack of CPU time between the ends",
        (true, true) => ", lack of CPU time at and between the ends",
    };
    let compared = if conclusion.compared.is_any() && is_early {
        format!(
            "Too few migrations ({moves}) to say what they cost. Ruled out: steal, other softirqs, CPU wait, squeezes{last}"
        )
    } else if conclusion.compared.is_any() {
        format!("Ruled out: {ruled_out}, steal, other softirqs, CPU wait, squeezes{last}")
    } else {
        let moves = if conclusion.moves_per_s < LEAST_RATE { "No migrations" } else { moves };
        format!("{moves}; {ticks} samples are too few to compare with steal and waits ({LEAST_TICKS} needed)")
    };
    format!("{found}. {compared}")
}

/// Moves are only counted, so that what they cost cannot be told.
pub(super) fn untraced(input: &LintInput<'_>) -> Option<Diagnostic> {
    swinging(input, SWINGS_MUCH)?;
    let conclusion = &input.diagnosis.conclusion;
    let way_out = match input.metrics.machine.trace {
        // With every move traced already, only time helps.
        Some((TraceSource::Bpf | TraceSource::Ftrace, _)) => return None,
        Some((TraceSource::Perf, _)) => "perf misses some; run as root to trace each",
        None => untraced_since(input.metrics),
    };
    (conclusion.cause.is_none() && conclusion.vague && conclusion.moves_per_s >= LEAST_RATE).then(|| {
        let text = format!(
            "most migrations are only counted, too coarsely to know what each costs: {way_out}; a shorter interval (-d) helps too"
        );
        Diagnostic::new(text, [("moves_per_s", conclusion.moves_per_s)])
    })
}

/// Why none is traced. Who has the rights is not asked for them.
fn untraced_since(metrics: &TestMetrics) -> &'static str {
    let is_of_rights = |problem: &Problem| problem.source == ProblemSource::Kernel && problem.is_of_rights();
    match metrics.machine.tracer.map(|tracer| tracer.state) {
        Some(TracerStage::Idle | TracerStage::BeingAttached) => "the tracer is being attached",
        Some(TracerStage::Attached) => "migrations are not among what this kernel lets vnettop trace",
        Some(TracerStage::Refused) if !metrics.machine.facts.problems.iter().any(is_of_rights) => {
            "this kernel does not let vnettop trace them; a problem says why"
        }
        Some(TracerStage::Refused) | None => "run as root to trace each, where the kernel allows it",
    }
}

/// `Unsteady over 30 s: 24.1 ± 9.2 Gbit/s (CV 38 %)`: other figures are of the whole test, so the time is named.
fn swing(jitter: &Jitter, cv: f64) -> String {
    let unit = Unit::of(jitter.mean);
    let (mean, deviation) = (unit.figure(jitter.mean), unit.figure(jitter.deviation));
    format!("Unsteady over {:.0} s: {mean} ± {deviation} {} (CV {} %)", jitter.window_s, unit.word, percent(cv))
}

/// `In 100 ms bins of 2 connections`.
fn measured(jitter: &Jitter, conclusion: &Conclusion) -> String {
    let basis = match &conclusion.basis {
        Some(FlowBasis::Sockets(1)) => " of 1 connection".to_owned(),
        Some(FlowBasis::Sockets(connections)) => format!(" of {connections} connections"),
        Some(FlowBasis::Datagrams(1)) => " of 1 UDP stream".to_owned(),
        Some(FlowBasis::Datagrams(streams)) => format!(" of {streams} UDP streams"),
        Some(FlowBasis::Link(name)) => format!(" of link {name}"),
        None => String::new(),
    };
    format!("In {:.0} ms bins{basis}", jitter.bin_s * 1e3)
}

fn moves(conclusion: &Conclusion, nodes: u32) -> String {
    let all = format!("{} migrations/s", rate(conclusion.moves_per_s));
    if nodes < 2 || conclusion.far_per_s < LEAST_RATE {
        return all;
    }
    format!("{all}, {} across nodes", rate(conclusion.far_per_s))
}

fn spread(jitter: &Jitter, cv: f64, conclusion: &Conclusion) -> Vec<(&'static str, f64)> {
    vec![
        ("cv", cv),
        ("mean_bits_per_s", jitter.mean),
        ("deviation_bits_per_s", jitter.deviation),
        ("window_s", jitter.window_s),
        ("bin_s", jitter.bin_s),
        ("moves_per_s", conclusion.moves_per_s),
        ("moves_across_nodes_per_s", conclusion.far_per_s),
    ]
}

fn figures(cause: &Cause) -> [(&'static str, f64); 9] {
    [
        ("blamed_moves_per_s", cause.moves_per_s),
        ("with_move_bits_per_s", cause.rate_with),
        ("without_move_bits_per_s", cause.rate_without),
        ("bytes_per_move", cause.bytes_per_move),
        ("slowdown", cause.slowdown),
        ("slowdown_lasts_s", cause.lasts_s),
        ("lost", cause.lost),
        ("explained", cause.explained),
        ("p_value", cause.p),
    ]
}
