//! A link that another one names, as JSON.

use crate::derive::Metrics;
use crate::sample::{Ifindex, LinkKey, PeerRef};
use serde::Serialize;

/// A link named by another; its namespace and name are null where they are not known.
#[derive(Serialize)]
pub(super) struct PeerObject<'a> {
    netns: Option<u64>,
    ifindex: Ifindex,
    name: Option<&'a str>,
}

/// What a link is called.
pub(super) fn link_named(metrics: &Metrics, key: LinkKey) -> Option<&str> {
    metrics.link(key).map(|link| &*link.facts.name)
}

/// The other link, as a link names it.
pub(super) fn peer(metrics: &Metrics, of: PeerRef) -> PeerObject<'_> {
    let key = of.netns.map(|netns| LinkKey { netns, ifindex: of.ifindex });
    PeerObject { netns: of.netns, ifindex: of.ifindex, name: key.and_then(|key| link_named(metrics, key)) }
}
