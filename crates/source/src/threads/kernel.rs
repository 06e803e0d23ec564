//! Threads of the kernel that receive packets (threaded NAPI): where one last ran, where it may run.

use super::parse::{parse_allowed, parse_stat};
use std::path::Path;
use vnettop_sample::NapiThread;

/// The NAPI thread of that number; `None` when it cannot be read, or the number is another process': the kernel numbers its
/// threads for its own process namespace.
pub(crate) fn napi_thread(proc: &Path, pid: u32) -> Option<NapiThread> {
    let process = proc.join(pid.to_string());
    let stat = std::fs::read(process.join("stat")).ok()?;
    let stat = parse_stat(&stat).filter(|stat| stat.kernel && stat.comm.starts_with(b"napi/"))?;
    let allowed = parse_allowed(&std::fs::read(process.join("status")).ok()?)?;
    Some(NapiThread { pid, core: stat.core, allowed })
}
