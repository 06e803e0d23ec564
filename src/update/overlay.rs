//! What lies over the panes: opening it, typing into it, saying yes or no.

use super::{refusal, requests};
use crate::action::{Action, Edit, Pane};
use crate::derive::Metrics;
use crate::derive::placement::Proposal;
use crate::effect::{Effect, PinRequest};
use crate::sample::{CoreSet, ProposalPart, ThreadId};
use crate::state::{HelpPage, Overlay, State};

/// A text longer than this is no filter and no list of cores.
const MOST_TYPED: usize = 200;

/// The help's first page, from that its second, from that nothing.
pub(super) fn help(state: &mut State) {
    state.overlay = match state.overlay {
        Overlay::Help { page: HelpPage::Keys, .. } => Overlay::Help { page: HelpPage::Words, scroll: 0 },
        Overlay::Help { .. } => Overlay::None,
        _ => Overlay::Help { page: HelpPage::Keys, scroll: 0 },
    }
}

pub(super) fn turn_help_page(state: &mut State) {
    if let Overlay::Help { page, scroll } = &mut state.overlay {
        (*page, *scroll) = (page.other(), 0);
    }
}

pub(super) fn start_filter(state: &mut State) {
    let pane = if state.focus == Pane::Threads || !state.shows(Pane::Links) { Pane::Threads } else { Pane::Links };
    state.focus = pane;
    state.overlay = Overlay::Filter { pane };
}

/// What a core does, while that is looked at; a replay has that of the core that was.
pub(super) fn profile(state: &mut State, action: Action) {
    if let (Overlay::Profile { functions, scroll, .. }, Action::ToggleFunctions) = (&mut state.overlay, action) {
        (*functions, *scroll) = (!*functions, 0);
        return;
    }
    let is_open = matches!(state.overlay, Overlay::Profile { .. });
    let recorded = state.metrics().and_then(|metrics| metrics.machine.profile.as_ref().map(|profile| profile.core));
    let core = recorded.filter(|_| super::is_replay(state)).or_else(|| state.core_to_profile());
    match core {
        _ if is_open => state.overlay = Overlay::None,
        Some(core) => state.overlay = Overlay::Profile { core, functions: false, scroll: 0 },
        None => state.notice(false, "no core is known yet: wait for the first samples"),
    }
}

pub(super) fn choose_cores(state: &mut State) {
    if let Some(why) = refusal(state) {
        return state.notice(true, why);
    }
    let selected = state.threads.selection.id();
    let thread = selected.and_then(|id| state.newest()?.threads.iter().find(|thread| thread.sample.id == id));
    let Some(thread) = thread else {
        return state.notice(false, "no thread is selected: Tab to the threads, choose one with the arrows, press a");
    };
    let label = format!("{} {}", thread.sample.name, thread.sample.role());
    state.overlay = Overlay::ChooseCores { thread: thread.sample.id, label, text: String::new(), error: None };
}

/// A key of the text being typed.
pub(super) fn edit(state: &mut State, edit: Edit) {
    let text = match &mut state.overlay {
        Overlay::Filter { pane: Pane::Threads } => &mut state.threads.filter,
        Overlay::Filter { .. } => &mut state.links.filter,
        Overlay::ChooseCores { text, error, .. } => {
            *error = None;
            text
        }
        _ => return,
    };
    match edit {
        Edit::Insert(c) if text.len() < MOST_TYPED && !c.is_control() => text.push(c),
        Edit::Insert(_) => {}
        Edit::Erase => drop(text.pop()),
        Edit::EraseAll => text.clear(),
    }
}

/// Takes a line off the proposal, or on again, and chooses it.
pub(super) fn toggle(state: &mut State, part: Option<ProposalPart>) {
    let Overlay::Proposal { result: Ok(proposal), chosen, off, .. } = &mut state.overlay else { return };
    let parts = proposal.parts();
    let clicked = part.and_then(|part| parts.iter().position(|one| *one == part));
    let at = *chosen.insert(clicked.or(*chosen).unwrap_or(0));
    let Some(&part) = parts.get(at) else { return };
    if !off.remove(&part) {
        off.insert(part);
    }
}

/// Yes. A list of cores that cannot be meant keeps its overlay and gets its sentence.
pub(super) fn accept(state: &mut State) -> Option<Effect> {
    match std::mem::replace(&mut state.overlay, Overlay::None) {
        Overlay::Proposal { result: Ok(proposal), scroll, chosen, off } => {
            let rest = proposal.without(&off);
            if rest.parts().is_empty() {
                state.overlay = Overlay::Proposal { result: Ok(proposal), scroll, chosen, off };
                state.notice(false, "every line is off: Space turns one on again, Esc closes");
                return None;
            }
            apply(state, &rest)
        }
        Overlay::ChooseCores { thread, label, text, .. } => match cores_for(state.newest(), thread, &text) {
            Ok(cores) => Some(Effect::Pin(vec![PinRequest { thread, label, cores }])),
            Err(why) => {
                state.overlay = Overlay::ChooseCores { thread, label, text, error: Some(why) };
                None
            }
        },
        _ => None,
    }
}

/// No; without an overlay, away with notices, the filter and the selection of the focused pane.
pub(super) fn cancel(state: &mut State) {
    match std::mem::replace(&mut state.overlay, Overlay::None) {
        Overlay::Filter { pane: Pane::Threads } => state.threads.filter.clear(),
        Overlay::Filter { .. } => state.links.filter.clear(),
        Overlay::None if state.axis.release() => {}
        Overlay::None => clear(state),
        _ => {}
    }
}

fn clear(state: &mut State) {
    state.notices.clear();
    state.tests.chosen = None;
    match state.focus {
        Pane::Links => {
            state.links.filter.clear();
            state.links.selection.clear();
        }
        Pane::Cores => state.cores.selection.clear(),
        Pane::Threads => {
            state.threads.filter.clear();
            state.threads.selection.clear();
        }
        Pane::Test => drop(state.axis.release()),
    }
}

fn apply(state: &mut State, proposal: &Proposal) -> Option<Effect> {
    if let Some(why) = refusal(state) {
        state.notice(true, why);
        return None;
    }
    let (pins, steers) = (requests(proposal), proposal.steers.iter().map(|steer| steer.request.clone()).collect());
    Some(if proposal.steers.is_empty() { Effect::Pin(pins) } else { Effect::Place(pins, steers) })
}

/// The cores typed, if they can be meant on this machine.
fn cores_for(metrics: Option<&Metrics>, thread: ThreadId, text: &str) -> Result<CoreSet, String> {
    let metrics = metrics.ok_or("nothing is known yet: wait for the first samples")?;
    if !metrics.threads.iter().any(|other| other.sample.id == thread) {
        return Err(format!("thread {} has exited: press Esc", thread.tid));
    }
    let cores: CoreSet = text.parse().map_err(|error: crate::sample::CoreSetError| error.to_string())?;
    if cores.is_empty() {
        return Err("no core is named: write a list such as 0-3,8, or press Esc".to_owned());
    }
    let present: CoreSet = metrics.machine.facts.topology.cores.iter().map(|place| place.core).collect();
    if let Some(missing) = cores.iter().find(|&core| !present.contains(core)) {
        return Err(format!("core {missing} does not exist: choose from {present}"));
    }
    let online = metrics.machine.facts.topology.online();
    let offline = cores.iter().find(|&core| !online.contains(core));
    offline.map_or(Ok(cores), |core| Err(format!("core {core} is offline: {online} are online")))
}
