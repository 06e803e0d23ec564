//! The arguments of `vnettop report`.

use super::options::Options;
use super::{CliError, Face};
use crate::report::WrittenAs;
use crate::sample::Word;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// A report of recordings that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedReport {
    /// None is the one that is part of the program.
    pub recordings: Vec<PathBuf>,
    /// Where to; none is standard output.
    pub output: Option<PathBuf>,
    /// What it is written as.
    pub format: WrittenAs,
    /// Without names and addresses.
    pub anonymise: bool,
}

/// What a report of recordings may be written as: plots are what it is about, so that it has no text for a terminal.
impl ValueEnum for WrittenAs {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Html, Self::Markdown, Self::Json]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Html => "One page that needs nothing else",
            Self::Markdown => "For an issue or a wiki",
            Self::Json => "For a program: one object on one line",
            Self::Text => return None,
        };
        Some(PossibleValue::new(self.word()).help(help))
    }
}

const EXAMPLES: &str = "\
Several recordings are compared in a table, then each follows in full.
Of a damaged recording, the part before the damage is reported.

Examples:
  A page to read, print or mail; it needs no network:
    vnettop report before.zst -o report.html

  To see one first, of the built-in recording:
    vnettop report -o example.html

  Two runs side by side, without names and addresses, for a public issue:
    vnettop report before.zst after.zst --anonymise -o report.md

  The figures for a program:
    vnettop report run.zst --format json | jq '.recordings[0].summary'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReportArguments {
    /// The recordings, or the JSON of one or two vnettop compare [default: the built-in recording]
    #[arg(value_name = "RECORDING")]
    recordings: Vec<PathBuf>,
    /// Write the report to FILE; .html, .md and .json say what it is written as, - is standard output; an existing file is not overwritten
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What it is written as, whatever the name of FILE: html, markdown or json
    #[arg(long, value_enum, hide_possible_values = true)]
    format: Option<WrittenAs>,
    /// Replace host, container and program names, interfaces, addresses and command lines by neutral labels
    #[arg(long, alias = "anonymize")]
    anonymise: bool,
}

impl ReportArguments {
    pub(super) fn checked(&self) -> Result<Face, CliError> {
        let output = self.output.clone().filter(|output| output.as_os_str() != "-");
        let format = match (self.format, &output) {
            (Some(format), _) => format,
            (None, None) => {
                return Err(CliError::usage(
                    "name the report, as in -o report.html, or give --format for standard output",
                ));
            }
            (None, Some(file)) => WrittenAs::by_name(file).filter(|one| *one != WrittenAs::Text).ok_or_else(|| {
                CliError::usage("the name of the report ends in .html, .md or .json; for another name give --format")
            })?,
        };
        let asked = AskedReport { recordings: self.recordings.clone(), output, format, anonymise: self.anonymise };
        Ok(Face::Report(asked))
    }
}

/// Options of every command that mean nothing where a report is the result.
pub(super) fn others(options: &Options) -> [(bool, &'static str); 5] {
    [
        (options.json, "--json cannot be combined with report: use --format json, or -o FILE.json"),
        (options.print.is_some(), "--print cannot be combined with report: it writes a file"),
        (options.record.is_some(), "--record cannot be combined with report: it takes no samples"),
        (options.bytes, "--bytes cannot be combined with report: its rates are in bits/s"),
        (options.count.is_some(), "--count cannot be combined with report: it is of the whole recording"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn parsed(line: &str) -> Result<AskedReport, CliError> {
        let config = super::super::parse(line.split(' ').map(OsString::from), true)?;
        match config.face {
            Face::Report(asked) => Ok(asked),
            other => panic!("'{line}' asks for a report, not for {other:?}"),
        }
    }

    #[test]
    fn the_name_of_the_file_says_what_it_is_written_as_unless_an_option_does() {
        let of = |line: &str| parsed(line).map(|asked| asked.format);
        assert_eq!(of("report a.zst -o b.html"), Ok(WrittenAs::Html));
        assert_eq!(of("report a.zst -o b.HTM"), Ok(WrittenAs::Html));
        assert_eq!(of("report a.zst -o b.md"), Ok(WrittenAs::Markdown));
        assert_eq!(of("report a.zst c.zst --output b.json"), Ok(WrittenAs::Json));
        assert_eq!(of("report a.zst -o b --format json"), Ok(WrittenAs::Json));
        let out = parsed("report a.zst -o - --format html").expect("good arguments");
        assert_eq!((out.output, out.anonymise), (None, false), "- is standard output");
        let built_in = parsed("report -o b.html").expect("good arguments");
        assert_eq!(built_in.recordings, Vec::<PathBuf>::new(), "that of the program");
        assert!(parsed("report a.zst -o b.md --anonymise").is_ok_and(|asked| asked.anonymise));
    }

    #[test]
    fn what_cannot_be_meant_is_one_sentence_that_says_what_can() {
        for (line, words) in [
            ("report a.zst", "-o report.html"),
            ("report a.zst -o -", "--format"),
            ("report a.zst -o b.txt", ".html, .md or .json"),
            ("--json report a.zst -o b.json", "--format json"),
            ("report --bytes a.zst -o b.json", "bits/s"),
            ("report a.zst --format pdf -o b", "html"),
        ] {
            let Err(CliError::Usage(sentence)) = parsed(line) else { panic!("'{line}' is refused") };
            assert!(sentence.contains(words) && !sentence.contains('\n'), "'{line}': {sentence}");
        }
    }
}
