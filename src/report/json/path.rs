//! A flow's path as JSON: a hop an object, in the order of the packets.

use crate::derive::paths::{HopMetrics, PathMetrics};
use serde::Serialize;

/// One link of a path.
#[derive(Serialize)]
pub(super) struct Hop<'a> {
    netns: u64,
    ifindex: u32,
    name: Option<&'a str>,
    kind: Option<&'a str>,
    way: &'static str,
    by: &'static str,
    bits_per_s: Option<f64>,
    packets_per_s: Option<f64>,
    dropped_per_s: Option<f64>,
    qdisc_drops_per_s: Option<f64>,
    mtu: Option<u32>,
    claim_mbps: Option<u32>,
    claim_basis: Option<&'static str>,
}

impl<'a> Hop<'a> {
    /// The hops of a path.
    pub fn all(path: Option<&PathMetrics<'a>>) -> Vec<Self> {
        path.into_iter().flat_map(|path| path.hops.iter().map(Self::of)).collect()
    }

    fn of(metrics: &HopMetrics<'a>) -> Self {
        let facts = metrics.link.map(|link| &*link.facts);
        Self {
            netns: metrics.hop.link.netns,
            ifindex: metrics.hop.link.ifindex.0,
            name: facts.map(|facts| facts.name.as_str()),
            kind: facts.map(|facts| facts.kind.word()),
            way: metrics.hop.way.word(),
            by: metrics.hop.by.word(),
            bits_per_s: metrics.bits_per_s,
            packets_per_s: metrics.packets_per_s,
            dropped_per_s: metrics.dropped_per_s,
            qdisc_drops_per_s: metrics.qdisc_drops_per_s,
            mtu: metrics.mtu(),
            claim_mbps: facts.and_then(|facts| facts.speed_mbps),
            claim_basis: metrics.link.map(|link| link.basis.word()),
        }
    }
}
