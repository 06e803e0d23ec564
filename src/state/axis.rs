//! The axis of the graph: which time on it is selected, and how much time a column of dots stands for. The selected time is an
//! instant, not a place on the screen: it stays with its bin while time goes on.

use crate::derive::Timeline;
use crate::derive::ledger::BIN_NS;
use crate::derive::timeline::IncidentKind;

/// Bins in a column of dots, two of which are a cell, from the finest axis to the one that has a minute in 60 cells.
const ZOOMS: [u64; 3] = [1, 2, 5];

/// Time that the figures beside the graph are of, ns: most of it is to be seen, so that a mean lies within its curve.
const FIGURES_NS: u64 = 30_000_000_000;
/// This part of it, in tenths: an axis that shows twice as much has half of the bins.
const MOST_OF_IT: u64 = 7;

/// Columns of dots on a screen of 80 cells.
const SMALL_COLUMNS: u64 = 142;

/// Time before a pin that is to be seen with it, ns.
const BEFORE_NS: u64 = 10_000_000_000;

/// What is chosen of the axis.
#[derive(Debug, Default)]
pub struct TimeAxis {
    selected_ns: Option<u64>,
    zoom: usize,
    /// The pin that the zoom suits, monotonic ns; a key may have chosen another zoom since.
    pinned_ns: Option<u64>,
    is_chosen: bool,
    /// Time that is to be seen at least, where no key has chosen, ns.
    wanted_ns: u64,
}

impl TimeAxis {
    /// The beginning of the selected column, monotonic ns, a multiple of its width.
    #[must_use]
    pub fn selected_ns(&self) -> Option<u64> {
        self.selected_ns
    }

    /// Time that a column of dots stands for, ns.
    #[must_use]
    pub fn column_ns(&self) -> u64 {
        // Where nobody chose, the view shows as much as it needs to: any bin can be selected.
        if self.is_chosen { ZOOMS[self.zoom] * BIN_NS } else { BIN_NS }
    }

    /// Time that a column stands for on an axis of so many columns, ns: where nobody chose, no more than what is to be seen needs.
    #[must_use]
    pub fn column_of(&self, columns: u64) -> u64 {
        if self.is_chosen {
            return self.column_ns();
        }
        let coarsest = ZOOMS[ZOOMS.len() - 1];
        self.wanted_ns.div_ceil(BIN_NS * columns.max(1)).clamp(1, coarsest) * BIN_NS
    }

    /// Selects the column that an instant is in.
    pub(crate) fn select(&mut self, at_ns: u64) {
        self.selected_ns = Some(at_ns / self.column_ns() * self.column_ns());
    }

    /// One column back; first the newest one. At the oldest it stays.
    pub(crate) fn earlier(&mut self, timeline: &Timeline) {
        let Some((oldest_ns, newest_ns)) = self.ends(timeline) else { return };
        let to_ns = self.selected_ns.map_or(newest_ns, |at_ns| at_ns.saturating_sub(self.column_ns()));
        self.selected_ns = Some(to_ns.max(oldest_ns));
    }

    /// One column forward; after the newest one nothing is selected.
    pub(crate) fn later(&mut self, timeline: &Timeline) {
        let Some((_, newest_ns)) = self.ends(timeline) else { return };
        self.selected_ns = self.selected_ns.map(|at_ns| at_ns + self.column_ns()).filter(|at_ns| *at_ns <= newest_ns);
    }

    /// Selects nothing; false where nothing was.
    pub(crate) fn release(&mut self) -> bool {
        self.selected_ns.take().is_some()
    }

    /// Shows more time, or less; false where there is no such step.
    pub(crate) fn zoom(&mut self, out: bool) -> bool {
        let to = if out { self.zoom + 1 } else { self.zoom.wrapping_sub(1) };
        if to >= ZOOMS.len() {
            return false;
        }
        (self.zoom, self.is_chosen) = (to, true);
        if let Some(at_ns) = self.selected_ns {
            self.select(at_ns);
        }
        true
    }

    /// What is no longer kept is selected no longer.
    pub(super) fn follow(&mut self, timeline: &Timeline) {
        self.suit(timeline);
        let ends = self.ends(timeline);
        self.selected_ns = self.selected_ns.filter(|at_ns| ends.is_some_and(|(oldest_ns, _)| *at_ns >= oldest_ns));
    }

    /// Shows so much time that a pin is seen with the time before it, for as long as it is kept and no key has chosen otherwise; without
    /// a pin most of the time that the figures are of.
    fn suit(&mut self, timeline: &Timeline) {
        let last = timeline.incidents.iter().rfind(|one| one.kind.is_of_threads());
        let pinned_ns = last.filter(|one| one.kind == IncidentKind::Pin).map(|one| one.at_ns);
        if pinned_ns != self.pinned_ns {
            (self.pinned_ns, self.is_chosen) = (pinned_ns, self.is_chosen && pinned_ns.is_none());
        }
        if self.is_chosen || self.selected_ns.is_some() {
            return;
        }
        let known_ns = timeline
            .bins
            .first()
            .zip(timeline.bins.last())
            .map_or(0, |(first, last)| last.to_ns.saturating_sub(first.from_ns));
        let newest_ns = timeline.bins.last().map_or(0, |bin| bin.to_ns);
        let since_ns = pinned_ns.map(|at_ns| newest_ns.saturating_sub(at_ns) + BEFORE_NS);
        // What is not kept needs no room.
        let wanted_ns = since_ns.map(|since_ns| since_ns.min(known_ns.max(BEFORE_NS)));
        self.wanted_ns = wanted_ns.unwrap_or(known_ns.min(FIGURES_NS) / 10 * MOST_OF_IT);
        // Where a key goes on from, as on 80 columns.
        let fits = |bins: &u64| bins * BIN_NS * SMALL_COLUMNS >= self.wanted_ns;
        self.zoom = ZOOMS.iter().position(fits).unwrap_or(ZOOMS.len() - 1);
    }

    /// The oldest column and the newest.
    fn ends(&self, timeline: &Timeline) -> Option<(u64, u64)> {
        let (first, last) = (timeline.bins.first()?, timeline.bins.last()?);
        // As the columns of the graph: a bin that begins between two columns stands in the later one.
        let column = |bins: u64| bins * BIN_NS / self.column_ns() * self.column_ns();
        Some((column(first.from_ns.div_ceil(BIN_NS)), column(last.to_ns.div_ceil(BIN_NS).saturating_sub(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::ledger::Bin;
    use crate::derive::moves::MovesByClass;

    /// Bins from 10 s on.
    fn timeline(bins: u64) -> Timeline {
        let bin = |n: u64| Bin {
            from_ns: 10_000_000_000 + n * BIN_NS,
            to_ns: 10_000_000_000 + (n + 1) * BIN_NS,
            bits_per_s: Some(1e9),
            moves: MovesByClass::default(),
            unclassed: 0.0,
        };
        Timeline { bins: (0..bins).map(bin).collect(), ..Timeline::default() }
    }

    fn ms(axis: &TimeAxis) -> Option<u64> {
        axis.selected_ns().map(|at_ns| at_ns / 1_000_000)
    }

    #[test]
    fn it_goes_by_bins_from_the_newest_to_the_oldest_and_back_to_none() {
        let (mut axis, timeline) = (TimeAxis::default(), timeline(3));
        axis.later(&timeline);
        assert_eq!(ms(&axis), None, "nothing is later than now");
        let back: Vec<_> = (0..4).map(|_| (axis.earlier(&timeline), ms(&axis)).1).collect();
        assert_eq!(back, [Some(10_200), Some(10_100), Some(10_000), Some(10_000)], "at the oldest it stays");
        let on: Vec<_> = (0..3).map(|_| (axis.later(&timeline), ms(&axis)).1).collect();
        assert_eq!(on, [Some(10_100), Some(10_200), None], "after the newest one it is let go");
    }

    #[test]
    fn it_keeps_its_time_through_zooming_and_goes_when_that_is_forgotten() {
        let mut axis = TimeAxis::default();
        axis.select(11_350_000_000);
        assert_eq!(ms(&axis), Some(11_300), "the bin that the instant is in");
        assert!(axis.zoom(true) && axis.zoom(true) && !axis.zoom(true), "two steps out");
        assert_eq!((ms(&axis), axis.column_ns()), (Some(11_000), 500_000_000), "the column that its bin is in");
        axis.follow(&timeline(20));
        assert_eq!(ms(&axis), Some(11_000), "it is still kept");
        let mut later = timeline(40);
        later.bins.drain(..20);
        axis.follow(&later);
        assert_eq!(ms(&axis), None, "its bins are forgotten");
        assert!(!axis.release() && axis.zoom(false) && axis.zoom(false) && !axis.zoom(false), "and in again");
    }
}
