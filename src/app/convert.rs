//! A recording → a file for other programs: read from start to end, derived, and written as it is read.

use crate::convert::{Conversion, ConvertedTo, StartedAt};
use crate::derive::{Derivation, Metrics};
use crate::record::{RecordError, Recording, StoredIn};
use crate::sample::Item;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What of which recording is written, and where to.
#[derive(Debug, Clone, Copy)]
pub struct AskedFile<'a> {
    /// The recording.
    pub recording: &'a StoredIn,
    /// Which of its hosts, by name, where it is of several.
    pub host: Option<&'a str>,
    /// The first moment, as time since its first sample.
    pub from: Duration,
    /// The last one; none is its end.
    pub to: Option<Duration>,
    /// What it is written as.
    pub format: ConvertedTo,
    /// A file that is made; none is standard output.
    pub output: Option<&'a Path>,
}

/// Why nothing was converted.
#[derive(Debug, thiserror::Error)]
pub enum ConversionError {
    /// The recording.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// There is something with the name of the file.
    #[error("{} exists already: name another file, or remove it first", .0.display())]
    Exists(PathBuf),
    /// The file.
    #[error("cannot write {}: {}", .0.display(), .1)]
    File(PathBuf, #[source] io::Error),
    /// Standard output.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
    /// A trace is asked for, and standard output is a terminal.
    #[error("a trace is not text for a terminal: name a file, as in -o run.pftrace")]
    NotText,
    /// Whose clock it is to be was not said.
    #[error("the recording has several hosts, each with a clock of its own: choose one with --of: {0}")]
    SeveralHosts(String),
    /// Stacks are asked for, and no core was looked at.
    #[error("no core was profiled in it: record with --profile CORE, or press K")]
    NothingProfiled,
    /// It has no such host.
    #[error("--of names no host of the recording, it is of {0}")]
    OtherHosts(String),
}

/// Writes a recording, or a part of it, for another program. Gives the sentence of what is missing at the end.
///
/// # Errors
/// The recording cannot be read, nothing of it lies there, or the file is there already or cannot be written: then there is none.
pub fn convert(asked: &AskedFile<'_>) -> Result<Option<String>, ConversionError> {
    let recording = opened(asked)?;
    let Some(path) = asked.output else {
        let out = io::stdout();
        if asked.format == ConvertedTo::Perfetto && out.is_terminal() {
            return Err(ConversionError::NotText);
        }
        return match written(asked, recording, out.lock(), ConversionError::Output) {
            // Whoever reads has seen enough.
            Err(ConversionError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
            result => result,
        };
    };
    let file = new_file(path)?;
    let failed = |error| ConversionError::File(path.to_owned(), error);
    written(asked, recording, file, failed).inspect_err(|_| drop(fs::remove_file(path)))
}

/// The recording of the machine or of the host that was asked for.
fn opened(asked: &AskedFile<'_>) -> Result<Recording, ConversionError> {
    let recording = Recording::open_stored(asked.recording)?;
    let hosts = recording.hosts();
    let at = match (asked.host, hosts) {
        (None, [] | [_]) => 0,
        (None, hosts) => return Err(ConversionError::SeveralHosts(hosts.join(", "))),
        (Some(name), hosts) => hosts.iter().position(|host| host == name).ok_or_else(|| {
            let known = if hosts.is_empty() { "one machine, which needs no --of".to_owned() } else { hosts.join(", ") };
            ConversionError::OtherHosts(known)
        })?,
    };
    Ok(recording.of_host(at))
}

/// For nobody else to read, as a recording is: it has other users' command lines.
fn new_file(path: &Path) -> Result<File, ConversionError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => ConversionError::Exists(path.to_owned()),
        _ => ConversionError::File(path.to_owned(), error),
    })
}

fn written<W: Write>(
    asked: &AskedFile<'_>,
    mut recording: Recording,
    out: W,
    failed: impl Fn(io::Error) -> ConversionError,
) -> Result<Option<String>, ConversionError> {
    let mut part = WrittenPart {
        asked,
        out: Some(BufWriter::with_capacity(1 << 16, out)),
        conversion: None,
        first_ns: None,
        since: None,
        is_profiled: false,
    };
    let mut derivation = Derivation::default();
    let (mut missing, mut last) = (None, Vec::new());
    loop {
        let item = match recording.next_item() {
            Ok(Some(item)) => item,
            Ok(None) => break,
            Err(damage @ RecordError::Line { .. }) if part.conversion.is_some() => {
                missing = Some(damage.to_string());
                break;
            }
            Err(error) => return Err(error.into()),
        };
        let event = if let Item::Event(event) = &item { Some(event.clone()) } else { None };
        let Some(metrics) = derivation.advance(item) else {
            last.extend(event);
            continue;
        };
        if !part.observe(&metrics, &mut missing).map_err(&failed)? {
            break;
        }
        last.clear();
    }
    let truncated = recording.truncated().map(str::to_owned);
    let Some(conversion) = part.conversion else {
        let (path, last, AskedFile { from, to, .. }) = (asked.recording.path().to_owned(), part.since, *asked);
        return Err(RecordError::NothingThere { path, from, to, last, truncated }.into());
    };
    if asked.format == ConvertedTo::Stacks && !part.is_profiled {
        return Err(ConversionError::NothingProfiled);
    }
    conversion.finish(&last).map_err(failed)?;
    Ok(missing.or(truncated))
}

/// The part of a recording that was asked for.
struct WrittenPart<'a, W> {
    asked: &'a AskedFile<'a>,
    /// Where to; none once something is written there.
    out: Option<W>,
    conversion: Option<Conversion<W>>,
    /// The first sample, monotonic ns.
    first_ns: Option<u64>,
    /// The last sample, as time since the first.
    since: Option<Duration>,
    /// A core was profiled in the part.
    is_profiled: bool,
}

impl<W: Write> WrittenPart<'_, W> {
    /// Takes the next sample; false behind the last one.
    fn observe(&mut self, metrics: &Metrics, missing: &mut Option<String>) -> io::Result<bool> {
        let at_ns = metrics.machine.at_ns;
        let first_ns = *self.first_ns.get_or_insert(at_ns);
        let since = Duration::from_nanos(at_ns.saturating_sub(first_ns));
        if at_ns < first_ns || self.since.is_some_and(|before| since < before) {
            let before = self.since.unwrap_or_default().as_secs_f64();
            *missing =
                Some(format!("the clock of the recording goes back after {before:.1} s: what follows is left out"));
            return Ok(false);
        }
        self.since = Some(since);
        if self.asked.to.is_some_and(|to| since > to) {
            return Ok(false);
        }
        if since < self.asked.from {
            return Ok(true);
        }
        self.is_profiled |= metrics.machine.profile.is_some();
        if let Some(out) = self.out.take() {
            // Of the whole recording everything counts, also what was done before its first sample.
            let since_ns = if self.asked.from.is_zero() { 0 } else { at_ns };
            let from = StartedAt { origin_ns: Some(first_ns), since_ns };
            self.conversion = Some(Conversion::new(self.asked.format, from, out)?);
        }
        match &mut self.conversion {
            Some(conversion) => conversion.observe(metrics).map(|()| true),
            None => Ok(true),
        }
    }
}
