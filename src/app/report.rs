//! Recordings → a report: read from start to end, folded, written as text. What the screen has seen so far makes one too.

use super::AppError;
use crate::derive::run::Run;
use crate::derive::{Derivation, SummaryRoom, SummaryTrack};
use crate::record::{RecordError, Recording};
use crate::report::anonymise::Anonymiser;
use crate::report::recording::{ReportedRecording, report as written};
use crate::sample::{Event, Item};
use std::path::{Path, PathBuf};

pub use crate::report::recording::{ReportFormat, ReportOptions};

/// The report of these recordings.
///
/// # Errors
/// One of them cannot be opened: it is none, or cannot be read. What is damaged further on is reported as far as it goes.
pub fn report(recordings: &[PathBuf], format: ReportFormat, options: ReportOptions) -> Result<String, AppError> {
    let read = |(nth, path): (usize, &PathBuf)| read(path, nth + 1, options);
    let read = recordings.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(written(&read, format, options))
}

fn read(path: &Path, number: usize, options: ReportOptions) -> Result<ReportedRecording, AppError> {
    let mut recording = Recording::open(path)?;
    let (mut derivation, mut track) = (Derivation::default(), SummaryTrack::new(SummaryRoom::REPORT));
    // Only a recording of a run has a card of one.
    let mut run: Option<Run> = None;
    let mut anonymiser = options.anonymised.then(Anonymiser::default);
    let mut notes = Vec::new();
    loop {
        let item = match recording.next_item() {
            Ok(Some(item)) => item,
            Ok(None) => break,
            Err(error) => {
                notes.push(damaged(&error));
                break;
            }
        };
        let item = match &mut anonymiser {
            Some(anonymiser) => anonymiser.item(item),
            None => item,
        };
        if matches!(item, Item::Event(Event::RunAsked(_))) {
            run = run.or_else(|| Some(Run::default()));
        }
        if let Some(run) = &mut run {
            run.item(item.clone());
        }
        if let Some(metrics) = derivation.advance(item) {
            track.observe(&metrics);
        }
    }
    notes.extend(recording.truncated().map(str::to_owned));
    if options.anonymised && !notes.is_empty() {
        // The sentence names the file, and may hold a word of it.
        notes = vec!["the recording is damaged: this is what is before that".to_owned()];
    }
    let file = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    Ok(ReportedRecording {
        name: if options.anonymised { format!("recording {number}") } else { file },
        summary: track.summary(),
        run: run.and_then(|run| run.card()),
        recorded_by: Some(recording.recorded_by().to_owned())
            .filter(|version| !options.anonymised || is_version(version)),
        notes,
    })
}

/// It is no name.
fn is_version(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// What becomes of a recording that cannot be read on.
fn damaged(error: &RecordError) -> String {
    match error {
        RecordError::Line { line, reason, .. } => {
            format!("the recording is damaged in line {line} ({reason}): this is what is before that")
        }
        other => format!("{other}: this is what could be read before that"),
    }
}
