//! Files of /proc and /sys: kept open and read again from the start, or read once. It knows no file's content.

use super::{SourceError, scan};
use rustix::fs::{Mode, OFlags, RawDir, readlinkat_raw};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use vnettop_sample::text::clean;

/// What one read asks for; the kernel gives seq files in pieces of a page or more, a buffer is never shrunk.
const PIECE: usize = 16 * 1024;

/// The last of the descriptors that every program has.
const STDERR: usize = 2;

/// A file of /proc that stays open: reading it again costs a system call or two and no path lookup.
#[derive(Debug)]
pub(crate) struct KeptFile {
    file: File,
    path: PathBuf,
}

impl KeptFile {
    /// Opens the file.
    pub(crate) fn open(path: PathBuf) -> Result<Self, SourceError> {
        match File::open(&path) {
            Ok(file) => Ok(Self { file, path }),
            Err(error) => Err(SourceError::File { path, error }),
        }
    }

    /// The whole content, into a buffer that is used again and again.
    pub(crate) fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], SourceError> {
        whole(&self.file, buffer).map_err(|error| SourceError::File { path: self.path.clone(), error: error.into() })
    }
}

/// A read that gives less than this gave all there is: the kernel stops before the end of a file only when the next line
/// does not fit into its page, and no line of the files that are read in lines (`softnet_stat`) is as long as half a page.
const LAST_PIECE: usize = 2048;

/// The whole content of an open file, from its beginning: `softnet_stat` comes a page at a time.
pub(crate) fn whole(file: impl AsFd, buffer: &mut Vec<u8>) -> Result<&[u8], Errno> {
    let mut filled = 0;
    loop {
        if buffer.len() < filled + PIECE {
            buffer.resize(filled + PIECE, 0);
        }
        match rustix::io::pread(&file, &mut buffer[filled..], filled as u64) {
            Ok(read) => {
                filled += read;
                if read < LAST_PIECE {
                    return Ok(&buffer[..filled]);
                }
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// What one read gives, for files that the kernel writes in one piece when the buffer has room (`stat`, `sched`).
pub(crate) fn once(file: impl AsFd, buffer: &mut [u8]) -> Result<&[u8], Errno> {
    let read = rustix::io::pread(file, &mut *buffer, 0)?;
    Ok(&buffer[..read])
}

/// How many descriptors this process may have (`RLIMIT_NOFILE`, the soft limit in force).
pub(crate) fn descriptor_limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Numbers of the descriptors that were open when vnettop began, lowest first: a shell or a harness hands its own on, often with
/// high numbers, and a caller may name one of them (`-r /dev/fd/63`), so they stay open and are counted instead.
static TAKEN: OnceLock<Vec<usize>> = OnceLock::new();

/// Notes which descriptors are open; only the first call does, before anything else is opened.
pub(crate) fn note_taken() {
    TAKEN.get_or_init(|| {
        let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let mut numbers: Vec<usize> = entries.filter_map(number).filter(|&number| number > STDERR).collect();
        numbers.sort_unstable();
        // The list's own is closed by now.
        numbers.retain(|number| std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok());
        numbers
    });
}

/// How many of the descriptors that this process may have were open when it began, beside the three of every program.
pub(crate) fn taken() -> usize {
    above(STDERR)
}

/// How many descriptors with a higher number were open when this process began.
fn above(number: usize) -> usize {
    let limit = descriptor_limit();
    TAKEN.get().map_or(0, |taken| taken.iter().filter(|&&other| other > number && other < limit).count())
}

/// How many descriptors this process may open for itself, standard ones included.
pub(crate) fn descriptor_room() -> usize {
    descriptor_limit().saturating_sub(taken())
}

/// Descriptors that caches of open files must leave free: the BPF programs take up to 40 while they are loaded, and a socket, the
/// pipes of a command or a file that is read once must always find one.
const LEFT_BY_CACHES: usize = 80;

/// Whether a file that is kept open only to save time leaves enough descriptors free.
pub(crate) fn leaves_room(newest: &OwnedFd) -> bool {
    leaves(newest, LEFT_BY_CACHES)
}

/// Whether a descriptor leaves so many others free: the kernel gives the lowest free number, so the newest one tells how many
/// are taken, beside those above it from the beginning.
pub(crate) fn leaves(newest: &OwnedFd, free: usize) -> bool {
    usize::try_from(newest.as_raw_fd()).is_ok_and(|number| number + above(number) + free < descriptor_limit())
}

/// Makes room in the descriptor table before a second thread shares it: the kernel grows a shared table only after an RCU
/// grace period (`expand_fdtable`), 8 to 20 ms at 64 descriptors and again at 128 and 256, each time within a tick. 1,024
/// entries cost 8 KiB. Measured with 20 watched threads: first rows after 10 ms instead of 35.
pub(super) fn make_room_for_descriptors(any: impl AsFd) {
    const ROOM: usize = 1024;
    let last = ROOM.min(descriptor_limit()).saturating_sub(1);
    if let Ok(last) = i32::try_from(last) {
        // Without it the table grows later; nothing else is lost.
        drop(rustix::io::fcntl_dupfd_cloexec(any, last));
    }
}

/// Field 5 of `loadavg`: the number that the kernel gave last.
pub(crate) fn newest_number(loadavg: &File) -> Option<u32> {
    let mut buffer = [0; 128];
    scan::number32(scan::fields(once(loadavg, &mut buffer).ok()?.trim_ascii_end()).nth(4)?)
}

/// The processes of a /proc, lowest number first.
pub(crate) fn processes(proc: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let number = |entry: std::fs::DirEntry| scan::number32(entry.file_name().as_encoded_bytes());
    let mut pids: Vec<u32> = entries.filter_map(number).collect();
    pids.sort_unstable();
    pids
}

/// Opens a file below a directory for reading.
pub(crate) fn open_below(directory: impl AsFd, path: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(directory, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a directory for listing.
pub(crate) fn open_directory(path: &Path) -> Result<OwnedFd, SourceError> {
    open_directory_below(rustix::fs::CWD, path)
        .map_err(|error| SourceError::File { path: path.to_owned(), error: error.into() })
}

/// Opens a directory below another one for listing.
pub(crate) fn open_directory_below(directory: impl AsFd, path: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(directory, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Bytes for the entries of about 170 descriptors a call.
pub(crate) const ENTRIES: usize = 4096;

/// Hands over the name and the target of each entry of a directory of descriptors; a target is cut where it is longer than any
/// that is looked for. `.` and `..` have none, nor has a descriptor that was closed meanwhile.
pub(crate) fn descriptors(
    directory: &OwnedFd,
    entries: &mut [MaybeUninit<u8>],
    mut each: impl FnMut(&CStr, Option<&[u8]>),
) -> Result<(), Errno> {
    let mut listing = RawDir::new(directory, entries);
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let mut buffer = [MaybeUninit::uninit(); 64];
        let target = readlinkat_raw(directory, entry.file_name(), &mut buffer);
        each(entry.file_name(), target.ok().map(|(target, _)| &*target));
    }
    Ok(())
}

/// The inodes of the sockets in a directory of descriptors, sorted, and how many entries of any kind there are.
pub(crate) fn sockets(directory: &OwnedFd, entries: &mut [MaybeUninit<u8>]) -> Result<(Vec<u32>, usize), Errno> {
    let (mut sockets, mut count) = (Vec::new(), 0);
    descriptors(directory, entries, |_, target| {
        count += 1;
        sockets.extend(target.and_then(socket));
    })?;
    sockets.sort_unstable();
    sockets.dedup();
    Ok((sockets, count))
}

/// The inode of a socket as a descriptor names it, `socket:[123]`; none for anything else.
fn socket(target: &[u8]) -> Option<u32> {
    scan::number32(target.strip_prefix(b"socket:[")?.strip_suffix(b"]")?)
}

/// The beginning of a plain file in somebody's directory: whoever may write there could put a pipe in its place, which
/// would keep a reader waiting.
pub(crate) fn plain(path: &Path, longest: u64) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut text = String::new();
    file.take(longest).read_to_string(&mut text)?;
    Ok(text)
}

/// The beginning of a file of /proc, read once.
pub(crate) fn beginning(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(longest).read_to_end(&mut text)?;
    Ok(text)
}

/// A short text file of sysfs, without the blanks around it.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path).map(|text| text.trim().to_owned())
}

/// The name of a process or thread by its directory.
pub(crate) fn comm(process: &Path) -> io::Result<String> {
    std::fs::read(process.join("comm")).map(|name| clean(name.trim_ascii_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_names_a_socket_or_something_else() {
        assert_eq!(socket(b"socket:[4711]"), Some(4711));
        for other in [&b"pipe:[4711]"[..], b"/dev/null", b"socket:[x]", b"socket:[", b"socket:[]", b""] {
            assert_eq!(socket(other), None, "{:?} is no socket", String::from_utf8_lossy(other));
        }
    }
}
