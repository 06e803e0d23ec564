//! The flight recorder of each face, and `vnettop save`.

use super::environment;
use std::error::Error;
use std::process::ExitCode;
use vnettop::app::{AskedVnettop, BlackBox, BlackBoxOptions, ask, runtime_folders};
use vnettop::cli::{AskedSave, Config, Face, Origin, Presentation};
use vnettop::effect::journal_dir;
use vnettop::record::RingBounds;
use vnettop::rights::Work;
use vnettop::term;

/// Rows of links a second that are kept without being asked for: half a percent of a core.
const MOST_ROWS_PER_S: u64 = 10_000;

/// The flight recorder of what is watched; none of a recording, of one frame, and where nothing is to be kept.
pub fn of(config: &Config, has_socket: bool) -> Option<BlackBox> {
    let kept = config.preferences.recorder;
    let is_replay = matches!(config.origin, Origin::Replay { .. });
    let what = match &config.face {
        Face::Watch(Presentation::Screen) if config.origin == Origin::Demo => "demo",
        Face::Watch(Presentation::Screen) => "screen",
        Face::Watch(Presentation::Json) => "--json",
        Face::Watch(Presentation::Lines(_)) => "--lines",
        Face::Run(_) => "run",
        Face::Export(_) => "export",
        Face::Agent => "agent",
        _ => return None,
    };
    if is_replay || kept.minutes <= 0.0 {
        return None;
    }
    let is_asked_for =
        !config.plan.triggers.is_empty() || config.overrides.iter().any(|given| given.key == "recorder.minutes");
    let most_rows_per_s = if is_asked_for { u64::MAX } else { MOST_ROWS_PER_S };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the settings have bounds")]
    let bounds = RingBounds {
        keep_ns: (kept.minutes * 60e9) as u64,
        most_bytes: (kept.mib * f64::from(1 << 20)) as usize,
        most_rows_per_s,
    };
    Some(BlackBox::start(BlackBoxOptions {
        bounds,
        folder: journal_dir(environment),
        runtime_folders: if kept.socket && has_socket { runtime_folders(environment) } else { Vec::new() },
        what,
        plan: config.plan.clone(),
    }))
}

/// Asks another vnettop for what it has kept.
pub fn save(asked: &AskedSave) -> Result<ExitCode, Box<dyn Error>> {
    super::keep_rights(Work::Replaying);
    let saved = ask(&AskedVnettop {
        pid: asked.pid,
        output: asked.output.clone(),
        folders: runtime_folders(environment),
        kept_in: journal_dir(environment),
    })?;
    term::print_line(&saved);
    Ok(ExitCode::SUCCESS)
}
