//! A part of a recording as a recording of its own: the facts and pins that stood at its start come first.

use super::standing::StandingEvents;
use super::{RecordError, Recorder, Recording, StoredIn};
use std::path::Path;
use std::time::Duration;
use vnettop_sample::Item;

/// Writes the part of a recording between two moments, both as time since its first sample, to a new file; without `to` up to
/// its end. Gives the sentence of what is missing at the end of a damaged recording.
///
/// # Errors
/// It cannot be read, nothing of it lies there, or the new file is there already or cannot be written.
pub fn cut(
    recording: &StoredIn,
    from: Duration,
    to: Option<Duration>,
    output: &Path,
) -> Result<Option<String>, RecordError> {
    if output.symlink_metadata().is_ok() {
        return Err(RecordError::Exists(output.to_owned()));
    }
    let hosts = Recording::open_stored(recording)?.hosts().to_vec();
    let mut cut = CutRecording { output, hosts: &hosts, written: None };
    let (mut missing, mut last) = (None, None);
    for host in 0..hosts.len().max(1) {
        let (damage, until) = cut.add(Recording::open_stored(recording)?.of_host(host), host, (from, to))?;
        (missing, last) = (missing.or(damage), last.max(until));
    }
    let Some(recorder) = cut.written else {
        return Err(RecordError::NothingThere {
            path: recording.path().to_owned(),
            from,
            to,
            last,
            truncated: missing,
        });
    };
    recorder.finish()?;
    Ok(missing)
}

/// A part being written.
struct CutRecording<'a> {
    output: &'a Path,
    /// Hosts of the recording; empty where it is of one machine.
    hosts: &'a [String],
    /// The recorder; `None` before there is anything to write.
    written: Option<Recorder>,
}

impl CutRecording<'_> {
    /// Adds what a host has between two moments; what is missing at its end, and the last moment that was looked at.
    fn add(
        &mut self,
        mut input: Recording,
        host: usize,
        (from, to): (Duration, Option<Duration>),
    ) -> Result<(Option<String>, Option<Duration>), RecordError> {
        let (mut standing, mut first_ns, mut since) = (StandingEvents::default(), None, Duration::ZERO);
        let mut begun = false;
        loop {
            let item = match input.next_item() {
                Ok(Some(item)) => item,
                Ok(None) => break,
                Err(damage @ RecordError::Line { .. }) if begun => return Ok((Some(damage.to_string()), Some(since))),
                Err(error) => return Err(error),
            };
            if let Item::Sample(sample) = &item {
                since = Duration::from_nanos(sample.at_ns.saturating_sub(*first_ns.get_or_insert(sample.at_ns)));
                if to.is_some_and(|to| since > to) {
                    break;
                }
                if since >= from && !std::mem::replace(&mut begun, true) {
                    for event in std::mem::take(&mut standing).events() {
                        self.recorder()?.write_of(host, &event)?;
                    }
                }
            }
            match item {
                item if begun => self.recorder()?.write_of(host, &item)?,
                Item::Event(event) => standing.pass(event),
                Item::Sample(_) => {}
            }
        }
        Ok((input.truncated().map(str::to_owned), first_ns.map(|_| since)))
    }

    fn recorder(&mut self) -> Result<&mut Recorder, RecordError> {
        match &mut self.written {
            Some(recorder) => Ok(recorder),
            none => Ok(none.insert(Recorder::create_new_of(self.output, self.hosts)?)),
        }
    }
}

/// Why nothing of a recording lies between two moments.
pub(super) fn nothing_there(
    from: Duration,
    to: Option<Duration>,
    last: Option<Duration>,
    truncated: Option<&str>,
) -> String {
    let seconds = |time: Duration| {
        let whole = time.as_secs();
        match whole / 3600 {
            0 => format!("{}:{:02}", whole / 60, whole % 60),
            hours => format!("{hours}:{:02}:{:02}", whole / 60 % 60, whole % 60),
        }
    };
    match (last, to) {
        _ if truncated.is_some() => truncated.unwrap_or_default().to_owned(),
        (None, _) => "it has no samples".to_owned(),
        (Some(last), None) => format!("it ends {} after its start, before {}", seconds(last), seconds(from)),
        (Some(last), Some(_)) if last < from => {
            format!("it ends {} after its start, before {}", seconds(last), seconds(from))
        }
        (Some(_), Some(to)) => {
            format!("no sample lies between {} and {} s after its start", from.as_secs_f64(), to.as_secs_f64())
        }
    }
}
