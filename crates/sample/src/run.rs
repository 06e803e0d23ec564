//! What a recording must tell of a benchmark under observation (`vnettop run`), so that its card can be computed again:
//! what was asked for, which stretches of the run were pinned, and which placement each phase of a search had. Times are
//! `CLOCK_MONOTONIC`, ns.

use super::{CoreId, SpaceEntry, SteerRequest, SteerSetting, SteerTarget, SteerValue, ThreadId};
use serde::{Deserialize, Serialize};

/// What is done about pins while the command runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum PinMode {
    /// Nothing: watch only.
    #[default]
    Never,
    /// Say what would be pinned; change nothing.
    Propose,
    /// Pin and unpin in turn, and compare.
    Compare,
    /// Try one placement of each class in short phases, and rank them.
    Search,
}

impl PinMode {
    /// Threads are pinned and unpinned while the command runs.
    #[must_use]
    pub fn takes_turns(self) -> bool {
        matches!(self, Self::Compare | Self::Search)
    }
}

/// What is done about the cores of packets while the command runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SteerMode {
    /// Nothing.
    #[default]
    Never,
    /// Steer the packets and leave them alone in turn, and compare; with pins, each with and without.
    Compare,
    /// Try several cores for the packets, and rank them.
    Search,
}

impl SteerMode {
    /// Nothing is steered.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
    fn is_never(&self) -> bool {
        *self == Self::Never
    }
}

/// Whose benchmark is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// The benchmark of the command's processes, as far as they have one.
    Command,
    /// The benchmark of the processes that the user named, and of the command.
    Named,
}

/// What `vnettop run` was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAsked {
    /// Wall clock, milliseconds since 1970 (UTC); for people.
    pub wall_ms: u64,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Names and pids watched beside the command itself.
    pub watch: Vec<String>,
    /// Whose benchmark was to be measured; none in recordings that do not tell: everything watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// What was to be done about pins.
    pub pin: PinMode,
    /// What was to be done about the cores of packets.
    #[serde(default, skip_serializing_if = "SteerMode::is_never")]
    pub steer: SteerMode,
    /// Settings of the links on the path were to be tried beside placements and cores of packets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tune: bool,
    /// The threads between the ends were to stay as they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_only: bool,
    /// How often the command was to run.
    pub repeat: u32,
    /// Length of a stretch where one run is compared with itself, ns.
    pub stretch_ns: u64,
    /// Time dropped at the start of the traffic and of every stretch, ns.
    pub settle_ns: u64,
    /// The largest coefficient of variation allowed, millionths.
    pub max_cv_ppm: Option<u64>,
    /// The most packets that may be dropped.
    pub max_drops: Option<u64>,
}

impl RunAsked {
    /// Treatments are tried in short phases, and ranked.
    #[must_use]
    pub fn is_search(&self) -> bool {
        self.pin == PinMode::Search || self.steer != SteerMode::Never
    }

    /// Something is changed and put back while the command runs.
    #[must_use]
    pub fn takes_turns(&self) -> bool {
        self.pin.takes_turns() || self.steer != SteerMode::Never
    }
}

/// Whether a stretch of a run is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StretchSide {
    /// Every mask is as it was before vnettop.
    Unpinned,
    /// The busy watched threads are pinned.
    Pinned,
}

/// What the placements of one class have in common: how far apart the two ends of each stream run, or how far both are from
/// the core that handles interrupts of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
pub enum PlacementClass {
    /// Every mask is as it was before vnettop.
    #[strum(to_string = "unpinned")]
    Unpinned,
    /// Both ends of a stream on one core.
    #[strum(to_string = "same core")]
    SameCore,
    /// On two SMT siblings of one physical core.
    #[strum(to_string = "SMT siblings")]
    Siblings,
    /// On two cores of one cluster.
    #[strum(to_string = "same cluster")]
    SameCluster,
    /// On two clusters of one last-level cache.
    #[strum(to_string = "same cache")]
    SameCache,
    /// On two caches of one node.
    #[strum(to_string = "same node")]
    SameNode,
    /// On two nodes of one socket.
    #[strum(to_string = "other node")]
    OtherNode,
    /// On two sockets.
    #[strum(to_string = "other socket")]
    OtherSocket,
    /// On two cores of a machine that reports no levels.
    #[strum(to_string = "two cores")]
    TwoCores,
    /// A core for each thread, where only one end of each stream is on this machine.
    #[strum(to_string = "own cores")]
    OwnCores,
    /// As near as possible to the core that handles interrupts of others, and not on it.
    #[strum(to_string = "beside interrupts")]
    BesideInterrupts,
    /// As far as possible from that core.
    #[strum(to_string = "away from interrupts")]
    AwayFromInterrupts,
    /// What `p` proposes, where that is of none of the classes above.
    #[strum(to_string = "proposal")]
    Proposal,
}

/// One thread and its core in a placement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedThread {
    /// The thread.
    #[serde(flatten)]
    pub thread: ThreadId,
    /// Its name and role, for people.
    pub label: String,
    /// The core.
    pub core: CoreId,
}

/// One placement that a search tries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedPlacement {
    /// Its class.
    pub class: PlacementClass,
    /// It is what `p` proposes by its rule.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_rule: bool,
    /// The threads that are pinned; none where it is unpinned.
    pub threads: Vec<PlacedThread>,
    /// The settings of links that are changed; none where packets are left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steers: Vec<TriedSteer>,
}

/// A setting of a link in a placement that a search tries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedSteer {
    /// What is set.
    #[serde(flatten)]
    pub request: SteerRequest,
    /// What its cores are to the test, for people: `receiver's core 1`, `idle core 5`; of other settings what they are set to,
    /// `gro on (eth0)`.
    pub whose: String,
    /// Whose they are, so that the same is proposed for a later test.
    #[serde(default)]
    pub target: SteerTarget,
    /// How a shell gets at the link.
    pub space: SpaceEntry,
}

impl TriedPlacement {
    /// What it is called: `same cluster`, `unpinned, packets on receiver's core 1`.
    #[must_use]
    pub fn words(&self) -> String {
        let class: &str = self.class.into();
        let words = |steer: &TriedSteer| {
            let of = if steer.request.setting.takes_cores() { "packets on " } else { "" };
            format!(", {of}{}", steer.whose)
        };
        let whose = self.steers.first().map(words);
        format!("{class}{}", whose.unwrap_or_default())
    }

    /// Nothing is changed.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.class == PlacementClass::Unpinned && self.steers.is_empty()
    }
}

/// What a search for the best placement did, as a recording tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(tag = "step", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SearchStep {
    /// It starts.
    Started {
        /// What the random order of the phases was made from.
        seed: u64,
        /// What is tried; the other steps name them by their number here, from 0.
        placements: Vec<TriedPlacement>,
        /// What is not tried and why, a sentence each.
        left_out: Vec<String>,
        /// The kind of test that is searched for.
        test: TestKind,
    },
    /// A phase starts; every phase ends with the next stretch or step.
    Phase {
        /// Its placement.
        placement: u32,
        /// Its round, from 0.
        round: u32,
    },
    /// A placement gets no more phases: it is clearly worse than the best one.
    Dropped {
        /// Which one.
        placement: u32,
        /// After so many rounds.
        rounds: u32,
    },
    /// A placement gets no more phases: its masks could not be set.
    Failed {
        /// Which one.
        placement: u32,
        /// Why, a sentence.
        why: String,
    },
    /// There is nothing left to try, though the command goes on.
    Ended,
}

/// What makes two tests alike, so that a placement found for one is proposed for the other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestKind {
    /// The cores of the machine by level: `16 cores, 4 clusters, 4 caches, 4 nodes, 1 socket`.
    pub machine: String,
    /// The kinds of the links from sender to receiver, in this order; empty where the path is not known.
    pub links: Vec<String>,
    /// Streams with both ends on this machine.
    pub streams: u32,
    /// Threads that are placed.
    pub threads: u32,
}

/// What a search found for one kind of test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundPlacement {
    /// The kind of test.
    pub test: TestKind,
    /// The class that was best; unpinned where no pin was better and the rule's own was worse.
    pub class: PlacementClass,
    /// Whose core the packets were put onto as well: that is proposed beside the pins, or where no pin helps, alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steered: Option<SteerTarget>,
    /// A setting of the links on the path that was best, and its value: that is proposed beside the pins too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<(SteerSetting, SteerValue)>,
    /// Its rate above that of unpinned, millionths; none where that was not measured.
    pub gain_ppm: Option<i64>,
    /// The day of the search (UTC), `2026-01-02`; for people.
    pub day: String,
}
