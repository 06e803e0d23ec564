//! The axis of time: which instants are shown, in which columns of dots each bin stands, what happened in a cell.

use super::LOSS;
use super::scale::RateScale;
use crate::derive::Bin;
use crate::derive::jitter::DIP;
use crate::derive::ledger::BIN_NS;
use crate::derive::timeline::{LostPart, LostTime, Timeline};
use crate::state::TimeAxis;
use crate::view::Tone;

/// The rates of the bins of a column, bits/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RateSpan {
    pub low: f64,
    pub high: f64,
}

/// The time that is shown: so many cells of two columns, each beginning at a multiple of its length, so that what is over stands
/// still. The newest is at the right, unless an older time is selected that would not be seen then.
pub(super) struct Axis<'a> {
    pub timeline: &'a Timeline,
    pub cells: u16,
    pub from_ns: u64,
    /// Time in a column, ns; half a cell.
    pub column_ns: u64,
    /// Where the newest column ends, ns.
    pub newest_ns: u64,
    /// The beginning of the selected column.
    pub selected_ns: Option<u64>,
    /// One a column; none where no rate is known.
    pub rates: Vec<Option<RateSpan>>,
    /// What was lost in a cell besides, or of what its rate has in it; one a cell.
    pub lost: Vec<Option<LostPart>>,
    pub scale: RateScale,
    pub median: f64,
}

/// A smaller part of a rate is not seen in its column, and how far the rate reaches is.
const LITTLE: f64 = 0.02;

impl<'a> Axis<'a> {
    pub fn of(timeline: &'a Timeline, (cells, rows): (u16, u16), look: &TimeAxis) -> Self {
        let (column_ns, selected_ns) = (look.column_of(2 * u64::from(cells)), look.selected_ns());
        let cell_ns = 2 * column_ns;
        let newest_ns = timeline.bins.last().map_or(0, |bin| bin.to_ns).div_ceil(cell_ns) * cell_ns;
        let live_ns = newest_ns.saturating_sub(u64::from(cells) * cell_ns);
        let from_ns = selected_ns.map_or(live_ns, |at_ns| live_ns.min(at_ns / cell_ns * cell_ns));
        let mut axis = Self {
            timeline,
            cells,
            from_ns,
            column_ns,
            newest_ns,
            selected_ns,
            rates: vec![None; 2 * usize::from(cells)],
            lost: Vec::new(),
            scale: RateScale::default(),
            median: 0.0,
        };
        axis.fill(rows);
        axis
    }

    fn fill(&mut self, rows: u16) {
        let column = |begin_ns: u64| usize::try_from(begin_ns.checked_sub(self.from_ns)? / self.column_ns).ok();
        for bin in &self.timeline.bins {
            let (Some(rate), (first, end)) = (bin.bits_per_s, stands_in(bin)) else { continue };
            // One of a whole interval is as wide as that.
            let last = column(end.saturating_sub(BIN_NS));
            let Some(last) = last.filter(|_| end > first).map(|last| last.min(self.rates.len() - 1)) else { continue };
            for span in self.rates.iter_mut().take(last + 1).skip(column(first).unwrap_or(0)) {
                let known = span.unwrap_or(RateSpan { low: rate, high: rate });
                *span = Some(RateSpan { low: known.low.min(rate), high: known.high.max(rate) });
            }
        }
        let mut lows: Vec<f64> = self.rates.iter().flatten().map(|span| span.low).collect();
        lows.sort_by(f64::total_cmp);
        self.median = lows.get(lows.len() / 2).copied().unwrap_or(0.0);
        self.lost = (0..self.cells).map(|cell| self.part_lost(cell)).collect();
        let beside = |cell: usize| self.lost[cell].filter(|part| !part.within).map_or(0.0, |part| part.bits_per_s);
        let highs = self.rates.iter().enumerate().filter_map(|(at, span)| Some(span.as_ref()?.high + beside(at / 2)));
        self.scale = RateScale::of(highs.fold(0.0, f64::max), rows);
    }

    /// The mean of what was lost while something was, in a cell; none where nothing was, or it is not known how much.
    fn part_lost(&self, cell: u16) -> Option<LostPart> {
        let (begin_ns, end_ns) = (self.begin_ns(cell), self.begin_ns(cell + 1));
        let (mut bits, mut over_ns, mut within) = (0.0, 0.0, false);
        for lost in self.losses(begin_ns, end_ns) {
            let part = lost.part?;
            let here_ns = lost.to_ns.min(end_ns).saturating_sub(lost.from_ns.max(begin_ns)) as f64;
            (bits, over_ns, within) = (bits + part.bits_per_s * here_ns, over_ns + here_ns, part.within);
        }
        let at = 2 * usize::from(cell);
        let rate = self.rates[at..at + 2].iter().flatten().map(|span| span.high).fold(0.0, f64::max);
        let part = (over_ns > 0.0).then(|| LostPart { bits_per_s: bits / over_ns, within });
        part.filter(|part| part.bits_per_s >= LITTLE * rate)
    }

    /// Where what is known starts; it may be older than what is shown.
    pub fn begun_ns(&self) -> u64 {
        self.timeline.bins.first().map_or(0, |bin| bin.from_ns)
    }

    pub fn cell_ns(&self) -> u64 {
        2 * self.column_ns
    }

    /// Where the last cell ends.
    pub fn end_ns(&self) -> u64 {
        self.from_ns + u64::from(self.cells) * self.cell_ns()
    }

    pub fn cell(&self, at_ns: u64) -> Option<u16> {
        let at = u16::try_from(at_ns.checked_sub(self.from_ns)? / self.cell_ns()).ok()?;
        (at < self.cells).then_some(at)
    }

    pub fn begin_ns(&self, cell: u16) -> u64 {
        self.from_ns + u64::from(cell) * self.cell_ns()
    }

    /// The bins that stand in the column which begins at an instant.
    pub fn bins_of_column(&self, begin_ns: u64) -> impl Iterator<Item = &Bin> {
        let ends_ns = begin_ns + self.column_ns;
        let is_there = move |bin: &&Bin| {
            let (first, end) = stands_in(bin);
            first < ends_ns && end > begin_ns
        };
        self.timeline.bins.iter().filter(is_there)
    }

    /// Bins that reach into a cell; a bin of a whole interval is wider than a cell.
    fn bins(&self, cell: u16) -> impl Iterator<Item = &Bin> {
        let (begin_ns, end_ns) = (self.begin_ns(cell), self.begin_ns(cell + 1));
        let first = self.timeline.bins.partition_point(|bin| bin.to_ns <= begin_ns);
        self.timeline.bins[first..].iter().take_while(move |bin| bin.from_ns < end_ns)
    }

    /// By the farthest: to another last-level cache, node or socket, within one last-level cache, nearer, or to somewhere.
    pub fn moves(&self, cell: u16) -> Option<(Tone, char)> {
        let (mut far, mut middle, mut near, mut unknown) = (0, 0, 0, 0.0);
        for bin in self.bins(cell) {
            far += bin.moves.node + bin.moves.socket;
            middle += bin.moves.llc;
            near += bin.moves.smt + bin.moves.cluster;
            unknown += bin.unclassed;
        }
        match (far, middle, near) {
            (1.., ..) => Some((Tone::Warning, '●')),
            (_, 1.., _) => Some((Tone::Warning, '•')),
            (_, _, 1..) => Some((Tone::Warning, '·')),
            // Of a move whose instant is not known each bin of its tick has a part.
            _ => (unknown > 0.0).then_some((Tone::Muted, '·')),
        }
    }

    /// For a moment the rate was below [`DIP`] of its median: where it stays there the curve says so.
    pub fn dips(&self, cell: u16) -> Option<(Tone, char)> {
        let at = 2 * usize::from(cell);
        let low = self.rates[at..at + 2].iter().flatten().map(|span| span.low).reduce(f64::min)?;
        (low < DIP * self.median).then_some((Tone::Warning, '▾'))
    }

    /// A loss is known to have been between two samples.
    pub fn lost(&self, cell: u16) -> Option<(Tone, char)> {
        let (begin_ns, end_ns) = (self.begin_ns(cell), self.begin_ns(cell + 1));
        self.losses(begin_ns, end_ns).next().map(|_| (Tone::Bad, LOSS))
    }

    /// The losses that reach into a time.
    pub fn losses(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = &LostTime> {
        let losses = &self.timeline.losses;
        let first = losses.partition_point(|lost| lost.to_ns <= from_ns);
        losses[first..].iter().take_while(move |lost| lost.from_ns < to_ns)
    }
}

/// The time that a bin takes on the axis: bins begin by the clock of their connections, columns at multiples.
fn stands_in(bin: &Bin) -> (u64, u64) {
    (bin.from_ns.div_ceil(BIN_NS) * BIN_NS, bin.to_ns.div_ceil(BIN_NS) * BIN_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::moves::MovesByClass;

    /// One bin a number, in Gbit/s; the first begins at 10 s.
    fn timeline(rates: &[Option<f64>]) -> Timeline {
        let bin = |(n, rate): (u64, &Option<f64>)| Bin {
            from_ns: 10_000_000_000 + n * BIN_NS,
            to_ns: 10_000_000_000 + (n + 1) * BIN_NS,
            bits_per_s: rate.map(|rate| rate * 1e9),
            moves: MovesByClass::default(),
            unclassed: 0.0,
        };
        Timeline { bins: (0..).zip(rates).map(bin).collect(), ..Timeline::default() }
    }

    fn lows(axis: &Axis<'_>) -> Vec<Option<f64>> {
        axis.rates.iter().map(|span| span.map(|span| span.low / 1e9)).collect()
    }

    #[test]
    fn each_bin_has_its_column_and_unknown_has_none() {
        let timeline = timeline(&[Some(1.0), Some(2.0), None, Some(4.0), Some(0.0)]);
        let axis = Axis::of(&timeline, (4, 8), &TimeAxis::default());
        let wanted = [None, None, Some(1.0), Some(2.0), None, Some(4.0), Some(0.0), None];
        assert_eq!(lows(&axis), wanted, "the newest at the right");
        assert_eq!((axis.scale.top, axis.median), (4e9, 2e9));
        let narrow = Axis::of(&timeline, (1, 8), &TimeAxis::default());
        assert_eq!(lows(&narrow), [Some(0.0), None], "older ones are left out");
    }

    #[test]
    fn a_bin_of_a_whole_interval_is_as_wide_as_that() {
        let mut timeline = timeline(&[Some(3.0)]);
        timeline.bins[0].to_ns = timeline.bins[0].from_ns + 5 * BIN_NS;
        let axis = Axis::of(&timeline, (3, 8), &TimeAxis::default());
        assert_eq!(lows(&axis).iter().filter(|rate| **rate == Some(3.0)).count(), 5);
    }

    #[test]
    fn a_wider_column_keeps_the_lowest_and_the_highest_of_its_bins() {
        let timeline = timeline(&[Some(4.0), Some(1.0), Some(3.0), None, None, Some(2.0)]);
        let mut look = TimeAxis::default();
        look.zoom(true);
        let axis = Axis::of(&timeline, (2, 8), &look);
        let spans: Vec<_> = axis.rates.iter().map(|span| span.map(|span| (span.low / 1e9, span.high / 1e9))).collect();
        assert_eq!(spans, [Some((1.0, 4.0)), Some((3.0, 3.0)), Some((2.0, 2.0)), None], "200 ms in a column");
        look.zoom(true);
        let axis = Axis::of(&timeline, (1, 8), &look);
        assert_eq!(lows(&axis), [Some(1.0), Some(2.0)], "half a second");
    }

    #[test]
    fn a_selected_time_is_always_in_sight() {
        let timeline = timeline(&[Some(1.0); 40]);
        let mut look = TimeAxis::default();
        look.select(10_900_000_000);
        let axis = Axis::of(&timeline, (5, 8), &look);
        assert_eq!((axis.from_ns, axis.cell(10_900_000_000)), (10_800_000_000, Some(0)), "the axis goes back to it");
        look.select(13_300_000_000);
        let axis = Axis::of(&timeline, (5, 8), &look);
        assert_eq!((axis.end_ns(), axis.cell(13_300_000_000)), (14_000_000_000, Some(1)), "and no further than needed");
    }

    #[test]
    fn moves_losses_and_incidents_stand_in_the_cell_of_their_time() {
        let mut timeline = timeline(&[Some(1.0); 8]);
        timeline.bins[3].moves.node = 1;
        timeline.bins[6].unclassed = 0.2;
        let place = "qdisc fq".into();
        timeline.losses.push(LostTime {
            from_ns: 10_250_000_000,
            to_ns: 10_390_000_000,
            packets: 1.0,
            part: None,
            place,
        });
        let axis = Axis::of(&timeline, (4, 8), &TimeAxis::default());
        let mark = |mark: Option<(Tone, char)>| mark.map_or(' ', |(_, mark)| mark);
        let moves: String = (0..4).map(|cell| mark(axis.moves(cell))).collect();
        let lost: String = (0..4).map(|cell| mark(axis.lost(cell))).collect();
        assert_eq!((&*moves, &*lost), (" ● ·", " !  "));
        assert_eq!(
            [9_999, 10_000, 10_399, 10_799, 10_800].map(|ms| axis.cell(ms * 1_000_000)),
            [None, Some(0), Some(1), Some(3), None]
        );
    }

    #[test]
    fn a_moment_far_below_the_median_is_a_dip() {
        let timeline = timeline(&[1.0, 0.9, 1.0, 0.3, 1.0, 0.6, 1.0, 1.0].map(Some));
        let axis = Axis::of(&timeline, (4, 8), &TimeAxis::default());
        let dips: Vec<bool> = (0..4).map(|cell| axis.dips(cell).is_some()).collect();
        assert_eq!(dips, [false, true, false, false], "below half of it");
    }

    #[test]
    fn what_was_lost_beside_a_rate_is_on_the_scale_too() {
        let mut timeline = timeline(&[Some(1.0); 4]);
        let mut lose = |from_ms: u64, to_ms: u64, gbits: f64, within| {
            let (from_ns, to_ns) = (from_ms * 1_000_000, to_ms * 1_000_000);
            let part = Some(LostPart { bits_per_s: gbits * 1e9, within });
            timeline.losses.push(LostTime { from_ns, to_ns, packets: 1.0, part, place: "".into() });
        };
        lose(10_000, 10_100, 2.0, false);
        lose(10_100, 10_200, 1.0, false);
        let axis = Axis::of(&timeline, (2, 8), &TimeAxis::default());
        assert_eq!(axis.lost, [Some(LostPart { bits_per_s: 1.5e9, within: false }), None], "the mean of a cell");
        assert_eq!(axis.scale, RateScale::of(2.5e9, 8), "1 arrives, 1.5 beside it does not");
        timeline.losses.iter_mut().for_each(|lost| lost.part = lost.part.map(|part| LostPart { within: true, ..part }));
        let scale = Axis::of(&timeline, (2, 8), &TimeAxis::default()).scale;
        assert_eq!(scale, RateScale::of(1e9, 8), "the rate has it already");
        timeline.losses[0].part = None;
        assert_eq!(Axis::of(&timeline, (2, 8), &TimeAxis::default()).lost, [None; 2], "not known of all");
    }
}
