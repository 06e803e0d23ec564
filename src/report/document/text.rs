//! The document as text for a terminal: tables whose columns stand below each other, sentences wrapped, no plots.

use super::{Block, Document, ReportTable, with_captions};
use crate::text::wrap;
use std::fmt::Write;

/// The narrowest terminal that a table is made for; sentences are wrapped there.
const WIDTH: usize = 100;
/// How far a line is moved to the right that belongs to the one above it.
const STEP: usize = 2;

pub(super) fn text(document: &Document) -> String {
    let mut out = format!("{}: {}\n", document.kind, document.title);
    document.headline.iter().for_each(|headline| sentence(&mut out, headline, STEP));
    document.notes.iter().for_each(|note| sentence(&mut out, note, STEP));
    blocks(&mut out, &document.overview);
    for section in &document.sections {
        if document.sections.len() > 1 {
            let _ = writeln!(out, "\n{}", section.title);
        }
        blocks(&mut out, &section.blocks);
    }
    if !document.words.is_empty() {
        out.push('\n');
    }
    let widest = document.words.iter().map(|(word, _)| width(word)).max().unwrap_or(0);
    for (word, meaning) in &document.words {
        let pad = " ".repeat(widest - width(word));
        sentence(&mut out, &format!("{word}{pad}  {meaning}"), widest + STEP);
    }
    out
}

fn blocks(out: &mut String, blocks: &[Block]) {
    for (one, repeats) in with_captions(blocks) {
        if let (Block::Table(of), false) = (one, repeats) {
            let _ = writeln!(out, "\n{}", of.caption);
        }
        block(out, one);
    }
}

fn block(out: &mut String, block: &Block) {
    match block {
        Block::Heading(text) | Block::Subheading(text) => {
            let _ = writeln!(out, "\n{text}");
        }
        Block::Lead(text) | Block::Text(text) => sentence(out, text, STEP),
        Block::Warning(text) => sentence(out, &format!("Note: {text}"), STEP),
        Block::List(items) => {
            for item in items {
                sentence(out, &format!("  {}", item.whole()), 2 * STEP);
            }
        }
        Block::Figures(figures) => {
            for figure in figures {
                sentence(out, &format!("{} {} ({})", figure.label, figure.value, figure.hint), STEP);
            }
        }
        Block::Table(of) => table(out, of),
        Block::Plot(_) => {}
        Block::Facts(facts) => {
            for fact in facts {
                sentence(out, &format!("  {:<12} {}", fact.label, fact.text), 2 * STEP + 12);
            }
        }
        Block::Card(page) => out.push_str(&page.text()),
        Block::Folded(title, below) | Block::FoldedPart(title, below) => {
            let _ = writeln!(out, "\n{title}");
            blocks(out, below);
        }
    }
}

fn sentence(out: &mut String, text: &str, indent: usize) {
    for (at, line) in wrap(text, WIDTH - indent, width).into_iter().enumerate() {
        let _ = writeln!(out, "{}{line}", " ".repeat(if at == 0 { 0 } else { indent }));
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn table(out: &mut String, of: &ReportTable) {
    let header: Vec<&str> = of.columns.iter().map(|(name, _)| name.as_str()).collect();
    let rows = of.rows.iter().map(|row| row.iter().map(String::as_str).collect::<Vec<_>>());
    let lines: Vec<Vec<&str>> = std::iter::once(header).chain(rows).collect();
    let widest = |at: usize| lines.iter().filter_map(|row| row.get(at)).map(|cell| width(cell)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..of.columns.len()).map(widest).collect();
    for row in &lines {
        let mut line = String::new();
        for ((cell, wide), (_, is_figure)) in row.iter().zip(&widths).zip(&of.columns) {
            let pad = " ".repeat(wide.saturating_sub(width(cell)));
            let _ = if *is_figure { write!(line, "  {pad}{cell}") } else { write!(line, "  {cell}{pad}") };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}
