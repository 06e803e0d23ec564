//! Times of one kind: their buckets, what came in between two readings, and the quantiles of that.

use std::collections::BTreeMap;
use vnettop_sample::{LatencyRow, bucket_ns};

/// How many times fell into each bucket, their sum, and the longest; absolute, or between two readings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    max_ns: u64,
    buckets: BTreeMap<u8, Bucket>,
}

/// What fell into a bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Bucket {
    count: u64,
    sum_ns: u64,
}

impl Bucket {
    /// Where its times are, ns: as far to either side of their mean as its nearer end is. Times that are all alike are told as
    /// they are, wherever its ends lie.
    fn spread_ns(self, bucket: u8) -> (f64, f64) {
        let (from_ns, to_ns) = bucket_ns(bucket.into());
        let mean = self.sum_ns as f64 / self.count.max(1) as f64;
        let half = (mean - from_ns as f64).min(to_ns as f64 - mean).max(0.0);
        (mean - half, mean + half)
    }
}

impl Histogram {
    /// Adds a row of the kernel's.
    pub(super) fn add(&mut self, row: &LatencyRow) {
        self.max_ns = self.max_ns.max(row.max_ns);
        for &(bucket, count, sum_ns) in &row.buckets {
            let here = self.buckets.entry(bucket).or_default();
            here.count = here.count.saturating_add(count);
            here.sum_ns = here.sum_ns.saturating_add(sum_ns);
        }
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.values().fold(0, |sum, here| sum.saturating_add(here.count))
    }

    /// Their sum, s.
    #[must_use]
    pub fn sum_s(&self) -> f64 {
        self.buckets.values().map(|here| here.sum_ns as f64).sum::<f64>() / 1e9
    }

    /// Sum of the squares, s²: how much whoever comes at any time has to wait.
    pub(super) fn squares(&self) -> f64 {
        let square = |here: &Bucket| here.sum_ns as f64 * here.sum_ns as f64 / here.count.max(1) as f64;
        self.buckets.values().map(square).sum::<f64>() / 1e18
    }

    /// What came since an older reading; `None` where that counts more of anything, as after a new beginning. The longest is as
    /// exact as its bucket, unless it is the longest of all so far.
    pub(super) fn since(&self, older: &Self) -> Option<Self> {
        let is_less = |(bucket, older): (&u8, &Bucket)| {
            self.buckets.get(bucket).is_none_or(|now| now.count < older.count || now.sum_ns < older.sum_ns)
        };
        if older.buckets.iter().any(is_less) {
            return None;
        }
        let more = |(&bucket, now): (&u8, &Bucket)| {
            let before = older.buckets.get(&bucket).copied().unwrap_or_default();
            let more = Bucket { count: now.count - before.count, sum_ns: now.sum_ns - before.sum_ns };
            (more.count > 0).then_some((bucket, more))
        };
        let buckets: BTreeMap<u8, Bucket> = self.buckets.iter().filter_map(more).collect();
        let is_new = self.max_ns > older.max_ns;
        let last = buckets.last_key_value().map_or(0, |(&bucket, here)| {
            // One alone is its own sum.
            if here.count == 1 { here.sum_ns } else { bucket_ns(bucket.into()).1 }
        });
        Some(Self { max_ns: if is_new { self.max_ns } else { last.min(self.max_ns) }, buckets })
    }

    /// The figures; `None` where there was nothing.
    #[must_use]
    pub fn spread(&self) -> Option<Spread> {
        let count = self.count();
        (count > 0).then(|| Spread {
            count,
            mean_s: self.sum_s() / count as f64,
            p50_s: self.quantile_ns(0.5) / 1e9,
            p99_s: self.quantile_ns(0.99) / 1e9,
            max_s: self.max_ns as f64 / 1e9,
        })
    }

    /// Linear where the times of its bucket are; never more than the longest.
    fn quantile_ns(&self, share: f64) -> f64 {
        let rank = share * self.count() as f64;
        let mut before = 0.0;
        for (&bucket, here) in &self.buckets {
            let count = here.count as f64;
            if before + count >= rank {
                let (from_ns, to_ns) = here.spread_ns(bucket);
                let at = from_ns + (to_ns - from_ns) * ((rank - before) / count).clamp(0.0, 1.0);
                return at.min(self.max_ns as f64);
            }
            before += count;
        }
        self.max_ns as f64
    }

    /// By power of two: where the bucket ends, seconds, and how many; those that have some.
    #[must_use]
    pub fn powers_of_two(&self) -> Vec<(f64, u64)> {
        let mut powers: BTreeMap<u64, u64> = BTreeMap::new();
        for (&bucket, here) in &self.buckets {
            let (from_ns, _) = bucket_ns(bucket.into());
            let ends_ns = from_ns.max(64).checked_ilog2().map_or(0, |power| 1 << (power + 1));
            *powers.entry(ends_ns).or_default() += here.count;
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

    fn of(max_ns: u64, buckets: &[(u8, u64, u64)]) -> Histogram {
        let end = "10.0.0.1:1".parse().expect("an address");
        let of = LatencyOf::Whole { flow: DropFlow { proto: Proto::Udp, from: end, to: end } };
        let mut histogram = Histogram::default();
        histogram.add(&LatencyRow { of, max_ns, buckets: buckets.to_vec() });
        histogram
    }

    #[test]
    fn quantiles_lie_in_their_buckets() {
        // 99 of 128 to 160 ns, one of 1,024 to 1,280 ns.
        let spread = of(1_100, &[(1, 99, 99 * 144), (13, 1, 1_100)]).spread().expect("there are some");
        assert_eq!(spread.count, 100);
        assert!((128e-9..160e-9).contains(&spread.p50_s), "{spread:?}");
        assert!((128e-9..=160e-9).contains(&spread.p99_s), "{spread:?}");
        assert!((spread.max_s - 1.1e-6).abs() < 1e-12, "{spread:?}");
        assert!((spread.mean_s - 153.56e-9).abs() < 1e-12, "{spread:?}");
        assert_eq!(Histogram::default().spread(), None);
    }

    #[test]
    fn times_that_are_all_alike_are_told_as_they_are() {
        // 10.1 ms: the bucket goes from 8.4 to 10.5 ms.
        let spread = of(10_110_000, &[(66, 1_000, 1_000 * 10_100_000)]).spread().expect("there are some");
        assert!((10.0e-3..10.2e-3).contains(&spread.p50_s), "{spread:?}");
        assert!((10.0e-3..10.2e-3).contains(&spread.p99_s), "{spread:?}");
    }

    #[test]
    fn what_came_since_has_its_own_longest() {
        let older = of(5_000, &[(1, 10, 1_440), (20, 1, 5_000)]);
        let newer = of(5_000, &[(1, 30, 4_320), (13, 2, 2_200), (20, 1, 5_000)]);
        let between = newer.since(&older).expect("nothing is less");
        let spread = between.spread().expect("there are some");
        assert_eq!(spread.count, 22);
        assert!((spread.max_s - 1.28e-6).abs() < 1e-12, "the end of its bucket: {spread:?}");
        assert_eq!(older.since(&newer), None, "a new beginning");
        assert_eq!(between.powers_of_two(), vec![(256e-9, 20), (2048e-9, 2)]);
    }
}
