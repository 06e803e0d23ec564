//! The two system calls of the demo that have no safe wrapper: leaving namespaces and naming a tun device.
//! It decides nothing and holds nothing; every other line of the demo is safe code.
#![allow(unsafe_code, reason = "unshare and TUNSETIFF have no safe wrapper in rustix")]

use rustix::ioctl;
use rustix::thread::UnshareFlags;
use std::ffi::c_int;
use std::io;
use std::os::fd::AsFd;

/// `_IOW('T', 202, int)`: the number says int, the argument is a `struct ifreq` (`linux/if_tun.h`).
const TUNSETIFF: ioctl::Opcode = ioctl::opcode::write::<c_int>(b'T', 202);
const IFF_TUN: u16 = 0x0001;
const IFF_NO_PI: u16 = 0x1000;

/// `struct ifreq` as TUNSETIFF reads it: 40 bytes, of which a name and flags are used.
#[repr(C)]
struct TunRequest {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// Moves the calling thread into new namespaces; the caller makes sure that it is the only thread.
pub fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES), "a private descriptor table would break I/O safety");
    // SAFETY: unsafe only for CLONE_FILES, which gives threads differing descriptor tables; the demo asks for user and
    // network namespaces alone.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(io::Error::from)
}

/// Makes the open `/dev/net/tun` the tun device `name` (at most 15 bytes), without the packet information header. The
/// device lives until the descriptor is closed.
pub fn name_tun(descriptor: impl AsFd, name: &str) -> io::Result<()> {
    let mut request = TunRequest { name: [0; 16], flags: IFF_TUN | IFF_NO_PI, rest: [0; 22] };
    for (slot, byte) in request.name.iter_mut().take(15).zip(name.bytes()) {
        *slot = byte;
    }
    // SAFETY: the opcode is TUNSETIFF, whose argument is a pointer to a struct ifreq; `TunRequest` has its size and
    // layout and is fully initialised, and Setter passes a pointer to it that lives through the call.
    unsafe { ioctl::ioctl(descriptor, ioctl::Setter::<TUNSETIFF, TunRequest>::new(request)) }.map_err(io::Error::from)
}
