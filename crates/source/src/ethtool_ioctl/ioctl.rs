//! `SIOCETHTOOL`: one question to the driver of a link, bytes in and bytes out, through a datagram socket of the namespace in
//! which the link is. It knows no answer's meaning.
#![allow(unsafe_code, reason = "SIOCGIFNAME and SIOCETHTOOL have no safe wrapper")]

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use vnettop_sample::Ifindex;

/// `SIOCGIFNAME` and `SIOCETHTOOL` of `linux/sockios.h`.
const NAME: libc::Ioctl = 0x8910;
const ASK: libc::Ioctl = 0x8946;
/// How each question begins: the command, then what it asks for.
pub(super) const HEAD: usize = 16;
/// Room for the longest answer, 32 bytes for each of a kernel's features, of which there are some 60.
const ROOM: usize = 64 * 1024;

/// What may be asked. But for the last two, which `effect` alone asks for, it sets nothing and needs no right; the kernel bounds
/// its answer whatever else the question says.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(super) enum IoctlRequest {
    /// `ETHTOOL_GSET`: 44 bytes.
    OldSettings = 0x01,
    /// `ETHTOOL_GDRVINFO`: 196 bytes.
    Driver = 0x03,
    /// `ETHTOOL_GSTRINGS`: 12 bytes, and 32 for each name.
    Names = 0x1b,
    /// `ETHTOOL_GFEATURES`: 8 bytes, and 16 for each 32 features.
    Features = 0x3a,
    /// `ETHTOOL_GLINKSETTINGS` (Linux 4.6): 48 bytes, and at most 127 times 12.
    Settings = 0x4c,
    /// `ETHTOOL_GTSO`, `ETHTOOL_GGRO`: 8 bytes, the second four are 0 or 1.
    Tso = 0x1e,
    Gro = 0x2b,
    /// `ETHTOOL_STSO`, `ETHTOOL_SGRO`: the same, set (`CAP_NET_ADMIN`).
    SetTso = 0x1f,
    SetGro = 0x2c,
}

/// A socket of one namespace.
#[derive(Debug)]
pub(super) struct IoctlSocket(OwnedFd);

impl IoctlSocket {
    /// Opens it in the calling thread's namespace.
    pub fn open() -> io::Result<Self> {
        Ok(Self(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?))
    }

    /// The answer, with zeros behind it.
    ///
    /// The kernel asks by name. It is told the name that the link has now: for a name that is not there it looks for a module.
    pub fn ask(&self, link: Ifindex, question: IoctlRequest, head: [u8; HEAD]) -> io::Result<Vec<u8>> {
        let index = i32::try_from(link.0).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
        let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_ifindex: index };
        let mut asked = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru };
        // SAFETY: the descriptor is open; this ioctl reads and writes that `struct ifreq` and nothing else.
        done(unsafe { libc::ioctl(self.0.as_raw_fd(), NAME, &raw mut asked) })?;
        let mut answer = vec![0; ROOM];
        answer[..HEAD].copy_from_slice(&head);
        answer[..4].copy_from_slice(&(question as u32).to_ne_bytes());
        asked.ifr_ifru.ifru_data = answer.as_mut_ptr().cast();
        // SAFETY: the descriptor is open; this ioctl reads that `struct ifreq`, and reads and writes where it points: `answer`,
        // which lives through the call and has more room than the answer to any of these questions takes.
        done(unsafe { libc::ioctl(self.0.as_raw_fd(), ASK, &raw mut asked) })?;
        Ok(answer)
    }
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
