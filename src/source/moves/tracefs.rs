//! Where tracefs is: mounted, or, where this namespace has none (`ip netns exec` mounts a /sys of its own), attached to a
//! descriptor that nobody else sees and that ends with it. It makes nothing in tracefs.

use super::ftrace::EVENT;
use crate::source::Roots;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A tracefs that this process may use.
pub(super) struct Tracefs {
    pub(super) path: PathBuf,
    /// What holds it, where it is mounted nowhere.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// None where rights or the kernel do not allow it.
    pub(super) fn find(roots: &Roots) -> Option<Self> {
        let mounted = ["kernel/tracing", "kernel/debug/tracing"].map(|place| roots.sys.join(place));
        let mounted = mounted.into_iter().find(|path| is_whole(path)).map(|path| Self { path, _mount: None });
        // A made-up /sys is not this machine's.
        mounted.or_else(|| if roots.sys == Path::new("/sys") { Self::attach() } else { None })
    }

    /// Linux 5.2, with `CAP_SYS_ADMIN`.
    fn attach() -> Option<Self> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
        fsconfig_create(&context).ok()?;
        let safe =
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, safe).ok()?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        is_whole(&path).then_some(Self { path, _mount: Some(mount) })
    }
}

fn is_whole(tracefs: &Path) -> bool {
    tracefs.join(EVENT).join("format").is_file() && tracefs.join("instances").is_dir()
}
