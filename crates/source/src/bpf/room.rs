//! Whether there is memory for the kernel's types: they take ten times their size for a moment, and in a control group with less
//! the kernel kills without a word.

use super::Refusal;
use std::fs;
use std::path::{Path, PathBuf};

/// Memory needed: this many times the types' size, plus `BESIDE` bytes; 41 to 52 MB were seen for types of 5.5 MB.
const TIMES: u64 = 8;
const BESIDE: u64 = 12 << 20;
const MB: u64 = 1_000_000;

/// Files of a version: the limit, what is used, and the keys of what the kernel takes back by itself.
struct Files {
    limit: &'static str,
    used: &'static str,
    cached: [&'static str; 2],
}

const V1: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cached: ["total_inactive_file ", "total_active_file "],
};
const V2: Files = Files { limit: "memory.max", used: "memory.current", cached: ["inactive_file ", "active_file "] };

/// An error where types of this size do not fit; `sys` is where control groups are mounted in.
pub(super) fn for_types(sys: &Path, size: u64) -> Result<(), Refusal> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    fits(left(&groups, &sys.join("fs/cgroup")), size)
}

fn fits(left: Option<u64>, size: u64) -> Result<(), Refusal> {
    let needed = size.saturating_mul(TIMES).saturating_add(BESIDE);
    match left {
        Some(left) if left < needed => Err(Refusal::NoMemory { needed_mb: needed.div_ceil(MB), left_mb: left / MB }),
        _ => Ok(()),
    }
}

/// What the narrowest of the groups leaves, from the own one up to the mount, bytes; none without a limit.
fn left(groups: &str, mounts: &Path) -> Option<u64> {
    let lines = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        Some([parts.next()?, parts.next()?, parts.next()?])
    });
    let each = lines.flat_map(|[number, controllers, path]| {
        let mut all: Vec<(PathBuf, &Files)> = Vec::new();
        if controllers.split(',').any(|name| name == "memory") {
            all.push((mounts.join("memory"), &V1));
        } else if number == "0" && controllers.is_empty() {
            all.extend([(mounts.to_owned(), &V2), (mounts.join("unified"), &V2)]);
        }
        all.into_iter().flat_map(|(mount, files)| upwards(path).filter_map(move |below| files.left(&mount.join(below))))
    });
    each.min()
}

/// The group and those above it; one outside of this namespace (`/../x`) is not below the mount.
fn upwards(path: &str) -> impl Iterator<Item = &Path> {
    let below = path.strip_prefix('/').filter(|below| !below.split('/').any(|part| part == "..")).map(Path::new);
    below.unwrap_or(Path::new("")).ancestors()
}

impl Files {
    fn left(&self, group: &Path) -> Option<u64> {
        let number = |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
        // `max`, or in version 1 nearly 2^63.
        let limit = number(self.limit).filter(|&limit| limit < 1 << 62)?;
        let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let value = |key: &str| stat.lines().find_map(|line| line.strip_prefix(key)?.parse::<u64>().ok()).unwrap_or(0);
        let used = number(self.used).unwrap_or(0).saturating_sub(self.cached.map(value).iter().sum());
        Some(limit.saturating_sub(used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (file, text) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("writable");
            fs::write(path, text).expect("writable");
        }
        left(groups, root.path())
    }

    #[test]
    fn a_small_memory_cgroup_is_noticed_before_it_kills() {
        let refused = fits(Some(32 * MB), 5_500_000).expect_err("32 MB are too few");
        assert!(matches!(refused, Refusal::NoMemory { needed_mb: 57, left_mb: 32 }), "{refused:?}");
        assert!(fits(Some(128 * MB), 5_500_000).is_ok() && fits(None, 5_500_000).is_ok(), "and these are enough");
    }

    #[test]
    fn the_narrowest_limit_of_all_groups_above_counts() {
        let v2 = [
            ("a/b/memory.max", "max\n"),
            ("a/memory.max", "33554432\n"),
            ("a/memory.current", "8388608\n"),
            ("a/memory.stat", "anon 1\ninactive_file 2097152\nactive_file 2097152\n"),
        ];
        assert_eq!(reported("0::/a/b\n", &v2), Some(28 << 20), "its parent's, less what is used and not cached");
        assert_eq!(reported("0::/other\n", &v2), None, "no limit");
        let v1 = [
            ("memory/d/memory.limit_in_bytes", "33554432\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(reported("4:memory:/d/e\n0::/\n", &v1), Some(32 << 20), "version 1");
        // A container without a namespace of its own sees its group as the mount, whatever its name outside.
        assert_eq!(reported("0::/../x\n", &[("memory.max", "1000\n")]), Some(1000));
    }
}
