//! Which sockets a watched process has open (`/proc/PID/fd`), listed again when that may have changed. It knows inodes
//! only; what kind of socket each is, is for `sock_diag` to say.

use super::netns;
use crate::proc_file;
use rustix::fs::{CWD, SeekFrom};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Free descriptors that the sockets and directories of followed connections leave: room for the BPF programs.
const LEFT_FREE: usize = 64;

/// A process opens its connections when it is young: so long it is listed on every tick.
const YOUNG_NS: u64 = 3_000_000_000;
/// How often an older process is listed, ns, if nothing hints at a change.
const LISTING_NS: u64 = 1_000_000_000;
/// One whose watched threads have not run opened nothing, as far as they can tell: it is left alone for so long.
const PARKED_NS: u64 = 5_000_000_000;
/// Listing so many descriptors costs little (a microsecond each), and is done whenever there is a hint or none is given.
const FEW: usize = 64;
/// A descriptor that led to no connection within this time is of another kind, or waits for connections itself.
const UNSETTLED_NS: u64 = 2_000_000_000;

/// A watched process and the sockets it has open.
#[derive(Debug)]
pub(super) struct SocketHolder {
    descriptors: OwnedFd,
    /// Inode of its network namespace.
    pub netns: u64,
    /// Sorted by inode.
    sockets: Vec<HeldSocket>,
    met_at_ns: u64,
    listed_at_ns: Option<u64>,
    /// `st_size` of the directory: the number of descriptors from Linux 6.2 on, 0 before.
    count: Option<i64>,
    /// Descriptors of any kind when last listed.
    listed: usize,
    /// A connection of it was lost.
    stale: bool,
    /// CPU time of its watched threads when last listed, ns.
    ran_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HeldSocket {
    inode: u32,
    /// When it was first seen.
    met_at_ns: u64,
    /// It is a connection that is followed.
    followed: bool,
}

impl SocketHolder {
    /// Opens the directory of its descriptors.
    pub fn open(proc: &Path, pid: u32, now_ns: u64) -> Result<Self, Errno> {
        // First, because it tells one that has ended, whose descriptors are root's, from another user's.
        let netns = netns::of(proc, pid)?;
        let descriptors = proc_file::open_directory_below(CWD, proc.join(pid.to_string()).join("fd"))?;
        let (met_at_ns, listed_at_ns) = (now_ns, None);
        Ok(Self {
            descriptors,
            netns,
            sockets: Vec::new(),
            met_at_ns,
            listed_at_ns,
            count: None,
            listed: 0,
            stale: false,
            ran_ns: 0,
        })
    }

    /// Whether one descriptor more beside those of this process leaves enough free for all else.
    pub fn leaves_room(&self) -> bool {
        let newest = rustix::io::fcntl_dupfd_cloexec(&self.descriptors, 0);
        newest.is_ok_and(|newest| proc_file::leaves(&newest, LEFT_FREE))
    }

    /// Looks whether its sockets are other ones; its watched threads have run for so long.
    ///
    /// # Errors
    /// The process is gone, or was given to another user.
    pub fn look(
        &mut self,
        proc: &Path,
        (pid, ran_ns): (u32, u64),
        now_ns: u64,
        entries: &mut [MaybeUninit<u8>],
    ) -> Result<(), Errno> {
        let age_ns = self.listed_at_ns.map_or(u64::MAX, |listed| now_ns.saturating_sub(listed));
        if self.ran_ns == ran_ns && !self.stale && age_ns < PARKED_NS {
            return Ok(());
        }
        if age_ns >= LISTING_NS {
            // It may have gone into another namespace before it opened anything there.
            self.netns = netns::of(proc, pid)?;
        }
        let count = rustix::fs::fstat(&self.descriptors)?.st_size;
        let hinted = count > 0 && self.count == Some(count) && !self.stale;
        let is_young = now_ns.saturating_sub(self.met_at_ns) < YOUNG_NS;
        let is_cheap = self.listed <= FEW && (is_young || !hinted);
        if age_ns >= LISTING_NS || is_cheap {
            self.list(now_ns, entries)?;
            (self.count, self.listed_at_ns, self.stale) = (Some(count), Some(now_ns), false);
            self.ran_ns = ran_ns;
        }
        Ok(())
    }

    /// Sockets that may be or become connections and are not followed yet.
    pub fn unsettled(&self, now_ns: u64) -> impl Iterator<Item = u32> {
        let is_new = move |socket: &&HeldSocket| now_ns.saturating_sub(socket.met_at_ns) < UNSETTLED_NS;
        self.sockets.iter().filter(|socket| !socket.followed).filter(is_new).map(|socket| socket.inode)
    }

    /// This socket is followed from now on; false if the process does not hold it. The subflows of MPTCP are several sockets of
    /// one inode.
    pub fn follow(&mut self, inode: u32) -> bool {
        let Some(socket) = self.find(inode) else { return false };
        socket.followed = true;
        true
    }

    /// A connection of it has ended: others may stand where it stood.
    pub fn lost_one(&mut self) {
        self.stale = true;
    }

    fn find(&mut self, inode: u32) -> Option<&mut HeldSocket> {
        let at = self.sockets.binary_search_by_key(&inode, |socket| socket.inode).ok()?;
        self.sockets.get_mut(at)
    }

    fn list(&mut self, now_ns: u64, entries: &mut [MaybeUninit<u8>]) -> Result<(), Errno> {
        rustix::fs::seek(&self.descriptors, SeekFrom::Start(0))?;
        let (inodes, listed) = proc_file::sockets(&self.descriptors, entries)?;
        let held = |inode| {
            let known = self.sockets.binary_search_by_key(&inode, |socket| socket.inode).ok();
            known.map_or(HeldSocket { inode, met_at_ns: now_ns, followed: false }, |at| self.sockets[at])
        };
        (self.sockets, self.listed) = (inodes.into_iter().map(held).collect(), listed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of its own making: this one has as many descriptors as the tests that run beside this one.
    #[test]
    fn a_socket_is_found_when_it_is_opened_and_forgotten_when_it_is_closed() {
        use std::os::unix::fs::symlink;
        let (root, pid, mut entries) = (tempfile::tempdir().expect("a directory"), 7, [MaybeUninit::uninit(); 8192]);
        let (proc, descriptors) = (root.path(), root.path().join("7/fd"));
        std::fs::create_dir_all(&descriptors).expect("a directory of descriptors");
        std::fs::create_dir_all(root.path().join("7/ns")).expect("a directory of namespaces");
        std::fs::write(root.path().join("7/ns/net"), "").expect("a namespace");
        symlink("/dev/null", descriptors.join("0")).expect("standard input");
        let mut holder = SocketHolder::open(proc, pid, 0).expect("its descriptors can be listed");
        holder.look(proc, (pid, 1), 0, &mut entries).expect("listable");
        symlink("socket:[4711]", descriptors.join("3")).expect("a socket");
        let seen = |holder: &SocketHolder, now_ns| holder.unsettled(now_ns).any(|inode| inode == 4711);
        holder.look(proc, (pid, 1), 1, &mut entries).expect("listable");
        assert!(!seen(&holder, 1), "a process that has not run has opened nothing");
        holder.look(proc, (pid, 2), 1, &mut entries).expect("listable");
        assert!(seen(&holder, 1), "a young process is listed on every tick");
        assert!(!seen(&holder, 1 + UNSETTLED_NS), "what never became a connection is left alone after a while");
        std::fs::remove_file(descriptors.join("3")).expect("it is closed");
        holder.look(proc, (pid, 3), 1 + LISTING_NS, &mut entries).expect("listable");
        assert!(!seen(&holder, 2), "a closed socket is forgotten");
    }
}
