//! vnettop's own trouble: ticks that came late.

use super::Said;
use crate::derive::Metrics;
use crate::derive::history::History;

/// Ticks that began late or not at all since the start.
pub(super) fn late(metrics: &Metrics, _: &History) -> Option<Said> {
    let ticks = metrics.own.late_ticks;
    let what = if ticks == 1 {
        "1 tick of vnettop was late".to_owned()
    } else {
        format!("{ticks} ticks of vnettop were late")
    };
    let remedy = if metrics.own.realtime { "" } else { "; as root or with CAP_SYS_NICE its sampler can go first" };
    (ticks > 0).then(|| Said {
        text: format!("{what} since its start, waiting for a core; rates are over the true time all the same{remedy}"),
        numbers: vec![("late_ticks", ticks as f64)],
    })
}
