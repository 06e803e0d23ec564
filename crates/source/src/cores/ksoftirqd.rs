//! CPU time of `ksoftirqd/N`, the kernel thread that takes over when softirqs of core N pile up
//! (`/proc/PID/schedstat`). The threads are found once; one that its core's softirq time says nothing new of is not read.

use crate::proc_file;
use crate::scan;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use vnettop_sample::{CoreCounters, CoreId};

/// The `ksoftirqd` threads, each with what it was last seen at.
#[derive(Debug, Default)]
pub(super) struct Ksoftirqd {
    threads: BTreeMap<CoreId, KsoftirqdThread>,
}

#[derive(Debug)]
struct KsoftirqdThread {
    schedstat: OwnedFd,
    /// The core's softirq ticks and the thread's CPU time at the last reading.
    seen: Option<(u64, u64)>,
}

impl Ksoftirqd {
    /// Finds the threads of the cores in `rows`. There are none in a process namespace of its own (a container).
    pub(super) fn find(proc: &Path, rows: &[CoreCounters]) -> Self {
        let mut threads = BTreeMap::new();
        if proc_file::text(&proc.join("2/comm")).is_ok_and(|name| name == "kthreadd") {
            // The other descriptors are left to watched threads and links; a core without one is unknown.
            let most = rows.len().min(proc_file::descriptor_room() / 8);
            // Per-core kernel threads get their pids while a machine starts: a handful a core, from the first ones on.
            let first = proc_file::processes(proc).into_iter().take(2048 + 32 * rows.len());
            threads.extend(first.filter_map(|pid| open(&proc.join(pid.to_string()))).take(most));
        }
        Self { threads }
    }

    /// Fills `ksoftirqd_ns` of the rows.
    pub(super) fn read(&mut self, rows: &mut [CoreCounters]) {
        for row in rows {
            let Some(thread) = self.threads.get_mut(&row.core) else { continue };
            row.ksoftirqd_ns = match thread.seen {
                Some((softirq, ns)) if softirq == row.softirq => Some(ns),
                _ => thread.read(),
            };
            thread.seen = row.ksoftirqd_ns.map(|ns| (row.softirq, ns));
        }
    }
}

impl KsoftirqdThread {
    fn read(&self) -> Option<u64> {
        let mut buffer = [0; 128];
        let text = proc_file::once(&self.schedstat, &mut buffer).ok()?;
        scan::number(scan::fields(text).next()?)
    }
}

fn open(directory: &Path) -> Option<(CoreId, KsoftirqdThread)> {
    let name = proc_file::text(&directory.join("comm")).ok()?;
    let core = name.strip_prefix("ksoftirqd/")?.parse().ok()?;
    let schedstat = std::fs::File::open(directory.join("schedstat")).ok()?;
    Some((core, KsoftirqdThread { schedstat: schedstat.into(), seen: None }))
}
