//! Reads a recording back into the items it was written from. A recording is outside input: whatever is in it gives
//! items or a sentence, never a panic.

use super::frames::{ByteSource, Text, TextPlace};
use super::line::RecordLine;
use super::line_reader::{self, HeaderError, LONGEST_LINE, LineError, LineReader};
use super::{RecordError, file_error};
use std::fs::File;
use std::io::{self, BufRead, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vnettop_sample::{Facts, Item};

/// The recording that is part of the program.
const SHIPPED: &[u8] = include_bytes!("../assets/kunpeng.vnettop.zst");

/// How a line begins that says whose the lines after it are.
const FROM: &[u8] = b"{\"from\":";

/// Where a recording is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredIn {
    /// In a file.
    File(PathBuf),
    /// In the program itself: the case that vnettop was made for.
    Program,
}

impl StoredIn {
    /// Whether it can be opened again and is the same then; a pipe is empty once it was read.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::File(path) => path.is_file(),
            Self::Program => true,
        }
    }

    /// What errors call it.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Program => Path::new("of this program"),
        }
    }
}

impl<P: AsRef<Path>> From<P> for StoredIn {
    fn from(path: P) -> Self {
        Self::File(path.as_ref().to_owned())
    }
}

/// A place between two items of a recording, to go on from there without reading what stands before it.
#[derive(Debug, Clone)]
pub struct Bookmark {
    text: TextPlace,
    /// Lines before it.
    line: usize,
    /// What holds there.
    facts: Arc<Facts>,
    /// The lines at that place are of the host that is read.
    is_of_host: bool,
}

/// A recording being read: of one host, or of one of several.
pub struct Recording {
    path: PathBuf,
    recorded_by: String,
    /// Hosts that the recording holds, where it names them.
    hosts: Vec<String>,
    /// Index in `hosts` of the host that is read.
    host: usize,
    /// The lines at this place are of the host that is read.
    is_of_host: bool,
    input: Text,
    line: usize,
    buffer: Vec<u8>,
    reader: LineReader,
    truncated: Option<String>,
}

impl Recording {
    /// Opens a recording and checks its first line.
    ///
    /// # Errors
    /// The file cannot be read, is something else, or of another version.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        Self::of(path, File::open(path))
    }

    /// Opens a recording wherever it is kept.
    ///
    /// # Errors
    /// As of [`Recording::open`].
    pub fn open_stored(stored: &StoredIn) -> Result<Self, RecordError> {
        match stored {
            StoredIn::File(path) => Self::open(path),
            StoredIn::Program => Self::of(stored.path(), Ok(Cursor::new(SHIPPED))),
        }
    }

    fn of(path: &Path, input: io::Result<impl ByteSource + 'static>) -> Result<Self, RecordError> {
        let input = input.and_then(Text::open);
        let input = input.map_err(|error| file_error("read", path, error))?;
        let mut recording = Self {
            path: path.to_owned(),
            recorded_by: String::new(),
            hosts: Vec::new(),
            host: 0,
            is_of_host: true,
            input,
            line: 0,
            buffer: Vec::new(),
            reader: LineReader::default(),
            truncated: None,
        };
        recording.header()?;
        Ok(recording)
    }

    /// The hosts that it holds, as they were named to vnettop; empty where it is of one machine alone.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The recording read as that of this host, by its place among [`Recording::hosts`]; the first host unless another is
    /// chosen.
    #[must_use]
    pub fn of_host(self, host: usize) -> Self {
        Self { host, ..self }
    }

    /// The place before the next item.
    #[must_use]
    pub fn bookmark(&self) -> Bookmark {
        Bookmark {
            text: self.input.place(),
            line: self.line,
            facts: Arc::clone(&self.reader.facts),
            is_of_host: self.is_of_host,
        }
    }

    /// Goes to a bookmark taken from this recording, in this or an earlier opening. It takes as long as unpacking the frame
    /// that the place is in.
    ///
    /// # Errors
    /// It cannot be read so far, or is no file.
    pub fn skip_to(&mut self, place: &Bookmark) -> Result<(), RecordError> {
        self.input.go_to(place.text).map_err(|error| file_error("read", &self.path, error))?;
        (self.line, self.reader.facts) = (place.line, Arc::clone(&place.facts));
        self.is_of_host = place.is_of_host;
        Ok(())
    }

    /// Said once the end is reached, when the recording ends in the middle of a line.
    #[must_use]
    pub fn truncated(&self) -> Option<&str> {
        self.truncated.as_deref()
    }

    /// The version of vnettop that wrote it; control characters replaced.
    #[must_use]
    pub fn recorded_by(&self) -> &str {
        &self.recorded_by
    }

    /// The next item; none at the end.
    ///
    /// # Errors
    /// A line in the middle that cannot be used.
    pub fn next_item(&mut self) -> Result<Option<Item>, RecordError> {
        while self.read_line()? {
            if !self.is_of_host && !self.buffer.starts_with(FROM) {
                continue;
            }
            match self.reader.read(&mut self.buffer) {
                Ok(RecordLine::Item(item)) => return Ok(Some(item)),
                Ok(RecordLine::From(name)) => self.is_of_host = self.hosts.get(self.host) == Some(&name),
                Ok(RecordLine::Fact | RecordLine::Reply(_)) => {}
                Err(LineError::Unreadable(_)) if self.is_cut_off()? => {
                    self.cut_off("in the middle of a line");
                    return Ok(None);
                }
                Err(LineError::Unreadable(reason) | LineError::Impossible(reason)) => return Err(self.damaged(reason)),
            }
        }
        Ok(None)
    }

    fn header(&mut self) -> Result<(), RecordError> {
        let foreign = || RecordError::Foreign(self.path.clone());
        // The first line of something else may be endless; a header is short.
        let mut first = Vec::new();
        let read = (&mut self.input).take(16_384).read_until(b'\n', &mut first);
        // What the disk refuses says nothing of the file; what cannot be unpacked is something else.
        read.map_err(|error| match (error.raw_os_error(), error.kind()) {
            (Some(_), _) | (None, io::ErrorKind::OutOfMemory) => file_error("read", &self.path, error),
            _ => foreign(),
        })?;
        self.line = 1;
        (self.hosts, self.recorded_by) = line_reader::header(&first).map_err(|error| match error {
            HeaderError::Foreign => foreign(),
            HeaderError::Version(version) => RecordError::Version { path: self.path.clone(), version },
        })?;
        Ok(())
    }

    /// Reads one line into the buffer; false at the end, which may also be the torn end of a compressed file.
    fn read_line(&mut self) -> Result<bool, RecordError> {
        self.buffer.clear();
        self.line += 1;
        match (&mut self.input).take(LONGEST_LINE as u64).read_until(b'\n', &mut self.buffer) {
            Ok(0) => Ok(false),
            Ok(_) if self.buffer.len() == LONGEST_LINE => Err(self.damaged("it is too long".to_owned())),
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut_off("in the middle of a compressed block");
                Ok(false)
            }
            // What the disk refuses has a number; what cannot be unpacked has none, and nothing behind it can be.
            Err(error) if error.raw_os_error().is_none() => {
                let (path, line) = (self.path.display(), self.line);
                self.truncated = Some(format!(
                    "recording {path} is damaged from line {line} on ({error}): everything before that is shown"
                ));
                Ok(false)
            }
            Err(error) => Err(file_error("read", &self.path, error)),
        }
    }

    /// The line just read is the last and has no end of line: the writer was stopped in the middle of it.
    fn is_cut_off(&mut self) -> Result<bool, RecordError> {
        if self.buffer.ends_with(b"\n") {
            return Ok(false);
        }
        let rest = self.input.fill_buf().map_err(|error| file_error("read", &self.path, error))?;
        Ok(rest.is_empty())
    }

    fn cut_off(&mut self, place: &str) {
        self.truncated = Some(format!(
            "recording {} is cut off {place} (line {}), because its writer was stopped; everything before that is \
             shown",
            self.path.display(),
            self.line
        ));
    }

    fn damaged(&self, reason: String) -> RecordError {
        RecordError::Line { path: self.path.clone(), line: self.line, reason }
    }
}
