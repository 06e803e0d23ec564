//! A flow's path as JSON: a hop an object, in the order of the packets.

use crate::derive::paths::{HopMetrics, PathMetrics};
use crate::sample::{Offloads, Word};
use serde::Serialize;

/// One link of a path.
#[derive(Serialize)]
pub(super) struct HopObject<'a> {
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
    upcalls_lost_per_s: Option<f64>,
    /// Of the flows' own packets, as the kernel says; null where it is not asked.
    lost_per_s: Option<f64>,
    mtu: Option<u32>,
    claim_mbps: Option<u32>,
    claim_basis: Option<&'static str>,
    offloads: Option<SwitchesObject>,
    /// Why they are not known.
    offloads_unknown: Option<&'static str>,
    /// In the kernel's syntax.
    softirq_cores: Option<String>,
    /// What puts the packets onto these cores.
    softirq_by: Option<&'static str>,
    /// Why they are not known.
    softirq_unknown: Option<String>,
}

/// What is on.
#[derive(Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
struct SwitchesObject {
    tso: bool,
    gso: bool,
    gro: bool,
    tx_checksum: bool,
    rx_checksum: bool,
}

impl SwitchesObject {
    fn of(told: &Offloads) -> Self {
        let Offloads { tso, gso, gro, tx_checksum, rx_checksum, .. } = *told;
        Self { tso, gso, gro, tx_checksum, rx_checksum }
    }
}

impl<'a> HopObject<'a> {
    /// The hops of a path.
    pub fn all(path: Option<&PathMetrics<'a>>) -> Vec<Self> {
        path.into_iter().flat_map(|path| path.hops.iter().map(Self::of)).collect()
    }

    fn of(metrics: &HopMetrics<'a>) -> Self {
        let softirq = metrics.softirq.as_ref();
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
            upcalls_lost_per_s: metrics.upcalls_lost_per_s,
            lost_per_s: metrics.lost_per_s,
            mtu: metrics.mtu(),
            claim_mbps: facts.and_then(|facts| facts.speed_mbps),
            claim_basis: metrics.link.map(|link| link.basis.word()),
            offloads: metrics.offloads.map(SwitchesObject::of),
            offloads_unknown: unknown(metrics),
            softirq_cores: softirq.ok().map(|softirq| softirq.cores.to_string()),
            softirq_by: softirq.ok().map(|softirq| softirq.by.word()),
            softirq_unknown: softirq.err().cloned(),
        }
    }
}

/// Why a hop's offloads are not known.
fn unknown(hop: &HopMetrics<'_>) -> Option<&'static str> {
    let only_ovs = hop.hop.link.ifindex.kernel().is_none();
    let why = if only_ovs {
        "only Open vSwitch knows this link"
    } else {
        "its driver or this kernel does not say, or its namespace cannot be entered"
    };
    hop.offloads.is_none().then_some(why)
}
