//! What iperf 3 writes with `--json-stream`, followed while it grows: in the file that the user named, and wherever the
//! watched processes themselves write to. The files are outside input: whatever is in them gives figures or nothing.

mod lines;
mod own;
mod place;
mod tail;

pub use lines::Lines;

use crate::{Roots, now_ns, publish};
use own::OwnReports;
use std::path::PathBuf;
use std::sync::Arc;
use tail::{Tail, TailTarget};
use vnettop_sample::{Benchmark, Event, Problem, ProblemSource, Report, Side};

/// How long the named file may stay empty during a test, ns: iperf 3 reports every second, and flushes some seconds later.
const SILENT_NS: u64 = 10_000_000_000;
/// How often the path that the user named is checked for another file, ns.
const LOOK_NS: u64 = 1_000_000_000;

/// A process, its side, and what it reported.
type ProcessReport = (u32, Option<Side>, Report);

/// Follows the reports of all benchmarks: in the file that the user named, and in the files that they write themselves.
#[derive(Debug, Default)]
pub(crate) struct ReportStreams {
    roots: Roots,
    named: Option<Named>,
    own: OwnReports,
    /// Buffer for reading, used again and again.
    piece: Vec<u8>,
    stated: Vec<ProcessReport>,
    joined: Arc<Vec<Benchmark>>,
}

impl ReportStreams {
    /// Nothing is opened yet: iperf 3 may make the file later.
    pub fn new(roots: &Roots, named: Option<PathBuf>) -> Self {
        let named = named.map(|path| Named { path, ..Named::default() });
        Self { roots: roots.clone(), named, ..Self::default() }
    }

    /// Why the file that was named is not read; empty is the normal case.
    pub fn problems(&self) -> &[Problem] {
        self.named.as_ref().map_or(&[], |named| &named.problems)
    }

    /// Reports on whole tests since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        let at_ns = if self.stated.is_empty() { 0 } else { now_ns() };
        let event = |(pid, side, report)| Event::Reported { at_ns, pid, side, report };
        self.stated.drain(..).map(event).collect()
    }

    /// The benchmarks with what each reported last; the same `Arc` until that changes.
    pub fn join(&mut self, benchmarks: Arc<Vec<Benchmark>>) -> Arc<Vec<Benchmark>> {
        let nobody = self.own.is_empty() && !benchmarks.iter().any(|test| test.json_stream);
        if self.named.is_none() && nobody {
            return benchmarks;
        }
        let now_ns = now_ns();
        if let Some(named) = &mut self.named {
            named.follow(&benchmarks, now_ns, &mut self.piece, &mut self.stated);
        }
        let named = self.named.as_ref().and_then(|named| named.writer);
        self.own.follow((&self.roots, now_ns), &benchmarks, named, &mut self.piece, &mut self.stated);
        let mut joined = benchmarks.to_vec();
        for test in joined.iter_mut().filter(|test| test.json_stream) {
            (test.reported, test.unread) = match &self.named {
                Some(of) if Some(test.pid) == named => (of.tail.as_ref().and_then(|tail| tail.lines.last), None),
                _ => self.own.of(test.pid),
            };
        }
        publish(&mut self.joined, joined);
        Arc::clone(&self.joined)
    }
}

/// The file that the user named.
#[derive(Debug, Default)]
struct Named {
    path: PathBuf,
    tail: Option<Tail>,
    looked_at_ns: u64,
    /// The process that writes the file; `None` when it is not clear which one does.
    writer: Option<u32>,
    /// Since when a test has been running that writes nothing, ns.
    silent_since_ns: Option<u64>,
    problems: Vec<Problem>,
}

impl Named {
    fn follow(&mut self, benchmarks: &[Benchmark], now_ns: u64, piece: &mut Vec<u8>, stated: &mut Vec<ProcessReport>) {
        // The last lines may come after their writer has ended.
        let before = self.writer;
        self.writer = writer(benchmarks).map(|at| benchmarks[at].pid);
        self.read(now_ns, piece);
        if let (Some(tail), Some(pid)) = (&mut self.tail, self.writer.or(before)) {
            own::report(tail, pid, stated);
        }
        self.judge(benchmarks.iter().any(|test| test.side == Side::Client), now_ns);
    }

    fn read(&mut self, now_ns: u64, piece: &mut Vec<u8>) {
        let is_due = now_ns.saturating_sub(self.looked_at_ns) >= LOOK_NS;
        if self.tail.as_ref().is_none_or(|tail| is_due && tail.is_replaced(&self.path)) {
            self.open();
        }
        if is_due {
            self.looked_at_ns = now_ns;
        }
        if let Some(tail) = &mut self.tail {
            tail.read(piece);
        }
    }

    /// A file that says something else than events, or nothing while a test runs, is useless: that is said once.
    fn judge(&mut self, runs: bool, now_ns: u64) {
        let Some(tail) = &self.tail else { return };
        if tail.lines.speaks {
            self.problems.clear();
            return;
        }
        let (is_strange, is_silent) = (tail.lines.is_strange(), tail.is_empty() && runs);
        self.silent_since_ns = is_silent.then(|| self.silent_since_ns.unwrap_or(now_ns));
        let silent_ns = self.silent_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        if !self.problems.is_empty() {
            return;
        }
        if is_strange {
            self.report("it does not hold what iperf3 writes with --json-stream");
        } else if silent_ns >= SILENT_NS {
            self.report("a test is running and has written nothing to it");
        }
    }

    fn report(&mut self, why: &str) {
        self.problems.push(Problem {
            source: ProblemSource::Benchmarks,
            text: format!(
                "cannot read {} ({why}): start iperf3 with --json-stream > that file",
                vnettop_sample::text::clean(self.path.as_os_str().as_encoded_bytes())
            ),
        });
    }

    /// Opens what is behind the name now; a file that is open already is kept where that fails.
    fn open(&mut self) {
        let why = match Tail::open(&self.path, None) {
            Ok(TailTarget::File(tail)) => {
                self.tail = Some(tail);
                self.problems.clear();
                return;
            }
            Ok(TailTarget::Other(_)) => "it is not a regular file".to_owned(),
            Err(error) => std::io::Error::from(error).to_string(),
        };
        if self.tail.is_none() && self.problems.is_empty() {
            self.report(&why);
        }
    }
}

/// Index of the one benchmark with `--json-stream`: the only client, or, when there is no client, the only server.
fn writer(benchmarks: &[Benchmark]) -> Option<usize> {
    let of = |side| {
        let mut all = (0..benchmarks.len()).filter(|&at| benchmarks[at].json_stream && benchmarks[at].side == side);
        (all.next(), all.next())
    };
    match (of(Side::Client), of(Side::Server)) {
        ((Some(client), None), _) => Some(client),
        ((None, _), (Some(server), None)) => Some(server),
        _ => None,
    }
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(super) fn fuzz(bytes: &[u8]) {
    for is_new in [false, true] {
        let mut lines = lines::Lines::default();
        bytes.chunks(7).for_each(|bytes| lines.take(bytes, is_new));
        let _ = (lines.last_of_its_own(), lines.ended());
    }
}

#[cfg(test)]
mod tests;
