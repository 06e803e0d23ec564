//! What of a test its latency is derived from.

use crate::Worker;
use crate::flow::FlowMetrics;
use crate::machine::MachineMetrics;
use crate::threads::ThreadMetrics;
use vnettop_sample::FlowPath;

/// A test, as far as its latency needs it.
#[derive(Debug, Clone, Copy)]
pub struct LatencyGround<'a> {
    /// The machine.
    pub machine: &'a MachineMetrics,
    /// The threads at its ends.
    pub threads: &'a [ThreadMetrics],
    /// The threads between the ends.
    pub workers: &'a [Worker],
    /// Its paths.
    pub paths: &'a [FlowPath],
    /// Its connections.
    pub flow: &'a FlowMetrics,
}
