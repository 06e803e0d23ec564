//! The arguments of `vnettop compare`.

use super::Face;
use crate::sample::{Load, WrittenAs};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What is to be compared, and where the result goes.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedComparison {
    /// Names of paths; empty: all.
    pub only: Vec<String>,
    /// Names of those left out.
    pub skip: Vec<String>,
    /// The loads.
    pub loads: Vec<Load>,
    /// How often each path is measured.
    pub rounds: u32,
    /// How long each measurement is.
    pub length: Duration,
    /// What is left out before it.
    pub warm_up: Duration,
    /// Without the pinned half.
    pub unpinned: bool,
    /// Lines instead of the live screen.
    pub plain: bool,
    /// What standard output gets.
    pub face: WrittenAs,
    /// Files that are written too, by the ends of their names.
    pub output: Vec<PathBuf>,
    /// An earlier comparison.
    pub against: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Each path that this machine can make is made in private namespaces and measured
in turn: TCP with 1 and 4 streams, request/response, UDP packets of 64 bytes.
Each is measured unpinned, and pinned as the key p would.
No link, namespace, rule or process is left, however it stops.
Ctrl-C or q keeps what was measured.
No packet gets out of the machine.

Root can make all paths; an ordinary user those that user namespaces allow.
The rest is listed with reasons. All of it takes about 25 minutes.

Examples:
  vnettop compare --only veth,bridge,ovs --repeat 5 -o here.json -o here.md
  vnettop compare --load tcp --time 10 --against other-kernel.json
  vnettop compare --list         the paths, and which this machine can make
  vnettop compare --show vxlan   the script that makes one";

#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompareArguments {
    /// Length of each measurement
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = length, allow_negative_numbers = true)]
    time: Duration,
    /// Warm-up before each measurement, not counted; threads are pinned in it
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = length, allow_negative_numbers = true)]
    warm_up: Duration,
    /// Rounds: how often each path is measured; the ± needs two or more
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Only these paths (see --list); one named twice is measured twice
    #[arg(long, value_name = "PATH,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Without these paths
    #[arg(long, value_name = "PATH,…", value_delimiter = ',')]
    skip: Vec<String>,
    /// Only these loads: tcp, tcp4, rr, udp
    #[arg(long, value_name = "LOAD,…", value_delimiter = ',', default_value = "tcp,tcp4,rr,udp", hide_default_value = true, value_parser = loads())]
    load: Vec<Load>,
    /// Pin nothing; takes half of the time
    #[arg(long)]
    unpinned: bool,
    /// A line for each path instead of the live screen
    #[arg(long)]
    plain: bool,
    /// Tables in Markdown on standard output
    #[arg(long, conflicts_with_all = ["html", "json"])]
    md: bool,
    /// A page for a browser on standard output
    #[arg(long, conflicts_with = "json")]
    html: bool,
    /// Write FILE too: JSON, Markdown, HTML or text by the end of its name; repeatable
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// Compare with an earlier run: its JSON file
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// List the paths and which of them this machine can make, then exit
    #[arg(long, conflicts_with = "show")]
    list: bool,
    /// Print the script that makes a path, then exit
    #[arg(long, value_name = "PATH")]
    show: Option<String>,
}

impl CompareArguments {
    pub(super) fn face(&self, json: bool, readonly: bool) -> Face {
        if let Some(path) = &self.show {
            return Face::ShowScript(path.clone());
        }
        if self.list {
            return Face::ListWays;
        }
        Face::Compare(AskedComparison {
            only: self.only.clone(),
            skip: self.skip.clone(),
            loads: once(&self.load),
            rounds: self.repeat,
            length: self.time,
            warm_up: self.warm_up,
            unpinned: self.unpinned || readonly,
            plain: self.plain,
            face: match (json, self.md, self.html) {
                (true, ..) => WrittenAs::Json,
                (_, true, _) => WrittenAs::Markdown,
                (_, _, true) => WrittenAs::Html,
                _ => WrittenAs::Text,
            },
            output: self.output.clone(),
            against: self.against.clone(),
        })
    }
}

/// Each load once, as it came.
fn once(loads: &[Load]) -> Vec<Load> {
    let is_first = |(at, load): &(usize, &Load)| !loads[..*at].contains(load);
    loads.iter().enumerate().filter(is_first).map(|(_, load)| *load).collect()
}

fn loads() -> impl TypedValueParser<Value = Load> {
    let words = ["tcp", "tcp4", "rr", "udp"].map(PossibleValue::new);
    PossibleValuesParser::new(words).try_map(|word| Load::from_str(&word))
}

/// iperf3 takes whole seconds of warm-up alone.
fn length(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (1.0..=600.0).contains(&seconds) && seconds.fract() == 0.0 => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err("give whole seconds, from 1 to 600".to_owned()),
    }
}
