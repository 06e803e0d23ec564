//! One passage through the descriptors of all processes (`/proc/PID/fd`): which of them are a tun, tap or macvtap, and which
//! link each is. It knows no link and no owner.

use super::device;
use crate::{proc_file, scan};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
use rustix::io::Errno;
use std::fmt::Write as _;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::Path;

/// A descriptor that is a tun, tap or macvtap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FdScan {
    pub pid: u32,
    pub fd: u32,
    pub link: HeldLink,
}

/// What a descriptor says of its link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeldLink {
    /// Name of a tun or tap (`iff:` of fdinfo).
    Tun(String),
    /// Index of a macvtap (`/dev/tapN`).
    Index(u32),
    /// Name and MAC address of a macvtap whose node has another path, as who makes his own in a namespace has it.
    Node { name: String, mac: String },
}

impl FdScan {
    /// The process has the link of this name open under the same number still.
    pub fn still_holds(&self, proc: &Path, name: &str) -> bool {
        let process = proc.join(self.pid.to_string());
        // A link that was renamed is held by another name.
        match &self.link {
            HeldLink::Tun(_) => link_of(&process, self.fd).is_some_and(|held| held == name),
            HeldLink::Index(index) => {
                let target = std::fs::read_link(process.join("fd").join(self.fd.to_string()));
                target.is_ok_and(|target| device(target.as_os_str().as_encoded_bytes()) == Device::Tap(*index))
            }
            seen @ HeldLink::Node { name: before, .. } => {
                let Ok(directory) = proc_file::open_directory_below(CWD, process.join("fd")) else { return false };
                before == name && node(&directory, self.pid, self.fd, &tap_majors(proc)).as_ref() == Some(seen)
            }
        }
    }
}

/// Hands over each tun, tap and macvtap descriptor of the processes that are to be looked at, and of the devices of these majors
/// those with other paths. Returns how many processes do not let their descriptors be seen.
pub(super) fn through(
    proc: &Path,
    majors: &[u32],
    is_looked_at: impl Fn(u32) -> bool,
    mut each: impl FnMut(FdScan),
) -> usize {
    let mut entries = vec![MaybeUninit::uninit(); proc_file::ENTRIES];
    let looked_at = proc_file::processes(proc).into_iter().filter(|&pid| is_looked_at(pid));
    let refused = looked_at.filter(|&pid| {
        let looked = descriptors(&proc.join(pid.to_string()), pid, majors, &mut entries, &mut each);
        // With any other error the process is gone.
        matches!(looked, Err(Errno::ACCESS | Errno::PERM))
    });
    refused.count()
}

fn descriptors(
    process: &Path,
    pid: u32,
    majors: &[u32],
    entries: &mut [MaybeUninit<u8>],
    mut each: impl FnMut(FdScan),
) -> Result<(), Errno> {
    let directory = proc_file::open_directory_below(CWD, process.join("fd"))?;
    proc_file::descriptors(&directory, entries, |fd, target| {
        let Some(fd) = scan::number32(fd.to_bytes()) else { return };
        let link = match target.map_or(Device::Other, device) {
            Device::Tun => link_of(process, fd).map(HeldLink::Tun),
            Device::Tap(index) => Some(HeldLink::Index(index)),
            Device::Other if target.is_some_and(|target| target.starts_with(b"/")) => node(&directory, pid, fd, majors),
            Device::Other => None,
        };
        if let Some(link) = link {
            each(FdScan { pid, fd, link });
        }
    })
}

/// The macvtap behind a descriptor whose path does not say that it is one.
fn node(directory: impl AsFd, pid: u32, fd: u32, majors: &[u32]) -> Option<HeldLink> {
    if !is_device(directory, fd, majors) {
        return None;
    }
    let (name, mac) = device::macvtap(pid, fd, majors)?;
    let mac = mac.iter().fold(String::new(), |mut text, octet| {
        let colon = if text.is_empty() { "" } else { ":" };
        let _never_fails = write!(text, "{colon}{octet:02x}");
        text
    });
    Some(HeldLink::Node { name, mac })
}

/// The descriptor is a character device with one of these majors. Asked so that a file system which others serve (FUSE, NFS) need
/// not be waited for, and before the descriptor is taken over, whose closing they can make wait.
fn is_device(directory: impl AsFd, fd: u32, majors: &[u32]) -> bool {
    if majors.is_empty() {
        return false;
    }
    let Ok(stat) = statx(directory, fd.to_string(), AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE) else { return false };
    let kind = FileType::from_raw_mode(stat.stx_mode.into());
    kind == FileType::CharacterDevice && majors.contains(&stat.stx_rdev_major)
}

/// The majors of macvtap's and ipvtap's devices, which the kernel gives when they are loaded; empty where there are none.
pub(super) fn tap_majors(proc: &Path) -> Vec<u32> {
    let text = std::fs::read(proc.join("devices")).unwrap_or_default();
    let characters = scan::lines(&text).take_while(|line| !line.starts_with(b"Block"));
    let major = |line| {
        let mut fields = scan::fields(line);
        let major = scan::number32(fields.next()?)?;
        matches!(fields.next()?, b"macvtap" | b"ipvtap").then_some(major)
    };
    characters.filter_map(major).collect()
}

/// The link behind a descriptor of `/dev/net/tun`; `None` before it has one.
fn link_of(process: &Path, fd: u32) -> Option<String> {
    let text = proc_file::beginning(&process.join("fdinfo").join(fd.to_string()), 4096);
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

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(super) fn fuzz(bytes: &[u8]) {
    let _ = (device(bytes), held_name(bytes));
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

    #[test]
    fn a_macvtap_s_node_is_known_by_its_device_number_whatever_its_path() {
        let root = tempfile::tempdir().expect("writable");
        assert!(tap_majors(root.path()).is_empty(), "nothing is loaded");
        // /dev/null is 1:3.
        let devices = "Character devices:\n  1 ipvtap\n  5 /dev/tty\n246 macvtap\n\nBlock devices:\n  8 macvtap\n";
        std::fs::write(root.path().join("devices"), devices).expect("writable");
        let majors = tap_majors(root.path());
        assert_eq!(majors, [1, 246], "of character devices");
        let fds = root.path().join("fd");
        std::fs::create_dir(&fds).expect("writable");
        for (fd, target) in [("3", "/dev/null"), ("4", "/dev"), ("5", "socket:[7]"), ("6", "/dev/ptmx")] {
            std::os::unix::fs::symlink(target, fds.join(fd)).expect("writable");
        }
        let directory = proc_file::open_directory(&fds).expect("readable");
        let found: Vec<u32> = (3..=6).filter(|&fd| is_device(&directory, fd, &majors)).collect();
        assert_eq!(found, [3], "a directory, a socket and another device are none");
        assert!(!is_device(&directory, 3, &[]), "none is, where no macvtap can be");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = (device(&bytes), held_name(&bytes));
        }
    }
}
