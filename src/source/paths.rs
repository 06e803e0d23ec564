//! Which links each flow crosses: asks the kernel hop by hop, from the sender to the receiver.

use crate::sample::{FlowPath, FlowSample, LinkFacts, OvsSwitch, Problem};
use crate::source::spaces::Spaces;
use std::sync::Arc;

/// What a path is found with.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// The namespaces.
    pub spaces: &'a Spaces,
    /// Every link, sorted by key.
    pub links: &'a [Arc<LinkFacts>],
    /// What Open vSwitch says.
    pub ovs: &'a [OvsSwitch],
}

/// Finds and keeps the paths of the flows.
#[derive(Debug, Default)]
pub struct PathReader {
    published: Arc<Vec<FlowPath>>,
    problems: Vec<Problem>,
}

impl PathReader {
    /// The paths of these flows.
    pub fn read(&mut self, _ground: Ground<'_>, _flows: &[FlowSample], _now_ns: u64) -> Arc<Vec<FlowPath>> {
        Arc::clone(&self.published)
    }

    /// What cannot be seen and why.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}
