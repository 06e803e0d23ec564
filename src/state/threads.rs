//! Which watched threads are shown, in which order, and which one is selected.

use super::columns::ThreadColumn;
use super::selection::Selection;
use crate::action::ThreadSort;
use crate::derive::{Metrics, ThreadMetrics};
use crate::sample::{Duty, ThreadId};
use std::collections::BTreeMap;
use strum::VariantArray;

/// A thread that takes less than this share of a core is idle.
const BUSY: f64 = 0.01;
/// A thread that was idle for this long is hidden, ns.
const IDLE_NS: u64 = 5_000_000_000;
/// Fewer idle threads are not hidden: the line that tells of one hidden thread takes as much room as the thread.
const LEAST_HIDDEN: usize = 2;

/// What a thread is sorted by: the larger, the earlier. CPU in steps of a tenth, so that rows of equally busy threads do not
/// change places in every tick.
fn sort_key(sort: ThreadSort, thread: &ThreadMetrics) -> f64 {
    match sort {
        ThreadSort::Cpu => thread.cpu.map_or(-1.0, |cpu| (cpu * 10.0).round()),
        ThreadSort::Moves => thread.moves as f64,
        ThreadSort::Tid => -f64::from(thread.sample.id.tid),
        ThreadSort::Core => -f64::from(thread.sample.core),
        ThreadSort::Wait => thread.wait.map_or(-1.0, |wait| (wait * 100.0).round()),
    }
}

/// How threads are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says what it is")]
pub struct ThreadChoices {
    /// Columns that may be shown, in their order.
    pub columns: Vec<ThreadColumn>,
    pub sort: ThreadSort,
    pub reversed: bool,
}

impl Default for ThreadChoices {
    fn default() -> Self {
        Self { columns: ThreadColumn::VARIANTS.to_vec(), sort: ThreadSort::default(), reversed: false }
    }
}

/// Which threads are shown and how.
#[derive(Debug, Default)]
pub struct ThreadList {
    pub(crate) chosen: ThreadChoices,
    pub(crate) filter: String,
    pub(crate) selection: Selection<ThreadId>,
    pub(crate) shows_idle: bool,
    rows: Vec<usize>,
    /// How many threads are not shown because they are idle.
    pub(crate) hidden: usize,
    /// The watched threads do not all have the same name.
    pub(crate) several_names: bool,
    /// Some watched thread is not the main one of its process, so that its number does not tell the process.
    pub(crate) processes_have_several: bool,
    /// When each was busy last, monotonic ns.
    busy_ns: BTreeMap<ThreadId, u64>,
}

impl ThreadList {
    /// Indices into `Metrics::threads`, top to bottom.
    #[must_use]
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Takes in which threads work.
    pub(super) fn follow(&mut self, metrics: &Metrics) {
        let now_ns = metrics.machine.at_ns;
        let threads = &metrics.threads;
        // They are sorted by process and number.
        let find = |id: &ThreadId| {
            threads.binary_search_by_key(&(id.pid, id.tid), |thread| (thread.sample.id.pid, thread.sample.id.tid))
        };
        self.busy_ns.retain(|id, _| find(id).is_ok_and(|at| threads[at].sample.id == *id));
        // Of a new one nothing is known yet.
        let works = threads.iter().filter(|thread| thread.cpu.is_none_or(|cpu| cpu >= BUSY));
        self.busy_ns.extend(works.map(|thread| (thread.sample.id, now_ns)));
    }

    /// Takes the idle ones off the rows, where some are not idle and more than one is.
    fn fold(&mut self, metrics: &Metrics) {
        self.hidden = 0;
        if self.shows_idle {
            return;
        }
        let stays = |&index: &usize| {
            let thread = &metrics.threads[index];
            let id = thread.sample.id;
            let is_busy =
                self.busy_ns.get(&id).is_some_and(|at_ns| metrics.machine.at_ns.saturating_sub(*at_ns) < IDLE_NS);
            is_busy || thread.pinned || self.selection.id() == Some(id)
        };
        let kept: Vec<usize> = self.rows.iter().copied().filter(stays).collect();
        let hidden = self.rows.len() - kept.len();
        if hidden >= LEAST_HIDDEN && !kept.is_empty() {
            (self.rows, self.hidden) = (kept, hidden);
        }
    }

    pub(super) fn arrange(&mut self, metrics: &Metrics) {
        let threads = &metrics.threads;
        let wanted = self.filter.to_lowercase();
        let matches = |&index: &usize| {
            let sample = &threads[index].sample;
            wanted.is_empty()
                || sample.name.to_lowercase().contains(&wanted)
                || sample.role().contains(&wanted)
                || sample.id.tid.to_string().contains(&wanted)
        };
        self.rows = (0..threads.len()).filter(matches).collect();
        let keys: Vec<f64> = threads.iter().map(|thread| sort_key(self.chosen.sort, thread)).collect();
        self.rows.sort_by(|&a, &b| keys[b].total_cmp(&keys[a]));
        if self.chosen.reversed {
            self.rows.reverse();
        }
        // The ends first, then those that carry packets between them.
        self.rows.sort_by_key(|&index| threads[index].sample.duty == Duty::Carrier);
        self.fold(metrics);
        self.processes_have_several = threads.iter().any(|thread| thread.sample.id.pid != thread.sample.id.tid);
        self.several_names = threads.windows(2).any(|pair| pair[0].sample.name != pair[1].sample.name);
        let selected = |thread: &ThreadMetrics| Some(thread.sample.id) == self.selection.id();
        let row = self.rows.iter().position(|&index| selected(&threads[index]));
        self.selection.settle(threads.iter().any(selected), row, self.rows.len());
    }
}
