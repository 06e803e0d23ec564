//! The two system calls of this room that have no safe wrapper: leaving namespaces and attaching to a tun or tap.
//! It decides nothing and holds nothing; every other line of the room is safe code.
#![allow(unsafe_code, reason = "unshare and TUNSETIFF have no safe wrapper in rustix")]

use rustix::ioctl;
use rustix::thread::UnshareFlags;
use std::ffi::c_int;
use std::io;
use std::os::fd::AsFd;

/// `_IOW('T', 202, int)`: the number says int, the argument is a `struct ifreq` (`linux/if_tun.h`).
const TUNSETIFF: ioctl::Opcode = ioctl::opcode::write::<c_int>(b'T', 202);
const IFF_NO_PI: u16 = 0x1000;

/// `struct ifreq` as TUNSETIFF reads it: 40 bytes, of which a name and flags are used.
#[repr(C)]
struct TunRequest {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// What a device of `/dev/net/tun` carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
#[repr(u16)]
pub enum TunKind {
    /// IP packets (`IFF_TUN`).
    Tun = 0x0001,
    /// Ethernet frames (`IFF_TAP`).
    Tap = 0x0002,
}

/// Moves the calling thread into new namespaces; the caller makes sure that it is the only thread.
///
/// # Errors
/// The kernel refuses.
pub fn leave_namespaces(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES), "a private descriptor table would break I/O safety");
    // SAFETY: unsafe only for CLONE_FILES, which gives threads differing descriptor tables; namespaces alone
    // are asked for.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(io::Error::from)
}

/// Makes the open `/dev/net/tun` the device `name` (at most 15 bytes) of the calling thread's network namespace, without the packet
/// information header. One that it makes lives until the descriptor is closed.
///
/// # Errors
/// The kernel refuses.
pub fn attach_tun(descriptor: impl AsFd, name: &str, kind: TunKind) -> io::Result<()> {
    let mut request = TunRequest { name: [0; 16], flags: kind as u16 | IFF_NO_PI, rest: [0; 22] };
    for (slot, byte) in request.name.iter_mut().take(15).zip(name.bytes()) {
        *slot = byte;
    }
    // SAFETY: the opcode is TUNSETIFF, whose argument is a pointer to a struct ifreq; `TunRequest` has its size and
    // layout and is fully initialised, and Setter passes a pointer to it that lives through the call.
    unsafe { ioctl::ioctl(descriptor, ioctl::Setter::<TUNSETIFF, TunRequest>::new(request)) }.map_err(io::Error::from)
}
