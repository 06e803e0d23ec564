//! What the curve is seen against: the time in which something was pinned or steered, and after a pin the rate before it.

use super::axis::Axis;
use crate::derive::Bin;
use crate::derive::timeline::IncidentKind;
use crate::state::State;
use crate::view::flow;

/// What the mean before a pin is of, ns at most.
const MOST_NS: u64 = 20_000_000_000;

/// A lower graph has no row for the mean of what it shows.
const LEAST_FOR_MEAN: usize = 6;

/// The times in which threads were pinned, or links steered, oldest first.
fn placed(state: &State, axis: &Axis<'_>) -> Vec<(u64, u64)> {
    let now_ns = axis.newest_ns;
    let mut times: Vec<(u64, u64)> = Vec::new();
    let mut since_ns = None;
    let done = axis.timeline.incidents.iter().filter(|one| one.kind.is_of_threads());
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

/// A line through the graph: the rate of it, bits/s, and the cell from which on it is drawn.
pub(super) struct MeanLine {
    pub word: &'static str,
    pub bits_per_s: f64,
    pub from: usize,
}

/// What a rate is held against: after a pin the mean before it, else the mean of one that is unsteady, which no column of it may be at.
pub(super) fn mean_line(state: &State, axis: &Axis<'_>, rows: usize) -> Option<MeanLine> {
    let before = mean_before(state, axis).map(|(bits_per_s, from)| MeanLine { word: "before", bits_per_s, from });
    before.or_else(|| {
        let subject = &state.metrics()?.subject;
        let jitter = subject.jitter.filter(|jitter| jitter.cv.is_some_and(|cv| cv >= flow::SWINGS))?;
        let from = axis.cell(axis.newest_ns.saturating_sub(nanoseconds(jitter.window_s))).map_or(0, usize::from);
        (rows >= LEAST_FOR_MEAN && !flow::has_outliers(subject)).then_some(MeanLine {
            word: "mean",
            bits_per_s: jitter.mean,
            from,
        })
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some seconds")]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// The mean rate before the last pin that stands, bits/s, as its card has it, else of the last seconds before it; and the cell from
/// which on it is pinned. `None` where nothing is pinned, or nothing is known from before.
fn mean_before(state: &State, axis: &Axis<'_>) -> Option<(f64, usize)> {
    let &(pinned_ns, _) = placed(state, axis).last().filter(|&&(_, to_ns)| to_ns == axis.newest_ns)?;
    let card = state.metrics().and_then(|metrics| metrics.subject.card.as_ref());
    let mean = card.map(|card| card.before.jitter.mean).or_else(|| {
        let before = |bin: &&Bin| bin.to_ns <= pinned_ns && bin.to_ns.saturating_add(MOST_NS) > pinned_ns;
        Bin::mean(axis.timeline.bins.iter().filter(before))
    })?;
    let from = axis.cell(pinned_ns).map_or(0, usize::from);
    Some((mean, from))
}
