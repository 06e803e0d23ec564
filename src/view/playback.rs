//! Where a replay is in its recording: the clock of the recording, how far, how long, how fast, and a bar with what is to be seen in it. A click on
//! the bar goes there.

use super::Tone;
use super::canvas::{Area, Canvas};
use super::timeline::LOSS;
use crate::action::{Action, Seek};
use crate::derive::{Highlight, HighlightKind, timeline::IncidentKind};
use crate::state::{Playback, State};
use std::fmt;

/// A bar of fewer cells says nothing.
const LEAST_CELLS: u16 = 8;
/// From so many columns on the clock says that it is not the local one.
const WIDE: u16 = 100;

/// The line, over whatever is in this row of the canvas already.
pub(super) fn prepare(canvas: &mut Canvas, state: &State, area: Area) {
    let (Some(playback), Some(metrics)) = (&state.playback, state.metrics()) else { return };
    let Some((first_ns, last_ns)) = playback.span_ns else { return };
    let (y, end) = (area.y, area.x + area.width);
    let mut x = area.x;
    let (tone, mark) = match (playback.is_over, state.frozen()) {
        (true, _) => (Tone::Warning, '■'),
        (false, true) => (Tone::Warning, '❄'),
        (false, false) => (Tone::Accent, '▶'),
    };
    canvas.spot(x, y, 3, if playback.is_over { Action::Seek(Seek::Start) } else { Action::ToggleFreeze });
    x += canvas.left(x, y, end - x, tone, format_args!(" {mark} "));
    let utc = if area.width >= WIDE { " UTC" } else { "" };
    x += canvas.left(
        x,
        y,
        end - x,
        Tone::Normal,
        format_args!("{}{utc}", PlaybackTime(metrics.machine.wall_ms / 1000 % 86_400, true)),
    );
    let since_s = |at_ns: u64| at_ns.saturating_sub(first_ns) / 1_000_000_000;
    let (at, length) = (
        PlaybackTime(since_s(metrics.machine.at_ns), false),
        PlaybackTime(since_s(last_ns.max(metrics.machine.at_ns)), false),
    );
    let at_least = if playback.is_whole { "" } else { super::UNDER_COUNT };
    x += canvas.left(x, y, end - x, Tone::Muted, format_args!(" · "));
    x += canvas.left(x, y, end - x, Tone::Normal, format_args!("{at} / {at_least}{length}"));
    x += canvas.left(x, y, end - x, Tone::Muted, format_args!(" · "));
    if area.width >= WIDE {
        x += canvas.left(x, y, end - x, Tone::Muted, "speed ");
    }
    canvas.spot(x, y, 2, Action::Slower);
    x += canvas.left(x, y, end - x, Tone::Key, "- ");
    x += match playback.speed {
        Some(times) => canvas.left(x, y, end - x, Tone::Normal, format_args!("{times}× ")),
        None => canvas.left(x, y, end - x, Tone::Normal, "max "),
    };
    canvas.spot(x, y, 2, Action::Faster);
    x += canvas.left(x, y, end - x, Tone::Key, "+ ");
    if let Some(cells) = end.checked_sub(x + 1).filter(|cells| *cells >= LEAST_CELLS) {
        bar(canvas, (x, y, cells), playback, (first_ns, metrics.machine.at_ns, last_ns.max(metrics.machine.at_ns)));
        canvas.glyph(x + cells, y, Tone::Muted, ' ');
    }
}

/// So many cells from the first sample to the last.
fn bar(
    canvas: &mut Canvas,
    (x, y, cells): (u16, u16, u16),
    playback: &Playback,
    (first_ns, now_ns, last_ns): (u64, u64, u64),
) {
    let span_ns = u128::from((last_ns - first_ns).max(1));
    let steps = u128::from(cells - 1);
    let cell = |at_ns: u64| {
        let at = u128::from(at_ns.clamp(first_ns, last_ns) - first_ns) * steps / span_ns;
        u16::try_from(at).unwrap_or(cells - 1)
    };
    let now = cell(now_ns);
    let mut marks: Vec<Option<Highlight>> = vec![None; usize::from(cells)];
    for highlight in &playback.highlights {
        let mark = &mut marks[usize::from(cell(highlight.at_ns))];
        if mark.is_none_or(|before| rank(highlight.kind) < rank(before.kind)) {
            *mark = Some(*highlight);
        }
    }
    for (at, mark) in (0..cells).zip(marks) {
        let to_ns = first_ns + u64::try_from(u128::from(at) * span_ns / steps.max(1)).unwrap_or(u64::MAX);
        let to_ns = mark.map_or(to_ns, |highlight| highlight.seen_ns);
        canvas.spot(x + at, y, 1, Action::Seek(Seek::To(to_ns)));
        let (tone, glyph) = match mark {
            _ if at == now => (Tone::Key, '●'),
            Some(highlight) => sign(highlight.kind),
            None if at < now => (Tone::Accent, '━'),
            None => (Tone::Line, '─'),
        };
        canvas.glyph(x + at, y, tone, glyph);
    }
}

/// As on the axis of the graph, where it has one.
fn sign(kind: HighlightKind) -> (Tone, char) {
    match kind {
        HighlightKind::Done(IncidentKind::Pin | IncidentKind::Restore) => (Tone::Good, '┬'),
        HighlightKind::Done(IncidentKind::Mark) => (Tone::Good, '◆'),
        HighlightKind::Done(IncidentKind::Saved) => (Tone::Warning, '◆'),
        HighlightKind::Loss => (Tone::Bad, LOSS),
        HighlightKind::Dip => (Tone::Warning, '▾'),
        HighlightKind::Migration => (Tone::Warning, '·'),
    }
}

/// Which of several in one cell is shown: the lowest.
fn rank(kind: HighlightKind) -> u8 {
    match kind {
        HighlightKind::Done(IncidentKind::Mark | IncidentKind::Saved) => 0,
        HighlightKind::Done(_) => 1,
        HighlightKind::Loss => 2,
        HighlightKind::Dip => 3,
        HighlightKind::Migration => 4,
    }
}

/// Seconds as `1:02:03`, `2:03`; of a day as `01:02:03`.
struct PlaybackTime(u64, bool);

impl fmt::Display for PlaybackTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(seconds, is_of_day) = *self;
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        match hours {
            _ if is_of_day => write!(f, "{hours:02}:{minutes:02}:{seconds:02}"),
            0 => write!(f, "{minutes}:{seconds:02}"),
            _ => write!(f, "{hours}:{minutes:02}:{seconds:02}"),
        }
    }
}
