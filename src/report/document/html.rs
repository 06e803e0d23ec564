//! The document as one HTML page that needs nothing else: its style is in it, its plots are in it, it has no script.

use super::{Block, Document, LegendEntry, ListItem, ReportPlot, ReportTable, Section, anchor, with_captions};
use crate::report::page::{ComparisonTable, Fact, Page};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");
/// A browser refuses whatever this page would fetch or run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

pub(super) fn page(document: &Document) -> String {
    let is_alone = document.sections.len() == 1;
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (document.title) " - " (document.kind) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    @if let Some(headline) = &document.headline {
                        p.kind { (document.kind) " · " (document.title) }
                        h1 { (unbroken(headline)) }
                    } @else {
                        p.kind { (document.kind) }
                        h1 { (document.title) }
                    }
                    @for note in &document.notes { p.note { (note) } }
                    (contents(&document.contents()))
                }
                main {
                    @if !document.overview.is_empty() {
                        section { (blocks(&document.overview, document.sections.len())) }
                    }
                    div.recordings.several[!is_alone] {
                        @for (nth, one) in document.sections.iter().enumerate() { (section(one, (nth, is_alone))) }
                    }
                }
                // On paper they stay together: no page has the last line alone.
                div.end {
                    @if !document.words.is_empty() { (glossary(&document.words)) }
                    footer { p { "Written by vnettop " (env!("CARGO_PKG_VERSION")) ". Rates are in bits/s, SI: 1 Gbit/s is 10⁹ bit/s." } }
                }
            }
        }
    };
    markup.into_string() + "\n"
}

/// One line where there is room.
fn contents(all: &[(String, String)]) -> Markup {
    html! {
        @if !all.is_empty() {
            nav.contents aria-label="Contents" {
                @for (target, title) in all { a href={ "#" (target) } { (title) } " " }
            }
        }
    }
}

fn section(section: &Section, (nth, is_alone): (usize, bool)) -> Markup {
    html! {
        section.recording {
            @if !is_alone { h2.name id=(anchor(nth, "")) { (section.title) } }
            (blocks(&section.blocks, nth))
        }
    }
}

/// `nth`: of which section they are.
fn blocks(blocks: &[Block], nth: usize) -> Markup {
    html! { @for (one, repeats) in with_captions(blocks) { (block(one, (nth, repeats))) } }
}

fn block(block: &Block, (nth, repeats): (usize, bool)) -> Markup {
    match block {
        Block::Heading(text) => html! { h2 id=(anchor(nth, text)) { (text) } },
        Block::Folded(title, below) => html! {
            details id=(anchor(nth, title)) { summary { (title) } (blocks(below, nth)) }
        },
        Block::FoldedPart(title, below) => html! { details.part { summary { (title) } (blocks(below, nth)) } },
        Block::Subheading(text) => html! { h3 { (text) } },
        Block::Lead(text) => html! { p.lead { (unbroken(text)) } },
        Block::Warning(text) => html! { p.warning { strong { "Note: " } (text) } },
        Block::Text(text) => html! { p { (unbroken(text)) } },
        Block::List(items) => html! { ul { @for item in items { (list_item(item)) } } },
        Block::Figures(figures) => html! {
            dl.figures {
                @for figure in figures {
                    div { dt { (figure.label) } dd { b { (figure.value) } small { (figure.hint) } } }
                }
            }
        },
        Block::Table(of) => table(of, repeats),
        Block::Plot(of) => plot(of),
        Block::Card(of) => card(of),
        Block::Facts(of) => html! {
            div.provenance { (facts(of)) }
            p.printed { "Folded on the page, so not printed: links, details of the machine, words." }
        },
    }
}

/// No end of a line falls between a figure and its percent sign.
fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

fn list_item(item: &ListItem) -> Markup {
    html! { li { (unbroken(&item.text)) @if !item.aside.is_empty() { " " small { "(" (unbroken(&item.aside)) ")" } } } }
}

/// One that is wider than the page is moved by itself, with the keyboard too; on a phone each row of it is a block of its own, with
/// the name of the column before each figure.
fn table(of: &ReportTable, repeats: bool) -> Markup {
    let is_wide = of.columns.len() > PHONE_COLUMNS;
    html! {
        div.scroll tabindex="0" role="region" aria-label=(of.caption) {
            table.rows[is_wide] {
                @if !repeats { caption { (of.caption) } }
                thead { tr { @for (name, is_figure) in &of.columns { th.figure[*is_figure] scope="col" { (name) } } } }
                tbody {
                    @for row in &of.rows {
                        tr {
                            @for (nth, (cell, (name, is_figure))) in row.iter().zip(&of.columns).enumerate() {
                                @if nth == 0 { th scope="row" { (cell) } }
                                @else { td.figure[*is_figure].long[is_long(cell)].broad[is_broad(cell)] data-of=[is_wide.then_some(name)] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// So many columns fit a phone.
const PHONE_COLUMNS: usize = 3;

/// On a phone it does not fit beside another one.
fn is_broad(cell: &str) -> bool {
    cell.chars().count() > 13
}

/// It is broken into lines; others are not.
fn is_long(cell: &str) -> bool {
    cell.chars().count() > 32
}

fn plot(of: &ReportPlot) -> Markup {
    let entry = |entry: &LegendEntry| {
        html! { li { i class=(entry.color) {} (entry.word) } }
    };
    html! {
        figure {
            figcaption { (of.text.title) }
            @for svg in &of.svgs { (PreEscaped(svg)) }
            @if !of.legend.is_empty() { ul.legend { @for one in &of.legend { (entry(one)) } } }
        }
    }
}

fn facts(facts: &[Fact]) -> Markup {
    html! {
        dl.facts { @for fact in facts { dt { (fact.label) } dd { (fact.text) } } }
    }
}

fn card(page: &Page) -> Markup {
    html! {
        article.card {
            h3 { (page.title) }
            p.of { code { (page.of) } }
            (facts(&page.facts))
            @if let Some(ComparisonTable { header, rows }) = &page.table {
                div.scroll tabindex="0" role="region" aria-label=(page.title) {
                    table {
                        thead { tr { @for (nth, head) in header.iter().enumerate() { th.figure[nth > 0] scope="col" { (head) } } } }
                        tbody {
                            @for [name, cells @ ..] in rows {
                                tr { th scope="row" { (name) } @for cell in cells { td.figure { (cell) } } }
                            }
                        }
                    }
                }
            }
            (facts(&page.conclusions))
        }
    }
}

fn glossary(words: &[(&str, &str)]) -> Markup {
    html! {
        details.words {
            summary { "Words" }
            dl.facts { @for (word, meaning) in words { dt { (word) } dd { (meaning) } } }
        }
    }
}
