//! The seam between this room and the machine, and the real machine behind it. It judges nothing: errors go up as the
//! kernel gave them.

use super::link_settings::{self, LinkSettings};
use crate::sample::{CoreSet, LinkKey, ThreadId};
use crate::sched;
use crate::source::steering::LinkFolderError;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::{fs, io};

/// What pinning and steering need from a machine; tests put a recording fake in its place.
pub trait Pinner {
    /// When the thread with this pid and tid was born: field 22 of `/proc/PID/task/TID/stat`, clock ticks since boot.
    ///
    /// # Errors
    /// `NotFound` or ESRCH when there is no such thread.
    fn start_of(&mut self, thread: ThreadId) -> io::Result<u64>;

    /// The thread's affinity mask, cores that are offline now included: what is to be put back.
    ///
    /// # Errors
    /// `NotFound` or ESRCH when there is no such thread.
    fn mask_of(&mut self, tid: u32) -> io::Result<CoreSet>;

    /// The cores that the cpuset of the thread's cgroup allows it now; none where that cannot be told.
    fn cpuset_of(&mut self, tid: u32) -> Option<CoreSet>;

    /// Sets the thread's affinity mask (`sched_setaffinity`); the kernel may silently give less than asked.
    ///
    /// # Errors
    /// EPERM, EINVAL, ESRCH as `sched_setaffinity(2)` gives them.
    fn set_mask(&mut self, tid: u32, cores: &CoreSet) -> io::Result<()>;

    /// What tells this boot from every other (`/proc/sys/kernel/random/boot_id`).
    ///
    /// # Errors
    /// Where /proc is not mounted.
    fn boot_id(&mut self) -> io::Result<String>;

    /// Where the numbers of threads and their start times hold.
    fn number_spaces(&mut self) -> NumberSpaces;

    /// The settings of the link with this identity, whatever it is called now.
    ///
    /// # Errors
    /// The link or its namespace is gone, or may not be looked at.
    fn link(&mut self, link: LinkKey) -> Result<Box<dyn LinkSettings>, LinkFolderError>;
}

/// The namespaces without which neither a thread's number nor its start time says who it is: `/proc/self/ns/pid` and `time`, by
/// their inodes. None where the kernel does not tell (time namespaces: Linux 5.6), or a journal is older than this.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NumberSpaces {
    /// Namespace of process numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid_ns: Option<u64>,
    /// Namespace of the clocks that start times are measured by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u64>,
}

impl NumberSpaces {
    /// In which namespace numbers written in `other` mean somebody else here, as /proc names it; none where they mean the same,
    /// as far as is known.
    #[must_use]
    pub fn differs_from(self, other: Self) -> Option<String> {
        let kinds = [("pid", self.pid_ns, other.pid_ns), ("time", self.time_ns, other.time_ns)];
        let differs = |(kind, here, there): (&str, Option<u64>, Option<u64>)| {
            let there = there.filter(|&there| here.is_some_and(|here| here != there))?;
            Some(format!("{kind}:[{there}]"))
        };
        kinds.into_iter().find_map(differs)
    }
}

/// The kernel that vnettop runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kernel;

impl Pinner for Kernel {
    fn start_of(&mut self, thread: ThreadId) -> io::Result<u64> {
        let line = fs::read(format!("/proc/{}/task/{}/stat", thread.pid, thread.tid))?;
        let (state, start) = start_in(&line).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        // A zombie has ended; it may wait for ever to be collected by a parent that does not care.
        if matches!(state, 'Z' | 'X') { Err(io::ErrorKind::NotFound.into()) } else { Ok(start) }
    }

    fn mask_of(&mut self, tid: u32) -> io::Result<CoreSet> {
        sched::kept_affinity(tid)
    }

    fn cpuset_of(&mut self, tid: u32) -> Option<CoreSet> {
        sched::cpuset(tid)
    }

    fn set_mask(&mut self, tid: u32, cores: &CoreSet) -> io::Result<()> {
        sched::set_affinity(tid, cores)
    }

    fn boot_id(&mut self) -> io::Result<String> {
        fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned())
    }

    fn number_spaces(&mut self) -> NumberSpaces {
        let inode = |path: &str| fs::metadata(path).ok().map(|found| found.ino());
        NumberSpaces { pid_ns: inode("/proc/self/ns/pid"), time_ns: inode("/proc/self/ns/time") }
    }

    fn link(&mut self, link: LinkKey) -> Result<Box<dyn LinkSettings>, LinkFolderError> {
        link_settings::of_kernel(link)
    }
}

/// State and field 22 of a stat line. The name in brackets is field 2 and may hold anything, brackets and spaces too.
fn start_in(stat: &[u8]) -> Option<(char, u64)> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let fields = std::str::from_utf8(&stat[after_name..]).ok()?;
    let state = fields.trim_start().chars().next()?;
    Some((state, fields.split_ascii_whitespace().nth(22 - 3)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_any_name() {
        let line = b"7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20 21\n";
        assert_eq!(start_in(line), Some(('S', 987_654)), "field 22, counted after the last bracket");
        assert_eq!(start_in(b"7 (a"), None, "a line without its bracket is nothing");
        assert_eq!(start_in(b"7 (a) S 1"), None, "a short line is nothing");
    }

    #[test]
    fn a_zombie_has_ended() {
        let mut child = std::process::Command::new("true").spawn().expect("true runs");
        let of = |pid| Kernel.start_of(ThreadId { pid, tid: pid, start: 0 });
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while of(child.id()).is_ok() && std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        assert!(of(child.id()).is_err(), "an uncollected child counts as ended");
        child.wait().expect("it is collected");
    }

    #[test]
    fn a_thread_that_is_not_there_is_not_found() {
        let nobody = ThreadId { pid: u32::MAX, tid: u32::MAX, start: 0 };
        let error = Kernel.start_of(nobody).expect_err("no such thread");
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "the caller can tell that it ended");
    }
}
