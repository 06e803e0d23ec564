//! What the curve is seen against: the time in which something was pinned or steered, and after a pin the rate before it.

use super::axis::Axis;
use crate::derive::timeline::IncidentKind;
use crate::state::State;

/// What is repeated of the time before a pin, ns at most.
const MOST_NS: u64 = 20_000_000_000;

/// The times in which threads were pinned, or links steered, oldest first.
fn placed(state: &State, axis: &Axis<'_>) -> Vec<(u64, u64)> {
    let now_ns = axis.newest_ns;
    let mut times: Vec<(u64, u64)> = Vec::new();
    let mut since_ns = None;
    let done = axis.timeline.incidents.iter().filter(|one| one.kind != IncidentKind::Mark);
    for incident in done {
        match incident.kind {
            IncidentKind::Pin => since_ns = since_ns.or(Some(incident.at_ns)),
            // What was pinned longer ago than the graph goes back was pinned from its start on.
            _ => times.push((since_ns.take().unwrap_or(0), incident.at_ns)),
        }
    }
    let stands_ns = || state.pinned_at_ns.filter(|_| state.is_placed());
    times.extend(since_ns.or_else(stands_ns).map(|from_ns| (from_ns, now_ns)));
    times
}

/// For each cell of the axis, whether something was pinned or steered then.
pub(super) fn placed_cells(state: &State, axis: &Axis<'_>) -> Vec<bool> {
    let placed = placed(state, axis);
    if placed.is_empty() {
        return Vec::new();
    }
    let is_in =
        |cell| placed.iter().any(|&(from_ns, to_ns)| axis.begin_ns(cell + 1) > from_ns && axis.begin_ns(cell) < to_ns);
    (0..axis.cells).map(is_in).collect()
}

/// For each cell since the last pin that stands, the rate before it, bits/s: the last seconds before it, one after the other, from the
/// pin on. Empty where nothing is pinned, or nothing is known from before.
pub(super) fn ghost(state: &State, axis: &Axis<'_>) -> Vec<Option<f64>> {
    let cell_ns = axis.cell_ns();
    let pinned_ns = placed(state, axis).last().filter(|&&(_, to_ns)| to_ns == axis.newest_ns).map(|&(at_ns, _)| at_ns);
    let first_ns = axis.timeline.bins.first().map_or(u64::MAX, |bin| bin.from_ns);
    let Some(pinned_ns) = pinned_ns else { return Vec::new() };
    let length_ns = pinned_ns.saturating_sub(first_ns).min(MOST_NS) / cell_ns * cell_ns;
    if length_ns == 0 {
        return Vec::new();
    }
    let before = |cell: u16| {
        let since_ns = axis.begin_ns(cell).checked_sub(pinned_ns).filter(|_| axis.begin_ns(cell) < axis.newest_ns)?;
        let from_ns = pinned_ns - length_ns + since_ns % length_ns;
        let first = axis.timeline.bins.partition_point(|bin| bin.to_ns <= from_ns);
        let bins = axis.timeline.bins[first..].iter().take_while(|bin| bin.from_ns < from_ns + cell_ns);
        bins.filter_map(|bin| bin.bits_per_s).reduce(f64::min)
    };
    (0..axis.cells).map(before).collect()
}
