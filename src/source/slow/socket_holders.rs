//! Who holds a socket: one passage through the descriptors of all processes (`/proc/PID/fd`), of which the first that has it
//! counts. When to look is decided elsewhere.

use super::Slow;
use crate::sample::SocketProcess;
use crate::source::proc_file;
use crate::text::clean;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// The holders of sockets by inode; one that nobody was seen to hold is missing.
pub(in crate::source) type HeldSockets = BTreeMap<u32, SocketProcess>;

/// Begins to look for the holders of these inodes.
pub(in crate::source) fn search(proc: PathBuf, inodes: Vec<u32>) -> Option<Slow<HeldSockets>> {
    Slow::start("sockets", move |at| {
        let mut holders = HeldSockets::new();
        for pid in proc_file::processes(&proc) {
            at.store(pid, Ordering::Relaxed);
            let process = proc.join(pid.to_string());
            for inode in held(&process).filter(|inode| inodes.contains(inode)) {
                let name = std::fs::read(process.join("comm")).unwrap_or_default();
                let name = clean(name.trim_ascii_end()).into();
                holders.entry(inode).or_insert(SocketProcess { pid, name });
            }
            if holders.len() == inodes.len() {
                break;
            }
        }
        holders
    })
}

fn held(process: &Path) -> impl Iterator<Item = u32> {
    let descriptors = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|one| {
        let target = std::fs::read_link(one.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}
