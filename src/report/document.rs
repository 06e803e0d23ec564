//! A report before it is written: headings, figures, tables, plots, in their order. Plain values for every way of writing.

mod html;
mod markdown;
mod text;

use super::WrittenAs;
use super::figures::with_micro;
use super::page::{Fact, Page};
use super::plot::{PlotText, PlotWidth};

/// A whole report.
pub(super) struct Document {
    /// The command that writes it.
    pub kind: &'static str,
    /// The verdict, where one is told of all of it: it stands where the title would.
    pub headline: Option<String>,
    pub title: String,
    /// What holds for all of it.
    pub notes: Vec<String>,
    /// What compares the sections; empty where there is one.
    pub overview: Vec<Block>,
    /// One a recording.
    pub sections: Vec<Section>,
    /// What its words mean.
    pub words: Vec<(&'static str, &'static str)>,
}

impl Document {
    /// Everything that it says, as it is written for a wiki.
    pub fn text(&self) -> String {
        markdown::text(self)
    }
}

/// The document, or the object that stands for it.
pub(super) fn written(format: WrittenAs, document: impl FnOnce() -> Document, json: impl FnOnce() -> String) -> String {
    match format {
        WrittenAs::Text => text::text(&document()),
        WrittenAs::Markdown => with_micro(&markdown::text(&document())),
        WrittenAs::Html => with_micro(&html::page(&document())),
        WrittenAs::Json => json(),
    }
}

pub(super) struct Section {
    pub title: String,
    pub blocks: Vec<Block>,
}

/// A part of a section.
pub(super) enum Block {
    Heading(String),
    /// Below that.
    Subheading(String),
    /// The sentence that says it all.
    Lead(String),
    /// Something is missing or wrong.
    Warning(String),
    Text(String),
    List(Vec<ListItem>),
    Figures(Vec<KeyFigure>),
    Table(ReportTable),
    Plot(ReportPlot),
    Card(Page),
    /// A line each, open on paper too.
    Facts(Vec<Fact>),
    /// A part that few want to read: its title, which is a heading, and what is below it.
    Folded(String, Vec<Block>),
    /// The same of something smaller, which the contents do not list.
    FoldedPart(String, Vec<Block>),
}

/// A sentence, and what is said of it in passing, if anything.
pub(super) struct ListItem {
    pub text: String,
    pub aside: String,
}

/// A figure large enough to be read from afar, and what it means.
pub(super) struct KeyFigure {
    pub label: String,
    pub value: String,
    pub hint: String,
}

/// The first column names the row; those of figures stand to the right.
pub(super) struct ReportTable {
    pub caption: String,
    /// Head, and whether it is one of figures.
    pub columns: Vec<(String, bool)>,
    pub rows: Vec<Vec<String>>,
}

/// A plot for each width, and what its colours mean.
pub(super) struct ReportPlot {
    pub text: PlotText,
    pub legend: Vec<LegendEntry>,
    pub svgs: [String; 2],
}

/// The name of a colour of the style sheet, and what it stands for.
pub(super) struct LegendEntry {
    pub color: &'static str,
    pub word: String,
}

impl ListItem {
    /// With what is said in passing in parentheses.
    fn whole(&self) -> String {
        if self.aside.is_empty() { self.text.clone() } else { format!("{} ({})", self.text, self.aside) }
    }
}

impl ReportTable {
    /// Columns as `name` or, of figures, `>name`.
    pub fn new(caption: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Self {
        let column = |name: &&str| match name.strip_prefix('>') {
            Some(name) => (name.to_owned(), true),
            None => ((*name).to_owned(), false),
        };
        Self { caption: caption.to_owned(), columns: columns.iter().map(column).collect(), rows }
    }

    /// Without this column where no row has anything in it.
    pub fn without_empty(mut self, name: &str) -> Self {
        let at = self.columns.iter().position(|(column, _)| column == name);
        let is_empty = |at: &usize| self.rows.iter().all(|row| row.get(*at).is_none_or(|cell| cell == "–"));
        if let Some(at) = at.filter(is_empty) {
            self.columns.remove(at);
            self.rows.iter_mut().filter(|row| at < row.len()).for_each(|row| drop(row.remove(at)));
        }
        self
    }
}

impl ReportPlot {
    pub fn new(text: PlotText, legend: Vec<LegendEntry>, draw: impl Fn(&PlotText, PlotWidth) -> String) -> Self {
        let svgs = [PlotWidth::Wide, PlotWidth::Narrow].map(|width| draw(&text, width));
        Self { text, legend, svgs }
    }
}

/// Each block, and whether it is a table whose caption says what the heading above it has said.
fn with_captions(blocks: &[Block]) -> impl Iterator<Item = (&Block, bool)> {
    let before = std::iter::once(None).chain(blocks.iter().map(Some));
    blocks.iter().zip(before).map(|(block, before)| {
        let repeats = match (block, before) {
            (Block::Table(of), Some(Block::Heading(heading))) => of.caption == *heading,
            _ => false,
        };
        (block, repeats)
    })
}

/// The name of a heading as a target of links: what stands before a colon, in letters, digits and lines. `nth`: of which section.
fn anchor(nth: usize, heading: &str) -> String {
    let word = heading.split(':').next().unwrap_or_default().to_lowercase();
    let word: String = word.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("s{nth}-{word}")
}

impl Document {
    /// What its contents list, with targets: its sections, or the headings of the only one where it has several tests; none where
    /// there is one thing to read.
    fn contents(&self) -> Vec<(String, String)> {
        match &*self.sections {
            [one] => {
                let listed = |block: &Block| match block {
                    Block::Heading(title) | Block::Folded(title, _) => Some((anchor(0, title), title.clone())),
                    _ => None,
                };
                let all: Vec<_> = one.blocks.iter().filter_map(listed).collect();
                let tests = all.iter().filter(|(target, _)| target.contains("test")).count();
                if tests > 1 { all } else { Vec::new() }
            }
            many => (0..).zip(many).map(|(nth, one)| (anchor(nth, ""), one.title.clone())).collect(),
        }
    }
}

pub(super) fn legend(color: &'static str, word: impl Into<String>) -> LegendEntry {
    LegendEntry { color, word: word.into() }
}
