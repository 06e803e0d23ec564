//! Signals as something to wait for: a byte in a pipe, not code that runs in between.

use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The signals that end a run, and the one that tells of a resized terminal.
pub struct Signals {
    pipe: UnixStream,
    /// Written by the handler before the pipe, read after it.
    ending: Arc<AtomicUsize>,
}

impl Signals {
    /// Takes over SIGINT, SIGTERM, SIGHUP and SIGWINCH.
    ///
    /// # Errors
    /// The kernel refuses a pipe or a handler.
    pub fn take() -> io::Result<Self> {
        let (pipe, write) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let ending = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(signal, Arc::clone(&ending), usize::try_from(signal).unwrap_or(0))?;
        }
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGWINCH] {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Self { pipe, ending })
    }

    /// Readable when a signal came.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// The signal that asks for an end, if one came.
    #[must_use]
    pub fn ending(&self) -> Option<i32> {
        let mut bytes = [0; 64];
        while (&self.pipe).read(&mut bytes).is_ok_and(|read| read == bytes.len()) {}
        i32::try_from(self.ending.load(Ordering::SeqCst)).ok().filter(|&signal| signal != 0)
    }
}

/// Waits until one of the descriptors is readable.
pub(super) fn wait(fds: &[BorrowedFd<'_>]) {
    let mut waits: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    // An interruption is a signal, and a signal is in the pipe.
    let _ = poll(&mut waits, None);
}
