//! What lies over the panes: the keys, a proposed placement, cores being typed.

use super::canvas::{Area, Canvas, cells};
use super::help::LineSpot;
use super::host_row::HostRow;
use super::lines::{Line, sentences};
use super::placement::{self, PlacementLines};
use super::{Tone, card, drops, finding, help, latency, path, profile, row_details, verdict};
use crate::action::Action;
use crate::derive::placement::Proposal;
use crate::sample::{ProposalPart, ThreadId, Word};
use crate::state::{Mode, Overlay, State};

/// Most cells of a table, which may be wider than what is read as sentences.
const WIDEST_TABLE: u16 = 132;
/// Most cells of two columns of sentences, which may be wider than a table.
const WIDEST_HELP: u16 = 184;

/// The box in the middle of the screen, or nothing.
pub(super) fn prepare(state: &State, width: u16, height: u16) -> Canvas {
    let inner = (width - 8).min(100);
    let paths = format!("Paths ── {}/s", state.settings().units.word());
    let (title, lines, scroll, foot) = match &state.overlay {
        Overlay::None | Overlay::Filter { .. } => return Canvas::default(),
        Overlay::Help { page, scroll } => {
            let (title, lines, spots) = help::lines(state, *page, (width - 6).min(WIDEST_HELP));
            let foot = "Tab other page · Esc closes";
            return boxed(state, (width, height), title, &lines, *scroll, foot, &spots);
        }
        Overlay::Findings { scroll } => ("Findings", finding::list(state, inner), *scroll, "Esc closes"),
        Overlay::Paths { scroll } => (&*paths, path::lines(state, inner), *scroll, "Esc closes"),
        Overlay::Drops { scroll } => {
            ("Drops", drops::lines(state, (width - 8).min(WIDEST_TABLE)), *scroll, "Esc closes")
        }
        Overlay::Latency { scroll } => {
            let lines = latency::lines(state, (width - 8).min(WIDEST_TABLE));
            return boxed(state, (width, height), &latency_title(state), &lines, *scroll, "Esc closes", &[]);
        }
        Overlay::Profile { core, functions, scroll } => {
            let lines = profile::lines(state, (*core, *functions), (width - 8).min(WIDEST_TABLE));
            ("Profile", lines, *scroll, profile::foot(*functions))
        }
        Overlay::Details { row, scroll } => ("Details", row_details::lines(state, *row, inner), *scroll, "Esc closes"),
        Overlay::Card { scroll } => (card::title(state), card::lines(state, inner), *scroll, card::foot(state)),
        Overlay::Proposal { result: Ok(proposal), scroll, chosen, off } => {
            let PlacementLines { lines, parts } = placement::lines(proposal, (*chosen, off), state.metrics(), inner);
            let foot = answer(state, proposal.doubt.is_some());
            // As far down as the chosen thread is seen whole.
            let ends_at = chosen.map(|at| parts.get(at + 1).map_or(lines.len(), |next| next.0));
            let first = ends_at.map_or(*scroll, |end| end.saturating_sub(usize::from(height - 4)));
            let whole = |&(line, part): &(usize, ProposalPart)| (line, 0, inner, Action::TogglePart(Some(part)));
            let spots: Vec<LineSpot> = parts.iter().map(whole).collect();
            return boxed(state, (width, height), &proposal_title(state, proposal), &lines, first, foot, &spots);
        }
        Overlay::Proposal { result: Err(why), .. } => {
            ("No placement", sentences(Tone::Normal, why, inner), 0, card::foot_of_refusal(state))
        }
        Overlay::ChooseCores { thread, label, text, error } => {
            let lines = choose(state, *thread, (label, text, error.as_deref()), inner);
            ("Choose cores", lines, 0, "Enter pins · Esc closes")
        }
    };
    boxed(state, (width, height), title, &lines, scroll, foot, &[])
}

/// With what the test is like, which the list hides on a small screen.
fn latency_title(state: &State) -> String {
    let test = state.metrics().filter(|metrics| !metrics.subject.flow.connections.is_empty());
    test.map_or_else(|| "Latency".to_owned(), |metrics| format!("Latency ── {}", verdict::in_short(metrics)))
}

/// The placements that several hosts propose, each below its host's name; or why one has none.
pub(super) fn prepare_of_hosts(hosts: &[HostRow<'_>], scroll: usize, width: u16, height: u16) -> Canvas {
    let inner = (width - 8).min(100);
    let mut lines: Vec<Line> = Vec::new();
    let mut is_any = false;
    for HostRow { name, state } in hosts {
        let Overlay::Proposal { result, off, .. } = &state.overlay else { continue };
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        lines.push(vec![(Tone::Title, (*name).to_owned())]);
        match result {
            Ok(proposal) => {
                is_any = true;
                lines.extend(placement::lines(proposal, (None, off), state.metrics(), inner).lines);
            }
            Err(why) => lines.extend(sentences(Tone::Normal, why, inner)),
        }
    }
    if lines.is_empty() {
        lines = sentences(Tone::Normal, "no host has a test that runs: start a benchmark", inner);
    }
    let (mode, readonly) = (hosts[0].state.settings().mode, hosts[0].state.settings().readonly);
    let foot = match is_any {
        true if readonly || mode == Mode::Replay => answer(hosts[0].state, false),
        true => "p again: pin on these hosts · Esc closes",
        false => "Esc closes",
    };
    boxed(hosts[0].state, (width, height), "Proposed placement on each host", &lines, scroll, foot, &[])
}

/// With the test whose threads they are: the screen may have gone on to another.
fn proposal_title(state: &State, proposal: &Proposal) -> String {
    let test = state.metrics().zip(proposal.steps.first()).and_then(|(metrics, step)| {
        let of = *metrics.tests_of_threads().get(&step.thread)?;
        metrics.tests.iter().find(|test| test.number == of)
    });
    let of = test.map_or_else(String::new, |test| format!(" ── test {}: {}", test.number, test.words()));
    let what = if proposal.steps.is_empty() { "Proposed steer" } else { "Proposed placement" };
    format!("{what}{of}")
}

fn answer(state: &State, doubtful: bool) -> &'static str {
    match state.settings().mode {
        _ if state.settings().readonly => "--readonly: nothing is changed here · Esc closes",
        Mode::Replay => "a replay: pinning is not possible · Esc closes",
        Mode::Compare => "compare pins by itself · Esc closes",
        Mode::Live | Mode::Demo if doubtful => "p again: apply anyway · ↑ ↓ Space: line off · Esc closes",
        Mode::Live | Mode::Demo => "p again: apply · ↑ ↓ Space: line off · Esc closes",
    }
}

fn choose(state: &State, thread: ThreadId, (label, text, error): (&str, &str, Option<&str>), width: u16) -> Vec<Line> {
    let mut lines = vec![
        vec![(Tone::Normal, format!("cores for {label} {}", thread.tid))],
        vec![(Tone::Key, format!("> {text}_"))],
        vec![(Tone::Muted, "a list as the kernel writes it: 0-3,8 or 0-15:2".to_owned())],
    ];
    if let Some(metrics) = state.newest() {
        let known = metrics.threads.iter().find(|other| other.sample.id == thread);
        let allowed = known.and_then(|thread| thread.sample.allowed.as_ref());
        let now = allowed.map_or_else(String::new, |allowed| format!(", allowed now {allowed}"));
        lines.push(vec![(Tone::Muted, format!("online {}{now}", metrics.machine.facts.topology.online()))]);
    }
    lines.extend(error.into_iter().flat_map(|why| sentences(Tone::Warning, why, width)));
    lines
}

/// A box around the lines, as wide as they need, as high as there is room; what a click on some of them asks for.
fn boxed(
    state: &State,
    (width, height): (u16, u16),
    title: &str,
    lines: &[Line],
    scroll: usize,
    foot: &str,
    spots: &[LineSpot],
) -> Canvas {
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(height - 4);
    let hides = lines.len() > usize::from(rows);
    let scrolls = if hides && !foot.contains('↑') { " · ↑ ↓ scroll" } else { "" };
    let foot = state.keys().foot(&format!("{foot}{scrolls}"), state.context());
    let line_cells = |line: &Line| line.iter().map(|(_, text)| cells(text)).sum::<usize>();
    let widest = lines.iter().map(line_cells).chain([cells(title) + 2, cells(&foot) + 2]).max().unwrap_or(0);
    let inner = u16::try_from(widest).unwrap_or(u16::MAX).min(width - 6);
    let (w, h) = (inner + 4, rows + 2);
    let mut canvas = Canvas::new(Area::new((width - w) / 2, (height - h) / 2, w, h));
    canvas.opaque = true;
    border(&mut canvas, title, &foot);
    buttons(&mut canvas, state, &foot);
    let first = scroll.min(lines.len().saturating_sub(usize::from(rows)));
    for (y, (at, line)) in (1..=rows).zip(lines.iter().enumerate().skip(first)) {
        for (_, x, cells, action) in spots.iter().filter(|(line, ..)| *line == at) {
            canvas.spot(2 + x, y, *cells, *action);
        }
        let mut x = 2;
        for (tone, text) in line {
            x += canvas.left(x, y, (inner + 2).saturating_sub(x), *tone, text);
        }
    }
    if hides {
        let range = format!(" {}-{} of {} ", first + 1, first + usize::from(rows), lines.len());
        canvas.right(2, 0, w - 4, Tone::Title, range);
    }
    canvas
}

/// Each part of the foot that begins with a key is a button of that key.
fn buttons(canvas: &mut Canvas, state: &State, foot: &str) {
    let mut x = 3;
    for part in foot.split(" · ") {
        let width = u16::try_from(cells(part)).unwrap_or(u16::MAX);
        let word = part.split(' ').next().unwrap_or_default();
        if let Some(action) = state.keys().action_named(word, state.context()) {
            canvas.spot(x, canvas.area.height - 1, width, action);
        }
        x = x.saturating_add(width).saturating_add(3);
    }
}

fn border(canvas: &mut Canvas, title: &str, foot: &str) {
    let Area { width, height, .. } = canvas.area;
    for (y, left, right) in [(0, '╔', '╗'), (height - 1, '╚', '╝')] {
        canvas.glyph(0, y, Tone::Accent, left);
        canvas.run(1, y, width - 2, Tone::Accent, '═');
        canvas.glyph(width - 1, y, Tone::Accent, right);
    }
    for y in 1..height - 1 {
        canvas.glyph(0, y, Tone::Accent, '║');
        canvas.glyph(width - 1, y, Tone::Accent, '║');
    }
    canvas.left(2, 0, width - 4, Tone::FocusedTitle, format_args!(" {title} "));
    canvas.left(2, height - 1, width - 4, Tone::Key, format_args!(" {foot} "));
}
