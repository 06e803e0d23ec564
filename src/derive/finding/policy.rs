//! What the machine does behind a benchmark's back: clocks held down, pages and interrupts moved.

use super::threads::busy;
use super::{Diagnostic, LintInput};
use crate::sample::Policy;

/// A cap closer to the top than this share is none.
const CAPPED: f64 = 0.98;

fn policy<'a>(scene: &LintInput<'a>) -> Option<&'a Policy> {
    busy(scene.metrics).next().map(|_| &scene.metrics.facts.host.policy)
}

/// The clock may not go as high as it could.
pub(super) fn capped(scene: &LintInput<'_>) -> Option<Diagnostic> {
    let policy = policy(scene)?;
    let (limit, most) = (policy.limit_khz? as f64, policy.most_khz? as f64);
    (limit < CAPPED * most).then(|| {
        let (at, of) = (limit / 1e6, most / 1e6);
        let text = format!("core 0 is capped at {at:.1} of its {of:.1} GHz (cpufreq/scaling_max_freq)");
        Diagnostic::new(text, [("limit_khz", limit), ("most_khz", most)])
    })
}

/// A governor that saves power at the cost of speed.
pub(super) fn powersave(scene: &LintInput<'_>) -> Option<Diagnostic> {
    let text = "core 0's frequency governor is powersave and may hold the clock down (scaling_governor)";
    (policy(scene)?.governor.as_deref()? == "powersave").then(|| Diagnostic::new(text, []))
}

/// The kernel moves pages and threads between nodes.
pub(super) fn balancing(scene: &LintInput<'_>) -> Option<Diagnostic> {
    let nodes = scene.metrics.facts.topology.nodes;
    let text = "NUMA balancing migrates threads and pages (off: sysctl kernel.numa_balancing=0)";
    (policy(scene)?.numa_balancing? && nodes > 1).then(|| Diagnostic::new(text, [("nodes", f64::from(nodes))]))
}

/// Interrupts may follow the pins.
pub(super) fn irqbalance(scene: &LintInput<'_>) -> Option<Diagnostic> {
    let beside = policy(scene)?.irqbalance? && scene.metrics.threads.iter().any(|thread| thread.pinned);
    let text = "irqbalance may put interrupts on pinned cores (systemctl stop irqbalance)";
    beside.then(|| Diagnostic::new(text, []))
}
