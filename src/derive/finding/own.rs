//! vnettop's own trouble: ticks that came late.

use super::{Diagnostic, LintInput};
use crate::sample::{OwnCost, RealtimeRefusal};

/// How long one late tick is worth a sentence, s; the count itself stays in the header.
const RECENT_S: u64 = 30;

/// Ticks that began late or not at all, the last of them not long ago.
pub(super) fn late(scene: &LintInput<'_>) -> Option<Diagnostic> {
    let (metrics, history) = (scene.metrics, scene.history);
    let ticks = metrics.own.late_ticks;
    let what = if ticks == 1 { "1 sample was late".to_owned() } else { format!("{ticks} samples were late") };
    let remedy = remedy(&metrics.own);
    history.was_late(metrics.at_ns, RECENT_S).then(|| {
        let text = format!("{what} since the start, because the CPU was busy; rates are still correct{remedy}");
        Diagnostic::new(text, [("late_ticks", ticks as f64)])
    })
}

/// What would let the sampler go before the benchmark.
fn remedy(own: &OwnCost) -> &'static str {
    match own.ordinary {
        _ if own.realtime => "",
        // Recordings of older versions do not tell.
        None | Some(RealtimeRefusal::NoRight) => {
            "; as root or with CAP_SYS_NICE vnettop can sample at real-time priority"
        }
        Some(RealtimeRefusal::NotAsked) => "; without --no-realtime vnettop samples at real-time priority",
        Some(RealtimeRefusal::Refused) => {
            "; no real-time priority for vnettop: a cgroup (cpu.rt_runtime_us) or seccomp may forbid it"
        }
        Some(RealtimeRefusal::GivenBack) => {
            "; sampling took too much of a core for real-time priority: use a longer interval (-d)"
        }
    }
}
