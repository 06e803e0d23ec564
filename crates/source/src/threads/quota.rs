//! CPU quotas of control groups: the narrowest on the way from a process' group to the root, and how often it stopped them.
//! Where there is none, nothing is read but the files that say so, as seldom as the cpuset.

use crate::proc_file;
use procfs::ProcessCGroup;
use std::path::{Path, PathBuf};
use vnettop_sample::Quota;

/// How often the periods of a quota are read, ns.
pub(super) const EVERY_NS: u64 = 450_000_000;

/// A group that has a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    directory: PathBuf,
    quota_us: u64,
    period_us: u64,
}

impl Group {
    /// The one with the narrowest quota of a process' groups; none where none has a quota, or that cannot be read. `mounts` is
    /// where control groups are mounted.
    pub(super) fn among(groups: &[ProcessCGroup], mounts: &Path) -> Option<Self> {
        let v1 = groups.iter().find(|group| group.controllers.iter().any(|name| name == "cpu"));
        let v2 = groups.iter().find(|group| group.hierarchy == 0 && group.controllers.is_empty());
        // It is mounted under the names of its controllers; `cpu` is mostly a link to that, but nobody has to make one.
        let in_v1 = |mount: &Path| narrowest(mount, v1?, v1_quota);
        let v1_name = v1.map(|group| group.controllers.join(",")).unwrap_or_default();
        let in_v1 = in_v1(&mounts.join("cpu")).or_else(|| in_v1(&mounts.join(v1_name)));
        let in_v2 = |mount: &Path| narrowest(mount, v2?, v2_quota);
        let found = [in_v1, in_v2(mounts), in_v2(&mounts.join("unified"))];
        found.into_iter().flatten().min_by(|one, other| one.cores().total_cmp(&other.cores()))
    }

    fn cores(&self) -> f64 {
        self.quota_us as f64 / self.period_us as f64
    }

    /// What `cpu.stat` says of it now; none when the group is gone.
    pub(super) fn read(&self) -> Option<Quota> {
        let text = proc_file::text(&self.directory.join("cpu.stat")).ok()?;
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
        Some(Quota {
            quota_us: self.quota_us,
            period_us: self.period_us,
            periods: value("nr_periods ")?,
            throttled: value("nr_throttled ")?,
        })
    }
}

/// The group's directory and those above it, up to the mount point. One outside of this cgroup namespace is shown as `/../…`,
/// and is not below the mount.
pub(super) fn upwards(mount: &Path, group: &ProcessCGroup) -> impl Iterator<Item = PathBuf> {
    let below = group.pathname.strip_prefix('/').map(Path::new);
    let below = below.filter(|below| below.components().all(|part| part.as_os_str() != ".."));
    below.into_iter().flat_map(Path::ancestors).map(|below| mount.join(below))
}

/// The narrowest from the group upwards.
fn narrowest(mount: &Path, group: &ProcessCGroup, quota: fn(&Path) -> Option<(u64, u64)>) -> Option<Group> {
    let all = upwards(mount, group).filter_map(|directory| {
        let (quota_us, period_us) = quota(&directory).filter(|&(quota_us, period_us)| quota_us > 0 && period_us > 0)?;
        Some(Group { directory, quota_us, period_us })
    });
    all.min_by(|one, other| one.cores().total_cmp(&other.cores()))
}

/// `max 100000` where there is none.
fn v2_quota(directory: &Path) -> Option<(u64, u64)> {
    let text = proc_file::text(&directory.join("cpu.max")).ok()?;
    let (quota, period) = text.split_once(' ')?;
    Some((quota.parse().ok()?, period.parse().ok()?))
}

/// -1 where there is none.
fn v1_quota(directory: &Path) -> Option<(u64, u64)> {
    let number = |file| proc_file::text(&directory.join(file)).ok()?.parse().ok();
    Some((number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs::{FromRead, ProcessCGroups};

    /// What is told of a process in these groups, with these files below the mount of control groups.
    fn reported(groups: &str, files: &[(&str, &str)]) -> Option<Quota> {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (file, text) in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("writable");
            std::fs::write(path, text).expect("writable");
        }
        let groups = ProcessCGroups::from_read(groups.as_bytes()).expect("as the kernel writes it").0;
        Group::among(&groups, root.path())?.read()
    }

    const STAT: &str = "usage_usec 5\nnr_periods 40\nnr_throttled 38\nthrottled_usec 9\n";
    const EXPECTED: Quota = Quota { quota_us: 30_000, period_us: 100_000, periods: 40, throttled: 38 };

    #[test]
    fn the_narrowest_quota_on_the_way_to_the_root_counts() {
        let none = ("a/b/cpu.max", "max 100000\n");
        assert_eq!(reported("0::/a/b\n", &[none]), None, "no quota");
        let narrow = [("a/cpu.max", "30000 100000\n"), ("a/cpu.stat", STAT)];
        assert_eq!(reported("0::/a/b\n", &[none, narrow[0], narrow[1]]), Some(EXPECTED), "its parent's");
        let wide = ("a/b/cpu.max", "200000 100000\n");
        assert_eq!(reported("0::/a/b\n", &[wide, narrow[0], narrow[1]]), Some(EXPECTED), "the narrower one");
        assert_eq!(reported("0::/../a\n", &narrow), None, "a group outside of the namespace is not below the mount");
    }

    #[test]
    fn version_one_and_hybrid_mounts_have_it_elsewhere() {
        let v1 =
            [("cpu/d/cpu.cfs_quota_us", "30000\n"), ("cpu/d/cpu.cfs_period_us", "100000\n"), ("cpu/d/cpu.stat", STAT)];
        assert_eq!(reported("4:cpu,cpuacct:/d\n0::/\n", &v1), Some(EXPECTED), "v1");
        let together = v1.map(|(file, text)| (file.replace("cpu/", "cpu,cpuacct/"), text));
        let together: Vec<_> = together.iter().map(|(file, text)| (file.as_str(), *text)).collect();
        assert_eq!(reported("4:cpu,cpuacct:/d\n0::/\n", &together), Some(EXPECTED), "v1, without a link named cpu");
        let none = [("cpu/d/cpu.cfs_quota_us", "-1\n"), v1[1], v1[2]];
        assert_eq!(reported("4:cpu,cpuacct:/d\n0::/\n", &none), None, "-1 is none");
        let hybrid = [("unified/x/cpu.max", "30000 100000\n"), ("unified/x/cpu.stat", STAT)];
        assert_eq!(reported("1:name=systemd:/x\n0::/x\n", &hybrid), Some(EXPECTED), "hybrid mounts");
    }
}
