//! Control groups: one whose processes get a fifth of a core, one that is served before all others, an ordinary one.

use super::await_that;
use std::path::{Path, PathBuf};

/// A cgroup of its own, removed with it.
pub struct Group(PathBuf);

impl Group {
    /// A fifth of a core.
    pub fn fifth() -> Self {
        let quota = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "20000")];
        Self::new("fifth", &quota, &[("cpu.max", "20000 100000")])
    }

    /// Real-time threads of it get a fifth of a core; `None` where the kernel has no such groups (v1, `RT_GROUP_SCHED`).
    pub fn real_time_fifth() -> Option<Self> {
        let is_known = Path::new("/sys/fs/cgroup/cpu/cpu.rt_runtime_us").exists();
        let quota = [("cpu.rt_period_us", "100000"), ("cpu.rt_runtime_us", "20000")];
        is_known.then(|| Self::new("real-time", &quota, &[]))
    }

    /// The largest share of a core that others want, too.
    pub fn first() -> Self {
        Self::new("first", &[("cpu.shares", "262144")], &[("cpu.weight", "10000")])
    }

    /// The share that a session has.
    pub fn ordinary() -> Self {
        Self::new("ordinary", &[("cpu.shares", "1024")], &[("cpu.weight", "100")])
    }

    /// Without a process, with these files of either hierarchy.
    fn new(name: &str, v1: &[(&str, &str)], v2: &[(&str, &str)]) -> Self {
        let (old, unified) = (PathBuf::from("/sys/fs/cgroup/cpu"), PathBuf::from("/sys/fs/cgroup"));
        let (mount, limits) = if old.join("cpu.cfs_period_us").exists() || old.join("cpu.shares").exists() {
            (old, v1)
        } else {
            std::fs::write(unified.join("cgroup.subtree_control"), "+cpu").expect("the cpu controller is there");
            (unified, v2)
        };
        let group = mount.join(format!("vnettop-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&group).expect("a cgroup can be made");
        for (file, text) in limits {
            std::fs::write(group.join(file), text).expect("it can be limited");
        }
        Self(group)
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A process of it from now on.
    pub fn take(&self, pid: u32) {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string()).expect("it can be put there");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = std::fs::remove_dir(&self.0);
            return;
        }
        // The kernel lets go of the last process of a group a moment after its end.
        await_that("the cgroup can be removed", 5, || std::fs::remove_dir(&self.0).is_ok());
    }
}
