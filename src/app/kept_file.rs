//! Where the files lie that a key writes: the folder of vnettop's state, which is its user's alone, and names with their time.

use crate::record::RecordError;
use crate::report::timestamp;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Why a key wrote no file.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeepError {
    #[error("nothing was written: set XDG_STATE_HOME to a directory that you can write")]
    NoDirectory,
    #[error("nothing was written: cannot create {}: {}", .0.display(), .1)]
    Directory(PathBuf, #[source] io::Error),
    /// What it was to be, and where.
    #[error("cannot write {} {}: {}", .0, .1.display(), .2)]
    File(&'static str, PathBuf, #[source] io::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Where a file of this name is kept; makes the directory.
pub(super) fn place(directory: Option<&Path>, name: &str) -> Result<PathBuf, KeepError> {
    let directory = directory.ok_or(KeepError::NoDirectory)?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| KeepError::Directory(directory.to_owned(), error))?;
    Ok(directory.join(name))
}

/// A time in the name of a file, UTC: `20260102-030405`.
pub(super) fn stamp(wall_ms: u64) -> String {
    let time = timestamp(wall_ms);
    time.get(..19).unwrap_or_default().replace(['-', ':'], "").replace('T', "-")
}
