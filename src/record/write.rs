//! Writes a recording, line by line as the samples come, so that a crash loses at most the last second.

use super::patient::Patient;
use super::{Header, Line, RecordError, Row, SCHEMA_VERSION};
use crate::sample::{
    Benchmark, FlowPath, Host, Item, LinkFacts, Offloads, OvsSwitch, Owned, Problem, Runner, Sample, Space, Steering,
    Topology,
};
use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much time of a compressed recording may be lost to a crash, ns.
const FLUSH_EVERY_NS: u64 = 1_000_000_000;

/// A recording being written.
pub struct Recorder {
    path: PathBuf,
    out: Out,
    facts: Facts,
    flushed_at_ns: u64,
}

enum Out {
    Plain(BufWriter<Patient>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<Patient>>),
}

/// The facts last written; the same `Arc` again needs no look at its content.
#[derive(Default)]
struct Facts {
    host: Option<Arc<Host>>,
    links: Option<Arc<Vec<Arc<LinkFacts>>>>,
    topology: Option<Arc<Topology>>,
    problems: Option<Arc<Vec<Problem>>>,
    spaces: Arc<Vec<Space>>,
    owners: Arc<Vec<Owned>>,
    ovs: Arc<Vec<OvsSwitch>>,
    paths: Arc<Vec<FlowPath>>,
    benchmarks: Arc<Vec<Benchmark>>,
    offloads: Arc<Vec<Offloads>>,
    steering: Arc<Vec<Steering>>,
    family: Option<Arc<Vec<u32>>>,
    runners: Arc<Vec<Runner>>,
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
        let is_new = !path.exists();
        let recorder = Self::begin(path, Patient::create(path));
        if recorder.is_err() && is_new {
            remove_empty(path);
        }
        recorder
    }

    /// Begins a recording in a file that was not there before.
    ///
    /// # Errors
    /// There is something with its name, or it cannot be written.
    pub fn create_new(path: &Path) -> Result<Self, RecordError> {
        let file = Patient::create_new(path);
        let is_new = file.is_ok();
        let recorder = Self::begin(path, file);
        if recorder.is_err() && is_new {
            remove_empty(path);
        }
        recorder
    }

    fn begin(path: &Path, file: io::Result<Patient>) -> Result<Self, RecordError> {
        let at = |error| RecordError::File { operation: "write", path: path.to_owned(), error };
        let file = BufWriter::new(file.map_err(at)?);
        let out = match path.extension() {
            Some(ending) if ending == "zst" => Out::Zstd(zstd::stream::write::Encoder::new(file, 3).map_err(at)?),
            _ => Out::Plain(file),
        };
        let mut recorder = Self { path: path.to_owned(), out, facts: Facts::default(), flushed_at_ns: 0 };
        let header = Header { vnettop_recording: SCHEMA_VERSION, vnettop: env!("CARGO_PKG_VERSION").to_owned() };
        recorder.line(&header).and_then(|()| recorder.flush()).map_err(at)?;
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
        let written = match item {
            Item::Sample(sample) => self.sample(sample),
            Item::Event(event) => self.line(&Line::Event(Cow::Borrowed(event))).and_then(|()| self.flush()),
        };
        written.map_err(|error| self.error(error))
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// What was still in memory cannot be written.
    pub fn finish(self) -> Result<(), RecordError> {
        let Self { path, out, .. } = self;
        let written = match out {
            Out::Plain(mut file) => file.flush(),
            Out::Zstd(encoder) => encoder.finish().and_then(|mut file| file.flush()),
        };
        written.map_err(|error| RecordError::File { operation: "write", path, error })
    }

    fn error(&self, error: io::Error) -> RecordError {
        RecordError::File { operation: "write", path: self.path.clone(), error }
    }

    fn sample(&mut self, sample: &Sample) -> io::Result<()> {
        if changed(&mut self.facts.host, &sample.host) {
            self.line(&Line::Host(Arc::clone(&sample.host)))?;
        }
        if changed(&mut self.facts.topology, &sample.topology) {
            self.line(&Line::Topology(Arc::clone(&sample.topology)))?;
        }
        if changed(&mut self.facts.links, &sample.links) {
            self.line(&Line::Links(Arc::clone(&sample.links)))?;
        }
        if changed(&mut self.facts.problems, &sample.problems) {
            self.line(&Line::Problems(Arc::clone(&sample.problems)))?;
        }
        self.network(sample)?;
        self.line(&Line::Sample(Box::new(Row {
            wall_ms: sample.wall_ms,
            at_ns: sample.at_ns,
            netns: sample.netns,
            cores_at_ns: sample.cores_at_ns,
            own: sample.own,
            counters: Cow::Borrowed(&sample.counters),
            cores: Cow::Borrowed(&sample.cores),
            threads: Cow::Borrowed(&sample.threads),
            trace: sample.trace.as_ref().map(Cow::Borrowed),
            kernel: sample.kernel.clone(),
            flows: Cow::Borrowed(&sample.flows),
            qdiscs: Cow::Borrowed(&sample.qdiscs),
            protocols: Cow::Borrowed(&sample.protocols),
            datapaths: Cow::Borrowed(&sample.datapaths),
        })))?;
        let compressed = matches!(self.out, Out::Zstd(_));
        if !compressed || sample.at_ns.saturating_sub(self.flushed_at_ns) >= FLUSH_EVERY_NS {
            self.flushed_at_ns = sample.at_ns;
            self.flush()?;
        }
        Ok(())
    }

    /// The facts about namespaces, owners, switches, paths and benchmarks that changed.
    fn network(&mut self, sample: &Sample) -> io::Result<()> {
        if differs(&mut self.facts.spaces, &sample.spaces) {
            self.line(&Line::Spaces(Arc::clone(&sample.spaces)))?;
        }
        if differs(&mut self.facts.owners, &sample.owners) {
            self.line(&Line::Owners(Arc::clone(&sample.owners)))?;
        }
        if differs(&mut self.facts.ovs, &sample.ovs) {
            self.line(&Line::Ovs(Arc::clone(&sample.ovs)))?;
        }
        if differs(&mut self.facts.paths, &sample.paths) {
            self.line(&Line::Paths(Arc::clone(&sample.paths)))?;
        }
        if differs(&mut self.facts.benchmarks, &sample.benchmarks) {
            self.line(&Line::Benchmarks(Arc::clone(&sample.benchmarks)))?;
        }
        if differs(&mut self.facts.offloads, &sample.offloads) {
            self.line(&Line::Offloads(Arc::clone(&sample.offloads)))?;
        }
        if differs(&mut self.facts.steering, &sample.steering) {
            self.line(&Line::Steering(Arc::clone(&sample.steering)))?;
        }
        if let Some(family) = sample.family.as_ref().filter(|family| changed(&mut self.facts.family, family)) {
            self.line(&Line::Family(Arc::clone(family)))?;
        }
        if differs(&mut self.facts.runners, &sample.runners) {
            self.line(&Line::Runners(Arc::clone(&sample.runners)))?;
        }
        Ok(())
    }

    fn line(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        let out = self.out.writer();
        serde_json::to_writer(&mut *out, value)?;
        out.write_all(b"\n")
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.writer().flush()
    }
}

impl Out {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(file) => file,
            Self::Zstd(encoder) => encoder,
        }
    }
}

/// Whether the fact is another than the one last written; remembers it.
fn changed<T: PartialEq>(last: &mut Option<Arc<T>>, now: &Arc<T>) -> bool {
    let same = last.as_ref().is_some_and(|last| Arc::ptr_eq(last, now) || last == now);
    *last = Some(Arc::clone(now));
    !same
}

/// The same of a list that is empty until a line says otherwise.
fn differs<T: PartialEq>(last: &mut Arc<Vec<T>>, now: &Arc<Vec<T>>) -> bool {
    let same = Arc::ptr_eq(last, now) || last == now;
    *last = Arc::clone(now);
    !same
}
/// On a full disk: an empty file is no recording.
fn remove_empty(path: &Path) {
    if path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
        let _ = std::fs::remove_file(path);
    }
}
