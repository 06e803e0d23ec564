//! For how long something is looked at on request, and how often: a look after the other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// For how long something was looked at: written by the thread that attaches the programs.
#[derive(Debug, Default)]
pub struct LookedAt {
    /// Finished looks, ns.
    pub done_ns: AtomicU64,
    /// `CLOCK_MONOTONIC` of the beginning of the one that lasts, ns; 0: none does.
    pub since_ns: AtomicU64,
    /// Looks so far.
    number: AtomicU64,
}

impl LookedAt {
    /// `struct look` of one that begins or goes on: packets are followed from its first half on.
    pub(super) fn look(&self, packets_for: Option<Duration>, is_begun: bool) -> [u64; 2] {
        let number =
            if is_begun { self.number.fetch_add(1, Ordering::AcqRel) + 1 } else { self.number.load(Ordering::Acquire) };
        let half_ns = packets_for.map(|packets_for| u64::try_from(packets_for.as_nanos() / 2).unwrap_or(0));
        [number, half_ns.map_or(u64::MAX, |half_ns| now_ns().saturating_add(half_ns))]
    }

    /// A look begins.
    pub(super) fn begin(&self) {
        self.since_ns.store(now_ns(), Ordering::Release);
    }

    /// It ends.
    pub(super) fn end(&self) {
        let (done_ns, _) = self.until(now_ns());
        self.since_ns.store(0, Ordering::Release);
        self.done_ns.store(done_ns, Ordering::Release);
    }

    /// The sum until now, ns, and whether a look lasts.
    #[must_use]
    pub fn until(&self, now_ns: u64) -> (u64, bool) {
        let since_ns = self.since_ns.load(Ordering::Acquire);
        let lasts_ns = if since_ns == 0 { 0 } else { now_ns.saturating_sub(since_ns) };
        (self.done_ns.load(Ordering::Acquire).saturating_add(lasts_ns), since_ns != 0)
    }
}

/// `CLOCK_MONOTONIC`, ns: the programs' clock.
pub(super) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
