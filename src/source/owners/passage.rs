//! One passage through the descriptors of all processes (`/proc/PID/fd`), in slices: which of them are a tun, tap or
//! macvtap, and which link each is. It knows no link and no owner.

use crate::source::{proc_file, scan, strangers};
use rustix::fs::{Mode, OFlags, RawDir, readlinkat_raw};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fmt::Write;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// What a slice of the first passage may cost, and of the later ones: a descriptor is one, about a microsecond.
const FIRST: usize = 4000;
const LATER: usize = 1000;
/// What a process costs beside its descriptors.
const PROCESS: usize = 8;
/// Entries of about 170 processes or descriptors a call.
const ENTRIES: usize = 4096;

/// A descriptor that is a tun, tap or macvtap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub pid: u32,
    pub fd: u32,
    /// A tun or tap is told by name (`iff:` of fdinfo).
    pub name: Option<String>,
    /// A macvtap by its index (`/dev/tapN`).
    pub ifindex: Option<u32>,
}

impl Seen {
    /// The process has the link of this name open under the same number still; to be asked aside.
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

/// Where a passage stands.
#[derive(Debug)]
pub(super) struct Passage {
    root: PathBuf,
    proc: OwnedFd,
    pids: Vec<u32>,
    listed: bool,
    slice: usize,
    entries: Vec<MaybeUninit<u8>>,
    path: String,
    /// Processes whose descriptors may not be seen.
    pub refused: usize,
}

impl Passage {
    /// Begins anew; none where there is nothing to list.
    pub fn begin(proc: &Path, first: bool) -> Option<Self> {
        let (root, proc) = (proc.to_owned(), proc_file::open_directory(proc).ok()?);
        let slice = if first { FIRST } else { LATER };
        let entries = vec![MaybeUninit::uninit(); ENTRIES];
        Some(Self { root, proc, pids: Vec::new(), listed: false, slice, entries, path: String::new(), refused: 0 })
    }

    /// All processes were looked at.
    pub fn is_over(&self) -> bool {
        self.listed && self.pids.is_empty()
    }

    /// Looks at the next slice.
    pub fn go_on(&mut self) -> Vec<Seen> {
        let (mut seen, mut spent) = (Vec::new(), 0);
        while spent < self.slice && !self.is_over() {
            let Some(pid) = self.pids.pop() else {
                self.list();
                spent += self.pids.len();
                continue;
            };
            spent += PROCESS;
            match self.descriptors(pid, &mut seen) {
                Ok(descriptors) => spent += descriptors,
                Err(Errno::ACCESS | Errno::PERM) => self.refused += 1,
                // It is gone.
                Err(_) => {}
            }
        }
        seen
    }

    /// The next processes of the directory, whose position the kernel keeps by number.
    fn list(&mut self) {
        let mut listing = RawDir::new(&self.proc, &mut self.entries);
        let mut any = false;
        while let Some(Ok(entry)) = listing.next() {
            any = true;
            self.pids.extend(scan::number32(entry.file_name().to_bytes()));
            if listing.is_buffer_empty() {
                break;
            }
        }
        self.listed |= !any;
    }

    /// Looks at a process; how many descriptors it has.
    fn descriptors(&mut self, pid: u32, seen: &mut Vec<Seen>) -> Result<usize, Errno> {
        self.path.clear();
        let _ = write!(self.path, "{pid}/fd");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&self.proc, self.path.as_str(), flags, Mode::empty())?;
        let (mut count, mut tuns) = (0, Vec::new());
        let mut listing = RawDir::new(&directory, &mut self.entries);
        while let Some(entry) = listing.next() {
            let entry = entry?;
            count += 1;
            let Some(fd) = scan::number32(entry.file_name().to_bytes()) else { continue };
            match target(&directory, entry.file_name()) {
                Device::Tun => tuns.push(fd),
                Device::Tap(index) => seen.push(Seen { pid, fd, name: None, ifindex: Some(index) }),
                Device::Other => {}
            }
        }
        if !tuns.is_empty() {
            let process = self.root.join(pid.to_string());
            let held = strangers::ask(format_args!("process {pid}"), move || {
                tuns.into_iter().filter_map(|fd| Some((fd, link_of(&process, fd)?))).collect::<Vec<_>>()
            });
            let held = held.unwrap_or_default().into_iter();
            seen.extend(held.map(|(fd, name)| Seen { pid, fd, name: Some(name), ifindex: None }));
        }
        Ok(count)
    }
}

/// The link behind a descriptor of `/dev/net/tun`; none before it has one.
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

fn target(directory: impl AsFd, name: &CStr) -> Device {
    let mut buffer = [MaybeUninit::uninit(); 64];
    readlinkat_raw(directory, name, &mut buffer).map_or(Device::Other, |(target, _)| device(target))
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
    (!name.is_empty()).then(|| crate::text::clean(name))
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
    fn no_slice_looks_at_everybody() {
        let proc = tempfile::tempdir().expect("writable");
        for pid in 1..=2000 {
            std::fs::create_dir_all(proc.path().join(pid.to_string()).join("fd")).expect("writable");
        }
        let mut passage = Passage::begin(proc.path(), false).expect("listable");
        let mut slices = 0;
        while !passage.is_over() {
            assert_eq!(passage.go_on(), [], "nobody holds anything");
            slices += 1;
        }
        assert!((17..30).contains(&slices), "2,000 processes are looked at in slices of about 110, here {slices}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = (device(&bytes), held_name(&bytes));
        }
    }
}
