//! The recordings as one JSON object. Rates are bits a second, shares 0..1, times seconds from the first sample; what is not
//! known is null.

use super::words::test_title;
use super::{ReportOptions, ReportedRecording};
use crate::derive::profile::{RulesOnLink, StageShare};
use crate::derive::run::Seen;
use crate::derive::summary::{
    CoreSummary, HopSummary, LinkSummary, LossSummary, PathSummary, ProfileSummary, StageSummary, ThreadSummary,
    TreatedTime,
};
use crate::derive::{RecordingSummary, TestSummary};
use crate::report::json::{InJson, Numbers};
use crate::report::timestamp;
use crate::report::{Format, run};
use crate::sample::Word;
use serde_json::{Value, json};

/// Raised when a field changes its meaning or goes away; new fields do not raise it.
const SCHEMA_VERSION: u32 = 1;

/// The object and its end of line.
pub(super) fn object(recordings: &[ReportedRecording], options: ReportOptions) -> String {
    let object = json!({
        "schema_version": SCHEMA_VERSION,
        "vnettop": env!("CARGO_PKG_VERSION"),
        "anonymised": options.anonymised,
        "recordings": recordings.iter().map(recording).collect::<Vec<_>>(),
    });
    object.to_string() + "\n"
}

fn recording(recording: &ReportedRecording) -> Value {
    let card = recording.run.as_ref().map(|card| run::card(card, Format::Json));
    json!({
        "name": recording.name,
        "recorded_by": recording.recorded_by,
        "notes": recording.notes,
        "verdict": super::headline_of(recording),
        "run": card.and_then(|card| serde_json::from_str::<Value>(&card).ok()),
        "summary": recording.summary.as_ref().map(summary),
    })
}

fn summary(of: &RecordingSummary) -> Value {
    let (host, topology) = (&of.facts.host, &of.facts.topology);
    json!({
        "ts": timestamp(of.begin_wall_ms),
        "seconds": of.seconds(),
        "samples": of.samples,
        "interval_s": of.interval_ns as f64 / 1e9,
        "late_ticks": of.late_ticks,
        "left_out": of.left_out,
        "own_cpu": of.own_cpu,
        "restarts": of.restarts,
        "host": {
            "name": host.name, "kernel": host.kernel, "arch": host.arch, "policy": host.policy,
            "cores": topology.cores.len(), "nodes": topology.nodes, "isolated": topology.isolated,
        },
        "saved": of.saved.map(|saved| json!({ "after_s": saved.after_s, "trigger": saved.trigger.map(Word::word) })),
        "column_s": of.columns.seconds(),
        "tests": of.tests.iter().map(|test| one_test(of, test)).collect::<Vec<_>>(),
        "tests_left_out": of.tests_left_out,
        "threads": of.threads.iter().map(thread).collect::<Vec<_>>(),
        "threads_left_out": of.threads_left_out,
        "cores": of.cores.iter().map(core).collect::<Vec<_>>(),
        "profiles": of.profiles.iter().map(profile).collect::<Vec<_>>(),
        "links": of.links.iter().map(link).collect::<Vec<_>>(),
        "problems": of.facts.problems,
    })
}

fn profile(of: &ProfileSummary) -> Value {
    let stage = |stage: &StageShare| {
        let functions = stage.functions.iter().map(|(name, share)| json!({ "name": name, "share": share }));
        json!({
            "stage": stage.stage.word(), "program": stage.program, "share": stage.share,
            "ns_per_packet": stage.ns_per_packet(of.packets_per_s), "functions": functions.collect::<Vec<_>>(),
        })
    };
    let rules = |on: &RulesOnLink| {
        json!({
            "netns": on.counted.link.netns, "ifindex": on.counted.link.ifindex, "link": on.name, "rules": on.counted.rules,
            "gap": on.counted.gap,
        })
    };
    json!({
        "core": of.core, "seconds": of.seconds, "samples": of.samples, "lost": of.lost,
        "packets_per_s": of.packets_per_s, "rules": of.rules.iter().map(rules).collect::<Vec<_>>(),
        "stages": of.stages.iter().map(stage).collect::<Vec<_>>(),
    })
}

fn one_test(of: &RecordingSummary, test: &TestSummary) -> Value {
    let at = |ns| of.columns.at_s(ns);
    let (own, treated) = (test.test.as_ref(), test.treated());
    let card = own.and_then(|test| test.metrics.card.as_ref().map(|card| InJson(card, &test.metrics)));
    let bin = |bin: &crate::derive::Bin| {
        json!([at(bin.from_ns), at(bin.to_ns), bin.bits_per_s, bin.moves.all() as f64 + bin.unclassed])
    };
    let done = |done: &crate::derive::timeline::Incident| json!({ "at_s": at(done.at_ns), "kind": done.kind.word(), "count": done.count });
    json!({
        "number": own.map(|test| test.number),
        "title": test_title(test),
        "from_s": at(test.from_ns),
        "to_s": at(test.to_ns),
        "runs": test.runs,
        "basis": test.rate.basis.as_ref().map(crate::derive::FlowBasis::word),
        "mean_bits_per_s": test.mean_bits_per_s,
        "jitter": test.rate.jitter,
        "unpinned": treated.map(|both| treated_time(&both[0])),
        "pinned": treated.map(|both| treated_time(&both[1])),
        "moves_per_s": test.rate.moves_per_s,
        "moves_by_class": test.rate.moves_by_class,
        "lost_packets": test.lost,
        "losses": test.losses.iter().map(loss).collect::<Vec<_>>(),
        "retransmits": test.retransmits,
        "limits": test.limits.iter().map(|seen| json!({
            "limit": seen.limit.kind.word(), "text": seen.limit.text, "numbers": Numbers(&seen.limit.numbers), "seconds": seen.seconds,
        })).collect::<Vec<_>>(),
        "findings": test.findings.iter().map(finding).collect::<Vec<_>>(),
        "events": test.incidents.iter().map(done).collect::<Vec<_>>(),
        "card": card,
        "paths": test.paths.iter().map(path).collect::<Vec<_>>(),
        "latency": test.stages.iter().map(stage).collect::<Vec<_>>(),
        // From, to, bits/s, migrations.
        "bins": test.rate.bins.iter().map(bin).collect::<Vec<_>>(),
        "lost_columns": test.lost_columns,
        "asked_bits_per_s": test.asked_bits_per_s,
        "sent_bits_per_s": test.sent_bits_per_s,
        "own_retransmits": test.own_retransmits,
        "own_retransmit_share": test.own_retransmit_share,
        "retransmit_columns": test.retransmit_columns,
    })
}

fn treated_time(of: &TreatedTime) -> Value {
    json!({
        "seconds": of.seconds, "mean_bits_per_s": of.mean_bits_per_s, "jitter": of.jitter, "moves_per_s": of.moves_per_s,
    })
}

fn loss(loss: &LossSummary) -> Value {
    json!({
        "place": loss.place.word(), "netns": loss.netns, "ifindex": loss.link.map(|link| link.ifindex), "name": loss.name, "core": loss.core, "reason": loss.reason, "function": loss.function,
        "packets": loss.packets,
    })
}

fn finding(seen: &Seen) -> Value {
    let of = &seen.finding;
    json!({ "id": of.id.word(), "text": of.text, "numbers": Numbers(&of.numbers), "seconds": seen.seconds })
}

fn path(path: &PathSummary) -> Value {
    let hop = |hop: &HopSummary| {
        json!({
            "netns": hop.link.netns, "ifindex": hop.link.ifindex, "name": hop.name, "kind": hop.kind.as_ref().map(crate::sample::Kind::word),
            "owner": hop.owner, "way": hop.way.word(), "by": hop.by.word(), "mtu": hop.mtu, "claim_mbps": hop.claim_mbps,
            "claim_basis": hop.basis.word(), "mean_bits_per_s": hop.bits_per_s, "dropped": hop.dropped,
            "lost": hop.lost,
        })
    };
    json!({ "hops": path.hops.iter().map(hop).collect::<Vec<_>>(), "gap": path.gap, "note": path.note })
}

fn stage(of: &StageSummary) -> Value {
    let us = |seconds: f64| seconds * 1e6;
    // Each power of two by its end, us, and how many.
    let buckets: Vec<(f64, u64)> =
        of.times.powers_of_two().into_iter().map(|(to_s, count)| (us(to_s), count)).collect();
    json!({
        "stage": of.key.stage.word(), "of_answers": of.key.is_back, "place": of.place,
        "figures": of.times.spread().map(|spread| json!({
            "count": spread.count, "mean_us": us(spread.mean_s), "p50_us": us(spread.p50_s), "p99_us": us(spread.p99_s),
            "max_us": us(spread.max_s),
        })),
        "buckets": buckets,
    })
}

fn thread(of: &ThreadSummary) -> Value {
    json!({
        "pid": of.id.pid, "tid": of.id.tid, "name": of.name, "role": of.role, "test": of.test, "cpu": of.cpu, "wait": of.wait,
        "moves": of.moves, "moves_by_class": of.by_class, "moves_evidence": of.evidence.word(), "seconds": of.seconds,
        "pinned": of.pinned,
        // By column of time: the core, or null.
        "cores": of.columns.iter().map(|column| column.core()).collect::<Vec<_>>(),
    })
}

fn core(of: &CoreSummary) -> Value {
    let hundredths = |share: Option<f64>| share.map(|share| (share * 100.0).round() / 100.0);
    json!({
        "core": of.place.core, "node": of.place.node, "busy": of.whole.busy, "softirq": of.whole.softirq,
        "net_rx_per_s": of.whole.net_rx_per_s, "backlog_drops": of.whole.backlog_drops, "squeezes": of.whole.squeezes,
        "busy_columns": of.columns.iter().map(|column| hundredths(column.busy())).collect::<Vec<_>>(),
        "softirq_columns": of.columns.iter().map(|column| hundredths(column.softirq())).collect::<Vec<_>>(),
    })
}

fn link(of: &LinkSummary) -> Value {
    json!({
        "netns": of.facts.netns, "ifindex": of.facts.ifindex, "name": of.facts.name, "kind": of.facts.kind.word(),
        "owner": of.owner.as_ref().map(|owner| &owner.name), "claim_mbps": of.facts.speed_mbps, "claim_basis": of.basis.word(),
        "seconds": of.seconds, "rx_bits_per_s": of.rx_bits_per_s, "tx_bits_per_s": of.tx_bits_per_s, "dropped": of.dropped,
    })
}
