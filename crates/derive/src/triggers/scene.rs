//! The figures of a test that a trigger is judged by, as of one sample and as of the one before.

use crate::TestMetrics;
use crate::ledger::Bin;
use crate::limit::{Limit, LimitKind};
use std::collections::VecDeque;

/// Losses and migrations are counted over this time, ns.
const SECOND_NS: u64 = 1_000_000_000;
/// A dip is at least so long, ns: two bins, of which one may be cut by its start and one by its end.
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
    /// When a dip began that is long enough with a new bin: a time in which each bin is below this share of the median.
    pub fn dip(&self, share: f64) -> Option<u64> {
        if self.bins.len() < LEAST_BINS {
            return None;
        }
        let mut rates: Vec<f64> = self.bins.iter().filter_map(|bin| bin.bits_per_s).collect();
        let middle = rates.len() / 2;
        let median = *rates.select_nth_unstable_by(middle, f64::total_cmp).1;
        let (mut since_ns, mut ended_ns) = (None, 0);
        for bin in &self.bins {
            let is_low = bin.bits_per_s.is_some_and(|rate| rate < share * median);
            // Bins between which one is unknown are not neighbours.
            let begins_ns = since_ns.filter(|_| ended_ns == bin.from_ns).unwrap_or(bin.from_ns);
            let was_ns = if ended_ns == bin.from_ns { ended_ns.saturating_sub(begins_ns) } else { 0 };
            (since_ns, ended_ns) = (is_low.then_some(begins_ns), bin.to_ns);
            let is_ns = bin.to_ns.saturating_sub(begins_ns);
            if is_low && bin.from_ns >= self.judged_ns && is_ns >= DIP_NS && was_ns < DIP_NS {
                return Some(begins_ns);
            }
        }
        None
    }
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
