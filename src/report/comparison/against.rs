//! Two comparisons beside each other: another kernel, another machine, another day.

use super::cells::{UNKNOWN, unit, with_half};
use crate::derive::comparison::{Estimate, LoadTable, PathRow, tables};
use crate::report::document::{Block, ReportTable};
use crate::report::figures::signed_digits;
use crate::report::timestamp;
use crate::sample::Comparison;

/// What both have measured, unpinned.
pub(super) fn blocks(now: &Comparison, earlier: &Comparison) -> Vec<Block> {
    let host = &earlier.machine.host;
    let when = timestamp(earlier.began_ms);
    let mut blocks =
        vec![Block::Heading(format!("Against {}, Linux {} {}, {when}, unpinned", host.name, host.kernel, host.arch))];
    let before = tables(earlier);
    for table in tables(now) {
        let Some(old) = before.iter().find(|old| old.load == table.load) else { continue };
        let rows: Vec<Vec<String>> = table.rows.iter().filter_map(|row| cells(row, old)).collect();
        if !rows.is_empty() {
            let caption = format!("{}, {}", table.load.label(), unit(table.load).1);
            blocks.push(Block::Table(ReportTable::new(
                &caption,
                &["PATH", "VERDICT", ">NOW ±", ">EARLIER ±", ">CHANGE"],
                rows,
            )));
        }
    }
    if blocks.len() == 1 {
        blocks.push(Block::Text("It measured none of these paths under the same load".to_owned()));
    }
    blocks
}

fn cells(row: &PathRow, old: &LoadTable) -> Option<Vec<String>> {
    let rate = |row: &PathRow| row.unpinned.as_ref().map(|side| side.rate);
    let then = old.rows.iter().find(|other| other.name == row.name).and_then(rate)?;
    let now = rate(row)?;
    let scale = unit(old.load).0;
    let change = (then.mean > 0.0).then(|| format!("{} %", signed_digits((now.mean / then.mean - 1.0) * 100.0)));
    Some(vec![
        row.name.clone(),
        verdict(&now, &then).to_owned(),
        with_half(&now, scale),
        with_half(&then, scale),
        change.unwrap_or_else(|| UNKNOWN.to_owned()),
    ])
}

fn verdict(now: &Estimate, then: &Estimate) -> &'static str {
    match now.differs_from(then) {
        None => "one round, no interval",
        Some(false) => "no difference",
        Some(true) if now.is_above(then) => "faster",
        Some(true) => "slower",
    }
}
