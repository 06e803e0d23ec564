//! How long packets and threads of tests waited since the start, by stage, in buckets that stay.

use crate::latency::{Histogram, Stage, StageKey, TestLatency};
use std::collections::BTreeMap;
use vnettop_sample::Word;

/// Where the buckets end, ns: every second power of two from 1 us to 4 s.
pub const LATENCY_BOUNDS_NS: [u64; 12] =
    [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30, 1 << 32];

/// Times of one stage; those of several hops, qdiscs, cores or threads are together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LatencyTotal {
    /// Their sum, s.
    pub sum_s: f64,
    /// How many fell into each bucket: the last is beyond all bounds.
    pub buckets: [u64; LATENCY_BOUNDS_NS.len() + 1],
}

/// By the word of the stage.
pub type LatencyTotals = BTreeMap<&'static str, LatencyTotal>;

impl LatencyTotal {
    fn of(times: &Histogram) -> Self {
        let mut total = Self { sum_s: times.sum_s(), ..Self::default() };
        for (to_s, count) in times.powers_of_two() {
            let at = LATENCY_BOUNDS_NS.iter().position(|bound| to_s <= *bound as f64 / 1e9);
            total.buckets[at.unwrap_or(LATENCY_BOUNDS_NS.len())] += count;
        }
        total
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// What came since; all of it where anything is less, as after a new beginning.
    fn since(&self, older: &Self) -> Self {
        let is_anew = self.sum_s < older.sum_s || self.buckets.iter().zip(&older.buckets).any(|(now, old)| now < old);
        if is_anew {
            return *self;
        }
        let mut since = Self { sum_s: self.sum_s - older.sum_s, ..*self };
        since.buckets.iter_mut().zip(older.buckets).for_each(|(now, old)| *now -= old);
        since
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.sum_s += more.sum_s;
        self.buckets.iter_mut().zip(more.buckets).for_each(|(sum, more)| *sum += more);
    }
}

/// Stages that wait, of the data: gaps are no waits.
fn is_counted(key: &StageKey) -> bool {
    !key.is_back && !key.is_gap() && key.stage != Stage::Alike
}

/// What a test's stages had counted last.
#[derive(Debug, Clone, Default)]
pub(super) struct LatencySteps {
    last: BTreeMap<StageKey, LatencyTotal>,
}

impl LatencySteps {
    /// Adds what came since.
    pub fn advance(&mut self, latency: &TestLatency, to: &mut LatencyTotals) {
        for stage in latency.whole.iter().chain(&latency.stages).filter(|stage| is_counted(&stage.key)) {
            let now = LatencyTotal::of(&stage.so_far);
            let last = self.last.insert(stage.key, now).unwrap_or_default();
            to.entry(stage.key.stage.word()).or_default().add(&now.since(&last));
        }
    }
}
