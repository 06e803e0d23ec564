//! What clap answers in place of arguments: help, version, or the sentence of what is wrong.

use super::{CliError, command, short_help, wrong_word};
use clap::CommandFactory;
use clap::error::ErrorKind;
use std::ffi::OsString;

/// The arguments as clap sees them.
pub(super) fn matched(given: &[OsString]) -> Result<clap::ArgMatches, clap::Error> {
    let program = std::iter::once(OsString::from("vnettop"));
    command().try_get_matches_from(program.chain(given.iter().cloned()))
}

/// Help and version as text, anything else as one sentence.
pub(super) fn cli_error(error: &clap::Error, given: &[OsString]) -> CliError {
    match error.kind() {
        ErrorKind::DisplayHelp if is_short(given) => CliError::Text(short_help::of(named_command(given).as_deref())),
        ErrorKind::DisplayVersion => {
            // Clap looks at nothing behind it.
            let is_other = |word: &&OsString| *word != "--version" && *word != "-V";
            let others: Vec<OsString> = given.iter().filter(is_other).cloned().collect();
            let is_wrong = |error: &clap::Error| {
                matches!(
                    error.kind(),
                    ErrorKind::UnknownArgument | ErrorKind::InvalidValue | ErrorKind::InvalidSubcommand
                )
            };
            match matched(&others).err().filter(is_wrong) {
                Some(wrong) => CliError::Usage(wrong_word::sentence(&wrong)),
                None => CliError::Text(error.render().to_string()),
            }
        }
        ErrorKind::DisplayHelp => CliError::Text(error.render().to_string()),
        _ => CliError::Usage(wrong_word::sentence(error)),
    }
}

/// Whether the help was asked for by `-h` alone.
fn is_short(given: &[OsString]) -> bool {
    let own = || given.iter().take_while(|word| *word != "--");
    own().any(|word| word == "-h") && !own().any(|word| word == "--help" || word == "help")
}

/// The command that the arguments name; none is vnettop itself.
pub(super) fn named_command(given: &[OsString]) -> Option<String> {
    let command = super::Arguments::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let word = given.iter().take_while(|word| *word != "--").find(|word| names.iter().any(|name| word == name))?;
    word.to_str().map(str::to_owned)
}
