//! Whether samples still come, for probes that have no password: `/-/healthy`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A sample stands for so long at least.
const LEAST: Duration = Duration::from_secs(30);
/// Times between two samples, for so many of which it stands as well.
const INTERVALS: u32 = 3;

/// When the newest sample came, and how long it stands.
#[derive(Debug)]
pub(super) struct Freshness {
    began: Instant,
    stands: Duration,
    /// Milliseconds after it began, and 1; 0 before the first sample.
    came_ms: AtomicU64,
}

impl Freshness {
    /// Samples come so often.
    pub fn new(interval: Duration) -> Self {
        let stands = interval.saturating_mul(INTERVALS).max(LEAST);
        Self { began: Instant::now(), stands, came_ms: AtomicU64::new(0) }
    }

    /// A sample has come.
    pub fn sampled(&self) {
        self.came_ms.store(millis(self.began.elapsed()) + 1, Ordering::Relaxed);
    }

    /// # Errors
    /// In words: there was no sample, or the newest is too old.
    pub fn check(&self) -> Result<(), String> {
        self.check_at(self.began.elapsed())
    }

    fn check_at(&self, now: Duration) -> Result<(), String> {
        let Some(came_ms) = self.came_ms.load(Ordering::Relaxed).checked_sub(1) else {
            return Err("no sample yet\n".to_owned());
        };
        let age = Duration::from_millis(millis(now).saturating_sub(came_ms));
        if age > self.stands { Err(format!("no sample for {} s\n", age.as_secs())) } else { Ok(()) }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX - 1).min(u64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_stands_for_three_intervals_and_half_a_minute_at_least() {
        let often = Freshness::new(Duration::from_secs(1));
        assert_eq!(often.check_at(Duration::ZERO), Err("no sample yet\n".to_owned()));
        let later = |freshness: &Freshness, seconds| {
            freshness.sampled();
            freshness.check_at(freshness.began.elapsed() + Duration::from_secs(seconds))
        };
        assert_eq!((later(&often, 0), later(&often, 29)), (Ok(()), Ok(())));
        assert_eq!(later(&often, 40).map_err(|text| text.starts_with("no sample for ")), Err(true), "it is stuck");
        let seldom = Freshness::new(2 * LEAST);
        assert_eq!((later(&seldom, 170), later(&seldom, 200).is_err()), (Ok(()), true), "once a minute");
    }
}
