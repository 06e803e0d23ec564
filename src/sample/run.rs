//! What a recording must tell of a benchmark under observation (`vnettop run`), so that its card can be computed again:
//! what was asked for, and which stretches of the run were pinned. Times are `CLOCK_MONOTONIC`, ns.

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
}

/// Whose benchmark is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// That of the command's processes, as far as they have one.
    Command,
    /// That of the processes which the user named, and of the command's own one.
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

/// Whether a stretch of a run is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StretchSide {
    /// Every mask is as it was before vnettop.
    Unpinned,
    /// The busy watched threads are pinned.
    Pinned,
}
