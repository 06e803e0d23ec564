//! Where a running iperf 3 writes its lines, and the file there, opened. What is looked at here is another user's and may
//! make whoever looks wait, so it is done aside ([`untrusted_reader`]); what is handed over is a file
//! that nobody but the kernel of this machine and its disks has a hand in, which the sampler may read.

use super::tail::{self, Tail, TailTarget};
use crate::clock::{clock_ns, wall_ms};
use crate::{proc_file, untrusted_reader};
use procfs::process::Process;
use rustix::fs::{FileType, Stat};
use rustix::time::ClockId;
use std::os::fd::AsRawFd;
use std::path::Path;
use vnettop_sample::Unread;

/// Open for reading and writing, at its end: what `fopen` makes of `a+`, as iperf 3 opens its log (`O_RDWR`, `O_APPEND`).
const LOG_FLAGS: u32 = 0o2002;
const LOG_MASK: u32 = 0o2003;

/// File systems whose reads wait for this machine's disks alone. Overlays are judged in [`is_local`].
const LOCAL: [&str; 20] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "bcachefs", "f2fs", "zfs", "tmpfs", "ramfs", "rootfs", "jfs", "nilfs2",
    "reiserfs", "vfat", "exfat", "ubifs", "jffs2", "devtmpfs", "devpts",
];
/// A file system that waits for those below it, which any user may have mounted in a user namespace.
const OVERLAY: &str = "overlay";

/// The file that a process writes to now, `None` when that is open already; or why there is none to read, `None` without a
/// reason to tell.
pub(super) type Looked = Result<Option<Tail>, Option<Unread>>;

/// Looks up the file that a process writes to now; `None` when the process keeps its reader waiting. `open` is the file open already.
pub(super) fn look(proc: &Path, pid: u32, open: Option<(u64, u64)>) -> Option<Looked> {
    let proc = proc.to_owned();
    untrusted_reader::ask(format_args!("process {pid}"), move || find(&proc, pid, open))
}

fn find(proc: &Path, pid: u32, open: Option<(u64, u64)>) -> Looked {
    let directory = proc.join(pid.to_string());
    let number = output(&directory)?;
    let path = directory.join(format!("fd/{number}"));
    // The error of the link tells a process that has ended from one that vnettop may not look at.
    let target = std::fs::read_link(&path).map_err(|error| refused(&error))?;
    // Pipes and sockets are on mounts that nobody sees.
    if target.is_absolute() && !is_local(proc, &directory, info(&directory, number).ok_or(None)?.mount) {
        return Err(Some(Unread::Remote));
    }
    if open.is_some() && tail::identity_of(&path) == open {
        return Ok(None);
    }
    match Tail::open(&path, began_ms(&directory)) {
        // The path may have led to another file when its mount was looked up.
        Ok(TailTarget::File(tail)) => match info(Path::new("/proc/self"), tail.as_raw_fd().unsigned_abs()) {
            Some(info) if is_local(proc, &directory, info.mount) => Ok(Some(tail)),
            _ => Err(Some(Unread::Remote)),
        },
        Ok(TailTarget::Other(stat)) => Err(Some(kind(&stat))),
        Err(error) => Err(refused(&error.into())),
    }
}

/// The descriptor that iperf 3 writes its lines to. No reason is told of a process that has ended.
fn output(directory: &Path) -> Result<u32, Option<Unread>> {
    if !has_log(directory) {
        return Ok(1);
    }
    let listed = std::fs::read_dir(directory.join("fdinfo")).map_err(|error| refused(&error))?;
    let numbers = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()).filter(|&fd| fd > 2);
    let is_log = |fd: &u32| info(directory, *fd).is_some_and(|info| info.flags & LOG_MASK == LOG_FLAGS);
    // It opens the file a moment after it was started.
    numbers.filter(is_log).min().ok_or(None)
}

fn has_log(directory: &Path) -> bool {
    // Whoever runs it may say that its arguments are as long as its memory.
    let line = untrusted_reader::read_cmdline(directory);
    let arguments: Vec<String> =
        line.split(|&byte| byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect();
    super::super::iperf3::has_log(&arguments)
}

fn refused(error: &std::io::Error) -> Option<Unread> {
    (error.kind() == std::io::ErrorKind::PermissionDenied).then_some(Unread::Rights)
}

/// Bytes of a descriptor's `fdinfo`, and of a table of mounts, that are read: who made them may have made them long.
const LONGEST_INFO: u64 = 4096;
const LONGEST_TABLE: u64 = 4 << 20;

/// Flags and mount of a process' descriptor, read without touching the file (`/proc/PID/fdinfo/FD`).
struct Info {
    flags: u32,
    mount: u64,
}

fn info(directory: &Path, fd: u32) -> Option<Info> {
    // What is asked for stands in front of what an epoll or a lock adds, a line each.
    let text = proc_file::beginning(&directory.join(format!("fdinfo/{fd}")), LONGEST_INFO).ok()?;
    let text = String::from_utf8_lossy(&text);
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some(Info { flags: u32::from_str_radix(field("flags:")?, 8).ok()?, mount: field("mnt_id:")?.parse().ok()? })
}

/// Whether a mount is one of this kernel's own file systems. A descriptor may be of another mount namespace than its
/// process, so others are asked too; a mount that none of them knows is not trusted. An overlay is trusted where the same
/// one is mounted in the machine's own mount namespace, or in vnettop's: there only root mounts any, as Docker does for
/// each container.
fn is_local(proc: &Path, directory: &Path, mount: u64) -> bool {
    let table = |of: &Path| proc_file::beginning(&of.join("mountinfo"), LONGEST_TABLE).unwrap_or_default();
    let ours = [table(&proc.join("self")), table(&proc.join("1"))];
    let theirs = table(directory);
    let found = std::iter::once(&theirs).chain(&ours).find_map(|table| mounts(table).find(|of| of.id == Some(mount)));
    found.is_some_and(|found| match found.kind {
        kind if kind == OVERLAY.as_bytes() => {
            ours.iter().any(|table| mounts(table).any(|of| of.kind == OVERLAY.as_bytes() && of.device == found.device))
        }
        kind => LOCAL.iter().any(|local| local.as_bytes() == kind),
    })
}

/// A line of mountinfo: the first field is the mount's number, the third its device, the type of the file system stands
/// behind the dash.
struct MountLine<'a> {
    id: Option<u64>,
    device: &'a [u8],
    kind: &'a [u8],
}

fn mounts(mountinfo: &[u8]) -> impl Iterator<Item = MountLine<'_>> {
    mountinfo.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|&byte| byte == b' ');
        let id = crate::scan::number(fields.next()?);
        let device = fields.nth(1)?;
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        Some(MountLine { id, device, kind })
    })
}

fn kind(stat: &Stat) -> Unread {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo | FileType::Socket => Unread::Pipe,
        // Terminals: the console and serial lines, virtual ones, and the slaves of pseudo-terminals.
        FileType::CharacterDevice if matches!(rustix::fs::major(stat.st_rdev), 4 | 5 | 136..=143 | 204) => {
            Unread::Terminal
        }
        _ => Unread::Device,
    }
}

/// When a process began, ms since 1970.
fn began_ms(directory: &Path) -> Option<u64> {
    let ticks = Process::new_with_root(directory.to_owned()).and_then(|process| process.stat()).ok()?.starttime;
    let began_ms = ticks.checked_mul(1000)? / procfs::ticks_per_second().max(1);
    let since_boot_ms = clock_ns(ClockId::Boottime) / 1_000_000;
    wall_ms().checked_sub(since_boot_ms.checked_sub(began_ms)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "24 1 253:0 / / rw - ext4 /dev/vda rw\n\
        90 24 0:52 / /var/lib/docker/overlay2/a/merged rw,relatime shared:9 - overlay overlay rw,lowerdir=/l\n";

    /// Process 7 has these mounts; is number `mount` trusted?
    fn trusts(mountinfo: &str, mount: u64) -> bool {
        let proc = tempfile::tempdir().expect("a temporary directory");
        for (process, text) in [("1", HOST), ("self", "30 1 253:0 / / rw - ext4 /dev/vda rw\n"), ("7", mountinfo)] {
            let directory = proc.path().join(process);
            std::fs::create_dir(&directory).expect("writable");
            std::fs::write(directory.join("mountinfo"), text).expect("writable");
        }
        is_local(proc.path(), &proc.path().join("7"), mount)
    }

    #[test]
    fn only_file_systems_that_wait_for_nobody_are_read() {
        let of = |kind: &str, device: &str| format!("70 60 {device} / / rw,nosuid - {kind} x rw\n");
        for kind in ["ext4", "xfs", "btrfs", "tmpfs"] {
            assert!(trusts(&of(kind, "0:60"), 70), "{kind}");
        }
        for kind in ["fuse", "fuse.sshfs", "nfs4", "9p", "ecryptfs", "newfs", ""] {
            assert!(!trusts(&of(kind, "0:60"), 70), "'{kind}' may wait for somebody");
        }
        assert!(trusts(&of("overlay", "0:52"), 70), "a container's, which root has mounted");
        assert!(!trusts(&of("overlay", "0:61"), 70), "one that was mounted in a user namespace");
        assert!(!trusts(&of("overlay", "253:0"), 70), "nor one that borrows the number of something else");
        assert!(trusts("", 24), "a descriptor from the machine's own mount namespace");
        assert!(!trusts("70 60 0:60 / / rw - tmpfs x rw\n", 71), "a mount that nobody knows");
    }
}
