//! One watched thread at one instant (`/proc/PID/task/TID/{stat,sched,schedstat,status}`, `sched_getaffinity`).

use super::{CoreId, CoreSet, LinkKey};
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// A thread, unmistakable: a reused tid has another start time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadId {
    /// The process.
    pub pid: u32,
    /// The task.
    pub tid: u32,
    /// Field 22 of stat: clock ticks since boot at which the thread was born.
    pub start: u64,
}

/// Which end of a benchmark the thread's process is (from its command line).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// iperf3 `-s`.
    #[default]
    Server,
    /// iperf3 `-c`.
    Client,
}

/// Direction of the payload of a client's test, by its command line; a server's does not show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The client sends, as iperf3 does unless told otherwise.
    Forward,
    /// The server sends: iperf3 `-R`.
    Reverse,
    /// Both send: iperf3 `--bidir`.
    Both,
}

/// What the thread does in its process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Duty {
    /// It carries the traffic: every thread but the main one, or the only thread.
    #[default]
    Worker,
    /// The main thread of a process that has others.
    Control,
    /// It carries the packets between the ends, for everyone: a guest's, a switch's, a VPN's, a proxy's thread, or one of
    /// the kernel. It is no part of the benchmark.
    #[serde(rename = "switch")]
    Carrier,
}

/// As what a thread carries packets between the ends of a test; what its process holds says it, not its name.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumIter,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum WorkerRole {
    /// A core of a guest: a busy thread of what holds a tap or macvtap, or one with guest time (field 43 of stat).
    Vcpu,
    /// The main thread of what holds a tap or macvtap, which does a guest's I/O.
    Vmm,
    /// The kernel's thread of virtio-net: a kernel thread `vhost-PID`, from Linux 6.4 on a thread of the guest's process.
    Vhost,
    /// A thread of a userspace datapath of Open vSwitch.
    Ovs,
    /// A poll-mode thread of one, which polls all the time.
    Pmd,
    /// A thread of what holds a tun.
    Vpn,
    /// A thread of a program that copies from one connection to another.
    Relay,
    /// A kernel thread that receives a link's packets (threaded NAPI).
    Napi,
}

/// What a thread carries, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathWork {
    /// As what.
    pub role: WorkerRole,
    /// The process whose packets they are: its own, or the one that a kernel thread works for.
    pub carrier: u32,
    /// The link whose packets a thread of NAPI receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkKey>,
}

/// One watched thread at one instant; absolute counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadSample {
    /// Which thread.
    pub id: ThreadId,
    /// `CLOCK_MONOTONIC` at which its files were read, ns.
    pub at_ns: u64,
    /// `comm` of the thread; control characters replaced.
    pub name: CompactString,
    /// Which end of the benchmark, where the command line tells.
    pub side: Option<Side>,
    /// Direction of its test; known for clients only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Worker or control.
    pub duty: Duty,
    /// As what it carries packets between the ends; none of a thread that does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<PathWork>,
    /// The core it last ran on (field 39 of stat).
    pub core: CoreId,
    /// Its affinity mask as the kernel keeps it (`Cpus_allowed_list` of status), which may hold cores that are offline now;
    /// none where it could not be read.
    pub allowed: Option<CoreSet>,
    /// The cores its cgroup's cpuset allows (`cpuset.cpus.effective` or v1's); none where it could not be read.
    pub cpuset: Option<CoreSet>,
    /// The NUMA nodes its memory may be on, where its cgroup's cpuset says so (`cpuset.mems.effective` or v1's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_nodes: Option<CoreSet>,
    /// What its cgroups let it use of the cores; none where none of them has a quota, or it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
    /// CPU time, ns (first number of schedstat; utime + stime of stat where that is missing).
    pub cpu_ns: u64,
    /// Run-queue wait, ns (second number of schedstat).
    pub wait_ns: Option<u64>,
    /// `se.nr_migrations` of sched: moves since the thread was born.
    pub migrations: Option<u64>,
    /// `nr_voluntary_switches` of sched.
    pub voluntary: Option<u64>,
    /// `nr_involuntary_switches` of sched.
    pub involuntary: Option<u64>,
}

impl ThreadSample {
    /// The role as one word: the side where it is known, else what the thread does.
    #[must_use]
    pub fn role(&self) -> &'static str {
        if let Some(work) = self.work {
            return work.role.into();
        }
        match (self.duty, self.side) {
            (Duty::Control, _) => "control",
            (Duty::Carrier, _) => "switch",
            (Duty::Worker, Some(Side::Server)) => "server",
            (Duty::Worker, Some(Side::Client)) => "client",
            (Duty::Worker, None) => "worker",
        }
    }
}

/// The narrowest CPU quota among a thread's cgroup and those above it (`cpu.max`, `cpu.stat`; v1 `cpu.cfs_quota_us`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// CPU time that all threads of the group may use in a period, us.
    pub quota_us: u64,
    /// Length of a period, us.
    pub period_us: u64,
    /// `nr_periods`: periods in which a thread of it ran.
    pub periods: u64,
    /// `nr_throttled`: those in which it was stopped because the quota was used up.
    pub throttled: u64,
}

/// A thread, whosever it is, that used a core while a watched thread waited for one: looked for only then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// `comm` of its process; control characters replaced.
    pub name: String,
    /// The core it last ran on (field 39 of stat).
    pub core: CoreId,
    /// CPU time between two looks at it, ns (utime + stime of stat).
    pub cpu_ns: u64,
    /// Time between the two looks, ns.
    pub over_ns: u64,
    /// A thread of the kernel's own (`PF_KTHREAD` in field 9 of stat); none where an older version did not write it.
    #[serde(default)]
    pub kernel: Option<bool>,
}

impl Runner {
    /// The kernel's thread for the softirqs of a core: what it does is counted as such. A program may have its name as well.
    #[must_use]
    pub fn is_ksoftirqd(&self) -> bool {
        self.kernel != Some(false) && self.name.starts_with("ksoftirqd/")
    }
}
