//! The first line: which machine, how often, at what cost, and whether it is live.

use super::Tone;
use super::canvas::{Area, Canvas, cells};
use super::format::{Interval, UNKNOWN};
use super::lines::{Piece, fitting};
use super::text::plural;
use crate::action::{Action, WorldAction};
use crate::derive::Metrics;
use crate::sample::{Host, Problem};
use crate::state::{Mode, State};
use std::time::Duration;

/// The first line of the screen.
pub(super) fn prepare(state: &State, area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    let status = status(state);
    let status_cells: usize = status.iter().map(|(_, text)| cells(text) + 2).sum();
    let room = usize::from(area.width).saturating_sub(status_cells + 2);
    let name = " vnettop ";
    let pieces = state.metrics().map_or_else(Vec::new, |metrics| pieces(state, metrics));
    let pieces = fitting(pieces, room.saturating_sub(name.len()), 3);
    let mut x = canvas.left(0, 0, area.width, Tone::FocusedTitle, name);
    for (at, piece) in pieces.iter().enumerate() {
        x += canvas.left(x, 0, 3, Tone::Muted, if at == 0 { " " } else { " · " });
        x += canvas.left(x, 0, area.width, piece.tone, &piece.text);
    }
    let mut x = area.width.saturating_sub(u16::try_from(status_cells).unwrap_or(u16::MAX));
    for (tone, text) in status {
        let action = if tone == Tone::Key { Action::Help } else { Action::ToggleFreeze };
        let is_recording = tone == Tone::Bad;
        canvas.spot(
            x,
            0,
            u16::try_from(cells(&text)).unwrap_or(0),
            if is_recording { Action::World(WorldAction::Record) } else { action },
        );
        x += canvas.left(x, 0, area.width, tone, text) + 2;
    }
    canvas
}

/// `Linux 6.12.9 aarch64`; of a recording that does not tell its kernel the architecture alone.
fn system(host: &Host) -> String {
    let kernel = if host.kernel.starts_with(|first: char| first.is_ascii_digit()) {
        format!("Linux {} ", host.kernel)
    } else {
        String::new()
    };
    format!("{kernel}{}", host.arch)
}

fn pieces(state: &State, metrics: &Metrics) -> Vec<Piece> {
    let piece = Piece::new;
    let host = &metrics.machine.facts.host;
    let mut machine = plural(metrics.machine.cores.len(), "core");
    if metrics.machine.facts.topology.nodes > 1 {
        machine = format!("{machine} / {}", plural(metrics.machine.facts.topology.nodes as usize, "node"));
    }
    let name = state.place.map_or_else(|| host.name.clone(), |(at, of)| format!("{} ({at} of {of})", host.name));
    let mut pieces = vec![
        // Which machine it is comes first: a recording may be of any.
        piece(1, Tone::Normal, name),
        piece(6, Tone::Muted, system(host)),
        piece(2, Tone::Muted, machine),
        piece(3, Tone::Normal, Interval(interval(state, metrics)).to_string()).up_to(6),
        piece(4, Tone::Muted, own_cost(state, metrics)).up_to(OWN_CPU),
    ];
    // It is meant to have it.
    if !metrics.machine.own.realtime {
        pieces.push(piece(5, Tone::Muted, "no real-time priority".to_owned()));
    }
    if metrics.machine.own.late_ticks > 0 {
        pieces.push(piece(0, Tone::Warning, format!("{} late", plural(metrics.machine.own.late_ticks, "sample"))));
    }
    if metrics.machine.own.left_out > 0 {
        pieces.push(piece(0, Tone::Warning, format!("{} left out", plural(metrics.machine.own.left_out, "sample"))));
    }
    if let Some(behind) = behind(metrics).filter(|_| state.settings().mode != Mode::Replay) {
        pieces.push(piece(0, Tone::Warning, format!("behind {} s", behind.as_secs())));
    }
    if metrics.machine.facts.problems.iter().any(Problem::is_of_rights) {
        pieces.push(piece(1, Tone::Warning, "limited rights: F".to_owned()));
    }
    if state.sticky.on {
        pieces.push(piece(0, Tone::Accent, "auto-pin".to_owned()));
    }
    if state.settings().readonly {
        pieces.push(piece(3, Tone::Normal, "readonly".to_owned()));
    }
    pieces
}

/// Cells of the longest form of what it costs.
const OWN_CPU: usize = "own CPU under 1 %".len();
/// Below this share of a core it is little.
const LITTLE: f64 = 0.01;
/// What is shown before this includes the start of the program, ns.
const STARTING_NS: u64 = 1_000_000_000;

/// CPU time that vnettop takes, as a share of a core: in whole percents, so that it stands still.
fn own_cost(state: &State, metrics: &Metrics) -> String {
    let is_starting = state.settings().mode != Mode::Replay && state.watched_ns() < STARTING_NS;
    match metrics.machine.own_cpu.filter(|_| !is_starting) {
        None => format!("own CPU {UNKNOWN}"),
        Some(share) if share < LITTLE => "own CPU under 1 %".to_owned(),
        Some(share) => format!("own CPU {:.0} %", share * 100.0),
    }
}

/// How old what is shown was when it came here, where that is worth a word: more than a second and more than two intervals.
fn behind(metrics: &Metrics) -> Option<Duration> {
    let behind_ns = metrics.machine.own.behind_ns?;
    (behind_ns > 1_000_000_000 && behind_ns / 2 > metrics.machine.own.interval_ns)
        .then(|| Duration::from_nanos(behind_ns))
}

/// The interval asked for; of a recording, the one it was made with.
pub(super) fn interval(state: &State, metrics: &Metrics) -> Duration {
    match state.settings().mode {
        Mode::Replay => Duration::from_nanos(metrics.machine.own.interval_ns),
        Mode::Live | Mode::Demo | Mode::Compare => state.settings.interval,
    }
}

fn status(state: &State) -> Vec<(Tone, String)> {
    let mode = match (state.frozen(), state.settings().mode) {
        _ if state.playback.as_ref().is_some_and(|playback| playback.is_over) => (Tone::Warning, "■ end"),
        (true, _) => (Tone::Warning, "❄ paused"),
        _ if state.is_stale() => (Tone::Bad, "○ stale"),
        (false, Mode::Live) => (Tone::Good, "● live"),
        (false, Mode::Replay) => (Tone::Accent, "▶ replay"),
        (false, Mode::Demo) => (Tone::Good, "● demo"),
        (false, Mode::Compare) => (Tone::Good, "● compare"),
    };
    let mut status = Vec::new();
    if state.is_recorded {
        status.push((Tone::Bad, "● rec".to_owned()));
    }
    if state.frozen() && state.settings().mode == Mode::Replay {
        status.push((Tone::Accent, "▶ replay".to_owned()));
    }
    status.push((mode.0, mode.1.to_owned()));
    status.push((Tone::Key, format!("{} help", state.keys().key("help"))));
    status
}
