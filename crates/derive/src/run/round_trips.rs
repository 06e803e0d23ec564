//! How long answers took on the connections that carried the benchmark's data, as TCP of their senders measured it
//! (`tcp_info`): what a run can tell of that without sending anything of its own.

use crate::Metrics;
use crate::experiment::{Difference, Pair, QuantileChange};
use crate::flow::Connection;
use crate::jitter::percentile;
use crate::ledger::Bin;

/// What one median is of: neighbouring readings of a smoothed figure resemble each other.
const PIECE_NS: u64 = 1_000_000_000;

/// Round trips of the connections that carried data, while nothing was pinned by vnettop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataRoundTrips {
    /// The most connections that were read at a time.
    pub connections: usize,
    /// Ticks in which they were.
    pub readings: usize,
    /// `tcpi_min_rtt` (Linux 4.6), the least of all: about that of the idle path, us.
    pub least_us: Option<u32>,
    /// Median of the ticks, us: of each the median of the connections' `tcpi_rtt`, which TCP smooths.
    pub p50_us: f64,
    /// 99th percentile of the ticks, us.
    pub p99_us: f64,
    /// Mean of the seconds' medians with its interval, us; none of fewer than two seconds.
    pub interval: Option<Difference>,
    /// The medians of the phases with pins against those without, where they were compared.
    pub change: Option<QuantileChange>,
}

/// One tick: the median over the connections that carried data.
#[derive(Debug, Clone, Copy)]
struct TripReading {
    at_ns: u64,
    us: f64,
}

/// Every tick of a run so far, 16 bytes each.
#[derive(Debug, Default)]
pub(super) struct TripReadings {
    readings: Vec<TripReading>,
    least_us: Option<u32>,
    connections: usize,
}

impl TripReadings {
    /// Takes a tick in which the command runs.
    pub(super) fn observe(&mut self, metrics: &Metrics) {
        let carries = |one: &&Connection| one.carries && one.bits_per_s.is_some_and(|rate| rate > 0.0);
        let tcp = || metrics.subject.flow.connections.iter().filter(carries).filter_map(Connection::tcp);
        let mut read: Vec<f64> = tcp().filter_map(|tcp| tcp.rtt_us).map(f64::from).collect();
        let Some(us) = median(&mut read) else { return };
        self.readings.push(TripReading { at_ns: metrics.machine.at_ns, us });
        self.connections = self.connections.max(read.len());
        self.least_us = tcp().filter_map(|tcp| tcp.min_rtt_us).chain(self.least_us).min();
    }

    /// The figures of the time of these bins; none where no sender of a connection was watched then.
    pub(super) fn figures(&self, unpinned: &[Bin], pairs: &[Pair]) -> Option<DataRoundTrips> {
        let mut all = self.within(unpinned);
        let p50_us = median(&mut all)?;
        let sorted: Vec<(f64, u64)> = all.iter().map(|us| (*us, 1)).collect();
        Some(DataRoundTrips {
            connections: self.connections,
            readings: all.len(),
            least_us: self.least_us,
            p50_us,
            p99_us: percentile(&sorted, 0.99),
            interval: Difference::of_mean(&self.seconds(unpinned)),
            change: self.change(pairs),
        })
    }

    fn change(&self, pairs: &[Pair]) -> Option<QuantileChange> {
        let median_s = |bins: &[Bin]| Some(median(&mut self.within(bins))? / 1e6);
        let both = pairs.iter().filter_map(|[unpinned, pinned]| Some([median_s(pinned)?, median_s(unpinned)?]));
        QuantileChange::of(&both.collect::<Vec<_>>())
    }

    /// What was read while these bins lasted.
    fn within(&self, bins: &[Bin]) -> Vec<f64> {
        let (Some(first), Some(last)) = (bins.first(), bins.last()) else { return Vec::new() };
        // Bins and readings are in the order of time.
        let from = self.readings.partition_point(|reading| reading.at_ns <= first.from_ns);
        let to = self.readings.partition_point(|reading| reading.at_ns <= last.to_ns);
        let mut bins = bins.iter().peekable();
        let is_in = |reading: &&TripReading| {
            while bins.next_if(|bin| bin.to_ns < reading.at_ns).is_some() {}
            bins.peek().is_some_and(|bin| bin.from_ns < reading.at_ns)
        };
        self.readings[from..to].iter().filter(is_in).map(|reading| reading.us).collect()
    }

    /// The median of each second of these bins.
    fn seconds(&self, bins: &[Bin]) -> Vec<f64> {
        let mut medians = Vec::new();
        let mut rest = bins;
        while let Some(first) = rest.first() {
            let end = rest.partition_point(|bin| bin.from_ns < first.from_ns.saturating_add(PIECE_NS));
            let (piece, after) = rest.split_at(end.max(1));
            medians.extend(median(&mut self.within(piece)));
            rest = after;
        }
        medians
    }
}

/// The median, which puts them in order; `None` of nothing.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let sorted: Vec<(f64, u64)> = values.iter().map(|value| (*value, 1)).collect();
    (!sorted.is_empty()).then(|| percentile(&sorted, 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::BIN_NS;

    fn bins(from: u64, to: u64) -> Vec<Bin> {
        let bin = |nth: u64| Bin { from_ns: nth * BIN_NS, to_ns: (nth + 1) * BIN_NS, ..Bin::default() };
        (from..to).map(bin).collect()
    }

    /// A reading at the end of each bin.
    fn readings(us: impl Iterator<Item = f64>) -> TripReadings {
        let reading = |(nth, us)| TripReading { at_ns: (nth as u64 + 1) * BIN_NS, us };
        let readings = us.enumerate().map(reading).collect();
        TripReadings { readings, least_us: Some(40), connections: 2 }
    }

    #[test]
    fn quantiles_are_of_the_time_that_counts() {
        // A second of settling, then 4 s that alternate, and a stall as long as one reading.
        let mut us: Vec<f64> = (0..50).map(|nth| if nth < 10 { 9e6 } else { 100.0 + f64::from(nth % 2) }).collect();
        us[49] = 5000.0;
        let trips = readings(us.into_iter()).figures(&bins(10, 50), &[]).expect("read");
        assert_eq!((trips.readings, trips.p50_us, trips.least_us), (40, 100.5, Some(40)), "{trips:?}");
        assert!(trips.p99_us > 2000.0, "the stall is in the 99th percentile: {trips:?}");
        let interval = trips.interval.expect("four seconds");
        assert_eq!(
            (interval.estimate, trips.change),
            (100.5, None),
            "and not in the medians of the seconds: {trips:?}"
        );
        assert_eq!(readings([7.0].into_iter()).figures(&bins(20, 30), &[]), None, "of no time nothing is known");
    }

    #[test]
    fn pins_are_compared_phase_by_phase() {
        let read = readings((0..80).map(|nth| if nth / 10 % 2 == 0 { 300.0 + f64::from(nth / 20) } else { 100.0 }));
        let pairs: Vec<Pair> =
            (0..4).map(|nth| [bins(nth * 20, nth * 20 + 10), bins(nth * 20 + 10, nth * 20 + 20)]).collect();
        let change = read.figures(&bins(0, 80), &pairs).and_then(|trips| trips.change).expect("compared");
        assert!(
            (change.before_s * 1e6 - 301.5).abs() < 0.1 && (change.after_s * 1e6 - 100.0).abs() < 0.1,
            "{change:?}"
        );
        let of = change.change.expect("four pairs");
        assert!(of.from < of.estimate && of.to < 0.0, "surely shorter: {of:?}");
    }
}
