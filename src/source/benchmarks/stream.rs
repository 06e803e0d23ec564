//! What iperf 3 writes with `--json-stream`, followed while it grows: the last interval it reported. The file is outside
//! input: whatever is in it gives an interval or nothing.

use crate::sample::{Benchmark, Problem, Reported, Side};
use crate::source::now_ns;
use rustix::fs::{FileType, Mode, OFlags};
use serde_json::Value;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// Read in one tick at most; an interval takes some 500 bytes, and as much a stream.
const PIECE: usize = 64 * 1024;
/// No interval is as long; what is longer is left out.
const LONGEST_LINE: usize = 1024 * 1024;
/// More than this far from the end of a file the last interval is looked for near its end.
const FAR_BEHIND: u64 = 1024 * 1024;

/// A test reports every second, and what it does not flush waits for some seconds more.
const SILENT_NS: u64 = 10_000_000_000;

/// Follows one file.
#[derive(Debug)]
pub(in crate::source) struct Reports {
    path: PathBuf,
    file: Option<OwnedFd>,
    /// How far it was read.
    at: u64,
    /// Used again and again.
    piece: Vec<u8>,
    /// The beginning of a line.
    begun: Vec<u8>,
    last: Option<Reported>,
    /// An event of iperf 3 was in it.
    speaks: bool,
    /// A line of it was no event.
    strange: bool,
    /// Since when a test has been running that writes nothing, ns.
    silent_since_ns: Option<u64>,
    /// What the test was last told with, and what that made.
    told: (Arc<Vec<Benchmark>>, Option<Reported>),
    joined: Arc<Vec<Benchmark>>,
    problems: Vec<Problem>,
}

impl Reports {
    /// Nothing is opened yet: iperf 3 may make the file later.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            at: 0,
            piece: Vec::new(),
            begun: Vec::new(),
            last: None,
            speaks: false,
            strange: false,
            silent_since_ns: None,
            told: (Arc::default(), None),
            joined: Arc::default(),
            problems: Vec::new(),
        }
    }

    /// Why the file is not read; empty is the normal case.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The benchmarks with what the file reported last, where it can only be of one of them; the same `Arc` until that
    /// changes.
    pub fn join(&mut self, benchmarks: Arc<Vec<Benchmark>>) -> Arc<Vec<Benchmark>> {
        self.read();
        self.judge(benchmarks.iter().any(|test| test.side == Side::Client), now_ns());
        if Arc::ptr_eq(&self.told.0, &benchmarks) && self.told.1 == self.last {
            return Arc::clone(&self.joined);
        }
        self.joined = match self.last.zip(writer(&benchmarks)) {
            None => Arc::clone(&benchmarks),
            Some((last, at)) => {
                let mut joined = (*benchmarks).clone();
                joined[at].reported = Some(last);
                Arc::new(joined)
            }
        };
        self.told = (benchmarks, self.last);
        Arc::clone(&self.joined)
    }

    fn read(&mut self) {
        if self.file.is_none() {
            self.open();
        }
        let Some(file) = &self.file else { return };
        let size = rustix::fs::fstat(file).ok().and_then(|stat| u64::try_from(stat.st_size).ok()).unwrap_or(self.at);
        // Written anew: nothing of before belongs to it.
        if size < self.at {
            (self.at, self.last) = (0, None);
            self.begun.clear();
        }
        // What is old is not worth reading; the line that is cut there is no event.
        if size - self.at > FAR_BEHIND {
            self.at = size - FAR_BEHIND / 2;
            self.begun.clear();
        }
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(PIECE, 0);
        // What cannot be read now may be in the next tick.
        let length = rustix::io::pread(file, &mut piece, self.at).unwrap_or(0);
        self.at += length as u64;
        self.take(&piece[..length]);
        self.piece = piece;
    }

    /// A file that says something else than events, or nothing while a test runs, is useless: that is said once.
    fn judge(&mut self, runs: bool, now_ns: u64) {
        if self.speaks {
            self.problems.clear();
            return;
        }
        let is_silent = self.file.is_some() && self.at == 0 && runs;
        self.silent_since_ns = is_silent.then(|| self.silent_since_ns.unwrap_or(now_ns));
        let silent_ns = self.silent_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        if !self.problems.is_empty() {
            return;
        }
        if self.strange || self.begun.len() > LONGEST_LINE {
            self.tell("what is in it is not what iperf3 writes with --json-stream");
        } else if silent_ns >= SILENT_NS {
            self.tell("a test runs and has written nothing to it");
        }
    }

    fn tell(&mut self, why: &str) {
        self.problems.push(Problem {
            source: "benchmarks".to_owned(),
            text: format!(
                "cannot read {} ({why}): start iperf3 with --json-stream --forceflush > that file",
                crate::text::clean(self.path.as_os_str().as_encoded_bytes())
            ),
        });
    }

    fn open(&mut self) {
        // A pipe must not keep the sampler waiting.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = rustix::fs::open(&self.path, flags, Mode::empty());
        let is_file = |file: &OwnedFd| {
            rustix::fs::fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
        };
        let why = match &opened {
            Ok(file) if is_file(file) => None,
            Ok(_) => Some("it is no ordinary file".to_owned()),
            Err(error) => Some(std::io::Error::from(*error).to_string()),
        };
        self.problems.truncate(usize::from(why.is_some()));
        match why {
            None => self.file = opened.ok(),
            Some(why) if self.problems.is_empty() => self.tell(&why),
            Some(_) => {}
        }
    }

    /// Takes the next bytes of the file, whole lines of which are events.
    fn take(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.begun.extend_from_slice(line);
            if line.ends_with(b"\n") {
                if self.begun.len() <= LONGEST_LINE {
                    self.event();
                }
                self.begun.clear();
            }
            // What is left of a line that is too long is no event either.
            self.begun.truncate(LONGEST_LINE + 1);
        }
    }

    fn event(&mut self) {
        let event = serde_json::from_slice::<Value>(&self.begun).unwrap_or_default();
        match event["event"].as_str() {
            Some("start") => self.last = None,
            Some("interval") => self.last = interval(&event["data"]["sum"]).or(self.last),
            _ => {}
        }
        let is_event = event["event"].is_string();
        self.speaks |= is_event;
        self.strange |= !is_event && !self.begun.trim_ascii().is_empty();
    }
}

/// The one benchmark that writes such a file: a client, or where there is none a server.
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

/// The sum of an interval's streams.
fn interval(sum: &Value) -> Option<Reported> {
    let number = |name: &str, times: f64| super::rounded((sum[name].as_f64()? * times).round());
    Some(Reported {
        at_ms: number("end", 1000.0)?,
        length_ms: number("seconds", 1000.0)?,
        bits_per_s: number("bits_per_second", 1.0)?,
        retransmits: number("retransmits", 1.0),
        lost_packets: number("lost_packets", 1.0),
        packets: number("packets", 1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Seek, SeekFrom, Write};

    fn reports() -> Reports {
        Reports::new(PathBuf::from("/nonexistent"))
    }

    const START: &str = r#"{"event":"start","data":{"connected":[]}}"#;
    const TCP: &str = r#"{"event":"interval","data":{"streams":[],"sum":{"start":1,"end":2.0001,"seconds":1.0001,"bytes":125000000,"bits_per_second":999900009.9,"retransmits":7,"omitted":false,"sender":true}}}"#;
    const UDP: &str = r#"{"event":"interval","data":{"sum":{"start":0,"end":1,"seconds":1,"bits_per_second":1e6,"jitter_ms":0.1,"lost_packets":3,"packets":90,"lost_percent":3.3,"sender":false}}}"#;

    #[test]
    fn the_last_interval_is_taken_however_the_bytes_come() {
        let text = format!("{START}\n{UDP}\n{TCP}\n");
        let expected = Reported {
            at_ms: 2000,
            length_ms: 1000,
            bits_per_s: 999_900_010,
            retransmits: Some(7),
            lost_packets: None,
            packets: None,
        };
        for piece in [1, 7, 1000] {
            let mut reports = reports();
            text.as_bytes().chunks(piece).for_each(|bytes| reports.take(bytes));
            assert_eq!(reports.last, Some(expected), "in pieces of {piece}");
        }
        let mut reports = reports();
        reports.take(format!("{TCP}\n{UDP}\n").as_bytes());
        let udp = reports.last.expect("an interval");
        assert_eq!((udp.lost_packets, udp.packets, udp.retransmits), (Some(3), Some(90), None), "what UDP tells");
        reports.take(format!("{START}\n").as_bytes());
        assert_eq!(reports.last, None, "another test begins");
        reports.take(TCP.as_bytes());
        assert_eq!(reports.last, None, "half a line is none");
    }

    #[test]
    fn a_file_that_grows_and_is_written_anew_is_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("out.json");
        let mut reports = Reports::new(path.clone());
        reports.read();
        assert_eq!(reports.problems().len(), 1, "it is said that there is no file yet");
        std::fs::write(&path, format!("{START}\n{UDP}\n{TCP}\n")).expect("writable");
        reports.read();
        assert!(reports.problems().is_empty(), "now there is");
        assert_eq!(reports.last.and_then(|last| last.retransmits), Some(7), "its last interval");
        std::fs::write(&path, format!("{START}\n{UDP}\n")).expect("writable");
        reports.read();
        assert_eq!(reports.last.and_then(|last| last.packets), Some(90), "the new test's");
    }

    #[test]
    fn a_useless_file_is_told_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let told = |path: &std::path::Path| {
            let mut reports = Reports::new(path.to_owned());
            // At 0, 20 and 40 s of a running test.
            for second in [0, 20, 40] {
                reports.read();
                reports.judge(true, second * 1_000_000_000);
            }
            reports.problems().iter().map(|problem| problem.text.clone()).collect::<Vec<_>>()
        };
        let file = directory.path().join("out.json");
        std::fs::write(&file, "- - - - -\nServer listening on 5201\n").expect("writable");
        let [garbage] = &told(&file)[..] else { panic!("one sentence of garbage") };
        assert!(garbage.contains("not what iperf3 writes with --json-stream"), "{garbage}");
        std::fs::write(&file, "").expect("writable");
        let [empty] = &told(&file)[..] else { panic!("one sentence of a file that is never written") };
        assert!(empty.contains("has written nothing to it") && empty.contains("--forceflush"), "{empty}");
        let [folder] = &told(directory.path())[..] else { panic!("one sentence of a directory") };
        assert!(folder.contains("it is no ordinary file"), "{folder}");
        std::fs::write(&file, format!("\n{START}\n")).expect("writable");
        assert!(told(&file).is_empty(), "a test that has begun is no problem");
    }

    #[test]
    fn in_a_file_of_any_size_the_last_interval_is_found_soon() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("out.json");
        let mut file = std::fs::File::create(&path).expect("writable");
        // As large as a day of streams, without holding a byte of it.
        file.set_len(1 << 40).expect("a hole");
        file.seek(SeekFrom::End(0)).expect("its end");
        file.write_all(format!("\n{START}\n{TCP}\n").as_bytes()).expect("writable");
        let mut reports = Reports::new(path);
        (0..20).for_each(|_| reports.read());
        assert_eq!(reports.last.and_then(|last| last.retransmits), Some(7), "within twenty ticks");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            reports().take(&bytes);
        }

        #[test]
        fn any_numbers_are_survived(end: f64, rate: f64, lost: i64) {
            let sum = serde_json::json!({"end": end, "seconds": 1, "bits_per_second": rate, "lost_packets": lost});
            interval(&sum);
        }
    }
}
