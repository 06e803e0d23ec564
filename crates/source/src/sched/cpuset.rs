//! The cores that the cpuset of a thread's cgroup allows it now: the kernel shows no mask that goes beyond them. It reads
//! two files and sets nothing.

use std::fmt::Display;
use std::fs;
use std::path::Path;
use vnettop_sample::CoreSet;

/// Where the kernel says it: version 1, version 2, both beside each other.
const FILES: [(&str, &str); 4] = [
    ("cpuset", "cpuset.effective_cpus"),
    ("cpuset", "cpuset.cpus"),
    ("", "cpuset.cpus.effective"),
    ("unified", "cpuset.cpus.effective"),
];

/// The cores that its cpuset allows a task (`/proc/TASK/cpuset` names the group); none where that is not to be seen.
pub fn cpuset(task: impl Display) -> Option<CoreSet> {
    let group = fs::read_to_string(format!("/proc/{task}/cpuset")).ok()?;
    allowed(Path::new("/sys/fs/cgroup"), group.strip_suffix('\n').unwrap_or(&group))
}

fn allowed(mounts: &Path, group: &str) -> Option<CoreSet> {
    let below = group.strip_prefix('/')?;
    // A group outside of this cgroup namespace is shown as `/../…`; it is not below the mount.
    if below.split('/').any(|part| part == "..") {
        return None;
    }
    let read = |(mount, file): &(&str, &str)| fs::read_to_string(mounts.join(mount).join(below).join(file)).ok();
    let list = FILES.iter().find_map(read)?;
    list.trim().parse().ok().filter(|cores: &CoreSet| !cores.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_in_both_versions() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a directory")).expect("writable");
            fs::write(path, text).expect("writable");
        };
        let of = |group: &str| allowed(root.path(), group).map(|cores| cores.to_string());
        write("a/b/cpuset.cpus.effective", "4-7\n");
        assert_eq!(of("/a/b").as_deref(), Some("4-7"), "version 2");
        write("cpuset/a/b/cpuset.cpus", "2-3\n");
        assert_eq!(of("/a/b").as_deref(), Some("2-3"), "version 1 goes before version 2");
        write("cpuset/a/b/cpuset.effective_cpus", "2\n");
        assert_eq!(of("/a/b").as_deref(), Some("2"), "what is in force before what was asked for");
        write("unified/cpuset.cpus.effective", "\n");
        assert_eq!([of("/"), of("/../b"), of("x")], [None, None, None], "no core, no group below the mount, no group");
    }

    #[test]
    fn the_own_mask_is_within_the_own_cpuset() {
        let Some(allowed) = cpuset("self") else {
            println!("NOT RUN: the_own_mask_is_within_the_own_cpuset: no cpuset is mounted");
            return;
        };
        let own = super::super::kept_affinity("self").expect("readable");
        assert!(own.is_subset(&allowed), "{own} is within {allowed}");
    }
}
