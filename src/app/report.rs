//! Recordings → a report: read from start to end, folded, written as text. What the screen has seen so far makes one too.

use super::AppError;
use super::compare::{self, CompareFileError};
use crate::derive::run::Run;
use crate::derive::{Derivation, SummaryRoom, SummaryTrack};
use crate::record::{RecordError, Recording, StoredIn};
use crate::report::WrittenAs;
use crate::report::anonymise::Anonymiser;
use crate::report::comparison::{NoComparison, comparison};
use crate::report::recording::{RecordingFile, ReportedRecording, report as written};
use crate::sample::{Comparison, Event, Item};
use crate::text;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub use crate::report::recording::ReportOptions;

/// The report of these recordings.
///
/// # Errors
/// One of them cannot be opened: it is none, or cannot be read. What is damaged further on is reported as far as it goes.
pub fn report(recordings: &[StoredIn], format: WrittenAs, options: ReportOptions) -> Result<String, AppError> {
    if let Some(comparisons) = comparisons(recordings)? {
        return Ok(compared(comparisons, format, options));
    }
    let mut all = Vec::new();
    for (stored, nth) in recordings.iter().zip(1..) {
        all.extend(read(stored, nth, options)?);
    }
    Ok(written(&all, format, options))
}

/// The comparisons that these files are; none where one is something else.
fn comparisons(recordings: &[StoredIn]) -> Result<Option<Vec<Comparison>>, AppError> {
    let is_json = |path: &PathBuf| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    let named = |stored: &StoredIn| match stored {
        StoredIn::File(path) => Some(path.clone()).filter(is_json),
        StoredIn::Program => None,
    };
    let Some(files) = recordings.iter().map(named).collect::<Option<Vec<PathBuf>>>() else { return Ok(None) };
    let mut comparisons = Vec::new();
    for path in &files {
        match compare::read(path) {
            Ok(comparison) => comparisons.push(comparison),
            Err(CompareFileError::Content(_, NoComparison::Foreign)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    match &*files {
        [_, _, third, ..] => Err(CompareFileError::TooMany(third.clone()).into()),
        _ => Ok(Some(comparisons)),
    }
}

/// The page of one comparison, or of two: the later against the earlier.
fn compared(mut comparisons: Vec<Comparison>, format: WrittenAs, options: ReportOptions) -> String {
    if options.anonymised {
        for one in &mut comparisons {
            "host".clone_into(&mut one.machine.host.name);
        }
    }
    comparisons.sort_by_key(|one| std::cmp::Reverse(one.began_ms));
    comparisons.first().map_or_else(String::new, |now| comparison(now, comparisons.get(1), format))
}

/// What a recording says, of each of its hosts.
fn read(stored: &StoredIn, number: usize, options: ReportOptions) -> Result<Vec<ReportedRecording>, AppError> {
    let name = match stored {
        _ if options.anonymised => format!("recording {number}"),
        StoredIn::File(path) => text::clean(path.file_name().unwrap_or(path.as_os_str()).as_bytes()),
        StoredIn::Program => "the built-in recording".to_owned(),
    };
    let path = match stored {
        StoredIn::File(path) if !options.anonymised => Some(path),
        _ => None,
    };
    let length = || std::fs::metadata(path?).ok().filter(std::fs::Metadata::is_file).map(|of| of.len());
    let length_before = length();
    let hosts = Recording::open_stored(stored)?.hosts().to_vec();
    let mut all: Vec<ReportedRecording> = Vec::new();
    for at in 0..hosts.len().max(1) {
        let host = match hosts.get(at) {
            Some(_) if options.anonymised => format!(", host {}", at + 1),
            Some(host) => format!(", {host}"),
            None => String::new(),
        };
        all.push(read_host(Recording::open_stored(stored)?.of_host(at), name.clone() + &host, options));
    }
    let file = path.zip(length_before).and_then(|(path, bytes)| fingerprint(path, bytes));
    for one in &mut all {
        one.file.clone_from(&file);
    }
    Ok(all)
}

/// A longer file has none: to sum it would take longer than to read what is a recording of it.
const MOST_SUMMED: u64 = 1 << 30;

/// Of a file of so many bytes, once its figures are known. None where it has grown meanwhile, which its figures may not have in them, and
/// where it cannot be read to its end: the report says so elsewhere.
fn fingerprint(path: &Path, length: u64) -> Option<RecordingFile> {
    if length > MOST_SUMMED {
        return None;
    }
    let file = File::open(path).ok()?;
    let mut hash = Fingerprint::default();
    let bytes = std::io::copy(&mut file.take(MOST_SUMMED), &mut hash).ok().filter(|bytes| *bytes == length)?;
    let sum = hash.0.finalize();
    let [high, low] = [&sum[..16], &sum[16..]].map(|half| half.try_into().map(u128::from_be_bytes).ok());
    Some(RecordingFile { bytes, sha256: format!("{:032x}{:032x}", high?, low?) })
}

/// Takes what is written into it as a hash does.
#[derive(Default)]
struct Fingerprint(hmac_sha256::Hash);

impl Write for Fingerprint {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn read_host(mut recording: Recording, name: String, options: ReportOptions) -> ReportedRecording {
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
    // They name the file.
    let mut notes: Vec<String> = notes.iter().map(|note| text::clean(note.as_bytes())).collect();
    if options.anonymised && !notes.is_empty() {
        // The sentence names the file, and may hold a word of it.
        notes = vec!["the recording is damaged: this is the part before the damage".to_owned()];
    }
    let summary = track.summary();
    let origin = summary.as_ref().and_then(|summary| summary.origin.clone());
    notes.splice(0..0, origin.map(|origin| text::clean(origin.as_bytes())));
    ReportedRecording {
        name,
        summary,
        run: run.and_then(|run| run.card()),
        file: None,
        recorded_by: Some(recording.recorded_by().to_owned())
            .filter(|version| !options.anonymised || is_version(version)),
        notes,
    }
}

/// It is no name.
fn is_version(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// What becomes of a recording that cannot be read on.
fn damaged(error: &RecordError) -> String {
    match error {
        RecordError::Line { line, reason, .. } => {
            format!("the recording is damaged in line {line} ({reason}): this is the part before that")
        }
        other => format!("{other}: this is what could be read before that"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{COMPARISON_VERSION, ComparisonPlan, Machine};

    fn written_to(folder: &Path, name: &str, began_ms: u64) -> PathBuf {
        let mut machine = Machine::default();
        name.clone_into(&mut machine.host.name);
        let plan = ComparisonPlan {
            seconds: 1.0,
            warm_up_s: 1.0,
            rounds: 1,
            loads: Vec::new(),
            pins: false,
            steers: false,
            steers_alone: false,
            unsteered: None,
            iperf3: None,
            is_root: true,
        };
        let one = Comparison {
            version: COMPARISON_VERSION,
            vnettop: "0.2.0".to_owned(),
            began_ms,
            machine,
            plan,
            interrupted: false,
            paths: Vec::new(),
        };
        let path = folder.join(format!("{name}.json"));
        std::fs::write(&path, comparison(&one, None, WrittenAs::Json)).expect("writable");
        path
    }

    #[test]
    fn an_escape_code_in_the_name_of_a_recording_reaches_no_report() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("a\u{1b}[31m\u{202e}.jsonl");
        std::fs::write(&path, "{\"vnettop_recording\":1,\"vnettop\":\"0.2.0\"}\nno line\nno line\n").expect("writable");
        for format in [WrittenAs::Html, WrittenAs::Markdown] {
            let text = report(&[StoredIn::from(&path)], format, ReportOptions::default()).expect("a recording");
            assert!(text.contains("a?[31m?.jsonl") || text.contains("a?\\[31m?.jsonl"), "{text}");
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
        }
    }

    #[test]
    fn comparisons_have_a_page_too_the_later_against_the_earlier() {
        let folder = tempfile::tempdir().expect("a directory");
        let (old, new) = (written_to(folder.path(), "oldhost", 1), written_to(folder.path(), "newhost", 2));
        let page = |files: &[&PathBuf], anonymised| {
            let files: Vec<StoredIn> = files.iter().map(StoredIn::from).collect();
            report(&files, WrittenAs::Markdown, ReportOptions { anonymised })
        };
        let of_two = page(&[&old, &new], false).expect("two comparisons");
        assert!(of_two.starts_with("# newhost") && of_two.contains("Against oldhost"), "{of_two}");
        let without = page(&[&old, &new], true).expect("two comparisons");
        assert!(!without.contains("oldhost") && !without.contains("newhost"), "{without}");
        let third = page(&[&old, &new, &new], false).expect_err("three are too many").to_string();
        assert!(third.contains("newhost.json: a report has one comparison or two"), "{third}");
    }
}
