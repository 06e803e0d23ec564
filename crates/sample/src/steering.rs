//! What decides on which core the packets that a link receives are handled, besides the core that they were sent on; and the settings
//! that say so, or how packets are handled.

use super::{CoreId, CoreSet, LinkKey, Offload, ThreadId, Word, shell_word};
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
    /// Numbers of these interrupts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub irqs: Vec<u32>,
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

/// A setting of a link that says on which core its packets are handled, or that an experiment tries beside those.
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
    /// Cores that take an interrupt of what a device receives (`/proc/irq/N/smp_affinity`); its queue is the interrupt's number.
    Interrupt,
    /// Packets that arrive one by one are merged (`ethtool -K LINK gro`).
    Gro,
    /// The link takes segments of TCP that are longer than its packets (`ethtool -K LINK tso`).
    Tso,
    /// The kind of the link's root qdisc; only one that queues nothing is ever replaced, for no other could be restored.
    Qdisc,
    /// Packets that wait for a core at most (`net.core.netdev_max_backlog`), of the whole machine; named with its `lo`.
    NetdevMaxBacklog,
}

/// Kinds of root qdiscs that are set, the one that queues nothing first: each is as it is made, without parameters.
pub const QDISC_KINDS: [&str; 5] = ["noqueue", "pfifo_fast", "pfifo", "fq_codel", "fq"];

/// The kind of a root qdisc without the sum of its parameters: `fq_codel` of `fq_codel/5d0c2a91`.
#[must_use]
pub fn qdisc_kind(text: &str) -> &str {
    text.split_once('/').map_or(text, |(kind, _)| kind)
}

/// Where a setting of a link is read and written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingPlace {
    /// A file below `/sys/class/net/LINK` of the link's namespace.
    LinkFile(String),
    /// The file of an interrupt's cores.
    Interrupt(String),
    /// `net.core.netdev_max_backlog`.
    Backlog,
    /// A feature of the link, on or off.
    Feature(Offload),
    /// The root qdisc of the link.
    RootQdisc,
}

impl SteerSetting {
    /// Its text is a mask of cores; otherwise it is a number, or the name of a kind.
    #[must_use]
    pub fn takes_cores(self) -> bool {
        matches!(self, Self::RpsCpus | Self::XpsCpus | Self::Interrupt)
    }

    /// It says on which core packets are handled; the others say how.
    #[must_use]
    pub fn chooses_cores(self) -> bool {
        self.takes_cores() || matches!(self, Self::RpsFlowCnt | Self::Threaded)
    }

    /// It is on or off.
    #[must_use]
    pub fn is_switch(self) -> bool {
        matches!(self, Self::Threaded | Self::Gro | Self::Tso)
    }

    /// It is one of a link's features, which the kernel may want and not have.
    #[must_use]
    pub fn is_feature(self) -> bool {
        matches!(self, Self::Gro | Self::Tso)
    }

    /// Where it is of one queue, interrupt, or the whole link (0).
    #[must_use]
    pub fn place(self, queue: u32) -> SettingPlace {
        match self {
            Self::RpsCpus => SettingPlace::LinkFile(format!("queues/rx-{queue}/rps_cpus")),
            Self::RpsFlowCnt => SettingPlace::LinkFile(format!("queues/rx-{queue}/rps_flow_cnt")),
            Self::XpsCpus => SettingPlace::LinkFile(format!("queues/tx-{queue}/xps_cpus")),
            Self::Threaded => SettingPlace::LinkFile("threaded".to_owned()),
            Self::Interrupt => SettingPlace::Interrupt(format!("/proc/irq/{queue}/smp_affinity")),
            Self::Gro => SettingPlace::Feature(Offload::Gro),
            Self::Tso => SettingPlace::Feature(Offload::Tso),
            Self::Qdisc => SettingPlace::RootQdisc,
            Self::NetdevMaxBacklog => SettingPlace::Backlog,
        }
    }

    /// What of a link it is, for people: `rps_cpus of veth2`.
    #[must_use]
    pub fn of(self, link: &str) -> String {
        match self {
            Self::NetdevMaxBacklog => "netdev_max_backlog".to_owned(),
            Self::Interrupt => format!("smp_affinity of interrupts of {link}"),
            _ => format!("{} of {link}", self.word()),
        }
    }

    /// Whether it means the namespace's links, which a shell has to enter.
    fn is_of_namespace(self) -> bool {
        !matches!(self, Self::NetdevMaxBacklog | Self::Interrupt)
    }
}

/// What a setting is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteerValue {
    /// Of the settings that take cores.
    Cores(CoreSet),
    /// Of the settings that are a number, or on (1) and off (0).
    Number(u32),
    /// Of `qdisc`: one of [`QDISC_KINDS`].
    Kind(String),
}

impl SteerValue {
    /// The text that the setting takes.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Cores(cores) => cores.to_mask(),
            Self::Number(number) => number.to_string(),
            Self::Kind(kind) => kind.clone(),
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

impl SpaceEntry {
    /// The same command, run there. What it looks at is asked of the kernel, not read in files.
    #[must_use]
    pub fn command(&self, line: &str) -> String {
        match self {
            Self::Own => line.to_owned(),
            Self::Named(name) => format!("ip netns exec {} {line}", shell_word(name)),
            Self::Process(pid) => format!("nsenter -t {pid} -n {line}"),
            Self::Unknown => format!("in its namespace: {line}"),
        }
    }
}

impl SteerRequest {
    /// What sets each queue by hand, a line of the shell; names are quoted where they need it.
    #[must_use]
    pub fn shell_line(&self, entry: &SpaceEntry) -> String {
        let line = shell_setting(self.setting, &self.name, None, &self.value.to_text());
        match entry {
            _ if !self.setting.is_of_namespace() => line,
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

/// What gives these interrupts the cores of a mask by hand.
#[must_use]
pub fn interrupt_line(irqs: &[u32], mask: &str) -> String {
    let irqs: Vec<String> = irqs.iter().map(u32::to_string).collect();
    match irqs.as_slice() {
        [irq] => format!("echo {mask} > /proc/irq/{irq}/smp_affinity"),
        _ => format!("for irq in {}; do echo {mask} > /proc/irq/$irq/smp_affinity; done", irqs.join(" ")),
    }
}

/// What gives a setting of a link this text by hand, where its namespace is entered; of one queue or interrupt, or of all.
fn shell_setting(setting: SteerSetting, name: &str, queue: Option<u32>, text: &str) -> String {
    let link = shell_word(name);
    let on = if text == "0" { "off" } else { "on" };
    match (setting.place(queue.unwrap_or(0)), queue) {
        (SettingPlace::LinkFile(file), Some(_)) => {
            format!("echo {text} > {}", shell_word(&format!("/sys/class/net/{name}/{file}")))
        }
        (SettingPlace::LinkFile(file), None) => {
            format!("echo {text} | tee /sys/class/net/{link}/{}", file.replace("-0/", "-*/"))
        }
        (SettingPlace::Backlog, _) => format!("sysctl -w net.core.netdev_max_backlog={text}"),
        (SettingPlace::Interrupt(file), Some(_)) => format!("echo {text} > {file}"),
        (SettingPlace::Interrupt(_), None) => {
            format!("for each of the interrupts of {link}: echo {text} > /proc/irq/NUMBER/smp_affinity")
        }
        (SettingPlace::Feature(of), _) => format!("ethtool -K {link} {} {on}", of.word()),
        (SettingPlace::RootQdisc, _) if text == QDISC_KINDS[0] => format!("tc qdisc del dev {link} root"),
        (SettingPlace::RootQdisc, _) => format!("tc qdisc replace dev {link} root {text}"),
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
    /// Nobody's: they stay on the cores that send them.
    Nobody,
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
    /// Where it is read and written.
    #[must_use]
    pub fn place(&self) -> SettingPlace {
        self.setting.place(self.queue)
    }

    /// Which one it is, for people: the file's path below the link's folder or of /proc, else the word of the setting.
    #[must_use]
    pub fn path(&self) -> String {
        match self.place() {
            SettingPlace::LinkFile(path) | SettingPlace::Interrupt(path) => path,
            SettingPlace::Feature(_) | SettingPlace::RootQdisc | SettingPlace::Backlog => {
                self.setting.word().to_owned()
            }
        }
    }

    /// What gives it this text by hand, where the namespace of its link, which is called so, is entered.
    #[must_use]
    pub fn shell_line(&self, name: &str, text: &str) -> String {
        shell_setting(self.setting, name, Some(self.queue), text)
    }

    /// Its shell has to enter the link's namespace.
    #[must_use]
    pub fn is_of_namespace(&self) -> bool {
        self.setting.is_of_namespace()
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
