//! What is to be done about a limit.

use super::LintInput;
use crate::figure::Unit;
use crate::held_back::{Limit, LimitKind};
use crate::placement::{program_on, programs_on};
use crate::spare_core::calmest_beside;
use vnettop_sample::CoreSet;

/// Why, and behind a semicolon what is to be done.
pub(super) fn sentence(because: &str, fix: &str) -> String {
    if fix.is_empty() { because.to_owned() } else { format!("{because}; {fix}") }
}

/// What it costs that threads wait: about as much more as the CPU time allows that they would have, under this condition, where both
/// ends are visible; else how long they wait.
pub(super) fn cost_of_waiting(input: &LintInput<'_>, condition: &str, time: Option<String>) -> String {
    let more = input.limit.and_then(Limit::gain_bits_per_s);
    match (more, time) {
        (Some(more), _) => format!("about {} more {condition}", about(more)),
        (None, Some(time)) => format!("{time}; in bits/s: {UNTRIED}"),
        (None, None) => UNTRIED.to_owned(),
    }
}

const UNTRIED: &str = "not known before it is tried";

/// In two digits: more are not known of it.
fn about(bits_per_s: f64) -> String {
    let unit = Unit::of(bits_per_s);
    let step = 10.0_f64.powf(bits_per_s.max(1.0).log10().floor() - 1.0);
    format!("{} {}", unit.figure((bits_per_s / step).round() * step).trim_end_matches(".0"), unit.word)
}

/// What is to be done about it; nothing where a key does it.
pub(super) fn remedy(input: &LintInput<'_>, limit: &Limit) -> String {
    let is_full = input.diagnosis.conclusion.others_everywhere;
    match limit.kind {
        LimitKind::Others if is_full => {
            let they = "use every core that this test may have";
            return programs_on(input.metrics, None).map_or_else(
                || format!("stop other programs, or test later: they {they}"),
                |who| format!("stop {who}, or test later: other programs {they}"),
            );
        }
        LimitKind::Others if !input.pin_may_help => {
            let program = limit.core.filter(|_| limit.name.is_some()).and_then(|core| program_on(input.metrics, core));
            let (who, pid) = program.unwrap_or_else(|| ("other programs".to_owned(), None));
            let core = limit.core.map_or_else(|| "there".to_owned(), |core| format!("on core {core}"));
            // Rather no second choice than one that takes the other end's core.
            let ends: CoreSet = input.metrics.threads.iter().map(|thread| thread.sample.core).collect();
            let or = calmest_beside(&input.metrics.machine, [&ends, &CoreSet::default()]).map(|idle| match pid {
                Some(pid) => format!(", or give it core {idle} (taskset -apc {idle} {pid})"),
                None => format!(", or give them core {idle}, which has room"),
            });
            return format!("stop {who} {core}{}", or.unwrap_or_default());
        }
        LimitKind::Quota => "raise it (cpu.max of its cgroup)",
        LimitKind::Steal => "only its host can give it more",
        LimitKind::OwnThread | LimitKind::Frequency => "lower -b to the rate that arrives",
        LimitKind::OwnSoftirq => "RPS on another core takes them off it",
        _ => "",
    }
    .to_owned()
}
