//! A part of a recording as a recording of its own: the facts and pins that stood at its start come first.

use super::{RecordError, Recorder, Recording};
use crate::sample::{Event, Item, ThreadId};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What stands at some place by the events before it, but for facts, which a sample carries.
#[derive(Default)]
struct StandingEvents {
    /// What is known of a run: that it was asked for, its start, its newest phase.
    run: [Option<Event>; 3],
    pins: BTreeMap<ThreadId, Event>,
}

impl StandingEvents {
    fn pass(&mut self, event: Event) {
        match &event {
            Event::Pinned { thread, .. } => drop(self.pins.insert(*thread, event)),
            Event::Restored { thread, .. } => drop(self.pins.remove(thread)),
            Event::RunAsked(_) => self.run = [Some(event), None, None],
            Event::RunStarted { .. } => self.run[1] = Some(event),
            Event::Stretch { .. } => self.run[2] = Some(event),
            Event::RunEnded { .. } => self.run = [None, None, None],
            _ => {}
        }
    }

    fn events(self) -> impl Iterator<Item = Item> {
        self.run.into_iter().flatten().chain(self.pins.into_values()).map(Item::Event)
    }
}

/// Writes what lies between two moments of a recording, both as time since its first sample, to a new file; none is its end. Gives the sentence
/// of what is missing at the end of a damaged recording.
///
/// # Errors
/// It cannot be read, nothing of it lies there, or the new file is there already or cannot be written.
pub fn cut(
    recording: &Path,
    from: Duration,
    to: Option<Duration>,
    output: &Path,
) -> Result<Option<String>, RecordError> {
    if output.symlink_metadata().is_ok() {
        return Err(RecordError::Exists(output.to_owned()));
    }
    let mut input = Recording::open(recording)?;
    let (mut standing, mut first_ns, mut written, mut since) = (StandingEvents::default(), None, None, Duration::ZERO);
    let mut missing = None;
    loop {
        let item = match input.next_item() {
            Ok(Some(item)) => item,
            Ok(None) => break,
            Err(damage @ RecordError::Line { .. }) if written.is_some() => {
                missing = Some(damage.to_string());
                break;
            }
            Err(error) => return Err(error),
        };
        if let Item::Sample(sample) = &item {
            since = Duration::from_nanos(sample.at_ns.saturating_sub(*first_ns.get_or_insert(sample.at_ns)));
            if to.is_some_and(|to| since > to) {
                break;
            }
        }
        match (item, &mut written) {
            (item, Some(recorder)) => Recorder::write(recorder, &item)?,
            (Item::Event(event), None) => standing.pass(event),
            (item, None) if since >= from => {
                let mut recorder = Recorder::create_new(output)?;
                for event in std::mem::take(&mut standing).events() {
                    recorder.write(&event)?;
                }
                recorder.write(&item)?;
                written = Some(recorder);
            }
            _ => {}
        }
    }
    let Some(recorder) = written else {
        let (path, truncated) = (recording.to_owned(), input.truncated().map(str::to_owned));
        return Err(RecordError::NothingThere { path, from, to, last: first_ns.map(|_| since), truncated });
    };
    recorder.finish()?;
    Ok(missing.or_else(|| input.truncated().map(str::to_owned)))
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
