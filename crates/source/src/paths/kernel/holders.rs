//! Which process holds a socket, by its namespace and the inode that `sock_diag` tells: those that were found before are asked
//! first, then all of `/proc` in slices. A slice is looked through at once; where there are more, the next ticks go on with it.

use crate::flows::socket_process::{Search, SocketInode, residents, sockets_of};
use crate::{now_ns, proc_file};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::mem::MaybeUninit;
use std::path::Path;

/// Time that searching may take at once, ns, and then one part in `MOST_OF_TIME` of the time. It is so long because knowing a
/// test from its beginning is worth a late tick; a thousand processes take a tenth of it.
const MOST_NS: u64 = 200_000_000;
const MOST_OF_TIME: u64 = 10;
/// Processes that were found and are asked first.
const MOST_FOUND: usize = 64;
/// Entries of about 300 descriptors a call.
const ENTRIES: usize = 8 * 1024;

/// The holders that are known.
#[derive(Debug, Default)]
pub(in crate::paths) struct KnownHolders {
    known: HashMap<SocketInode, u32>,
    /// Sockets whose holder is not among the processes that can be seen.
    missing: HashSet<SocketInode>,
    found: BTreeSet<u32>,
    /// Sockets whose holders the running search looks for, and sockets for the next search.
    wanted: Vec<SocketInode>,
    later: Vec<SocketInode>,
    search: Option<Search>,
    /// What was spent and not earned since, ns, as of then.
    spent_ns: u64,
    at_ns: u64,
    entries: Vec<MaybeUninit<u8>>,
}

impl KnownHolders {
    /// The sockets have changed: holders that were not found are looked for again.
    pub fn forget(&mut self) {
        self.missing.clear();
        if self.known.len() > 4 * MOST_FOUND {
            self.known.clear();
        }
    }

    /// The process that holds the socket, the newest of several; `None` when unknown, or not known yet.
    pub fn of(&mut self, socket: SocketInode) -> Option<u32> {
        if socket.1 == 0 || self.missing.contains(&socket) || self.wanted.contains(&socket) {
            return None;
        }
        if let Some(&pid) = self.known.get(&socket).filter(|pid| self.found.contains(pid)) {
            return Some(pid);
        }
        let found: Vec<u32> = self.found.iter().rev().copied().collect();
        if let Some(pid) = found.into_iter().find(|&pid| self.sockets(pid).contains(&socket.1)) {
            self.known.insert(socket, pid);
            return Some(pid);
        }
        if !self.later.contains(&socket) {
            self.later.push(socket);
        }
        self.go_on();
        self.known.get(&socket).copied()
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

    /// Looks at the next slices, as far as the time goes; true when a search has come to its end.
    pub fn go_on(&mut self) -> bool {
        let mut ended = false;
        self.entries.resize(ENTRIES, MaybeUninit::uninit());
        while !self.wanted.is_empty() || !self.later.is_empty() {
            let began_ns = now_ns();
            let passed_ns = began_ns.saturating_sub(self.at_ns);
            (self.spent_ns, self.at_ns) = (self.spent_ns.saturating_sub(passed_ns / MOST_OF_TIME), began_ns);
            if self.spent_ns >= MOST_NS {
                break;
            }
            let search = self.search.get_or_insert_with(|| {
                self.wanted = std::mem::take(&mut self.later);
                let proc = Path::new("/proc");
                Search::begin(proc, &residents(proc), self.wanted.clone())
            });
            for found in search.go_on(&mut self.entries) {
                if self.found.len() >= MOST_FOUND {
                    self.found.clear();
                }
                self.found.insert(found.pid);
                self.known.insert(found.socket, found.pid);
            }
            if search.is_over() {
                let known = &self.known;
                self.missing.extend(self.wanted.drain(..).filter(|socket| !known.contains_key(socket)));
                self.search = None;
                ended = true;
            }
            self.at_ns = now_ns();
            self.spent_ns = self.spent_ns.saturating_add(self.at_ns.saturating_sub(began_ns));
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    fn socket(of: impl AsFd) -> SocketInode {
        let inode = rustix::fs::fstat(of).expect("it is open").st_ino;
        (0, u32::try_from(inode).expect("inodes of sockets are short"))
    }

    fn listener() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").expect("loopback can be listened on")
    }

    #[test]
    fn a_sockets_holder_is_found_and_one_that_nobody_holds_is_not_looked_for_again() {
        let (mut holders, own) = (KnownHolders::default(), std::process::id());
        let first = listener();
        while holders.of(socket(&first)).is_none() {
            holders.spent_ns = 0;
            holders.go_on();
        }
        assert_eq!(holders.of(socket(&first)), Some(own), "this process");
        let other = listener();
        (holders.spent_ns, holders.at_ns) = (u64::MAX, now_ns());
        assert_eq!(holders.of(socket(&other)), Some(own), "who is known is asked first, whatever was spent");
        let nobodys = (0, socket(&other).1 + 1_000_000);
        assert_eq!((holders.of(nobodys), holders.later.len()), (None, 1), "too much was spent to look: later");
        assert!(!holders.go_on(), "nor now");
        while holders.missing.is_empty() {
            holders.spent_ns = 0;
            holders.go_on();
        }
        let spent_ns = std::mem::take(&mut holders.spent_ns);
        assert_eq!((holders.of(nobodys), holders.spent_ns), (None, 0), "that nobody has it is known: {spent_ns} ns");
        assert_eq!(holders.of((0, 0)), None, "a socket that was not accepted yet has no inode");
    }
}
