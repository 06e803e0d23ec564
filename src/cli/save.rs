//! The arguments of `vnettop save`.

use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
A vnettop keeps its last minutes in memory (--keep). This asks it for them and
writes a recording; the vnettop goes on. Only a vnettop of the same user answers.

Examples:
  vnettop save                   of the only vnettop that runs
  vnettop save 4711 -o dip.zst   of that process, into this file";

/// Which vnettop is to be asked for what it has kept, and where that goes.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct AskedSave {
    /// The vnettop, by its process [default: the only one that runs]
    #[arg(value_name = "PID")]
    pub pid: Option<u32>,
    /// The new recording, compressed: name it .zst; an existing file is not overwritten [default: a name as of R]
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}
