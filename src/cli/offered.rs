//! Which of the common options each command takes: the others stand in no help of it, and are refused where they would mislead.

use super::CliError;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// What a screen looks like.
const LOOK: &[&str] = &["bytes", "ascii", "theme", "no_color", "no_mouse"];
/// Where settings come from.
const SETTINGS: &[&str] = &["config", "no_config", "set", "dump_config"];
/// What BPF programs count.
const COUNTED: &[&str] = &["drops", "exact_softirqs", "hop_cores", "latency"];
/// Where owners of links are asked for.
const SOCKETS: &[&str] = &["ovs_socket", "docker_socket"];
/// What of the machine is read.
const SCOPE: &[&str] = &["watch", "netns"];
/// What is kept of the last minutes, and what is saved when.
const KEPT: &[&str] = &["keep", "no_socket", "on", "on_before", "on_after", "on_keep"];
/// One frame as text.
const FRAME: &[&str] = &["keys", "print"];

/// Command → the common options that it takes; a command without a row takes all.
const TAKEN: &[(&str, &[&[&str]])] = &[
    (
        "demo",
        &[
            &["delay", "count", "json", "lines", "record", "readonly", "no_realtime", "profile"],
            FRAME,
            COUNTED,
            KEPT,
            LOOK,
            SETTINGS,
        ],
    ),
    ("replay", &[&["delay", "count", "json", "lines"], FRAME, LOOK, SETTINGS]),
    ("doctor", &[&["json", "ascii", "theme", "no_color"], SOCKETS]),
    ("undo", &[]),
    (
        "config",
        &[
            &["delay", "readonly", "no_realtime", "restore_on_exit", "profile", "keep", "no_socket"],
            SCOPE,
            SOCKETS,
            COUNTED,
            LOOK,
            SETTINGS,
        ],
    ),
    (
        "run",
        &[
            &["delay", "record", "iperf3_json", "readonly", "no_realtime", "profile"],
            SCOPE,
            SOCKETS,
            COUNTED,
            KEPT,
            SETTINGS,
        ],
    ),
    ("save", &[]),
    ("card", &[]),
    ("cut", &[]),
    ("convert", &[]),
    ("report", &[]),
    (
        "compare",
        &[
            &["delay", "json", "readonly", "no_realtime", "ascii", "theme", "no_color", "no_mouse"],
            SOCKETS,
            COUNTED,
            SETTINGS,
        ],
    ),
    ("export", &[&["delay", "drops", "hop_cores", "latency"], SCOPE, SOCKETS, KEPT, SETTINGS]),
    ("fleet", &[&["delay", "json", "readonly"], LOOK, SETTINGS]),
    (
        "agent",
        &[
            &["delay", "readonly", "no_realtime", "restore_on_exit", "profile", "keep", "no_socket"],
            SCOPE,
            SOCKETS,
            COUNTED,
            SETTINGS,
        ],
    ),
];

/// Accepted without an effect: an alias of a shell may give them to every command.
const HARMLESS: &[&str] =
    &["ascii", "theme", "no_color", "no_mouse", "config", "no_config", "set", "no_realtime", "readonly"];

fn takes(command: &str, option: &str) -> bool {
    let row = TAKEN.iter().find(|(name, _)| *name == command);
    row.is_none_or(|(_, taken)| taken.iter().any(|group| group.contains(&option)))
}

/// The options that may stand anywhere on the command line.
fn common(command: &Command) -> Vec<Arg> {
    command.get_arguments().filter(|option| option.is_global_set()).cloned().collect()
}

/// The command line with the options of each command that it does not take hidden.
pub(super) fn without_others(command: Command) -> Command {
    let common = common(&command);
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(&name, |inner| {
            let others = common.iter().filter(|option| !takes(&name, option.get_id().as_str()));
            others.fold(inner, |inner, option| inner.arg(option.clone().hide(true)))
        })
    })
}

/// The sentence of a common option that was given to a command which does not take it.
pub(super) fn refuse(matches: &ArgMatches) -> Result<(), CliError> {
    let Some((command, inner)) = matches.subcommand() else { return Ok(()) };
    let is_other = |option: &&Arg| {
        let id = option.get_id().as_str();
        let is_given = inner.value_source(id) == Some(ValueSource::CommandLine);
        is_given && !takes(command, id) && !HARMLESS.contains(&id)
    };
    match common(&super::command()).iter().find(is_other).and_then(Arg::get_long) {
        Some(name) => Err(CliError::Usage(format!("--{name} does not apply to vnettop {command}"))),
        None => Ok(()),
    }
}
