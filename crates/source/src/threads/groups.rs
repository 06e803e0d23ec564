//! What the control groups of a watched process allow it, asked now and then rather than on every tick: the cores and memory
//! nodes of its cpuset, and the narrowest CPU quota. Which benchmark it is, `source::benchmarks` tells.

use super::quota;
use crate::{Roots, proc_file};
use procfs::{FromRead, ProcessCGroup, ProcessCGroups};
use std::path::{Path, PathBuf};
use vnettop_sample::CoreSet;

/// How long the limits found for one process stand for the next one of the same groups, ns: the processes of a benchmark are
/// mostly of one group, and finding its limits takes some 30 system calls.
const SAME_GROUPS_NS: u64 = 1_000_000_000;

/// What the groups of a process allow it; `None` when a limit could not be read, or does not exist.
#[derive(Debug, Clone, Default)]
pub(super) struct Limits {
    pub cores: Option<CoreSet>,
    pub memory_nodes: Option<CoreSet>,
    /// The group whose quota is the narrowest.
    pub quota: Option<quota::Group>,
}

/// The limits of processes, with the last ones found.
#[derive(Debug, Default)]
pub(super) struct GroupLimits {
    /// The text of `/proc/PID/cgroup`.
    groups: String,
    limits: Limits,
    at_ns: u64,
}

impl GroupLimits {
    /// What the groups of a process allow it now.
    pub(super) fn of(&mut self, roots: &Roots, pid: u32, now_ns: u64) -> Limits {
        let Ok(groups) = proc_file::text(&roots.proc.join(pid.to_string()).join("cgroup")) else {
            return Limits::default();
        };
        if self.groups != groups || now_ns.saturating_sub(self.at_ns) >= SAME_GROUPS_NS {
            *self = Self { limits: limits(roots, &groups), groups, at_ns: now_ns };
        }
        self.limits.clone()
    }
}

/// The limits of these groups: a cpuset of v1 where a hierarchy has it, else v2. A group without the file (the controller is
/// off, or the mount shows only a part of the tree) has what its parent has.
fn limits(roots: &Roots, groups: &str) -> Limits {
    let Ok(groups) = ProcessCGroups::from_read(groups.as_bytes()) else { return Limits::default() };
    let mounts = roots.sys.join("fs/cgroup");
    let v1 = groups.0.iter().find(|group| group.controllers.iter().any(|name| name == "cpuset"));
    let v2 = groups.0.iter().find(|group| group.hierarchy == 0 && group.controllers.is_empty());
    let in_v1 = |files: &[&str]| effective(&mounts.join("cpuset"), v1?, files);
    let in_v2 = |mount: &Path, file| effective(mount, v2?, &[file]);
    let found = |v1_files: &[&str], v2_file| {
        in_v1(v1_files).or_else(|| in_v2(&mounts, v2_file)).or_else(|| in_v2(&mounts.join("unified"), v2_file))
    };
    Limits {
        cores: found(&["cpuset.effective_cpus", "cpuset.cpus"], "cpuset.cpus.effective"),
        memory_nodes: found(&["cpuset.effective_mems", "cpuset.mems"], "cpuset.mems.effective"),
        quota: quota::Group::among(&groups.0, &mounts),
    }
}

/// The first of the files that is there, from the group upwards to the mount point.
fn effective(mount: &Path, group: &ProcessCGroup, files: &[&str]) -> Option<CoreSet> {
    let text = |directory: PathBuf| files.iter().find_map(|file| proc_file::text(&directory.join(file)).ok());
    quota::upwards(mount, group).find_map(text)?.parse().ok().filter(|cores: &CoreSet| !cores.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("writable");
        std::fs::write(path, text).expect("writable");
    }

    fn allowed(groups: &str, files: &[(&str, &str)]) -> Option<String> {
        let root = tempfile::tempdir().expect("a temporary directory");
        let roots = Roots { proc: root.path().join("proc"), sys: root.path().join("sys") };
        write(&roots.proc, "7/cgroup", groups);
        for (file, text) in files {
            write(&roots.sys.join("fs/cgroup"), file, text);
        }
        GroupLimits::default().of(&roots, 7, 0).cores.map(|set| set.to_string())
    }

    #[test]
    fn the_cpuset_is_found_in_both_versions_and_upwards() {
        let root = ("cpuset.cpus.effective", "0-127\n");
        assert_eq!(allowed("0::/a/b\n", &[root]).as_deref(), Some("0-127"), "v2 without the controller: the root's");
        let group = ("a/cpuset.cpus.effective", "4-7\n");
        assert_eq!(allowed("0::/a/b\n", &[root, group]).as_deref(), Some("4-7"), "v2: the nearest ancestor's");
        let v1 = ("cpuset/d/cpuset.cpus", "1,3\n");
        assert_eq!(allowed("3:cpuset:/d\n0::/\n", &[root, v1]).as_deref(), Some("1,3"), "v1 goes before v2");
        let effective = ("cpuset/d/cpuset.effective_cpus", "1\n");
        assert_eq!(allowed("3:cpuset:/d\n", &[v1, effective]).as_deref(), Some("1"), "what is in force goes first");
        let hybrid = ("unified/x/cpuset.cpus.effective", "2\n");
        assert_eq!(allowed("1:name=systemd:/x\n0::/x\n", &[hybrid]).as_deref(), Some("2"), "hybrid mounts");
        assert_eq!(allowed("0::/../b\n", &[root]), None, "a group outside of the namespace is not below the mount");
        assert_eq!(allowed("0::/a\n", &[]), None, "no cgroup file system: unknown");
    }

    #[test]
    fn the_memory_nodes_stand_beside_the_cores() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let roots = Roots { proc: root.path().join("proc"), sys: root.path().join("sys") };
        write(&roots.proc, "7/cgroup", "0::/a\n");
        write(&roots.sys, "fs/cgroup/a/cpuset.mems.effective", "1\n");
        let nodes = GroupLimits::default().of(&roots, 7, 0).memory_nodes.map(|set| set.to_string());
        assert_eq!(nodes.as_deref(), Some("1"), "the container's memory is on node 1");
    }

    #[test]
    fn a_group_that_another_process_was_just_found_in_is_not_looked_up_again() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let roots = Roots { proc: root.path().join("proc"), sys: root.path().join("sys") };
        for (pid, group) in [(7, "0::/a\n"), (8, "0::/a\n"), (9, "0::/b\n")] {
            write(&roots.proc, &format!("{pid}/cgroup"), group);
        }
        write(&roots.sys, "fs/cgroup/a/cpuset.cpus.effective", "0-3\n");
        write(&roots.sys, "fs/cgroup/b/cpuset.cpus.effective", "5\n");
        let mut limits = GroupLimits::default();
        let mut of = |pid, now_ns| limits.of(&roots, pid, now_ns).cores.map(|set| set.to_string());
        assert_eq!(of(7, 0).as_deref(), Some("0-3"));
        write(&roots.sys, "fs/cgroup/a/cpuset.cpus.effective", "0-1\n");
        assert_eq!(of(8, SAME_GROUPS_NS - 1).as_deref(), Some("0-3"), "the same group, a moment later");
        assert_eq!(of(9, SAME_GROUPS_NS - 1).as_deref(), Some("5"), "another group");
        assert_eq!(of(8, SAME_GROUPS_NS).as_deref(), Some("0-1"), "the same group, looked up anew");
    }
}
