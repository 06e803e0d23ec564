//! Where a running iperf 3 writes its lines, by the descriptors that it has open: its standard output, or the file of
//! `--logfile`. What it has open is what it writes to, in whatever root and directory it lives and whatever its name is
//! by now. The process notices nothing of it.

use super::tail::{Found, Tail};
use crate::sample::{Benchmark, Report, Reported, Unread};
use crate::source::{Roots, proc_file};
use procfs::process::Process;
use rustix::fs::{FileType, Stat};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// How often it is looked where a process writes to.
const LOOK_NS: u64 = 1_000_000_000;
/// How many processes are followed at most: each takes a descriptor.
const MOST: usize = 64;
/// Open for reading and writing, at its end: what `fopen` makes of `a+`, as iperf 3 opens its log (`O_RDWR`, `O_APPEND`).
const LOG_FLAGS: u32 = 0o2002;
const LOG_MASK: u32 = 0o2003;

/// File systems whose server may let a reader wait for ever.
const REMOTE: [&str; 18] = [
    "fuse", "fuseblk", "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "autofs", "lustre",
    "gpfs", "beegfs", "ocfs2", "gfs2", "coda",
];

/// Follows what the watched processes write themselves.
#[derive(Debug, Default)]
pub(super) struct OwnReports(BTreeMap<u32, Followed>);

#[derive(Debug, Default)]
struct Followed {
    tail: Option<Tail>,
    unread: Option<Unread>,
    looked_at_ns: Option<u64>,
    /// The mount that it wrote to last, which is a local one.
    mount: Option<u64>,
}

impl OwnReports {
    /// Nobody is followed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads what these benchmarks wrote since; `named` is read from a file that the user named. What is told of whole
    /// tests goes to `told`, each with its process.
    pub fn follow(
        &mut self,
        (roots, now_ns): (&Roots, u64),
        benchmarks: &[Benchmark],
        named: Option<u32>,
        piece: &mut Vec<u8>,
        told: &mut Vec<super::Told>,
    ) {
        let wanted = |pid: u32| Some(pid) != named && benchmarks.iter().any(|test| test.pid == pid && test.json_stream);
        self.0.retain(|&pid, followed| {
            let stays = wanted(pid);
            if !stays {
                followed.end(pid, piece, told);
            }
            stays
        });
        for test in benchmarks.iter().filter(|test| wanted(test.pid)) {
            if self.0.len() < MOST || self.0.contains_key(&test.pid) {
                self.0.entry(test.pid).or_default().follow((roots, now_ns), test.pid, piece, told);
            }
        }
    }

    /// What a process reported last, and why nothing of it is read.
    pub fn of(&self, pid: u32) -> (Option<Reported>, Option<Unread>) {
        let of =
            |followed: &Followed| (followed.tail.as_ref().and_then(|t| t.lines.last_of_its_own()), followed.unread);
        self.0.get(&pid).map_or((None, None), of)
    }
}

impl Followed {
    fn follow(&mut self, (roots, now_ns): (&Roots, u64), pid: u32, piece: &mut Vec<u8>, told: &mut Vec<super::Told>) {
        if self.looked_at_ns.is_none_or(|looked_ns| now_ns.saturating_sub(looked_ns) >= LOOK_NS) {
            self.looked_at_ns = Some(now_ns);
            self.look(&roots.proc, pid, piece, told);
        }
        if let Some(tail) = &mut self.tail {
            tail.read(piece);
            tell(tail, pid, told);
        }
    }

    /// Looks where it writes to now. One that has ended writes nowhere: what it had open is read on.
    fn look(&mut self, proc: &Path, pid: u32, piece: &mut Vec<u8>, told: &mut Vec<super::Told>) {
        let found = match output(proc, pid) {
            Ok(output) => self.open(proc, pid, &output),
            Err(unread) => Err(unread),
        };
        match found {
            Ok(None) | Err(None) => {}
            Ok(Some(tail)) => {
                self.end(pid, piece, told);
                (self.tail, self.unread) = (Some(tail), None);
            }
            Err(unread) if self.tail.is_none() => self.unread = unread,
            Err(_) => {}
        }
    }

    /// The file behind a descriptor; none if it is the one that is open already.
    fn open(&mut self, proc: &Path, pid: u32, path: &Path) -> Result<Option<Tail>, Option<Unread>> {
        let directory = proc.join(pid.to_string());
        let number = path.file_name().and_then(|name| name.to_str()?.parse().ok()).ok_or(None)?;
        // Whether the link can be read tells one from the other: it has ended, or we have no right to look.
        let target = std::fs::read_link(path).map_err(|error| refused(&error))?;
        let mount = info(&directory, number).ok_or(None)?.mount;
        // Pipes and sockets are on mounts that nobody sees.
        if target.is_absolute() && self.mount != Some(mount) && !is_local(proc, &directory, mount) {
            return Err(Some(Unread::Remote));
        }
        self.mount = Some(mount);
        if self.tail.as_ref().is_some_and(|tail| !tail.is_replaced(path)) {
            return Ok(None);
        }
        match Tail::open(path, began_ms(&directory)) {
            Ok(Found::File(tail)) => Ok(Some(tail)),
            Ok(Found::Other(stat)) => Err(Some(kind(&stat))),
            Err(error) => Err(refused(&error.into())),
        }
    }

    /// Reads what is left.
    fn end(&mut self, pid: u32, piece: &mut Vec<u8>, told: &mut Vec<super::Told>) {
        if let Some(mut tail) = self.tail.take() {
            tail.read_to_the_end(piece);
            tell(&mut tail, pid, told);
        }
    }
}

fn tell(tail: &mut Tail, pid: u32, told: &mut Vec<super::Told>) {
    told.extend(tail.lines.ended().into_iter().map(|(side, whole)| (pid, side, Report::Whole(whole))));
}

/// The descriptor that iperf 3 writes its lines to. No reason is told of a process that has ended.
fn output(proc: &Path, pid: u32) -> Result<PathBuf, Option<Unread>> {
    let directory = proc.join(pid.to_string());
    if !has_log(&directory) {
        return Ok(directory.join("fd/1"));
    }
    let listed = std::fs::read_dir(directory.join("fdinfo")).map_err(|error| refused(&error))?;
    let numbers = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()).filter(|&fd| fd > 2);
    let is_log = |fd: &u32| info(&directory, *fd).is_some_and(|info| info.flags & LOG_MASK == LOG_FLAGS);
    // It opens the file a moment after it was started.
    numbers.filter(is_log).min().map(|fd| directory.join(format!("fd/{fd}"))).ok_or(None)
}

fn has_log(directory: &Path) -> bool {
    let line = Process::new_with_root(directory.to_owned()).and_then(|process| process.cmdline()).unwrap_or_default();
    super::super::iperf3::has_log(&line)
}

fn refused(error: &std::io::Error) -> Option<Unread> {
    (error.kind() == std::io::ErrorKind::PermissionDenied).then_some(Unread::Rights)
}

/// What a process' descriptor is, told without touching the file: `/proc/PID/fdinfo/FD`.
struct Info {
    flags: u32,
    mount: u64,
}

fn info(directory: &Path, fd: u32) -> Option<Info> {
    let text = proc_file::text(&directory.join(format!("fdinfo/{fd}"))).ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some(Info { flags: u32::from_str_radix(field("flags:")?, 8).ok()?, mount: field("mnt_id:")?.parse().ok()? })
}

/// Whether a mount is one of this kernel's own file systems. A descriptor may be of another mount namespace than its
/// process, so others are asked too; a mount that none of them knows is not trusted.
fn is_local(proc: &Path, directory: &Path, mount: u64) -> bool {
    let mounts = [directory.to_owned(), proc.join("self"), proc.join("1")];
    let kind = mounts.iter().find_map(|of| kind_of_mount(&std::fs::read(of.join("mountinfo")).ok()?, mount));
    kind.is_some_and(|kind| !REMOTE.iter().any(|remote| kind == *remote) && !kind.starts_with("fuse."))
}

/// The type of a mount's file system: the first field is its number, the type stands behind the dash.
fn kind_of_mount(mountinfo: &[u8], mount: u64) -> Option<String> {
    let line = mountinfo.split(|&byte| byte == b'\n').find(|line| {
        let number = line.split(|&byte| byte == b' ').next();
        number.and_then(crate::source::scan::number) == Some(mount)
    })?;
    let mut fields = line.split(|&byte| byte == b' ').skip_while(|field| *field != b"-").skip(1);
    fields.next().map(|kind| String::from_utf8_lossy(kind).into_owned())
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
    let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let since_boot_ms =
        u64::try_from(since_boot.tv_sec).ok()? * 1000 + u64::try_from(since_boot.tv_nsec).ok()? / 1_000_000;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(now.as_millis()).ok()?.checked_sub(since_boot_ms.checked_sub(began_ms)?)
}
