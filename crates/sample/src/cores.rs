//! What each core has done (`/proc/stat`, `/proc/softirqs`, `/proc/net/softnet_stat`) and where it sits (sysfs).

use super::CoreSet;
use serde::{Deserialize, Serialize};
use strum::VariantArray;

/// The kernel's number of a logical CPU, counted from 0.
pub type CoreId = u32;

/// A row of `/proc/softirqs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray, strum::IntoStaticStr)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the kernel's own words")]
pub enum SoftirqKind {
    Hi,
    Timer,
    NetTx,
    NetRx,
    Block,
    IrqPoll,
    Tasklet,
    Sched,
    Hrtimer,
    Rcu,
}

impl SoftirqKind {
    /// It carries packets.
    #[must_use]
    pub fn is_of_network(self) -> bool {
        matches!(self, Self::NetTx | Self::NetRx)
    }
}

/// Every kind, in the order of the arrays that are indexed by it; its word is the kernel's label.
pub const SOFTIRQ_KINDS: &[SoftirqKind] = SoftirqKind::VARIANTS;

/// What one online core has done since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreCounters {
    /// The core, from its label, never from its position.
    pub core: CoreId,
    /// `user` + `nice`, clock ticks (guest time is inside user).
    pub user: u64,
    /// `system`, clock ticks.
    pub system: u64,
    /// `irq`, clock ticks.
    pub irq: u64,
    /// `softirq`, clock ticks; sampled at ticks unless the kernel has `IRQ_TIME_ACCOUNTING`.
    pub softirq: u64,
    /// `steal`, clock ticks.
    pub steal: u64,
    /// `idle` + `iowait`, clock ticks.
    pub idle: u64,
    /// `/proc/softirqs` by [`SOFTIRQ_KINDS`]; none where the file is missing or the kind is not a row of it.
    pub softirqs: [Option<u64>; 10],
    /// The core's row of `/proc/net/softnet_stat`; none where it has none.
    pub softnet: Option<Softnet>,
    /// CPU time of `ksoftirqd/N`, ns (`/proc/PID/schedstat`); none where it cannot be read.
    pub ksoftirqd_ns: Option<u64>,
}

/// A row of `/proc/net/softnet_stat`; the kernel keeps 32 bits of each, so differences wrap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Softnet {
    /// Packets taken from the backlog.
    pub processed: u32,
    /// Packets dropped because the backlog was full.
    pub dropped: u32,
    /// Times the softirq ran out of budget or time.
    pub squeezed: u32,
}

/// The levels of the machine's topology, core by core.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// Every present core, sorted by core.
    pub cores: Vec<CorePlace>,
    /// Cores kept from the scheduler (`/sys/devices/system/cpu/isolated`).
    pub isolated: CoreSet,
    /// NUMA nodes that have cores.
    pub nodes: u32,
}

/// Where one core sits. A level that the machine does not tell is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorePlace {
    /// The core.
    pub core: CoreId,
    /// It may run threads (`/sys/devices/system/cpu/online`).
    pub online: bool,
    /// Physical core: the lowest core among its SMT siblings (`thread_siblings_list`).
    pub physical: Option<u32>,
    /// Cluster, numbered from 0 in the order of cores (`cluster_cpus_list`, Linux 5.16).
    pub cluster: Option<u32>,
    /// Last-level cache, numbered from 0 in the order of cores (`cache/indexN/shared_cpu_list`).
    pub llc: Option<u32>,
    /// NUMA node, the kernel's number.
    pub node: Option<u32>,
    /// Socket (`physical_package_id`), numbered from 0 in the order of cores.
    pub socket: Option<u32>,
    /// `cpu_capacity`, 1024 for the strongest; none on machines where all are equal.
    pub capacity: Option<u32>,
}

impl Topology {
    /// Where the core sits.
    #[must_use]
    pub fn place(&self, core: CoreId) -> Option<&CorePlace> {
        self.cores.binary_search_by_key(&core, |place| place.core).ok().map(|at| &self.cores[at])
    }

    /// The cores that may run threads.
    #[must_use]
    pub fn online(&self) -> CoreSet {
        self.cores.iter().filter(|place| place.online).map(|place| place.core).collect()
    }
}
