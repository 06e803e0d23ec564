//! Reads a recording back into the items it was written from. A recording is outside input: whatever is in it gives
//! items or a sentence, never a panic.

use super::clean;
use super::{Header, Line, RecordError, Row, SCHEMA_VERSION};
use crate::sample::{
    Benchmark, CoreId, FlowPath, FlowSample, Host, Item, LinkCounters, LinkFacts, MOST_CORES, Offloads, OvsDatapath,
    OvsSwitch, Owned, Problem, Runner, Sample, Space, Steering, Topology,
};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// No line of a real recording comes near it (8,000 links take about 3 MB); a longer one is not read into memory.
const LONGEST_LINE: u64 = 64 << 20;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A recording being read.
pub struct Recording {
    path: PathBuf,
    input: Box<dyn BufRead + Send>,
    line: usize,
    buffer: Vec<u8>,
    host: Arc<Host>,
    links: Arc<Vec<Arc<LinkFacts>>>,
    topology: Arc<Topology>,
    problems: Arc<Vec<Problem>>,
    spaces: Arc<Vec<Space>>,
    owners: Arc<Vec<Owned>>,
    ovs: Arc<Vec<OvsSwitch>>,
    paths: Arc<Vec<FlowPath>>,
    benchmarks: Arc<Vec<Benchmark>>,
    offloads: Arc<Vec<Offloads>>,
    steering: Arc<Vec<Steering>>,
    family: Option<Arc<Vec<u32>>>,
    runners: Arc<Vec<Runner>>,
    truncated: Option<String>,
}

impl Recording {
    /// Opens a recording and checks its first line.
    ///
    /// # Errors
    /// The file cannot be read, is something else, or of another version.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let at = |error| RecordError::File { operation: "read", path: path.to_owned(), error };
        let mut file = BufReader::new(File::open(path).map_err(at)?);
        let compressed = file.fill_buf().map_err(at)?.starts_with(&ZSTD_MAGIC);
        let input: Box<dyn BufRead + Send> = if compressed {
            Box::new(BufReader::new(zstd::stream::read::Decoder::with_buffer(file).map_err(at)?))
        } else {
            Box::new(file)
        };
        let mut recording = Self {
            path: path.to_owned(),
            input,
            line: 0,
            buffer: Vec::new(),
            host: Arc::default(),
            links: Arc::default(),
            topology: Arc::default(),
            problems: Arc::default(),
            spaces: Arc::default(),
            owners: Arc::default(),
            ovs: Arc::default(),
            paths: Arc::default(),
            benchmarks: Arc::default(),
            offloads: Arc::default(),
            steering: Arc::default(),
            family: None,
            runners: Arc::default(),
            truncated: None,
        };
        recording.header()?;
        Ok(recording)
    }

    /// Said once the end is reached, when the recording ends in the middle of a line.
    #[must_use]
    pub fn truncated(&self) -> Option<&str> {
        self.truncated.as_deref()
    }

    /// The next item; none at the end.
    ///
    /// # Errors
    /// A line in the middle that cannot be used.
    pub fn next_item(&mut self) -> Result<Option<Item>, RecordError> {
        while self.read_line()? {
            let line: Line<'static> = match serde_json::from_slice(&self.buffer) {
                Ok(line) => line,
                Err(_) if self.is_cut_off()? => {
                    self.cut_off("in the middle of a line");
                    return Ok(None);
                }
                Err(error) => return Err(self.damaged(reason(&error))),
            };
            match line {
                Line::Host(host) => self.host = clean::host(host),
                Line::Links(links) => {
                    self.sorted(links.iter().map(|link| link.key()), "links")?;
                    self.links = clean::links(links);
                }
                Line::Topology(topology) => {
                    self.sorted(topology.cores.iter().map(|place| place.core), "cores")?;
                    self.possible(topology.cores.iter().map(|place| place.core))?;
                    self.topology = topology;
                }
                Line::Problems(problems) => self.problems = clean::problems(problems),
                Line::Spaces(spaces) => {
                    self.sorted(spaces.iter().map(|space| space.netns), "spaces")?;
                    self.spaces = clean::spaces(spaces);
                }
                Line::Owners(owners) => {
                    self.sorted(owners.iter().map(|owned| owned.link), "owners")?;
                    self.owners = clean::owners(owners);
                }
                Line::Ovs(ovs) => self.ovs = clean::ovs(ovs),
                Line::Paths(paths) => self.paths = clean::paths(paths),
                Line::Benchmarks(benchmarks) => {
                    self.sorted(benchmarks.iter().map(|one| one.pid), "benchmarks")?;
                    self.benchmarks = clean::benchmarks(benchmarks);
                }
                Line::Offloads(offloads) => {
                    self.sorted(offloads.iter().map(|told| told.link), "offloads")?;
                    self.offloads = offloads;
                }
                Line::Steering(steering) => {
                    self.sorted(steering.iter().map(|told| told.link), "steerings")?;
                    self.possible(steering.iter().flat_map(|told| &told.napi).map(|thread| thread.core))?;
                    self.steering = steering;
                }
                Line::Family(family) => {
                    self.sorted(family.iter(), "processes")?;
                    self.family = Some(family);
                }
                Line::Runners(runners) => {
                    self.possible(runners.iter().map(|runner| runner.core))?;
                    self.runners = clean::runners(runners);
                }
                Line::Event(event) => return Ok(Some(Item::Event(clean::event(event.into_owned())))),
                Line::Sample(row) => return self.sample(*row).map(Some),
            }
        }
        Ok(None)
    }

    fn header(&mut self) -> Result<(), RecordError> {
        let foreign = || RecordError::Foreign(self.path.clone());
        // The first line of something else may be endless; a header is short.
        let mut first = Vec::new();
        let read = (&mut self.input).take(4096).read_until(b'\n', &mut first);
        read.map_err(|_| foreign())?;
        let header: Header = serde_json::from_slice(&first).map_err(|_| foreign())?;
        self.line = 1;
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
            Err(error) => Err(self.file_error(error)),
        }
    }

    /// The line just read is the last and has no end of line: the writer was stopped in the middle of it.
    fn is_cut_off(&mut self) -> Result<bool, RecordError> {
        if self.buffer.ends_with(b"\n") {
            return Ok(false);
        }
        let rest = self.input.fill_buf().map_err(|error| RecordError::File {
            operation: "read",
            path: self.path.clone(),
            error,
        })?;
        Ok(rest.is_empty())
    }

    fn cut_off(&mut self, place: &str) {
        self.truncated = Some(format!(
            "recording {} ends {place} (line {}): the writer was stopped; everything before it is shown",
            self.path.display(),
            self.line
        ));
    }

    fn sample(&self, row: Row<'static>) -> Result<Item, RecordError> {
        self.sorted(row.counters.iter().map(LinkCounters::key), "counters")?;
        self.sorted(row.cores.iter().map(|row| row.core), "cores")?;
        self.sorted(row.threads.iter().map(|thread| (thread.id.pid, thread.id.tid)), "threads")?;
        self.sorted(row.flows.iter().map(FlowSample::key), "flows")?;
        self.sorted(row.qdiscs.iter().map(|qdisc| (qdisc.link, qdisc.handle)), "qdiscs")?;
        self.sorted(row.protocols.iter().map(|counters| counters.netns), "protocols")?;
        self.sorted(row.datapaths.iter().map(OvsDatapath::key), "datapaths")?;
        self.possible(row.cores.iter().map(|row| row.core).chain(row.threads.iter().map(|thread| thread.core)))?;
        self.possible(row.trace.iter().flat_map(|trace| &trace.moves).flat_map(|moved| [moved.from, moved.to]))?;
        Ok(Item::Sample(Box::new(Sample {
            wall_ms: row.wall_ms,
            at_ns: row.at_ns,
            host: Arc::clone(&self.host),
            netns: row.netns,
            links: Arc::clone(&self.links),
            counters: row.counters.into_owned(),
            topology: Arc::clone(&self.topology),
            cores_at_ns: row.cores_at_ns,
            cores: row.cores.into_owned(),
            threads: clean::threads(row.threads.into_owned()),
            trace: row.trace.map(Cow::into_owned),
            kernel: row.kernel.map(clean::kernel),
            flows: row.flows.into_owned(),
            spaces: Arc::clone(&self.spaces),
            owners: Arc::clone(&self.owners),
            ovs: Arc::clone(&self.ovs),
            paths: Arc::clone(&self.paths),
            benchmarks: Arc::clone(&self.benchmarks),
            qdiscs: clean::qdiscs(row.qdiscs.into_owned()),
            protocols: row.protocols.into_owned(),
            datapaths: clean::datapaths(row.datapaths.into_owned()),
            offloads: Arc::clone(&self.offloads),
            steering: Arc::clone(&self.steering),
            family: self.family.clone(),
            runners: Arc::clone(&self.runners),
            own: row.own,
            problems: Arc::clone(&self.problems),
        })))
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

    fn file_error(&self, error: io::Error) -> RecordError {
        RecordError::File { operation: "read", path: self.path.clone(), error }
    }
}

/// What is wrong with a line, which is one line of JSON: its own number in that says nothing.
fn reason(error: &serde_json::Error) -> String {
    let (text, column) = (error.to_string(), error.column());
    let place = format!(" at line {} column {column}", error.line());
    text.strip_suffix(&place).map_or_else(|| text.clone(), |what| format!("{what} (column {column})"))
}
