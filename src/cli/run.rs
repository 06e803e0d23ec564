//! The arguments of `vnettop run` and `vnettop card`.

use super::convert::AskedConversion;
use super::cut::AskedCut;
use super::export::AskedExport;
use super::fleet::FleetArguments;
use super::hosts::HostOptions;
use super::options::Options;
use super::values::{on_or_off, packets, seconds_of, times};
use super::{CliCommand, CliError, hosts, report};
use crate::sample::{PinMode, RunAsked, SteerMode, Word};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A command under observation.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedCommand {
    /// The command and its arguments; not empty.
    pub command: Vec<OsString>,
    /// What a recording tells of it; whose benchmark it is and when it starts is not known yet.
    pub asked: RunAsked,
    /// How the card is written.
    pub format: CardFormat,
    /// Where to; none is standard error.
    pub card: Option<PathBuf>,
}

/// Phases of either kind that a verdict asks for.
const LEAST_PHASES: f64 = 8.0;
/// Phases that a ranking asks for at least.
const LEAST_SEARCHED: f64 = 6.0;
/// Phases that a tuning asks for at least.
const LEAST_TUNED: f64 = 12.0;
/// What iperf3 runs for unless told otherwise, seconds.
const IPERF3_SECONDS: f64 = 10.0;

impl ObservedCommand {
    /// The sentence that an iperf3 client with this `-t` ends before there is enough to compare; of no other command is it known
    /// how long it takes.
    #[must_use]
    pub fn too_short(&self) -> Option<String> {
        if self.asked.repeat > 1 {
            return None;
        }
        let (phases, what) = match self.asked.pin {
            _ if self.asked.tune => (LEAST_TUNED, "three rounds of four treatments"),
            _ if self.asked.steer != SteerMode::Never => (LEAST_SEARCHED, "three rounds of two treatments"),
            PinMode::Compare => (LEAST_PHASES, "four unpinned and four pinned phases"),
            PinMode::Search => (LEAST_SEARCHED, "three rounds of only two placements"),
            PinMode::Never | PinMode::Propose => return None,
        };
        let seconds = client_seconds(&self.command)?;
        let needed = Duration::from_nanos(self.asked.stretch_ns).as_secs_f64() * phases;
        (seconds < needed).then(|| {
            format!("iperf3 -t {seconds} is too short: {what} take {needed} s; use a longer -t or a shorter --phase")
        })
    }
}

/// How long an iperf3 client sends; none of other commands, and where bytes or blocks decide or -t 0 is for ever.
fn client_seconds(command: &[OsString]) -> Option<f64> {
    let words: Vec<&str> = command.iter().map(|word| word.to_str().unwrap_or("")).collect();
    let at = words.iter().position(|word| word.rsplit('/').next() == Some("iperf3"))?;
    let words = &words[at + 1..];
    let has = |short: &str, long: &str| words.iter().any(|word| word.starts_with(short) || word.starts_with(long));
    if !has("-c", "--client") || has("-n", "--bytes") || has("-k", "--blockcount") {
        return None;
    }
    let time = words.iter().enumerate().find_map(|(at, word)| {
        let value = word.strip_prefix("--time").map(|rest| rest.trim_start_matches('=')).or(word.strip_prefix("-t"))?;
        Some(if value.is_empty() { *words.get(at + 1)? } else { value })
    });
    time.map_or(Some(IPERF3_SECONDS), |time| time.parse().ok()).filter(|&seconds| seconds > 0.0)
}

/// What may be asked for about pins, and what the help says of each.
const PIN_MODES: [(PinMode, &str); 4] = [
    (PinMode::Never, "Watch only"),
    (PinMode::Propose, "Say which core each busy thread should have, with the taskset lines; change nothing"),
    (PinMode::Compare, "Pin and unpin in turn, and compare; every mask is restored at the end"),
    (PinMode::Search, "Try one placement of each class in short phases, and rank them; every mask is restored"),
];

fn pin_mode() -> impl TypedValueParser<Value = PinMode> {
    let named = PIN_MODES.map(|(mode, help)| PossibleValue::new(mode.word()).help(help));
    let of = |word: &String| PIN_MODES.into_iter().find(|(mode, _)| mode.word() == word).map(|(mode, _)| mode);
    PossibleValuesParser::new(named).try_map(move |word| of(&word).ok_or("no such value"))
}

/// What may be asked for about the cores of packets, and what the help says of each.
const STEER_MODES: [(SteerMode, &str); 3] = [
    (SteerMode::Never, "Packets stay on the cores that handle them"),
    (SteerMode::Compare, "Steered and untouched in turn, with --pin compare both; everything is restored"),
    (SteerMode::Search, "Rank the receiver's core, the sender's and an idle one; everything is restored"),
];

fn steer_mode() -> impl TypedValueParser<Value = SteerMode> {
    let named = STEER_MODES.map(|(mode, help)| PossibleValue::new(mode.word()).help(help));
    let of = |word: &String| STEER_MODES.into_iter().find(|(mode, _)| mode.word() == word).map(|(mode, _)| mode);
    PossibleValuesParser::new(named).try_map(move |word| of(&word).ok_or("no such value"))
}

/// How a card is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CardFormat {
    /// For a terminal
    Text,
    /// For a report or an issue
    Markdown,
    /// For a program: one object on one line
    Json,
}

/// How long settling takes at most.
const MOST_SETTLE: Duration = Duration::from_secs(2);

/// The shortest phase of a comparison.
const LEAST_PHASE: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
The command keeps its input, output, signals and exit code; the card is printed to standard error at the end.

What counts is the command's own test: its processes, their descendants, and
those at the other end of their connections on this machine. If it has none
(docker exec, ssh), every iperf3 and iperf of the machine counts, and nothing is
pinned. --watch names what counts instead.

Exit code 3: the command succeeded, but a limit is exceeded; 127, 126: it could not be started. A limit that
could not be measured is reported, not exceeded.

With --pin compare, --max-cv judges the pinned phases, with --pin search the
unpinned ones. Every mask is restored at the end; if vnettop is killed, vnettop
undo restores them.

Examples:
  How steady is it? Fails in CI if the rate varies by over 5 % or packets drop:
    vnettop run --max-cv 5% --max-drops 0 -- iperf3 -c 198.18.0.2 -t 20

  Would pinning help? Phases of 2 s, unpinned and pinned, then a verdict:
    vnettop run --pin compare --format markdown -- iperf3 -c 198.18.0.2 -t 60

  The server is on another machine? Pins both ends in phases, over ssh:
    vnettop run --host kp2 --pin compare -- iperf3 -c kp2 -t 60

  Which cores are best? One placement of each class, ranked, in phases of 1 s:
    vnettop run --pin search --phase 1 -- iperf3 -c 198.18.0.2 -t 60

  Do packets change cores? Pinned and not, steered and not, ranked:
    vnettop run --pin compare --steer compare -- iperf3 -c 198.18.0.2 -t 60

  Which setting helps? Pins, cores for packets, GRO, TSO, qdisc, ranked:
    vnettop run --tune --phase 1 -- iperf3 -c 198.18.0.2 -t 120";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RunArguments {
    /// Pins: never, propose (say which), compare (pin and unpin in turn) or search (try and rank placements)
    #[arg(long, value_parser = pin_mode(), default_value = "never", value_name = "WHAT", hide_possible_values = true)]
    pub(super) pin: PinMode,
    /// Packets: never, compare (steered and untouched in turn) or search (try and rank cores for them)
    #[arg(long, value_parser = steer_mode(), default_value = "never", value_name = "WHAT", hide_possible_values = true)]
    pub(super) steer: SteerMode,
    /// Rank pins, cores for packets, GRO, TSO, qdisc, backlog; all is restored
    #[arg(long, conflicts_with_all = ["pin", "steer"])]
    pub(super) tune: bool,
    /// Pin guests, switches, VPNs, proxies on the path too: on or off
    #[arg(long, value_name = "on|off", default_value = "on", action = clap::ArgAction::Set, value_parser = on_or_off)]
    workers: bool,
    /// Run the command N times; with --pin compare half of the runs are pinned, and each is a phase
    #[arg(long, value_name = "N", default_value = "1", value_parser = times, allow_negative_numbers = true)]
    repeat: u32,
    /// Length of a phase; a verdict needs four unpinned and four pinned ones, a search three of each placement
    #[arg(long = "phase", alias = "stretch", value_name = "SECONDS", default_value = "2", value_parser = stretch, allow_negative_numbers = true)]
    stretch: Duration,
    /// Left out at the start of the traffic and of each phase [default: a fifth of --phase, at most 2]
    #[arg(long, value_name = "SECONDS", value_parser = settle, allow_negative_numbers = true)]
    settle: Option<Duration>,
    /// Exit with 3 when the rate's standard deviation is above this share of its mean: 5% or 0.05
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true)]
    max_cv: Option<u64>,
    /// Exit with 3 when more than N packets were dropped on the path during the run
    #[arg(long, value_name = "N", value_parser = packets, allow_negative_numbers = true)]
    max_drops: Option<u64>,
    /// How the card is written: text, markdown or json
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    format: CardFormat,
    /// Write the card to FILE instead of standard error
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    #[command(flatten)]
    pub(super) hosts: HostOptions,
    /// The benchmark and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The card of a recorded run that was asked for.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct AskedCard {
    /// The recording [default: the built-in one]
    pub recording: Option<PathBuf>,
    /// How the card is written: text, markdown or json
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    pub format: CardFormat,
    /// Write the card to FILE instead of standard output
    #[arg(long, value_name = "FILE")]
    pub card: Option<PathBuf>,
}

pub(super) const READONLY_COMPARES: &str =
    "--readonly changes nothing, so there is nothing to compare: use --pin propose";

impl RunArguments {
    pub(super) fn checked(&self, readonly: bool) -> Result<ObservedCommand, CliError> {
        // A tuning is the search of both, and of more.
        let (pin, steer) = if self.tune { (PinMode::Search, SteerMode::Search) } else { (self.pin, self.steer) };
        let steers = steer != SteerMode::Never;
        let is_search = pin == PinMode::Search || steers;
        let takes_turns = pin == PinMode::Compare || is_search;
        if readonly && takes_turns {
            return Err(CliError::usage(READONLY_COMPARES));
        }
        if is_search && self.repeat > 1 {
            return Err(CliError::usage(if self.tune {
                "--tune takes phases within one run: use a longer command, not --repeat"
            } else if steers {
                "--steer takes phases within one run: use a longer command, not --repeat"
            } else {
                "--pin search takes phases within one run: use a longer command, not --repeat"
            }));
        }
        if !is_search && self.stretch < LEAST_PHASE {
            return Err(CliError::usage(
                "a phase is between 1 and 3600 seconds; in a search or with --tune from 0.5 on",
            ));
        }
        if takes_turns && self.settle.is_some_and(|settle| settle >= self.stretch) {
            return Err(CliError::usage("--settle must be shorter than --phase"));
        }
        let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let asked = RunAsked {
            pin,
            steer,
            tune: self.tune,
            ends_only: !self.workers,
            repeat: self.repeat,
            stretch_ns: ns(self.stretch),
            settle_ns: ns(self.settle.unwrap_or(MOST_SETTLE.min(self.stretch / 5))),
            max_cv_ppm: self.max_cv,
            max_drops: self.max_drops,
            ..RunAsked::default()
        };
        Ok(ObservedCommand { command: self.command.clone(), asked, format: self.format, card: self.card.clone() })
    }
}

/// Options of every command that mean nothing where a card is the result, or what the doctor says.
pub(super) fn refuse_others(command: Option<&CliCommand>, options: &Options) -> Result<(), CliError> {
    let given: &[(bool, &str)] = match command {
        Some(CliCommand::Run(_) | CliCommand::Card(_)) => &[
            (
                options.profile.as_deref() == Some("limit"),
                "--profile limit cannot be combined with run: give a core's number",
            ),
            (options.json, "--json cannot be combined with a card: use --format json"),
            (options.print.is_some(), "--print cannot be combined with a card"),
            (options.bytes, "--bytes cannot be combined with a card: its rates are in bits/s"),
            (options.count.is_some(), "--count cannot be combined with a card: it lasts as long as the command"),
        ],
        Some(CliCommand::Report(_)) => &report::others(options),
        Some(CliCommand::Doctor) => &[
            (
                options.print.is_some(),
                "--print cannot be combined with doctor; it prints lines, or one object with --json",
            ),
            (options.record.is_some(), "--record cannot be combined with doctor: it takes no samples"),
        ],
        Some(CliCommand::Config) => &[
            (options.json, "--json cannot be combined with config: it prints TOML"),
            (options.print.is_some(), "--print cannot be combined with config: it prints lines"),
            (options.record.is_some(), "--record cannot be combined with config: it takes no samples"),
        ],
        Some(CliCommand::Replay(_)) => &[
            (options.record.is_some(), "--record cannot be combined with a replay: that is recorded already"),
            (options.iperf3_json.is_some(), "--iperf3-json cannot be combined with a replay: it is in the recording"),
            (options.drops, "--drops cannot be combined with a replay: it shows what was recorded"),
            (options.exact_softirqs, "--exact-softirqs cannot be combined with a replay: it shows what was recorded"),
            (options.hop_cores, "--hop-cores cannot be combined with a replay: it shows what was recorded"),
            (options.latency, "--latency cannot be combined with a replay: it shows what was recorded"),
            (options.profile.is_some(), "--profile cannot be combined with a replay: it shows what was recorded"),
        ],
        Some(CliCommand::Cut(_)) => &AskedCut::refused(options),
        Some(CliCommand::Convert(_)) => &AskedConversion::refused(options),
        Some(CliCommand::Compare(_)) => &[
            (options.print.is_some(), "--print cannot be combined with compare: it prints tables"),
            (options.record.is_some(), "--record cannot be combined with compare: -o FILE.json keeps what it measures"),
            (options.count.is_some(), "--count cannot be combined with compare: use --repeat and --time"),
            (!options.watch.is_empty(), "--watch cannot be combined with compare: it watches what it starts"),
            (!options.netns.is_empty(), "--netns cannot be combined with compare: it makes its own namespaces"),
            (options.bytes, "--bytes cannot be combined with compare: its rates are in bits/s"),
        ],
        Some(CliCommand::Export(_)) => &AskedExport::refused(options),
        Some(CliCommand::Fleet(_)) => &FleetArguments::refused(options),
        Some(CliCommand::Agent) => &hosts::refused(options),
        Some(CliCommand::Demo | CliCommand::Undo | CliCommand::Save(_)) | None => &[],
    };
    given.iter().find(|(given, _)| *given).map_or(Ok(()), |(_, sentence)| Err(CliError::usage(sentence)))
}

fn stretch(text: &str) -> Result<Duration, String> {
    seconds_of(text, 0.5..=3600.0, "a phase is between 1 and 3600 seconds")
}

fn settle(text: &str) -> Result<Duration, String> {
    seconds_of(text, 0.0..=600.0, "--settle is between 0 and 600 seconds")
}

/// A share, as such or in percent, in millionths.
fn share(text: &str) -> Result<u64, String> {
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    match number.parse::<f64>().map(|number| number / whole) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and ten millions")]
        Ok(share) if (0.0..=10.0).contains(&share) && (whole > 1.0 || share <= 1.0) => Ok((share * 1e6).round() as u64),
        _ => Err("give a share, for example 5% or 0.05".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iperf3_too_short_to_compare_is_told_before_it_runs() {
        let reported = |command: &str, pin, repeat| {
            let run = ObservedCommand {
                command: command.split(' ').map(OsString::from).collect(),
                asked: RunAsked { pin, repeat, stretch_ns: 2_000_000_000, ..RunAsked::default() },
                format: CardFormat::Text,
                card: None,
            };
            run.too_short().is_some()
        };
        for short in [
            "iperf3 -c h -t 4",
            "/usr/bin/iperf3 -t15 -c h",
            "ip netns exec a iperf3 --client h --time=5",
            "iperf3 -c h",
        ] {
            assert!(reported(short, PinMode::Compare, 1), "'{short}' ends before sixteen seconds are over");
        }
        for long in
            ["iperf3 -c h -t 16", "iperf3 -c h -t 0", "iperf3 -s", "iperf3 -c h -n 1G", "sleep 1", "iperf3 -c h -t x"]
        {
            assert!(!reported(long, PinMode::Compare, 1), "of '{long}' nothing is to be said");
        }
        assert!(reported("iperf3 -c h", PinMode::Search, 1), "ten seconds are over before six phases of two");
        assert!(!reported("iperf3 -c h -t 12", PinMode::Search, 1), "how many placements there are is not known yet");
        assert!(
            !reported("iperf3 -c h -t 4", PinMode::Never, 1) && !reported("iperf3 -c h -t 4", PinMode::Compare, 4),
            "no phases"
        );
    }

    #[test]
    fn a_share_is_the_same_in_percent() {
        assert_eq!((share("5%"), share("0.05"), share("5 %")), (Ok(50_000), Ok(50_000), Ok(50_000)));
        assert_eq!((share("150%"), share("0")), (Ok(1_500_000), Ok(0)), "a rate may vary by more than its mean");
        for text in ["5", "-1%", "x", "", "nan", "1e9%", "%"] {
            assert!(share(text).is_err(), "'{text}' is refused: 5 may have meant 5 %");
        }
    }
}
