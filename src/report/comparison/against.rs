//! Two comparisons beside each other: another kernel, another machine, another day.

use super::cells::{UNKNOWN, change, unit, with_interval};
use crate::derive::comparison::{LoadTable, PathRow, PathVerdict, tables};
use crate::report::document::{Block, ReportTable};
use crate::report::timestamp;
use crate::sample::{Comparison, Word};

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
                &["PATH", "VERDICT", ">NOW (99 %)", ">EARLIER (99 %)", ">CHANGE (99 %)"],
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
    let then = &old.rows.iter().find(|other| other.name == row.name)?.unpinned.as_ref()?.rate;
    let now = &row.unpinned.as_ref()?.rate;
    let (scale, against) = (unit(old.load).0, now.against(then));
    let verdict = against.map_or("one round, no interval", |of| PathVerdict::from(of).word());
    let change = (then.mean > 0.0).then(|| change(now.mean / then.mean - 1.0, against));
    Some(vec![
        row.name.clone(),
        verdict.to_owned(),
        with_interval(now, scale),
        with_interval(then, scale),
        change.unwrap_or_else(|| UNKNOWN.to_owned()),
    ])
}
