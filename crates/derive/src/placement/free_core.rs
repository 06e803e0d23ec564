//! Whether any core is left for the busy threads: where others keep every one of them busy, a pinned thread cannot evade them.

use super::busy_threads::busy_threads;
use super::candidates::{CandidateCore, Inputs, inputs};
use super::phrases::percent;
use crate::TestMetrics;
use crate::program_name::with_pids;
use std::collections::BTreeSet;
use vnettop_sample::quoted;
use vnettop_sample::{CoreId, Runner};

/// Share of a full core that others have from which on they want more than half of it: the scheduler shares it out fairly, so that
/// one busy thread beside one of a test shows half of what it would use.
const CONTENDED: f64 = 0.3;
/// Over less time nothing is refused: one busy moment is no crowd, seconds.
const LEAST_S: f64 = 1.0;
/// A core with no more idle time is full.
const IDLE: f64 = 0.05;
/// Cores that are named one by one, and programs that are named.
const MOST_CORES: usize = 4;
const MOST_PROGRAMS: usize = 3;
/// Processes of one name that are told one by one.
const MOST_PIDS: usize = 3;
/// A program that used less of the cores is not named, share of one core.
const LEAST: f64 = 0.1;

/// Why no placement can help: others use or want half or more of every core that the busy threads may have, and who they are. `None` where one
/// core is free, or nothing is known.
#[must_use]
pub fn no_free_core(metrics: &TestMetrics) -> Option<String> {
    let (threads, _) = busy_threads(metrics).ok()?;
    let inputs = inputs(metrics, threads, &[]);
    if inputs.recent.seconds < LEAST_S
        || inputs.candidates.is_empty()
        || !inputs.candidates.iter().all(|core| is_taken(&inputs, core))
    {
        return None;
    }
    let runners: Vec<&Runner> = strangers(metrics).collect();
    let others = |core: CoreId| percent(inputs.recent.core(core).map_or(0.0, |load| load.others));
    let one = |core: &CandidateCore| {
        let here = runners.iter().copied().filter(|runner| runner.core == core.core);
        let who = joined(&named(here, (1, false))).map_or_else(String::new, |who| format!(" ({who})"));
        format!("{} % of core {}{who}", others(core.core), core.core)
    };
    let taken = if inputs.candidates.len() <= MOST_CORES {
        inputs.candidates.iter().map(one).collect::<Vec<_>>().join(", ")
    } else {
        let is_candidate = |runner: &&Runner| inputs.candidate(runner.core).is_some();
        let who = joined(&named(runners.iter().copied().filter(is_candidate), (MOST_PROGRAMS, false)));
        let who = who.map_or_else(String::new, |who| format!(" ({who})"));
        format!("half or more of each of the {} cores that the threads may use{who}", inputs.candidates.len())
    };
    Some(format!("no free core: others use {taken}"))
}

fn is_taken(inputs: &Inputs<'_>, core: &CandidateCore) -> bool {
    let is_contended = |load: crate::recent_load::CoreRecent| load.others >= CONTENDED && 1.0 - load.busy <= IDLE;
    core.busy_with_others || inputs.recent.core(core.core).is_some_and(is_contended)
}

/// The programs that use most of a core, or of all, most first: `rustc (pid 662), cc1 (2 processes)`; `None` where
/// none is known.
pub(crate) fn programs_on(metrics: &TestMetrics, core: Option<CoreId>) -> Option<String> {
    let is_there = |runner: &&Runner| core.is_none_or(|core| runner.core == core);
    joined(&named(strangers(metrics).filter(is_there), (MOST_PROGRAMS, true)))
}

/// A program, as it is called in a sentence, and its pid where it is one process.
pub(crate) type NamedProgram = (String, Option<u32>);

/// The one that uses most of a core.
pub(crate) fn program_on(metrics: &TestMetrics, core: CoreId) -> Option<NamedProgram> {
    named(strangers(metrics).filter(|runner| runner.core == core), (1, true)).pop()
}

fn joined(programs: &[NamedProgram]) -> Option<String> {
    let names: Vec<&str> = programs.iter().map(|(name, _)| name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The threads that use cores and are none of the test's; the kernel's for softirqs do what is counted as such.
fn strangers(metrics: &TestMetrics) -> impl Iterator<Item = &Runner> {
    let is_end = |pid: u32| metrics.threads.iter().any(|thread| thread.sample.id.pid == pid);
    let is_worker = |tid: u32| metrics.workers.iter().any(|worker| worker.id().tid == tid);
    let runners = metrics.machine.facts.runners.iter();
    runners.filter(move |one| !is_end(one.pid) && !is_worker(one.tid) && !one.is_ksoftirqd())
}

/// So many programs, those that use most first, each once: `rustc`, `cc1`, perhaps with its process, or how many they are.
fn named<'a>(runners: impl Iterator<Item = &'a Runner>, (most, with_pid): (usize, bool)) -> Vec<NamedProgram> {
    let mut programs: Vec<(&str, f64, BTreeSet<u32>)> = Vec::new();
    for runner in runners {
        let share = runner.cpu_ns as f64 / runner.over_ns.max(1) as f64;
        match programs.iter_mut().find(|(name, ..)| *name == runner.name) {
            Some((_, all, pids)) => {
                *all += share;
                pids.insert(runner.pid);
            }
            None => programs.push((&runner.name, share, BTreeSet::from([runner.pid]))),
        }
    }
    programs.retain(|(_, share, _)| *share >= LEAST);
    programs.sort_by(|one, other| other.1.total_cmp(&one.1));
    let program = |(name, _, pids): &(&str, f64, BTreeSet<u32>)| {
        let only = pids.first().copied().filter(|_| pids.len() == 1);
        let text = if with_pid { with_pids(name, pids, MOST_PIDS) } else { quoted(name).into_owned() };
        (text, only)
    };
    programs.iter().take(most).map(program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::tests::machine::Machine;
    use std::sync::Arc;

    /// Two threads of a test, each using so much of its core beside so much of others, who are told by name.
    fn told(machine: Machine, (others, own): (f64, f64), cores: &str, names: &[(&str, CoreId, u64)]) -> Option<String> {
        let machine = machine.pair(0, 1).each_thread(|thread| thread.cpu = Some(own)).busy(cores, others, 0.0);
        let mut metrics = machine.metrics();
        let runner = |(at, &(name, core, percent)): (usize, &(&str, CoreId, u64))| {
            let tid = 900 + u32::try_from(at).expect("few");
            Runner { pid: tid, tid, name: name.to_owned(), core, cpu_ns: percent, over_ns: 100, kernel: None }
        };
        let mut facts = (*metrics.machine.facts).clone();
        facts.runners = Arc::new(names.iter().enumerate().map(runner).collect());
        let mut changed = (*metrics.machine).clone();
        changed.facts = Arc::new(facts);
        metrics.machine = Arc::new(changed);
        no_free_core(&metrics)
    }

    #[test]
    fn where_others_have_every_core_it_is_said_who() {
        let names = [("rustc", 0, 60), ("iperf3", 0, 30), ("cc1", 1, 55), ("bash", 1, 4)];
        let why = told(Machine::small(2), (0.6, 0.4), "0-1", &names);
        assert_eq!(why.as_deref(), Some("no free core: others use 52 % of core 0 (rustc), 52 % of core 1 (cc1)"));
        let unknown = told(Machine::small(2), (0.6, 0.4), "0-1", &[]);
        assert_eq!(unknown.as_deref(), Some("no free core: others use 52 % of core 0, 52 % of core 1"));
        assert_eq!(told(Machine::small(3), (0.6, 0.4), "0-1", &names), None, "core 2 is free");
        assert_eq!(told(Machine::small(2), (0.4, 0.4), "0-1", &names), None, "each has idle time");
        let shared = told(Machine::small(2), (0.48, 0.5), "0-1", &names).expect("full, and shared out fairly");
        assert!(shared.contains("35 % of core 0 (rustc)"), "{shared}");
    }

    #[test]
    fn of_many_cores_the_programs_are_named_together() {
        let names = [("rustc", 3, 90), ("rustc", 9, 90), ("cc1", 4, 95), ("ld", 5, 50), ("make", 6, 40)];
        let why = told(Machine::kunpeng(), (0.6, 0.3), "0-127", &names);
        let text =
            "no free core: others use half or more of each of the 128 cores that the threads may use (rustc, cc1, ld)";
        assert_eq!(why.as_deref(), Some(text));
    }
}
