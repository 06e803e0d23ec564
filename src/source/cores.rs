//! Per-core counters and topology. (to be written)

use crate::sample::{CoreCounters, Topology};
use std::sync::Arc;

/// One reading of every core.
#[derive(Debug)]
pub struct CoreReading {
    /// `CLOCK_MONOTONIC` of the reading, ns.
    pub at_ns: u64,
    /// Online cores, sorted by core.
    pub cores: Vec<CoreCounters>,
    /// Where each sits; the same `Arc` until the set of online cores changes.
    pub topology: Arc<Topology>,
}
