//! Where a card or a report goes: a file opened before the work begins and kept open, so that a fifo meets one writer, but not touched
//! before there is a card. It refuses to write over a recording, and over the file that the same run records to.

use crate::record::{RecordError, Recording, flags_to_write, is_strangers_link};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Why there is no card or report where it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// What is there is a recording.
    #[error("{} is a recording: name another file for the {}", .1.display(), .0)]
    OverRecording(&'static str, PathBuf),
    /// There is something with that name.
    #[error("{} exists already: name another file, or remove it first", .0.display())]
    Exists(PathBuf),
    /// It is another user's link.
    #[error("{} is another user's symbolic link: name the file itself", .0.display())]
    Link(PathBuf),
    /// The file that is named is the one that this run records to.
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
    /// None where there was none: it is made when there is something to be written.
    file: Option<File>,
}

impl Destination {
    /// Opens the file for a `card` or a `report`; what is in it stays there until [`Destination::write`]. `recording` is the file that the same run
    /// will record to.
    ///
    /// # Errors
    /// It cannot be written, it is a recording, or it is `recording`.
    pub fn open(what: &'static str, path: &Path, recording: Option<&Path>) -> Result<Self, CardError> {
        let is_new = !path.exists();
        if is_strangers_link(path) {
            return Err(CardError::Link(path.to_owned()));
        }
        let opened = opened(path, is_new);
        let file = opened.map_err(|error| CardError::File(what, path.to_owned(), error))?;
        // What is looked at is what will be written to, whatever has its name by then.
        let opened = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let is_file = !is_new && file.metadata().is_ok_and(|meta| meta.is_file());
        if is_file && matches!(Recording::open(&opened), Ok(_) | Err(RecordError::Version { .. })) {
            return Err(CardError::OverRecording(what, path.to_owned()));
        }
        let is_recorded_to = recording.is_some_and(|recording| is_same(&file, recording));
        if is_new {
            // It was made to see whether it can be; whoever is killed before it is written leaves none behind.
            let _ = fs::remove_file(path);
        }
        if is_recorded_to {
            return Err(CardError::RecordedTo(path.to_owned()));
        }
        Ok(Self { what, path: path.to_owned(), file: (!is_new).then_some(file) })
    }

    /// Opens a file that is not there yet, or a device or pipe that somebody reads.
    ///
    /// # Errors
    /// It is there already, or it cannot be written.
    pub fn create_new(what: &'static str, path: &Path) -> Result<Self, CardError> {
        // A link that leads nowhere is one, too.
        let is_there = path.symlink_metadata().is_ok() && fs::metadata(path).map_or(true, |meta| meta.is_file());
        if is_there { Err(CardError::Exists(path.to_owned())) } else { Self::open(what, path, None) }
    }

    /// Replaces what is in the file by this.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(mut self, text: &str) -> Result<(), CardError> {
        let is_new = self.file.is_none();
        let written = self.opened().and_then(|mut file| {
            let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
            let emptied = if is_file { file.set_len(0) } else { Ok(()) };
            emptied.and_then(|()| file.write_all(text.as_bytes()))
        });
        let is_own = written.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists);
        if is_new && is_own && fs::metadata(&self.path).is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
            // Without a card the place is as it was: nothing is there.
            let _ = fs::remove_file(&self.path);
        }
        written.map_err(|error| CardError::File(self.what, self.path.clone(), error))
    }

    fn opened(&mut self) -> io::Result<File> {
        match self.file.take() {
            Some(file) => Ok(file),
            None => opened(&self.path, true),
        }
    }
}

/// Opens what is there, or makes it: what was laid there meanwhile is neither followed nor written over.
fn opened(path: &Path, is_new: bool) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(is_new).custom_flags(flags_to_write(path)).open(path)
}

fn is_same(file: &File, other: &Path) -> bool {
    let same = |a: &Metadata, b: &Metadata| a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata().is_ok_and(|own| other.metadata().is_ok_and(|other| same(&own, &other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_laid_in_the_place_of_a_card_meanwhile_is_not_written_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let (card, other) = (folder.path().join("card"), folder.path().join("other"));
        fs::write(&other, "kept").expect("a file");
        let destination = Destination::open("card", &card, None).expect("nothing is there");
        symlink(&other, &card).expect("a link");
        destination.write("new").expect_err("a link is there");
        assert_eq!(fs::read_to_string(&other).expect("a file"), "kept");
        // Nor is one that leads nowhere made to lead somewhere.
        let (dangling, nowhere) = (folder.path().join("dangling"), folder.path().join("nowhere"));
        symlink(&nowhere, &dangling).expect("a link");
        Destination::open("card", &dangling, None).expect_err("a link is there");
        assert!(!nowhere.exists());
    }
}
