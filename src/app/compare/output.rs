//! Files that a comparison is read from and written to.

use crate::report::comparison::{self, ComparisonFormat, NoComparison};
use crate::sample::Comparison;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// No comparison comes near it: a thousand rounds of everything take 60 MB.
const LARGEST: u64 = 256 << 20;

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum CompareFileError {
    /// The file.
    #[error("cannot {operation} {}: {error}", path.display())]
    File {
        /// "read", "write".
        operation: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// There is something in it.
    #[error("{} exists already: name another file, or remove it first", .0.display())]
    Exists(PathBuf),
    /// Its name does not tell what it is to be.
    #[error("{}: the end of the name tells how it is written: .json, .md, .html or .txt", .0.display())]
    Ending(PathBuf),
    /// It is no comparison.
    #[error("{}: {}", .0.display(), .1)]
    Content(PathBuf, #[source] NoComparison),
}

/// Reads an earlier comparison.
///
/// # Errors
/// The file cannot be read, or is no comparison.
pub fn read(path: &Path) -> Result<Comparison, CompareFileError> {
    let failed = |error| CompareFileError::File { operation: "read", path: path.to_owned(), error };
    let mut text = Vec::new();
    File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut text)).map_err(failed)?;
    comparison::read(&text).map_err(|error| CompareFileError::Content(path.to_owned(), error))
}

/// A file that waits for its comparison.
#[derive(Debug)]
pub struct CompareOutput {
    path: PathBuf,
    file: File,
    format: ComparisonFormat,
    written: bool,
}

impl CompareOutput {
    /// Makes the file, which must not exist.
    ///
    /// # Errors
    /// It does, cannot be written, or has a name that tells no format.
    pub fn open(path: &Path) -> Result<Self, CompareFileError> {
        let format = match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => ComparisonFormat::Json,
            Some("md" | "markdown") => ComparisonFormat::Markdown,
            Some("html" | "htm") => ComparisonFormat::Html,
            Some("txt") => ComparisonFormat::Text,
            _ => return Err(CompareFileError::Ending(path.to_owned())),
        };
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => CompareFileError::Exists(path.to_owned()),
            _ => CompareFileError::File { operation: "write", path: path.to_owned(), error },
        })?;
        Ok(Self { path: path.to_owned(), file, format, written: false })
    }

    /// Writes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(mut self, comparison: &Comparison, earlier: Option<&Comparison>) -> Result<(), CompareFileError> {
        let text = comparison::comparison(comparison, earlier, self.format);
        let done = self.file.write_all(text.as_bytes()).and_then(|()| self.file.flush());
        self.written = done.is_ok();
        done.map_err(|error| CompareFileError::File { operation: "write", path: self.path.clone(), error })
    }
}

impl Drop for CompareOutput {
    fn drop(&mut self) {
        // Without a comparison the file is as it was: not there.
        if !self.written && self.file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
