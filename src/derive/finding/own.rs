//! vnettop's own trouble: ticks that came late.

use super::{Said, Scene};

/// How long one late tick is worth a sentence, s; the count itself stays in the header.
const RECENT_S: u64 = 30;

/// Ticks that began late or not at all, the last of them not long ago.
pub(super) fn late(scene: &Scene<'_>) -> Option<Said> {
    let (metrics, history) = (scene.metrics, scene.history);
    let ticks = metrics.own.late_ticks;
    let what = if ticks == 1 {
        "1 tick of vnettop was late".to_owned()
    } else {
        format!("{ticks} ticks of vnettop were late")
    };
    let remedy = if metrics.own.realtime { "" } else { "; as root or with CAP_SYS_NICE its sampler can go first" };
    history.was_late(metrics.at_ns, RECENT_S).then(|| Said {
        text: format!("{what} since its start, waiting for a core; rates are over the true time all the same{remedy}"),
        cost: None,
        numbers: vec![("late_ticks", ticks as f64)],
    })
}
