//! Borders and titles.

use super::bands::Bands;
use super::canvas::{Area, Canvas, cells};
use super::card::{final_in, verdict_tone};
use super::layout::{Layout, SMALLEST, Shape};
use super::{Tone, cores, flow, links, playback, table, threads, traffic};
use crate::action::{Action, Pane};
use crate::derive::Card;
use crate::sample::Word;
use crate::state::State;

/// The one sentence of a screen that is too small.
pub(super) fn too_small(width: u16, height: u16) -> Canvas {
    let mut canvas = Canvas::new(Area::new(0, 0, width, height));
    let text = format!("{}×{} or more needed (now {width}×{height})", SMALLEST.0, SMALLEST.1);
    let x = width.saturating_sub(u16::try_from(cells(&text)).unwrap_or(u16::MAX)) / 2;
    canvas.left(x, height / 2, width, Tone::Warning, text);
    canvas
}

/// Borders around the panes of this layout.
pub(super) fn prepare(state: &State, layout: &Layout) -> Canvas {
    let last = layout.footer.y;
    let mut canvas = Canvas::new(Area::new(0, 0, layout.width, last));
    if layout.bands.is_none() && has_pane_above(layout) {
        let graph = layout.timeline.map_or(0, |(area, _)| area.height);
        let first = layout.tests.y + layout.tests.height + 1;
        line(&mut canvas, first - 1, TOP);
        sides(&mut canvas, Area::new(1, first, layout.width - 2, layout.traffic.height + graph));
        test_title(&mut canvas, state, first - 1);
    }
    match layout.shape {
        Shape::Bands => in_bands(&mut canvas, state, layout),
        Shape::Full => full(&mut canvas, state, layout),
        Shape::Stacked => stacked(&mut canvas, state, layout),
        Shape::Compact | Shape::Zoomed => compact(&mut canvas, state, layout),
    }
    if layout.timeline.is_none() {
        spread(&mut canvas, state, layout);
    }
    if let Some(area) = layout.playback {
        playback::prepare(&mut canvas, state, area);
    }
    canvas
}

/// The line above the graph: what is tested, and its figures. A click gives it the whole screen.
fn test_title(canvas: &mut Canvas, state: &State, y: u16) {
    let Some(metrics) = state.metrics() else { return };
    let is_focused = state.focus == Pane::Test;
    if let Some(passing) = traffic::shown(state) {
        let used = traffic::title(canvas, y, passing);
        canvas.spot(1, y, used, Action::ToggleZoom(Some(Pane::Test)));
        return;
    }
    let used = flow::border(canvas, y, (metrics, proven(state), is_focused), super::plus_minus(state));
    canvas.spot(1, y, used, Action::ToggleZoom(Some(Pane::Test)));
}

/// Around verdict and graph, above the path, and a line for each pane that is closed, with the key that opens it.
fn in_bands(canvas: &mut Canvas, state: &State, layout: &Layout) {
    let Some(bands) = &layout.bands else { return };
    let top = bands.verdict.y - 1;
    line(canvas, top, TOP);
    (top + 1..bands.bottom).for_each(|y| sides(canvas, Area::new(1, y, layout.width - 2, 1)));
    if let Some(metrics) = state.metrics() {
        let used = flow::name(canvas, top, metrics);
        canvas.spot(1, top, used, Action::ToggleZoom(Some(Pane::Test)));
    }
    line(canvas, bands.bottom, BOTTOM);
    if bands.path.height > 0 {
        path_title(canvas, state, bands);
    }
    notice(canvas, state, bands.notice);
    for ((pane, area), key) in bands.drawers.iter().zip(["open_links", "open_cores", "open_threads"]) {
        line(canvas, area.y, if area.y == bands.bottom { BOTTOM } else { BETWEEN });
        let is_open = match pane {
            Pane::Cores => bands.cores.is_some(),
            Pane::Threads => bands.threads.is_some(),
            Pane::Links | Pane::Test => false,
        };
        super::summary::drawer(canvas, state, *pane, (area.y, &state.keys().key(key)), is_open);
    }
}

/// What a key has done, in lines over the panes that are closed.
fn notice(canvas: &mut Canvas, state: &State, area: Area) {
    let lines = super::route::notice_lines(state, canvas.area.width);
    let rows = usize::from(area.height);
    for (y, (at, (tone, text))) in (area.y..area.y + area.height).zip(lines.iter().enumerate()) {
        // That there is more is seen.
        let more = if at + 1 == rows { lines.get(rows) } else { None };
        let text = more.map_or_else(|| text.clone(), |(_, more)| format!("{text} {more}"));
        canvas.left(2, y, area.width - 2, *tone, text);
    }
}

/// Cells from which on a sentence that is cut says something.
const LEAST_FOR_NOTE: u16 = 30;

/// The line above the path: the key that opens it hop by hop; for as long as there is one, what the last key has done, cut where it
/// has no room anywhere.
fn path_title(canvas: &mut Canvas, state: &State, bands: &Bands) {
    let y = bands.path.y - 1;
    line(canvas, y, BETWEEN);
    let width = canvas.area.width;
    let in_rows = bands.notice.height > 0;
    if let Some((tone, text)) = super::finding::notices(state).next().filter(|_| !in_rows) {
        let used = canvas.left(3, y, width - 6, tone, text);
        canvas.glyph(2, y, tone, ' ');
        canvas.glyph(3 + used, y, tone, ' ');
        return;
    }
    let used = 1 + canvas.left(1, y, 20, Tone::Title, " Path ");
    let title = super::route::title(state, bands.path);
    let needed = u16::try_from(cells(&title)).unwrap_or(0) + 2;
    let x = (width - 2).saturating_sub(needed + 1);
    if let Some((tone, text)) = super::finding::problem(state) {
        let room = x.saturating_sub(used + 4);
        let is_whole = cells(&text) < usize::from(room);
        // What a recording says of itself is not said in one word and a half.
        let is_short = !is_whole && room < LEAST_FOR_NOTE;
        let text = if is_whole { text } else { super::finding::problem_source(state).unwrap_or(text) };
        if !is_short || !text.starts_with("recording") {
            let more = canvas.left(used + 1, y, room, tone, format_args!(" {text}"));
            canvas.glyph(used + 1 + more, y, tone, ' ');
            canvas.spot(used + 1, y, room, Action::Findings);
        }
    }
    canvas.left(x, y, needed, Tone::Muted, format_args!(" {title} "));
    canvas.spot(x, y, needed, Action::Paths);
}

/// The ends of the uppermost line, and of one between two panes.
pub(super) const TOP: (char, char) = ('┌', '┐');
pub(super) const BETWEEN: (char, char) = ('├', '┤');
/// The ends of the last line.
const BOTTOM: (char, char) = ('└', '┘');

/// A test's graph, or what passes without one, lies above the panes, or alone.
fn has_pane_above(layout: &Layout) -> bool {
    layout.timeline.is_some() || layout.traffic.height > 0
}

/// The ends of the line above the panes.
fn top(layout: &Layout) -> (char, char) {
    if has_pane_above(layout) { BETWEEN } else { TOP }
}

fn full(canvas: &mut Canvas, state: &State, layout: &Layout) {
    let (Some(links), Some(cores), Some(threads)) = (layout.links, layout.cores, layout.threads) else { return };
    let split = threads.x - 1;
    line(canvas, links.y - 1, top(layout));
    sides(canvas, links);
    line(canvas, cores.y - 1, BETWEEN);
    canvas.glyph(split, cores.y - 1, Tone::Line, '┬');
    sides(canvas, cores);
    sides(canvas, threads);
    let below = cores.y + cores.height;
    line(canvas, below, BETWEEN);
    canvas.glyph(split, below, Tone::Line, '┴');
    title(canvas, state, Pane::Links, links, layout);
    title(canvas, state, Pane::Cores, cores, layout);
    title(canvas, state, Pane::Threads, threads, layout);
    finding(canvas, layout);
}

fn stacked(canvas: &mut Canvas, state: &State, layout: &Layout) {
    let panes = [(Pane::Links, layout.links), (Pane::Cores, layout.cores), (Pane::Threads, layout.threads)];
    for (at, (pane, area)) in panes.into_iter().filter_map(|(pane, area)| Some((pane, area?))).enumerate() {
        line(canvas, area.y - 1, if at == 0 { top(layout) } else { BETWEEN });
        sides(canvas, area);
        title(canvas, state, pane, area, layout);
    }
    line(canvas, layout.finding.y - 1, BETWEEN);
    finding(canvas, layout);
}

fn compact(canvas: &mut Canvas, state: &State, layout: &Layout) {
    let area = layout.links.or(layout.cores).or(layout.threads);
    if let Some(area) = area {
        line(canvas, area.y - 1, top(layout));
        sides(canvas, area);
        line(canvas, area.y + area.height, BOTTOM);
        title(canvas, state, state.focus, area, layout);
    } else if let Some((area, _)) = layout.timeline {
        line(canvas, area.y + area.height, BOTTOM);
    }
    for &(pane, at) in &layout.summaries {
        super::summary::prepare(canvas, state, pane, at.y);
    }
}

/// The border of the finding; its upper line is drawn already.
fn finding(canvas: &mut Canvas, layout: &Layout) {
    let area = layout.finding;
    canvas.left(1, area.y - 1, 20, Tone::Title, " Finding ");
    sides(canvas, Area::new(1, area.y, layout.width - 2, area.height));
    line(canvas, area.y + area.height, BOTTOM);
}

/// The card of a pin that stands.
fn proven(state: &State) -> Option<&Card> {
    state.metrics()?.subject.card.as_ref().filter(|_| state.is_placed())
}

/// Without a graph, the spread of the watched flow: beside the title of the finding, or in the lower border of the only pane.
fn spread(canvas: &mut Canvas, state: &State, layout: &Layout) {
    let Some(metrics) = state.metrics() else { return };
    let (x, y) = match layout.shape {
        Shape::Compact => (2, layout.finding.y - 1 - u16::try_from(layout.summaries.len()).unwrap_or(0)),
        Shape::Zoomed => (2, layout.finding.y - 1),
        Shape::Full | Shape::Stacked | Shape::Bands => (12, layout.finding.y - 1),
    };
    let room = layout.width.saturating_sub(x + 3);
    let Some(used) = flow::line(canvas, (x + 1, y, room), metrics, super::plus_minus(state)) else { return };
    canvas.glyph(x, y, Tone::Muted, ' ');
    canvas.glyph(x + 1 + used, y, Tone::Muted, ' ');
}

pub(super) fn line(canvas: &mut Canvas, y: u16, (left, right): (char, char)) {
    let width = canvas.area.width;
    canvas.glyph(0, y, Tone::Line, left);
    canvas.run(1, y, width - 2, Tone::Line, '─');
    canvas.glyph(width - 1, y, Tone::Line, right);
}

pub(super) fn sides(canvas: &mut Canvas, area: Area) {
    for y in area.y..area.y + area.height {
        canvas.glyph(area.x - 1, y, Tone::Line, '│');
        canvas.glyph(area.x + area.width, y, Tone::Line, '│');
    }
}

/// A pane's title in the line above it, which a click zooms; the focused one has a mark, and the rows in sight stand at the
/// right. Below the graph the line tells what the pin brought.
fn title(canvas: &mut Canvas, state: &State, pane: Pane, area: Area, layout: &Layout) {
    let focused = state.focus == pane;
    let (parts, range) = match pane {
        Pane::Links => {
            let height = links::table_height(state, area);
            (links::title(state, area), rows(state.links.selection.anchor(), state.links.rows().len(), height))
        }
        Pane::Cores => (cores::title(state, area.height), None),
        Pane::Threads => {
            let height = threads::table_height(state, area);
            let range = rows(state.threads.selection.anchor(), state.threads.rows().len(), height);
            (threads::title(state, area.width), range)
        }
        Pane::Test => return,
    };
    let (x, y) = (area.x, area.y - 1);
    let tone = if focused { Tone::FocusedTitle } else { Tone::Title };
    let mark = if focused { '▸' } else { ' ' };
    let mut used = canvas.left(x, y, area.width, tone, format_args!("{mark}{} ", pane.word()));
    canvas.spot(x, y, used, Action::ToggleZoom(Some(pane)));
    let mut room = area.width.saturating_sub(1);
    let is_below = layout.timeline.is_some_and(|(graph, _)| graph.y + graph.height == y);
    if let Some(card) = proven(state).filter(|_| is_below) {
        let so_far =
            if state.metrics().is_some_and(|metrics| final_in(state, metrics).is_some()) { " so far" } else { "" };
        room -= verdict(canvas, (x, y, room, used), (card, so_far));
    }
    for part in parts {
        if used + 4 + u16::try_from(cells(&part)).unwrap_or(u16::MAX - used - 4) > room {
            continue;
        }
        used += canvas.left(x + used, y, 2, Tone::Line, "──");
        used += canvas.left(x + used, y, room - used, Tone::Title, format_args!(" {part} "));
    }
    if let Some(range) = range {
        let width = u16::try_from(cells(&range)).unwrap_or(u16::MAX);
        if used + width + 2 < room {
            canvas.left(x + room - width, y, width, Tone::Title, range);
        }
    }
}

/// The verdict at the right end of a line, as much of it as fits beside what is used; returns the cells it takes.
fn verdict(canvas: &mut Canvas, (x, y, room, used): (u16, u16, u16, u16), (card, so_far): (&Card, &str)) -> u16 {
    let tone = verdict_tone(card.verdict, Tone::Title);
    let width = |text: &str| u16::try_from(cells(text)).unwrap_or(u16::MAX);
    let texts = card.headlines().map(|text| format!(" pin{so_far}: {text} "));
    let Some(text) = texts.into_iter().find(|text| used.saturating_add(width(text) + 2) <= room) else { return 0 };
    canvas.left(x + room - width(&text), y, width(&text), tone, &text);
    canvas.spot(x + room - width(&text), y, width(&text), Action::Card);
    width(&text) + 1
}

fn rows(anchor: usize, rows: usize, height: u16) -> Option<String> {
    let (first, last) = table::shown_range(anchor, rows, height)?;
    Some(format!(" rows {first}-{last} of {rows} "))
}
