//! What `vnettop compare` measured, as it is kept in a file: one measurement of a load on a path after the other, nothing computed from
//! several of them.

use super::{Host, Word};
use serde::{Deserialize, Serialize};

/// The version of the file. One of another version is refused.
pub const COMPARISON_VERSION: u32 = 1;

/// A comparison, whole or as far as it got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`COMPARISON_VERSION`].
    #[serde(rename = "vnettop_comparison")]
    pub version: u32,
    /// The version of the program.
    pub vnettop: String,
    /// When it began, wall clock, milliseconds since 1970 (UTC).
    pub began_ms: u64,
    /// Where.
    pub machine: Machine,
    /// What was asked for.
    pub plan: ComparisonPlan,
    /// It was ended before everything was measured.
    pub interrupted: bool,
    /// Each path, those too that this machine cannot set up, in the order asked for.
    pub paths: Vec<ComparedPath>,
}

/// The machine of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name, kernel, architecture, and what it does behind a benchmark's back.
    #[serde(flatten)]
    pub host: Host,
    /// Cores online.
    pub cores: usize,
    /// NUMA nodes.
    pub nodes: u32,
    /// What the processor calls itself (`model name` of /proc/cpuinfo); none where it has no name.
    pub processor: Option<String>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each was asked for by itself")]
pub struct ComparisonPlan {
    /// How long each measurement lasts, seconds.
    pub seconds: f64,
    /// What is left out before it, seconds.
    pub warm_up_s: f64,
    /// How often each path is measured.
    pub rounds: u32,
    /// The loads.
    pub loads: Vec<Load>,
    /// Each load also with its threads pinned.
    pub pins: bool,
    /// TCP also with its threads pinned and its packets steered.
    #[serde(default)]
    pub steers: bool,
    /// TCP also with its packets steered and nothing pinned.
    #[serde(default)]
    pub steers_alone: bool,
    /// Why no packets are steered although threads are pinned; none where they are, or nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsteered: Option<String>,
    /// The version of the iperf3 that sends; none where there is none and only vnettop's own loads ran.
    pub iperf3: Option<String>,
    /// The right that it ran with.
    pub is_root: bool,
}

/// A load.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::EnumIter,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Load {
    /// TCP as fast as it goes, one stream.
    Tcp,
    /// Four streams.
    Tcp4,
    /// One byte there and one back over TCP, one after the other.
    Rr,
    /// UDP packets of 64 bytes as fast as they go: 18 bytes of payload.
    Udp,
}

impl Load {
    /// It is TCP as fast as it goes: steering is measured of it alone.
    #[must_use]
    pub fn is_bulk(self) -> bool {
        matches!(self, Self::Tcp | Self::Tcp4)
    }

    /// What its rate counts, a second.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Tcp | Self::Tcp4 => "bits",
            Self::Rr => "transactions",
            Self::Udp => "packets",
        }
    }

    /// For people.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Tcp => "TCP, 1 stream",
            Self::Tcp4 => "TCP, 4 streams",
            Self::Rr => "TCP request/response",
            Self::Udp => "UDP, 64-byte frames",
        }
    }
}

/// A path between two ends, and what was measured on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedPath {
    /// As on the command line; a path asked for again has a number behind it.
    pub name: String,
    /// What it is, in some words.
    pub what: String,
    /// Why it was not measured; none where it was.
    pub skipped: Option<String>,
    /// The links that its traffic crosses, in the order of the packets, as far as they are known.
    pub links: Vec<ClaimedLink>,
    /// Each measurement, in the order in which they were made.
    pub measurements: Vec<Measurement>,
}

/// A link of a path and what its driver claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedLink {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// The speed that ethtool tells, Mbit/s; none where the driver says nothing.
    pub claim_mbps: Option<u32>,
    /// What the claim is worth.
    pub basis: String,
}

/// One measurement of one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The round, from 1.
    pub round: u32,
    /// What was sent.
    pub load: Load,
    /// The busy threads were pinned for the whole of it.
    pub pinned: bool,
    /// The packets were steered for the whole of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steered: bool,
    /// Who sent: `iperf3` or `vnettop`.
    pub sender: String,
    /// When it was over, seconds since the comparison began.
    pub at_s: f64,
    /// How long it was, seconds, by the sender's own clock; none where nothing came of it.
    pub seconds: Option<f64>,
    /// What arrived, a second: bits, transactions or packets ([`Load::unit`]), as the program at the receiving end counts.
    pub rate: Option<f64>,
    /// Packets sent that did not arrive, share; of UDP alone.
    pub lost_share: Option<f64>,
    /// This rate as vnettop itself measured it from outside, bits/s of payload; of TCP and where it is known.
    pub seen_bits_per_s: Option<f64>,
    /// Coefficient of variation of that rate in bins of 100 ms.
    pub cv: Option<f64>,
    /// Migrations of the threads at both ends, a second.
    pub moves_per_s: Option<f64>,
    /// What the whole machine used meanwhile, but for vnettop itself, cores' worth.
    pub busy_cores: Option<f64>,
    /// The part of it that is softirq time.
    pub softirq_cores: Option<f64>,
    /// What other programs used just before the loads of this visit, while nothing was sent, cores' worth.
    #[serde(default)]
    pub others_cores: Option<f64>,
    /// Round trips of one byte beside the load, over the time that it was measured; none where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trips: Option<RoundTrips>,
    /// The same just before the loads of this visit, while nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_round_trips: Option<RoundTrips>,
    /// Segments that TCP sent again while it was measured, all connections together; none where no kernel tells.
    #[serde(default)]
    pub retransmits: Option<u64>,
    /// Which thread was pinned where.
    pub pins: Vec<ThreadOnCore>,
    /// What steered the packets.
    #[serde(default)]
    pub steers: Vec<SetOnLink>,
    /// Why there is no rate, or why nothing was pinned or steered.
    pub missing: Option<String>,
}

/// How long one byte there and one back took, over TCP, asked every few milliseconds; by `CLOCK_MONOTONIC` of who asks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// How many.
    pub count: u64,
    /// Mean, us.
    pub mean_us: f64,
    /// Median, us.
    pub p50_us: f64,
    /// 99th percentile, us.
    pub p99_us: f64,
    /// The longest, us.
    pub max_us: f64,
}

/// What is done to a load before it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray)]
pub enum Treatment {
    /// Nothing.
    #[strum(to_string = "unpinned")]
    Unpinned,
    /// Its busy threads are pinned.
    #[strum(to_string = "pinned")]
    Pinned,
    /// Its busy threads are pinned, and a setting of a link keeps its packets on one core.
    #[strum(to_string = "pinned and steered")]
    PinnedAndSteered,
    /// That setting alone.
    #[strum(to_string = "steered")]
    Steered,
}

impl Treatment {
    /// Threads are pinned.
    #[must_use]
    pub fn pins(self) -> bool {
        matches!(self, Self::Pinned | Self::PinnedAndSteered)
    }

    /// Packets are steered.
    #[must_use]
    pub fn steers(self) -> bool {
        matches!(self, Self::PinnedAndSteered | Self::Steered)
    }
}

/// A setting of a link, and what it was set to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetOnLink {
    /// The link's name.
    pub link: String,
    /// The setting (`rps_cpus`).
    pub setting: String,
    /// The text that sysfs got.
    pub value: String,
}

/// A thread and the core that it was pinned to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadOnCore {
    /// Its name and role.
    pub thread: String,
    /// The core.
    pub core: u32,
}

impl Measurement {
    /// One of which nothing is known yet.
    #[must_use]
    pub fn begun(round: u32, load: Load, treatment: Treatment) -> Self {
        Self {
            round,
            load,
            pinned: treatment.pins(),
            steered: treatment.steers(),
            sender: String::new(),
            at_s: 0.0,
            seconds: None,
            rate: None,
            lost_share: None,
            seen_bits_per_s: None,
            cv: None,
            moves_per_s: None,
            busy_cores: None,
            softirq_cores: None,
            others_cores: None,
            round_trips: None,
            idle_round_trips: None,
            retransmits: None,
            pins: Vec::new(),
            steers: Vec::new(),
            missing: None,
        }
    }

    /// What was done to its load.
    #[must_use]
    pub fn treatment(&self) -> Treatment {
        match (self.pinned, self.steered) {
            (false, false) => Treatment::Unpinned,
            (true, false) => Treatment::Pinned,
            (true, true) => Treatment::PinnedAndSteered,
            (false, true) => Treatment::Steered,
        }
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}
