//! Moves as the kernel made them (tracepoint `sched:sched_migrate_task`), where rights allow a trace of it.

use super::CoreId;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// One migration of a watched thread from a core to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// `CLOCK_MONOTONIC` at which the kernel moved it, ns.
    #[serde(rename = "t")]
    pub at_ns: u64,
    /// The thread. Its number only: who bore it at that time is known from the sample.
    pub tid: u32,
    /// The core it left (`orig_cpu`).
    pub from: CoreId,
    /// The core it went to (`dest_cpu`).
    pub to: CoreId,
}

/// A thread that would have been watched but ended before it was found: only the kernel's records of its moves are left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortLived {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// What it was called when it was moved last (`comm`).
    pub name: CompactString,
}

/// Where the moves come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TraceSource {
    /// A BPF program at the tracepoint: every move.
    Bpf,
    /// An ftrace instance: every move. In recordings of older versions.
    Ftrace,
    /// perf samples of the tracepoint, of every thread of the machine: some are lost without a record, the event's own
    /// counter tells how many, not whose. In recordings of older versions.
    Perf,
}

impl TraceSource {
    /// Whether it has only the moves of the threads asked for, so that lost moves are theirs too.
    #[must_use]
    pub fn is_filtered(self) -> bool {
        self != Self::Perf
    }
}

/// The moves since the sample before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Where they come from.
    pub source: TraceSource,
    /// Moves that happened and are not among the events, since the trace began: of watched threads and those yet to be born;
    /// of any thread of the machine where perf is the source.
    pub lost: u64,
    /// In the order of time.
    pub moves: Vec<Move>,
    /// Watched threads (their numbers, sorted) some of whose moves since the sample before were not asked for: they were
    /// found, or the trace began, in between. Nearly always empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partly: Vec<u32>,
    /// Threads that ended before they were found, sorted by number; their moves are among the others. None where the kernel does
    /// not say whose thread it moved (Linux 5.5 and newer with BTF does).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_lived: Option<Vec<ShortLived>>,
}
