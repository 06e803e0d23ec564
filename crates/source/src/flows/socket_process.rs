//! Which process holds a socket: looked for among the descriptors of all processes (`/proc/PID/fd`), in slices. Those that live
//! in the socket's network namespace come first, and of them the youngest: the child that a server has forked for it.

use crate::proc_file;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

/// What a slice may cost: a descriptor is one, a microsecond or less.
const SLICE: usize = 4000;
/// What a process costs beside its descriptors.
const PROCESS: usize = 8;

/// A socket by the inode of its network namespace and by its own, as `sock_diag` tells it.
pub(crate) type SocketInode = (u64, u32);

/// The processes of a /proc by the inode of their network namespace, lowest number first; without those that may not be
/// looked at.
pub(crate) fn residents(proc: &Path) -> BTreeMap<u64, Vec<u32>> {
    let mut residents: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for pid in proc_file::processes(proc) {
        if let Ok(netns) = super::netns::of(proc, pid) {
            residents.entry(netns).or_default().push(pid);
        }
    }
    residents
}

/// A socket that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundSocket {
    pub socket: SocketInode,
    /// The process that holds it.
    pub pid: u32,
    /// Every socket that it has, by inode, sorted.
    pub sockets: Vec<u32>,
}

/// Where a search stands.
#[derive(Debug)]
pub(crate) struct Search {
    proc: Option<OwnedFd>,
    /// Who is still to be looked at, the next one last.
    pids: Vec<u32>,
    wanted: Vec<SocketInode>,
}

impl Search {
    /// Begins; the holders of these sockets are looked for among these processes.
    pub fn begin(proc: &Path, residents: &BTreeMap<u64, Vec<u32>>, wanted: Vec<SocketInode>) -> Self {
        let is_near = |netns: &u64| wanted.iter().any(|socket| socket.0 == *netns);
        let those = |near: bool| residents.iter().filter(move |(netns, _)| is_near(netns) == near);
        let pids = [false, true].into_iter().flat_map(those).flat_map(|(_, pids)| pids).copied().collect();
        Self { proc: proc_file::open_directory(proc).ok(), pids, wanted }
    }

    /// Nothing is left to be looked for, or nobody to be looked at.
    pub fn is_over(&self) -> bool {
        self.wanted.is_empty() || self.pids.is_empty() || self.proc.is_none()
    }

    /// Looks at the next slice.
    pub fn go_on(&mut self, entries: &mut [MaybeUninit<u8>]) -> Vec<FoundSocket> {
        let (mut found, mut spent) = (Vec::new(), 0);
        while spent < SLICE && !self.wanted.is_empty() {
            let (Some(proc), Some(pid)) = (&self.proc, self.pids.pop()) else { break };
            let held = sockets_of(proc, pid, entries);
            spent += PROCESS + held.1;
            self.wanted.retain(|&socket| {
                let holds = held.0.binary_search(&socket.1).is_ok();
                found.extend(holds.then(|| FoundSocket { socket, pid, sockets: held.0.clone() }));
                !holds
            });
        }
        found
    }
}

/// The inodes of a process' sockets, sorted, and how many descriptors it has; nothing of one that is gone or may not be looked at.
pub(crate) fn sockets_of(proc: &OwnedFd, pid: u32, entries: &mut [MaybeUninit<u8>]) -> (Vec<u32>, usize) {
    let directory = proc_file::open_directory_below(proc, format!("{pid}/fd"));
    directory.and_then(|directory| proc_file::sockets(&directory, entries)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_holder_of_a_socket_is_found_and_a_socket_of_nobodys_is_not() {
        let (proc, mut entries) = (Path::new("/proc"), [MaybeUninit::uninit(); 8192]);
        let (one, _other) = UnixStream::pair().expect("a pair");
        let inode = rustix::fs::fstat(&one).expect("it has an inode").st_ino;
        let residents = residents(proc);
        let own = super::super::netns::own().expect("the own namespace");
        assert!(residents[&own].contains(&std::process::id()), "this process lives in its namespace");
        let (socket, nobodys) = ((own, u32::try_from(inode).expect("of 32 bits")), (own, 1));
        let mut search = Search::begin(proc, &residents, vec![socket, nobodys]);
        let mut found = Vec::new();
        while !search.is_over() {
            found.extend(search.go_on(&mut entries));
        }
        let [found] = &found[..] else { panic!("one of them has a holder: {found:?}") };
        assert_eq!((found.socket, found.pid), (socket, std::process::id()), "this process");
        assert!(found.sockets.len() >= 2, "which has both ends of the pair: {found:?}");
    }

    #[test]
    fn who_lives_in_the_sockets_namespace_comes_first_and_the_youngest_before_all() {
        let residents = BTreeMap::from([(1, vec![5, 90]), (2, vec![7, 40])]);
        let mut search = Search::begin(Path::new("/nowhere"), &residents, vec![(2, 1234)]);
        let order: Vec<u32> = std::iter::from_fn(|| search.pids.pop()).collect();
        assert_eq!(order, [40, 7, 90, 5]);
    }
}
