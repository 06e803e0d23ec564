//! How long an answer takes on each path, idle and beside each load: a table of its own.

use super::cells::UNKNOWN;
use super::treatment_words::measured;
use crate::derive::comparison::{Estimate, LoadTable, PathRow, RoundTripFigures};
use crate::report::document::ReportTable;
use crate::report::figures::{digits, rate_range};
use crate::sample::{Comparison, Treatment, Word};

/// Each path while it is idle, then with each treatment of the load; none where nobody asked.
pub(super) fn table(comparison: &Comparison, table: &LoadTable) -> Option<ReportTable> {
    let mut treatments = measured(comparison, table);
    treatments.insert(0, Treatment::Unpinned);
    let rows: Vec<Vec<String>> = table.rows.iter().flat_map(|row| cells(row, &treatments)).collect();
    let columns = ["PATH", "WHILE", ">p50 us", ">99 % INTERVAL", ">p99 us", ">99 % INTERVAL"];
    let caption = format!("Round trip of 1 byte over TCP, idle and beside {}", table.load.label());
    (!rows.is_empty()).then(|| ReportTable::new(&caption, &columns, rows))
}

fn cells(row: &PathRow, treatments: &[Treatment]) -> Vec<Vec<String>> {
    let of_load =
        treatments.iter().filter_map(|of| Some((of.word(), row.side(*of)?.round_trips.as_ref()?))).collect::<Vec<_>>();
    if of_load.is_empty() {
        return Vec::new();
    }
    let idle = row.idle.iter().map(|figures| ("idle", figures));
    idle.chain(of_load).map(|(what, figures)| line(&row.name, what, figures)).collect()
}

fn line(path: &str, what: &str, figures: &RoundTripFigures) -> Vec<String> {
    let RoundTripFigures { p50_us, p99_us } = figures;
    let cells = [p50_us, p99_us].into_iter().flat_map(|one| [digits(one.mean), interval(one)]);
    [path.to_owned(), what.to_owned()].into_iter().chain(cells).collect()
}

/// `28.6 to 33.6`; unknown of one round.
fn interval(estimate: &Estimate) -> String {
    estimate.interval.map_or_else(|| UNKNOWN.to_owned(), |of| rate_range([of.estimate, of.from, of.to], digits))
}
