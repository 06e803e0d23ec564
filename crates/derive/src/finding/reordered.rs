//! Packets of a flow that change cores on their way and overtake each other, which TCP takes for loss.

use super::{Diagnostic, FindingParts, LintInput};
use crate::TestMetrics;
use crate::denial::{self, DropsSeen};
use crate::figure::rate;
use crate::finding::path::named;
use crate::first_backlog::{self, FirstBacklog};
use crate::held_back::LimitKind;
use crate::placement;
use vnettop_sample::CoreSet;

/// The place where most is sent again for nothing.
pub(super) fn reordered(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    // It is asked on every tick.
    if first_backlog::is_quiet(metrics) {
        return None;
    }
    let again = |one: &FirstBacklog<'_>| one.disorder.map_or(0.0, |disorder| disorder.retransmits_per_s);
    let all = first_backlog::all(metrics).into_iter().filter(|one| one.is_disordered(metrics));
    let worst = all.max_by(|one, other| again(one).total_cmp(&again(other)))?;
    let disorder = worst.disorder?;
    let mut numbers = vec![
        ("retransmits_per_s", disorder.retransmits_per_s),
        ("dsack_dups_per_s", disorder.dsack_dups_per_s),
        ("reord_seen_per_s", disorder.reord_seen_per_s),
    ];
    numbers.extend(worst.switches_per_s.map(|switches| ("core_switches_per_s", switches)));
    numbers.extend(disorder.out_of_order_per_s.map(|late| ("out_of_order_per_s", late)));
    let (text, parts) = sentence(input, &worst, disorder.retransmits_per_s, disorder.over_s);
    Some(Diagnostic::new(text, numbers).in_parts(parts))
}

fn sentence(input: &LintInput<'_>, worst: &FirstBacklog<'_>, again: f64, over_s: f64) -> (String, FindingParts) {
    let metrics = input.metrics;
    let [senders, receivers] = worst.ends(metrics);
    let at = named(metrics, worst.link);
    let cause = match (worst.switches_per_s, &worst.cores) {
        // Cores that few of its packets met are left out of a hop's, and one alone would contradict the sentence.
        (Some(switches), Some(cores)) if cores.len() > 1 => {
            format!("packets change cores {} times/s at {at} (cores {cores}) and overtake each other", rate(switches))
        }
        (Some(switches), _) => {
            format!("packets change cores {} times/s at {at} and overtake each other", rate(switches))
        }
        (None, _) => format!("packets overtake each other at {at}: they come from cores {senders} and {receivers}"),
    };
    let dropped = match denial::drops(metrics, worst.connections.iter().copied(), over_s) {
        DropsSeen::Throughout => "this kernel drops none",
        _ => "",
    };
    let comma = if dropped.is_empty() { "" } else { ", " };
    let again = rate(again);
    // No more work for a core that others have filled.
    let full = input.limit.filter(|limit| limit.kind == LimitKind::Others).and_then(|limit| limit.core);
    let has_room = full.is_none_or(|core| !receivers.contains(core));
    let fix = mend(metrics, worst, receivers).filter(|_| has_room);
    let mend = fix.as_ref().map_or_else(String::new, |line| format!("; one core keeps them in order ({line})"));
    let text = format!("{cause}: TCP takes that for loss ({again} retransmits/s{comma}{dropped}){mend}");
    let parts = FindingParts {
        why: format!("{cause}: TCP takes that for loss"),
        cost: format!("in bits/s not known: {again} retransmits/s{comma}{dropped}"),
        fix: fix.map_or_else(String::new, |line| format!("keep them on one core ({line})")),
        ..FindingParts::default()
    };
    (text, parts)
}

/// What puts them in order again, where that is not set already.
fn mend(metrics: &TestMetrics, worst: &FirstBacklog<'_>, receivers: CoreSet) -> Option<String> {
    let is_open = !worst.is_steered() && !receivers.is_empty();
    is_open.then(|| placement::shell_line(metrics, &placement::request(worst, receivers)))
}
