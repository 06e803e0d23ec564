//! Words that several sentences of a proposal share: numbers with their units, no promise.

use crate::recent_load::RecentLoad;
use crate::threads::ThreadMetrics;
use vnettop_sample::CoreId;

/// Name and role of a thread, for people.
#[must_use]
pub fn label(thread: &ThreadMetrics) -> String {
    format!("{} {}", thread.sample.name, thread.sample.role())
}

/// A share as whole percent, 0 to 100.
pub(super) fn percent(share: f64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..100 first")]
    let percent = (share.clamp(0.0, 1.0) * 100.0).round() as u32;
    percent
}

/// The work of others on a core.
pub(super) fn load(recent: &RecentLoad, core: CoreId) -> String {
    let Some(load) = recent.core(core) else { return "its load is not known".to_owned() };
    let interrupts = match percent(load.others_interrupts) {
        0 => "no interrupts".to_owned(),
        percent => format!("{percent} % interrupts"),
    };
    match percent(load.others) {
        0 => format!("no other work, {interrupts}"),
        percent => format!("{percent} % busy with other work, {interrupts}"),
    }
}
