//! Which watched threads are shown, in which order, and which one is selected.

use super::columns::ThreadColumn;
use super::selection::Selection;
use crate::derive::{Metrics, ThreadMetrics};
use crate::sample::ThreadId;

/// What threads are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the columns")]
pub enum ThreadSort {
    Cpu,
    Moves,
    Tid,
}

impl ThreadSort {
    /// Every order with the word that it is chosen by.
    pub const ALL: [(Self, &'static str); 3] = [(Self::Cpu, "cpu"), (Self::Moves, "migrations"), (Self::Tid, "tid")];

    /// The word in the title.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Moves => "moves",
            Self::Tid => "tid",
        }
    }

    pub(crate) fn next(self) -> Self {
        match self {
            Self::Cpu => Self::Moves,
            Self::Moves => Self::Tid,
            Self::Tid => Self::Cpu,
        }
    }

    /// CPU in steps of a tenth, so that rows of equally busy threads do not change places in every tick.
    fn key(self, thread: &ThreadMetrics) -> f64 {
        match self {
            Self::Cpu => thread.cpu.map_or(-1.0, |cpu| (cpu * 10.0).round()),
            Self::Moves => thread.moves as f64,
            Self::Tid => 0.0,
        }
    }
}

/// Which threads are shown and how.
#[derive(Debug)]
pub struct ThreadList {
    /// Those that may be shown, in their order.
    pub(crate) columns: Vec<ThreadColumn>,
    pub(crate) sort: ThreadSort,
    pub(crate) reversed: bool,
    pub(crate) filter: String,
    pub(crate) selection: Selection<ThreadId>,
    rows: Vec<usize>,
    several_names: bool,
}

impl Default for ThreadList {
    fn default() -> Self {
        Self {
            columns: ThreadColumn::ALL.map(|(column, _)| column).to_vec(),
            sort: ThreadSort::Cpu,
            reversed: false,
            filter: String::new(),
            selection: Selection::default(),
            rows: Vec::new(),
            several_names: false,
        }
    }
}

impl ThreadList {
    /// Indices into `Metrics::threads`, top to bottom.
    #[must_use]
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The watched threads do not all have the same name.
    #[must_use]
    pub fn several_names(&self) -> bool {
        self.several_names
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
        let keys: Vec<f64> = threads.iter().map(|thread| self.sort.key(thread)).collect();
        self.rows.sort_by(|&a, &b| keys[b].total_cmp(&keys[a]));
        if self.reversed {
            self.rows.reverse();
        }
        self.several_names = threads.windows(2).any(|pair| pair[0].sample.name != pair[1].sample.name);
        self.settle(threads);
    }

    fn settle(&mut self, threads: &[ThreadMetrics]) {
        let Some(id) = self.selection.id() else { return self.selection.settle(None, self.rows.len()) };
        if !threads.iter().any(|thread| thread.sample.id == id) {
            self.selection.forget();
        }
        let row = self.rows.iter().position(|&index| threads[index].sample.id == id);
        self.selection.settle(row, self.rows.len());
    }
}
