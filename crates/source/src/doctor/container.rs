//! Whether vnettop is in a container, by what an engine mounts into each one: also with the machine's own namespaces, and for a
//! user who may look at no other process. A file that was left behind (`/.dockerenv`) says nothing of where it is now.

use vnettop_sample::Containment;

/// File that Docker's engines, and those that Kubernetes starts, mount into a container, with any network and name.
const DOCKER: &str = "/etc/hostname";
/// File that Podman mounts into a container too.
const PODMAN: &str = "/run/.containerenv";

/// What `mountinfo` of vnettop itself says, or else a process namespace that is not the machine's.
pub(super) fn containment(mountinfo: &str, is_elsewhere: bool) -> Containment {
    // Number, parent, device, root, mount point.
    let is_mounted = |place: &str| mountinfo.lines().any(|line| line.split(' ').nth(4) == Some(place));
    if is_mounted(PODMAN) {
        Containment::Podman
    } else if is_mounted(DOCKER) {
        Containment::Docker
    } else if is_elsewhere {
        Containment::PidNamespace
    } else {
        Containment::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw
";
    /// Docker 20.10 with `--pid=host --net=host` and a private control group namespace.
    const DOCKERS: &str = "\
77 56 0:40 / / rw,relatime master:2 - overlay overlay rw,lowerdir=/l/A:/l/B,upperdir=/u,workdir=/w
81 77 0:22 / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs rw
82 81 0:38 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw
85 77 254:0 /var/lib/docker/containers/23369e/resolv.conf /etc/resolv.conf rw,relatime - ext4 /dev/vda rw
86 77 254:0 /var/lib/docker/containers/23369e/hostname /etc/hostname rw,relatime - ext4 /dev/vda rw
87 77 254:0 /var/lib/docker/containers/23369e/hosts /etc/hosts rw,relatime - ext4 /dev/vda rw
";
    const PODMANS: &str = "\
650 649 0:52 / / rw,relatime - overlay overlay rw,lowerdir=/l/A,upperdir=/u,workdir=/w
661 650 0:25 /containers/overlay-containers/5c/userdata/hostname /etc/hostname rw - tmpfs tmpfs rw
662 650 0:25 /containers/overlay-containers/5c/userdata/.containerenv /run/.containerenv rw - tmpfs tmpfs rw
";

    #[test]
    fn a_container_is_known_by_its_mounts_whatever_namespaces_it_has() {
        for is_elsewhere in [false, true] {
            assert_eq!(containment(DOCKERS, is_elsewhere), Containment::Docker);
            assert_eq!(containment(PODMANS, is_elsewhere), Containment::Podman, "it mounts a host name too");
        }
    }

    #[test]
    fn a_machine_is_no_container_whatever_was_left_on_it() {
        assert_eq!(containment(MACHINE, false), Containment::Nothing);
        assert_eq!(containment("", false), Containment::Nothing, "nothing is known without /proc");
        let named = "40 27 0:3 /netns/a/resolv.conf /etc/resolv.conf rw - ext4 /dev/vda rw\n";
        let named = format!("{MACHINE}{named}");
        assert_eq!(containment(&named, false), Containment::Nothing, "ip netns exec mounts that one");
        assert_eq!(containment(MACHINE, true), Containment::PidNamespace, "unshare --pid is no engine");
    }
}
