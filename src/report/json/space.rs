//! A network namespace as JSON.

use super::JsonRow;
use crate::derive::Metrics;
use crate::sample::Space;
use serde::Serialize;
use std::borrow::Cow;

/// A namespace as it was found, and as people call it.
#[derive(Serialize)]
pub(super) struct NamespaceObject<'a> {
    #[serde(flatten)]
    found: &'a Space,
    /// The container, guest or part of a Docker network that it is, else its file's name; what NETNS shows.
    known_as: Option<Cow<'a, str>>,
}

impl JsonRow for Space {
    type Out<'a> = NamespaceObject<'a>;

    fn row<'a>(&'a self, metrics: &'a Metrics) -> NamespaceObject<'a> {
        NamespaceObject { found: self, known_as: metrics.space_name(self.netns) }
    }
}
