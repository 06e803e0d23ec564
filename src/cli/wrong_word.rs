//! What is said to somebody whose arguments cannot be meant: which word was probably meant, or what belongs there.

use crate::config::{nearest, short};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use std::error::Error;

/// Options of other programs, and what does the same here.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (
        &["-i", "--interface", "--iface", "--dev", "-p", "-I"],
        "vnettop shows every interface: / filters by name, --netns chooses namespaces",
    ),
    (&["--port", "--bind", "--addr"], "did you mean --web.listen-address of vnettop export?"),
];

/// What a command needs that was not given, and an example of it.
const NEEDED: &[(&str, &str)] = &[
    ("run", "a command after --: vnettop run -- iperf3 -c HOST"),
    ("cut", "-o FILE: vnettop cut run.zst --from 1:30 -o dip.zst"),
    ("convert", "-o FILE: vnettop convert run.zst -o run.pftrace"),
];

/// The sentence of an error that is neither help nor version.
pub(super) fn sentence(error: &clap::Error) -> String {
    let command = super::Arguments::command();
    let known = match error.kind() {
        ErrorKind::InvalidSubcommand => no_command(&command, error),
        ErrorKind::UnknownArgument => no_option(&command, error),
        ErrorKind::InvalidValue => no_value(error),
        ErrorKind::ValueValidation => not_valid(error),
        ErrorKind::MissingRequiredArgument => missing(error),
        ErrorKind::ArgumentConflict => conflict(error),
        _ => None,
    };
    known.unwrap_or_else(|| plain(error))
}

/// Clap's several lines as one sentence.
fn plain(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let sentence = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let clean: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
    clean.trim_start_matches("error: ").to_owned()
}

fn no_command(command: &Command, error: &clap::Error) -> Option<String> {
    let word = text(error, ContextKind::InvalidSubcommand)?;
    if [".zst", ".vnt", ".jsonl"].iter().any(|ending| word.ends_with(ending)) {
        return Some(format!("unknown command '{word}': to show a recording, vnettop replay {word}"));
    }
    if ["iperf3", "iperf", "netperf", "qperf", "sockperf"].contains(&word.as_str()) {
        return Some(format!("unknown command '{word}': to run it under observation, vnettop run -- {word} …"));
    }
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).filter(|name| *name != "help").collect();
    Some(match similar(error, ContextKind::SuggestedSubcommand) {
        Some(meant) => format!("unknown command '{word}': did you mean '{meant}'?"),
        None => format!(
            "unknown command '{word}': use one of {}; without one vnettop shows this machine live",
            names.join(", ")
        ),
    })
}

fn no_option(command: &Command, error: &clap::Error) -> Option<String> {
    let word = text(error, ContextKind::InvalidArg)?;
    let used = used(error);
    if !word.starts_with('-') {
        return Some(one_too_many(&word, used.as_deref()));
    }
    let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
    let is_it = |argument: &clap::Arg| {
        argument.get_long() == Some(name) || argument.get_short().is_some_and(|short| word == format!("-{short}"))
    };
    let has = |command: &&Command| command.get_arguments().any(|argument| !argument.is_global_set() && is_it(argument));
    if let Some(owner) = command.get_subcommands().find(has) {
        let owner = owner.get_name();
        let example = if owner == "run" { format!(": vnettop run {word} VALUE -- COMMAND") } else { String::new() };
        return Some(format!("{word} is an option of vnettop {owner}{example}"));
    }
    if used.as_deref() == Some("run") {
        return Some(format!("there is no option {word}: put -- before the command: vnettop run -- iperf3 -c HOST"));
    }
    let own = used.as_deref().and_then(|used| command.find_subcommand(used)).unwrap_or(command);
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(words, _)| words.contains(&word.as_str())) {
        return Some(format!("there is no option {word}: {instead}"));
    }
    Some(match part_of(name, own).or_else(|| similar(error, ContextKind::SuggestedArg)) {
        Some(meant) => format!("there is no option {word}: did you mean {meant}?"),
        None => format!("there is no option {word}"),
    })
}

/// The option in whose name this is a word: listen stands in web.listen-address.
fn part_of(name: &str, command: &Command) -> Option<String> {
    let longs = command.get_arguments().filter_map(clap::Arg::get_long);
    let mut with = longs.filter(|long| long.split(['.', '-']).any(|part| part == name));
    with.next().map(|long| format!("--{long}"))
}

/// A word where the command expects none.
fn one_too_many(word: &str, command: Option<&str>) -> String {
    match command {
        Some("run") => "put -- before the command: vnettop run -- iperf3 -c HOST".to_owned(),
        Some("compare") => format!("did you mean --only {word}? vnettop compare --list names all paths"),
        Some("export") => format!("did you mean --web.listen-address {word}?"),
        Some("fleet") => format!("did you mean --prometheus {word}?"),
        Some(command @ ("replay" | "card" | "cut" | "convert")) => {
            format!("vnettop {command} reads one recording: '{word}' is one too many")
        }
        Some(command) => format!("vnettop {command} takes options only: remove '{word}'"),
        None => format!("'{word}' is one word too many"),
    }
}

/// A word that is not among those of its option, or no word at all.
fn no_value(error: &clap::Error) -> Option<String> {
    let option = option(error)?;
    let word = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let valid = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(words)) => words.clone(),
        _ => Vec::new(),
    };
    let all = listed(&valid);
    if word.is_empty() {
        let what = if all.is_empty() { placeholder(error)? } else { all };
        return Some(format!("{option} needs a value: {what}"));
    }
    Some(match nearest(&word, valid.iter().map(String::as_str)) {
        Some(meant) => format!("{option} cannot be '{}': did you mean {option} {meant}?", short(&word)),
        None => format!("{option} cannot be '{}': use {all}", short(&word)),
    })
}

/// Words as a sentence lists them.
fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn not_valid(error: &clap::Error) -> Option<String> {
    let option = option(error)?;
    let why = error.source()?.to_string();
    let word: String = text(error, ContextKind::InvalidValue)?;
    Some(format!("{option} cannot be '{}': {why}", short(&word)))
}

fn missing(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    let used = used(error);
    let row = NEEDED.iter().find(|(command, _)| Some(*command) == used.as_deref());
    Some(match row {
        Some((command, what)) => format!("vnettop {command} needs {what}"),
        None => format!("give {} too", missing.join(" and ").replace(['<', '>'], "")),
    })
}

fn conflict(error: &clap::Error) -> Option<String> {
    let option = option(error)?;
    let other = match error.get(ContextKind::PriorArg)? {
        ContextValue::String(text) => text.clone(),
        ContextValue::Strings(texts) => texts.first()?.clone(),
        _ => return None,
    };
    let other = other.split(' ').next()?.to_owned();
    if other == option {
        return Some(format!("{option} is given twice"));
    }
    Some(format!("{option} and {other} cannot be combined: remove one of them"))
}

/// The option that the error is about, as typed.
fn option(error: &clap::Error) -> Option<String> {
    let whole = text(error, ContextKind::InvalidArg)?;
    whole.split([' ', '=']).next().map(str::to_owned)
}

/// What stands for its value in the help.
fn placeholder(error: &clap::Error) -> Option<String> {
    let whole = text(error, ContextKind::InvalidArg)?;
    whole.split_once(' ').map(|(_, value)| value.replace(['<', '>'], ""))
}

/// The command whose arguments are wrong; none is vnettop itself.
fn used(error: &clap::Error) -> Option<String> {
    let usage = text_of(error, ContextKind::Usage)?;
    let word = usage.split_once("vnettop ")?.1.split_whitespace().next()?.to_owned();
    word.starts_with(|c: char| c.is_ascii_lowercase()).then_some(word)
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    Some(text_of(error, kind)?.chars().filter(|c| !c.is_control()).take(60).collect())
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::StyledStr(text) => Some(text.to_string()),
        _ => None,
    }
}

fn similar(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.last().cloned(),
        _ => None,
    }
}
