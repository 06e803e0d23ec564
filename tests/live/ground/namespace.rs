//! A network namespace of a test's own, and the tools that tell what is true in it. The namespace belongs to one thread
//! and ends with it, with every link in it. It does not touch the host's links.
#![allow(unsafe_code, reason = "unshare has no safe wrapper; a thread of its own enters the namespace")]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its namespace has failed")]

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Descriptors are counted per process, and two storms at once on two cores prove nothing: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs a test in a fresh namespace with `lo` up.
pub fn live(test: impl FnOnce() + Send) {
    super::needs(&["ip", "ethtool"]);
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    in_namespace(|| {
        ip("link set lo up");
        test();
    });
}

/// Runs something in a fresh network namespace, on a thread of its own.
pub fn in_namespace<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = std::thread::scope(|scope| {
        let entered = || {
            // SAFETY: only this thread's network namespace is left; no descriptor table is unshared.
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.unwrap();
            work()
        };
        scope.spawn(entered).join()
    });
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs `ip` in the calling thread's namespace; words are split at spaces.
pub fn ip(words: &str) {
    run("ip", words);
}

/// Runs `ip -batch` with these lines.
pub fn ip_batch(lines: impl Iterator<Item = String>) {
    let mut child = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let lines = lines.collect::<Vec<_>>().join("\n") + "\n";
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "`ip -batch` failed");
}

/// Runs a tool and returns what it printed.
pub fn run(tool: &str, words: &str) -> String {
    let output = Command::new(tool).args(words.split(' ')).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "`{tool} {words}` failed: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `ip -d -j link`.
pub fn ip_links() -> Vec<serde_json::Value> {
    let links: serde_json::Value = serde_json::from_str(&run("ip", "-d -j link")).unwrap();
    links.as_array().unwrap().clone()
}

/// What `ethtool NAME` says after "Speed:", Mb/s; none for "Unknown!" or nothing.
pub fn ethtool_speed(name: &str) -> Option<u32> {
    let output = Command::new("ethtool").arg(name).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let speed = text.lines().find_map(|line| line.trim().strip_prefix("Speed: "))?;
    speed.strip_suffix("Mb/s")?.parse().ok()
}
