//! Drops that no BPF program is told of. A kernel may run none while certain threads are current, as a virtual machine's whose
//! init is its host's agent and is protected so: a softirq that interrupts one of those drops packets unseen. ftrace has them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const INSTANCES: &str = "/sys/kernel/tracing/instances";

/// An ftrace instance that records what is dropped while a thread of init is current.
pub struct Unseen(PathBuf);

impl Unseen {
    /// Records from now on.
    pub fn begin() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let instance = Path::new(INSTANCES).join(format!("live-dropped-{}-{number}", std::process::id()));
        fs::create_dir(&instance).expect("an instance can be made");
        let unseen = Self(instance);
        let threads = fs::read_dir("/proc/1/task").expect("init is there").flatten();
        let filter: Vec<String> =
            threads.map(|thread| format!("common_pid=={}", thread.file_name().display())).collect();
        for (file, text) in [("events/skb/kfree_skb/filter", &*filter.join("||")), ("events/skb/kfree_skb/enable", "1")]
        {
            fs::write(unseen.0.join(file), text).expect("the instance takes it");
        }
        unseen
    }

    /// How many until now, by reason.
    pub fn by_reason(&self) -> BTreeMap<String, f64> {
        let text = fs::read(self.0.join("trace")).expect("the trace is readable");
        let mut sums = BTreeMap::new();
        for line in String::from_utf8_lossy(&text).lines() {
            if let Some((_, reason)) = line.rsplit_once(" reason: ") {
                *sums.entry(reason.to_owned()).or_insert(0.0) += 1.0;
            }
        }
        sums
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("events/skb/kfree_skb/enable"), "0");
        let _ = fs::remove_dir(&self.0);
    }
}

/// Whether so many packets told are all of a count, but for those that nobody could see.
pub fn is_all(told: f64, counted: f64, unseen: f64) -> bool {
    (-0.5..=unseen + 0.5).contains(&(counted - told))
}
