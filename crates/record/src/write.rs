//! Writes a recording, line by line as the samples come, so that a crash loses at most the last second.

use super::line_writer::LineWriter;
use super::timeout_writer::TimeoutWriter;
use super::{RecordError, file_error};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use vnettop_sample::{Facts, Item};

/// How much time of a compressed recording may be lost to a crash, ns.
const FLUSH_EVERY_NS: u64 = 1_000_000_000;

/// A recording being written.
pub struct Recorder {
    path: PathBuf,
    out: LineWriter<BufWriter<TimeoutWriter>>,
    /// The hosts that it holds, with what each was written of last; one without a name where it is of one machine alone.
    hosts: Vec<RecordedHost>,
    /// The one of them whose the last line is; none before the first.
    host: Option<usize>,
}

/// What was written of a host.
#[derive(Default)]
struct RecordedHost {
    name: String,
    /// The facts last written; none before the first sample.
    facts: Option<Facts>,
    /// By its own clock.
    flushed_at_ns: u64,
}

impl Recorder {
    /// Begins a recording in a file that is new or empty.
    ///
    /// # Errors
    /// The file holds something already, or cannot be written.
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        Self::create_of(path, &[])
    }

    /// Begins a recording of these hosts in a file that is new or empty; without hosts it is of this machine alone.
    ///
    /// # Errors
    /// As of [`Recorder::create`].
    pub fn create_of(path: &Path, hosts: &[String]) -> Result<Self, RecordError> {
        if path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 0) {
            return Err(RecordError::Exists(path.to_owned()));
        }
        Self::begin(path, hosts, false)
    }

    /// Begins a recording in a file that was not there before.
    ///
    /// # Errors
    /// There is something with its name, or it cannot be written.
    pub fn create_new(path: &Path) -> Result<Self, RecordError> {
        Self::create_new_of(path, &[])
    }

    /// Begins a recording of these hosts in a file that was not there before; without hosts it is of this machine alone.
    ///
    /// # Errors
    /// As of [`Recorder::create_new`].
    pub fn create_new_of(path: &Path, hosts: &[String]) -> Result<Self, RecordError> {
        Self::begin(path, hosts, true)
    }

    /// A file that is new goes again where it cannot be written.
    fn begin(path: &Path, hosts: &[String], must_be_new: bool) -> Result<Self, RecordError> {
        let is_new = !path.exists();
        let file = TimeoutWriter::create(path, must_be_new);
        file.and_then(|file| Self::headed(path, hosts, BufWriter::new(file))).map_err(|error| {
            if is_new {
                remove_empty(path);
            }
            file_error("write", path, error)
        })
    }

    fn headed(path: &Path, hosts: &[String], file: BufWriter<TimeoutWriter>) -> io::Result<Self> {
        let is_compressed = path.extension().is_some_and(|ending| ending == "zst");
        let out = LineWriter::headed(file, is_compressed, hosts)?;
        let of = |name: &String| RecordedHost { name: name.clone(), ..RecordedHost::default() };
        let hosts = if hosts.is_empty() { vec![RecordedHost::default()] } else { hosts.iter().map(of).collect() };
        Ok(Self { path: path.to_owned(), out, hosts, host: None })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one item of this machine, or of the first host.
    ///
    /// # Errors
    /// The file cannot be written, for example because the disk is full.
    pub fn write(&mut self, item: &Item) -> Result<(), RecordError> {
        self.write_of(0, item)
    }

    /// Appends one item of a host, by its place among those that the recording was begun with.
    ///
    /// # Errors
    /// The file cannot be written, for example because the disk is full.
    pub fn write_of(&mut self, host: usize, item: &Item) -> Result<(), RecordError> {
        self.item(host, item).map_err(|error| file_error("write", &self.path, error))
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// What was still in memory cannot be written.
    pub fn finish(self) -> Result<(), RecordError> {
        let Self { path, out, .. } = self;
        out.finish().map_err(|error| file_error("write", &path, error))
    }

    fn item(&mut self, at: usize, item: &Item) -> io::Result<()> {
        let Some(host) = self.hosts.get_mut(at) else { return Ok(()) };
        if self.host.replace(at) != Some(at) && !host.name.is_empty() {
            self.out.from(&host.name)?;
        }
        self.out.item(&mut host.facts, item)?;
        if let Item::Sample(sample) = item
            && self.out.is_compressed()
        {
            if sample.at_ns.saturating_sub(host.flushed_at_ns) < FLUSH_EVERY_NS {
                return Ok(());
            }
            host.flushed_at_ns = sample.at_ns;
        }
        self.out.flush()
    }
}

/// On a full disk: an empty file is no recording.
fn remove_empty(path: &Path) {
    if path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
        let _ = std::fs::remove_file(path);
    }
}
