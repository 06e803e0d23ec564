//! The rate of a test over the last minute as a host sees it, as lines: all of them have the same axis of time, so that they stand below
//! each other; each has a scale of its own, which is named.

use super::canvas::fitted;
use super::format::Rate;
use super::lines::Line;
use super::{Tone, strip};
use crate::derive::TestMetrics;
use crate::state::Units;

/// The time that is shown, ns.
const SHOWN_NS: u64 = 60_000_000_000;
/// Cells of the scale before the graph.
const SCALE: usize = 6;
/// Fewer rows than these tell nothing; with more of them a curve is only taller.
pub(super) const ROWS: (u16, u16) = (2, 12);

/// What a rate is told in: `bits/s`.
pub(super) fn unit(units: Units) -> &'static str {
    if units == Units::Bytes { "bytes/s" } else { "bits/s" }
}

/// So many rows of the curve, from its highest rate down to 0, each of so many cells.
pub(super) fn lines(test: &TestMetrics, units: Units, (width, rows): (usize, u16)) -> Vec<Line> {
    let columns = columns(test, width.saturating_sub(SCALE + 1));
    let most = columns.iter().flatten().copied().fold(0.0, f64::max);
    let line = |row: u16| {
        let label = match row {
            0 => Rate((most > 0.0).then_some(most), units).to_string(),
            row if row + 1 == rows => "0".to_owned(),
            _ => String::new(),
        };
        // Rows below this one.
        let below = f64::from(rows - 1 - row);
        let cell = |rate: &Option<f64>| match rate.filter(|rate| *rate > 0.0) {
            Some(rate) => match rate / most * f64::from(rows) - below {
                1.0.. => strip::block(1.0),
                part if part > 0.0 => strip::block(part),
                _ => ' ',
            },
            None => ' ',
        };
        vec![(Tone::Muted, format!("{label:>SCALE$} ")), (Tone::Accent, columns.iter().map(cell).collect())]
    };
    (0..rows).map(line).collect()
}

/// What stands above it: whose it is, in what, and over which time.
pub(super) fn head(name: &str, units: Units, width: usize) -> (Tone, String) {
    (Tone::Header, fitted(&format!("RATE {name}  {}, last {} s", unit(units), SHOWN_NS / 1_000_000_000), width))
}

/// The mean rate of each column, oldest first; `None` where nothing is known.
fn columns(test: &TestMetrics, columns: usize) -> Vec<Option<f64>> {
    let to_ns = test.machine.at_ns;
    let column_ns = (SHOWN_NS / columns.max(1) as u64).max(1);
    let mut sums = vec![(0.0, 0.0); columns];
    for bin in &test.timeline.bins {
        let Some(rate) = bin.bits_per_s else { continue };
        let ago_ns = to_ns.saturating_sub(bin.from_ns + bin.length_ns() / 2);
        // A bin that is longer than a column fills all of those that it covers.
        let reach = usize::try_from(bin.length_ns() / column_ns).unwrap_or(0) / 2;
        let Some(at) = usize::try_from(ago_ns / column_ns).ok().and_then(|ago| columns.checked_sub(ago + 1)) else {
            continue;
        };
        for (sum, weight) in &mut sums[at.saturating_sub(reach)..=(at + reach).min(columns - 1)] {
            *sum += rate * bin.length_s();
            *weight += bin.length_s();
        }
    }
    sums.into_iter().map(|(sum, weight)| (weight > 0.0).then(|| sum / weight)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::Bin;
    use crate::derive::moves::MovesByClass;
    use crate::derive::timeline::Timeline;
    use crate::derive::{MachineMetrics, TestMetrics};
    use std::sync::Arc;

    #[test]
    fn a_curve_has_its_scale_its_gaps_and_the_newest_bin_last() {
        const SECOND: u64 = 1_000_000_000;
        let bin = |at: u64, gbits: f64| Bin {
            from_ns: at * SECOND,
            to_ns: (at + 1) * SECOND,
            bits_per_s: Some(gbits * 1e9),
            moves: MovesByClass::default(),
            unclassed: 0.0,
        };
        let bins = (90..100).map(|at| bin(at, if at == 99 { 10.0 } else { 5.0 })).collect();
        let machine = MachineMetrics { at_ns: 100 * SECOND, ..MachineMetrics::default() };
        let timeline = Timeline { bins, ..Timeline::default() };
        let test = TestMetrics { machine: Arc::new(machine), timeline: Arc::new(timeline), ..TestMetrics::default() };
        let rows = lines(&test, Units::Bits, (67, 2));
        let shown: Vec<String> =
            rows.iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect::<String>()).collect();
        assert_eq!(shown[0], format!("{:>6} {}{}█", "10.0G", " ".repeat(50), " ".repeat(9)));
        assert_eq!(shown[1], format!("{:>6} {}{}", "0", " ".repeat(50), "█".repeat(10)));
        assert_eq!(lines(&TestMetrics::default(), Units::Bits, (20, 3)).len(), 3, "nothing is known: an empty one");
    }
}
