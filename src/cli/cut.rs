//! The arguments of `vnettop cut`.

use super::options::Options;
use super::values::place;
use super::{CliError, Face};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// What part of which recording is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedCut {
    /// The recording.
    pub recording: PathBuf,
    /// How long after its first sample the part begins.
    pub from: Duration,
    /// And ends; none is with the recording.
    pub to: Option<Duration>,
    /// Where to; it must not be there yet.
    pub output: PathBuf,
}

const EXAMPLES: &str = "\
What is written replays by itself, with the facts and pins in force there.

Examples:
  vnettop cut run.zst --from 1:30 --to 2:00 -o dip.zst
  vnettop cut run.zst --from 59:30 -o end.zst";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CutArguments {
    /// The recording to cut from
    recording: PathBuf,
    /// First moment of the new recording, as time since the first sample: 90, 1:30 or 1:02:03 [default: the start]
    #[arg(long, value_name = "TIME", value_parser = place)]
    from: Option<Duration>,
    /// Last moment of it, as --from [default: the end]
    #[arg(long, value_name = "TIME", value_parser = place)]
    to: Option<Duration>,
    /// The new recording, compressed when it ends in .zst; a file that is there already is left as it is
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: PathBuf,
}

impl CutArguments {
    /// # Errors
    /// The sentence of what contradicts itself.
    pub(super) fn face(&self) -> Result<Face, CliError> {
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from > to
        {
            return Err(CliError::Usage("--from is after --to: exchange the two".to_owned()));
        }
        let (recording, output) = (self.recording.clone(), self.output.clone());
        Ok(Face::Cut(AskedCut { recording, from: self.from.unwrap_or_default(), to: self.to, output }))
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
