//! The moves of the watched threads as the kernel made them, where it tells them (`bpf::moves`). It decides nothing about a
//! move.

mod filter;
mod pending_moves;
mod pid_horizon;
mod timens;

use super::{Roots, now_ns};
use crate::bpf::moves::{MoveRings, MovedProcess, RawMove, TraceRequest};
use pending_moves::PendingMoves;
use pid_horizon::PidHorizon;
use std::collections::BTreeSet;
use vnettop_sample::text::clean;
use vnettop_sample::{ShortLived, ThreadSample, Trace, TraceSource};

/// How often the rings are read though no watched thread has moved: the moves of those yet to be found wait in them.
const READ_ANYWAY_NS: u64 = 1_000_000_000;
/// So many moves of numbers nobody watches are worth another filter.
const MANY_STRANGERS: usize = 256;

/// Finds the threads to watch.
pub trait ThreadLookup {
    /// Whether a thread that was moved is watched once it is found, by its number or by its name.
    fn would_watch(&self, tid: u32, process: &MovedProcess) -> bool;

    /// Whether nobody has this number any more, or only its exit code is left.
    fn has_ended(&self, tid: u32) -> bool;
}

/// Reads the moves since the reading before.
#[derive(Default)]
pub struct MoveReader {
    newborn: PidHorizon,
    pending: PendingMoves,
    /// What the kernel was asked for when the reading before ended; `None` while that is nothing.
    in_force: Option<TraceRequest>,
    /// The watched threads of the reading before, sorted, and the sum of their counts.
    watched: Vec<u32>,
    counted: Option<u64>,
    /// Processes of the watched threads.
    pids: BTreeSet<u32>,
    rings_read_at_ns: u64,
    /// Offset of vnettop's clock from the kernel's own, ns.
    clock_offset_ns: i64,
}

impl MoveReader {
    /// Asks for nothing yet.
    #[must_use]
    pub fn new(roots: &Roots) -> Self {
        Self { newborn: PidHorizon::new(roots), clock_offset_ns: timens::offset_ns(roots), ..Self::default() }
    }

    /// The moves of these threads since the reading before, and of those that the `finder` would have watched had it found them in
    /// time; `None` when the kernel reports none. Call it after the threads were read: then every move that led to their cores is in
    /// the rings.
    pub fn read(
        &mut self,
        rings: Option<&mut MoveRings>,
        threads: &[ThreadSample],
        finder: &impl ThreadLookup,
    ) -> Option<Trace> {
        let rings = rings.filter(|_| !threads.is_empty() || self.in_force.is_some())?;
        let now_ns = now_ns();
        let mut tids: Vec<u32> = threads.iter().map(|thread| thread.id.tid).collect();
        tids.sort_unstable();
        let trace = self.take(rings, threads, &tids, (finder, now_ns));
        self.ask(rings, &tids, now_ns);
        self.watched = tids;
        trace
    }

    /// Asks for the moves of others when one of the watched threads is not covered, at once; for a better range of those yet
    /// to be born now and then.
    fn ask(&mut self, rings: &mut MoveRings, tids: &[u32], now_ns: u64) {
        let looked = self.newborn.look(now_ns);
        let is_covered = |asked: &TraceRequest| tids.iter().all(|&tid| filter::holds(asked, tid));
        let changes = tids != self.watched && !is_covered(&rings.asked);
        let worn = looked && (self.newborn.is_worn() || self.pending.strangers > MANY_STRANGERS);
        if changes || worn || self.in_force.is_none() {
            self.pending.strangers = 0;
            rings.ask(&self.newborn.filter(tids, now_ns));
            self.in_force = Some(rings.asked.clone());
        }
    }

    fn take(
        &mut self,
        rings: &mut MoveRings,
        threads: &[ThreadSample],
        tids: &[u32],
        (finder, now_ns): (&impl ThreadLookup, u64),
    ) -> Option<Trace> {
        // What happened before it was asked for is not known.
        let in_force = self.in_force.clone()?;
        let counted = threads.iter().map(|thread| thread.migrations).sum::<Option<u64>>();
        // A thread's count rises after its move is in the ring: where no count rose there is nothing to be read.
        let still = counted.is_some() && counted == self.counted && tids == self.watched;
        let (mut moves, mut ended) = (Vec::new(), Vec::new());
        if !still || now_ns.saturating_sub(self.rings_read_at_ns) >= READ_ANYWAY_NS {
            self.fill(rings);
            let now: BTreeSet<u32> = threads.iter().map(|thread| thread.id.pid).collect();
            let before = std::mem::replace(&mut self.pids, now);
            let pids = &self.pids | &before;
            let is_wanted = |one: &RawMove| {
                one.process.is_some_and(|process| pids.contains(&process.pid) || finder.would_watch(one.tid, &process))
            };
            ended = self.ended(tids, is_wanted, finder);
            if !ended.is_empty() {
                // What they did between the first reading and their end.
                self.fill(rings);
            }
            moves = self.pending.claim(tids, now_ns, &ended, is_wanted);
            self.rings_read_at_ns = now_ns;
        }
        self.counted = counted;
        let partly = tids.iter().copied().filter(|&tid| !filter::holds(&in_force, tid)).collect();
        let lost = rings.lost + self.pending.crowded_out;
        let short_lived = rings.tell_processes().then_some(ended);
        Some(Trace { source: TraceSource::Bpf, lost, moves, partly, short_lived })
    }

    fn fill(&mut self, rings: &mut MoveRings) {
        let waiting = &mut self.pending.waiting;
        let known = waiting.len();
        rings.read(|one| waiting.push(one));
        timens::shift(&mut waiting[known..], self.clock_offset_ns);
    }

    /// Threads that were moved, would be watched, and ended before they were found.
    fn ended(&self, tids: &[u32], is_wanted: impl Fn(&RawMove) -> bool, finder: &impl ThreadLookup) -> Vec<ShortLived> {
        let unknown = self.pending.of_unknown(tids).into_iter();
        let ended = unknown.filter(|one| is_wanted(one) && finder.has_ended(one.tid));
        ended.filter_map(|one| short_lived(&one)).collect()
    }
}

/// Who was moved, by a name that steers no terminal.
fn short_lived(one: &RawMove) -> Option<ShortLived> {
    let process = one.process?;
    Some(ShortLived { pid: process.pid, tid: one.tid, name: clean(process.name()).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_steer_a_terminal_is_only_text() {
        let moved = |name: &[u8]| {
            let process = Some(MovedProcess::new(7, 1, name));
            short_lived(&RawMove { at_ns: 1, tid: 8, from: 0, to: 1, process }).expect("it has a process").name
        };
        assert_eq!(moved(b"forky"), "forky");
        assert!(!moved(b"\x1b[2J\xff\nx").contains(char::is_control), "no code gets through");
    }
}
