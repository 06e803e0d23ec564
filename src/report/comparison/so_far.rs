//! What is known of a path after each of its rounds, in one line: the comparison goes on.

use super::cells::{change, interval, unit};
use crate::derive::comparison::{LoadTable, PathRow, tables};
use crate::report::figures::{digits, small_digits};
use crate::sample::{Comparison, Treatment, Word};
use strum::VariantArray;

/// `round 2 of 3, veth: TCP, 1 stream 22.6 Gbit/s (99 % interval: 19.6 to 26.0), pinned +4.2 % (−8.6 to +18.8)`; `None` where nothing came of the path yet.
#[must_use]
pub fn so_far(comparison: &Comparison, name: &str, round: u32) -> Option<String> {
    let known = tables(comparison);
    let of_path = |table: &LoadTable| Some(load(table, table.rows.iter().find(|row| row.name == name)?));
    let loads: Vec<String> = known.iter().filter_map(of_path).flatten().collect();
    (!loads.is_empty()).then(|| format!("round {round} of {}, {name}: {}", comparison.plan.rounds, loads.join("; ")))
}

fn load(table: &LoadTable, row: &PathRow) -> Option<String> {
    let (scale, unit) = unit(table.load);
    let unpinned = row.unpinned.as_ref()?;
    let (mean, range) = (small_digits(unpinned.rate.mean / scale), interval(&unpinned.rate, scale));
    let range = range.map_or_else(String::new, |range| format!(" (99 % interval: {range})"));
    let mut parts = vec![format!("{} {mean} {unit}{range}", table.load.label())];
    let gains = Treatment::VARIANTS.iter().filter_map(|treatment| Some((treatment, row.gain_of(*treatment)?)));
    parts.extend(gains.map(|(treatment, gain)| format!("{} {}", treatment.word(), change(gain.mean, gain.interval))));
    let trips = unpinned.round_trips.as_ref();
    parts.extend(
        trips.map(|of| format!("round trip p50 {} us, p99 {} us", digits(of.p50_us.mean), digits(of.p99_us.mean))),
    );
    Some(parts.join(", "))
}
