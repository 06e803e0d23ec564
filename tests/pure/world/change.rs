//! Derived metrics, changed by hand where a world says too little.

use std::sync::Arc;
use vnettop::derive::{Conclusions, MachineMetrics, Metrics, TestMetrics, ThreadMetrics};

/// What is measured of the test.
pub fn own(metrics: &mut Metrics) -> &mut TestMetrics {
    Arc::make_mut(&mut metrics.subject)
}

/// What is concluded of it.
pub fn concluded(metrics: &mut Metrics) -> &mut Conclusions {
    Arc::make_mut(&mut metrics.conclusions)
}

/// The machine, which is the test's as well.
pub fn machine(metrics: &mut Metrics, change: impl FnOnce(&mut MachineMetrics)) {
    change(Arc::make_mut(&mut metrics.machine));
    own(metrics).machine = Arc::clone(&metrics.machine);
}

/// The threads, all of which are the test's.
pub fn threads(metrics: &mut Metrics, change: impl FnOnce(&mut Vec<ThreadMetrics>)) {
    change(Arc::make_mut(&mut metrics.threads));
    let threads = Arc::clone(&metrics.threads);
    machine(metrics, |machine| machine.threads = Arc::clone(&threads));
    own(metrics).threads = threads;
}
