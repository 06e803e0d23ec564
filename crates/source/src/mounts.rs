//! A thread's own view of the mounts: a file system mounted for it alone, or the mounts of another process. The view ends with
//! the thread, so nobody else sees a change and nothing has to be tidied up; what was opened in it stays valid. This is how a
//! file system is reached that is mounted nowhere here, where the kernel has no `fsmount` (before Linux 5.2).
#![allow(unsafe_code, reason = "unshare has no safe wrapper in rustix")]

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;

/// Runs something on a thread that sees a file system of this kind at `at`, which is a mount point, or lies in the mount of
/// one (`outer`).
///
/// # Errors
/// It may not be mounted (`CAP_SYS_ADMIN`), or is not known to this kernel.
pub fn with_mounted<T: Send>(kind: &str, outer: &Path, at: &Path, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    aside(|| {
        unshare(UnshareFlags::NEWNS)?;
        // What is mounted on a shared mount would be mounted in its peers too.
        mount_change(outer, MountPropagationFlags::PRIVATE)?;
        // Not read-only: where a kind has one instance for all, that would make it so for all.
        mount(kind, at, kind, MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)?;
        Ok(work())
    })
}

/// Runs something on a thread that sees the mounts behind this file, `/proc/PID/ns/mnt`.
///
/// # Errors
/// They may not be entered (`CAP_SYS_ADMIN` and `CAP_SYS_CHROOT`).
pub fn with_those_of<T: Send>(file: &Path, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    aside(|| {
        let file = rustix::fs::open(file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        unshare(UnshareFlags::FS)?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Mount))?;
        Ok(work())
    })
}

fn aside<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let started = thread::Builder::new().name("mounts".to_owned()).spawn_scoped(scope, work)?;
        started.join().unwrap_or_else(|_| Err(io::Error::other("the mount-namespace thread failed")))
    })
}

fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: unsafe only for CLONE_FILES, which gives threads differing descriptor tables; it is not asked for here.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(folder: &str) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn what_a_thread_mounts_for_itself_nobody_else_sees_and_what_it_opened_stays() {
        let proc = Path::new("/proc");
        let opened = with_mounted("sysfs", proc, proc, || {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            (names("/proc/class/net"), rustix::fs::open("/proc", flags, Mode::empty()))
        });
        let (links, tree) = match opened {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                eprintln!("NOT RUN: what_a_thread_mounts_for_itself_…: CAP_SYS_ADMIN is needed");
                return;
            }
            opened => opened.expect("sysfs is mounted over /proc"),
        };
        assert!(links > 0, "the thread saw its sysfs there");
        assert!(Path::new("/proc/self/stat").exists(), "everybody else has /proc as it was");
        let uevent = rustix::fs::openat(tree.expect("opened"), "class/net/lo/ifindex", OFlags::RDONLY, Mode::empty());
        assert!(uevent.is_ok(), "the folder is valid when the thread has ended: {uevent:?}");
    }

    #[test]
    fn a_thread_may_see_the_mounts_of_another_process() {
        let own = fs::read_link("/proc/self/ns/mnt").expect("its own");
        let entered = with_those_of(Path::new("/proc/1/ns/mnt"), || fs::read_link("/proc/thread-self/ns/mnt"));
        match entered {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                eprintln!("NOT RUN: a_thread_may_see_the_mounts_of_another_process: CAP_SYS_ADMIN is needed");
            }
            entered => {
                let first = fs::read_link("/proc/1/ns/mnt").expect("process 1's");
                assert_eq!(entered.expect("entered").expect("read"), first, "those of process 1");
            }
        }
        assert_eq!(fs::read_link("/proc/self/ns/mnt").expect("its own"), own, "the others stay where they are");
    }
}
