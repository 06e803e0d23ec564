//! What every core has done and where it sits: three files of /proc kept open, sysfs only when the set of online cores
//! changes. It computes no rate. Cores are told by their labels, never by their position.

mod ksoftirqd;
mod softirqs;
mod softnet;
mod stat;
mod topology;

use super::proc_file::KeptFile;
use super::{Roots, SourceError, now_ns, way_out};
use ksoftirqd::Ksoftirqd;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use vnettop_sample::{CoreCounters, CoreSet, Problem, ProblemSource, Topology};

/// One reading of every core.
#[derive(Debug)]
pub struct CoreReading {
    /// `CLOCK_MONOTONIC` of the reading, ns.
    pub at_ns: u64,
    /// Online cores, sorted by core.
    pub cores: Vec<CoreCounters>,
    /// Where each sits; the same `Arc` until the set of online cores changes.
    pub topology: Arc<Topology>,
}

/// Reads the cores again and again.
#[derive(Debug)]
pub struct CoreReader {
    roots: Roots,
    stat: KeptFile,
    softirqs: Option<KeptFile>,
    softnet: Option<KeptFile>,
    ksoftirqd: Ksoftirqd,
    /// The cores that `topology` was read for.
    online: CoreSet,
    topology: Arc<Topology>,
    /// Files that could not be opened, for good.
    missing: Vec<Problem>,
    /// `missing`, and what the last reading of the topology met.
    problems: Vec<Problem>,
    buffer: Vec<u8>,
    columns: Vec<Option<usize>>,
}

impl CoreReader {
    /// Opens `/proc/stat`, `/proc/softirqs` and `/proc/net/softnet_stat`.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be opened; the other two only leave their figures unknown.
    pub fn open(roots: &Roots) -> Result<Self, SourceError> {
        let mut missing = Vec::new();
        let mut optional = |file: &str, lost: &str| {
            KeptFile::open(roots.proc.join(file)).map_err(|error| missing.push(without(&error, lost))).ok()
        };
        Ok(Self {
            stat: KeptFile::open(roots.proc.join("stat"))?,
            softirqs: optional("softirqs", "softirqs a second are not shown"),
            softnet: optional("net/softnet_stat", "backlog drops and squeezes are not shown"),
            roots: roots.clone(),
            ksoftirqd: Ksoftirqd::default(),
            online: CoreSet::new(),
            topology: Arc::default(),
            problems: missing.clone(),
            missing,
            buffer: Vec::new(),
            columns: Vec::new(),
        })
    }

    /// Reads every online core.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read or lists no core.
    pub fn read(&mut self) -> Result<CoreReading, SourceError> {
        let at_ns = now_ns();
        let mut cores = Vec::with_capacity(self.topology.cores.len());
        let text = self.stat.read(&mut self.buffer)?;
        stat::parse_stat(text, &mut cores);
        if cores.is_empty() {
            let found = vnettop_sample::text::clean(&text[..text.len().min(60)]);
            return Err(SourceError::Format { what: self.roots.proc.join("stat").display().to_string(), found });
        }
        if let Some(Ok(text)) = self.softirqs.as_ref().map(|file| file.read(&mut self.buffer)) {
            softirqs::parse_softirqs(text, &mut cores, &mut self.columns);
        }
        if let Some(Ok(text)) = self.softnet.as_ref().map(|file| file.read(&mut self.buffer)) {
            softnet::parse_softnet(text, &mut cores);
        }
        self.follow(&cores);
        self.ksoftirqd.read(&mut cores);
        Ok(CoreReading { at_ns, cores, topology: Arc::clone(&self.topology) })
    }

    /// What could not be read; empty is the normal case.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Reads the topology anew when cores came or went.
    fn follow(&mut self, cores: &[CoreCounters]) {
        if self.online.iter().eq(cores.iter().map(|row| row.core)) {
            return;
        }
        self.online = cores.iter().map(|row| row.core).collect();
        self.problems.clone_from(&self.missing);
        let topology = topology::read(&self.roots.sys, &self.online).unwrap_or_else(|(path, error)| {
            self.problems.push(no_topology(path, error));
            topology::flat(&self.online)
        });
        self.topology = Arc::new(topology);
        self.ksoftirqd = Ksoftirqd::find(&self.roots.proc, cores);
    }
}

fn without(error: &SourceError, lost: &str) -> Problem {
    Problem { source: ProblemSource::Cores, text: format!("{error}: {lost}") }
}

fn no_topology(path: PathBuf, error: io::Error) -> Problem {
    let mends = way_out(&error, "mount sysfs to see them");
    let error = SourceError::File { path, error };
    let text = format!("{error}: cores are shown without nodes, caches and clusters; {mends}");
    Problem { source: ProblemSource::Topology, text }
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    let mut rows = Vec::new();
    stat::parse_stat(bytes, &mut rows);
    assert!(rows.is_sorted_by(|a, b| a.core < b.core), "rows are sorted by core");
    softirqs::parse_softirqs(bytes, &mut rows, &mut Vec::new());
    softnet::parse_softnet(bytes, &mut rows);
}
