//! What was so lately: a column or a word that has come stays for a while after its reason has gone, so that nothing jumps to and fro.

/// For so long, ns.
const STAYS_NS: u64 = 10_000_000_000;

/// Whether something is so, or was so in the last ten seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lately {
    last_ns: Option<u64>,
    /// As of the last note.
    pub holds: bool,
}

impl Lately {
    /// Whether it is so now, monotonic ns.
    pub fn note(&mut self, is_so: bool, now_ns: u64) {
        if is_so {
            self.last_ns = Some(now_ns);
        }
        self.holds = self.last_ns.is_some_and(|last_ns| now_ns.saturating_sub(last_ns) < STAYS_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_for_ten_seconds_after_it_was_so() {
        let mut lately = Lately::default();
        let mut holds = |is_so, second: u64| {
            lately.note(is_so, second * 1_000_000_000);
            lately.holds
        };
        assert_eq!([holds(false, 1), holds(true, 2), holds(false, 11), holds(false, 12)], [false, true, true, false]);
    }
}
