//! Files of the configuration, read so that nobody else can make vnettop wait or obey: regular ones of bounded size that belong to the
//! user or to root and that nobody else may write to.

use super::ConfigError;
use crate::trust;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// More than anybody writes by hand.
const MOST_BYTES: u64 = 256 << 10;

/// The text of a file; none where there is no such file, and of one that nobody asked for where it is not for this user to look at
/// (`setpriv` keeps root's HOME).
///
/// # Errors
/// Why it is not read, and what to do.
pub(super) fn read(path: &Path, is_asked_for: bool) -> Result<Option<String>, ConfigError> {
    match open(path) {
        Ok(file) => text(file, path).map(Some),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) if !is_asked_for && error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        Err(error) => Err(ConfigError::Unopened(path.to_owned(), error)),
    }
}

/// Opening waits for nobody, whatever stands there.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC).open(path)
}

fn text(file: File, path: &Path) -> Result<String, ConfigError> {
    let named = || path.to_owned();
    let found = file.metadata().map_err(|error| ConfigError::Unread(named(), "looked at", error))?;
    if !found.is_file() {
        return Err(ConfigError::NotAFile(named()));
    }
    if let Some(doubt) = trust::doubt(&found) {
        return Err(ConfigError::Doubted(named(), doubt));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| ConfigError::Unread(named(), "read", error))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(ConfigError::TooLarge(named()));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].split(|&byte| byte == b'\n').count();
        ConfigError::NotUtf8(named(), line)
    })
}
