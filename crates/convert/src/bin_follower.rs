//! The bins of a test's rate, each once, when it cannot change any more.

use vnettop_derive::{Bin, Ledger};

/// Follows the bins of a test.
#[derive(Debug, Clone, Default)]
pub struct BinFollower {
    recent: Ledger<Bin>,
    /// The end of the last bin given out, monotonic ns.
    settled_ns: u64,
}

impl BinFollower {
    /// One to which bins that begin earlier do not belong, monotonic ns.
    pub fn since(from_ns: u64) -> Self {
        Self { recent: Ledger::new(), settled_ns: from_ns }
    }

    /// Takes the bins of the last minute as they are known now; those that are settled.
    pub fn follow(&mut self, bins: &[Bin]) -> Vec<Bin> {
        self.recent.follow(bins.iter(), self.settled_ns);
        let settled: Vec<Bin> = self.recent.take_settled().collect();
        self.settled_ns = settled.last().map_or(self.settled_ns, |bin| bin.to_ns);
        settled
    }

    /// The bins that are left at the end, as they are known then.
    pub fn rest(&mut self) -> Vec<Bin> {
        let rest: Vec<Bin> = self.recent.iter().copied().collect();
        self.recent.clear();
        self.settled_ns = rest.last().map_or(self.settled_ns, |bin| bin.to_ns);
        rest
    }
}
