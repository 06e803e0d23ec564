//! In which namespace the tun or tap is that a process holds: one of its descriptors is taken over for a moment and asked. It
//! decides nothing, and leaves the process as it was.
#![allow(unsafe_code, reason = "TUNGETDEVNETNS returns a descriptor, which rustix has no wrapper for")]

use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// `_IO('T', 227)` of `linux/if_tun.h`.
const TUNGETDEVNETNS: libc::Ioctl = 0x54e3;
/// Major and minor number of `/dev/net/tun`.
const TUN: (u32, u32) = (10, 200);

/// Inode of the namespace in which the link behind a descriptor of `/dev/net/tun` is; `None` before Linux 5.6 (`pidfd_getfd`),
/// and without the rights to trace the process and over that namespace. To be called on a thread of its own: the descriptor may
/// be another file by now, whose closing can be made to wait by the process.
pub(super) fn netns(pid: u32, fd: u32) -> Option<u64> {
    let process = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
    let held = pidfd_getfd(&process, i32::try_from(fd).ok()?, PidfdGetfdFlags::empty()).ok()?;
    let device = rustix::fs::fstat(&held).ok()?.st_rdev;
    if (rustix::fs::major(device), rustix::fs::minor(device)) != TUN {
        return None;
    }
    // SAFETY: the descriptor is open and a tun's; this ioctl of it reads and writes no memory of ours.
    let value = unsafe { libc::ioctl(held.as_raw_fd(), TUNGETDEVNETNS) };
    // SAFETY: what is not negative is a new descriptor that nobody else has.
    let space = (value >= 0).then(|| unsafe { OwnedFd::from_raw_fd(value) })?;
    Some(rustix::fs::fstat(space).ok()?.st_ino)
}
