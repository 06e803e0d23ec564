//! What pinning and steering changed, beside the unpinned rate: a table of its own for TCP, and sentences.

use super::cells::{UNKNOWN, and, change, cpu_unit, unit};
use super::treatment_words::{is_apart, measured};
use crate::derive::comparison::{LoadTable, PathRow, PathVerdict, SideFigures};
use crate::report::document::ReportTable;
use crate::report::figures::{digits, small_digits};
use crate::sample::{Comparison, Treatment, Word};

/// Each path with each treatment; none where that stands beside the unpinned rate.
pub(super) fn table(comparison: &Comparison, table: &LoadTable) -> Option<ReportTable> {
    if !is_apart(table) {
        return None;
    }
    let mut treatments = measured(comparison, table);
    treatments.insert(0, Treatment::Unpinned);
    let (rate, cpu) = (format!(">{}", unit(table.load).1), cpu_unit(table.load));
    let columns = ["PATH", "TREATMENT", &rate, ">GAIN (99 %)", ">RETRANS", cpu.1];
    let rows = table.rows.iter().flat_map(|row| {
        let there: Vec<_> = treatments.iter().filter_map(|of| Some((*of, row.side(*of)?))).collect();
        there.into_iter().map(|(of, side)| cells(table, row, of, side))
    });
    let caption = format!("{}, by treatment", table.load.label());
    Some(ReportTable::new(&caption, &columns, rows.collect()))
}

fn cells(table: &LoadTable, row: &PathRow, treatment: Treatment, side: &SideFigures) -> Vec<String> {
    let (scale, (cpu, ..)) = (unit(table.load).0, cpu_unit(table.load));
    let gain = row.gain_of(treatment).map(|gain| change(gain.mean, gain.interval));
    let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
    vec![
        row.name.clone(),
        treatment.word().to_owned(),
        small_digits(side.rate.mean / scale),
        if treatment == Treatment::Unpinned { String::new() } else { known(gain) },
        known(side.retransmits.map(digits)),
        known(side.cpu_s_each(side.busy_cores).map(|each| digits(each * cpu))),
    ]
}

/// Where each treatment changed the rate, where not, and where that is not known.
pub(super) fn gains(table: &LoadTable) -> Vec<String> {
    let of = [
        ("Pinning", Treatment::Pinned),
        ("Pinning and steering", Treatment::PinnedAndSteered),
        ("Steering alone", Treatment::Steered),
    ];
    of.into_iter().filter_map(|(what, treatment)| gain(table, what, treatment)).collect()
}

fn gain(table: &LoadTable, what: &str, treatment: Treatment) -> Option<String> {
    let part = |(verdict, says): (PathVerdict, &str)| {
        let is = |row: &&PathRow| row.gain_of(treatment).is_some_and(|gain| gain.verdict() == Some(verdict));
        let names: Vec<&str> = table.rows.iter().filter(is).map(|row| row.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{says} {}", and(&names)))
    };
    let parts: Vec<String> = [
        (PathVerdict::Faster, "raised the rate of"),
        (PathVerdict::Slower, "lowered the rate of"),
        (PathVerdict::NoDifference, "makes no difference (within 3 %) for"),
        (PathVerdict::Inconclusive, "is inconclusive for"),
    ]
    .into_iter()
    .filter_map(part)
    .collect();
    (!parts.is_empty()).then(|| format!("{what} {}", parts.join("; it ")))
}
