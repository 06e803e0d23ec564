//! The queues of one namespace's links, through a sysfs that is mounted nowhere: sysfs shows the links of the namespace it
//! was made in, and a mount of its own that is attached to no place (`fsmount`, Linux 5.2) changes nothing for anyone. Before
//! that a thread mounts it for itself and ends; the folder that it opened stays valid.

use crate::mounts;
use crate::sched;
use crate::{proc_file, scan};
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use vnettop_sample::{CoreSet, LinkFacts, Steering};

/// A link with more queues has settings that are unknown rather than half known.
const MOST_QUEUES: usize = 256;

/// A sysfs of one namespace.
#[derive(Debug)]
pub(super) struct SysfsTree(OwnedFd);

impl SysfsTree {
    /// Opens the sysfs of the calling thread's namespace.
    pub fn open() -> io::Result<Self> {
        Self::opened(MountAttrFlags::MOUNT_ATTR_RDONLY)
    }

    /// The same, in a mount through which files may be written.
    pub fn open_to_change() -> io::Result<Self> {
        Self::opened(MountAttrFlags::empty())
    }

    fn opened(access: MountAttrFlags) -> io::Result<Self> {
        match attached_nowhere(access) {
            Err(Errno::NOSYS) => Ok(Self(of_a_thread()?)),
            tree => Ok(Self(tree?)),
        }
    }

    /// Its uppermost folder.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The settings of a link; `None` when it is gone, or another link has its name.
    pub fn read(&self, link: &LinkFacts, buffer: &mut Vec<u8>) -> Option<Steering> {
        let folder = format!("class/net/{}", link.name);
        let ifindex = self.number(&format!("{folder}/ifindex"), buffer);
        ifindex.filter(|&ifindex| ifindex == u64::from(link.ifindex.0))?;
        let mut steering = Steering {
            link: link.key(),
            rps: Vec::new(),
            rfs: false,
            threaded: self.number(&format!("{folder}/threaded"), buffer).is_some_and(|mode| mode != 0),
            napi: Vec::new(),
            interrupts: None,
            irqs: Vec::new(),
        };
        loop {
            let queue = format!("{folder}/queues/rx-{}", steering.rps.len());
            let Some(cores) = self.text(&format!("{queue}/rps_cpus"), buffer).and_then(mask) else { break };
            steering.rps.push(cores);
            steering.rfs |= self.number(&format!("{queue}/rps_flow_cnt"), buffer).is_some_and(|flows| flows != 0);
            if steering.rps.len() > MOST_QUEUES {
                return None;
            }
        }
        Some(steering)
    }

    /// The names in a folder; empty when there is no such folder.
    pub(super) fn entries(&self, folder: &str) -> Vec<String> {
        let folder = proc_file::open_directory_below(&self.0, folder);
        let Ok(folder) = folder.and_then(Dir::new) else { return Vec::new() };
        let names = folder.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(ToOwned::to_owned));
        names.filter(|name| !name.starts_with('.')).collect()
    }

    pub(super) fn number(&self, file: &str, buffer: &mut Vec<u8>) -> Option<u64> {
        scan::number(self.text(file, buffer)?)
    }

    pub(super) fn text<'a>(&self, file: &str, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let file = proc_file::open_below(&self.0, file).ok()?;
        Some(proc_file::whole(&file, buffer).ok()?.trim_ascii())
    }
}

#[cfg(test)]
impl SysfsTree {
    /// One that a test made of files.
    pub fn at(folder: &std::path::Path) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Self(rustix::fs::open(folder, flags, Mode::empty()).expect("it is there"))
    }
}

fn mask(text: &[u8]) -> Option<CoreSet> {
    CoreSet::from_mask(std::str::from_utf8(text).ok()?)
}

fn attached_nowhere(access: MountAttrFlags) -> rustix::io::Result<OwnedFd> {
    let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let plain_files =
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, access | plain_files)
}

/// Over /proc, because the sysfs of the same namespace may not be mounted on itself.
fn of_a_thread() -> io::Result<OwnedFd> {
    let over = Path::new("/proc");
    let open = || rustix::fs::open(over, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    Ok(sched::with_heirs(|| mounts::with_mounted("sysfs", over, over, open))??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_fsmount_the_same_sysfs_is_had() {
        let numbers = |tree: OwnedFd| SysfsTree(tree).number("class/net/lo/ifindex", &mut Vec::new());
        match (attached_nowhere(MountAttrFlags::MOUNT_ATTR_RDONLY), of_a_thread()) {
            (Ok(nowhere), Ok(of_a_thread)) => {
                let reported = numbers(of_a_thread);
                assert_eq!(reported, Some(1), "lo is the first of every namespace");
                assert_eq!(reported, numbers(nowhere), "either way");
            }
            (Err(Errno::PERM), Err(error)) => eprintln!("NOT RUN: without_fsmount_the_same_sysfs_is_had: {error}"),
            either => panic!("both or none: {either:?}"),
        }
    }
}
