//! Which core each busy watched thread should have, and why.

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
