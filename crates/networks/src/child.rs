//! The processes that a network and its traffic consist of, re-executed from the own program.

use super::role::{RoleError, RoleOptions, SUBCOMMAND, exit_code};
use super::{guardian, load, network, probe, relay, wire};
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs one of them; `args` is what follows [`SUBCOMMAND`] on the command line. Internal: its words may change.
#[must_use]
pub fn run_child(args: &[OsString]) -> ExitCode {
    let is_received = args.first().is_some_and(|role| role == guardian::GUARDIAN || role == guardian::INIT);
    exit_code(SUBCOMMAND, dispatch(args), is_received)
}

fn dispatch(args: &[OsString]) -> Result<(), RoleError> {
    let (role, rest) = args.split_first().ok_or_else(|| RoleError::Usage("a role is missing".to_owned()))?;
    let role = role.to_string_lossy();
    if role == network::ENTER {
        return network::enter(rest);
    }
    let options = RoleOptions::parse(rest)?;
    match role.as_ref() {
        guardian::GUARDIAN => guardian::guardian(&options),
        guardian::INIT => guardian::init(&options),
        network::HOLDER => network::hold(&options),
        "relay" => relay::relay(&options),
        "wire" => wire::wire(&options),
        load::ECHO => load::echo(&options),
        load::ASK => load::ask(&options),
        load::SINK => load::sink(&options),
        probe::PROBE => probe::probe(&options),
        load::FILL => load::fill(&options),
        other => Err(RoleError::Usage(format!("{other:?} is not a role"))),
    }
}
