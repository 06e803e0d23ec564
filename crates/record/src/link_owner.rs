//! Which symbolic links are followed to a file that is written: those that this user or root has made. In a folder of another user a
//! link of theirs leads where they want.

use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A link that neither this user nor root has made: where it leads is not what was asked for.
#[must_use]
pub fn is_strangers_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_symlink() && ![0, geteuid().as_raw()].contains(&meta.uid()))
}

/// Flags to open the file with, for `OpenOptions::custom_flags`: where there is no link now, one that is laid there meanwhile is not
/// followed (`ELOOP`).
#[must_use]
pub fn flags_to_write(path: &Path) -> i32 {
    let is_link = path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    if is_link { 0 } else { OFlags::NOFOLLOW.bits().cast_signed() }
}
