//! Writes to a file, and waits for its reader only for a moment: a fifo, a pipe or a terminal takes nothing while its reader stands
//! still, and the screen would stand still with it. A disk takes what it is given.

use super::link_owner::{flags_to_write, is_strangers_link};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// How long a reader may stand still; within it a pipe's usual reader (a compressor) takes what it has.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// A file or a pipe to write to.
#[derive(Debug)]
pub(super) struct TimeoutWriter(File);

impl TimeoutWriter {
    /// Opens it, new or empty; a fifo once there is a reader. A link is followed that this user or root has made, and none where it must
    /// be new. A new file is for nobody else to read: what is recorded holds other users' command lines.
    ///
    /// # Errors
    /// It cannot be opened for writing, is a link of another user, or there is something with its name.
    pub fn create(path: &Path, must_be_new: bool) -> io::Result<Self> {
        let mut how = OpenOptions::new();
        how.write(true).create(true).create_new(must_be_new).truncate(false).mode(0o600);
        if is_strangers_link(path) {
            return Err(io::Error::other("it is a symbolic link of another user: remove it, or give another name"));
        }
        let file = how.custom_flags(flags_to_write(path)).open(path)?;
        let meta = file.metadata()?;
        // What has come there meanwhile is not emptied.
        if meta.is_file() && meta.len() > 0 {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !meta.is_file() {
            fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
        }
        Ok(Self(file))
    }
}

impl Write for TimeoutWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
            match poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], Some(&PATIENCE)) {
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "its reader has accepted nothing for 250 ms"));
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::geteuid;
    use std::fs::OpenOptions;

    #[test]
    fn a_link_of_another_user_is_not_followed_and_ones_own_is() {
        let dir = tempfile::tempdir().expect("a directory");
        let (link, target) = (dir.path().join("run.jsonl"), dir.path().join("target"));
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        if geteuid().is_root() {
            std::os::unix::fs::lchown(&link, Some(65_534), None).expect("root gives it away");
            let refused =
                TimeoutWriter::create(&link, false).expect_err("it leads where another user wants").to_string();
            assert!(refused.contains("a symbolic link of another user") && !target.exists(), "{refused}");
            std::os::unix::fs::lchown(&link, Some(0), None).expect("root takes it back");
        }
        TimeoutWriter::create(&link, false).expect("where one has said oneself");
        assert!(target.exists(), "it is written to");
        TimeoutWriter::create(&link, true).expect_err("it must be new");
    }

    #[test]
    fn a_reader_that_stands_still_is_given_up_and_one_that_reads_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a fifo");
        let mut reader = OpenOptions::new().read(true).write(true).open(&path).expect("both ends");
        let mut writer = TimeoutWriter::create(&path, false).expect("there is a reader");
        let block = [7; 4096];
        let mut fill = || (0..1024).try_for_each(|_| writer.write_all(&block));
        let error = fill().expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        let reading = std::thread::spawn(move || {
            let mut taken = vec![0; 512 * block.len()];
            std::io::Read::read_exact(&mut reader, &mut taken).expect("it is read");
            reader
        });
        (0..500).try_for_each(|_| writer.write_all(&block)).expect("somebody reads");
        drop(reading.join().expect("it has read"));
    }
}
