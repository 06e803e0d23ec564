//! Arguments → [`Config`]. Nothing is opened here; what cannot be meant is refused in one sentence.

mod cut;
mod options;
mod report;
mod run;
mod unknown;
mod values;

pub use cut::AskedCut;
pub use report::{AskedReport, WrittenAs};
pub use run::{CardFormat, ObservedCommand};

use crate::action::KeyStep;
use crate::config::{Override, Preferences};
use crate::sample::PinMode;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};
use cut::CutArguments;
use options::{Options, PaceArguments};
use report::ReportArguments;
use run::{CardArguments, RunArguments};
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
    /// Those of them that options give.
    pub overrides: Vec<Override>,
    /// A configuration file to read after the usual ones.
    pub config_file: Option<PathBuf>,
    /// Read none of the usual ones.
    pub no_config: bool,
    /// The user named what is to be watched.
    pub named: bool,
    /// Write a recording here.
    pub record: Option<PathBuf>,
    /// What iperf 3 writes with `--json-stream`.
    pub iperf3_json: Option<PathBuf>,
}

impl Config {
    /// Whether settings are read from files: what puts things in order after a crash depends on none, and neither does what only
    /// reads a recording or looks at the machine.
    #[must_use]
    pub fn reads_settings(&self) -> bool {
        !matches!(self.face, Face::Undo | Face::Card { .. } | Face::Cut(_) | Face::Report(_) | Face::Doctor(_))
    }

    /// Takes the settings in force. What is watched and how often are the screen's; a run decides that by itself.
    ///
    /// # Errors
    /// The sentence of what contradicts the command line.
    pub fn settle(&mut self, preferences: Preferences, is_watch_chosen: bool) -> Result<(), CliError> {
        self.preferences = preferences;
        match &self.face {
            Face::Watch(Presentation::Screen) => self.interval = self.preferences.interval,
            Face::Run(run) if self.preferences.readonly && run.asked.pin == PinMode::Compare => {
                return Err(CliError::Usage(run::READONLY_COMPARES.to_owned()));
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
    /// The card of a recorded run.
    Card {
        /// The recording.
        recording: PathBuf,
        /// How it is written.
        format: CardFormat,
        /// Where to; none is standard output.
        card: Option<PathBuf>,
    },
    /// A part of a recording, as a recording of its own.
    Cut(AskedCut),
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
    /// Wrong arguments: one sentence for standard error, exit code 2.
    Usage(String),
    /// Wrong settings: the same, but the help says nothing of it.
    Settings(String),
}

const EXAMPLES: &str = "\
Examples:
  vnettop                         the live screen; ? shows the keys, q quits
  vnettop demo                    the same on a bridge, two namespaces and a tun made for it
  vnettop --json -d 0.5 -n 20     twenty JSON objects, one every half second
  vnettop --watch nginx -d 0.1    nginx's threads, ten times a second
  vnettop --record run.zst        the screen, and a recording of it
  vnettop replay run.zst          that recording, back and forth
  vnettop replay                  the case that vnettop was made for
  vnettop cut run.zst --from 1:30 --to 2:00 -o dip.zst
                                  half a minute of it, by itself
  vnettop run -- iperf3 -c HOST   that command, and how steady its rate was
  vnettop report run.zst -o run.html   what was measured, on one page
  vnettop doctor                  what works here, what is missing, and what to do about it
  vnettop undo                    restore CPU affinities left behind by a killed vnettop

Not a terminal: JSON lines. man vnettop and JSON.md (/usr/share/doc/vnettop) say the rest.";

#[derive(Debug, Parser)]
#[command(name = "vnettop", version, about, after_help = EXAMPLES, args_conflicts_with_subcommands = false)]
struct Arguments {
    #[command(subcommand)]
    command: Option<CliCommand>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// The live screen on a bridge, two namespaces and a tun made for it; nothing is left behind
    Demo,
    /// Show a recording instead of this machine, back and forth; without FILE the case that vnettop was made for
    Replay(ReplayArguments),
    /// What works here and what is missing, with the command to fix it; exit code 1 where vnettop cannot work
    Doctor,
    /// Restore CPU affinities that a closed or killed vnettop has left pinned
    Undo,
    /// Print the settings in force as TOML, with where each comes from: a file, an option, or the default
    Config,
    /// Run a benchmark under observation, then print a card: how steady it was, what migrated, what was dropped
    Run(RunArguments),
    /// Print the card of a recording: of a run, or of the pins in it
    Card(CardArguments),
    /// Write a part of a recording to a file of its own
    Cut(CutArguments),
    /// Write a report of recordings: one page with plots (HTML), Markdown or JSON
    Report(ReportArguments),
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
    Arguments::command()
}

/// Parses the arguments after the program's name. `terminal` tells whether standard output is one.
///
/// # Errors
/// Help, version, or one sentence of what is wrong.
pub fn parse<I: IntoIterator<Item = OsString>>(arguments: I, terminal: bool) -> Result<Config, CliError> {
    let program = std::iter::once(OsString::from("vnettop"));
    let arguments = Arguments::try_parse_from(program.chain(arguments)).map_err(|error| cli_error(&error))?;
    let options = arguments.options;
    run::refuse_others(arguments.command.as_ref(), &options)?;
    let overrides = options.overrides();
    let face = match (&arguments.command, options.print) {
        _ if options.dump_config => Face::Settings { plain: true },
        (Some(CliCommand::Config), _) => Face::Settings { plain: false },
        (Some(CliCommand::Undo), _) => Face::Undo,
        (Some(CliCommand::Doctor), _) => Face::Doctor(options.json),
        (Some(CliCommand::Run(run)), _) => Face::Run(run.checked(options.readonly)?),
        (Some(CliCommand::Card(card)), _) => card.face(),
        (Some(CliCommand::Cut(cut)), _) => cut.face()?,
        (Some(CliCommand::Report(report)), _) => report.checked()?,
        (_, Some((width, height))) => {
            Face::Watch(Presentation::Print { width, height, keys: options.keys.unwrap_or_default() })
        }
        _ if options.json || !terminal => Face::Watch(Presentation::Json),
        _ => Face::Watch(Presentation::Screen),
    };
    let interval_ms = match face {
        Face::Watch(Presentation::Screen) => 500,
        Face::Run(_) => 100,
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
            return Err(CliError::Usage("--replay cannot be combined with a command: vnettop replay FILE".to_owned()));
        }
        (None, Some(file)) => replayed(Some(file), options.pace),
        (_, None) if has_pace => {
            let sentence = "--speed and --at need a recording: vnettop replay FILE --speed 10 --at 1:30";
            return Err(CliError::Usage(sentence.to_owned()));
        }
        (Some(CliCommand::Replay(replay)), None) => replayed(replay.file, replay.pace),
        (Some(CliCommand::Demo), None) => Origin::Demo,
        (_, None) => Origin::Live,
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
        record: options.record,
        iperf3_json: options.iperf3_json,
    })
}

/// Clap's several lines as one sentence; help and version as they are.
fn cli_error(error: &clap::Error) -> CliError {
    let text = error.render().to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return CliError::Text(text);
    }
    if let Some(sentence) = unknown::sentence(error) {
        return CliError::Usage(sentence);
    }
    let sentence = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let clean: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
    let way_out = if error.kind() == ErrorKind::UnknownArgument && text.contains("Usage: vnettop run") {
        ": put -- before the command: vnettop run -- iperf3 -c HOST"
    } else {
        ""
    };
    CliError::Usage(format!("{}{way_out}", clean.trim_start_matches("error: ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Config, CliError> {
        parse(line.split_whitespace().map(OsString::from), true)
    }

    #[test]
    fn every_wrong_argument_is_one_sentence() {
        let lines = "-d 0|-d x|-d nan|-d inf|-d -1|-d|--netns|-n 0|-n x|-n -1|--watch|--print 80|--print 0x24|--print 80x|--print axb\
            |--keys q|--speed 2|--json --print 80x24|--replay a --record b|--replay a --iperf3-json b|--iperf3-json|--docker-socket|--replay a demo|doctor --print 80x24|doctor --record a|doctor frob|config --json|frob|--frob|undo frob|--speed 0 --replay a";
        for line in lines.split('|') {
            match parsed(line) {
                Err(CliError::Usage(sentence)) => {
                    assert!(
                        !sentence.contains('\n') && sentence.len() > 10,
                        "'{line}' gives one sentence: {sentence:?}"
                    );
                }
                other => panic!("'{line}' is refused, not {other:?}"),
            }
        }
    }

    #[test]
    fn a_word_that_there_is_not_is_answered_with_the_one_that_was_meant() {
        let said = |line: &str| match parsed(line) {
            Err(CliError::Usage(sentence)) => sentence,
            other => panic!("'{line}' is refused, not {other:?}"),
        };
        for (line, words) in [
            ("topp", "unknown command 'topp': use one of demo, replay, doctor"),
            ("repaly", "did you mean 'replay'?"),
            ("--pin", "--pin is an option of vnettop run: vnettop run --pin VALUE -- COMMAND"),
            ("-i eth0", "/ filters by name"),
            ("--jsno", "did you mean --json?"),
            ("--print 10x5", "at least 60x15"),
            ("--speed 2", "vnettop replay FILE --speed 10"),
            ("replay --at 1:99", "as in 90, 1:30 or 1:02:03"),
            ("demo --at 1", "--at"),
            ("-n 0", "at least 1"),
            ("-d -1", "between 0.01 and 3600"),
            ("run --max-cv -1 -- true", "give a share"),
            ("run --max-drops x -- true", "give a number of packets"),
        ] {
            assert!(said(line).contains(words), "'{line}': {}", said(line));
        }
    }

    #[test]
    fn a_replay_has_a_file_or_is_the_shipped_one_and_starts_where_it_is_told() {
        let origin = |line: &str| parsed(line).expect("good arguments").origin;
        let shipped = Origin::Replay { file: None, speed: Some(1.0), at: None };
        assert_eq!(origin("replay"), shipped);
        let file = Some(PathBuf::from("a.zst"));
        let told = Origin::Replay { file: file.clone(), speed: None, at: Some(Duration::from_secs(3723)) };
        assert_eq!(origin("replay a.zst --speed max --at 1:02:03"), told);
        assert_eq!(origin("--replay a.zst --speed max --at 1:02:03"), told, "the option does the same");
        assert_eq!(
            origin("replay a.zst --at 1.5"),
            Origin::Replay { file, speed: Some(1.0), at: Some(Duration::from_millis(1500)) }
        );
    }

    #[test]
    fn a_name_that_steers_the_terminal_is_refused_and_not_repeated() {
        let arguments = ["--netns", "a\u{1b}[2J"].map(OsString::from);
        let Err(CliError::Usage(sentence)) = parse(arguments, true) else { panic!("no namespace has such a name") };
        assert!(!sentence.contains(char::is_control) && sentence.contains("--netns"), "{sentence:?}");
    }

    #[test]
    fn help_and_version_are_text_not_errors() {
        for line in ["--help", "-h", "--version", "-V", "demo --help"] {
            assert!(matches!(parsed(line), Err(CliError::Text(_))), "'{line}' is answered on standard output");
        }
    }

    #[test]
    fn what_is_no_terminal_gets_json() {
        let config = parse([OsString::from("-d"), OsString::from("0.25")], false).expect("good arguments");
        assert_eq!(config.face, Face::Watch(Presentation::Json), "a pipe gets JSON lines");
        assert_eq!(config.interval, Duration::from_millis(250), "fractions of seconds are allowed");
        let [Override { key, value, option: "--delay" }] = &config.overrides[..] else {
            panic!("nothing else was given")
        };
        assert_eq!((key.as_str(), value.as_float()), ("interval", Some(0.25)));
    }
}
