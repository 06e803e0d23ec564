//! The only writer of choices: one action in, the state changed, at most one effect asked for. Nothing has happened to
//! the machine when it returns.

mod motion;
mod overlay;
mod sticky;

use crate::action::{Action, Key, Pane};
use crate::derive::placement::propose;
use crate::effect::Effect;
use crate::state::{Idle, ListShape, Mode, Overlay, ScreenPhase, State};
use std::time::Duration;

pub use sticky::tick;

/// The intervals that `+` and `-` go through, milliseconds.
const INTERVALS_MS: [u64; 7] = [100, 200, 500, 1000, 2000, 5000, 10_000];

/// Does what a key asks for where the keys now go.
pub fn press(state: &mut State, key: Key) -> Option<Effect> {
    state.keys().action_for(key, state.place()).and_then(|action| update(state, action))
}

/// Changes what is chosen; returns what the world is to do.
pub fn update(state: &mut State, action: Action) -> Option<Effect> {
    let effect = dispatch(state, action);
    state.arrange();
    effect
}

fn dispatch(state: &mut State, action: Action) -> Option<Effect> {
    match action {
        Action::Quit => state.phase = ScreenPhase::Quitting,
        Action::Stop => return Some(Effect::Stop),
        Action::Move(motion) => motion::step(state, motion),
        Action::Scroll(pane, by) => motion::scroll(state, pane, by),
        Action::NextPane => state.focus = turn(state, 1),
        Action::PreviousPane => state.focus = turn(state, Pane::ALL.len() - 1),
        Action::Focus(pane) => state.focus = pane,
        Action::SelectLink(id) => {
            state.focus = Pane::Links;
            state.links.selection.set(id);
        }
        Action::SelectCore(core) => {
            state.focus = Pane::Cores;
            state.cores.selection.set(core);
        }
        Action::SelectThread(id) => {
            state.focus = Pane::Threads;
            state.threads.selection.set(id);
        }
        Action::NextTest => step_test(state, |_| 1),
        Action::PreviousTest => step_test(state, |tests| tests - 1),
        Action::SelectTest(number) => {
            state.tests.choose(number);
            state.apply_test();
        }
        Action::NextSort => next_sort(state),
        Action::ReverseSort => reverse_sort(state),
        Action::ToggleTree => {
            state.links.shape = if state.links.shape == ListShape::Tree { ListShape::Flat } else { ListShape::Tree };
        }
        Action::ToggleIdle => {
            state.links.idle = if state.links.idle == Idle::Shown { Idle::Hidden } else { Idle::Shown };
            state.links.idle_chosen = true;
        }
        Action::ToggleUnits => {
            state.settings.units = state.settings.units.next();
        }
        Action::ToggleFreeze if state.frozen() => state.thaw(),
        Action::ToggleFreeze => state.phase = ScreenPhase::Frozen,
        Action::Faster => return interval(state, INTERVALS_MS.iter().rev().find(|&&ms| ms < current_ms(state))),
        Action::Slower => return interval(state, INTERVALS_MS.iter().find(|&&ms| ms > current_ms(state))),
        Action::Propose => open_proposal(state),
        Action::ToggleSticky => sticky::toggle(state),
        Action::Undo => {
            // What comes of it is told where the list or the card would lie over it.
            state.overlay = Overlay::None;
            return undo(state);
        }
        Action::Mark => return Some(Effect::Mark),
        Action::Report => return Some(Effect::WriteReport),
        Action::SaveCard => return Some(Effect::WriteCard),
        Action::Record => return Some(Effect::ToggleRecording),
        Action::NextTheme => next_theme(state),
        Action::SaveSettings => return Some(Effect::SaveSettings),
        Action::Step => return step(state),
        Action::Findings => state.overlay = Overlay::Findings { scroll: 0 },
        Action::Paths => state.overlay = Overlay::Paths { scroll: 0 },
        Action::Drops => state.overlay = Overlay::Drops { scroll: 0 },
        Action::ToggleExactSoftirqs => toggle_exact_softirqs(state),
        Action::Card => state.overlay = Overlay::Card { scroll: 0 },
        Action::Help => state.overlay = Overlay::Help { scroll: 0 },
        Action::StartFilter => overlay::start_filter(state),
        Action::ChooseCores => overlay::choose_cores(state),
        Action::Insert(_) | Action::Erase | Action::EraseAll => overlay::edit(state, action),
        Action::ToggleThread(thread) => overlay::toggle_thread(state, thread),
        Action::Accept => return overlay::accept(state),
        Action::Cancel => overlay::cancel(state),
    }
    None
}

/// Why nothing of this machine may be changed from here; none when it may.
fn refusal(state: &State) -> Option<&'static str> {
    match state.settings.mode {
        _ if state.settings.readonly => Some("--readonly: no thread is pinned or put back; start without it to do so"),
        Mode::Replay => Some("this is a replay: its threads are not here to be pinned"),
        Mode::Live | Mode::Demo => None,
    }
}

fn toggle_exact_softirqs(state: &mut State) {
    if state.settings.mode == Mode::Replay {
        return state.notice(false, "a replay shows softirq time as it was recorded");
    }
    let exact = &mut state.settings.on_request.softirqs;
    *exact = !*exact;
}

/// Goes down the list of tests by so many rows of all.
fn step_test(state: &mut State, by: fn(usize) -> usize) {
    let Some(metrics) = &state.metrics().filter(|metrics| metrics.tests.len() > 1).cloned() else {
        return state.notice(false, "there are no other tests to show");
    };
    state.tests.step(metrics, by(metrics.tests.len()));
    state.apply_test();
}

/// The next pane on the screen in steps of so many of all.
fn turn(state: &State, by: usize) -> Pane {
    let at = Pane::ALL.iter().position(|pane| *pane == state.focus).unwrap_or(0);
    let mut next = (1..=Pane::ALL.len()).map(|steps| Pane::ALL[(at + steps * by) % Pane::ALL.len()]);
    next.find(|pane| state.shows(*pane)).unwrap_or(state.focus)
}

fn next_theme(state: &mut State) {
    let text = state.themes.next().map(|name| format!("theme {name}"));
    state.notice(false, text.unwrap_or_else(|| "there is no other theme here".to_owned()));
}

fn next_sort(state: &mut State) {
    match state.focus {
        Pane::Links => state.links.sort = state.links.sort.next(),
        Pane::Cores => state.cores.sort = state.cores.sort.next(),
        Pane::Threads => state.threads.sort = state.threads.sort.next(),
    }
}

fn reverse_sort(state: &mut State) {
    let reversed = match state.focus {
        Pane::Links => &mut state.links.reversed,
        Pane::Cores => &mut state.cores.reversed,
        Pane::Threads => &mut state.threads.reversed,
    };
    *reversed = !*reversed;
}

fn current_ms(state: &State) -> u64 {
    u64::try_from(state.settings.interval.as_millis()).unwrap_or(u64::MAX)
}

fn interval(state: &mut State, ms: Option<&u64>) -> Option<Effect> {
    let Some(&ms) = ms else {
        state.notice(false, "intervals go from 100 ms to 10 s");
        return None;
    };
    state.settings.interval = Duration::from_millis(ms);
    Some(Effect::SetInterval(state.settings.interval))
}

fn open_proposal(state: &mut State) {
    let result = match state.newest() {
        Some(metrics) => propose(metrics),
        None => Err("nothing is known yet: wait for the first samples".to_owned()),
    };
    state.open_proposal(result);
}

fn undo(state: &mut State) -> Option<Effect> {
    if let Some(why) = refusal(state) {
        state.notice(true, why);
        return None;
    }
    // Whatever becomes of each mask: no process is to be pinned on without being asked again.
    state.sticky.forget();
    Some(Effect::Restore)
}

fn step(state: &mut State) -> Option<Effect> {
    match (state.settings.mode, state.frozen()) {
        (Mode::Replay, true) => return Some(Effect::Step),
        (Mode::Replay, false) => state.notice(false, "'.' steps a frozen replay: press Space first"),
        _ => state.notice(false, "'.' steps through a replay only; this is live"),
    }
    None
}
