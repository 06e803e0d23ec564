//! Standard output, written to without being held up in it: what takes nothing now (a pipe that nobody reads, a terminal that stands
//! still) is told, and whoever writes can wait for it and for a signal at once.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::termios::{QueueSelector, tcflush};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A pipe that is writable takes at least this much at once, bytes (`PIPE_BUF`).
const PIECE: usize = 4096;
/// How often whoever waits for room looks whether a signal came.
const LOOKS: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Standard output; a write takes what there is room for, and is `WouldBlock` where there is none.
#[derive(Debug)]
pub struct StdoutWriter {
    file: File,
    way: WriteMethod,
}

/// How it is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteMethod {
    /// A file takes everything; or this program alone has it open so that it does not wait.
    Plain,
    /// A socket, which can be asked not to wait.
    Socket,
    /// Piece by piece, each when there is room: what others have open as well and may not be opened again.
    Pieces,
}

impl StdoutWriter {
    /// Takes standard output. Whoever else has it open is not concerned: a pipe and a terminal are opened again.
    ///
    /// # Errors
    /// It is closed.
    pub fn take() -> io::Result<Self> {
        Self::of(io::stdout().as_fd())
    }

    fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let own = || fd.try_clone_to_owned().map(File::from);
        let way = match FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode) {
            FileType::Socket => WriteMethod::Socket,
            FileType::Fifo | FileType::CharacterDevice => {
                let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
                let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                match rustix::fs::open(path, flags, Mode::empty()) {
                    Ok(opened) => return Ok(Self { file: opened.into(), way: WriteMethod::Plain }),
                    Err(_) => WriteMethod::Pieces,
                }
            }
            _ => WriteMethod::Plain,
        };
        Ok(Self { file: own()?, way })
    }

    /// Ends what a terminal shows: `bytes` go to it if there is room. One that stands still loses what it has not shown yet, and then there is.
    pub(super) fn end_with(&mut self, bytes: &[u8]) {
        if self.write_all(bytes).is_err() && tcflush(&self.file, QueueSelector::OFlush).is_ok() {
            // What it had begun to read may end in the middle of a sequence, which this cancels.
            let _nothing_more_can_be_done = self.write_all(&[&b"\x18"[..], bytes].concat());
        }
    }

    fn has_room(&self) -> io::Result<()> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], Some(&now))? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        }
    }
}

impl AsFd for StdoutWriter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Write for StdoutWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.way {
            WriteMethod::Plain => self.file.write(bytes),
            WriteMethod::Socket => {
                match rustix::net::send(&self.file, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                    Err(Errno::PIPE) => Err(io::ErrorKind::BrokenPipe.into()),
                    sent => Ok(sent?),
                }
            }
            WriteMethod::Pieces => {
                self.has_room()?;
                self.file.write(&bytes[..bytes.len().min(PIECE)])
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard output for a caller that can only write or fail: waits for room, until a signal asks for an end.
#[derive(Debug)]
pub struct WaitingStdout {
    out: StdoutWriter,
    /// The signal that has asked for an end; 0 before.
    ended: Arc<AtomicUsize>,
    gave_up: bool,
}

impl WaitingStdout {
    /// `ended` is not 0 once a signal has asked for an end; from then on nobody is waited for.
    #[must_use]
    pub fn new(out: StdoutWriter, ended: Arc<AtomicUsize>) -> Self {
        Self { out, ended, gave_up: false }
    }
}

impl Write for WaitingStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Whatever lies in a buffer above: the rest of a frame has no place any more.
        while !self.gave_up {
            match self.out.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
            if self.ended.load(Ordering::SeqCst) != 0 {
                self.gave_up = true;
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "output is blocked and a signal asks vnettop to stop",
                ));
            }
            match poll(&mut [PollFd::new(&self.out, PollFlags::OUT)], Some(&LOOKS)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// Writes until nothing is taken any more; how much that was.
    fn fill(out: &mut StdoutWriter) -> usize {
        let (block, mut taken) = (vec![b'x'; 64 << 10], 0);
        loop {
            match out.write(&block) {
                Ok(written) => taken += written,
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
                    return taken;
                }
            }
            assert!(taken < 64 << 20, "it ends somewhere");
        }
    }

    #[test]
    fn a_pipe_and_a_socket_that_nobody_reads_hold_nobody_up() {
        let (from, to) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let mut again = StdoutWriter::of(to.as_fd()).expect("it is open");
        assert_eq!(again.way, WriteMethod::Plain, "the own pipe may be opened again");
        let taken = fill(&mut again);
        assert!(taken >= 4096, "a pipe takes something: {taken}");
        let mut pieces = StdoutWriter { file: to.try_clone().expect("a descriptor").into(), way: WriteMethod::Pieces };
        assert_eq!(fill(&mut pieces), 0, "a full one takes nothing, however it is written to");
        let mut reader = File::from(from);
        reader.read_exact(&mut vec![0; taken]).expect("it is read");
        let taken = fill(&mut pieces);
        assert!(taken >= 4096, "an empty one takes something again: {taken}");
        let flags = rustix::fs::fcntl_getfl(&to).expect("flags");
        assert!(!flags.contains(OFlags::NONBLOCK), "whoever else has the pipe open waits in it as before");
    }

    #[test]
    fn a_socket_is_asked_not_to_wait() {
        let (one, other) = UnixStream::pair().expect("a pair");
        let mut out = StdoutWriter::of(one.as_fd()).expect("it is open");
        assert_eq!(out.way, WriteMethod::Socket, "it cannot be opened again");
        assert!(fill(&mut out) > 0, "it takes something");
        drop(other);
        let error = out.write(b"x").expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{error}");
    }

    #[test]
    fn whoever_waits_for_a_reader_is_woken_by_the_signal_that_asks_for_an_end() {
        let (_from, to) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let mut out = StdoutWriter::of(to.as_fd()).expect("it is open");
        fill(&mut out);
        let ended = Arc::new(AtomicUsize::new(0));
        let mut patient = WaitingStdout::new(out, Arc::clone(&ended));
        let writing = std::thread::spawn(move || {
            let error = patient.write_all(b"more").expect_err("nobody reads");
            patient.write_all(b"the rest of it").expect("it has no place any more");
            error.kind()
        });
        ended.store(15, Ordering::SeqCst);
        assert_eq!(writing.join().expect("it ends"), io::ErrorKind::TimedOut);
    }
}
