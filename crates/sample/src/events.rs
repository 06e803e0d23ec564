//! What happens between two samples: what vnettop has done, what its user asked for, what a benchmark reports.

use super::{CoreProfile, CoreSet, Report, RunAsked, SearchStep, Side, SteeredFile, StretchSide, ThreadId};
use serde::{Deserialize, Serialize};

/// Something that happened between two samples and that a recording must tell again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// vnettop set a thread's affinity mask.
    Pinned {
        /// The thread.
        thread: ThreadId,
        /// The mask before.
        old: CoreSet,
        /// The mask asked for.
        asked: CoreSet,
        /// The mask read back.
        got: CoreSet,
        /// `CLOCK_MONOTONIC` when it was in force, ns: what was read of the thread earlier says nothing of it. 0 in
        /// recordings that do not tell.
        #[serde(default)]
        at_ns: u64,
    },
    /// vnettop put a thread's mask back.
    Restored {
        /// The thread.
        thread: ThreadId,
        /// The mask read back.
        got: CoreSet,
        /// As of a pin.
        #[serde(default)]
        at_ns: u64,
    },
    /// vnettop changed a setting that says where a link's packets are handled.
    Steered {
        /// Which file of sysfs.
        #[serde(flatten)]
        file: SteeredFile,
        /// Its text before.
        old: String,
        /// The text written.
        asked: String,
        /// The text read back.
        got: String,
        /// `CLOCK_MONOTONIC` when it was in force, ns.
        at_ns: u64,
    },
    /// vnettop put such a setting back.
    Unsteered {
        /// Which file of sysfs.
        #[serde(flatten)]
        file: SteeredFile,
        /// The text read back.
        got: String,
        /// `CLOCK_MONOTONIC`, ns.
        at_ns: u64,
    },
    /// The user pressed the mark key.
    Mark {
        /// `CLOCK_MONOTONIC`, ns.
        at_ns: u64,
    },
    /// A benchmark is put under observation (`vnettop run`).
    RunAsked(RunAsked),
    /// Its command was started.
    RunStarted {
        /// `CLOCK_MONOTONIC`, ns.
        at_ns: u64,
        /// The command's process.
        pid: u32,
    },
    /// A stretch of it begins, and the one before ends.
    Stretch {
        /// `CLOCK_MONOTONIC`, ns.
        at_ns: u64,
        /// None: from here on nothing is compared.
        side: Option<StretchSide>,
    },
    /// A step of the search for the best placement (`vnettop run --pin search`).
    Search {
        /// `CLOCK_MONOTONIC`, ns.
        at_ns: u64,
        /// What was done.
        #[serde(flatten)]
        step: SearchStep,
    },
    /// No thread was pinned although it was time to.
    NotPinned {
        /// `CLOCK_MONOTONIC`, ns.
        at_ns: u64,
        /// Why, in a sentence; see [`Event::nothing_was_pinned`].
        why: String,
    },
    /// iperf 3 reported something (`--json-stream`), or why its reports cannot be read was found out.
    Reported {
        /// `CLOCK_MONOTONIC` when it was read, ns.
        at_ns: u64,
        /// Its process; of a command that `vnettop run` started, that of the command.
        pid: u32,
        /// Which side the report is of; `None` while that is not known.
        side: Option<Side>,
        /// What it reported.
        report: Report,
    },
    /// Its command has ended.
    RunEnded {
        /// `CLOCK_MONOTONIC`, ns.
        at_ns: u64,
        /// Its exit code, 128 + the signal that ended it.
        code: i32,
    },
    /// What a core did for about a second, while that is asked for.
    Profiled(Box<CoreProfile>),
    /// Why the flight recorder saved this recording by itself. It stands before the first sample.
    Saved {
        /// When that began, `CLOCK_MONOTONIC`, ns.
        at_ns: u64,
        /// What `--on` waited for; `None`: a limit of `vnettop run` was exceeded.
        trigger: Option<TriggerKind>,
    },
}

/// What the flight recorder can wait for.
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
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum TriggerKind {
    /// The rate of a test falls.
    Dip,
    /// Packets of a test are lost.
    Loss,
    /// Its packets wait long.
    Latency,
    /// Something else holds it back than before.
    LimitChange,
    /// Its threads migrate often.
    MigrationBurst,
}

impl Event {
    /// The sentence of a [`Event::NotPinned`]. In recordings some reasons are that sentence already, so it is not begun twice.
    #[must_use]
    pub fn nothing_was_pinned(why: &str) -> String {
        if why.starts_with("nothing was ") { why.to_owned() } else { format!("nothing was pinned: {why}") }
    }
}
