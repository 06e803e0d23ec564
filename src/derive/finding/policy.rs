//! What the machine does behind a benchmark's back: clocks held down, pages and interrupts moved.

use super::threads::busy;
use super::{LintScene, Said};
use crate::sample::Policy;

/// A cap closer to the top than this share is none.
const CAPPED: f64 = 0.98;

fn policy<'a>(scene: &LintScene<'a>) -> Option<&'a Policy> {
    busy(scene.metrics).next().map(|_| &scene.metrics.facts.host.policy)
}

/// The clock may not go as high as it could.
pub(super) fn capped(scene: &LintScene<'_>) -> Option<Said> {
    let policy = policy(scene)?;
    let (limit, most) = (policy.limit_khz? as f64, policy.most_khz? as f64);
    (limit < CAPPED * most).then(|| {
        let (at, of) = (limit / 1e6, most / 1e6);
        let text = format!("core 0 is capped at {at:.1} of its {of:.1} GHz (cpufreq/scaling_max_freq)");
        Said::new(text, [("limit_khz", limit), ("most_khz", most)])
    })
}

/// A governor that saves power at the cost of speed.
pub(super) fn powersave(scene: &LintScene<'_>) -> Option<Said> {
    let text = "core 0's frequency governor is powersave, which may hold the clock down (cpufreq/scaling_governor)";
    (policy(scene)?.governor.as_deref()? == "powersave").then(|| Said::new(text, []))
}

/// The kernel moves pages and threads between nodes.
pub(super) fn balancing(scene: &LintScene<'_>) -> Option<Said> {
    let nodes = scene.metrics.facts.topology.nodes;
    let text = "NUMA balancing migrates threads and pages between nodes (sysctl kernel.numa_balancing=0)";
    (policy(scene)?.numa_balancing? && nodes > 1).then(|| Said::new(text, [("nodes", f64::from(nodes))]))
}

/// Interrupts may follow the pins.
pub(super) fn irqbalance(scene: &LintScene<'_>) -> Option<Said> {
    let beside = policy(scene)?.irqbalance? && scene.metrics.threads.iter().any(|thread| thread.pinned);
    let text = "irqbalance may put interrupts on pinned cores (systemctl stop irqbalance)";
    beside.then(|| Said::new(text, []))
}
