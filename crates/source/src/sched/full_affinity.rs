//! The mask that the kernel keeps of a thread, cores that are offline now included: `sched_getaffinity` leaves those out,
//! and a mask put back from it would stay narrow when they come online again. It reads one file and sets nothing.

use std::fmt::Display;
use std::{fs, io};
use vnettop_sample::CoreSet;

/// The cores a thread may run on once all are online (`Cpus_allowed_list` of `/proc/TASK/status`). The task is a number,
/// `self` (the main thread) or `thread-self` (the calling one).
///
/// # Errors
/// `NotFound` or ESRCH when the thread is gone; `InvalidData` where the file does not tell.
pub fn kept_affinity(task: impl Display) -> io::Result<CoreSet> {
    // A thread's name may hold any bytes.
    let status = fs::read(format!("/proc/{task}/status"))?;
    kept_in(&String::from_utf8_lossy(&status)).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn kept_in(status: &str) -> Option<CoreSet> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().parse().ok().filter(|cores: &CoreSet| !cores.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_is_offline_stays_in_the_mask() {
        // Of a machine whose core 1 was offline; sched_getaffinity gave 0,2-3 for the same thread.
        let status = "Name:\tsleep\nUmask:\t0022\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0\n";
        assert_eq!(kept_in(status).map(|cores| cores.to_string()).as_deref(), Some("0-3"), "as the kernel keeps it");
        for status in ["", "Name:\tsleep\n", "Cpus_allowed_list:\t\n", "Cpus_allowed_list:\tx\n"] {
            assert_eq!(kept_in(status), None, "{status:?} tells no mask");
        }
    }

    #[test]
    fn nobody_has_no_mask() {
        let error = kept_affinity(u32::MAX >> 1).expect_err("no such thread");
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "the caller can tell that it is gone");
    }
}
