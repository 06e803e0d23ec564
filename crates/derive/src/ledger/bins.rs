//! The bins of a rate: what a test carried, and how often its threads migrated, in each tenth of a second.

use super::{Ledger, Mean, Ticked, TimeSpan};
use crate::moves::MovesByClass;

/// Length of a bin where the source reads that often, ns.
pub const BIN_NS: u64 = 100_000_000;
/// Bins kept: ten minutes of them.
pub const MOST_BINS: usize = 6_000;
/// A closed bin can still become unknown for this long, ns.
const CAN_CHANGE_NS: u64 = 10_000_000_000;

/// One bin of the watched flow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bin {
    /// `CLOCK_MONOTONIC` at which it began, ns.
    pub from_ns: u64,
    /// `CLOCK_MONOTONIC` at which it ended, ns: [`BIN_NS`] after its beginning, or an interval after it where only a link's
    /// rate is known; for connections that were not read for a while, when they were read again.
    pub to_ns: u64,
    /// Mean rate, bits/s; none where that is not known or no connection existed throughout.
    pub bits_per_s: Option<f64>,
    /// Moves of watched threads within it: traced ones by class; `unclassed` counted ones whose instant is not known.
    pub moves: MovesByClass,
    /// Moves that no class is known of, from counters, put into the bins of their tick evenly.
    pub unclassed: f64,
}

impl Ticked for Bin {
    fn span(&self) -> TimeSpan {
        TimeSpan { from_ns: self.from_ns, to_ns: self.to_ns }
    }
}

impl Bin {
    /// Its length, ns; 0 of one whose ends a recording has in the wrong order.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// The mean rate of some, bits/s, each as long as it is; none where none is known.
    #[must_use]
    pub fn mean<'a>(bins: impl IntoIterator<Item = &'a Self>) -> Option<f64> {
        let mut mean = Mean::default();
        bins.into_iter().for_each(|bin| mean.add(bin.bits_per_s, bin.length_ns() as f64));
        mean.value()
    }

    /// Its length, seconds.
    #[must_use]
    pub fn length_s(&self) -> f64 {
        self.length_ns() as f64 / 1e9
    }

    /// Bits that it carried; none where its rate is not known.
    pub(crate) fn bits(&self) -> Option<f64> {
        self.bits_per_s.map(|rate| rate * self.length_s())
    }
}

impl Ledger<Bin> {
    /// Carries the bins of a whole run on with the newest ones as they are known now. Those that can still change are replaced,
    /// unless they begin before `from_ns`.
    pub fn follow<'a>(&mut self, now: impl DoubleEndedIterator<Item = &'a Bin>, from_ns: u64) {
        let mut now = now.rev().peekable();
        let newest_ns = now.peek().map_or(0, |bin| bin.from_ns);
        let known_ns = self.last().map_or(0, |bin| bin.from_ns).min(newest_ns);
        let open_ns = known_ns.saturating_sub(CAN_CHANGE_NS).max(from_ns);
        let open: Vec<Bin> = now.take_while(|bin| bin.from_ns >= open_ns).copied().collect();
        if let Some(first) = open.last() {
            self.0.truncate(self.0.partition_point(|bin| bin.from_ns < first.from_ns));
            self.0.extend(open.into_iter().rev());
        }
    }

    /// Takes out the bins that cannot change any more.
    pub fn take_settled(&mut self) -> std::collections::vec_deque::Drain<'_, Bin> {
        let settled_ns = self.last().map_or(0, |newest| newest.from_ns.saturating_sub(CAN_CHANGE_NS));
        self.0.drain(..self.0.partition_point(|bin| bin.to_ns <= settled_ns))
    }
}

/// How many of these rates are known.
pub(crate) fn known<'a>(bins: impl IntoIterator<Item = &'a Bin>) -> usize {
    bins.into_iter().filter(|bin| bin.bits_per_s.is_some()).count()
}

/// What the rate of the bins is the rate of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowBasis {
    /// So many connections of the watched processes that carry data (`tcp_info`), both ends counted once.
    Sockets(usize),
    /// So many UDP streams of the watched processes, by the datagrams that their namespaces count.
    Datagrams(usize),
    /// The busiest link, by name, because no connection can be read.
    Link(String),
}

impl FlowBasis {
    /// Rates on both can stand beside each other: they are of connections, of datagrams, or of one link.
    pub(crate) fn goes_on_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sockets(_), Self::Sockets(_)) | (Self::Datagrams(_), Self::Datagrams(_)) => true,
            (one, other) => one == other,
        }
    }

    /// As one word: `sockets`, `datagrams`, or `link:` and its name.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Self::Sockets(_) => "sockets".to_owned(),
            Self::Datagrams(_) => "datagrams".to_owned(),
            Self::Link(name) => format!("link:{name}"),
        }
    }
}
