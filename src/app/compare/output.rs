//! Files that a comparison is read from and written to.

use crate::app::run::{CardError, Destination};
use crate::report::WrittenAs;
use crate::report::comparison::{self, NoComparison};
use crate::sample::Comparison;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// No comparison comes near it: a thousand rounds of everything take 50 MB.
const LARGEST: u64 = 64 << 20;

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum CompareFileError {
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// A report has room for two.
    #[error("{}: a report has one comparison or two, the later against the earlier", .0.display())]
    TooMany(PathBuf),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] CardError),
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
    let failed = |error| CompareFileError::Read { path: path.to_owned(), error };
    let mut text = Vec::new();
    File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut text)).map_err(failed)?;
    comparison::read(&text).map_err(|error| CompareFileError::Content(path.to_owned(), error))
}

/// A file that waits for its comparison.
#[derive(Debug)]
pub struct CompareOutput {
    destination: Destination,
    format: WrittenAs,
}

impl CompareOutput {
    /// Sees whether the file can be written.
    ///
    /// # Errors
    /// It cannot, is a recording, or has a name that tells no format.
    pub fn open(path: &Path) -> Result<Self, CompareFileError> {
        let format = WrittenAs::by_name(path).ok_or_else(|| CompareFileError::Ending(path.to_owned()))?;
        Ok(Self { destination: Destination::open("comparison", path, None)?, format })
    }

    /// Writes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(self, comparison: &Comparison, earlier: Option<&Comparison>) -> Result<(), CompareFileError> {
        Ok(self.destination.write(&comparison::comparison(comparison, earlier, self.format))?)
    }
}
