//! What decides on which core the packets that a link receives are handled, besides the core that they were sent on.

use super::{CoreId, CoreSet, LinkKey, ThreadId, shell_word};
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

/// A setting of a link that says on which core its packets are handled.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SteerSetting {
    /// Cores that RPS hands what a receive queue takes to (`queues/rx-N/rps_cpus`); none leaves packets where they are.
    RpsCpus,
    /// Flows that RFS remembers for a receive queue (`queues/rx-N/rps_flow_cnt`).
    RpsFlowCnt,
    /// Cores that send by a transmit queue (`queues/tx-N/xps_cpus`).
    XpsCpus,
    /// NAPI runs in threads of the kernel (`threaded`, of the whole link).
    Threaded,
}

impl SteerSetting {
    /// Its text is a mask of cores; otherwise it is a number.
    #[must_use]
    pub fn takes_cores(self) -> bool {
        matches!(self, Self::RpsCpus | Self::XpsCpus)
    }
}

/// What a setting is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteerValue {
    /// Of `rps_cpus` and `xps_cpus`.
    Cores(CoreSet),
    /// Of `rps_flow_cnt` and `threaded`.
    Number(u32),
}

impl SteerValue {
    /// The text that sysfs takes.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Cores(cores) => cores.to_mask(),
            Self::Number(number) => number.to_string(),
        }
    }
}

/// One setting of a link, and what each of its queues should have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteerRequest {
    /// The link; it is found by its number, whatever it is called by then.
    pub link: LinkKey,
    /// Its name, for people.
    pub name: String,
    /// Which setting.
    pub setting: SteerSetting,
    /// What it is to be.
    pub value: SteerValue,
}

/// How a shell gets at the links of a namespace and their files of sysfs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpaceEntry {
    /// It is vnettop's own.
    Own,
    /// By the name that `ip netns` has for it.
    Named(String),
    /// By a process in it.
    Process(u32),
    /// It has neither.
    Unknown,
}

impl SteerRequest {
    /// What sets each queue by hand, a line of the shell; names are quoted where they need it.
    #[must_use]
    pub fn shell_line(&self, entry: &SpaceEntry) -> String {
        let (queue, file) = match self.setting {
            SteerSetting::RpsCpus => ("queues/rx-*/", "rps_cpus"),
            SteerSetting::RpsFlowCnt => ("queues/rx-*/", "rps_flow_cnt"),
            SteerSetting::XpsCpus => ("queues/tx-*/", "xps_cpus"),
            SteerSetting::Threaded => ("", "threaded"),
        };
        let line =
            format!("echo {} | tee /sys/class/net/{}/{queue}{file}", self.value.to_text(), shell_word(&self.name));
        match entry {
            SpaceEntry::Own => line,
            SpaceEntry::Named(name) => format!("ip netns exec {} sh -c {}", shell_word(name), shell_word(&line)),
            // A namespace that is entered so keeps the /sys of before.
            SpaceEntry::Process(pid) => {
                let line = shell_word(&format!("mount -t sysfs sysfs /sys; {line}"));
                format!("nsenter -t {pid} -n unshare -m sh -c {line}")
            }
            SpaceEntry::Unknown => format!("in its namespace: {line}"),
        }
    }
}

/// Whose core packets are put onto.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteerTarget {
    /// That of the thread that receives.
    #[default]
    Receiver,
    /// That of the thread that sends.
    Sender,
    /// One that does nothing.
    Idle,
}

/// One file of a steer: a setting of a link's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SteeredFile {
    /// The link.
    #[serde(flatten)]
    pub link: LinkKey,
    /// Which setting.
    pub setting: SteerSetting,
    /// The number of the queue; 0 for a setting of the whole link.
    pub queue: u32,
}

impl SteeredFile {
    /// Where it is below `/sys/class/net/LINK`.
    #[must_use]
    pub fn path(&self) -> String {
        let queue = self.queue;
        match self.setting {
            SteerSetting::RpsCpus => format!("queues/rx-{queue}/rps_cpus"),
            SteerSetting::RpsFlowCnt => format!("queues/rx-{queue}/rps_flow_cnt"),
            SteerSetting::XpsCpus => format!("queues/tx-{queue}/xps_cpus"),
            SteerSetting::Threaded => "threaded".to_owned(),
        }
    }
}

/// A line of a proposal that can be taken off it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProposalPart {
    /// The pin of a thread.
    Thread(ThreadId),
    /// A setting of a link.
    Steer(LinkKey, SteerSetting),
}
