//! A comparison as one JSON object: what was measured, which is read back, and the tables made of it, which are made again then. The schema
//! is `assets/compare/schema.json`.

use super::NoComparison;
use crate::derive::comparison::{Estimate, PinningGain, RoundTripFigures, SideFigures, tables};
use crate::sample::{COMPARISON_VERSION, Comparison, Measurement, RoundTrips, Word};
use serde_json::{Value, json};

pub(super) fn json(comparison: &Comparison) -> String {
    let Ok(Value::Object(mut object)) = serde_json::to_value(comparison) else { return String::new() };
    let units: serde_json::Map<String, Value> =
        comparison.plan.loads.iter().map(|load| (load.word().to_owned(), load.unit().into())).collect();
    object.insert("units".to_owned(), units.into());
    let rows = |table: &crate::derive::comparison::LoadTable| {
        let row = |row: &crate::derive::comparison::PathRow| {
            json!({
                "path": row.name,
                "place": row.place.map(|(best, worst)| [best, worst]),
                "idle_round_trips": row.idle.as_ref().map(round_trips),
                "unpinned": row.unpinned.as_ref().map(side),
                "pinned": row.pinned.as_ref().map(side),
                "steered": row.steered.as_ref().map(side),
                "steer_alone": row.steer_alone.as_ref().map(side),
                "gain": row.gain.as_ref().map(gain),
                "steered_gain": row.steered_gain.as_ref().map(gain),
                "steer_alone_gain": row.steer_alone_gain.as_ref().map(gain),
            })
        };
        json!({
            "load": table.load.word(),
            "rows": table.rows.iter().map(row).collect::<Vec<_>>(),
            "no_difference": table.groups.same,
            "inconclusive": table.groups.open,
        })
    };
    object.insert("tables".to_owned(), tables(comparison).iter().map(rows).collect());
    format!("{}\n", Value::Object(object))
}

fn side(side: &SideFigures) -> Value {
    json!({
        "rate": estimate(&side.rate),
        "cv": side.cv,
        "moves_per_s": side.moves_per_s,
        "busy_cores": side.busy_cores,
        "softirq_cores": side.softirq_cores,
        "lost_share": side.lost_share,
        "retransmits": side.retransmits,
        "round_trips": side.round_trips.as_ref().map(round_trips),
    })
}

fn round_trips(of: &RoundTripFigures) -> Value {
    json!({ "p50_us": estimate(&of.p50_us), "p99_us": estimate(&of.p99_us) })
}

fn estimate(estimate: &Estimate) -> Value {
    json!({
        "mean": estimate.mean,
        "rounds": estimate.rounds.len(),
        "deviation": estimate.deviation(),
        "interval": estimate.interval.map(|of| [of.from, of.to]),
    })
}

fn gain(gain: &PinningGain) -> Value {
    json!({
        "mean": gain.mean,
        "rounds": gain.rounds,
        "interval": gain.interval.map(|of| [of.from, of.to]),
        "verdict": gain.verdict().map(Word::word),
    })
}

pub(super) fn read(text: &[u8]) -> Result<Comparison, NoComparison> {
    let value: Value = serde_json::from_slice(text).map_err(|_| NoComparison::Foreign)?;
    match value["vnettop_comparison"].as_u64() {
        Some(version) if version == u64::from(COMPARISON_VERSION) => {}
        Some(version) => return Err(NoComparison::Version(version)),
        None => return Err(NoComparison::Foreign),
    }
    let mut comparison: Comparison = serde_json::from_value(value)
        .map_err(|error| NoComparison::Damaged(crate::text::clean(error.to_string().as_bytes())))?;
    if let Some(wrong) = impossible(&comparison) {
        return Err(NoComparison::Damaged(format!("{wrong} is impossible")));
    }
    clean(&mut comparison);
    Ok(comparison)
}

/// A figure that nothing can have measured.
fn impossible(comparison: &Comparison) -> Option<&'static str> {
    let is_figure = |value: f64| (0.0..=1e18).contains(&value);
    let is_known = |value: Option<f64>| value.is_none_or(is_figure);
    let is_time = |value: f64| (0.0..=1e7).contains(&value);
    let plan = &comparison.plan;
    if !is_time(plan.seconds) || !is_time(plan.warm_up_s) || plan.rounds == 0 {
        return Some("its plan");
    }
    let is_answered = |of: RoundTrips| {
        [of.mean_us, of.p50_us, of.p99_us, of.max_us].into_iter().all(|time| is_figure(time) && time > 0.0)
    };
    let wrong = |one: &Measurement| {
        let figures = [one.rate, one.seen_bits_per_s, one.cv, one.moves_per_s];
        let cores = [one.busy_cores, one.softirq_cores, one.others_cores];
        let is_right = figures.into_iter().chain(cores).all(is_known)
            && one.seconds.is_none_or(is_time)
            && is_time(one.at_s)
            && [one.round_trips, one.idle_round_trips].into_iter().flatten().all(is_answered)
            && one.lost_share.is_none_or(|share| (0.0..=1.0).contains(&share))
            && one.round > 0;
        !is_right
    };
    let measured = comparison.paths.iter().flat_map(|path| &path.measurements);
    measured.into_iter().any(wrong).then_some("a figure of a measurement")
}

/// A file is outside input: what could steer a screen is taken out of every text that is shown.
fn clean(comparison: &mut Comparison) {
    let clean = |text: &mut String| *text = crate::text::clean(text.as_bytes());
    clean(&mut comparison.vnettop);
    let mut seen = Vec::new();
    comparison.plan.loads.retain(|load| {
        !seen.contains(load) && {
            seen.push(*load);
            true
        }
    });
    let host = &mut comparison.machine.host;
    [&mut host.name, &mut host.kernel, &mut host.arch].into_iter().for_each(clean);
    let plan = &mut comparison.plan;
    let optional =
        [&mut comparison.machine.processor, &mut host.policy.governor, &mut plan.iperf3, &mut plan.unsteered];
    optional.into_iter().flatten().for_each(clean);
    for path in &mut comparison.paths {
        [&mut path.name, &mut path.what].into_iter().chain(&mut path.skipped).for_each(clean);
        for link in &mut path.links {
            [&mut link.name, &mut link.kind, &mut link.basis].into_iter().for_each(clean);
        }
        for one in &mut path.measurements {
            [&mut one.sender].into_iter().chain(&mut one.missing).for_each(clean);
            one.pins.iter_mut().map(|pin| &mut pin.thread).for_each(clean);
            let steers = one.steers.iter_mut();
            steers.flat_map(|steer| [&mut steer.link, &mut steer.setting, &mut steer.value]).for_each(clean);
        }
    }
}
