//! Who each link belongs to.

use crate::sample::{LinkFacts, Owned, Problem, Space};
use crate::source::Roots;
use std::sync::Arc;

/// Finds the owners of links. A name once known stays until the link goes.
#[derive(Debug)]
pub struct OwnerReader {
    published: Arc<Vec<Owned>>,
    problems: Vec<Problem>,
}

impl OwnerReader {
    /// Nothing is opened yet.
    #[must_use]
    pub fn new(_roots: &Roots) -> Self {
        Self { published: Arc::default(), problems: Vec::new() }
    }

    /// The owners of these links, sorted by link.
    pub fn read(
        &mut self,
        _spaces: &Arc<Vec<Space>>,
        _links: &Arc<Vec<Arc<LinkFacts>>>,
        _now_ns: u64,
    ) -> Arc<Vec<Owned>> {
        Arc::clone(&self.published)
    }

    /// What cannot be seen and why.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}
