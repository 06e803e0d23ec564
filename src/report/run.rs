//! The card of a run → text, Markdown, JSON. The words and figures are chosen once, here; it computes nothing.

mod figures;
mod json;
mod reported;
mod rows;
#[cfg(test)]
mod tests;

use crate::derive::run::RunCard;
use rows::{Fact, Table};
use std::fmt::Write;

/// How a card is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// For a terminal.
    #[default]
    Text,
    /// For a report or an issue.
    Markdown,
    /// For a program: one object on one line.
    Json,
}

/// The card, ending with an end of line.
#[must_use]
pub fn card(card: &RunCard, format: Format) -> String {
    match format {
        Format::Text => text(card),
        Format::Markdown => markdown(card),
        Format::Json => json::json(card),
    }
}

/// Widest label of a fact.
const LABEL: usize = 9;

fn text(card: &RunCard) -> String {
    let mut out = format!("vnettop run: {}\n", card.asked.command.join(" "));
    let fact = |out: &mut String, Fact { label, text }: &Fact| {
        let _ = writeln!(out, "  {label:<LABEL$} {text}");
    };
    for row in rows::facts(card) {
        fact(&mut out, &row);
    }
    if let Some(table) = rows::table(card) {
        out.push_str(&aligned(&table));
    }
    for row in rows::conclusions(card) {
        fact(&mut out, &row);
    }
    out
}

/// Columns as wide as their widest cell; figures to the right.
fn aligned(Table { header, rows }: &Table) -> String {
    let lines = || std::iter::once(header).chain(rows);
    let width = |column: usize| lines().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for [name, cells @ ..] in lines() {
        let mut line = format!("  {name:<w$}", w = width(0).max(LABEL));
        for (nth, cell) in cells.iter().enumerate() {
            let _ = write!(line, "  {cell:>w$}", w = width(nth + 1));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn markdown(card: &RunCard) -> String {
    let mut out = format!("### vnettop run\n\n    {}\n\n", card.asked.command.join(" "));
    let fact = |out: &mut String, Fact { label, text }: &Fact| {
        let _ = if label.is_empty() {
            writeln!(out, "  {}  ", escaped(text))
        } else {
            writeln!(out, "- **{label}** {}", escaped(text))
        };
    };
    for row in rows::facts(card) {
        fact(&mut out, &row);
    }
    if let Some(Table { header, rows }) = rows::table(card) {
        let line = |cells: &[String; 4]| format!("| {} |\n", cells.each_ref().map(|cell| escaped(cell)).join(" | "));
        let _ = write!(out, "\n{}|---|---:|---:|---:|\n", line(&header));
        for row in &rows {
            out.push_str(&line(row));
        }
        out.push('\n');
    }
    for row in rows::conclusions(card) {
        fact(&mut out, &row);
    }
    out
}

/// What would end a cell or begin an emphasis, a link or HTML.
fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if matches!(c, '|' | '*' | '_' | '`' | '<' | '[' | '\\') {
            out.push('\\');
        }
        out.push(c);
        out
    })
}

/// The sentence that nothing was compared though that was asked for, and why.
#[must_use]
pub fn not_compared(card: &RunCard) -> Option<String> {
    let is_empty = card.comparison.as_ref().is_some_and(|both| both.card.is_none());
    let why = card.missing.first().map_or("too little was measured", String::as_str);
    is_empty.then(|| format!("unpinned and pinned were not compared: {why}"))
}

/// The limits that were not kept or could not be checked, a sentence each; whether it was broken.
#[must_use]
pub fn limits(card: &RunCard) -> Vec<(bool, String)> {
    let not_kept = card.limits.iter().filter(|limit| limit.is_broken() || limit.measured.is_none());
    not_kept.map(|limit| (limit.is_broken(), rows::limit_text(limit))).collect()
}
