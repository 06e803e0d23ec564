//! What the clocks of this machine show, each as one number. It decides nothing by the time.

use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// A second, ns.
pub const SECOND_NS: u64 = 1_000_000_000;

/// What a clock shows: a time, or the CPU time of the calling thread or of the process, ns.
#[must_use]
pub fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * SECOND_NS + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// `CLOCK_MONOTONIC` now, ns.
#[must_use]
pub fn now_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// Milliseconds since 1970, UTC; 0 before.
#[must_use]
pub fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
