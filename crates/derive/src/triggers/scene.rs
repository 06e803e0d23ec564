//! The figures of a test that a trigger is judged by, as of one sample and as of the one before.

use crate::TestMetrics;
use crate::ledger::Bin;
use crate::limit::{Limit, LimitKind};
use std::collections::VecDeque;

/// Losses and migrations are counted over this time, ns.
const SECOND_NS: u64 = 1_000_000_000;
/// The mean rate of at least so long shows a dip, ns: two bins.
const DIP_NS: u64 = 180_000_000;
/// Bins that a median needs: three seconds, so that the start of a test is no dip of it.
const LEAST_BINS: usize = 30;

/// One sample.
#[derive(Debug, Clone, Default)]
pub(super) struct TriggerScene {
    /// When it was taken, monotonic ns.
    pub now_ns: u64,
    /// The bins of the last minute whose rates are known; those from `judged_ns` on are new.
    pub bins: Vec<Bin>,
    /// Where the new ones begin, monotonic ns.
    pub judged_ns: u64,
    /// Packets lost in the second up to the sample before, and up to this one.
    pub lost: [f64; 2],
    /// The same of migrations of its threads.
    pub migrations: [f64; 2],
    /// The longest p99 of a second that is known, s: before, and now; 0 where it is not measured.
    pub p99_s: [f64; 2],
    /// How long the limit before has held, where this sample has another one, s.
    pub held_s: Option<f64>,
}

impl TriggerScene {
    /// When a dip began that a new bin shows: the mean of [`DIP_NS`] is below this share of the median, and was not one bin before. A
    /// mean, because a bin is made of the samples on both of its sides: a stop of 0.3 s may leave no two bins in a row that are low.
    pub fn dip(&self, share: f64) -> Option<u64> {
        if self.bins.len() < LEAST_BINS {
            return None;
        }
        let mut rates: Vec<f64> = self.bins.iter().filter_map(|bin| bin.bits_per_s).collect();
        let middle = rates.len() / 2;
        let median = *rates.select_nth_unstable_by(middle, f64::total_cmp).1;
        let is_low =
            |last: usize| newest(&self.bins[..=last]).is_some_and(|bins| Bin::mean(bins) < Some(share * median));
        let first_new = self.bins.partition_point(|bin| bin.from_ns < self.judged_ns);
        let last = (first_new..self.bins.len()).find(|&last| is_low(last) && !(last > 0 && is_low(last - 1)))?;
        // Its first bin may have been as usual for most of its time.
        let begins = |bin: &&Bin| bin.bits_per_s < Some(f64::midpoint(share, 1.0) * median);
        newest(&self.bins[..=last])?.iter().find(begins).map(|bin| bin.from_ns)
    }
}

/// The last of these bins that lie beside each other and take [`DIP_NS`]; none where one is missing between them.
fn newest(bins: &[Bin]) -> Option<&[Bin]> {
    let to_ns = bins.last()?.to_ns;
    let from = bins.partition_point(|bin| bin.from_ns.saturating_add(DIP_NS) <= to_ns).checked_sub(1)?;
    let beside = bins[from..].windows(2).all(|two| two[0].to_ns == two[1].from_ns);
    beside.then_some(&bins[from..])
}

/// What is remembered of a test from sample to sample.
#[derive(Debug, Clone, Default)]
pub(super) struct TriggerTrack {
    judged_ns: u64,
    lost: LastSecond,
    migrations: LastSecond,
    p99_s: f64,
    /// The second that it is of, monotonic ns.
    second_ns: u64,
    limit: Option<(LimitKind, u64)>,
}

impl TriggerTrack {
    pub fn observe(&mut self, test: &TestMetrics, limit: Option<&Limit>) -> TriggerScene {
        let now_ns = test.machine.at_ns;
        let bins: Vec<Bin> = test.timeline.bins.iter().filter(|bin| bin.bits_per_s.is_some()).copied().collect();
        let newest_ns = bins.last().map_or(self.judged_ns, |bin| bin.to_ns);
        let moved = test.threads.iter().filter_map(|thread| thread.moves_per_s).sum::<f64>();
        TriggerScene {
            now_ns,
            judged_ns: std::mem::replace(&mut self.judged_ns, newest_ns),
            bins,
            lost: self.lost.add(now_ns, test.losses.packets()),
            migrations: self.migrations.add(now_ns, moved * test.machine.elapsed_s.unwrap_or(0.0)),
            p99_s: self.latency(test),
            held_s: self.limit(now_ns, limit),
        }
    }

    fn latency(&mut self, test: &TestMetrics) -> [f64; 2] {
        let newest = test.latency.as_ref().and_then(|latency| latency.seconds.back().copied());
        let Some(second) = newest.filter(|second| second.at_ns > self.second_ns) else { return [self.p99_s; 2] };
        self.second_ns = second.at_ns;
        let p99_s = second.whole.map(|whole| whole.p99_s).into_iter().chain(second.slowest_s).fold(0.0, f64::max);
        [std::mem::replace(&mut self.p99_s, p99_s), p99_s]
    }

    fn limit(&mut self, now_ns: u64, limit: Option<&Limit>) -> Option<f64> {
        // A test that is not judged for a moment has no other limit.
        let kind = limit?.kind;
        match self.limit {
            Some((before, _)) if before == kind => None,
            Some((_, since_ns)) => {
                self.limit = Some((kind, now_ns));
                Some(now_ns.saturating_sub(since_ns) as f64 / 1e9)
            }
            None => {
                self.limit = Some((kind, now_ns));
                None
            }
        }
    }
}

/// How many within the last second.
#[derive(Debug, Clone, Default)]
struct LastSecond {
    counts: VecDeque<(u64, f64)>,
    sum: f64,
}

impl LastSecond {
    /// Before this sample, and with it.
    fn add(&mut self, now_ns: u64, count: f64) -> [f64; 2] {
        let before = self.sum;
        self.counts.push_back((now_ns, count));
        while self.counts.front().is_some_and(|(at_ns, _)| at_ns.saturating_add(SECOND_NS) <= now_ns) {
            self.counts.pop_front();
        }
        self.sum = self.counts.iter().map(|(_, count)| count).sum();
        [before, self.sum]
    }
}
