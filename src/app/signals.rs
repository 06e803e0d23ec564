//! Signals as something to wait for: a byte in a pipe, not code that runs in between.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{
    SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH,
    SIGXCPU, SIGXFSZ,
};
use smallvec::SmallVec;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// What ends a program unless it takes them over, and may come from outside. SIGPIPE does not: Rust programs ignore it.
const ENDING: [i32; 11] =
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGXCPU];

/// A file that reaches its largest size (`ulimit -f`) is an error of that write, which is told, and not the end of the program.
///
/// # Errors
/// The kernel refuses a handler.
pub fn survive_full_files() -> io::Result<()> {
    // A handler, not the signal ignored: a command that vnettop starts must not inherit it.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// The signals that end a run, and those that concern its terminal.
pub struct Signals {
    pipe: UnixStream,
    /// What the handlers write to.
    write: UnixStream,
    /// Written by the handlers before the pipe, read after it.
    ending: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    continued: Arc<AtomicBool>,
}

impl Signals {
    /// Takes over every signal that would end the program. A second one, where the first found us waiting for something
    /// that does not come, ends it as it would end any other.
    ///
    /// # Errors
    /// The kernel refuses a pipe or a handler.
    pub fn take() -> io::Result<Self> {
        let signals = Self::none()?;
        let asked = Arc::new(AtomicBool::new(false));
        for signal in ENDING {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&asked))?;
            signal_hook::flag::register(signal, Arc::clone(&asked))?;
            signal_hook::flag::register_usize(
                signal,
                Arc::clone(&signals.ending),
                usize::try_from(signal).unwrap_or(0),
            )?;
            signal_hook::low_level::pipe::register(signal, signals.write.try_clone()?)?;
        }
        Ok(signals)
    }

    /// Takes over SIGWINCH, SIGTSTP and SIGCONT too: for a run that owns a terminal.
    ///
    /// # Errors
    /// The kernel refuses a handler.
    pub fn take_terminal(&self) -> io::Result<()> {
        self.take_stop()?;
        signal_hook::flag::register(SIGCONT, Arc::clone(&self.continued))?;
        for signal in [SIGWINCH, SIGCONT] {
            signal_hook::low_level::pipe::register(signal, self.write.try_clone()?)?;
        }
        Ok(())
    }

    /// Takes over SIGTSTP, where something is to be let go of before the stop.
    ///
    /// # Errors
    /// The kernel refuses a handler.
    pub fn take_stop(&self) -> io::Result<()> {
        signal_hook::flag::register(SIGTSTP, Arc::clone(&self.stop))?;
        signal_hook::low_level::pipe::register(SIGTSTP, self.write.try_clone()?).map(drop)
    }

    /// Takes over none: every signal does what it always does. For a run that has nothing to put in order.
    ///
    /// # Errors
    /// The kernel refuses a pipe.
    pub fn none() -> io::Result<Self> {
        let (pipe, write) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        Ok(Self { pipe, write, ending: Arc::default(), stop: Arc::default(), continued: Arc::default() })
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

    /// The signal that asks for an end; 0 before one came. For whoever cannot wait for [`Signals::fd`].
    #[must_use]
    pub fn asked(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.ending)
    }

    /// Someone asks this program to stop for a while (SIGTSTP); told once.
    pub(super) fn stop_asked(&self) -> bool {
        self.stop.swap(false, Ordering::SeqCst)
    }

    /// It goes on after having been stopped; told once.
    pub(super) fn continued(&self) -> bool {
        self.continued.swap(false, Ordering::SeqCst)
    }
}

/// Waits until one of the descriptors is readable, or its other end is gone, but no longer than that; which of them are.
pub(super) fn wait(fds: &[BorrowedFd<'_>], at_most: Option<Duration>) -> SmallVec<[bool; 4]> {
    let at_most = at_most.and_then(|at_most| Timespec::try_from(at_most).ok());
    let mut waits: SmallVec<[PollFd<'_>; 4]> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    // An interruption is a signal, and a signal is in the pipe.
    let interrupted = poll(&mut waits, at_most.as_ref()).is_err();
    waits.iter().map(|wait| interrupted || !wait.revents().is_empty()).collect()
}

/// Makes an event descriptor readable.
pub(super) fn ring(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

/// Waits until the first is readable, or the other takes something, at most so long.
pub(super) fn wait_to_write(fd: BorrowedFd<'_>, to: BorrowedFd<'_>, at_most: Option<Duration>) {
    let at_most = at_most.and_then(|at_most| Timespec::try_from(at_most).ok());
    let waits = [PollFd::from_borrowed_fd(fd, PollFlags::IN), PollFd::from_borrowed_fd(to, PollFlags::OUT)];
    let _ = poll(&mut { waits }, at_most.as_ref());
}

/// What a descriptor has for its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    Nothing,
    Input,
    /// The other end is gone: reading would give nothing, for ever.
    HungUp,
}

/// Looks without waiting.
pub(super) fn look(fd: BorrowedFd<'_>) -> Waiting {
    let mut waits = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut waits, Some(&at_once)) {
        Ok(1..) if waits[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => Waiting::HungUp,
        Ok(1..) => Waiting::Input,
        _ => Waiting::Nothing,
    }
}
