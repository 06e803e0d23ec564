//! The stream of a run ↔ a file, one JSON object a line, zstd when the name ends in `.zst`.
//!
//! The first line names the format. Facts (host, links, topology, problems) are written when they change and hold until
//! they change again; counters are integers, so what is read back is what was written, bit for bit.

mod clean;
mod patient;
mod read;
mod write;

use crate::sample::{
    Benchmark, CoreCounters, Event, FlowPath, FlowSample, Host, KernelCounts, LinkCounters, LinkFacts, Offloads,
    OvsDatapath, OvsSwitch, OwnCost, Owned, Problem, ProtocolCounters, QdiscCounters, Runner, Space, Steering,
    ThreadSample, Topology, Trace,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

pub use read::Recording;
pub use write::Recorder;

/// The only format there is; a file of another version is refused with a sentence.
const SCHEMA_VERSION: u32 = 1;

/// What goes wrong with a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file system's own reason.
    #[error("cannot {operation} recording {}: {error}", path.display())]
    File {
        /// "open", "write", …
        operation: &'static str,
        /// The recording.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// There is something in the file already.
    #[error("recording {} exists already: name another file, or remove it first", .0.display())]
    Exists(PathBuf),
    /// The file is something else.
    #[error("{} is not a vnettop recording: its first line is not a vnettop_recording header", .0.display())]
    Foreign(PathBuf),
    /// The file is of another version.
    #[error("recording {} has schema version {version}, this vnettop reads {SCHEMA_VERSION}: use the vnettop that wrote it", path.display())]
    Version {
        /// The recording.
        path: PathBuf,
        /// What it says.
        version: u32,
    },
    /// A line that cannot be used.
    #[error("recording {} is damaged in line {line}: {reason}", path.display())]
    Line {
        /// The recording.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// The first line of every recording.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    vnettop_recording: u32,
    vnettop: String,
}

/// Every other line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    Host(Arc<Host>),
    Links(Arc<Vec<Arc<LinkFacts>>>),
    Topology(Arc<Topology>),
    Problems(Arc<Vec<Problem>>),
    Spaces(Arc<Vec<Space>>),
    Owners(Arc<Vec<Owned>>),
    Ovs(Arc<Vec<OvsSwitch>>),
    Paths(Arc<Vec<FlowPath>>),
    Benchmarks(Arc<Vec<Benchmark>>),
    Offloads(Arc<Vec<Offloads>>),
    Steering(Arc<Vec<Steering>>),
    Family(Arc<Vec<u32>>),
    Runners(Arc<Vec<Runner>>),
    Sample(Box<Row<'a>>),
    Event(Cow<'a, Event>),
}

/// What changes from sample to sample.
#[derive(Debug, Serialize, Deserialize)]
struct Row<'a> {
    wall_ms: u64,
    at_ns: u64,
    netns: u64,
    cores_at_ns: u64,
    own: OwnCost,
    counters: Cow<'a, [LinkCounters]>,
    cores: Cow<'a, [CoreCounters]>,
    threads: Cow<'a, [ThreadSample]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<Cow<'a, Trace>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<Arc<KernelCounts>>,
    #[serde(default, skip_serializing_if = "is_empty")]
    flows: Cow<'a, [FlowSample]>,
    #[serde(default, skip_serializing_if = "is_empty")]
    qdiscs: Cow<'a, [QdiscCounters]>,
    #[serde(default, skip_serializing_if = "is_empty")]
    protocols: Cow<'a, [ProtocolCounters]>,
    #[serde(default, skip_serializing_if = "is_empty")]
    datapaths: Cow<'a, [OvsDatapath]>,
}

fn is_empty<T>(rows: &[T]) -> bool {
    rows.is_empty()
}
