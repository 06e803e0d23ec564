//! The only writer of choices: one action in, the state changed, at most one effect asked for. Nothing has happened to
//! the machine when it returns.

mod all_hosts;
mod motion;
mod overlay;
mod proposal;
mod replay;
mod sticky;

use crate::action::{Action, Key, Motion, Pane, SortColumn, WorldAction};
use crate::derive::Timeline;
use crate::effect::Effect;
use crate::state::{Arrangement, Idle, Mode, Overlay, ScreenPhase, State, TimeAxis};
use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;
use strum::VariantArray;

pub use all_hosts::{HostsWish, update_all};
pub(crate) use sticky::requests;
pub use sticky::tick;

/// The intervals that `+` and `-` go through, milliseconds.
const INTERVALS_MS: [u64; 11] = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 60_000];

/// Does what a key asks for where the keys now go.
///
/// What lies over the panes only to be read is closed by a key that means something below it alone.
pub fn press(state: &mut State, key: Key) -> Option<Effect> {
    let (here, below) = (state.context(), state.place_below());
    if let Some(action) = state.keys().action_for(key, here) {
        return update(state, action);
    }
    let action = state.keys().action_for(key, below?)?;
    state.overlay = Overlay::None;
    update(state, action)
}

/// Changes what is chosen; returns what the world is to do.
pub fn update(state: &mut State, action: Action) -> Option<Effect> {
    let effect = dispatch(state, action);
    state.arrange();
    effect
}

fn dispatch(state: &mut State, action: Action) -> Option<Effect> {
    if is_of_panes(action) && state.overlay == Overlay::None && state.shows_bands() {
        state.reveals_panes = true;
    }
    match action {
        Action::Quit => state.phase = ScreenPhase::Quitting,
        Action::Move(motion) => motion::step(state, motion),
        Action::Scroll(pane, by) => motion::scroll(state, pane, by),
        Action::NextPane => state.focus = turn(state, 1),
        Action::PreviousPane => state.focus = turn(state, Pane::ALL.len() - 1),
        Action::Focus(pane) => state.focus = pane,
        Action::SelectLink(id) => focused(state, Pane::Links).links.selection.set(id),
        Action::SelectCore(core) => focused(state, Pane::Cores).cores.selection.set(core),
        Action::SelectThread(id) => focused(state, Pane::Threads).threads.selection.set(id),
        // Where there are several, it never gets here.
        Action::NextHost => motion::step(state, Motion::Left),
        Action::NextTest => step_test(state, |_| 1),
        Action::PreviousTest => step_test(state, |tests| tests - 1),
        Action::SelectTest(number) => select_test(state, number),
        Action::NextSort => next_sort(state),
        Action::SortBy(column) => sort_by(state, column),
        Action::ReverseSort => reverse_sort(state),
        Action::ToggleTree => next(&mut state.links.chosen.shape),
        Action::ToggleIdle(pane) => toggle_idle(state, pane.unwrap_or(state.focus)),
        Action::ToggleUnits => next(&mut state.settings.units),
        Action::ToggleFreeze => toggle_freeze(state),
        Action::Faster => return faster(state),
        Action::Slower => return slower(state),
        Action::Propose => proposal::open(state),
        Action::ToggleSticky => sticky::toggle(state),
        Action::Undo => return undo(state),
        Action::World(wish) => return Some(effect_of(wish)),
        Action::NextTheme => next_theme(state),
        Action::Earlier => select_time(state, TimeAxis::earlier),
        Action::Later => select_time(state, TimeAxis::later),
        Action::SelectTime(at_ns) => state.axis.select(at_ns),
        Action::ReleaseTime => drop(state.axis.release()),
        Action::MoreTime if !state.axis.zoom(true) => state.notice(false, "the graph shows as much time as is kept"),
        Action::LessTime if !state.axis.zoom(false) => state.notice(false, "the graph shows each bin of 100 ms"),
        Action::MoreTime | Action::LessTime | Action::OpenHost(_) => {}
        Action::ToggleBands => toggle_bands(state),
        Action::ToggleZoom(pane) => toggle_zoom(state, pane),
        Action::Seek(to) => return replay::seek(state, to),
        Action::Findings => state.overlay = Overlay::Findings { scroll: 0 },
        Action::Paths => toggle(state, Overlay::Paths { scroll: 0 }),
        Action::Drops => toggle(state, Overlay::Drops { scroll: 0 }),
        Action::Latency => toggle(state, Overlay::Latency { scroll: 0 }),
        Action::Profile | Action::ToggleFunctions => overlay::profile(state, action),
        Action::ToggleExactSoftirqs => toggle_exact_softirqs(state),
        Action::Details => details(state),
        Action::Card => card(state),
        Action::Help => overlay::help(state),
        Action::TurnHelpPage => overlay::turn_help_page(state),
        Action::Press(key) => return press_below(state, key),
        Action::StartFilter => overlay::start_filter(state),
        Action::ChooseCores => overlay::choose_cores(state),
        Action::Edit(edit) => overlay::edit(state, edit),
        Action::TogglePart(part) => overlay::toggle(state, part),
        Action::Accept => return overlay::accept(state),
        Action::Cancel => overlay::cancel(state),
    }
    None
}

fn focused(state: &mut State, pane: Pane) -> &mut State {
    state.focus = pane;
    state
}

fn toggle_freeze(state: &mut State) {
    if state.frozen() {
        state.thaw();
    } else {
        state.phase = ScreenPhase::Frozen;
    }
}

fn effect_of(wish: WorldAction) -> Effect {
    match wish {
        WorldAction::Mark => Effect::Mark,
        WorldAction::Record => Effect::ToggleRecording,
        WorldAction::SaveLast => Effect::SaveLast,
        WorldAction::Report => Effect::WriteReport,
        WorldAction::SaveCard => Effect::WriteCard,
        WorldAction::SaveSettings => Effect::SaveSettings,
        WorldAction::Suspend => Effect::Suspend,
    }
}

/// Does what a key of the help means below it.
fn press_below(state: &mut State, key: Key) -> Option<Effect> {
    state.overlay = Overlay::None;
    let action = state.keys().action_for(key, state.context()).filter(|action| !matches!(action, Action::Press(_)));
    action.and_then(|action| dispatch(state, action))
}

fn details(state: &mut State) {
    if let Some(row) = state.row() {
        state.overlay = Overlay::Details { row, scroll: 0 };
    }
}

fn card(state: &mut State) {
    state.notices.read();
    toggle(state, Overlay::Card { scroll: 0 });
}

/// Opens what is only read, or closes it where it is open.
fn toggle(state: &mut State, overlay: Overlay) {
    let is_open = discriminant(&state.overlay) == discriminant(&overlay);
    state.overlay = if is_open { Overlay::None } else { overlay };
}

fn is_replay(state: &State) -> bool {
    state.settings.mode == Mode::Replay
}

/// Why nothing of this machine may be changed from here; none when it may.
fn refusal(state: &State) -> Option<&'static str> {
    match state.settings.mode {
        _ if state.settings.readonly => {
            Some("--readonly: no thread is pinned or restored; start vnettop without it to do so")
        }
        Mode::Replay => Some("pinning is not possible in a replay"),
        Mode::Compare => Some("compare pins by itself"),
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

fn select_test(state: &mut State, number: u32) {
    state.tests.chosen = Some(number);
    state.apply_test();
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
    let is_there = |pane: &Pane| state.shows(*pane) && (*pane != Pane::Test || state.has_test());
    next.find(is_there).unwrap_or(state.focus)
}

fn next_theme(state: &mut State) {
    let text = state.themes.next().map(|name| format!("theme {name}"));
    state.notice(false, text.unwrap_or_else(|| "there is no other theme here".to_owned()));
}

/// Goes to the variant after this one; from the last to the first.
fn next<T: VariantArray + Copy + PartialEq>(now: &mut T) {
    let after = T::VARIANTS.iter().skip_while(|one| *one != now).nth(1);
    *now = *after.unwrap_or(&T::VARIANTS[0]);
}

fn next_sort(state: &mut State) {
    match state.focus {
        Pane::Links => next(&mut state.links.chosen.sort),
        Pane::Cores => next(&mut state.cores.chosen.sort),
        Pane::Threads => next(&mut state.threads.chosen.sort),
        Pane::Test => {}
    }
}

/// By this column, its usual end first; a second time from the other end.
fn sort_by(state: &mut State, column: SortColumn) {
    match column {
        SortColumn::Links(sort) => {
            let list = &mut state.links.chosen;
            (list.reversed, list.sort) = (list.sort == sort && !list.reversed, sort);
            state.focus = Pane::Links;
        }
        SortColumn::Threads(sort) => {
            let list = &mut state.threads.chosen;
            (list.reversed, list.sort) = (list.sort == sort && !list.reversed, sort);
            state.focus = Pane::Threads;
        }
    }
}

fn toggle_idle(state: &mut State, pane: Pane) {
    if pane == Pane::Threads {
        state.threads.shows_idle = !state.threads.shows_idle;
    } else {
        state.links.chosen.idle = if state.links.shows_idle() { Idle::Hidden } else { Idle::Shown };
    }
}

fn toggle_bands(state: &mut State) {
    state.arrangement = if state.shows_bands() { Arrangement::Panes } else { Arrangement::Bands };
    (state.is_zoomed, state.reveals_panes) = (false, false);
    if !state.has_test() {
        state.notice(false, "bands are of a test: they open when one runs");
    }
}

/// A key that is of a pane shows the panes: in bands there is no row to select.
fn is_of_panes(action: Action) -> bool {
    matches!(
        action,
        Action::NextPane
            | Action::PreviousPane
            | Action::StartFilter
            | Action::NextSort
            | Action::ReverseSort
            | Action::ToggleTree
            | Action::ToggleIdle(_)
            | Action::ChooseCores
            | Action::Details
            | Action::Move(_)
    )
}

fn toggle_zoom(state: &mut State, pane: Option<Pane>) {
    // In bands the graph is what can be larger.
    let pane = pane.or_else(|| state.shows_bands().then_some(Pane::Test));
    if pane == Some(Pane::Test) && !state.has_test() {
        return state.notice(false, "the test has a pane when one runs");
    }
    let other = pane.filter(|pane| *pane != state.focus);
    state.is_zoomed = other.is_some() || !state.is_zoomed;
    state.focus = other.unwrap_or(state.focus);
}

fn reverse_sort(state: &mut State) {
    let reversed = match state.focus {
        Pane::Links => &mut state.links.chosen.reversed,
        Pane::Cores => &mut state.cores.chosen.reversed,
        Pane::Threads => &mut state.threads.chosen.reversed,
        Pane::Test => return,
    };
    *reversed = !*reversed;
}

fn faster(state: &mut State) -> Option<Effect> {
    if is_replay(state) {
        return replay::faster(state);
    }
    interval(state, INTERVALS_MS.iter().rev().find(|&&ms| ms < current_ms(state)))
}

fn slower(state: &mut State) -> Option<Effect> {
    if is_replay(state) {
        return replay::slower(state);
    }
    interval(state, INTERVALS_MS.iter().find(|&&ms| ms > current_ms(state)))
}

fn current_ms(state: &State) -> u64 {
    u64::try_from(state.settings.interval.as_millis()).unwrap_or(u64::MAX)
}

fn interval(state: &mut State, ms: Option<&u64>) -> Option<Effect> {
    let Some(&ms) = ms else {
        state.notice(false, "the interval is between 10 ms and 60 s");
        return None;
    };
    state.settings.interval = Duration::from_millis(ms);
    Some(Effect::SetInterval(state.settings.interval))
}

fn undo(state: &mut State) -> Option<Effect> {
    // The outcome is shown in a place that the list or the card would cover.
    state.overlay = Overlay::None;
    if let Some(why) = refusal(state) {
        state.notice(true, why);
        return None;
    }
    // Even if a mask cannot be put back, no process gets more pins unless the user asks again.
    state.sticky.forget();
    Some(Effect::Restore)
}

/// Goes along the axis of what is on the screen.
fn select_time(state: &mut State, go: fn(&mut TimeAxis, &Timeline)) {
    let timeline = state.metrics().map(|metrics| Arc::clone(&metrics.subject.timeline)).unwrap_or_default();
    if timeline.bins.is_empty() {
        return state.notice(false, "no rate is known yet, so there is no time to select");
    }
    go(&mut state.axis, &timeline);
}
