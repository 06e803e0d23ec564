//! The card as one JSON object. Field names, units and nulls are the contract of docs/json.md; rates are bits a second,
//! shares 0..1, times seconds.

use super::rows;
use crate::derive::Card;
use crate::derive::experiment::CardSide;
use crate::derive::placement::Proposal;
use crate::derive::run::{PinComparison, RunCard, Seen};
use crate::report::json::Numbers;
use crate::report::pair;
use crate::report::timestamp;
use crate::sample::Word;
use serde_json::{Value, json};

/// Raised when a field changes its meaning or goes away; new fields do not raise it.
const SCHEMA_VERSION: u32 = 1;

/// The object and its end of line.
pub(super) fn json(card: &RunCard) -> String {
    let asked = &card.asked;
    let object = json!({
        "schema_version": SCHEMA_VERSION,
        "ts": timestamp(asked.wall_ms),
        "command": asked.command,
        "watch": asked.watch,
        "measured": card.measured.map(|of| json!({ "of": of.word(), "text": rows::measured(card, of) })),
        "pin": asked.pin.word(),
        "repeat": asked.repeat,
        "stretch_s": asked.stretch_ns as f64 / 1e9,
        "settle_s": asked.settle_ns as f64 / 1e9,
        "host": { "name": card.host.name, "kernel": card.host.kernel, "arch": card.host.arch, "cores": card.cores },
        "runs": card.runs.iter().map(|run| json!({
            "exit_code": run.code,
            "seconds": run.to_ns.map(|to_ns| to_ns.saturating_sub(run.from_ns) as f64 / 1e9),
        })).collect::<Vec<_>>(),
        "watched": card.watched.iter().map(|of| json!({
            "name": of.name, "role": of.role, "threads": of.threads,
        })).collect::<Vec<_>>(),
        "busy_s": card.busy_s,
        "basis": card.basis.as_ref().map(pair::basis_json),
        "jitter": card.jitter,
        "moves": card.moves.map(|moves| json!({
            "per_s": moves.per_s, "by_class": moves.by_class, "evidence": moves.evidence.word(),
        })),
        "reported": super::reported::json(card),
        "round_trips": super::round_trips::json(card),
        "drops": card.drops.as_ref().map(|drops| json!({
            "links": drops.by_links(),
            "softnet": drops.softnet,
            "qdiscs": drops.on_path().map(|on_path| on_path.qdiscs),
            "sockets": drops.on_path().map(|on_path| on_path.sockets),
            "protocols": drops.on_path().map(|on_path| on_path.protocols),
            "by_link": drops.links().iter().map(|(name, packets)| json!({ "name": name, "packets": packets }))
                .collect::<Vec<_>>(),
        })),
        "findings": card.findings.iter().map(finding).collect::<Vec<_>>(),
        "proposal": card.proposal.as_ref().map(proposal),
        "comparison": card.comparison.as_ref().map(|both| comparison(both, asked.settle_ns as f64 / 1e9)),
        "search": card.search.as_ref().map(|search| super::search::json(card, search)),
        "limits": card.limits.iter().map(|limit| json!({
            "name": limit.word(), "limit": limit.most(), "measured": limit.measured(), "broken": limit.is_broken(),
        })).collect::<Vec<_>>(),
        "missing": card.missing,
    });
    object.to_string() + "\n"
}

fn finding(seen: &Seen) -> Value {
    let numbers = Numbers(&seen.finding.numbers);
    json!({ "id": seen.finding.id.word(), "text": seen.finding.text, "numbers": numbers, "seconds": seen.seconds })
}

fn proposal(proposal: &Result<Proposal, String>) -> Value {
    match proposal {
        Ok(proposal) => json!({
            "steps": proposal.steps.iter().zip(proposal.taskset_lines()).map(|(step, taskset)| json!({
                "pid": step.thread.pid, "tid": step.thread.tid, "label": step.label, "core": step.core,
                "old": step.old, "reason": step.reason, "taskset": taskset,
            })).collect::<Vec<_>>(),
            "doubt": proposal.doubt,
            "reasons": proposal.reasons,
            "refused": null,
        }),
        Err(sentence) => json!({ "steps": [], "doubt": null, "reasons": [], "refused": sentence }),
    }
}

fn comparison(both: &PinComparison, settle_s: f64) -> Value {
    let side =
        |side: &CardSide| json!({ "jitter": side.jitter, "moves_per_s": side.moves_per_s, "other_cores": side.others });
    let card = both.card.as_ref();
    json!({
        "unpinned_stretches": card.map_or(0, Card::pairs),
        "pinned_stretches": card.map_or(0, Card::pairs),
        "pairs": card.map_or(0, Card::pairs),
        "phases": card.map_or_else(Vec::new, pair::phases_json),
        "unpinned": card.map(|card| side(&card.before)),
        "pinned": card.map(|card| side(&card.after)),
        "mean_difference_bits_per_s": card.map(|card| card.mean),
        "cv_difference": card.and_then(|card| card.cv),
        "verdict": card.map(|card| card.verdict.word()),
        "text": card.map(Card::sentence),
        "method": card.map(|card| card.method(settle_s)),
        "pins": pair::pins_json(&both.pins),
    })
}
