//! Backlog trouble of single cores: packets dropped because the backlog was full, softirq rounds cut short.

use super::figure::{count, percent, rate};
use super::{Diagnostic, LintInput};
use crate::derive::Metrics;
use crate::derive::cores::CoreLoad;
use crate::sample::CoreId;

/// Packets dropped by a full backlog (`softnet_stat`, second column).
pub(super) fn dropped(scene: &LintInput<'_>) -> Option<Diagnostic> {
    let trouble = CoreFault::of(scene.metrics, |load| load.softnet_dropped_per_s)?;
    let text = format!(
        "core {} drops {} packets/s: its backlog is full{} (net.core.netdev_max_backlog)",
        trouble.core,
        rate(trouble.worst),
        trouble.beside("packets/s")
    );
    Some(Diagnostic::new(text, trouble.numbers("dropped_per_s")))
}

/// Softirq rounds that ran out of budget or time (`softnet_stat`, third column).
pub(super) fn squeezed(scene: &LintInput<'_>) -> Option<Diagnostic> {
    let trouble = CoreFault::of(scene.metrics, |load| load.softnet_squeezed_per_s)?;
    let text = format!(
        "core {} exhausts its softirq budget {} times/s{} (net.core.netdev_budget)",
        trouble.core,
        rate(trouble.worst),
        trouble.beside("times/s")
    );
    Some(Diagnostic::new(text, trouble.numbers("squeezed_per_s")))
}

/// The core that has it worst, and the sum over all that have it.
struct CoreFault {
    core: CoreId,
    worst: f64,
    sum: f64,
    cores: usize,
}

impl CoreFault {
    fn of(metrics: &Metrics, of: impl Fn(&CoreLoad) -> Option<f64>) -> Option<Self> {
        let mut trouble = Self { core: 0, worst: 0.0, sum: 0.0, cores: 0 };
        for core in &metrics.cores {
            let Some(per_s) = core.load.as_ref().and_then(&of).filter(|&per_s| per_s > 0.0) else { continue };
            (trouble.sum, trouble.cores) = (trouble.sum + per_s, trouble.cores + 1);
            if per_s > trouble.worst {
                (trouble.worst, trouble.core) = (per_s, core.place.core);
            }
        }
        (trouble.cores > 0).then_some(trouble)
    }

    /// What all cores have together, where it is more than one.
    fn beside(&self, unit: &str) -> String {
        let Self { sum, cores, .. } = *self;
        if cores == 1 { String::new() } else { format!("; {} {unit} on {cores} cores together", rate(sum)) }
    }

    fn numbers(&self, name: &'static str) -> [(&'static str, f64); 3] {
        [("core", f64::from(self.core)), (name, self.worst), ("cores", count(self.cores))]
    }
}

/// From this share on, time taken by the hypervisor is worth a sentence.
const STOLEN: f64 = 0.05;

/// Time that the hypervisor gave to others (`steal` of `/proc/stat`).
pub(super) fn stolen(scene: &LintInput<'_>) -> Option<Diagnostic> {
    let steal = scene.inquiry.surroundings.recent_steal().filter(|&steal| steal >= STOLEN)?;
    let text = format!("{} % steal on your threads' cores: other guests of the hypervisor take it", percent(steal));
    Some(Diagnostic { text, cost: Some(steal), numbers: vec![("steal", steal)] })
}
