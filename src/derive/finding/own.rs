//! vnettop's own trouble: ticks that came late.

use super::{LintScene, Said};
use crate::sample::{Ordinary, OwnCost};

/// How long one late tick is worth a sentence, s; the count itself stays in the header.
const RECENT_S: u64 = 30;

/// Ticks that began late or not at all, the last of them not long ago.
pub(super) fn late(scene: &LintScene<'_>) -> Option<Said> {
    let (metrics, history) = (scene.metrics, scene.history);
    let ticks = metrics.own.late_ticks;
    let what = if ticks == 1 {
        "1 tick of vnettop was late".to_owned()
    } else {
        format!("{ticks} ticks of vnettop were late")
    };
    let remedy = remedy(&metrics.own);
    history.was_late(metrics.at_ns, RECENT_S).then(|| Said {
        text: format!("{what} since its start, waiting for a core; rates are over the true time all the same{remedy}"),
        cost: None,
        numbers: vec![("late_ticks", ticks as f64)],
    })
}

/// What would let the sampler go before the benchmark.
fn remedy(own: &OwnCost) -> &'static str {
    match own.ordinary {
        _ if own.realtime => "",
        // Recordings of older versions do not tell.
        None | Some(Ordinary::NoRight) => "; as root or with CAP_SYS_NICE its sampler can go first",
        Some(Ordinary::NotAsked) => "; without --no-realtime its sampler goes first",
        Some(Ordinary::Refused) => {
            "; the kernel refuses its sampler real-time priority, which its control group (cpu.rt_runtime_us) or a filter of system calls may forbid"
        }
        Some(Ordinary::GivenBack) => {
            "; its sampler took so much of a core that it gave its real-time priority back: with a longer interval it keeps it"
        }
    }
}
