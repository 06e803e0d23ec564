//! What is concluded of a test from what was measured of it.

use super::finding::Finding;
use super::limit::Limit;
use super::placement::ProposedPin;

/// What holds a test back, what is worth saying of it, and whether placing its threads may help.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conclusions {
    /// What holds it back now; none before two samples of a test that runs.
    pub limit: Option<Limit>,
    /// Sentences of advice, most important first.
    pub findings: Vec<Finding>,
    /// The limit is a ceiling that is reached, and goes before all findings: none of them would explain more.
    pub limit_leads: bool,
    /// Cores can be proposed for the busy threads, and the proposal does not itself doubt that it helps; as of the last second.
    pub placement_may_help: bool,
    /// What that proposal would pin; empty where there is none.
    pub proposed: Vec<ProposedPin>,
    /// Others have every core that it could use, so that it is not made before somebody insists.
    pub no_free_core: bool,
}
