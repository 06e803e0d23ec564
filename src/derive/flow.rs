//! How fast the watched threads' own traffic runs, in bins of 100 ms with the moves that fell into each: what jitter,
//! its cause and the proof of a pin are computed from.

use super::moves::MovesByClass;
use std::collections::VecDeque;

/// Length of a bin where the source reads that often, ns.
pub const BIN_NS: u64 = 100_000_000;
/// Bins kept: ten minutes of them.
pub const MOST_BINS: usize = 6_000;

/// One bin of the watched flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// `CLOCK_MONOTONIC` at which it began, ns.
    pub from_ns: u64,
    /// And ended, ns: [`BIN_NS`] later, or an interval later where only a link's rate is known.
    pub to_ns: u64,
    /// Mean rate, bits/s; none where nothing was read or no connection existed throughout.
    pub bits_per_s: Option<f64>,
    /// Moves of watched threads within it: traced ones by class; `unclassed` counted ones whose instant is not known.
    pub moves: MovesByClass,
    /// Moves that no class is known of, from counters, put into the bins of their tick evenly.
    pub unclassed: f64,
}

/// What the rate of the bins is the rate of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowBasis {
    /// So many connections of the watched processes (`tcp_info`), both ends counted once.
    Sockets(usize),
    /// The busiest link, by name, because no connection can be read.
    Link(String),
}

/// The watched flow as of the newest sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowTrack {
    /// Oldest first.
    bins: VecDeque<Bin>,
    /// None before the first bin.
    basis: Option<FlowBasis>,
}

impl FlowTrack {
    /// The bins, oldest first; every one is over.
    #[must_use]
    pub fn bins(&self) -> &VecDeque<Bin> {
        &self.bins
    }

    /// What their rate is the rate of.
    #[must_use]
    pub fn basis(&self) -> Option<&FlowBasis> {
        self.basis.as_ref()
    }
}
