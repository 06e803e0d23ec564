//! The last line: the keys that are valid now, or the filter being typed.

use super::Tone;
use super::canvas::{Area, Canvas, cells};
use crate::action::{Action, KeyContext, Pane, Seek};
use crate::state::{Mode, Overlay, State};
use compact_str::ToCompactString;

/// The last line of the screen.
pub(super) fn prepare(state: &State, area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    match &state.overlay {
        Overlay::Filter { pane } => {
            let text = if *pane == Pane::Threads { &state.threads.filter } else { &state.links.filter };
            let used = canvas.left(1, 0, area.width / 2, Tone::Key, format_args!("/{text}_"));
            let x = used + 4;
            let keep = canvas.left(x, 0, area.width, Tone::Muted, "Enter keeps the filter");
            let clear = canvas.left(x + keep, 0, area.width, Tone::Muted, ", Esc clears it");
            canvas.spot(x, 0, keep, Action::Accept);
            canvas.spot(x + keep, 0, clear, Action::Cancel);
        }
        _ => keys(&mut canvas, state),
    }
    canvas
}

/// As many keys as fit, and always the one that leads out.
fn keys(canvas: &mut Canvas, state: &State) {
    let place = state.context();
    let is_main = matches!(place, KeyContext::Main | KeyContext::Replay);
    let last = if is_main { 17 } else { 0 };
    let end = canvas.area.width.saturating_sub(last);
    // Nothing of this machine is changed for a recording.
    let changes = |action: &Action| match action {
        Action::Undo | Action::ChooseCores | Action::Propose => true,
        Action::Accept => place == KeyContext::Proposal,
        _ => false,
    };
    let is_replay = state.settings().mode == Mode::Replay;
    let several = state.metrics().is_some_and(|metrics| metrics.tests.len() > 1);
    let hints = state.keys().hints(place).filter(|(_, _, action)| match action {
        Action::NextTest => several,
        Action::Latency => place == KeyContext::Main,
        Action::NextHost => state.place.is_some(),
        Action::Card => is_main && state.metrics().is_some_and(|metrics| metrics.subject.card.is_some()),
        Action::Seek(Seek::By(_) | Seek::Start | Seek::NextHighlight) => state.playback.is_some(),
        action => !is_replay || !changes(action),
    });
    let all: Vec<_> = hints.map(|(key, word, action)| (action, key.to_compact_string(), word)).collect();
    // What leads to another test is worth more than what leads around one.
    let (mut all, panes): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(action, _, _)| !several || *action != Action::NextPane);
    all.extend(panes);
    let (tail, head): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(_, _, word)| is_main && (*word == "help" || *word == "quit"));
    let mut x = 1;
    for (hints, end) in [(head, end), (tail, canvas.area.width)] {
        for (action, name, word) in hints {
            let needed = u16::try_from(cells(&name) + 1 + word.len()).unwrap_or(u16::MAX);
            if x + needed > end {
                break;
            }
            canvas.spot(x, 0, needed, action);
            x += canvas.left(x, 0, canvas.area.width, Tone::Key, &name) + 1;
            x += canvas.left(x, 0, canvas.area.width, Tone::Muted, word) + 2;
        }
    }
}
