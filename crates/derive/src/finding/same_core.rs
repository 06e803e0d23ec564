//! Busy threads of a test that have to take turns on one core.

use super::threads::{SAMPLES_TOGETHER, busy, stays};
use super::{Diagnostic, FindingParts, LintInput, remedy};
use crate::figure::{count, percent};
use crate::placement::programs_on;
use crate::spare_core;
use crate::threads::ThreadMetrics;
use vnettop_sample::{CoreId, CoreSet};

/// So many threads are named one by one.
const NAMED: usize = 2;

/// Of the most threads that share a core: who they are, how long each waits for it, and which core could have one of them.
pub(super) fn taking_turns(input: &LintInput<'_>) -> Option<Diagnostic> {
    let is_known = |thread: &&ThreadMetrics| {
        input.history.thread(thread.sample.id).is_some_and(|track| track.cores.len() >= SAMPLES_TOGETHER)
    };
    let mut settled: Vec<&ThreadMetrics> =
        busy(input.metrics).filter(is_known).filter(|thread| stays(input, thread)).collect();
    settled.sort_by_key(|thread| (thread.sample.core, thread.sample.id));
    let by_core = settled.chunk_by(|one, other| one.sample.core == other.sample.core);
    let together = by_core.max_by_key(|threads| threads.len()).filter(|threads| threads.len() > 1)?;
    let core = together[0].sample.core;
    let waits = together.iter().filter_map(|thread| thread.wait).reduce(f64::max);
    let waiting =
        waits.map_or_else(String::new, |wait| format!(" and wait for it up to {:.0} % of the time", wait * 100.0));
    let mut numbers = vec![("core", f64::from(core)), ("threads", count(together.len()))];
    numbers.extend(waits.map(|wait| ("wait", wait)));
    let is_bound = together.iter().all(|one| one.sample.allowed.as_ref().is_some_and(|allowed| allowed.len() == 1));
    let share = if is_bound { "are bound to" } else { "share" };
    let why = format!("{} {share} core {core}{waiting}", who(together));
    let fix = if input.pin_may_help { String::new() } else { apart(input, together, core) };
    let text = remedy::sentence(&why, &fix);
    let parts = FindingParts { why, cost: cost_of_waiting(input, together), fix, ..FindingParts::default() };
    Some(Diagnostic { text, parts: Some(parts), cost: waits, numbers })
}

/// How long the one that waits longest does, and how long it runs: by so much it could run more at most.
fn cost_of_waiting(input: &LintInput<'_>, together: &[&ThreadMetrics]) -> String {
    let known = together.iter().filter_map(|thread| Some((thread.wait?, thread.cpu?, thread)));
    let longest = known.max_by(|one, other| one.0.total_cmp(&other.0));
    let time = longest.map(|(wait, cpu, thread)| {
        let (cpu, wait) = (percent(cpu), percent(wait));
        format!("{} {} waits {wait} % of the time and runs {cpu} %", thread.sample.name, thread.sample.role())
    });
    remedy::cost_of_waiting(input, "with a core each", time)
}

/// `iperf3 server 4012 and iperf3 client 4010`, or how many there are.
fn who(together: &[&ThreadMetrics]) -> String {
    let names: Vec<String> = together.iter().take(NAMED).map(|thread| name(thread)).collect();
    if together.len() == NAMED { names.join(" and ") } else { format!("{} busy threads", together.len()) }
}

fn name(thread: &ThreadMetrics) -> String {
    let sample = &thread.sample;
    format!("{} {} {}", sample.name, sample.role(), sample.id.tid)
}

/// Where no key moves them: which core has time for one of them, and the command that gives it that.
fn apart(input: &LintInput<'_>, together: &[&ThreadMetrics], core: CoreId) -> String {
    let Some(last) = together.last() else { return String::new() };
    let (tid, who) = (last.sample.id.tid, name(last));
    if let Some(free) =
        spare_core::calmest_beside(&input.metrics.machine, [&CoreSet::single(core), &CoreSet::default()])
    {
        return format!("pin {who} to core {free} (taskset -cp {free} {tid})");
    }
    let others = input.metrics.machine.cores.iter().filter(|one| one.place.core != core);
    let idle = others.filter_map(|one| Some((one.place.core, one.shares()?.idle)));
    idle.max_by(|one, other| one.1.total_cmp(&other.1)).map_or_else(String::new, |(other, _)| {
        // Where no program is named it is full of the test's own threads or of softirqs.
        let room = programs_on(input.metrics, Some(other))
            .map_or_else(|| format!("make room on core {other}"), |fills| format!("stop {fills} on core {other}"));
        format!("{room}, then pin {who} there (taskset -cp {other} {tid})")
    })
}
