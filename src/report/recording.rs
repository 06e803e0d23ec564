//! A report of one recording or of several: what was measured, in HTML, Markdown or JSON. The same blocks in the same words
//! make the page and the Markdown; every figure is of [`RecordingSummary`] or of a card.

mod json;
mod latency;
mod machine;
mod rate_plot;
mod side_by_side;
mod test;
#[cfg(test)]
mod tests;
mod words;

use super::WrittenAs;
use super::document::{Block, Document, Section, written};
use crate::derive::RecordingSummary;
use crate::derive::run::RunCard;

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
    /// What else is to be said of it: where it is damaged.
    pub notes: Vec<String>,
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
    let section = |recording: &ReportedRecording| Section { title: recording.name.clone(), blocks: blocks(recording) };
    let title = match recordings {
        [one] => one.name.clone(),
        many => format!("{} recordings side by side", many.len()),
    };
    let mut notes = Vec::new();
    if options.anonymised {
        notes.push(words::ANONYMISED.to_owned());
    }
    Document {
        kind: "vnettop report",
        title,
        notes,
        overview: if recordings.len() > 1 { side_by_side::blocks(recordings) } else { Vec::new() },
        sections: recordings.iter().map(section).collect(),
        words: words::WORDS.to_vec(),
    }
}

fn blocks(recording: &ReportedRecording) -> Vec<Block> {
    let mut blocks = machine::head(recording);
    let Some(summary) = &recording.summary else { return blocks };
    blocks.extend(recording.run.iter().map(test::run_card));
    for test in &summary.tests {
        blocks.extend(test::blocks(summary, test));
    }
    if summary.tests_left_out > 0 {
        let tests = crate::derive::plural(summary.tests_left_out, "smaller test");
        blocks.push(Block::Text(format!("{tests} are left out.")));
    }
    blocks.extend(machine::blocks(summary));
    blocks
}
