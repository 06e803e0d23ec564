//! A namespace of which only the inode is known, as a journal or a recording names it. It is looked for once, among the
//! processes and the mounts of this moment; nothing is kept.

use super::{NetnsProcesses, mounts, open};
use crate::{Roots, netns_of, proc_file};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A network namespace that was found by its inode.
#[derive(Debug)]
pub struct FoundNetns {
    /// The namespace, held open.
    pub file: OwnedFd,
    /// Where it was found.
    pub place: NetnsPlace,
}

/// Where a network namespace was found: how a person gets in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetnsPlace {
    /// The calling thread is in it.
    Own,
    /// A mount keeps it, at this path.
    Mounted(PathBuf),
    /// A process with this number is in it.
    Process(u32),
}

/// Finds a network namespace by its inode (`/proc/thread-self/ns/net`, `/proc/thread-self/mountinfo`, `/proc/PID/ns/net`).
///
/// # Errors
/// `NotFound`: no process and no mount keeps it, so it is gone. `PermissionDenied`: that cannot be told, because processes of
/// others may not be looked at (`CAP_SYS_PTRACE`).
pub fn find_by_inode(netns: u64) -> io::Result<FoundNetns> {
    let is_it = |file: &OwnedFd| rustix::fs::fstat(file).is_ok_and(|stat| stat.st_ino == netns);
    let opened = |path: &Path| open(path).ok().filter(is_it);
    if netns_of(Path::new("/proc/thread-self")) == Some(netns)
        && let Some(file) = opened(Path::new("/proc/thread-self/ns/net"))
    {
        return Ok(FoundNetns { file, place: NetnsPlace::Own });
    }
    let mountinfo = std::fs::read("/proc/thread-self/mountinfo").unwrap_or_default();
    for mount in mounts::mounts(&mountinfo).into_iter().filter(|mount| mount.netns == netns) {
        if let Some(file) = opened(&mount.path) {
            return Ok(FoundNetns { file, place: NetnsPlace::Mounted(mount.path) });
        }
    }
    let roots = Roots::default();
    let mut processes = NetnsProcesses::new(&roots);
    for pid in proc_file::processes(&roots.proc) {
        if processes.of(pid) == Some(netns)
            && let Some(file) = opened(&processes.file_of(pid))
        {
            return Ok(FoundNetns { file, place: NetnsPlace::Process(pid) });
        }
    }
    Err(if processes.denied { io::ErrorKind::PermissionDenied.into() } else { io::ErrorKind::NotFound.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_found_by_its_inode_or_gone() {
        let own = netns_of(Path::new("/proc/thread-self")).expect("there is a /proc");
        assert_eq!(find_by_inode(own).expect("the own one").place, NetnsPlace::Own);
        let kind = find_by_inode(1).expect_err("no namespace has this inode").kind();
        assert!(matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied), "{kind}");
    }
}
