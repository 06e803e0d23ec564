//! Reads a recording back into the items it was written from. A recording is outside input: whatever is in it gives
//! items or a sentence, never a panic.

use super::frames::{ByteSource, Text, TextPlace};
use super::{Header, RecordError, SCHEMA_VERSION, file_error};
use super::{clean, line};
use crate::sample::{CoreId, Facts, FlowSample, Item, LinkCounters, MOST_CORES, OvsDatapath, Sample};
use crate::text;
use std::fs::File;
use std::io::{self, BufRead, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// No line of a real recording comes near it (8,000 links take about 3 MB); a longer one is not read into memory.
const LONGEST_LINE: u64 = 64 << 20;
/// The recording that is part of the program.
const SHIPPED: &[u8] = include_bytes!("../../assets/kunpeng.vnettop.zst");

/// Where a recording is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredIn {
    /// In a file.
    File(PathBuf),
    /// In the program itself: the case that vnettop was made for.
    Program,
}

impl StoredIn {
    /// It can be opened again and is the same then; what comes through a pipe is gone once it was read.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::File(path) => path.is_file(),
            Self::Program => true,
        }
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
}

/// A recording being read.
pub struct Recording {
    path: PathBuf,
    recorded_by: String,
    input: Text,
    line: usize,
    buffer: Vec<u8>,
    facts: Arc<Facts>,
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
            StoredIn::Program => Self::of(Path::new("of this program"), Ok(Cursor::new(SHIPPED))),
        }
    }

    fn of(path: &Path, input: io::Result<impl ByteSource + 'static>) -> Result<Self, RecordError> {
        let input = input.and_then(Text::open);
        let input = input.map_err(|error| file_error("read", path, error))?;
        let (path, facts) = (path.to_owned(), Arc::default());
        let recorded_by = String::new();
        let mut recording = Self { path, recorded_by, input, line: 0, buffer: Vec::new(), facts, truncated: None };
        recording.header()?;
        Ok(recording)
    }

    /// The place before the next item.
    #[must_use]
    pub fn bookmark(&self) -> Bookmark {
        Bookmark { text: self.input.place(), line: self.line, facts: Arc::clone(&self.facts) }
    }

    /// Goes to a place that this recording, opened before, has told. It takes as long as unpacking the frame that the place is in.
    ///
    /// # Errors
    /// It cannot be read so far, or is no file.
    pub fn skip_to(&mut self, place: &Bookmark) -> Result<(), RecordError> {
        self.input.go_to(place.text).map_err(|error| file_error("read", &self.path, error))?;
        (self.line, self.facts) = (place.line, Arc::clone(&place.facts));
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
            clean::line(&mut self.buffer);
            let item = match line::read(&self.buffer, Arc::make_mut(&mut self.facts)) {
                Ok(item) => item,
                Err(_) if self.is_cut_off()? => {
                    self.cut_off("in the middle of a line");
                    return Ok(None);
                }
                Err(error) => return Err(self.damaged(reason(&error))),
            };
            match item {
                None => self.check_facts()?,
                Some(Item::Sample(mut sample)) => {
                    self.check(&sample)?;
                    sample.facts = Arc::clone(&self.facts);
                    return Ok(Some(Item::Sample(sample)));
                }
                event => return Ok(event),
            }
        }
        Ok(None)
    }

    fn header(&mut self) -> Result<(), RecordError> {
        let foreign = || RecordError::Foreign(self.path.clone());
        // The first line of something else may be endless; a header is short.
        let mut first = Vec::new();
        let read = (&mut self.input).take(4096).read_until(b'\n', &mut first);
        // What the disk refuses says nothing of the file; what cannot be unpacked is something else.
        read.map_err(|error| match error.raw_os_error() {
            Some(_) => file_error("read", &self.path, error),
            None => foreign(),
        })?;
        let header: Header = serde_json::from_slice(&first).map_err(|_| foreign())?;
        self.line = 1;
        self.recorded_by = text::clean(header.vnettop.as_bytes());
        if header.vnettop_recording != SCHEMA_VERSION {
            return Err(RecordError::Version { path: self.path.clone(), version: header.vnettop_recording });
        }
        Ok(())
    }

    /// Reads one line into the buffer; false at the end, which may also be the torn end of a compressed file.
    fn read_line(&mut self) -> Result<bool, RecordError> {
        self.buffer.clear();
        self.line += 1;
        match (&mut self.input).take(LONGEST_LINE).read_until(b'\n', &mut self.buffer) {
            Ok(0) => Ok(false),
            Ok(_) if self.buffer.len() as u64 == LONGEST_LINE => Err(self.damaged("it is too long".to_owned())),
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

    fn check_facts(&self) -> Result<(), RecordError> {
        // Each by its name: the compiler asks whether the order and the cores of a new one matter.
        let Facts {
            topology,
            links,
            spaces,
            owners,
            benchmarks,
            offloads,
            steering,
            family,
            runners,
            host: _,
            problems: _,
            ovs: _,
            paths: _,
        } = &*self.facts;
        self.sorted(links.iter().map(|link| link.key()), "links")?;
        self.sorted(topology.cores.iter().map(|place| place.core), "cores")?;
        self.sorted(spaces.iter().map(|space| space.netns), "spaces")?;
        self.sorted(owners.iter().map(|owned| owned.link), "owners")?;
        self.sorted(benchmarks.iter().map(|one| one.pid), "benchmarks")?;
        self.sorted(offloads.iter().map(|told| told.link), "offloads")?;
        self.sorted(steering.iter().map(|told| told.link), "steerings")?;
        self.sorted(family.iter().flat_map(|pids| &**pids), "processes")?;
        self.possible(topology.cores.iter().map(|place| place.core))?;
        self.possible(steering.iter().flat_map(|told| &told.napi).map(|thread| thread.core))?;
        self.possible(runners.iter().map(|runner| runner.core))
    }

    fn check(&self, sample: &Sample) -> Result<(), RecordError> {
        self.sorted(sample.counters.iter().map(LinkCounters::key), "counters")?;
        self.sorted(sample.cores.iter().map(|row| row.core), "cores")?;
        self.sorted(sample.threads.iter().map(|thread| (thread.id.pid, thread.id.tid)), "threads")?;
        self.sorted(sample.flows.iter().map(FlowSample::key), "flows")?;
        self.sorted(sample.qdiscs.iter().map(|qdisc| (qdisc.link, qdisc.handle)), "qdiscs")?;
        self.sorted(sample.protocols.iter().map(|counters| counters.netns), "protocols")?;
        self.sorted(sample.datapaths.iter().map(OvsDatapath::key), "datapaths")?;
        self.possible(sample.cores.iter().map(|row| row.core).chain(sample.threads.iter().map(|thread| thread.core)))?;
        self.possible(sample.trace.iter().flat_map(|trace| &trace.moves).flat_map(|moved| [moved.from, moved.to]))
    }

    /// Everything behind relies on this order; a recording that breaks it was not written by vnettop.
    fn sorted<K: PartialOrd>(&self, keys: impl Iterator<Item = K>, what: &str) -> Result<(), RecordError> {
        if keys.is_sorted_by(|a, b| a < b) { Ok(()) } else { Err(self.damaged(format!("its {what} are out of order"))) }
    }

    /// A core that no kernel can have would only be memory wasted.
    fn possible(&self, mut cores: impl Iterator<Item = CoreId>) -> Result<(), RecordError> {
        match cores.find(|&core| core >= MOST_CORES) {
            Some(core) => Err(self.damaged(format!("there is no core {core}"))),
            None => Ok(()),
        }
    }

    fn damaged(&self, reason: String) -> RecordError {
        RecordError::Line { path: self.path.clone(), line: self.line, reason }
    }
}

/// What is wrong with a line, which is one line of JSON: its own number in that says nothing.
fn reason(error: &serde_json::Error) -> String {
    let (text, column) = (error.to_string(), error.column());
    let place = format!(" at line {} column {column}", error.line());
    text.strip_suffix(&place).map_or_else(|| text.clone(), |what| format!("{what} (column {column})"))
}
