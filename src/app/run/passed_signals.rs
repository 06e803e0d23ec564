//! The command's signals: what is sent to vnettop goes on to the command, except what the terminal sent to both of them
//! already. It waits for nobody and ends nothing itself; once the command is over, signals do again what they always do.

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whoever sends these wants an end.
const ENDING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
/// These mean what the command takes them for; they end a program that does not take them.
const OTHERS: [i32; 7] = [SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGXCPU];

/// The signals of a run, taken before the command is started.
pub(super) struct PassedSignals {
    signals: SignalsInfo<WithRawSiginfo>,
    /// Readable when one came.
    pipe: UnixStream,
    /// One asked for an end.
    pub(super) asked: bool,
    /// The command has ended for good.
    over: Arc<AtomicBool>,
}

impl PassedSignals {
    /// Takes over the signals that end a program, wanted or not, and the one that tells of an ended child. A signal that vnettop was
    /// started to ignore (`nohup`, a job in the background) stays ignored, for the command too.
    ///
    /// # Errors
    /// The kernel refuses a pipe or a handler.
    pub(super) fn take() -> io::Result<Self> {
        let ignored = ignored();
        let passed = ENDING.into_iter().chain(OTHERS).filter(|&signal| !has(ignored, signal));
        let taken: Vec<i32> = passed.chain([SIGCHLD]).collect();
        let (pipe, write) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        let over = Arc::new(AtomicBool::new(false));
        for &signal in taken.iter().filter(|&&signal| signal != SIGCHLD) {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&over))?;
        }
        let signals = SignalsInfo::with_exfiltrator(&taken, WithRawSiginfo)?;
        // Registered after what stores the signal, so that it is there when the pipe wakes.
        for signal in taken {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Self { signals, pipe, asked: false, over })
    }

    /// Readable when a signal came.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Hands on what came since; without a child it is only noted. Whether an end was asked for.
    pub(super) fn hand_on(&mut self, child: Option<&Child>) -> bool {
        let mut bytes = [0; 64];
        while io::Read::read(&mut &self.pipe, &mut bytes).is_ok_and(|read| read == bytes.len()) {}
        let mut ending = false;
        for info in self.signals.pending() {
            if info.si_signo == SIGCHLD {
                continue;
            }
            if ENDING.contains(&info.si_signo) {
                (self.asked, ending) = (true, true);
            }
            // The kernel itself sends these for a terminal, and to its whole foreground group, the command included. A
            // lost terminal is told to the leader of its session alone.
            let both_have_it = info.si_code > 0 && info.si_signo != SIGHUP;
            if let Some(child) = child.filter(|_| !both_have_it) {
                pass(child, info.si_signo);
            }
        }
        ending
    }

    /// There is no command any more: whoever writes the card, to a fifo perhaps, can be ended by a signal like any program.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

/// A child that is not yet waited for keeps its number: nobody else is hit.
fn pass(child: &Child, signal: i32) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some((pid, signal)) = pid.zip(Signal::from_named_raw(signal)) {
        let _ = kill_process(pid, signal);
    }
}

/// `SigIgn` of /proc/self/status: bit n − 1 for signal n.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn has(mask: u64, signal: i32) -> bool {
    mask >> (signal - 1) & 1 == 1
}
