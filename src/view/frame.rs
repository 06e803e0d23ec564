//! Borders and titles.

use super::canvas::{Area, Canvas, cells};
use super::layout::{Layout, SMALLEST, Shape};
use super::{Tone, cores, flow, links, table, threads};
use crate::action::Pane;
use crate::derive::FlowBasis;
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
pub(super) fn prepare(state: &State, flow: Option<&FlowBasis>, layout: &Layout) -> Canvas {
    let last = layout.footer.y;
    let mut canvas = Canvas::new(Area::new(0, 0, layout.width, last));
    if let Some(area) = layout.timeline {
        line(&mut canvas, area.y - 1, TOP);
        canvas.left(1, area.y - 1, 6, Tone::Title, " Test ");
        sides(&mut canvas, area);
    }
    match layout.shape {
        Shape::Full => full(&mut canvas, state, layout),
        Shape::Stacked => stacked(&mut canvas, state, layout),
        Shape::Compact => compact(&mut canvas, state, layout),
    }
    spread(&mut canvas, state, flow, layout);
    canvas
}

/// The ends of the uppermost line, and of one between two panes.
const TOP: (char, char) = ('┌', '┐');
const BETWEEN: (char, char) = ('├', '┤');

/// Those of the line above the panes.
fn top(layout: &Layout) -> (char, char) {
    if layout.timeline.is_some() { BETWEEN } else { TOP }
}

fn full(canvas: &mut Canvas, state: &State, layout: &Layout) {
    let (Some(links), Some(cores), Some(threads)) = (layout.links, layout.cores, layout.threads) else { return };
    let right = layout.width - 1;
    let split = threads.x - 1;
    line(canvas, links.y - 1, top(layout));
    sides(canvas, links);
    line(canvas, cores.y - 1, BETWEEN);
    canvas.glyph(split, cores.y - 1, Tone::Muted, '┬');
    for y in cores.y..cores.y + cores.height {
        for x in [0, split, right] {
            canvas.glyph(x, y, Tone::Muted, '│');
        }
    }
    let below = cores.y + cores.height;
    line(canvas, below, BETWEEN);
    canvas.glyph(split, below, Tone::Muted, '┴');
    title(canvas, state, Pane::Links, links);
    title(canvas, state, Pane::Cores, cores);
    title(canvas, state, Pane::Threads, threads);
    finding(canvas, layout);
}

fn stacked(canvas: &mut Canvas, state: &State, layout: &Layout) {
    let panes = [(Pane::Links, layout.links), (Pane::Cores, layout.cores), (Pane::Threads, layout.threads)];
    for (at, (pane, area)) in panes.into_iter().filter_map(|(pane, area)| Some((pane, area?))).enumerate() {
        line(canvas, area.y - 1, if at == 0 { top(layout) } else { BETWEEN });
        sides(canvas, area);
        title(canvas, state, pane, area);
    }
    line(canvas, layout.finding.y - 1, BETWEEN);
    finding(canvas, layout);
}

fn compact(canvas: &mut Canvas, state: &State, layout: &Layout) {
    let area = layout.links.or(layout.cores).or(layout.threads);
    let Some(area) = area else { return };
    line(canvas, area.y - 1, top(layout));
    sides(canvas, area);
    line(canvas, area.y + area.height, ('└', '┘'));
    title(canvas, state, state.focus, area);
    for &(pane, at) in &layout.summaries {
        super::summary::prepare(canvas, state, pane, at.y);
    }
}

/// The border of the finding; its upper line is drawn already.
fn finding(canvas: &mut Canvas, layout: &Layout) {
    let area = layout.finding;
    canvas.left(1, area.y - 1, 20, Tone::Title, " Finding ");
    sides(canvas, Area::new(1, area.y, layout.width - 2, area.height));
    line(canvas, area.y + area.height, ('└', '┘'));
}

/// The spread of the watched flow: beside the title of its graph; where there is none beside that of the finding, or in the
/// lower border of the only pane.
fn spread(canvas: &mut Canvas, state: &State, basis: Option<&FlowBasis>, layout: &Layout) {
    let Some(metrics) = state.metrics() else { return };
    let (x, y) = match (layout.timeline, layout.shape) {
        (Some(area), _) => (8, area.y - 1),
        (None, Shape::Compact) => (2, layout.finding.y - 1 - u16::try_from(layout.summaries.len()).unwrap_or(0)),
        (None, Shape::Full | Shape::Stacked) => (12, layout.finding.y - 1),
    };
    let room = layout.width.saturating_sub(x + 3);
    let used = match (&metrics.jitter, metrics.flow.bits_per_s) {
        (Some(jitter), _) => {
            let (benchmarks, datagrams) = (&metrics.benchmarks, &metrics.flow.tests);
            flow::line(
                canvas,
                (x + 1, y, room),
                flow::Flow { jitter, basis, benchmarks, datagrams, sign: super::plus_minus(state) },
            )
        }
        (None, Some(rate)) => flow::rate(canvas, (x + 1, y, room), rate),
        (None, None) => return,
    };
    canvas.glyph(x, y, Tone::Muted, ' ');
    canvas.glyph(x + 1 + used, y, Tone::Muted, ' ');
}

fn line(canvas: &mut Canvas, y: u16, (left, right): (char, char)) {
    let width = canvas.area.width;
    canvas.glyph(0, y, Tone::Muted, left);
    canvas.run(1, y, width - 2, Tone::Muted, '─');
    canvas.glyph(width - 1, y, Tone::Muted, right);
}

fn sides(canvas: &mut Canvas, area: Area) {
    for y in area.y..area.y + area.height {
        canvas.glyph(area.x - 1, y, Tone::Muted, '│');
        canvas.glyph(area.x + area.width, y, Tone::Muted, '│');
    }
}

/// A pane's title in the line above it; the focused one has a mark, and the rows in sight stand at the right.
fn title(canvas: &mut Canvas, state: &State, pane: Pane, area: Area) {
    let focused = state.focus == pane;
    let (parts, range) = match pane {
        Pane::Links => {
            let height = links::table_height(state, area);
            (links::title(state, area), rows(state.links.selection.anchor(), state.links.rows().len(), height))
        }
        Pane::Cores => (cores::title(state, area.height), None),
        Pane::Threads => (
            threads::title(state, area.width),
            rows(state.threads.selection.anchor(), state.threads.rows().len(), area.height),
        ),
    };
    let (x, y) = (area.x, area.y - 1);
    let room = area.width.saturating_sub(1);
    let tone = if focused { Tone::FocusedTitle } else { Tone::Title };
    let mark = if focused { '▸' } else { ' ' };
    let mut used = canvas.left(x, y, room, tone, format_args!("{mark}{} ", pane.word()));
    for part in parts {
        if used + 4 + u16::try_from(cells(&part)).unwrap_or(u16::MAX - used - 4) > room {
            continue;
        }
        used += canvas.left(x + used, y, 2, Tone::Muted, "──");
        used += canvas.left(x + used, y, room - used, Tone::Title, format_args!(" {part} "));
    }
    if let Some(range) = range {
        let width = u16::try_from(cells(&range)).unwrap_or(u16::MAX);
        if used + width + 2 < room {
            canvas.left(x + area.width - width - 1, y, width, Tone::Title, range);
        }
    }
}

fn rows(anchor: usize, rows: usize, height: u16) -> Option<String> {
    let (first, last) = table::shown_range(anchor, rows, height)?;
    Some(format!(" rows {first}-{last} of {rows} "))
}
