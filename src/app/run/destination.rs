//! Where a card or a report goes: a file opened before the work begins and kept open, so that a fifo meets one writer, but not touched
//! before there is a card. It refuses to write over a recording, and over the file that the same run records to.

use crate::record::{RecordError, Recording};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why there is no card or report where it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// What is there is a recording.
    #[error("{} is a recording: name another file for the {}", .1.display(), .0)]
    OverRecording(&'static str, PathBuf),
    /// The same run records to it.
    #[error("{} cannot hold both the card and the recording: name two files", .0.display())]
    RecordedTo(PathBuf),
    /// The file.
    #[error("cannot write the {} {}: {}", .0, .1.display(), .2)]
    File(&'static str, PathBuf, #[source] io::Error),
    /// Standard output or standard error, where no file was named.
    #[error("cannot write the {0}: {1}")]
    Stream(&'static str, #[source] io::Error),
}

/// A file that waits for what is to be in it.
#[derive(Debug)]
pub struct Destination {
    what: &'static str,
    path: PathBuf,
    file: File,
    /// It did not exist before.
    is_new: bool,
    written: bool,
}

impl Destination {
    /// Opens the file for a `card` or a `report`; what is in it stays there until [`Destination::write`]. `recording` is the file that the same run
    /// will record to.
    ///
    /// # Errors
    /// It cannot be written, it is a recording, or it is `recording`.
    pub fn open(what: &'static str, path: &Path, recording: Option<&Path>) -> Result<Self, CardError> {
        let is_new = !path.exists();
        if path.is_file() && matches!(Recording::open(path), Ok(_) | Err(RecordError::Version { .. })) {
            return Err(CardError::OverRecording(what, path.to_owned()));
        }
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = opened.map_err(|error| CardError::File(what, path.to_owned(), error))?;
        // Dropped, it is removed where it is new.
        let destination = Self { what, path: path.to_owned(), file, is_new, written: false };
        match recording {
            Some(recording) if destination.is(recording) => Err(CardError::RecordedTo(path.to_owned())),
            _ => Ok(destination),
        }
    }

    /// Replaces what is in the file by this.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(mut self, text: &str) -> Result<(), CardError> {
        let is_file = self.file.metadata().is_ok_and(|meta| meta.is_file());
        let emptied = if is_file { self.file.set_len(0) } else { Ok(()) };
        let written = emptied.and_then(|()| self.file.write_all(text.as_bytes()));
        self.written = written.is_ok();
        written.map_err(|error| CardError::File(self.what, self.path.clone(), error))
    }

    fn is(&self, other: &Path) -> bool {
        let same = |a: &Metadata, b: &Metadata| a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino());
        self.file.metadata().is_ok_and(|own| other.metadata().is_ok_and(|other| same(&own, &other)))
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        // Without a card the file is as it was: not there.
        if self.is_new && !self.written && self.file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
