//! What is read of other users' processes and can be made to wait by them: command lines (behind the lock of a process'
//! memory, which a page fault on a file system of its own keeps for as long as it likes), what a descriptor is (behind
//! the lock of an epoll), files that they have open. A thread of its own reads it; one that does not come back in time
//! is left behind, and until it does come back nothing more is read this way. `tests/pure/house.rs` says which files may ask.

use crate::proc_file;
use crate::sched;
use std::cell::RefCell;
use std::fmt::Display;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use vnettop_sample::{Problem, ProblemSource};

/// Total time that the sampler may wait for these reads in each [`WINDOW`]; an answer takes some 50 µs.
const PATIENCE: Duration = Duration::from_millis(100);
const WINDOW: Duration = Duration::from_secs(1);
/// Delay of a reader from which it is reported, s: on a full machine one may just not have had its turn.
const REPORTED_AFTER: Duration = Duration::from_secs(1);
/// What is read of a command line at most, bytes.
const LONGEST: u64 = 256 * 1024;

thread_local! {
    /// The reader of the sampler's thread, which its many callers share.
    static ASIDE: RefCell<ReaderThread> = RefCell::new(ReaderThread::default());
}

/// The thread that reads, and the time spent waiting for it.
#[derive(Debug, Default)]
struct ReaderThread {
    since: Option<Instant>,
    waited: Duration,
    /// The reader that was left behind, since when, and what it was to read.
    behind: Option<(JoinHandle<()>, Instant, String)>,
}

/// Does `work`, which reads what `of` says, on a thread that may be left behind; `None` when it did not come back in time, or
/// when an earlier one has not come back yet.
pub(super) fn ask<T: Send + 'static>(of: impl Display, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    ASIDE.with_borrow_mut(|aside| aside.ask(of, work))
}

/// The bytes of `/proc/PROCESS/cmdline`, a zero byte behind each argument; empty for a process that has ended, `None` when it
/// could not be read.
pub(super) fn cmdline(proc: &Path, process: impl Display) -> Option<Vec<u8>> {
    let directory = proc.join(process.to_string());
    ask(format_args!("process {process}"), move || read_cmdline(&directory))
}

/// The command line of the process with this directory of `/proc`, for a caller that may be made to wait.
pub(super) fn read_cmdline(process: &Path) -> Vec<u8> {
    proc_file::beginning(&process.join("cmdline"), LONGEST).unwrap_or_default()
}

/// The problem that a reader has hung for [`REPORTED_AFTER`], while one has.
pub(super) fn problem() -> Option<Problem> {
    let (of, since) = ASIDE.with_borrow_mut(|aside| {
        aside.is_behind();
        aside.behind.as_ref().map(|(_, since, of)| (of.clone(), *since))
    })?;
    (since.elapsed() >= REPORTED_AFTER).then(|| Problem {
        source: ProblemSource::Processes,
        text: format!(
            "reading /proc of {of} hangs (FUSE?): new benchmarks and iperf3 output are not read until it answers or exits"
        ),
    })
}

impl ReaderThread {
    fn is_behind(&mut self) -> bool {
        if self.behind.as_ref().is_some_and(|(reader, ..)| reader.is_finished()) {
            self.behind = None;
        }
        self.behind.is_some()
    }

    fn ask<T: Send + 'static>(&mut self, of: impl Display, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if self.is_behind() {
            return None;
        }
        let began = Instant::now();
        if self.since.is_none_or(|since| began.duration_since(since) >= WINDOW) {
            (self.since, self.waited) = (Some(began), Duration::ZERO);
        }
        let left = PATIENCE.checked_sub(self.waited).filter(|left| !left.is_zero())?;
        let (answer, answered) = sync_channel(1);
        let read = move || drop(answer.send(work()));
        let reader = sched::with_heirs(|| Builder::new().name("reader".to_owned()).spawn(read)).ok()?;
        let reported = answered.recv_timeout(left);
        self.waited += began.elapsed();
        if matches!(reported, Err(RecvTimeoutError::Timeout)) {
            self.behind = Some((reader, began, of.to_string()));
        }
        reported.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn who_does_not_answer_is_waited_for_once() {
        let mut aside = ReaderThread::default();
        assert_eq!(aside.ask("a", || 1), Some(1), "who answers is heard");
        let (release, blocked) = channel::<()>();
        let began = Instant::now();
        assert_eq!(aside.ask("process 7", move || blocked.recv().is_err()), None, "who does not is left behind");
        assert!(began.elapsed() >= PATIENCE * 4 / 5, "after a while");
        let began = Instant::now();
        let asked = (0..1000).filter_map(|_| aside.ask("b", || 2)).count();
        assert_eq!(asked, 0, "nobody else is asked meanwhile: there is one reader");
        assert!(began.elapsed() < PATIENCE, "and nobody waits for it again");
        assert_eq!(
            aside.behind.as_ref().map(|(_, _, of)| of.as_str()),
            Some("process 7"),
            "whose fault it is, is known"
        );
        drop(release);
        while aside.is_behind() {
            std::thread::yield_now();
        }
        aside.since = None;
        assert_eq!(aside.ask("b", || 2), Some(2), "when it has come back everybody is asked again");
    }

    #[test]
    fn many_slow_answers_cost_no_more_than_one() {
        let mut aside = ReaderThread::default();
        let began = Instant::now();
        for _ in 0..50 {
            aside.ask("a", || std::thread::sleep(PATIENCE / 4));
        }
        assert!(began.elapsed() < WINDOW, "50 times 25 ms would be 1.25 s: {:?}", began.elapsed());
    }

    #[test]
    fn a_command_line_is_read_and_nobodys_is_empty() {
        let own = cmdline(Path::new("/proc"), "self").expect("it answers");
        let first = std::env::args().next().expect("a name");
        assert!(own.starts_with(first.as_bytes()), "{}", String::from_utf8_lossy(&own));
        assert_eq!(cmdline(Path::new("/proc"), u32::MAX), Some(Vec::new()), "no such process");
    }
}
