//! A comparison as one JSON object: what was measured, which is read back, and the tables made of it, which are made again then. The schema
//! is `assets/compare/schema.json`.

use super::NoComparison;
use crate::derive::comparison::{Estimate, SideFigures, tables};
use crate::sample::{COMPARISON_VERSION, Comparison, Word};
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
                "unpinned": row.unpinned.as_ref().map(side),
                "pinned": row.pinned.as_ref().map(side),
                "gain": row.gain.as_ref().map(estimate),
            })
        };
        json!({"load": table.load.word(), "rows": table.rows.iter().map(row).collect::<Vec<_>>()})
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
    })
}

fn estimate(estimate: &Estimate) -> Value {
    json!({
        "mean": estimate.mean,
        "rounds": estimate.rounds,
        "deviation": estimate.deviation,
        "interval": estimate.interval.map(|(from, to)| [from, to]),
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
    clean(&mut comparison);
    Ok(comparison)
}

/// A file is outside input: what could steer a screen is taken out of every text that is shown.
fn clean(comparison: &mut Comparison) {
    let clean = |text: &mut String| *text = crate::text::clean(text.as_bytes());
    let host = &mut comparison.machine.host;
    [&mut host.name, &mut host.kernel, &mut host.arch].into_iter().for_each(clean);
    let optional = [&mut comparison.machine.processor, &mut host.policy.governor, &mut comparison.plan.iperf3];
    optional.into_iter().flatten().for_each(clean);
    for path in &mut comparison.paths {
        [&mut path.name, &mut path.what].into_iter().chain(&mut path.skipped).for_each(clean);
        path.measurements.iter_mut().filter_map(|one| one.missing.as_mut()).for_each(clean);
    }
}
