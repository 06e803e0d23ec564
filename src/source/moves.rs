//! The moves of the watched threads as the kernel made them, where rights allow: an ftrace instance, or perf samples.
//! Begun after the first sample that has somebody to watch. It decides nothing about a move, and without rights it only
//! says once which would help.

mod btf;
mod claims;
mod filter;
mod format;
mod ftrace;
pub mod keeper;
mod newborn;
mod perf;
mod ring;
mod setup;
mod sys;
mod timens;
mod tracefs;

use super::{Roots, now_ns, way_out};
use crate::sample::{Move, Problem, ThreadSample, Trace, TraceSource};
use claims::Claims;
use filter::Filter;
use newborn::Newborn;
use setup::{Report, Setup};
use std::io;

/// How often the rings are read though no watched thread has moved: the moves of those yet to be found wait in them.
const READ_ANYWAY_NS: u64 = 1_000_000_000;
/// So many moves of numbers nobody watches are worth another filter.
const MANY_STRANGERS: usize = 256;
/// The process namespace of the machine itself (`PROC_PID_INIT_INO`, Linux 3.8): a trace knows no other's numbers.
const OF_THE_MACHINE: &str = "pid:[4026531836]";

/// Where moves come from.
trait Ring: Send {
    /// Adds the moves since the last reading, in no order.
    fn read(&mut self, moves: &mut Vec<Move>);
    /// Moves that happened and could not be read, since the beginning.
    fn lost(&self) -> u64;
}

/// How far the trace has come.
enum Stage {
    /// Nobody was watched so far.
    Idle,
    /// The setting-up thread is at work.
    Beginning(Setup),
    /// It runs.
    Running { setup: Setup, source: TraceSource, ring: Box<dyn Ring> },
    /// It cannot be had.
    Refused,
}

/// Tells the moves since the reading before, again and again.
pub struct MoveReader {
    roots: Roots,
    stage: Stage,
    newborn: Newborn,
    claims: Claims,
    /// The filter asked for last.
    ordered: Filter,
    /// The filters in force since the reading before, the newest last.
    in_force: Vec<(Filter, u64)>,
    /// The watched threads of the reading before, sorted, and the sum of their counts.
    watched: Vec<u32>,
    counted: Option<u64>,
    read_at_ns: u64,
    rings_read_at_ns: u64,
    /// What our clock has more than the kernel's own.
    clock_offset_ns: i64,
    problems: Vec<Problem>,
    refusal: Option<String>,
}

impl MoveReader {
    /// Opens nothing yet.
    #[must_use]
    pub fn new(roots: &Roots) -> Self {
        let refusal = refusal(roots);
        Self {
            roots: roots.clone(),
            stage: if refusal.is_none() { Stage::Idle } else { Stage::Refused },
            newborn: Newborn::new(roots),
            claims: Claims::default(),
            ordered: Filter::default(),
            in_force: Vec::new(),
            watched: Vec::new(),
            counted: None,
            read_at_ns: 0,
            rings_read_at_ns: 0,
            clock_offset_ns: timens::offset_ns(roots),
            problems: Vec::new(),
            refusal: refusal.flatten(),
        }
    }

    /// The moves of these threads since the reading before, none while they are not traced. To be called after the
    /// threads were read: then whatever their cores tell is in the trace.
    pub fn read(&mut self, threads: &[ThreadSample], interval_ns: u64) -> Option<Trace> {
        if matches!(self.stage, Stage::Refused) {
            self.tell(threads);
            return None;
        }
        if threads.is_empty() && matches!(self.stage, Stage::Idle) {
            return None;
        }
        let now_ns = now_ns();
        let mut tids: Vec<u32> = threads.iter().map(|thread| thread.id.tid).collect();
        tids.sort_unstable();
        if matches!(self.stage, Stage::Idle) {
            self.begin(&tids, interval_ns, now_ns);
        }
        self.hear();
        self.refresh_filter(&tids, now_ns);
        let trace = self.read_rings(threads, &tids, now_ns);
        self.watched = tids;
        self.read_at_ns = now_ns;
        trace
    }

    /// What could not be had; empty is the normal case.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn begin(&mut self, tids: &[u32], interval_ns: u64, now_ns: u64) {
        self.newborn.look(now_ns);
        self.ordered = self.newborn.filter(tids, now_ns);
        match Setup::start(&self.roots, self.ordered.clone(), interval_ns) {
            Ok(setup) => self.stage = Stage::Beginning(setup),
            Err(error) => self.refuse(&error),
        }
    }

    /// Takes what the setting-up thread has done since.
    fn hear(&mut self) {
        loop {
            let (Stage::Beginning(setup) | Stage::Running { setup, .. }) = &self.stage else { return };
            match setup.report() {
                None => return,
                Some(Report::InForce(filter, since_ns)) => self.in_force.push((filter, since_ns)),
                Some(Report::Refused(error)) => self.refuse(&error),
                Some(Report::Began(source, ring)) => {
                    if let Stage::Beginning(setup) = std::mem::replace(&mut self.stage, Stage::Idle) {
                        self.stage = Stage::Running { setup, source, ring };
                    }
                }
            }
        }
    }

    fn refuse(&mut self, error: &io::Error) {
        self.stage = Stage::Refused;
        let missing = error.kind() == io::ErrorKind::PermissionDenied;
        self.refusal = Some(if missing {
            "moves are counted, not traced: run vnettop as root or with CAP_PERFMON to have each with its time"
                .to_owned()
        } else {
            let mends = way_out(error, "mount tracefs or run vnettop as root");
            format!("moves are counted, not traced: {error}; {mends} to have each with its time")
        });
    }

    /// Says once what would help, while there is somebody to watch.
    fn tell(&mut self, threads: &[ThreadSample]) {
        if self.problems.is_empty() == threads.is_empty() {
            return;
        }
        let problem = |text| Problem { source: "moves".to_owned(), text };
        self.problems = self.refusal.clone().filter(|_| !threads.is_empty()).map(problem).into_iter().collect();
    }

    /// Asks for another filter when one of the watched threads is not covered, at once; for a better one now and then.
    fn refresh_filter(&mut self, tids: &[u32], now_ns: u64) {
        let looked = self.newborn.look(now_ns);
        let (Stage::Beginning(setup) | Stage::Running { setup, .. }) = &self.stage else { return };
        let uncovered = tids != self.watched && tids.iter().any(|&tid| !self.ordered.holds(tid));
        let worn = looked && (self.newborn.is_worn() || self.claims.strangers > MANY_STRANGERS);
        if !uncovered && !worn {
            return;
        }
        self.claims.strangers = 0;
        let better = self.newborn.filter(tids, now_ns);
        if better != self.ordered {
            setup.order(better.clone());
            self.ordered = better;
        }
    }

    fn read_rings(&mut self, threads: &[ThreadSample], tids: &[u32], now_ns: u64) -> Option<Trace> {
        let Stage::Running { source, ring, .. } = &mut self.stage else { return None };
        let counted = threads.iter().map(|thread| thread.migrations).sum::<Option<u64>>();
        // A thread's count rises after its move is in the ring: where no count rose there is nothing to be read.
        // Not so with perf, whose rings hold the moves of the whole machine.
        let is_filtered = *source == TraceSource::Ftrace;
        let still = is_filtered && counted.is_some() && counted == self.counted && tids == self.watched;
        let mut moves = Vec::new();
        if !still || now_ns.saturating_sub(self.rings_read_at_ns) >= READ_ANYWAY_NS {
            let waiting = self.claims.waiting();
            let known = waiting.len();
            ring.read(waiting);
            timens::shift(&mut waiting[known..], self.clock_offset_ns);
            if !is_filtered {
                waiting.retain(|one| self.ordered.holds(one.tid));
            }
            moves = self.claims.claim(tids, now_ns);
            self.rings_read_at_ns = now_ns;
        }
        self.counted = counted;
        let since_ns = self.read_at_ns;
        let partly = tids.iter().copied().filter(|&tid| !is_covered(&self.in_force, tid, since_ns)).collect();
        // What was replaced before this reading no longer matters for the next one.
        let newest = self.in_force.len().saturating_sub(1);
        self.in_force.drain(..newest);
        Some(Trace { source: *source, lost: ring.lost() + self.claims.crowded_out, moves, partly })
    }
}

/// Whether every filter in force since then let the moves of this thread pass.
fn is_covered(in_force: &[(Filter, u64)], tid: u32, since_ns: u64) -> bool {
    in_force.first().is_some_and(|(_, began_ns)| *began_ns <= since_ns)
        && in_force.iter().all(|(filter, _)| filter.holds(tid))
}

/// Why a trace of this machine could not speak of the threads of this /proc, where that is so; a sentence where there is
/// anything to be done about it.
#[allow(clippy::option_option, reason = "no reason, a reason without words, a reason")]
fn refusal(roots: &Roots) -> Option<Option<String>> {
    let target = |link: &str| std::fs::read_link(roots.proc.join(link)).ok();
    let is = |link: &str, expected: &str| target(link).is_some_and(|target| target.as_os_str() == expected);
    if is("self", &std::process::id().to_string()) && is("self/ns/pid", OF_THE_MACHINE) {
        return None;
    }
    // A captured /proc has nobody to trace.
    let sentence = "moves are counted, not traced: this is not the machine's own process namespace; run vnettop outside of \
                    the container to have each with its time";
    Some(target("self").map(|_| sentence.to_owned()))
}
