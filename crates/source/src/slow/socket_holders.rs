//! Who holds a socket: one passage through the descriptors of all processes (`/proc/PID/fd`), of which the first that has it
//! counts. When to look is decided elsewhere.

use super::Slow;
use crate::proc_file;
use rustix::fs::CWD;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use vnettop_sample::SocketProcess;

/// The holders of sockets by inode; one that nobody was seen to hold is missing.
pub(crate) type HeldSockets = BTreeMap<u32, SocketProcess>;

/// Begins to look for the holders of these inodes.
pub(crate) fn search(proc: PathBuf, inodes: Vec<u32>) -> Option<Slow<HeldSockets>> {
    Slow::start("sockets", move |at| {
        let (mut holders, mut entries) = (HeldSockets::new(), vec![MaybeUninit::uninit(); proc_file::ENTRIES]);
        for pid in proc_file::processes(&proc) {
            at.store(pid, Ordering::Relaxed);
            let process = proc.join(pid.to_string());
            let held = proc_file::open_directory_below(CWD, process.join("fd"))
                .and_then(|directory| proc_file::sockets(&directory, &mut entries));
            for inode in held.unwrap_or_default().0.into_iter().filter(|inode| inodes.contains(inode)) {
                let name = proc_file::comm(&process).unwrap_or_default().into();
                holders.entry(inode).or_insert(SocketProcess { pid, name });
            }
            if holders.len() == inodes.len() {
                break;
            }
        }
        holders
    })
}
