//! Where the sockets of this user's vnettops are: a folder that nobody else can enter.

use rustix::process::geteuid;
use std::ffi::OsString;
use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The folders that may hold them, the best one first: below `XDG_RUNTIME_DIR`, below systemd's folder of this user, of root below
/// `/run`, else below `/tmp`.
#[must_use]
pub fn runtime_folders(env: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let uid = geteuid().as_raw();
    let given = env("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    // With sudo it may be another user's.
    let is_own = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.uid() == uid);
    let of_user = PathBuf::from(format!("/run/user/{uid}"));
    let mut all: Vec<PathBuf> =
        given.into_iter().chain([of_user]).filter(is_own).map(|path| path.join("vnettop")).collect();
    if uid == 0 {
        all.push(PathBuf::from("/run/vnettop-0"));
    }
    all.push(PathBuf::from(format!("/tmp/vnettop-{uid}")));
    all.dedup();
    all
}

/// Makes the folder where it is not there, and looks whose it is.
///
/// # Errors
/// It cannot be made, or others can enter it.
pub(super) fn made(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if folder.symlink_metadata().is_ok_and(|found| is_private(&found)) {
        return Ok(());
    }
    Err(io::Error::other("it is not this user's alone"))
}

/// A folder of this user that nobody else can enter.
pub(super) fn is_private(found: &Metadata) -> bool {
    let of_others = found.mode() & 0o077;
    found.is_dir() && found.uid() == geteuid().as_raw() && of_others == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_that_others_can_enter_or_that_is_a_link_is_none() {
        let root = tempfile::tempdir().expect("a folder");
        let own = root.path().join("own");
        made(&own).expect("it is made");
        assert_eq!(fs::metadata(&own).expect("there").mode() & 0o777, 0o700);
        made(&own).expect("it is there");
        let link = root.path().join("link");
        symlink(&own, &link).expect("a link");
        assert!(made(&link).is_err(), "a link may lead elsewhere");
        fs::set_permissions(&own, Permissions::from_mode(0o750)).expect("its owner may");
        assert!(made(&own).is_err(), "a group can enter it");
    }

    #[test]
    fn a_runtime_folder_of_another_user_is_not_taken() {
        let all = runtime_folders(|_| Some(OsString::from("/proc/1/nothing")));
        assert!(all.iter().all(|folder| !folder.starts_with("/proc")), "{all:?}");
        assert!(all.last().is_some_and(|last| last.starts_with("/tmp")), "{all:?}");
    }
}
