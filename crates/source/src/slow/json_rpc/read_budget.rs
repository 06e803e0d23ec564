//! What reading from one program may cost: bytes taken in and CPU time spent on them, so much at once and so much a second.
//! What is beyond that stays in the socket, where a database that means well puts its updates together.

use std::sync::atomic::{AtomicU64, Ordering};

const SECOND_NS: u64 = 1_000_000_000;
/// The statistics of ten thousand interfaces come to less.
pub(crate) const BYTES_PER_S: u64 = 1 << 20;
/// At once: the largest message there may be, and something besides.
const BYTES_AT_ONCE: u64 = 18 << 20;
/// Two hundredths of a core.
const CPU_NS_PER_S: u64 = 20_000_000;
const CPU_NS_AT_ONCE: u64 = 500_000_000;
/// How long the warning stays after the budget ran out, ns.
const WARNED_NS: u64 = 10 * SECOND_NS;

/// What of it is spent, across the conversations with one program. The thread that reads and the one that takes what was read
/// both spend.
#[derive(Debug, Default)]
pub(crate) struct ReadBudget {
    /// Until when bytes and CPU time are spent at their pace, monotonic ns; one that is past leaves something to spend.
    spent_until_ns: [AtomicU64; 2],
    exceeded_at_ns: AtomicU64,
}

impl ReadBudget {
    /// More may be spent than is left: then it takes longer until there is some again.
    pub fn spend(&self, now_ns: u64, bytes: usize, cpu_ns: u64) {
        let at_once_ns =
            [BYTES_AT_ONCE / BYTES_PER_S, CPU_NS_AT_ONCE / CPU_NS_PER_S].map(|seconds| seconds * SECOND_NS);
        let bytes_ns = (bytes as u64).saturating_mul(SECOND_NS) / BYTES_PER_S;
        let spent_ns = [bytes_ns, cpu_ns.saturating_mul(SECOND_NS / CPU_NS_PER_S)];
        for ((until, spent_ns), at_once_ns) in self.spent_until_ns.iter().zip(spent_ns).zip(at_once_ns) {
            until.fetch_max(now_ns.saturating_sub(at_once_ns), Ordering::Relaxed);
            until.fetch_add(spent_ns, Ordering::Relaxed);
        }
        if self.debt_ns(now_ns) > 0 {
            self.exceeded_at_ns.store(now_ns, Ordering::Relaxed);
        }
    }

    /// For how long nothing more may be read.
    pub fn debt_ns(&self, now_ns: u64) -> u64 {
        let until_ns = self.spent_until_ns.iter().map(|until| until.load(Ordering::Relaxed)).max();
        until_ns.unwrap_or(0).saturating_sub(now_ns)
    }

    /// It was used up lately.
    pub fn was_exceeded(&self, now_ns: u64) -> bool {
        let exceeded_at_ns = self.exceeded_at_ns.load(Ordering::Relaxed);
        exceeded_at_ns > 0 && now_ns.saturating_sub(exceeded_at_ns) < WARNED_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_comes_back_at_its_pace_and_no_faster() {
        let (budget, began) = (ReadBudget::default(), 1000 * SECOND_NS);
        let at = |seconds: u64| began + seconds * SECOND_NS;
        let is_left = |seconds| budget.debt_ns(at(seconds)) == 0;
        budget.spend(at(1), BYTES_AT_ONCE.try_into().expect("fits"), 0);
        assert!(is_left(1) && !budget.was_exceeded(at(1)), "as much as may be read at once");
        budget.spend(at(1), BYTES_PER_S.try_into().expect("fits"), 0);
        assert!(!is_left(1) && budget.was_exceeded(at(1)), "all bytes are spent");
        assert!(is_left(2), "a second later some more may come");
        budget.spend(at(2), BYTES_PER_S.try_into().expect("fits"), 0);
        assert!(!is_left(2), "as many as a second allows");
        assert!(budget.was_exceeded(at(8)), "it is told for a while");
        assert!(!budget.was_exceeded(at(13)), "and not for ever");
    }

    #[test]
    fn a_debt_of_time_is_paid_before_anything_is_read() {
        let (budget, began) = (ReadBudget::default(), 1000 * SECOND_NS);
        budget.spend(began, 1, 2 * CPU_NS_AT_ONCE);
        let is_left = |seconds: u64| budget.debt_ns(began + seconds * SECOND_NS) == 0;
        assert!(!is_left(24), "half a second too much is twenty-five seconds' share");
        assert!(is_left(26), "then it is paid");
    }
}
