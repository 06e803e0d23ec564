//! Times of one kind: their buckets, what came in between two readings, and the quantiles of that.

use std::collections::BTreeMap;
use vnettop_sample::{LatencyRow, bucket_ns};

/// How many times fell into each bucket, their sum and the longest; absolute, or between two readings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    sum_ns: u64,
    max_ns: u64,
    buckets: BTreeMap<u8, u64>,
}

impl Histogram {
    /// Adds a row of the kernel's.
    pub(super) fn add(&mut self, row: &LatencyRow) {
        self.sum_ns = self.sum_ns.saturating_add(row.sum_ns);
        self.max_ns = self.max_ns.max(row.max_ns);
        for &(bucket, count) in &row.buckets {
            let sum = self.buckets.entry(bucket).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// What came since an older reading; `None` where that counts more of anything, as after a new beginning. The longest is as
    /// exact as its bucket, unless it is the longest of all so far.
    pub(super) fn since(&self, older: &Self) -> Option<Self> {
        let sum_ns = self.sum_ns.checked_sub(older.sum_ns)?;
        let less = |(bucket, count): (&u8, &u64)| self.buckets.get(bucket).is_none_or(|now| now < count);
        if older.buckets.iter().any(less) {
            return None;
        }
        let more = |(&bucket, &count): (&u8, &u64)| {
            let more = count - older.buckets.get(&bucket).copied().unwrap_or(0);
            (more > 0).then_some((bucket, more))
        };
        let buckets: BTreeMap<u8, u64> = self.buckets.iter().filter_map(more).collect();
        let is_new = self.max_ns > older.max_ns;
        let last = buckets.last_key_value().map_or(0, |(&bucket, _)| bucket_ns(bucket.into()).1);
        Some(Self { sum_ns, max_ns: if is_new { self.max_ns } else { last.min(self.max_ns) }, buckets })
    }

    /// The figures; `None` where there was nothing.
    #[must_use]
    pub fn spread(&self) -> Option<Spread> {
        let count = self.count();
        (count > 0).then(|| Spread {
            count,
            mean_s: self.sum_ns as f64 / count as f64 / 1e9,
            p50_s: self.quantile_ns(0.5) / 1e9,
            p99_s: self.quantile_ns(0.99) / 1e9,
            max_s: self.max_ns as f64 / 1e9,
        })
    }

    /// Linear within its bucket; never more than the longest.
    fn quantile_ns(&self, share: f64) -> f64 {
        let rank = share * self.count() as f64;
        let mut before = 0.0;
        for (&bucket, &count) in &self.buckets {
            let here = count as f64;
            if before + here >= rank {
                let (from_ns, to_ns) = bucket_ns(bucket.into());
                let to_ns = to_ns.min(self.max_ns.max(from_ns));
                return from_ns as f64 + (to_ns - from_ns) as f64 * ((rank - before) / here).clamp(0.0, 1.0);
            }
            before += here;
        }
        self.max_ns as f64
    }

    /// By power of two: where the bucket ends, seconds, and how many; those that have some.
    #[must_use]
    pub fn powers_of_two(&self) -> Vec<(f64, u64)> {
        let mut powers: BTreeMap<u64, u64> = BTreeMap::new();
        for (&bucket, &count) in &self.buckets {
            let (from_ns, _) = bucket_ns(bucket.into());
            *powers.entry(from_ns.max(64).checked_ilog2().map_or(0, |power| 1 << (power + 1))).or_default() += count;
        }
        powers.into_iter().map(|(to_ns, count)| (to_ns as f64 / 1e9, count)).collect()
    }
}

/// How long something took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// How often.
    pub count: u64,
    /// Mean, s: exact.
    pub mean_s: f64,
    /// Median, s: within its bucket, a quarter of a power of two.
    pub p50_s: f64,
    /// 99th percentile, s.
    pub p99_s: f64,
    /// The longest, s.
    pub max_s: f64,
}

#[cfg(test)]
mod tests {
    use super::Histogram;
    use vnettop_sample::{DropFlow, LatencyOf, LatencyRow, Proto};

    fn row(max_ns: u64, buckets: &[(u8, u64)]) -> LatencyRow {
        let end = "10.0.0.1:1".parse().expect("an address");
        let of = LatencyOf::Whole { flow: DropFlow { proto: Proto::Udp, from: end, to: end } };
        let sum_ns = buckets.iter().map(|(bucket, count)| vnettop_sample::bucket_ns((*bucket).into()).0 * count).sum();
        LatencyRow { of, sum_ns, max_ns, buckets: buckets.to_vec() }
    }

    fn of(row: &LatencyRow) -> Histogram {
        let mut histogram = Histogram::default();
        histogram.add(row);
        histogram
    }

    #[test]
    fn quantiles_lie_in_their_buckets() {
        // 99 of 128 to 160 ns, one of 1,024 to 1,280 ns.
        let spread = of(&row(1_100, &[(1, 99), (13, 1)])).spread().expect("there are some");
        assert_eq!(spread.count, 100);
        assert!((128e-9..160e-9).contains(&spread.p50_s), "{spread:?}");
        assert!((128e-9..=160e-9).contains(&spread.p99_s), "{spread:?}");
        assert!((spread.max_s - 1.1e-6).abs() < 1e-12, "{spread:?}");
        assert_eq!(Histogram::default().spread(), None);
    }

    #[test]
    fn what_came_since_has_its_own_longest() {
        let (older, newer) = (of(&row(5_000, &[(1, 10), (20, 1)])), of(&row(5_000, &[(1, 30), (13, 2), (20, 1)])));
        let between = newer.since(&older).expect("nothing is less");
        let spread = between.spread().expect("there are some");
        assert_eq!(spread.count, 22);
        assert!((spread.max_s - 1.28e-6).abs() < 1e-12, "the end of its bucket: {spread:?}");
        assert_eq!(older.since(&newer), None, "a new beginning");
        assert_eq!(between.powers_of_two(), vec![(256e-9, 20), (2048e-9, 2)]);
    }
}
