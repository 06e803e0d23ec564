//! Files of the configuration, read so that nobody else can make vnettop wait or obey: regular ones of bounded size that belong to the
//! user or to root and that nobody else may write to.

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
/// One sentence of why it is not read, and what to do.
pub(super) fn read(path: &Path, is_asked_for: bool) -> Result<Option<String>, String> {
    let name = path.display();
    match open(path) {
        Ok(file) => text(file).map(Some).map_err(|why| format!("{name} {why}")),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) if !is_asked_for && error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        Err(error) => Err(format!("{name} cannot be opened: {error}; --no-config starts without it")),
    }
}

/// Opening waits for nobody, whatever stands there.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC).open(path)
}

fn text(file: File) -> Result<String, String> {
    let found = file.metadata().map_err(|error| format!("cannot be looked at: {error}"))?;
    if !found.is_file() {
        return Err("is not a regular file: give a file, or start with --no-config".to_owned());
    }
    if let Some(doubt) = trust::doubt(&found) {
        return Err(format!("{doubt}: chown it to yourself and chmod go-w it, or start with --no-config"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err("is larger than 256 KiB, so it is not a vnettop configuration".to_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].split(|&byte| byte == b'\n').count();
        format!("is not UTF-8 in line {line}: save it as UTF-8")
    })
}
