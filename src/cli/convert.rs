//! The arguments of `vnettop convert`.

use super::cut::AskedPart;
use super::options::Options;
use super::{CliError, Face};
use crate::convert::TableKind;
use crate::sample::Word;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;

/// What a row of each table is.
const TABLES: [(TableKind, &str); 4] = [
    (TableKind::Bins, "The rate of each test in bins of 100 ms"),
    (TableKind::Links, "Each link in each sample"),
    (TableKind::Threads, "Each watched thread in each sample"),
    (TableKind::Tests, "Each test"),
];

fn table() -> impl TypedValueParser<Value = TableKind> {
    let words = TABLES.map(|(table, help)| PossibleValue::new(table.word()).help(help));
    let meant = |word: String| TABLES.iter().map(|(table, _)| *table).find(|table| table.word() == word);
    PossibleValuesParser::new(words).try_map(move |word| meant(word).ok_or("use bins, links, threads or tests"))
}

const EXAMPLES: &str = "\
Times are CLOCK_MONOTONIC, as in traces of perf with -k mono.

Examples:
  A trace for https://ui.perfetto.dev, which opens it without sending it:
    vnettop convert run.zst -o run.pftrace

  To see one first, of the built-in recording:
    vnettop convert -o example.pftrace

  Half a minute of it:
    vnettop convert run.zst --from 1:30 --to 2:00 -o dip.pftrace

  A table for a spreadsheet or a program:
    vnettop convert run.zst --table bins -o bins.csv

  What a profiled core did, for speedscope and flame graphs:
    vnettop convert run.zst --folded -o core.folded";

/// What of which recording is to be written for which other program.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct AskedConversion {
    /// The recording [default: the built-in one]
    pub recording: Option<PathBuf>,
    /// Which part of it.
    #[command(flatten)]
    pub part: AskedPart,
    /// Write a table as CSV: bins, links, threads or tests [default: a trace for Perfetto]
    #[arg(long, value_parser = table(), value_name = "TABLE", hide_possible_values = true)]
    pub table: Option<TableKind>,
    /// Write the stacks of the cores that were profiled, one line per stack, as speedscope and tools for flame graphs read them
    #[arg(long, conflicts_with = "table")]
    pub folded: bool,
    /// Of a recording of several hosts: which one, as each has a clock of its own
    #[arg(long = "of", value_name = "HOST")]
    pub of: Option<String>,
    /// The file to write, - is standard output; an existing file is not overwritten
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: PathBuf,
}

impl AskedConversion {
    /// Options of every command that mean nothing where a file for other programs is the result.
    pub(super) fn refused(options: &Options) -> [(bool, &'static str); 4] {
        [
            (options.json, "--json cannot be combined with convert: vnettop replay --json writes JSON lines"),
            (options.print.is_some(), "--print cannot be combined with convert: it writes a file"),
            (options.record.is_some(), "--record cannot be combined with convert: use -o FILE"),
            (options.count.is_some(), "--count cannot be combined with convert: use --to TIME"),
        ]
    }

    /// # Errors
    /// The sentence of what contradicts itself.
    pub(super) fn face(self) -> Result<Face, CliError> {
        self.part.checked()?;
        Ok(Face::Convert(self))
    }
}
