//! The process at the other end of a unix socket. Of another pid namespace it is 0. It decides nothing.
#![allow(unsafe_code, reason = "SO_PEERCRED: rustix takes the pid for one that is never 0")]

use std::os::fd::{AsRawFd, BorrowedFd};

/// Its pid, as this process' pid namespace numbers it; none where that has no number for it.
pub(super) fn pid(socket: BorrowedFd<'_>) -> Option<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = libc::socklen_t::try_from(size_of::<libc::ucred>()).ok()?;
    // SAFETY: the descriptor is open for the call; the kernel writes at most `size` bytes into a struct of that size.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut size)
    };
    u32::try_from(peer.pid).ok().filter(|&pid| result == 0 && pid != 0)
}
