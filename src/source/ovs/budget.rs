//! What following one database may cost: bytes taken in and CPU time spent on them, so much at once and so much a second.
//! What is beyond that stays in the socket, where a database that means well puts its updates together.

/// At once: the largest message there may be, and something besides.
const BYTES_AT_ONCE: i64 = 18 << 20;
/// The statistics of ten thousand interfaces come to less.
pub(super) const BYTES_PER_S: i64 = 1 << 20;
const NS_AT_ONCE: i64 = 500_000_000;
/// Two hundredths of a core.
const NS_PER_S: i64 = 20_000_000;

const SECOND_NS: u64 = 1_000_000_000;
/// How long the warning stays after the budget ran out, ns.
const WARNED_NS: u64 = 10 * SECOND_NS;

/// What is left of it.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: i64,
    ns: i64,
    filled_at_ns: Option<u64>,
    spent_at_ns: Option<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: BYTES_AT_ONCE, ns: NS_AT_ONCE, filled_at_ns: None, spent_at_ns: None }
    }
}

impl Budget {
    /// What the time since the last call allows.
    pub fn fill(&mut self, now_ns: u64) {
        let since_ns = now_ns.saturating_sub(self.filled_at_ns.replace(now_ns).unwrap_or(now_ns));
        // Longer than that fills it anyhow.
        let since_ns = i64::try_from(since_ns.min(60 * SECOND_NS)).unwrap_or(0);
        let second_ns = SECOND_NS.cast_signed();
        self.bytes = (self.bytes + BYTES_PER_S * (since_ns / 1000) / (second_ns / 1000)).min(BYTES_AT_ONCE);
        self.ns = (self.ns + since_ns / (second_ns / NS_PER_S)).min(NS_AT_ONCE);
        if self.is_left() && self.spent_at_ns.is_some_and(|spent| now_ns.saturating_sub(spent) >= WARNED_NS) {
            self.spent_at_ns = None;
        }
    }

    pub fn is_left(&self) -> bool {
        self.bytes > 0 && self.ns > 0
    }

    /// It may become less than nothing: then it takes longer until there is some again.
    pub fn spend(&mut self, bytes: usize, ns: u64) {
        self.bytes = self.bytes.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.ns = self.ns.saturating_sub(i64::try_from(ns).unwrap_or(i64::MAX));
        if !self.is_left() {
            self.spent_at_ns = self.filled_at_ns;
        }
    }

    /// It was used up lately.
    pub fn was_exceeded(&self) -> bool {
        self.spent_at_ns.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_comes_back_at_its_pace_and_no_faster() {
        let mut budget = Budget::default();
        budget.fill(SECOND_NS);
        budget.spend(usize::try_from(BYTES_AT_ONCE).expect("fits"), 0);
        assert!(!budget.is_left() && budget.was_exceeded(), "all bytes are spent");
        budget.fill(2 * SECOND_NS);
        assert!(budget.is_left(), "a second later some more may come");
        budget.spend(usize::try_from(BYTES_PER_S).expect("fits"), 0);
        assert!(!budget.is_left(), "as many as a second allows");
        budget.fill(8 * SECOND_NS);
        assert!(budget.was_exceeded(), "it is told for a while");
        budget.fill(13 * SECOND_NS);
        assert!(!budget.was_exceeded(), "and not for ever");
    }

    #[test]
    fn a_debt_of_time_is_paid_before_anything_is_read() {
        let mut budget = Budget::default();
        budget.fill(0);
        budget.spend(1, 2 * NS_AT_ONCE.unsigned_abs());
        budget.fill(24 * SECOND_NS);
        assert!(!budget.is_left(), "half a second too much is twenty-five seconds' share");
        budget.fill(26 * SECOND_NS);
        assert!(budget.is_left(), "then it is paid");
    }
}
