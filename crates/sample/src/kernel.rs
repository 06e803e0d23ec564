//! What the kernel itself counts for vnettop, by BPF: dropped packets by reason and function, exact softirq time, the cores
//! of a hop. Absolute, since the programs were attached.

use super::{CoreId, DropFlow, HopWay, Ifindex, Latencies, LinkKey, ProfileOf, SOFTIRQ_KINDS};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How far the programs that ask the kernel (BPF) have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TracerStage {
    /// No thread is watched yet, so the programs are not needed.
    Idle,
    /// The programs are being attached: what they would count is not known yet.
    BeingAttached,
    /// The programs run.
    Attached,
    /// The programs cannot be had; a problem of the sample says why.
    Refused,
}

/// Whether the kernel is asked, and since when: what happened before that is in none of its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracer {
    /// How far its programs have come.
    pub state: TracerStage,
    /// `CLOCK_MONOTONIC` from which on they count, ns; none before they do.
    #[serde(rename = "since_t_ns")]
    pub since_ns: Option<u64>,
}

/// What the programs have counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCounts {
    /// Dropped packets (`skb:kfree_skb`); none where the program could not be attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops: Option<Drops>,
    /// Softirq time of each core, sorted by core; none where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub softirqs: Option<Vec<SoftirqTime>>,
    /// Cores of the hops on the paths, as counted last; empty where that was not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopCores>,
    /// How long packets, softirqs and threads waited; none where that is not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latencies>,
}

/// What is counted only on request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
pub struct OnRequest {
    /// Every drop of the machine, not only those in the namespaces of the flows.
    pub drops: bool,
    /// Exact softirq time.
    pub softirqs: bool,
    /// Cores of the hops.
    pub hops: bool,
    /// How long packets, softirqs and threads wait.
    pub latency: bool,
    /// The same for a moment of each second.
    pub latency_glance: bool,
    /// What a core does, function by function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileOf>,
}

/// Dropped packets by where and why, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Packets of the watched flows, those inside tunnels too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<DropCount>,
    /// What flows lost that have ended since; of no flow by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<DropCount>,
    /// Packets of no watched flow, in the namespaces that the flows cross, or in all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<DropCount>,
    /// The whole machine was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub everywhere: bool,
    /// Packets in no row: the table had no room for their row, or gave the row's room to others.
    #[serde(default)]
    pub no_room: u64,
}

/// Packets dropped at one place for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropCount {
    /// Number of the place in the kernel's code, in the order in which vnettop met them; means nothing beyond one run.
    pub site: u32,
    /// Whose packets they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<DropFlow>,
    /// Inode of the namespace; none where the packet belongs to none any more.
    pub netns: Option<u64>,
    /// The device the packet was at; none where it was at none.
    pub ifindex: Option<Ifindex>,
    /// `enum skb_drop_reason` without its prefix (Linux 5.17); none on older kernels.
    pub reason: Option<Arc<str>>,
    /// The function that dropped it; none where the kernel does not name it (`CAP_SYSLOG`), or has not yet.
    pub function: Option<Arc<str>>,
    /// Netfilter dropped it, and connection tracking had given it no entry: it may have had no room for one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untracked: bool,
    /// Packets: the segments of one that was still to be cut, or was put together.
    pub packets: u64,
}

/// Whose, where, why, and in which line of the kernel's code.
pub type DropKey<'a> = (Option<DropFlow>, (Option<u64>, Option<Ifindex>), Option<&'a str>, (u32, bool));

impl DropCount {
    /// The link it was dropped at.
    #[must_use]
    pub fn link(&self) -> Option<LinkKey> {
        Some(LinkKey { netns: self.netns?, ifindex: self.ifindex? })
    }

    /// Key that two counts of the same drops share.
    #[must_use]
    pub fn key(&self) -> DropKey<'_> {
        (self.flow, (self.netns, self.ifindex), self.reason.as_deref(), (self.site, self.untracked))
    }
}

/// Time in softirqs of one core, from entry to exit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftirqTime {
    /// The core.
    pub core: CoreId,
    /// `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// By kind, in the kernel's order, ns.
    pub ns: [u64; SOFTIRQ_KINDS.len()],
}

/// Packets of one hop by core, counted over a stated time; not absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HopCores {
    /// The link.
    pub link: LinkKey,
    /// Sent or received there.
    pub way: HopWay,
    /// Core and packets, most first.
    pub cores: Vec<(CoreId, u64)>,
    /// Over how long they were counted, ns; `None` in recordings that do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// When that time ended, `CLOCK_MONOTONIC`, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
    /// Its packets of the flows whose paths cross it, each flow that had some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowCores>,
}

/// Packets of one flow at one hop by core, counted with those of the hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowCores {
    /// The flow, as its path names it.
    pub flow: DropFlow,
    /// Core and packets, most first.
    pub cores: Vec<(CoreId, u64)>,
    /// How often a packet was handled on another core than the one before it.
    pub switches: u64,
}
