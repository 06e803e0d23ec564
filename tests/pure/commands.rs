//! docs/commands.md is the one definition of the command line, as `--help` and the man pages have it: behind its mark the page is made by this file.
//!
//! `INSTA_UPDATE=always cargo test --test pure commands::` writes that part anew.

use clap::{Arg, Command};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Before it stands what is written by hand.
const MARK: &str = "<!-- made of the definitions by tests/pure/commands.rs -->\n";
/// Command → the page that says what it is for.
const PAGES: &[(&str, &str)] = &[
    ("demo", "[the first ten minutes](first-ten-minutes.md)"),
    ("replay", "[a replay](screen.md#a-replay)"),
    ("doctor", "[troubleshooting](troubleshooting.md#vnettop-doctor)"),
    ("undo", "[pins and cards](pins.md#what-becomes-of-a-pin)"),
    ("config", "[configuration](configuration.md)"),
    ("run", "[pins and cards](pins.md#vnettop-run)"),
    ("card", "[pins and cards](pins.md#the-card)"),
    ("cut", "[scripts and recordings](scripts.md)"),
    ("convert", "[Perfetto and tables](perfetto.md)"),
    ("save", "[the last minutes](scripts.md#the-last-minutes)"),
    ("report", "[reports](report.md)"),
    ("compare", "[comparing networks](compare.md)"),
    ("export", "[Prometheus and Grafana](export.md)"),
    ("fleet", "[the fleet](export.md#the-fleet-at-a-terminal)"),
    ("agent", "[several hosts](hosts.md)"),
];

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/commands.md")
}

/// As a cell of a table has it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A sentence with the options that it names in code.
fn prose(text: &str) -> String {
    let in_code = |word: &str| {
        let name = word.trim_end_matches([',', ';', ':', '.', ')']);
        if name.starts_with("--") { format!("`{name}`{}", &word[name.len()..]) } else { word.to_owned() }
    };
    cell(&text.split(' ').map(in_code).collect::<Vec<_>>().join(" "))
}

/// `-d`, `--delay SECONDS`, or the name of what stands without an option.
fn name(option: &Arg) -> String {
    let values = option.get_value_names().unwrap_or_default();
    let value = values.iter().map(clap::builder::Str::as_str).collect::<Vec<_>>().join(" ");
    let value = if option.get_action().takes_values() { value } else { String::new() };
    let Some(long) = option.get_long() else { return format!("`{}`", cell(&value)) };
    let short = option.get_short().map(|letter| format!("`-{letter}`, ")).unwrap_or_default();
    format!("{short}`{}`", cell(format!("--{long} {value}").trim_end()))
}

/// What is taken where it is not given, and what it does.
fn default_and_help(option: &Arg) -> (String, String) {
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    if let Some((help, default)) = help.split_once(" [default: ") {
        return (default.trim_end_matches(']').to_owned(), help.to_owned());
    }
    let defaults = option.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
    let default =
        if option.get_action().takes_values() { defaults.collect::<Vec<_>>().join(" ") } else { String::new() };
    (default, help)
}

fn table<'a>(options: impl Iterator<Item = &'a Arg>) -> String {
    let rows = options.map(|option| {
        let (default, help) = default_and_help(option);
        format!("| {} | {} | {} |\n", name(option), prose(&default), prose(&help))
    });
    let rows: String = rows.collect();
    if rows.is_empty() { rows } else { format!("\n| option | default | what it does |\n|---|---|---|\n{rows}") }
}

fn is_own(option: &Arg) -> bool {
    !option.is_global_set() && !option.is_hide_set() && option.get_id() != "help" && option.get_id() != "version"
}

/// A command's own options, and which of the general ones it takes.
fn part(command: &Command, general: &[&Arg]) -> String {
    let usage = command.clone().render_usage().to_string().replace("Usage: ", "").replace(['<', '>'], "");
    let (plain, optional): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(|option| is_own(option)).partition(|option| option.is_positional());
    let own = table(plain.into_iter().chain(optional));
    let is_offered = |option: &&&Arg| {
        let hidden = command.get_arguments().find(|own| own.get_id() == option.get_id());
        !hidden.is_some_and(Arg::is_hide_set)
    };
    let names: Vec<String> =
        general.iter().filter(is_offered).filter_map(|option| Some(format!("`--{}`", option.get_long()?))).collect();
    let line = match names.len() {
        0 => "It takes no general option.".to_owned(),
        all if all == general.len() => "It takes every [general option](#general-options).".to_owned(),
        _ => format!("[General options](#general-options) that it takes: {}.", names.join(", ")),
    };
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    format!("\n## {}\n\n{}.\n\n```text\n{usage}\n```\n{own}\n{line}\n", command.get_name(), prose(&about))
}

fn made() -> String {
    let mut whole = vnettop::cli::command().disable_help_subcommand(true);
    whole.build();
    let mut text = "\n## The commands\n\n| command | what it does | more |\n|---|---|---|\n".to_owned();
    for command in whole.get_subcommands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let page = PAGES.iter().find(|(name, _)| *name == command.get_name()).expect("each command has a page").1;
        let _ = writeln!(text, "| [`{0}`](#{0}) | {1} | {page} |", command.get_name(), prose(&about));
    }
    let general: Vec<&Arg> =
        whole.get_arguments().filter(|option| option.is_global_set() && !option.is_hide_set()).collect();
    text.push_str("\n## Without a command\n\nThe live screen.\n");
    text.push_str(&table(whole.get_arguments().filter(|option| is_own(option))));
    text.push_str("\n## General options\n\nThey may stand before or after the command.\n");
    text.push_str(&table(general.iter().copied()));
    for command in whole.get_subcommands() {
        text.push_str(&part(command, &general));
    }
    text
}

#[test]
fn the_page_of_commands_is_the_definition_of_the_command_line() {
    let kept = fs::read_to_string(page()).expect("the page is there");
    let (head, _) = kept.split_once(MARK).expect("what is made stands behind its mark");
    let made = format!("{head}{MARK}{}", made());
    if std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
        fs::write(page(), &made).expect("the manual can be written to");
    } else {
        assert!(
            kept == made,
            "docs/commands.md is of another day: INSTA_UPDATE=always cargo test --test pure commands::"
        );
    }
}
