//! The files that a key writes: in vnettop's own directory, whoever's directory it was started in; never over a file that
//! is there, never through a link, and for nobody else to read, because they hold other users' command lines.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where a file of this name is kept; makes the directory.
///
/// # Errors
/// A sentence: there is no such directory, and none can be made.
pub(super) fn place(directory: Option<&Path>, name: &str) -> Result<PathBuf, String> {
    let directory = directory.ok_or(
        "nothing was written: neither XDG_STATE_HOME nor HOME is set; set XDG_STATE_HOME to a directory that you can \
         write",
    )?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| format!("nothing was written: cannot create {}: {error}", directory.display()))?;
    Ok(directory.join(name))
}

/// Writes a new file; one that could not be written whole is none.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes()).inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_is_new_and_ones_own() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let directory = root.path().join("state/vnettop");
        let path = place(Some(&directory), "a.txt").expect("it is made");
        write(&path, "x").expect("writable");
        let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&directory), mode(&path)), (0o700, 0o600), "nobody else reads them");
        assert_eq!(write(&path, "y").expect_err("it is there").kind(), io::ErrorKind::AlreadyExists);
        let (link, target) = (directory.join("b.txt"), root.path().join("target"));
        symlink(&target, &link).expect("a link in the way");
        assert!(write(&link, "y").is_err() && !target.exists(), "a link is not followed");
        assert!(place(None, "a.txt").expect_err("nowhere").contains("XDG_STATE_HOME"));
    }
}
