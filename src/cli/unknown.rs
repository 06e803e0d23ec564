//! What is said to somebody who wrote a word that there is not: which one was probably meant, or where it belongs.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

/// Options of other programs that show interfaces, and what does the same here.
const ELSEWHERE: &[(&[&str], &str)] = &[(
    &["-i", "--interface", "--iface", "--dev", "-p", "-I"],
    "vnettop shows every interface: / filters by name, --netns chooses namespaces",
)];

/// The sentence; none where the error is another one.
pub(super) fn sentence(error: &clap::Error) -> Option<String> {
    let command = super::Arguments::command();
    match error.kind() {
        ErrorKind::InvalidSubcommand => no_command(&command, error),
        ErrorKind::UnknownArgument => no_option(&command, error),
        _ => None,
    }
}

fn no_command(command: &Command, error: &clap::Error) -> Option<String> {
    let word = text(error, ContextKind::InvalidSubcommand)?;
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
    let of_run = text(error, ContextKind::Usage).is_some_and(|usage| usage.contains("vnettop run"));
    if !word.starts_with('-') {
        // In a run it is the command; clap's own words say the rest.
        return None;
    }
    let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
    let has = |command: &&Command| {
        let is_it = |argument: &clap::Arg| {
            argument.get_long() == Some(name) || argument.get_short().is_some_and(|short| word == format!("-{short}"))
        };
        command.get_arguments().any(|argument| !argument.is_global_set() && is_it(argument))
    };
    if let Some(owner) = command.get_subcommands().find(has) {
        let owner = owner.get_name();
        let example = if owner == "run" { format!(": vnettop run {word} VALUE -- COMMAND") } else { String::new() };
        return Some(format!("{word} is an option of vnettop {owner}{example}"));
    }
    if of_run {
        return None;
    }
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(words, _)| words.contains(&word.as_str())) {
        return Some(format!("there is no option {word}: {instead}"));
    }
    Some(match similar(error, ContextKind::SuggestedArg) {
        Some(meant) => format!("there is no option {word}: did you mean {meant}?"),
        None => format!("there is no option {word}"),
    })
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    let text = match error.get(kind)? {
        ContextValue::String(text) => text.clone(),
        ContextValue::StyledStr(text) => text.to_string(),
        _ => return None,
    };
    Some(text.chars().filter(|c| !c.is_control()).take(60).collect())
}

fn similar(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.last().cloned(),
        _ => None,
    }
}
