//! Whose turn it is. Tests that look at what is there run beside each other. Those of `measures` and `release` run file by file, two
//! of a file at a time: some fill the machine, or count what happens on all of it. How long each took is a line of the file that
//! `VNETTOP_TEST_TIMES` names.

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The lots whose names start so measure.
const MEASURE: [&str; 2] = ["measures::", "release::"];
/// Tests of a file there that run at once.
const MOST_MEASURING: usize = 2;

/// The lot or the file that has the turn, and how many of its tests run.
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

/// What has the turn while this test runs: its file where it measures, else the lot of all that do not.
fn turn_of(test: &str) -> &str {
    let rest = MEASURE.iter().find_map(|lot| test.strip_prefix(lot));
    rest.map_or("", |rest| rest.split("::").next().unwrap_or(rest))
}

/// Keeps the other tests of the file out that ask for this: each of them has cores of its own.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no test runs that may not run beside this one.
pub fn take() {
    let thread = std::thread::current();
    // The harness names a test's thread as the test. With `--test-threads=1` all are on the main one, and nothing is to wait for.
    let Some(test) = thread.name().filter(|name| name.contains("::")) else { return };
    let own = turn_of(test);
    RUNNING.with_borrow_mut(|running| {
        if running.is_some() {
            return;
        }
        let mut turn = turn();
        while turn.1 > 0 && (turn.0 != own || (!own.is_empty() && turn.1 >= MOST_MEASURING)) {
            turn = ONE_ENDED.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        *turn = (own.to_owned(), turn.1 + 1);
        *running = Some(Running { test: test.to_owned(), since: Instant::now() });
    });
}
