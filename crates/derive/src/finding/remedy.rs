//! What is to be done about a limit.

use super::LintInput;
use crate::held_back::{Limit, LimitKind};

/// What is to be done about it, after a semicolon; nothing where a key does it.
pub(super) fn remedy(input: &LintInput<'_>, limit: &Limit) -> &'static str {
    let is_full = input.diagnosis.conclusion.no_free_core;
    match limit.kind {
        LimitKind::Others if is_full => "; every other core is in use too: stop other programs first",
        LimitKind::Others if !input.pin_may_help => "; stop other programs there first",
        LimitKind::Quota => "; raise it (cpu.max of its cgroup)",
        LimitKind::Steal => "; only its host can give it more",
        LimitKind::OwnThread | LimitKind::Frequency => "; lower -b to the rate that arrives",
        LimitKind::OwnSoftirq => "; RPS on another core takes them off it",
        _ => "",
    }
}
