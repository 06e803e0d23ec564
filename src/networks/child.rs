//! The processes that a network and its traffic consist of, re-executed from the own program.

use super::role::{RoleError, RoleOptions, SUBCOMMAND};
use super::{ground, load, network, relay, wire};
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

/// Runs one of them; `args` is what follows [`SUBCOMMAND`] on the command line. Internal: its words may change.
#[must_use]
pub fn run_child(args: &[OsString]) -> ExitCode {
    let (text, code) = match dispatch(args) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(RoleError::Usage(text)) => (format!("{SUBCOMMAND}: {text}"), 2),
        Err(failure) => (failure.to_string(), 1),
    };
    // Guardian and init are heard through the pipe that their ready line would have taken; the others speak to a log. Either reader may
    // be gone already.
    let is_heard = args.first().is_some_and(|role| role == ground::GUARDIAN || role == ground::INIT);
    let _ = if is_heard { writeln!(io::stdout(), "{text}") } else { writeln!(io::stderr(), "vnettop: {text}") };
    ExitCode::from(code)
}

fn dispatch(args: &[OsString]) -> Result<(), RoleError> {
    let (role, rest) = args.split_first().ok_or_else(|| RoleError::Usage("a role is missing".to_owned()))?;
    let role = role.to_string_lossy();
    if role == network::ENTER {
        return network::enter(rest);
    }
    let options = RoleOptions::parse(rest)?;
    match role.as_ref() {
        ground::GUARDIAN => ground::guardian(&options),
        ground::INIT => ground::init(&options),
        network::HOLDER => network::hold(&options),
        "relay" => relay::relay(&options),
        "wire" => wire::wire(&options),
        load::ECHO => load::echo(&options),
        load::ASK => load::ask(&options),
        load::SINK => load::sink(&options),
        load::FILL => load::fill(&options),
        other => Err(RoleError::Usage(format!("{other:?} is not a role"))),
    }
}
