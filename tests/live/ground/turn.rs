//! Whose turn it is. Tests of one file run beside each other; those of the next begin when they have ended, because some fill
//! the machine, count what happens on all of it or use the same addresses.

use std::cell::RefCell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The file that has the turn, and how many of its tests run.
static TURN: Mutex<(String, usize)> = Mutex::new((String::new(), 0));
static ONE_ENDED: Condvar = Condvar::new();

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

/// A test that runs; dropped when its thread ends.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
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
    let Some((file, _)) = thread.name().and_then(|name| name.split_once("::")) else { return };
    RUNNING.with_borrow_mut(|running| {
        if running.is_some() {
            return;
        }
        let mut turn = turn();
        while turn.1 > 0 && turn.0 != file {
            turn = ONE_ENDED.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        *turn = (file.to_owned(), turn.1 + 1);
        *running = Some(Running);
    });
}
