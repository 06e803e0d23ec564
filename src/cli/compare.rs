//! The arguments of `vnettop compare`.

use super::Face;
use super::values::{times, words};
use crate::report::WrittenAs;
use crate::sample::Load;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Each path that this machine can make is built in private namespaces, then
measured: TCP with 1 and 4 streams, request/response, UDP in 64-byte frames.
Each is measured unpinned and pinned (as key p would pin). Root also measures
TCP steered: its packets on one core, so that they keep their order.
All links, namespaces, rules and processes are removed at the end.
Ctrl-C or q keeps what was measured.
All packets stay on the machine.

Root can make all paths; an ordinary user those that user namespaces allow.
The rest is listed with reasons. All of it takes about 30 minutes.

Examples:
  vnettop compare --only veth,bridge,ovs --repeat 5 -o here.json -o here.md
  vnettop compare --load tcp --time 10 --against other-kernel.json
  vnettop compare --list         the paths, and which this machine can make
  vnettop compare --show vxlan   the script that makes one";

/// What is to be compared, and where the result goes.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = EXAMPLES)]
pub struct AskedComparison {
    /// Length of each measurement
    #[arg(long = "time", value_name = "SECONDS", default_value = "3", value_parser = length, allow_negative_numbers = true)]
    pub length: Duration,
    /// Warm-up before each measurement, not counted; threads are pinned in it
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = length, allow_negative_numbers = true)]
    pub warm_up: Duration,
    /// Rounds: how often each path is measured; the ± needs two or more
    #[arg(long = "repeat", value_name = "N", default_value = "3", value_parser = times, allow_negative_numbers = true)]
    pub rounds: u32,
    /// Only these paths (see --list); one named twice is measured twice
    #[arg(long, value_name = "PATH,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Without these paths
    #[arg(long, value_name = "PATH,…", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Only these loads: tcp, tcp4, rr, udp
    #[arg(long = "load", value_name = "LOAD,…", value_delimiter = ',', default_value = "tcp,tcp4,rr,udp", hide_default_value = true, value_parser = words::<Load, 4>(["tcp", "tcp4", "rr", "udp"]))]
    pub loads: Vec<Load>,
    /// Pin and steer nothing; takes less than half of the time
    #[arg(long)]
    pub unpinned: bool,
    /// Measure TCP with steered packets and unpinned threads too (needs root)
    #[arg(long, conflicts_with = "unpinned")]
    pub steers: bool,
    /// A line for each path instead of the live screen
    #[arg(long)]
    pub plain: bool,
    /// Tables in Markdown on standard output
    #[arg(long, conflicts_with_all = ["html", "json"])]
    md: bool,
    /// A page for a browser on standard output
    #[arg(long, conflicts_with = "json")]
    html: bool,
    /// Write FILE too: JSON, Markdown, HTML or text by the end of its name; repeatable
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<PathBuf>,
    /// Compare with an earlier run: its JSON file
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
    /// List the paths and which of them this machine can make, then exit
    #[arg(long, conflicts_with = "show")]
    list: bool,
    /// Print the script that makes a path, then exit
    #[arg(long, value_name = "PATH")]
    show: Option<String>,
    /// What standard output gets.
    #[arg(skip = WrittenAs::Text)]
    pub face: WrittenAs,
}

impl AskedComparison {
    pub(super) fn face(self, json: bool, readonly: bool) -> Face {
        if let Some(path) = self.show {
            return Face::ShowScript(path);
        }
        if self.list {
            return Face::ListWays;
        }
        let face = match (json, self.md, self.html) {
            (true, ..) => WrittenAs::Json,
            (_, true, _) => WrittenAs::Markdown,
            (_, _, true) => WrittenAs::Html,
            _ => WrittenAs::Text,
        };
        Face::Compare(Self { loads: once(&self.loads), unpinned: self.unpinned || readonly, face, ..self })
    }
}

/// Each load once, as it came.
fn once(loads: &[Load]) -> Vec<Load> {
    let is_first = |(at, load): &(usize, &Load)| !loads[..*at].contains(load);
    loads.iter().enumerate().filter(is_first).map(|(_, load)| *load).collect()
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
