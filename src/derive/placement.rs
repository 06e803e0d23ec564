//! Which core each busy watched thread should have, and why.

use super::Metrics;
use crate::sample::{CoreId, CoreSet, ThreadId};

/// A placement of the busy watched threads, to be shown first and applied on a second press.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// One step a thread, in the order they are applied.
    pub steps: Vec<Step>,
    /// Sentences on the whole: which circle was chosen and why; what was left out.
    pub reasons: Vec<String>,
}

/// One thread and the core it should have.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The thread.
    pub thread: ThreadId,
    /// Its name and role, for people.
    pub label: String,
    /// Its mask now, where it is known.
    pub old: Option<CoreSet>,
    /// The core it should have.
    pub core: CoreId,
    /// Why this core.
    pub reason: String,
}

impl Proposal {
    /// The same by hand, one command a thread.
    #[must_use]
    pub fn taskset_lines(&self) -> Vec<String> {
        self.steps.iter().map(|step| format!("taskset -cp {} {}", step.core, step.thread.tid)).collect()
    }
}

/// What the last seconds say of every core and thread; a placement should not rest on one tick.
#[derive(Debug, Default)]
pub struct RecentLoad {}

impl RecentLoad {
    /// Takes in the newest metrics.
    pub fn observe(&mut self, _metrics: &Metrics) {}
}

/// A placement of the busy watched threads.
///
/// # Errors
/// One sentence, when there is nothing to place or nowhere to place it.
pub fn propose(_metrics: &Metrics, _recent: &RecentLoad) -> Result<Proposal, String> {
    Err("no watched thread is busy: start the benchmark, then press p".to_owned())
}
