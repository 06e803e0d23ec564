//! A comparison of paths → text, Markdown, JSON: the tables that people publish. The words and figures are chosen once, here; what they are
//! is computed in `derive`.

mod against;
mod cells;
mod json;
mod published;
mod round_trips;
mod so_far;
mod treatment_words;
mod treatments;

pub use so_far::so_far;

use super::WrittenAs;
use super::document::{Block, Document, ListItem, Section, written};
use crate::derive::comparison::{LoadTable, PathRow, tables};
use crate::sample::{COMPARISON_VERSION, ComparedPath, Comparison, Load, Word};

/// Why a file is no comparison that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoComparison {
    /// Something else.
    #[error("it is no comparison of vnettop's: write one with vnettop compare -o FILE.json")]
    Foreign,
    /// Of another version.
    #[error("it is a comparison of version {0}, this vnettop reads {COMPARISON_VERSION}: use a newer vnettop")]
    Version(u64),
    /// It has the right first words, and then something is wrong with it.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// Reads a comparison that was written as JSON.
///
/// # Errors
/// It is none.
pub fn read(text: &[u8]) -> Result<Comparison, NoComparison> {
    json::read(text)
}

/// The comparison and what it says against an earlier one (not in JSON: that has its two files), ending with an end of line.
#[must_use]
pub fn comparison(comparison: &Comparison, earlier: Option<&Comparison>, format: WrittenAs) -> String {
    written(format, || document(comparison, earlier), || json::json(comparison))
}

/// Everything that is said of a comparison, in the order in which it is said.
fn document(comparison: &Comparison, earlier: Option<&Comparison>) -> Document {
    let tables = tables(comparison);
    let mut blocks = Vec::new();
    for table in &tables {
        blocks.push(Block::Heading(table.load.label().to_owned()));
        blocks.push(Block::Table(cells::table(comparison, table)));
        blocks.extend(cells::same(table));
        blocks.extend(treatments::table(comparison, table).map(Block::Table));
        blocks.extend(treatments::gains(table).into_iter().map(Block::Text));
        blocks.extend(round_trips::table(comparison, table).map(Block::Table));
        blocks.push(Block::Plot(cells::plot(comparison, table)));
    }
    if let Some(claims) = cells::claims(comparison, &tables) {
        blocks.push(Block::Heading("Nominal speed and measured rate".to_owned()));
        blocks.push(Block::Table(claims));
    }
    blocks.extend(earlier.into_iter().flat_map(|earlier| against::blocks(comparison, earlier)));
    let unknown = unknown(comparison, &tables);
    if !unknown.is_empty() {
        blocks.push(Block::Heading("Not known".to_owned()));
        blocks.push(Block::List(unknown));
    }
    let skipped = skipped(comparison);
    if !skipped.is_empty() {
        blocks.push(Block::Heading("Not measured".to_owned()));
        blocks.push(Block::List(skipped));
    }
    blocks.extend(published::blocks(&tables));
    let title = cells::title(comparison);
    Document {
        kind: "vnettop compare",
        headline: None,
        notes: cells::facts(comparison),
        overview: Vec::new(),
        sections: vec![Section { title: title.clone(), blocks }],
        words: if tables.is_empty() { Vec::new() } else { cells::words(comparison) },
        title,
    }
}

/// What was not measured, and why.
fn skipped(comparison: &Comparison) -> Vec<ListItem> {
    let not_carried = |path: &ComparedPath| {
        let is_measured = |load: &Load| path.measurements.iter().any(|one| one.load == *load);
        let not: Vec<&str> =
            comparison.plan.loads.iter().filter(|load| !is_measured(load)).copied().map(Word::word).collect();
        (!comparison.interrupted && !not.is_empty()).then(|| format!("it carries no {}", not.join(", no ")))
    };
    let item = |path: &ComparedPath| {
        let why = path.skipped.clone().or_else(|| not_carried(path))?;
        Some(ListItem { text: format!("{}, {}: {why}", path.name, path.what), aside: String::new() })
    };
    comparison.paths.iter().filter_map(item).collect()
}

/// What is not known of what was measured, and why, each reason once.
fn unknown(comparison: &Comparison, tables: &[LoadTable]) -> Vec<ListItem> {
    let mut reported: Vec<(String, Vec<String>)> = Vec::new();
    let reasons = |load: Load, row: &PathRow| {
        let whys = [
            row.missing.clone(),
            row.unsteered.clone(),
            cells::without_cv(comparison, load, row),
            cells::without_samples(row),
        ];
        let of = format!("{} {}", row.name, load);
        whys.into_iter().flatten().map(move |why| (why, of.clone())).collect::<Vec<_>>()
    };
    for (why, of) in tables.iter().flat_map(|table| table.rows.iter().flat_map(|row| reasons(table.load, row))) {
        match reported.iter_mut().find(|(known, _)| *known == why) {
            Some((_, all)) => all.push(of),
            None => reported.push((why, vec![of])),
        }
    }
    let is_short = |row: &PathRow| {
        row.unpinned.as_ref().is_some_and(|side| side.rate.interval.is_none())
            || row.gain.is_some_and(|gain| gain.interval.is_none())
    };
    if tables.iter().flat_map(|table| &table.rows).any(is_short) {
        reported.push(("intervals and PLACE need two rounds or more (--repeat)".to_owned(), Vec::new()));
    }
    reported.into_iter().map(|(why, of)| ListItem { text: why, aside: of.join(", ") }).collect()
}

#[cfg(test)]
mod tests;
