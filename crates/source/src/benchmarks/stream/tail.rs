//! A file that grows, read from where it was read last. Only regular files are ever opened: who opens a fifo wakes its
//! writer, and a device may do anything.

use super::lines::Lines;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

/// Bytes read at a time; an interval takes some 500 bytes, and as much for each stream.
const PIECE: usize = 64 * 1024;
/// Distance from the end of a file, bytes, beyond which old lines are skipped and reading goes on near the end.
const FAR_BEHIND: u64 = 1024 * 1024;
/// Pieces read at most when a file is read to its end: more than [`FAR_BEHIND`] has.
const TO_THE_END: usize = 32;

/// What is behind a path.
pub(super) enum TailTarget {
    /// A regular file, open for reading.
    File(Tail),
    /// Something else, which was not opened.
    Other(Stat),
}

/// A file, and how far it was read.
#[derive(Debug)]
pub(super) struct Tail {
    file: OwnedFd,
    /// Which file it is.
    identity: (u64, u64),
    at: u64,
    /// Size of the file when it was found, bytes: what lies before was there already.
    old_to: u64,
    pub lines: Lines,
}

impl AsRawFd for Tail {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// Which file is behind a path now, without opening it.
fn place(path: &Path) -> rustix::io::Result<(OwnedFd, Stat)> {
    let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let stat = rustix::fs::fstat(&place)?;
    Ok((place, stat))
}

#[allow(clippy::unnecessary_cast, reason = "the types of both differ by architecture")]
fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// Device and inode of the file that a path leads to now; `None` when there is none.
pub(super) fn identity_of(path: &Path) -> Option<(u64, u64)> {
    place(path).ok().map(|(_, stat)| identity(&stat))
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

impl Tail {
    /// Opens what is behind a path, if it is a regular file; `since_ms` is when its writer began.
    pub fn open(path: &Path, since_ms: Option<u64>) -> rustix::io::Result<TailTarget> {
        let (place, stat) = place(path)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(TailTarget::Other(stat));
        }
        // Opens the file that was looked at, even if the path leads to another one by now.
        let same = format!("/proc/self/fd/{}", place.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(same, flags, Mode::empty())?;
        let lines = Lines::since(since_ms);
        Ok(TailTarget::File(Self { file, identity: identity(&stat), at: 0, old_to: size(&stat), lines }))
    }

    /// Which file it is.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Another file than this one is behind the path by now; none behind it is no other.
    pub fn is_replaced(&self, path: &Path) -> bool {
        identity_of(path).is_some_and(|found| found != self.identity)
    }

    /// Nothing was ever in it.
    pub fn is_empty(&self) -> bool {
        self.at == 0
    }

    /// Reads one piece; false at the end of the file, and where it cannot be read now.
    pub fn read(&mut self, piece: &mut Vec<u8>) -> bool {
        let size = rustix::fs::fstat(&self.file).map_or(self.at, |stat| size(&stat));
        // Written anew: nothing of before belongs to it.
        if size < self.at {
            (self.at, self.old_to) = (0, 0);
            self.lines.forget();
        }
        // What is old is not worth reading; the line that is cut there is no event.
        if size - self.at > FAR_BEHIND {
            self.at = size - FAR_BEHIND / 2;
            self.lines.cut();
        }
        piece.resize(PIECE, 0);
        let is_new = self.at >= self.old_to;
        let most = if is_new { PIECE as u64 } else { (self.old_to - self.at).min(PIECE as u64) };
        let most = usize::try_from(most).unwrap_or(PIECE);
        // What cannot be read now may be in the next tick.
        let length = rustix::io::pread(&self.file, &mut piece[..most], self.at).unwrap_or(0);
        self.at += length as u64;
        self.lines.take(&piece[..length], is_new);
        length > 0
    }

    /// Reads what is left when nobody writes any more.
    pub fn read_to_the_end(&mut self, piece: &mut Vec<u8>) {
        for _ in 0..TO_THE_END {
            if !self.read(piece) {
                return;
            }
        }
    }
}
