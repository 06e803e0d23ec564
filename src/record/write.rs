//! Writes a recording, line by line as the samples come, so that a crash loses at most the last second.

use super::timeout_writer::TimeoutWriter;
use super::{Header, RecordError, SCHEMA_VERSION, file_error};
use crate::sample::{FactVisitor, Facts, Item};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use zstd::stream::raw::CParameter;
use zstd::stream::write::Encoder;

/// How much time of a compressed recording may be lost to a crash, ns.
const FLUSH_EVERY_NS: u64 = 1_000_000_000;
/// Bytes of text in a frame of a compressed recording: 10 ms to unpack. A reader that goes to a place unpacks the frame up to it;
/// longer frames would be hardly smaller.
const FRAME: usize = 8 << 20;
/// The facts that are written with the first sample even where there is nothing in them; the others are empty until a line says
/// otherwise.
const FROM_THE_FIRST: [&str; 4] = ["host", "topology", "links", "problems"];

/// A recording being written.
pub struct Recorder {
    path: PathBuf,
    out: Out,
    /// The facts last written; none before the first sample.
    facts: Option<Facts>,
    flushed_at_ns: u64,
}

struct Out {
    to: OutFile,
    /// The line being written; kept for its room.
    line: Vec<u8>,
    /// Bytes of text in the frame that was begun.
    in_frame: usize,
    /// Bytes of the newest sample's line; 0 before the first one.
    sample: usize,
    /// The frame was begun with that known.
    is_fitted: bool,
}

enum OutFile {
    Plain(BufWriter<TimeoutWriter>),
    /// None after a frame that could not be ended.
    Zstd(Option<Encoder<'static, BufWriter<TimeoutWriter>>>),
}

impl Recorder {
    /// Begins a recording in a file that is new or empty.
    ///
    /// # Errors
    /// The file holds something already, or cannot be written.
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        if path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 0) {
            return Err(RecordError::Exists(path.to_owned()));
        }
        Self::begin(path, false)
    }

    /// Begins a recording in a file that was not there before.
    ///
    /// # Errors
    /// There is something with its name, or it cannot be written.
    pub fn create_new(path: &Path) -> Result<Self, RecordError> {
        Self::begin(path, true)
    }

    /// A file that is new goes again where it cannot be written.
    fn begin(path: &Path, must_be_new: bool) -> Result<Self, RecordError> {
        let is_new = !path.exists();
        let file = TimeoutWriter::create(path, must_be_new);
        file.and_then(|file| Self::headed(path, BufWriter::new(file))).map_err(|error| {
            if is_new {
                remove_empty(path);
            }
            file_error("write", path, error)
        })
    }

    fn headed(path: &Path, file: BufWriter<TimeoutWriter>) -> io::Result<Self> {
        let to = match path.extension() {
            Some(ending) if ending == "zst" => OutFile::Zstd(Some(frame(file, 0)?)),
            _ => OutFile::Plain(file),
        };
        let out = Out { to, line: Vec::new(), in_frame: 0, sample: 0, is_fitted: false };
        let mut recorder = Self { path: path.to_owned(), out, facts: None, flushed_at_ns: 0 };
        let header = Header { vnettop_recording: SCHEMA_VERSION, vnettop: env!("CARGO_PKG_VERSION").to_owned() };
        recorder.out.line(&header).and_then(|()| recorder.flush())?;
        Ok(recorder)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one item.
    ///
    /// # Errors
    /// The file cannot be written, for example because the disk is full.
    pub fn write(&mut self, item: &Item) -> Result<(), RecordError> {
        self.item(item).map_err(|error| file_error("write", &self.path, error))
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// What was still in memory cannot be written.
    pub fn finish(self) -> Result<(), RecordError> {
        let Self { path, out, .. } = self;
        let written = match out.to {
            OutFile::Plain(mut file) => file.flush(),
            OutFile::Zstd(frame) => frame.map_or(Ok(()), |frame| frame.finish().and_then(|mut file| file.flush())),
        };
        written.map_err(|error| file_error("write", &path, error))
    }

    fn item(&mut self, item: &Item) -> io::Result<()> {
        if let Item::Sample(sample) = item {
            self.out.begin_frame_if_due()?;
            let writer = &mut FactWriter { out: &mut self.out, are_first: self.facts.is_none() };
            self.facts.get_or_insert_default().visit(&sample.facts, writer)?;
        }
        self.out.line(item)?;
        if matches!(item, Item::Sample(_)) {
            self.out.sample = self.out.line.len();
        }
        if let (Item::Sample(sample), OutFile::Zstd(_)) = (item, &self.out.to) {
            if sample.at_ns.saturating_sub(self.flushed_at_ns) < FLUSH_EVERY_NS {
                return Ok(());
            }
            self.flushed_at_ns = sample.at_ns;
        }
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out.to {
            OutFile::Plain(file) => file.flush(),
            OutFile::Zstd(frame) => frame.as_mut().map_or(Ok(()), Write::flush),
        }
    }
}

impl Out {
    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value)?;
        self.line.push(b'\n');
        self.in_frame += self.line.len();
        match &mut self.to {
            OutFile::Plain(file) => file.write_all(&self.line),
            OutFile::Zstd(frame) => {
                frame.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |frame| frame.write_all(&self.line))
            }
        }
    }

    /// Ends the frame and begins another where it is long enough, and once it is known how long a sample is.
    fn begin_frame_if_due(&mut self) -> io::Result<()> {
        if (self.in_frame >= FRAME || self.sample > 0 && !self.is_fitted)
            && let OutFile::Zstd(ended) = &mut self.to
            && let Some(whole) = ended.take()
        {
            *ended = Some(frame(whole.finish()?, self.sample)?);
            (self.in_frame, self.is_fitted) = (0, true);
        }
        Ok(())
    }
}

/// A frame that begins here, for samples of about so many bytes of text; its checksum tells a reader of bytes that have changed. What a line has in
/// common with another one it has with the line before: zstd that looks back two lines and no further writes a third less than its
/// defaults, in a quarter of a millisecond a sample of 128 cores.
fn frame(file: BufWriter<TimeoutWriter>, sample: usize) -> io::Result<Encoder<'static, BufWriter<TimeoutWriter>>> {
    let mut frame = Encoder::new(file, 8)?;
    let window = (sample.max(1).ilog2() + 2).clamp(16, 21);
    for parameter in [CParameter::WindowLog(window), CParameter::MinMatch(6), CParameter::SearchLog(3)] {
        frame.set_parameter(parameter)?;
    }
    frame.include_checksum(true)?;
    Ok(frame)
}

/// Writes a line for each fact that is another than the one written last.
struct FactWriter<'a> {
    out: &'a mut Out,
    are_first: bool,
}

impl FactVisitor for FactWriter<'_> {
    type Error = io::Error;

    fn fact<T>(&mut self, name: &str, was: &mut T, is: &T, _bytes: usize) -> io::Result<()>
    where
        T: Clone + PartialEq + Serialize + DeserializeOwned,
    {
        let is_due = was != is || self.are_first && FROM_THE_FIRST.contains(&name);
        was.clone_from(is);
        if is_due { self.out.line(&BTreeMap::from([(name, is)])) } else { Ok(()) }
    }
}

/// On a full disk: an empty file is no recording.
fn remove_empty(path: &Path) {
    if path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
        let _ = std::fs::remove_file(path);
    }
}
