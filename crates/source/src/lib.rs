//! Kernel → [`vnettop_sample::Sample`]. Readers take their root path or bytes, so that any machine can be read on any
//! other. They read and parse; they compute no rate and decide nothing.
//!
//! What the softirqs of this machine have cost so far; needs no rights:
//!
//! ```
//! use vnettop_source::{Roots, cores::CoreReader};
//!
//! let reading = CoreReader::open(&Roots::default())?.read()?;
//! for core in &reading.cores {
//!     println!("core {}: {} ticks of softirq, {} of system", core.core, core.softirq, core.system);
//! }
//! assert!(!reading.cores.is_empty());
//! # Ok::<(), vnettop_source::SourceError>(())
//! ```

pub mod benchmarks;
pub mod bpf;
mod channel;
pub mod clock;
pub mod cores;
pub mod doctor;
mod ethtool_ioctl;
pub mod feed;
mod firewall;
pub mod flows;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
pub mod host;
pub mod kernel;
pub mod links;
pub mod live;
pub mod losses;
pub mod mounts;
pub mod moves;
pub mod netlink;
pub mod netns;
mod nft;
pub mod ovs;
mod own_core;
pub mod owners;
pub mod paths;
mod peer;
pub mod policy;
mod proc_file;
pub mod profile;
pub mod remote;
mod replay;
pub mod sampler;
#[cfg(test)]
mod sandbox;
mod scan;
pub mod sched;
mod slow;
pub mod steering;
pub mod threads;
mod traffic_gauge;
mod untrusted_reader;

pub use crate::clock::now_ns;

use crate::clock::clock_ns;
use rustix::event::{Timespec, epoll};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the kernel's two file systems are mounted; another pair of directories is another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// `/proc`, or a tree that looks like it.
    pub proc: PathBuf,
    /// `/sys`, or a tree that looks like it.
    pub sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self { proc: PathBuf::from("/proc"), sys: PathBuf::from("/sys") }
    }
}

/// A source that could not be read: what failed, on what, why.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file of /proc or /sys.
    #[error("cannot read {path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// A netlink request.
    #[error("netlink: cannot {operation}: {error}")]
    Netlink {
        /// What was tried, as in "open a socket", "dump link counters".
        operation: &'static str,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// What carries the sampler: its thread and channel, its waiting for the next tick.
    #[error("{failed}: {error}")]
    Sampler {
        /// What failed.
        failed: &'static str,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The limit of open files.
    #[error(
        "vnettop needs {least} open files and may have only {limit}: ulimit -n {least} (a service: LimitNOFILE={least})"
    )]
    Descriptors {
        /// How many this process may have (`RLIMIT_NOFILE`).
        limit: usize,
        /// How many it must have.
        least: usize,
    },
    /// A recording being replayed.
    #[error(transparent)]
    Recording(#[from] vnettop_record::RecordError),
    /// Text or bytes that are not what the kernel is known to write.
    #[error("{what} has an unexpected format: {found}")]
    Format {
        /// The file or message.
        what: String,
        /// The beginning of what was found instead.
        found: String,
    },
}

impl SourceError {
    /// For callers that judge by the kernel's number: the cause where there is one, else the sentence.
    fn into_io(self) -> io::Error {
        match self {
            Self::File { error, .. } | Self::Netlink { error, .. } | Self::Sampler { error, .. } => error,
            other => io::Error::other(other),
        }
    }
}

/// With fewer open files something would be missing of one network namespace and its cores, another thing each time:
/// a run with its signals takes up to 60 where nothing is watched, the BPF programs up to 40 while they are loaded, and watched
/// threads share what is left.
pub const LEAST_TO_WATCH: usize = 128;

/// What a replayed recording takes: signals, mostly.
pub const LEAST_TO_REPLAY: usize = 24;

/// Descriptors that were open when vnettop began and that the figures above have room for.
const TAKEN_AT_MOST: usize = 24;

/// How many descriptors there must be, those that were open when vnettop began included.
fn needed(least: usize) -> usize {
    let taken = proc_file::taken();
    if taken > TAKEN_AT_MOST { least + taken } else { least }
}

/// Makes sure that this process may open so many files; asks the kernel for more where its hard limit allows that. Called before anything
/// is opened: what is open then is somebody else's, and is counted as taken.
///
/// # Errors
/// The hard limit is lower.
pub fn enough_descriptors(least: usize) -> Result<(), SourceError> {
    proc_file::note_taken();
    if proc_file::descriptor_limit() < needed(least) {
        crate::sched::raise_descriptor_limit();
    }
    let (limit, least) = (proc_file::descriptor_limit(), needed(least));
    if limit < least { Err(SourceError::Descriptors { limit, least }) } else { Ok(()) }
}

/// What to do about something that could not be opened: the limit of open files has a way out of its own.
fn way_out(error: &io::Error, otherwise: &'static str) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => "raise its open-file limit (ulimit -n)",
        _ => otherwise,
    }
}

/// What is readable now, by the numbers it was added with.
fn readable_now(events: &OwnedFd) -> Vec<u64> {
    let mut readable = Vec::with_capacity(256);
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Where nothing can be told, the next time tells it.
    let _ = epoll::wait(events, rustix::buffer::spare_capacity(&mut readable), Some(&at_once));
    readable.into_iter().map(|event: epoll::Event| event.data.u64()).collect()
}

/// Publishes a value; the `Arc` stays the same while it is the same.
fn publish<T: PartialEq>(published: &mut Arc<T>, now: T) {
    if **published != now {
        *published = Arc::new(now);
    }
}

/// Inode of the network namespace of a process, by its directory of /proc.
fn netns_of(process: &Path) -> Option<u64> {
    scan::netns(std::fs::read_link(process.join("ns/net")).ok()?.as_os_str().as_encoded_bytes())
}
