//! The timer of the pulses between ticks: every 100 ms on the whole tenths of `CLOCK_MONOTONIC`, which are the edges of
//! the bins that rates are computed in. It runs only while there is something to read between ticks.

use crate::source::SourceError;
use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// From pulse to pulse. At intervals up to this the ticks themselves are the pulses.
const EVERY: Duration = Duration::from_millis(100);

/// Expires on every whole tenth of a second while it runs.
#[derive(Debug)]
pub(super) struct TickTimer {
    timer: OwnedFd,
    runs: bool,
}

impl TickTimer {
    /// A timer that does not run.
    ///
    /// # Errors
    /// The kernel gives no descriptor.
    pub fn new() -> Result<Self, SourceError> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags).map_err(failed)?;
        Ok(Self { timer, runs: false })
    }

    /// Lets it run or stand still, as ticks of that interval need it.
    ///
    /// # Errors
    /// None that a timer of our own can meet.
    pub fn run(&mut self, wanted: bool, interval: Duration, now_ns: u64) -> Result<(), SourceError> {
        let wanted = wanted && interval > EVERY;
        if wanted == self.runs {
            return Ok(());
        }
        let (first, every) = if wanted { (next(now_ns), EVERY) } else { (Duration::ZERO, Duration::ZERO) };
        let times = Itimerspec { it_interval: timespec(every), it_value: timespec(first) };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &times).map_err(failed)?;
        self.runs = wanted;
        Ok(())
    }

    /// Whether a pulse is due; several that were missed are one.
    ///
    /// # Errors
    /// The timer cannot be read.
    pub fn is_due(&self) -> Result<bool, SourceError> {
        expirations(&self.timer).map(|expirations| expirations > 0)
    }
}

/// How often a timer has expired since it was last asked. One that cannot be read is an error: it would stay readable, and whoever
/// waits for it would never sleep again.
///
/// # Errors
/// The timer cannot be read.
pub(super) fn expirations(timer: &OwnedFd) -> Result<u64, SourceError> {
    let mut expirations = [0; 8];
    match rustix::io::read(timer, &mut expirations) {
        Ok(_) => Ok(u64::from_ne_bytes(expirations)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(failed(error)),
    }
}

impl AsFd for TickTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// The next whole tenth.
fn next(now_ns: u64) -> Duration {
    let every_ns = u64::try_from(EVERY.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos((now_ns / every_ns + 1) * every_ns)
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(time.subsec_nanos()) }
}

fn failed(error: Errno) -> SourceError {
    SourceError::Timer { error: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::now_ns;
    use rustix::event::{PollFd, PollFlags, poll};

    #[test]
    fn a_pulse_comes_on_the_next_whole_tenth_and_only_while_it_runs() {
        let mut pulse = TickTimer::new().expect("a timer");
        let began_ns = now_ns();
        pulse.run(true, Duration::from_millis(500), began_ns).expect("it runs");
        poll(&mut [PollFd::new(&pulse, PollFlags::IN)], None).expect("it expires");
        assert!(now_ns() >= u64::try_from(next(began_ns).as_nanos()).expect("small"), "not before the tenth");
        let due = || pulse.is_due().expect("a timer of our own");
        assert!(due() && !due(), "one pulse is due once");
        pulse.run(true, EVERY, now_ns()).expect("it stands still");
        let wait = Timespec { tv_sec: 0, tv_nsec: 150_000_000 };
        let expired = poll(&mut [PollFd::new(&pulse, PollFlags::IN)], Some(&wait)).expect("a wait");
        assert_eq!(expired, 0, "ticks every 100 ms need no pulses between them");
    }
}
