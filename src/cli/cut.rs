//! The arguments of `vnettop cut`.

use super::options::Options;
use super::values::place;
use super::{CliError, Face};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
The new recording has all facts and pins in force at its start.

Examples:
  vnettop cut run.zst --from 1:30 --to 2:00 -o dip.zst
  vnettop cut run.zst --from 59:30 -o end.zst";

/// What part of which recording is to be written.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct AskedCut {
    /// The recording to cut from [default: the built-in one]
    pub recording: Option<PathBuf>,
    /// Which part of it.
    #[command(flatten)]
    pub part: AskedPart,
    /// The new recording, compressed when it ends in .zst; an existing file is not overwritten
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: PathBuf,
}

/// A part of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct AskedPart {
    /// First moment, as time since the first sample: 90, 1:30 or 1:02:03 [default: the start]
    #[arg(long, value_name = "TIME", value_parser = place, default_value = "0", hide_default_value = true)]
    pub from: Duration,
    /// Last moment, as --from [default: the end]
    #[arg(long, value_name = "TIME", value_parser = place)]
    pub to: Option<Duration>,
}

impl AskedPart {
    /// # Errors
    /// The sentence of what contradicts itself.
    pub(super) fn checked(self) -> Result<(), CliError> {
        match self.to {
            Some(to) if self.from > to => Err(CliError::usage("--from is after --to: exchange the two")),
            _ => Ok(()),
        }
    }
}

impl AskedCut {
    /// # Errors
    /// The sentence of what contradicts itself.
    pub(super) fn face(self) -> Result<Face, CliError> {
        self.part.checked()?;
        Ok(Face::Cut(self))
    }

    /// Options of every command that mean nothing where a recording is the result.
    pub(super) fn refused(options: &Options) -> [(bool, &'static str); 4] {
        [
            (options.json, "--json cannot be combined with cut: it writes a recording"),
            (options.print.is_some(), "--print cannot be combined with cut: it writes a recording"),
            (options.record.is_some(), "--record cannot be combined with cut: use -o FILE"),
            (options.count.is_some(), "--count cannot be combined with cut: use --to TIME"),
        ]
    }
}
