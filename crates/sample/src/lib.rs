//! The plain data every other room speaks of: absolute counters and facts of one instant, as read.
//! It imports nothing of ours, computes no rate, and is the same whether it came from the kernel, a recording
//! or a test. Everything here can be written to a recording and read back bit for bit, so only integers and text.
//!
//! Lists of cores, as the kernel writes them and as masks:
//!
//! ```
//! use vnettop_sample::{CoreSet, text};
//!
//! let cores: CoreSet = "0-2,64".parse()?;
//! assert_eq!((cores.len(), cores.to_string()), (4, "0-2,64".to_owned()));
//! assert_eq!(cores.words(), [0b111, 1], "words of 64 bits, as `sched_setaffinity` takes them");
//! assert!(text::clean(b"eth0\x1b[2J") == "eth0?[2J", "what comes from outside steers no terminal");
//! # Ok::<(), vnettop_sample::CoreSetError>(())
//! ```

mod agent;
mod benchmarks;
mod comparison;
mod core_set;
mod cores;
mod doctor;
mod events;
mod facts;
mod firewall;
mod flows;
mod kernel;
mod lasting;
mod latency;
mod links;
mod losses;
mod ovs;
mod owners;
mod paths;
mod profile;
mod reports;
mod rows;
mod run;
mod shell;
mod spaces;
mod steering;
pub mod text;
mod threads;
mod trace;

use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use agent::{AgentCommand, AgentReply, HostState, OutcomeLine, PinRequest};
pub use benchmarks::{Benchmark, Program};
pub use comparison::{
    COMPARISON_VERSION, ClaimedLink, ComparedPath, Comparison, ComparisonPlan, Load, Machine, Measurement, RoundTrips,
    SetOnLink, ThreadOnCore, Treatment,
};
pub use core_set::{CoreSet, CoreSetError, MOST_CORES, within_memory};
pub use cores::{CoreCounters, CoreId, CorePlace, SOFTIRQ_KINDS, SoftirqKind, Softnet, Topology};
pub use doctor::{
    BpfAnswer, Containment, DoctorFacts, HeldRights, Iperf3Found, KernelFeatures, KnownFact, ModuleState,
    MomentaryLoad, ProgramsFound, Sight, SocketFound, SocketState, TerminalFacts, TracefsState,
};
pub use events::{Event, TriggerKind};
pub use facts::{FactVisitor, Facts};
pub use firewall::FirewallRules;
pub use flows::{
    Busy, Congestion, DatagramCounts, Disorder, DropFlow, FlowProgress, FlowSample, Proto, SocketKey, TcpState,
    UdpState,
};
pub use kernel::{DropCount, Drops, FlowCores, HopCores, KernelCounts, OnRequest, SoftirqTime, Tracer, TracerStage};
pub use latency::{LATENCY_BUCKETS, Latencies, LatencyOf, LatencyRow, PathPoint, PointKind, WaitedFor, bucket_ns};
pub use links::{Ifindex, Kind, LinkCounters, LinkFacts, LinkKey, LinkState, PeerRef, PortState};
pub use losses::{
    Conntrack, GsoLimits, IpCounters, Offload, Offloads, OtherUdp, PacketSocket, ProtocolCounters, QdiscCounters,
    QdiscSetting, SocketProcess, XdpProgram,
};
pub use ovs::{OvsBridge, OvsDatapath, OvsDatapathKind, OvsPort, OvsPortKind, OvsSwitch};
pub use owners::{Owned, Owner, OwnerBy, OwnerKind};
pub use paths::{
    Carrier, CarrierKind, EndName, Ends, FlowPath, Holder, Hop, HopBy, HopWay, NextHop, SilentNeighbour, WireNames,
};
pub use profile::{CoreProfile, ProfileClock, ProfileOf, ProfiledFunction, ProfiledStack};
pub use reports::{Report, Reported, Unread, Whole};
pub use rows::row_of;
pub use run::{
    FoundPlacement, Measure, PinMode, PlacedThread, PlacementClass, RunAsked, SearchStep, SteerMode, StretchSide,
    TestKind, TriedPlacement, TriedSteer,
};
pub use shell::shell_word;
pub use spaces::Space;
pub use steering::{
    Interrupts, NapiThread, ProposalPart, QDISC_KINDS, SettingPlace, SpaceEntry, SteerRequest, SteerSetting,
    SteerTarget, SteerValue, SteeredFile, Steering, interrupt_line, qdisc_kind,
};
pub use text::quoted;
pub use threads::{Direction, Duty, PathWork, Quota, Runner, Side, ThreadId, ThreadSample, WorkerRole};
pub use trace::{Move, ShortLived, Trace, TraceSource};

/// The word of a variant as it is shown and written, by `strum::IntoStaticStr`.
pub trait Word: Into<&'static str> {
    /// The word.
    #[must_use]
    fn word(self) -> &'static str {
        self.into()
    }
}

impl<T: Into<&'static str>> Word for T {}

/// What the stream of a run is made of, live or replayed: samples, and what happened between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// Absolute counters and facts of one instant.
    Sample(Box<Sample>),
    /// Something done by vnettop or its user between two samples.
    Event(Event),
}

/// What was read at one instant, and the facts that hold then. Its fields are those of a recording's line, in their order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Wall clock, milliseconds since 1970 (UTC); for people only, never for rates.
    pub wall_ms: u64,
    /// `CLOCK_MONOTONIC` of the first datagram of the link counters, ns; elapsed time is the difference of two.
    pub at_ns: u64,
    /// Inode of vnettop's own network namespace (`/proc/self/ns/net`).
    pub netns: u64,
    /// `CLOCK_MONOTONIC` of the per-core files, ns.
    pub cores_at_ns: u64,
    /// What vnettop itself costs.
    pub own: OwnCost,
    /// What each link moved, sorted by namespace and ifindex; a link just created may be missing.
    pub counters: Vec<LinkCounters>,
    /// Per-core counters of online cores, sorted by core.
    pub cores: Vec<CoreCounters>,
    /// The watched threads, sorted by (pid, tid).
    pub threads: Vec<ThreadSample>,
    /// The moves of the watched threads since the sample before; none where they are not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// What the kernel itself counts; the same `Arc` until it changes, none where its programs do not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Arc<KernelCounts>>,
    /// Whether the kernel is asked, and since when; none where an older version did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracer: Option<Tracer>,
    /// The connections of the watched processes, sorted by key; empty where there are none or they cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowSample>,
    /// The qdiscs of the links on a path, sorted by link and handle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub qdiscs: Vec<QdiscCounters>,
    /// What the protocols count in the namespaces that a flow ends in or crosses, sorted by inode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<ProtocolCounters>,
    /// Sockets that are given every frame of a link on a path, sorted by link and inode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packet_sockets: Vec<PacketSocket>,
    /// What the datapaths of Open vSwitch that a flow crosses have counted, sorted by socket, namespace and name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datapaths: Vec<OvsDatapath>,
    /// What hardly changes; the same `Arc` until one of them does. Recordings have a line for each.
    #[serde(skip)]
    pub facts: Arc<Facts>,
}

impl Sample {
    /// The watched threads, without those of switches.
    pub fn watched(&self) -> impl Iterator<Item = &ThreadSample> + Clone {
        self.threads.iter().filter(|thread| thread.duty != Duty::Carrier)
    }

    /// The facts, to be changed in this sample alone.
    pub fn facts_mut(&mut self) -> &mut Facts {
        Arc::make_mut(&mut self.facts)
    }
}

/// Facts of the machine that do not change while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Host name (`uname`).
    pub name: String,
    /// Kernel release as `uname -r` prints it.
    pub kernel: String,
    /// Machine as `uname -m` prints it.
    pub arch: String,
    /// What it does behind a benchmark's back, as of the start.
    #[serde(default, skip_serializing_if = "Policy::is_unknown")]
    pub policy: Policy,
}

/// The first two numbers of a version, as a kernel's release or a program tells it; none where it begins with none.
#[must_use]
pub fn version_of(words: &str) -> Option<(u32, u32)> {
    let mut numbers = words.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// What the machine does with frequencies, pages and interrupts; each unknown where it does not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// `scaling_governor` of core 0.
    pub governor: Option<String>,
    /// `scaling_max_freq` of core 0, kHz: what it may run at.
    pub limit_khz: Option<u64>,
    /// `cpuinfo_max_freq` of core 0, kHz: what it could.
    pub most_khz: Option<u64>,
    /// `kernel.numa_balancing` moves pages and threads between nodes.
    pub numa_balancing: Option<bool>,
    /// A process named irqbalance runs.
    pub irqbalance: Option<bool>,
    /// `net.core.default_qdisc`: the kind that is loaded for sure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_qdisc: Option<String>,
    /// `net.core.netdev_max_backlog`, packets; none in other network namespaces than the machine's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netdev_max_backlog: Option<u32>,
}

impl Policy {
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// What vnettop itself costs, absolute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCost {
    /// CPU time of all threads of this process since it started, ns (`CLOCK_PROCESS_CPUTIME_ID`).
    pub cpu_ns: u64,
    /// Ticks that began more than a tenth of the interval late or not at all, since the start.
    pub late_ticks: u64,
    /// Ticks left out since the start, because too many earlier samples had not yet been shown or written. The next sample
    /// counts from the last one that was read.
    #[serde(default)]
    pub left_out: u64,
    /// How long this sample had waited when it was taken, to be shown or written, ns; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_ns: Option<u64>,
    /// The sampler runs at real-time priority.
    pub realtime: bool,
    /// Why the sampler does not run at real-time priority; `None` when it does, or the reason is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinary: Option<RealtimeRefusal>,
    /// The interval asked for, ns.
    pub interval_ns: u64,
    /// The core that vnettop keeps itself on, away from those of the watched threads; none while it runs anywhere.
    #[serde(default)]
    pub seat: Option<CoreId>,
}

/// Why the sampler has no real-time priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RealtimeRefusal {
    /// `--no-realtime`.
    NotAsked,
    /// It has neither `CAP_SYS_NICE` nor an `RLIMIT_RTPRIO`.
    NoRight,
    /// It has the right, and the kernel refuses: a control group without real-time bandwidth, a filter of system calls.
    Refused,
    /// It took more of a core than a thread at that priority should, and asks again once it takes less.
    GivenBack,
}

/// What a problem concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::Display, strum::EnumIter)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[allow(missing_docs, reason = "their own names")]
pub enum ProblemSource {
    Benchmarks,
    Cores,
    Flows,
    Kernel,
    Losses,
    Namespaces,
    Ovs,
    Owners,
    Paths,
    /// What another user's process makes wait.
    Processes,
    Replay,
    Sampler,
    /// Claims of links.
    Speed,
    Threads,
    Topology,
    /// The word of another version's recording, or of one that was made otherwise.
    #[serde(untagged)]
    #[strum(transparent)]
    Other(String),
}

/// A source that could not be read: one sentence for the person at the terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What it concerns.
    pub source: ProblemSource,
    /// What failed, on what, what to do next.
    pub text: String,
}

impl Problem {
    /// Whether rights are missing. Only the sentence shows it: recordings hold nothing else, and a source has other problems as
    /// well.
    #[must_use]
    pub fn is_of_rights(&self) -> bool {
        self.text.contains("as root") || self.text.contains("CAP_")
    }
}
