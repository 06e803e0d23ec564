//! What one watched thread did since it was first seen, in steps that never fall.

use super::super::{Metrics, MovesByClass, ThreadMetrics};
use super::ThreadTotals;
use std::collections::BTreeMap;
use vnettop_sample::ThreadId;

/// Most CPU time that a thread born after the previous sample can have used, as a share of the interval (10 % tolerance).
const OF_A_NEWBORN: f64 = 1.1;

/// Every thread of the newest sample.
#[derive(Debug, Clone, Default)]
pub(super) struct ThreadSteps(BTreeMap<ThreadId, ThreadCounts>);

/// The counters of one thread, and what has been added to totals.
#[derive(Debug, Clone, Copy, Default)]
struct ThreadCounts {
    /// All moves, and those with known cores, where counting began.
    base: (u64, MovesByClass),
    by_class: MovesByClass,
    /// Moves without known cores that have been added to totals.
    unclassed: u64,
    cpu_ns: u64,
    wait_ns: Option<u64>,
}

impl ThreadSteps {
    /// What each thread did since the sample before, in the order of `metrics.threads`.
    pub fn advance(&mut self, metrics: &Metrics) -> Vec<ThreadTotals> {
        let before = std::mem::take(&mut self.0);
        let elapsed_ns = metrics.machine.elapsed_s.unwrap_or_default() * 1e9;
        let step = |thread: &ThreadMetrics| {
            // What an old thread did before it was watched does not count; of one that was just born everything does.
            let is_newborn = (thread.sample.cpu_ns as f64) <= elapsed_ns * OF_A_NEWBORN;
            let first = || if is_newborn { ThreadCounts::default() } else { ThreadCounts::of(thread) };
            let mut counts = before.get(&thread.sample.id).copied().unwrap_or_else(first);
            let step = counts.advance(thread);
            self.0.insert(thread.sample.id, counts);
            step
        };
        metrics.threads.iter().map(step).collect()
    }
}

impl ThreadCounts {
    fn of(thread: &ThreadMetrics) -> Self {
        Self {
            base: (thread.moves, thread.by_class),
            by_class: thread.by_class,
            unclassed: 0,
            cpu_ns: thread.sample.cpu_ns,
            wait_ns: thread.sample.wait_ns,
        }
    }

    fn advance(&mut self, thread: &ThreadMetrics) -> ThreadTotals {
        let (moves, by_class) = (thread.moves, thread.by_class);
        // An event comes before its move is in the kernel's count: what is told as of no class is never taken back, and not
        // told again.
        let classed = by_class.since(self.base.1).all();
        let unclassed = moves.saturating_sub(self.base.0).saturating_sub(classed).max(self.unclassed);
        let waited_ns = thread.sample.wait_ns.map(|now_ns| now_ns.saturating_sub(self.wait_ns.unwrap_or_default()));
        let step = ThreadTotals {
            threads: 1,
            moves: by_class.since(self.by_class),
            unclassed: unclassed - self.unclassed,
            cpu_s: thread.sample.cpu_ns.saturating_sub(self.cpu_ns) as f64 / 1e9,
            wait_s: waited_ns.unwrap_or_default() as f64 / 1e9,
        };
        *self = Self {
            base: self.base,
            by_class,
            unclassed,
            cpu_ns: thread.sample.cpu_ns,
            wait_ns: thread.sample.wait_ns.or(self.wait_ns),
        };
        step
    }
}
