//! Links of the current network namespace (rtnetlink, ethtool netlink). (to be written)

use crate::sample::{LinkCounters, LinkFacts};
use std::sync::Arc;

/// One reading of every link.
#[derive(Debug)]
pub struct LinkReading {
    /// `CLOCK_MONOTONIC` of the first datagram of counters, ns.
    pub at_ns: u64,
    /// What each link is, sorted by ifindex; the same `Arc` as before when no notification came.
    pub links: Arc<Vec<Arc<LinkFacts>>>,
    /// What each moved, sorted by ifindex, only of links that are in `links`.
    pub counters: Vec<LinkCounters>,
}
