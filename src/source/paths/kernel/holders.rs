//! Which process holds a socket, by the inode that `sock_diag` tells: those that were found before are asked first, then all
//! of `/proc`, newest first, because who has just been called was often made for it. That costs a microsecond for each
//! descriptor there is, so it is done for a socket that is new, and takes a small part of the time at most.

use crate::source::flows::holders::{processes, sockets_of};
use crate::source::{now_ns, proc_file};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::mem::MaybeUninit;
use std::path::Path;

/// What looking through all processes may take at once, ns, and of the time afterwards one part in so many.
const MOST_NS: u64 = 200_000_000;
const MOST_OF_TIME: u64 = 50;
/// Processes that were found and are asked first.
const MOST_FOUND: usize = 64;
/// Entries of about 300 descriptors a call.
const ENTRIES: usize = 8 * 1024;

/// The holders that are known.
#[derive(Debug, Default)]
pub(super) struct Holders {
    known: HashMap<u32, u32>,
    /// Sockets whose holder is not among the processes that can be seen.
    missing: HashSet<u32>,
    found: BTreeSet<u32>,
    /// What was spent and not earned since, ns, as of then.
    spent_ns: u64,
    at_ns: u64,
    waits: bool,
    entries: Vec<MaybeUninit<u8>>,
}

impl Holders {
    /// There are other sockets: who was not found may be now.
    pub fn forget(&mut self) {
        self.missing.clear();
        if self.known.len() > 4 * MOST_FOUND {
            self.known.clear();
        }
    }

    /// Somebody was not looked for, because that had taken long enough.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// The process that holds the socket, the newest of several; none where that is not known.
    pub fn of(&mut self, inode: u32) -> Option<u32> {
        if inode == 0 || self.missing.contains(&inode) {
            return None;
        }
        if let Some(&pid) = self.known.get(&inode).filter(|pid| self.found.contains(pid)) {
            return Some(pid);
        }
        let found: Vec<u32> = self.found.iter().rev().copied().collect();
        let pid = found.into_iter().find(|&pid| self.sockets(pid).contains(&inode)).or_else(|| self.look(inode))?;
        if self.found.len() >= MOST_FOUND {
            self.found.clear();
        }
        self.found.insert(pid);
        self.known.insert(inode, pid);
        Some(pid)
    }

    /// The inodes of the sockets that a process holds; none of one that is gone or may not be looked at.
    pub fn sockets(&mut self, pid: u32) -> Vec<u32> {
        self.entries.resize(ENTRIES, MaybeUninit::uninit());
        let proc = proc_file::open_directory(Path::new("/proc"));
        let all = proc.map_or_else(|_| Vec::new(), |proc| sockets_of(&proc, pid, &mut self.entries).0);
        if all.is_empty() {
            self.found.remove(&pid);
        }
        all
    }

    /// Looks through all processes.
    fn look(&mut self, inode: u32) -> Option<u32> {
        let began_ns = now_ns();
        self.spent_ns = self.spent_ns.saturating_sub(began_ns.saturating_sub(self.at_ns) / MOST_OF_TIME);
        (self.at_ns, self.waits) = (began_ns, self.spent_ns >= MOST_NS);
        if self.waits {
            return None;
        }
        let pids = processes(Path::new("/proc"));
        let pid = pids.into_iter().rev().find(|&pid| self.sockets(pid).contains(&inode));
        if pid.is_none() {
            self.missing.insert(inode);
        }
        self.at_ns = now_ns();
        self.spent_ns = self.spent_ns.saturating_add(self.at_ns.saturating_sub(began_ns));
        pid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    fn inode(of: impl AsFd) -> u32 {
        u32::try_from(rustix::fs::fstat(of).expect("it is open").st_ino).expect("inodes of sockets are short")
    }

    #[test]
    fn a_sockets_holder_is_found_and_one_that_nobody_holds_is_not_looked_for_again() {
        let (mut holders, own) = (Holders::default(), std::process::id());
        let socket = TcpListener::bind("127.0.0.1:0").expect("loopback can be listened on");
        assert_eq!(holders.of(inode(&socket)), Some(own), "this process");
        let other = TcpListener::bind("127.0.0.1:0").expect("loopback can be listened on");
        holders.spent_ns = u64::MAX;
        assert_eq!(holders.of(inode(&other)), Some(own), "who is known is asked first, whatever was spent");
        let gone = inode(&other);
        drop(other);
        assert_eq!((holders.of(gone + 1_000_000), holders.waits()), (None, true), "too much was spent to look");
        holders.spent_ns = 0;
        assert_eq!((holders.of(gone + 1_000_000), holders.waits()), (None, false), "nobody holds it");
        let spent_ns = std::mem::take(&mut holders.spent_ns);
        assert_eq!((holders.of(gone + 1_000_000), holders.spent_ns), (None, 0), "and that is known: {spent_ns} ns");
        assert_eq!(holders.of(0), None, "a socket that was not accepted yet has no inode");
    }
}
