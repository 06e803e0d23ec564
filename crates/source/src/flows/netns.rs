//! A `sock_diag` socket inside the network namespace of a process. The socket stays bound to that namespace, so it is
//! entered once, by a thread that does nothing else and ends; the sampler itself never leaves its own.

use crate::netlink::client::NetlinkClient;
use crate::netlink::socket::protocols;
use crate::netns::run_inside;
use crate::netns_of;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The namespace of a process, as a file.
fn file_of(proc: &Path, pid: u32) -> PathBuf {
    proc.join(pid.to_string()).join("ns/net")
}

/// Inode of the network namespace of a process.
///
/// # Errors
/// EACCES where it may not be looked at; ENOENT once the process has ended, though its parent has not collected it yet.
pub(super) fn of(proc: &Path, pid: u32) -> Result<u64, Errno> {
    rustix::fs::stat(file_of(proc, pid)).map(|stat| stat.st_ino)
}

/// Inode of our own.
pub(super) fn own() -> Option<u64> {
    netns_of(Path::new("/proc/thread-self"))
}

/// Opens a client in the calling thread's namespace.
pub(super) fn open_here() -> io::Result<NetlinkClient> {
    NetlinkClient::open(protocols::NETLINK_SOCK_DIAG)
}

/// Opens a client in the namespace of a process; needs `CAP_SYS_ADMIN`.
pub(super) fn open_inside(proc: &Path, pid: u32) -> io::Result<NetlinkClient> {
    run_inside(File::open(file_of(proc, pid))?, open_here)
}
