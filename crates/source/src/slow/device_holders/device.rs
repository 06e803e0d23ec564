//! In which namespace the tun or tap is that a process holds, and which link a macvtap's node is: one of its descriptors is taken
//! over for a moment and asked. It decides nothing, and leaves the process as it was.
#![allow(unsafe_code, reason = "rustix has no wrapper for these ioctls: one returns a descriptor, two fill a buffer")]

use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::FileType;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use vnettop_sample::text::clean;

/// `_IO('T', 227)` of `linux/if_tun.h`.
const TUNGETDEVNETNS: libc::Ioctl = 0x54e3;
/// Major and minor number of `/dev/net/tun`.
const TUN: (u32, u32) = (10, 200);
/// `SIOCGIFHWADDR` of `linux/sockios.h`.
const HARDWARE_ADDRESS: libc::Ioctl = 0x8927;
/// `struct ifreq`, bytes: the name at 0, of an address its family at 16 and its octets at 18.
const REQUEST: usize = size_of::<libc::ifreq>();
const MAC: usize = libc::IFNAMSIZ + 2;

/// Inode of the namespace in which the link behind a descriptor of `/dev/net/tun` is; `None` before Linux 5.6 (`pidfd_getfd`),
/// and without the rights to trace the process and over that namespace. To be called on a thread of its own: the descriptor may
/// be another file by now, whose closing can be made to wait by the process.
pub(super) fn netns(pid: u32, fd: u32) -> Option<u64> {
    let held = taken_over(pid, fd)?;
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

/// Name and MAC address of the link behind a descriptor of a macvtap's or ipvtap's node, whose device number has one of these
/// majors; `None` as above, and when the link is gone.
pub(super) fn macvtap(pid: u32, fd: u32, majors: &[u32]) -> Option<(String, [u8; 6])> {
    let held = taken_over(pid, fd)?;
    let stat = rustix::fs::fstat(&held).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::CharacterDevice
        || !majors.contains(&rustix::fs::major(stat.st_rdev))
    {
        return None;
    }
    let answer = |question| {
        let mut request = [0_u8; REQUEST];
        // SAFETY: the descriptor is open and a macvtap's; this ioctl of it writes one `struct ifreq`, which has room.
        let value = unsafe { libc::ioctl(held.as_raw_fd(), question, request.as_mut_ptr()) };
        (value >= 0).then_some(request)
    };
    let name = answer(libc::TUNGETIFF)?;
    let name = name[..libc::IFNAMSIZ].split(|&byte| byte == 0).next()?;
    let mac = *answer(HARDWARE_ADDRESS)?.get(MAC..)?.first_chunk()?;
    Some((clean(name), mac))
}

fn taken_over(pid: u32, fd: u32) -> Option<OwnedFd> {
    let process = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
    pidfd_getfd(&process, i32::try_from(fd).ok()?, PidfdGetfdFlags::empty()).ok()
}
