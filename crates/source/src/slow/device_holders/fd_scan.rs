//! One passage through the descriptors of all processes (`/proc/PID/fd`): which of them are a tun, tap or macvtap, and which
//! link each is. It knows no link and no owner.

use crate::{proc_file, scan};
use rustix::fs::CWD;
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::path::Path;

/// A descriptor that is a tun, tap or macvtap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FdScan {
    pub pid: u32,
    pub fd: u32,
    /// Name of a tun or tap (`iff:` of fdinfo).
    pub name: Option<String>,
    /// Index of a macvtap (`/dev/tapN`).
    pub ifindex: Option<u32>,
}

impl FdScan {
    /// The process has the link of this name open under the same number still.
    pub fn still_holds(&self, proc: &Path, name: &str) -> bool {
        let process = proc.join(self.pid.to_string());
        if let Some(index) = self.ifindex {
            let target = std::fs::read_link(process.join("fd").join(self.fd.to_string()));
            return target.is_ok_and(|target| device(target.as_os_str().as_encoded_bytes()) == Device::Tap(index));
        }
        // A link that was renamed is held by another name.
        link_of(&process, self.fd).is_some_and(|held| held == name)
    }
}

/// Hands over each tun, tap and macvtap descriptor of the processes that are to be looked at. Returns how many processes do not
/// let their descriptors be seen.
pub(super) fn through(proc: &Path, is_looked_at: impl Fn(u32) -> bool, mut each: impl FnMut(FdScan)) -> usize {
    let mut entries = vec![MaybeUninit::uninit(); proc_file::ENTRIES];
    let looked_at = proc_file::processes(proc).into_iter().filter(|&pid| is_looked_at(pid));
    let refused = looked_at.filter(|&pid| {
        let looked = descriptors(&proc.join(pid.to_string()), pid, &mut entries, &mut each);
        // With any other error the process is gone.
        matches!(looked, Err(Errno::ACCESS | Errno::PERM))
    });
    refused.count()
}

fn descriptors(
    process: &Path,
    pid: u32,
    entries: &mut [MaybeUninit<u8>],
    mut each: impl FnMut(FdScan),
) -> Result<(), Errno> {
    let directory = proc_file::open_directory_below(CWD, process.join("fd"))?;
    proc_file::descriptors(&directory, entries, |fd, target| {
        let Some(fd) = scan::number32(fd.to_bytes()) else { return };
        let (name, ifindex) = match target.map_or(Device::Other, device) {
            Device::Tun => (link_of(process, fd), None),
            Device::Tap(index) => (None, Some(index)),
            Device::Other => return,
        };
        if name.is_some() || ifindex.is_some() {
            each(FdScan { pid, fd, name, ifindex });
        }
    })
}

/// The link behind a descriptor of `/dev/net/tun`; `None` before it has one.
fn link_of(process: &Path, fd: u32) -> Option<String> {
    let text = std::fs::read(process.join("fdinfo").join(fd.to_string()));
    held_name(&text.ok()?)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Device {
    Tun,
    Tap(u32),
    Other,
}

/// By the end of the path: within a container /dev is a mount of its own, and the path begins there.
fn device(target: &[u8]) -> Device {
    let cut = target.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let (directory, name) = target.split_at(cut);
    let index = || scan::number32(name.strip_prefix(b"tap")?).filter(|&index| index != 0);
    match directory {
        b"/dev/net/" | b"/net/" if name == b"tun" => Device::Tun,
        b"/dev/" | b"/" => index().map_or(Device::Other, Device::Tap),
        _ => Device::Other,
    }
}

/// `iff:\tNAME`, cleaned like the names of links; a descriptor that has none yet says nothing or an empty one.
fn held_name(text: &[u8]) -> Option<String> {
    let name = scan::lines(text).find_map(|line| line.strip_prefix(b"iff:"))?;
    let name = name.strip_prefix(b"\t").unwrap_or(name);
    (!name.is_empty()).then(|| vnettop_sample::text::clean(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_descriptor_is_a_tun_a_macvtap_or_something_else() {
        assert_eq!(device(b"/dev/net/tun"), Device::Tun);
        assert_eq!(device(b"/net/tun"), Device::Tun, "as a container's own /dev shows it from outside");
        assert_eq!(device(b"/dev/tap17"), Device::Tap(17));
        for other in [&b"/dev/tap"[..], b"/dev/tap0", b"/home/x/tap17", b"/dev/tapx", b"socket:[17]", b"", b"/"] {
            assert_eq!(device(other), Device::Other, "{:?} is no link", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn a_descriptor_names_its_link() {
        let text = b"pos:\t0\nflags:\t0104002\nmnt_id:\t26\nino:\t127\niff:\ttap0\n";
        assert_eq!(held_name(text).as_deref(), Some("tap0"));
        assert_eq!(held_name(b"pos:\t0\nflags:\t02\niff:\t\n"), None, "a descriptor may have no link yet");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = (device(&bytes), held_name(&bytes));
        }
    }
}
