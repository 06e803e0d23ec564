//! A report of one recording or of several: what was measured, in HTML, Markdown or JSON. The same blocks in the same words
//! make the page and the Markdown; every figure is of [`RecordingSummary`] or of a card.

mod all_tests;
mod cause;
mod flame_graph;
mod json;
mod key_figures;
mod latency;
mod lost;
mod machine;
mod moment;
mod passing;
mod profile;
mod provenance;
mod rate_plot;
mod side_by_side;
mod test;
#[cfg(test)]
mod tests;
mod thread_names;
mod verdict;
mod words;

use super::WrittenAs;
use super::document::{Block, Document, Section, written};
use crate::derive::RecordingSummary;
use crate::derive::run::RunCard;
use all_tests::SHORT_S;
use thread_names::ThreadNames;
use words::ran_s;

pub use words::length;

/// What becomes of a recording in a report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedRecording {
    /// What it is called: its file, or what it is.
    pub name: String,
    /// What it was like; none of one with fewer than two samples.
    pub summary: Option<RecordingSummary>,
    /// The card of the run in it, if it has one.
    pub run: Option<RunCard>,
    /// The version of vnettop that recorded it; none where that is not known.
    pub recorded_by: Option<String>,
    /// The file that it is; none of what the screen has seen, of the built-in recording, and where names are left out.
    pub file: Option<RecordingFile>,
    /// What is to be known of it before any figure: what it is rebuilt from, where it is damaged.
    pub notes: Vec<String>,
}

/// What tells a file from any other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordingFile {
    /// Its length.
    pub bytes: u64,
    /// As `sha256sum` prints it.
    pub sha256: String,
}

/// How a report differs from the plain one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportOptions {
    /// The items were anonymised before anything was derived of them: the report says so.
    pub anonymised: bool,
}

/// The whole report, ending with an end of line.
#[must_use]
pub fn report(recordings: &[ReportedRecording], format: WrittenAs, options: ReportOptions) -> String {
    written(format, || document(recordings, options), || json::object(recordings, options))
}

fn document(recordings: &[ReportedRecording], options: ReportOptions) -> Document {
    let is_alone = recordings.len() == 1;
    let section =
        |recording: &ReportedRecording| Section { title: recording.name.clone(), blocks: blocks(recording, is_alone) };
    let title = match recordings {
        [one] => one.name.clone(),
        [first, rest @ ..] if first.file.is_some() && rest.iter().all(|one| one.file == first.file) => {
            format!("{} hosts of one recording side by side", recordings.len())
        }
        many => format!("{} recordings side by side", many.len()),
    };
    let mut notes = Vec::new();
    if options.anonymised {
        notes.push(words::ANONYMISED.to_owned());
    }
    let mut document = Document {
        kind: "vnettop report",
        headline: headline(recordings),
        title,
        notes,
        overview: if recordings.len() > 1 { side_by_side::blocks(recordings) } else { Vec::new() },
        sections: recordings.iter().map(section).collect(),
        words: Vec::new(),
    };
    let text = document.text();
    document.words = words::used(&text);
    document
}

/// What the only recording says first.
fn headline(recordings: &[ReportedRecording]) -> Option<String> {
    let [one] = recordings else { return None };
    headline_of(one)
}

/// The verdict of a recording: of the test that leads it, else of what passed.
fn headline_of(one: &ReportedRecording) -> Option<String> {
    verdict::of_recording(one).map(|result| result.headline).or_else(|| passing::headline(one.summary.as_ref()?))
}

/// All of a recording; its headline stands above the report if it is the only one.
fn blocks(recording: &ReportedRecording, is_alone: bool) -> Vec<Block> {
    let led = verdict::led(recording);
    let mut blocks: Vec<Block> = recording.notes.iter().cloned().map(Block::Warning).collect();
    if let Some(result) = verdict::of_recording(recording) {
        blocks.extend((!is_alone).then(|| Block::Lead(result.headline.clone())));
        let first_block = |sentence| if is_alone { Block::Lead(sentence) } else { Block::Text(sentence) };
        blocks.extend(result.sentence.map(first_block));
        blocks.extend(result.reasons.into_iter().map(Block::Text));
    }
    let passing = recording.summary.as_ref().map(passing::reasons).unwrap_or_default();
    if !is_alone && let Some(headline) = recording.summary.as_ref().and_then(passing::headline) {
        blocks.push(Block::Lead(headline));
    }
    blocks.extend(passing.into_iter().map(Block::Text));
    blocks.extend(machine::head(recording));
    let Some(summary) = &recording.summary else { return blocks };
    let names = ThreadNames::of(summary);
    blocks.extend(all_tests::table(summary, &names));
    let mut short = Vec::new();
    let rest = summary.tests.iter().filter(|test| !led.is_some_and(|led| std::ptr::eq(led, *test)));
    for test in led.into_iter().chain(rest) {
        let is_led = led.is_some_and(|led| std::ptr::eq(led, test));
        let result = verdict::of_test((summary, test, &names), recording.run.as_ref().filter(|_| is_led));
        let of_test = test::blocks((summary, &names), test, &result, is_led);
        if is_led || ran_s(test) >= SHORT_S { blocks.extend(of_test) } else { short.push(of_test) }
    }
    if !short.is_empty() {
        let title = format!("{} of less than {SHORT_S} s", crate::derive::plural(short.len(), "short test"));
        blocks.push(Block::Folded(title, short.into_iter().flatten().collect()));
    }
    if summary.tests_left_out > 0 {
        let tests = crate::derive::plural(summary.tests_left_out, "smaller test");
        blocks.push(Block::Text(format!("{tests} are left out.")));
    }
    blocks.extend(passing::blocks(summary));
    blocks.extend(recording.run.iter().map(test::run_card));
    blocks.extend(machine::blocks(recording, summary));
    blocks
}
