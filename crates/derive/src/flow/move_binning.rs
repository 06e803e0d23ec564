//! Moves into bins: traced ones by their instant, counted ones evenly over the time in which they were counted.

use crate::ledger::{Bin, Ledger};
use crate::moves::MoveClass;
use std::collections::VecDeque;
use vnettop_sample::{Sample, ThreadSample, Trace, row_of};

/// Moves that wait for their bin: beyond this the oldest is forgotten.
const MOST_WAITING: usize = 65_536;

/// Moves whose bins are not over yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct MoveBinning {
    traced: VecDeque<(u64, Option<MoveClass>)>,
    spread: VecDeque<SpreadMoves>,
    /// Events that came before the count that holds them: the trace is read after the counts.
    ahead: u64,
}

/// So many moves within a time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SpreadMoves {
    from_ns: u64,
    to_ns: u64,
    moves: f64,
}

impl MoveBinning {
    /// Takes the moves between two samples; those of bins that are over already go there.
    pub fn observe(&mut self, previous: &Sample, next: &Sample, over: &mut Ledger<Bin>) {
        if let Some(trace) = &next.trace {
            for traced in &trace.moves {
                let class = MoveClass::of(&next.facts.topology, traced.from, traced.to);
                match over.after_mut(traced.at_ns) {
                    Some(bin) if bin.from_ns <= traced.at_ns => add(bin, class),
                    Some(_) => {}
                    None => self.traced.push_back((traced.at_ns, class)),
                }
            }
            let excess = self.traced.len().saturating_sub(MOST_WAITING);
            self.traced.drain(..excess);
            let untold = self.untold(previous, next, trace);
            self.spread(previous.at_ns, next.at_ns, untold as f64);
        } else {
            self.counted(previous, next);
        }
    }

    /// Puts into a bin what belongs there.
    pub fn fill(&mut self, bin: &mut Bin) {
        self.traced.retain(|&(at_ns, class)| {
            let waits = at_ns >= bin.to_ns;
            if !waits && at_ns >= bin.from_ns {
                add(bin, class);
            }
            waits
        });
        for spread in &self.spread {
            let common_ns = bin.to_ns.min(spread.to_ns).saturating_sub(bin.from_ns.max(spread.from_ns));
            bin.unclassed += spread.moves * common_ns as f64 / (spread.to_ns - spread.from_ns) as f64;
        }
        self.forget(bin.to_ns);
    }

    /// What was before this instant has no bin.
    pub fn forget(&mut self, before_ns: u64) {
        self.traced.retain(|&(at_ns, _)| at_ns >= before_ns);
        self.spread.retain(|spread| spread.to_ns > before_ns);
        let excess = self.spread.len().saturating_sub(MOST_WAITING);
        self.spread.drain(..excess);
    }

    /// Moves of watched threads since the older sample that no event tells of: what the kernel counted of each beyond its
    /// events. Records that a trace lost say this only where nothing counts, and only if it asks for watched threads alone.
    fn untold(&mut self, previous: &Sample, next: &Sample, trace: &Trace) -> u64 {
        let Some(counted) = counted(previous, next) else {
            let lost = trace.lost.saturating_sub(previous.trace.as_ref().map_or(0, |old| old.lost));
            return if trace.source.is_filtered() { lost } else { 0 };
        };
        // Traced moves of a thread missing from the previous sample are left out: its counter was not read then.
        let found = |tid: u32| previous.watched().any(|old| old.id.tid == tid);
        let reported = trace.moves.chunk_by(|one, other| one.tid == other.tid).filter(|run| found(run[0].tid));
        let reported: u64 = reported.map(|run| run.len() as u64).sum();
        let untold = counted.saturating_sub(reported + self.ahead);
        self.ahead = (reported + self.ahead).saturating_sub(counted).min(reported);
        untold
    }

    fn counted(&mut self, previous: &Sample, next: &Sample) {
        let mut moves = 0.0;
        let (mut from_ns, mut to_ns) = (u64::MAX, 0);
        for thread in next.watched() {
            let Some(old) = row_of(&previous.threads, &thread.id, |old| old.id) else { continue };
            moves += rise(old, thread) as f64;
            (from_ns, to_ns) = (from_ns.min(old.at_ns), to_ns.max(thread.at_ns));
        }
        self.spread(from_ns, to_ns, moves);
    }

    fn spread(&mut self, from_ns: u64, to_ns: u64, moves: f64) {
        if moves > 0.0 && from_ns < to_ns {
            self.spread.push_back(SpreadMoves { from_ns, to_ns, moves });
        }
    }
}

/// Moves counted between two samples of a thread; a changed core is one at least, where they are not counted.
fn rise(old: &ThreadSample, new: &ThreadSample) -> u64 {
    match (old.migrations, new.migrations) {
        (Some(from), Some(to)) => to.saturating_sub(from),
        _ => u64::from(old.core != new.core),
    }
}

/// Moves that the kernel counted of the threads in both samples; none where one of them has no count.
fn counted(previous: &Sample, next: &Sample) -> Option<u64> {
    let rise = |new: &ThreadSample| {
        let from = row_of(&previous.threads, &new.id, |old| old.id)?.migrations;
        Some(from.zip(new.migrations).map(|(from, to)| to.saturating_sub(from)))
    };
    next.watched().filter_map(rise).sum()
}

fn add(bin: &mut Bin, class: Option<MoveClass>) {
    match class {
        Some(class) => bin.moves.add(class, 1),
        None => bin.unclassed += 1.0,
    }
}
