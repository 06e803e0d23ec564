//! Whose turn it is. Tests of one file run beside each other; those of the next begin when they have ended, because some fill
//! the machine, count what happens on all of it or use the same addresses. How long each took is a line of the file that
//! `VNETTOP_TEST_TIMES` names.

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The file that has the turn, and how many of its tests run.
static TURN: Mutex<(String, usize)> = Mutex::new((String::new(), 0));
static ONE_ENDED: Condvar = Condvar::new();

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

/// A test that runs; dropped when its thread ends.
struct Running {
    test: String,
    since: Instant,
}

impl Running {
    /// A whole line at once, so that several tests may write beside each other; nothing where no file is named.
    fn note(&self) -> std::io::Result<()> {
        let Some(path) = std::env::var_os("VNETTOP_TEST_TIMES") else { return Ok(()) };
        let line = format!("{:6.1} s {}\n", self.since.elapsed().as_secs_f64(), self.test);
        OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.note() {
            eprintln!("the time of {} is not noted: {error}", self.test);
        }
        turn().1 -= 1;
        ONE_ENDED.notify_all();
    }
}

fn turn() -> MutexGuard<'static, (String, usize)> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no test of another file runs. The turn is this test's file's until the test ends.
pub fn take() {
    let thread = std::thread::current();
    // The harness names a test's thread as the test. With `--test-threads=1` all are on the main one, and nothing is to wait for.
    let Some((test, (file, _))) = thread.name().and_then(|name| Some((name, name.split_once("::")?))) else { return };
    RUNNING.with_borrow_mut(|running| {
        if running.is_some() {
            return;
        }
        let mut turn = turn();
        while turn.1 > 0 && turn.0 != file {
            turn = ONE_ENDED.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        *turn = (file.to_owned(), turn.1 + 1);
        *running = Some(Running { test: test.to_owned(), since: Instant::now() });
    });
}
