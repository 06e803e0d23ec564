//! Moving the selection, or scrolling what lies over the panes.

use crate::action::{Motion, Pane};
use crate::state::{LinkList, Overlay, State};

/// Lines that Page Up and Page Down scroll an overlay by.
const PAGE: usize = 10;

/// Characters of a line on the smallest screen, and the lines of a card there.
const NARROW: usize = 40;
const CARD: usize = 16;
/// Lines of details at most: every softirq kind of a core, or every connection of a process.
const DETAILS: usize = 60;
/// No page of the help has more lines on the smallest screen; the view stops at the last line by itself.
const HELP: usize = 200;

/// Lines that a sentence takes at most on the smallest screen; the view stops at the last line by itself.
const WRAPPED: usize = 2;

/// A motion key: it scrolls the overlay if there is one.
pub(super) fn step(state: &mut State, motion: Motion) {
    let (most, path_lines, drop_lines) = (findings_lines(state), path_lines(state), drop_lines(state));
    let (latency_lines, profile_lines) = (latency_lines(state), profile_lines(state));
    match &mut state.overlay {
        Overlay::Help { scroll, .. } => *scroll = scrolled(*scroll, motion, HELP),
        Overlay::Proposal { result: Ok(proposal), chosen, .. } if matches!(motion, Motion::Up | Motion::Down) => {
            let last = proposal.steps.len().saturating_sub(1);
            *chosen = match (*chosen, motion) {
                (Some(0) | None, Motion::Up) => None,
                (Some(at), Motion::Up) => Some(at - 1),
                (at, _) => Some(at.map_or(0, |at| at + 1).min(last)),
            };
        }
        Overlay::Proposal { result: Ok(proposal), scroll, chosen, .. } => {
            *chosen = None;
            let sentences = 2 + proposal.reasons.len() + 4 * proposal.steps.len() + proposal.cores.len();
            *scroll = scrolled(*scroll, motion, WRAPPED * (sentences + 3));
        }
        Overlay::Findings { scroll } => *scroll = scrolled(*scroll, motion, most),
        Overlay::Paths { scroll } => *scroll = scrolled(*scroll, motion, path_lines),
        Overlay::Drops { scroll } => *scroll = scrolled(*scroll, motion, drop_lines),
        Overlay::Latency { scroll } => *scroll = scrolled(*scroll, motion, latency_lines),
        Overlay::Profile { scroll, .. } => *scroll = scrolled(*scroll, motion, profile_lines),
        Overlay::Details { scroll, .. } => *scroll = scrolled(*scroll, motion, DETAILS),
        Overlay::Card { scroll } => *scroll = scrolled(*scroll, motion, CARD),
        Overlay::None => select(state, motion),
        _ => {}
    }
}

/// Lines that the list of findings takes at most; the view stops at the last line by itself.
fn findings_lines(state: &State) -> usize {
    let lines = |text: &str| text.len() / NARROW + WRAPPED;
    let notices: usize = state.notices.list().iter().map(|notice| lines(&notice.text)).sum();
    let Some(metrics) = state.metrics() else { return notices };
    let problems: usize = metrics.machine.facts.problems.iter().map(|problem| lines(&problem.text)).sum();
    let findings =
        metrics.conclusions.findings.iter().map(|finding| lines(&finding.text) + finding.numbers.len() + WRAPPED);
    notices + problems + findings.sum::<usize>()
}

/// Lines that the list of paths takes at most.
fn path_lines(state: &State) -> usize {
    let Some(metrics) = state.metrics() else { return 0 };
    let hops: usize = metrics.subject.paths.iter().map(|path| path.hops.len() + PAGE).sum();
    hops + PAGE * metrics.subject.flow.connections.len()
}

/// Lines that the list of drops takes at most.
fn drop_lines(state: &State) -> usize {
    let counts = state.metrics().and_then(|metrics| metrics.machine.kernel.as_ref()?.drops.as_ref());
    counts.map_or(0, |drops| drops.flows.len() + drops.others.len() + PAGE)
}

/// Lines that the list of stages takes at most.
fn latency_lines(state: &State) -> usize {
    let latency = state.metrics().and_then(|metrics| metrics.subject.latency.as_deref());
    latency.map_or(0, |latency| latency.stages.len() + WRAPPED * latency.unknown.len() + PAGE)
}

/// Lines that a profile takes at most.
fn profile_lines(state: &State) -> usize {
    let profile = state.metrics().and_then(|metrics| metrics.machine.profile.as_deref());
    profile.map_or(0, |profile| PAGE + profile.stages.iter().map(|stage| 1 + stage.functions.len()).sum::<usize>())
}

/// The wheel over a pane.
pub(super) fn scroll(state: &mut State, pane: Pane, by: i8) {
    if state.overlay != Overlay::None {
        for _ in 0..by.unsigned_abs() {
            step(state, if by < 0 { Motion::Up } else { Motion::Down });
        }
        return;
    }
    let row = match pane {
        Pane::Links => state.links.selection.offset(by, state.links.rows().len()),
        Pane::Cores => state.cores.selection.offset(by, state.cores.rows().len()),
        Pane::Threads => state.threads.selection.offset(by, state.threads.rows().len()),
        Pane::Test => None,
    };
    choose(state, pane, row);
}

fn select(state: &mut State, motion: Motion) {
    let Some(metrics) = state.metrics() else { return };
    let row = match state.focus {
        Pane::Links => state.links.selection.target(motion, state.links.rows().len()),
        Pane::Cores => state.cores.target(metrics, motion),
        Pane::Threads => state.threads.selection.target(motion, state.threads.rows().len()),
        Pane::Test => None,
    };
    choose(state, state.focus, row);
}

/// Selects what is in a row now: its identity, not the row.
fn choose(state: &mut State, pane: Pane, row: Option<usize>) {
    let (Some(row), Some(metrics)) = (row, state.metrics()) else { return };
    match pane {
        Pane::Links => {
            let id = LinkList::id(metrics, &state.links.rows()[row]);
            state.links.selection.set(id);
        }
        Pane::Cores => {
            let core = metrics.machine.cores[state.cores.rows()[row]].place.core;
            state.cores.selection.set(core);
        }
        Pane::Threads => {
            let id = metrics.threads[state.threads.rows()[row]].sample.id;
            state.threads.selection.set(id);
        }
        Pane::Test => {}
    }
}

fn scrolled(from: usize, motion: Motion, lines: usize) -> usize {
    let to = match motion {
        Motion::Up | Motion::Left => from.saturating_sub(1),
        Motion::Down | Motion::Right => from + 1,
        Motion::PageUp => from.saturating_sub(PAGE),
        Motion::PageDown => from + PAGE,
        Motion::Home => 0,
        Motion::End => lines,
    };
    to.min(lines.saturating_sub(1))
}
