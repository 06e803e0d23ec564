//! The document as Markdown, for an issue or a wiki. A plot is its description.

use super::{Block, Document, ReportTable, with_captions};
use crate::report::page::escaped;
use crate::text::around_command;
use std::fmt::Write;

pub(super) fn text(document: &Document) -> String {
    let mut out = format!("# {}\n", inline(document.headline.as_ref().unwrap_or(&document.title)));
    if document.headline.is_some() {
        let _ = writeln!(out, "\n{}: {}", document.kind, inline(&document.title));
    }
    for note in &document.notes {
        let _ = writeln!(out, "\n{}", inline(note));
    }
    blocks(&mut out, &document.overview);
    for section in &document.sections {
        if document.sections.len() > 1 {
            let _ = writeln!(out, "\n# {}", inline(&section.title));
        }
        blocks(&mut out, &section.blocks);
    }
    if !document.words.is_empty() {
        out.push_str("\n## Words\n\n");
        for (word, meaning) in &document.words {
            let _ = writeln!(out, "- {}: {}", inline(word), inline(meaning));
        }
    }
    out
}

fn blocks(out: &mut String, blocks: &[Block]) {
    for (one, repeats) in with_captions(blocks) {
        if let (Block::Table(of), false) = (one, repeats) {
            let _ = writeln!(out, "\n{}:", inline(&of.caption));
        }
        block(out, one);
    }
}

fn block(out: &mut String, block: &Block) {
    out.push('\n');
    if let Block::Folded(title, below) | Block::FoldedPart(title, below) = block {
        // As the sites that show Markdown fold it.
        let _ = writeln!(out, "<details>\n<summary>{}</summary>", inline(title));
        blocks(out, below);
        out.push_str("\n</details>\n");
        return;
    }
    let _ = match block {
        Block::Heading(text) => writeln!(out, "## {}", inline(text)),
        Block::Subheading(text) => writeln!(out, "### {}", inline(text)),
        Block::Lead(text) => writeln!(out, "**{}**", inline(text)),
        Block::Warning(text) => writeln!(out, "> {}", inline(text)),
        Block::Text(text) => writeln!(out, "{}", inline(text)),
        Block::List(items) => items.iter().try_for_each(|item| writeln!(out, "- {}", inline(&item.whole()))),
        Block::Figures(figures) => {
            let row = |of: &super::KeyFigure| vec![of.label.clone(), of.value.clone(), of.hint.clone()];
            let rows = figures.iter().map(row).collect();
            table(out, &ReportTable::new("", &["figure", ">value", "what it is"], rows))
        }
        Block::Table(of) => table(out, of),
        Block::Plot(of) => writeln!(out, "*{}:* {}", inline(&of.text.title), inline(&of.text.description)),
        Block::Facts(facts) => {
            facts.iter().try_for_each(|fact| writeln!(out, "- {}: {}", inline(fact.label), inline(&fact.text)))
        }
        Block::Card(page) => writeln!(out, "{}", page.markdown().trim_end()),
        Block::Folded(..) | Block::FoldedPart(..) => Ok(()),
    };
}

fn table(out: &mut String, of: &ReportTable) -> std::fmt::Result {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    writeln!(out, "{}", line(of.columns.iter().map(|(name, _)| cell(name)).collect()))?;
    let rule = of.columns.iter().map(|(_, is_figure)| if *is_figure { "---:" } else { "---" }.to_owned());
    writeln!(out, "{}", line(rule.collect()))?;
    of.rows.iter().try_for_each(|row| writeln!(out, "{}", line(row.iter().map(|text| cell(text)).collect())))
}

/// Text that begins nothing of Markdown's, on one line; a command in parentheses is code, so that it is pasted as it stands.
fn inline(text: &str) -> String {
    match around_command(text).filter(|(_, command, _)| !command.contains(['`', '\n', '\r'])) {
        Some((before, command, rest)) => {
            format!("{} (`{}`){}", cell(before), &command[1..command.len() - 1], inline(rest))
        }
        None => cell(text),
    }
}

/// The same without code: in a table a bar ends a cell there too.
fn cell(text: &str) -> String {
    escaped(text).replace(['\n', '\r'], " ").replace('#', "\\#")
}
