//! The cores pane: how busy each core is, and how much of that is softirq time. Bars while every core has room for one, a heat map by node when not, and the
//! details of one core below.

use super::canvas::{Area, Canvas};
use super::{Tone, bars, busy_cores, core_details, map};
use crate::derive::Metrics;
use crate::sample::{CoreSet, Word};
use crate::state::{CoreSort, State};

/// Up to this many cores the pane asks for a bar for each, one below the other.
const FEW: usize = 16;
/// A map narrower than this leaves its details no room.
const LEAST_FOR_MAP: u16 = 48;
/// Rows kept for the details.
const DETAIL_ROWS: u16 = 3;
/// A pane below so many rows keeps fewer.
const LOW: u16 = 7;
/// In so many rows, beside a test, there is no room for a map with all of that.
const FEW_ROWS: u16 = 3;

/// What the pane shows and how, as its title.
pub(super) fn title(state: &State, height: u16) -> Vec<String> {
    let list = &state.cores;
    let exact = state.metrics().is_some_and(|metrics| metrics.machine.times_softirqs());
    let softirq = if exact { "softirq measured" } else { "softirq sampled" };
    let mut parts = vec!["busy".to_owned(), softirq.to_owned()];
    let by_node = state.metrics().is_some_and(|metrics| {
        let nodes = metrics.machine.facts.topology.nodes;
        nodes > 1 && metrics.machine.cores.len() > FEW && nodes + u32::from(DETAIL_ROWS) <= u32::from(height)
    });
    if list.chosen.sort != CoreSort::Number || list.chosen.reversed {
        parts.push(format!("by {}{}", list.chosen.sort.word(), if list.chosen.reversed { ", reversed" } else { "" }));
    } else if by_node {
        parts.push("by node".to_owned());
    }
    parts
}

/// Rows that would show every core and some details.
pub(super) fn wanted_rows(state: &State, width: u16) -> u16 {
    let Some(metrics) = state.metrics() else { return DETAIL_ROWS };
    let rows = if metrics.machine.cores.len() <= FEW {
        u16::try_from(metrics.machine.cores.len()).unwrap_or(u16::MAX)
    } else {
        map::Map::of(metrics, width, u16::MAX).rows()
    };
    rows.saturating_add(DETAIL_ROWS + 1)
}

/// Columns that would show every core well.
pub(super) fn wanted_width(state: &State, width: u16, most: u16) -> u16 {
    match state.metrics() {
        Some(metrics) if metrics.machine.cores.len() > FEW => map::wanted_width(metrics, most).clamp(LEAST_FOR_MAP, 80),
        _ => (width * 3 / 10).clamp(36, 60),
    }
}

/// Every core, and the one looked at.
pub(super) fn prepare(state: &State, area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    let Some(metrics) = state.metrics().filter(|metrics| !metrics.machine.cores.is_empty()) else {
        let why = if state.metrics().is_some() { "no core is known" } else { "" };
        canvas.left(1, 0, area.width, Tone::Muted, why);
        return canvas;
    };
    let room = area.height.saturating_sub(if area.height < LOW { 2 } else { DETAIL_ROWS });
    let watched = watched(metrics);
    let Some(columns) = bars::columns(metrics.machine.cores.len(), area.width, room) else {
        let (used, has_t) = as_map(&mut canvas, state, metrics, &watched, room);
        core_details::prepare(&mut canvas, state, metrics, (&watched, has_t), used);
        return canvas;
    };
    let mut used = bars::prepare(&mut canvas, state, metrics, &watched, (0, columns), state.cores.rows());
    // In few rows the glyphs are worth more than the last of the details.
    let spare = if area.height <= FEW_ROWS { 1 } else { DETAIL_ROWS };
    if area.height - used > spare {
        bars::legend(&mut canvas, used);
        used += 1;
    }
    core_details::prepare(&mut canvas, state, metrics, (&watched, true), used);
    canvas
}

/// In few rows the cores that matter in words, then all as a map. With more the map, its legend, and bars of the loudest cores where there
/// is room for them, else these in words. Returns the rows used, and whether cores of watched threads have their mark.
fn as_map(canvas: &mut Canvas, state: &State, metrics: &Metrics, watched: &CoreSet, room: u16) -> (u16, bool) {
    let height = canvas.area.height;
    if height <= FEW_ROWS {
        let used = busy_cores::prepare(canvas, metrics, (0, 1));
        let map = map::Map::of(metrics, canvas.area.width, 1);
        let rows = if height > used { map.prepare(canvas, state, metrics, watched, used) } else { 0 };
        return (used + rows, false);
    }
    let map = map::Map::of(metrics, canvas.area.width, room);
    let mut used = map.prepare(canvas, state, metrics, watched, 0);
    if height - used > DETAIL_ROWS || (map.group() > 1 && height - used > 1) {
        map::legend(canvas, used, map.group());
        used += 1;
    }
    let spare = (height - used).saturating_sub(DETAIL_ROWS + 3);
    let loudest = loudest(metrics, usize::from(spare.saturating_sub(1)).min(FEW));
    if !loudest.is_empty() {
        used += bars::prepare(canvas, state, metrics, watched, (used, 1), &loudest);
        bars::legend(canvas, used);
        return (used + 1, true);
    }
    // In a low pane they stand instead of the details, unless one core was chosen.
    let rows = match (height < LOW, state.cores.selection.id()) {
        (true, None) => height - used,
        (true, _) => 0,
        _ => (height - used).saturating_sub(DETAIL_ROWS).min(2),
    };
    used += busy_cores::prepare(canvas, metrics, (used, rows));
    (used, map.has_flags())
}

/// The busiest cores: the bars that the map has no room for.
fn loudest(metrics: &Metrics, count: usize) -> Vec<usize> {
    let busy = |index: usize| metrics.machine.cores[index].shares().map_or(-1.0, |shares| shares.busy());
    let mut order: Vec<usize> = (0..metrics.machine.cores.len()).filter(|&index| busy(index) > 0.05).collect();
    order.sort_by(|&a, &b| busy(b).total_cmp(&busy(a)));
    order.truncate(count);
    order
}

/// The cores that busy watched threads are on.
fn watched(metrics: &Metrics) -> CoreSet {
    let busy = metrics.threads.iter().filter(|thread| thread.cpu.is_none_or(|cpu| cpu >= 0.01));
    busy.map(|thread| thread.sample.core).collect()
}
