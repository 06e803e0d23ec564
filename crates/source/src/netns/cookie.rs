//! The number of a network namespace that the kernel gives to no other until the next boot. Inodes are given again.
#![allow(unsafe_code, reason = "SO_NETNS_COOKIE has no safe wrapper in rustix")]

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::os::fd::AsRawFd;

/// Bytes of a cookie, a u64.
const LENGTH: libc::socklen_t = 8;

/// The cookie of the calling thread's network namespace (`SO_NETNS_COOKIE`); `None` before Linux 5.14.
pub(crate) fn cookie() -> Option<u64> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
    let (mut cookie, mut len) = (0_u64, LENGTH);
    let (level, name) = (libc::SOL_SOCKET, libc::SO_NETNS_COOKIE);
    // SAFETY: the kernel writes at most `len` bytes, those of one u64, through a pointer to a live one.
    let read = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut cookie).cast(), &raw mut len) };
    (read == 0 && len == LENGTH).then_some(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_one_cookie_and_another_has_another() {
        let Some(own) = cookie() else { return eprintln!("NOT RUN: before Linux 5.14 there is no cookie") };
        assert_eq!(cookie(), Some(own), "it does not change");
        crate::sandbox::inside("vnettop-cookie", move || {
            assert!(cookie().is_some_and(|other| other != own), "that of a new namespace is another one");
        });
    }
}
