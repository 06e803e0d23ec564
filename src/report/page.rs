//! A card's facts and its table as text and as Markdown. What stands in them is not decided here.

use super::figures::with_micro;
use crate::text::wrap;
use std::fmt::Write;

/// One line: what it is about, and what there is to say. An empty label continues the line above.
pub(super) struct Fact {
    pub(super) label: &'static str,
    pub(super) text: String,
}

/// Two sides, a figure a row.
pub(super) struct ComparisonTable {
    pub(super) header: [String; 4],
    pub(super) rows: Vec<[String; 4]>,
}

/// A whole card.
pub(super) struct Page {
    pub(super) title: &'static str,
    /// Of what: the command, or the test.
    pub(super) of: String,
    pub(super) facts: Vec<Fact>,
    pub(super) table: Option<ComparisonTable>,
    pub(super) conclusions: Vec<Fact>,
}

pub(super) fn fact(label: &'static str, text: String) -> Fact {
    Fact { label, text }
}

/// Widest label of a fact.
const LABEL: usize = 9;
/// What the narrowest usual terminal shows without breaking a word.
const WIDTH: usize = 80;

impl Page {
    pub(super) fn text(&self) -> String {
        let mut out = format!("{}: {}\n", self.title, self.of);
        let facts = |out: &mut String, facts: &[Fact]| {
            for Fact { label, text } in facts {
                let lines = wrap(text, WIDTH - LABEL - 3, |text| text.chars().count());
                for (label, line) in std::iter::once(*label).chain(std::iter::repeat("")).zip(lines) {
                    let _ = writeln!(out, "  {label:<LABEL$} {line}");
                }
            }
        };
        facts(&mut out, &self.facts);
        if let Some(table) = &self.table {
            out.push_str(&aligned(table));
        }
        facts(&mut out, &self.conclusions);
        out
    }

    pub(super) fn markdown(&self) -> String {
        let mut out = format!("### {}\n\n    {}\n\n", self.title, self.of);
        let facts = |out: &mut String, facts: &[Fact]| {
            for Fact { label, text } in facts {
                let _ = if label.is_empty() {
                    writeln!(out, "  {}  ", escaped(text))
                } else {
                    writeln!(out, "- **{label}** {}", escaped(text))
                };
            }
        };
        facts(&mut out, &self.facts);
        if let Some(ComparisonTable { header, rows }) = &self.table {
            let line =
                |cells: &[String; 4]| format!("| {} |\n", cells.each_ref().map(|cell| escaped(cell)).join(" | "));
            let _ = write!(out, "\n{}|---|---:|---:|---:|\n", line(header));
            for row in rows {
                out.push_str(&line(row));
            }
            out.push('\n');
        }
        facts(&mut out, &self.conclusions);
        with_micro(&out)
    }
}

/// Columns as wide as their widest cell; figures to the right.
fn aligned(ComparisonTable { header, rows }: &ComparisonTable) -> String {
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

/// What would end a cell or begin an emphasis, a link or HTML.
pub(super) fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if matches!(c, '|' | '*' | '_' | '`' | '<' | '[' | '\\') {
            out.push('\\');
        }
        out.push(c);
        out
    })
}
