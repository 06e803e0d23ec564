//! The stop of job control, as the kernel does it.
#![allow(unsafe_code, reason = "the disposition of a signal has no safe wrapper")]

use rustix::process::{Signal, getpid, kill_process};
use std::ptr;

/// Stops this process as SIGTSTP does where nobody takes it over, and returns when somebody has continued it: at once where nobody could
/// (an orphaned process group), because the kernel does not stop it then.
pub fn suspend() {
    // SAFETY: `usual` and `taken_over` are live, whole `sigaction` structures; zeroed is the default disposition with no flags and an empty mask.
    // What was in force before is put back as it was, and no handler of ours runs in between that would need it.
    unsafe {
        let usual: libc::sigaction = std::mem::zeroed();
        let mut taken_over: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGTSTP, &raw const usual, &raw mut taken_over) != 0 {
            return;
        }
        let _ = kill_process(getpid(), Signal::TSTP);
        libc::sigaction(libc::SIGTSTP, &raw const taken_over, ptr::null_mut());
    }
}
