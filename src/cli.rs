//! Arguments → [`Config`]. Nothing is opened here; what cannot be meant is refused in one sentence.

mod answer;
mod compare;
mod convert;
mod cut;
mod export;
mod fleet;
mod hosts;
mod offered;
mod options;
mod report;
mod run;
mod save;
mod short_help;
mod values;
mod wrong_word;

pub use compare::AskedComparison;
pub use convert::AskedConversion;
pub use cut::{AskedCut, AskedPart};
pub use export::AskedExport;
pub use fleet::AskedFleet;
pub use hosts::AskedHosts;
pub use report::AskedReport;
pub use run::{AskedCard, CardFormat, ObservedCommand};
pub use save::AskedSave;

use crate::action::KeyStep;
use crate::config::{Override, Preferences};
use crate::derive::TriggerPlan;
use answer::{cli_error, matched, named_command};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use fleet::FleetArguments;
use hosts::HostOptions;
use options::{Options, PaceArguments};
use report::ReportArguments;
use run::RunArguments;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What the user asked for.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the data come from.
    pub origin: Origin,
    /// What is made of them.
    pub face: Face,
    /// Time from tick to tick.
    pub interval: Duration,
    /// Intervals to show; none means until told to stop.
    pub count: Option<u64>,
    /// What lasts: the defaults, until [`Config::settle`] gives those in force.
    pub preferences: Preferences,
    /// Preferences that options give.
    pub overrides: Vec<Override>,
    /// A configuration file to read after the usual ones.
    pub config_file: Option<PathBuf>,
    /// Read none of the usual ones.
    pub no_config: bool,
    /// The user named what is to be watched.
    pub named: bool,
    /// Write a recording here.
    pub record: Option<PathBuf>,
    /// What of the last minutes is saved when.
    pub plan: TriggerPlan,
    /// What iperf 3 writes with `--json-stream`.
    pub iperf3_json: Option<PathBuf>,
}

impl Config {
    /// Whether settings are read from files: what puts things in order after a crash depends on none, and neither does what only
    /// reads a recording or looks at the machine.
    #[must_use]
    pub fn reads_settings(&self) -> bool {
        !matches!(
            self.face,
            Face::Undo
                | Face::Card(_)
                | Face::Cut(_)
                | Face::Convert(_)
                | Face::Report(_)
                | Face::Save(_)
                | Face::Doctor(_)
                | Face::ListWays
                | Face::ShowScript(_)
        )
    }

    /// Takes the settings in force. What is watched and how often are the screen's; a run decides that by itself.
    ///
    /// # Errors
    /// The sentence of what contradicts the command line.
    pub fn settle(&mut self, preferences: Preferences, is_watch_chosen: bool) -> Result<(), CliError> {
        self.preferences = preferences;
        if !self.plan.triggers.is_empty() && self.preferences.recorder.minutes <= 0.0 {
            return Err(CliError::usage("--on saves what is kept, and recorder.minutes is 0: add --keep 3m"));
        }
        match &self.face {
            Face::Watch(Presentation::Screen) => self.interval = self.preferences.interval,
            Face::Run(run) if self.preferences.readonly && run.asked.takes_turns() => {
                return Err(CliError::usage(run::READONLY_COMPARES).with_hint(Some("run")));
            }
            Face::Run(_) if !self.named => self.preferences.watch = Preferences::default().watch,
            _ => {}
        }
        self.named |= is_watch_chosen && !matches!(self.face, Face::Run(_));
        Ok(())
    }
}

/// Where the data come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// The kernel.
    Live,
    /// The kernel, in the namespaces of the demo.
    Demo,
    /// Several hosts, or another one than this.
    Hosts(AskedHosts),
    /// A recording, this many times its own speed; none means as fast as it goes.
    Replay {
        /// The recording; none is the one that is part of the program.
        file: Option<PathBuf>,
        /// Times its own speed.
        speed: Option<f64>,
        /// How long after its first sample it starts; none where that was not asked for.
        at: Option<Duration>,
    },
}

/// What is made of the data.
#[derive(Debug, Clone, PartialEq)]
pub enum Face {
    /// They are shown.
    Watch(Presentation),
    /// Nothing of the above: restore CPU affinities left behind by a killed vnettop.
    Undo,
    /// What works here and what is missing; true as JSON.
    Doctor(bool),
    /// The settings in force: plain, or with where each comes from.
    Settings {
        /// TOML and nothing else.
        plain: bool,
    },
    /// A command under observation, and its card.
    Run(ObservedCommand),
    /// Every network of this machine, measured in turn.
    Compare(AskedComparison),
    /// What is measured, for Prometheus to scrape.
    Export(AskedExport),
    /// The hosts that a Prometheus knows.
    Fleet(AskedFleet),
    /// A stream for a vnettop on another machine, which steers it.
    Agent,
    /// The ways that can be compared, and which of them this machine can do.
    ListWays,
    /// The script that makes a way.
    ShowScript(String),
    /// The card of a recorded run.
    Card(AskedCard),
    /// What another vnettop has kept, as a recording.
    Save(AskedSave),
    /// A part of a recording, as a recording of its own.
    Cut(AskedCut),
    /// A recording is written for other programs.
    Convert(AskedConversion),
    /// A report of recordings.
    Report(AskedReport),
}

/// How data are shown.
#[derive(Debug, Clone, PartialEq)]
pub enum Presentation {
    /// The live screen.
    Screen,
    /// JSON lines.
    Json,
    /// A sentence a test, so often.
    Lines(Duration),
    /// One frame as text.
    Print {
        /// Columns.
        width: u16,
        /// Rows.
        height: u16,
        /// Keys pressed before.
        keys: Vec<KeyStep>,
    },
}

/// Why there is no [`Config`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CliError {
    /// Help or version was asked for: text for standard output, exit code 0.
    Text(String),
    /// Wrong arguments: one sentence for standard error, with the help that says more; exit code 2.
    Usage(String),
    /// Wrong settings: the same, but the help says nothing of it.
    Settings(String),
}

impl CliError {
    fn usage(sentence: &str) -> Self {
        Self::Usage(sentence.to_owned())
    }

    /// The same, with the help to read: of this command, or of vnettop itself.
    fn with_hint(self, command: Option<&str>) -> Self {
        let command = command.map_or_else(String::new, |command| format!("{command} "));
        match self {
            Self::Usage(sentence) => Self::Usage(format!("{sentence} (try vnettop {command}-h)")),
            other => other,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  vnettop                         the live screen; ? shows the keys, q quits
  vnettop demo                    the same, with test traffic of its own
  vnettop --json -d 0.5 -n 20     twenty JSON objects, one every half second
  vnettop --lines 5               a sentence every 5 s, for screen readers
  vnettop --watch nginx -d 0.1    nginx's threads, ten times a second
  vnettop --record run.zst        the screen, and a recording of it
  vnettop replay run.zst          that recording, back and forth
  vnettop replay                  the built-in recording
  vnettop cut run.zst --from 1:30 --to 2:00 -o dip.zst
                                  half a minute of it, in a file of its own
  vnettop convert run.zst -o run.pftrace   it, for ui.perfetto.dev; or a CSV
  vnettop --json --on dip         JSON, and a recording of every dip
  vnettop save                    the last minutes of a running vnettop
  vnettop run -- iperf3 -c HOST   that command, and how steady its rate was
  vnettop report run.zst -o run.html   what was measured, on one page
  vnettop compare                 virtual networks of this machine in turn
  vnettop doctor                  what works here and what is missing
  vnettop undo                    restore what a killed vnettop left pinned

If standard output is not a terminal, vnettop writes JSON lines.
Manual: man vnettop, and docs/README.md (in packages: /usr/share/doc/vnettop).";

#[derive(Debug, Parser)]
#[command(name = "vnettop", version, about, after_help = EXAMPLES, args_conflicts_with_subcommands = false)]
struct Arguments {
    #[command(subcommand)]
    command: Option<CliCommand>,
    #[command(flatten)]
    hosts: HostOptions,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// The live screen on a small network that is made for it and removed at the end
    Demo,
    /// Show a recording instead of this machine; without FILE the built-in one
    Replay(ReplayArguments),
    /// What works here, what is missing and the command that fixes it; exit code 1 if vnettop cannot work
    Doctor,
    /// Restore CPU affinities and link settings that a closed or killed vnettop has left
    Undo,
    /// Print the settings in force as TOML, with where each comes from: a file, an option, or the default
    Config,
    /// Run a benchmark under observation, then print a card: how steady it was, what migrated, what was dropped
    Run(RunArguments),
    /// Print the card of a recording: of a run, or of the pins in it
    Card(AskedCard),
    /// Write a part of a recording to a file of its own
    Cut(AskedCut),
    /// Write a recording as a trace for Perfetto, or as a table (CSV)
    Convert(AskedConversion),
    /// Save the last minutes that a running vnettop has kept in memory
    Save(AskedSave),
    /// Write a report of recordings: one page with plots (HTML), Markdown or JSON
    Report(ReportArguments),
    /// Measure each virtual network that this machine can make, unpinned and pinned
    Compare(AskedComparison),
    /// Serve metrics to Prometheus, on 127.0.0.1 unless another address is given
    Export(AskedExport),
    /// List the hosts that a Prometheus server knows, worst first
    Fleet(FleetArguments),
    /// What --host starts on another host: writes samples, reads commands
    #[command(after_help = hosts::AGENT)]
    Agent,
}

#[derive(Debug, Args)]
struct ReplayArguments {
    /// The recording [default: the one that is part of the program]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    pace: PaceArguments,
}

/// The one definition of the command line, for those who write it down: man pages and completions (`packaging/pages.rs`).
#[must_use]
pub fn command() -> clap::Command {
    offered::without_others(Arguments::command())
}

/// Parses the arguments after the program's name. `terminal` tells whether standard output is one.
///
/// # Errors
/// Help, version, or one sentence of what is wrong.
pub fn parse<I: IntoIterator<Item = OsString>>(arguments: I, terminal: bool) -> Result<Config, CliError> {
    let given: Vec<OsString> = arguments.into_iter().collect();
    parsed(&given, terminal).map_err(|error| error.with_hint(named_command(&given).as_deref()))
}

fn parsed(given: &[OsString], terminal: bool) -> Result<Config, CliError> {
    let matches = matched(given).map_err(|error| cli_error(&error, given))?;
    let arguments = Arguments::from_arg_matches(&matches).map_err(|error| cli_error(&error, given))?;
    let options = arguments.options;
    run::refuse_others(arguments.command.as_ref(), &options)?;
    offered::refuse(&matches)?;
    let (overrides, plan) = (options.overrides(), options.plan());
    let named = match &arguments.command {
        Some(CliCommand::Run(run)) if !run.hosts.is_empty() => &run.hosts,
        _ => &arguments.hosts,
    };
    let hosts = named.checked(&options, arguments.command.as_ref())?;
    let face = face(arguments.command.as_ref(), &options, terminal)?;
    let interval_ms = match face {
        Face::Watch(Presentation::Screen) => 500,
        Face::Watch(Presentation::Lines(every)) => u64::try_from(every.as_millis()).unwrap_or(500).min(500),
        Face::Run(_) | Face::Compare(_) => 100,
        _ => 1000,
    };
    let replayed = |file, pace: PaceArguments| Origin::Replay {
        file,
        at: pace.at,
        speed: pace
            .speed
            .or((face == Face::Watch(Presentation::Screen)).then_some(1.0))
            .filter(|times| times.is_finite()),
    };
    let has_pace = options.pace.speed.is_some() || options.pace.at.is_some();
    let origin = match (arguments.command, options.replay) {
        (Some(_), Some(_)) => {
            return Err(CliError::usage("--replay cannot be combined with a command: vnettop replay FILE"));
        }
        (None, Some(file)) => replayed(Some(file), options.pace),
        (_, None) if has_pace => {
            let sentence = "--speed and --at need a recording: vnettop replay FILE --speed 10 --at 1:30";
            return Err(CliError::usage(sentence));
        }
        (Some(CliCommand::Replay(replay)), None) => replayed(replay.file, replay.pace),
        (Some(CliCommand::Demo), None) => Origin::Demo,
        (_, None) => hosts.map_or(Origin::Live, Origin::Hosts),
    };
    Ok(Config {
        interval: options.delay.unwrap_or(Duration::from_millis(interval_ms)),
        origin,
        face,
        count: options.count,
        named: !options.watch.is_empty(),
        preferences: Preferences::default(),
        overrides,
        config_file: options.config,
        no_config: options.no_config,
        plan,
        record: options.record,
        iperf3_json: options.iperf3_json,
    })
}

/// What is shown or done.
fn face(command: Option<&CliCommand>, options: &Options, terminal: bool) -> Result<Face, CliError> {
    Ok(match (command, options.print) {
        _ if options.dump_config => Face::Settings { plain: true },
        (Some(CliCommand::Config), _) => Face::Settings { plain: false },
        (Some(CliCommand::Undo), _) => Face::Undo,
        (Some(CliCommand::Doctor), _) => Face::Doctor(options.json),
        (Some(CliCommand::Run(run)), _) => Face::Run(run.checked(options.readonly)?),
        (Some(CliCommand::Card(card)), _) => Face::Card(card.clone()),
        (Some(CliCommand::Cut(cut)), _) => cut.clone().face()?,
        (Some(CliCommand::Convert(asked)), _) => asked.clone().face()?,
        (Some(CliCommand::Save(save)), _) => Face::Save(save.clone()),
        (Some(CliCommand::Report(report)), _) => report.checked()?,
        (Some(CliCommand::Compare(compare)), _) => compare.clone().face(options.json, options.readonly),
        (Some(CliCommand::Export(export)), _) => Face::Export(export.clone()),
        (Some(CliCommand::Fleet(fleet)), _) => fleet.checked(options.json)?,
        (Some(CliCommand::Agent), _) => Face::Agent,
        (_, Some((width, height))) => {
            Face::Watch(Presentation::Print { width, height, keys: options.keys.clone().unwrap_or_default() })
        }
        _ if options.lines.is_some() => Face::Watch(Presentation::Lines(options.lines.unwrap_or_default())),
        _ if options.json || !terminal => Face::Watch(Presentation::Json),
        _ => Face::Watch(Presentation::Screen),
    })
}

#[cfg(test)]
mod tests;
