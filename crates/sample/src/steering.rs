//! What decides on which core the packets that a link receives are handled, besides the core that they were sent on.

use super::{CoreId, CoreSet, LinkKey};
use serde::{Deserialize, Serialize};

/// The settings of one link on a path (its namespace's `/sys/class/net/X`, and the kernel's `netdev` family).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steering {
    /// The link.
    pub link: LinkKey,
    /// Each receive queue's cores that RPS hands packets to (`queues/rx-N/rps_cpus`); an empty set leaves them alone.
    pub rps: Vec<CoreSet>,
    /// RFS may hand packets to the core of the thread that reads them (`queues/rx-N/rps_flow_cnt` is not 0).
    #[serde(default)]
    pub rfs: bool,
    /// NAPI runs in threads of the kernel (`threaded`).
    #[serde(default)]
    pub threaded: bool,
    /// Threads of NAPI (`NETDEV_CMD_NAPI_GET`, Linux 6.8).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub napi: Vec<NapiThread>,
    /// Cores that take its receive interrupts; `None` when no hardware is behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<Interrupts>,
}

/// The cores that take the interrupts of what a device receives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interrupts {
    /// Each goes to one of these (`/proc/irq/N/effective_affinity_list`).
    Cores(CoreSet),
    /// Why that is not known.
    Unknown(String),
}

/// A kernel thread that receives a link's packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NapiThread {
    /// Its process number.
    pub pid: u32,
    /// The core it last ran on.
    pub core: CoreId,
    /// The cores it may run on.
    pub allowed: CoreSet,
}
