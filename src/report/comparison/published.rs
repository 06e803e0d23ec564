//! What others have published of the same paths, shipped with the program, beside this machine's figures.

use crate::derive::comparison::LoadTable;
use crate::report::document::{Block, ListItem, ReportTable};
use crate::report::figures::{digits, small_digits};
use crate::sample::Load;
use serde::Deserialize;

const PUBLISHED: &str = include_str!("../../../assets/compare/published.json");

/// The path that stands here for the network between two hosts.
const WIRE: &str = "veth";

/// One publication.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Publication {
    /// Its address; none where it is not known any more.
    source: Option<String>,
    hardware: String,
    system: String,
    rows: Vec<PublishedRow>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct PublishedRow {
    path: String,
    what: String,
    /// Measured with the ends pinned: this machine's pinned rate stands beside it.
    #[serde(default)]
    pinned: bool,
    least_gbit_per_s: Option<f64>,
    most_gbit_per_s: Option<f64>,
    share_of_host: Option<f64>,
}

impl PublishedRow {
    fn figure(&self) -> String {
        match (self.least_gbit_per_s, self.most_gbit_per_s, self.share_of_host) {
            (Some(least), Some(most), _) if least < most => format!("{}–{}", digits(least), digits(most)),
            (Some(only), ..) | (_, Some(only), _) => digits(only),
            (_, _, Some(share)) => format!("{} % of the host's", digits(share * 100.0)),
            _ => "–".to_owned(),
        }
    }
}

/// Published rates of the paths that were measured here, beside this machine's; empty when no publication has such a path.
pub(super) fn blocks(tables: &[LoadTable]) -> Vec<Block> {
    let publications: Vec<Publication> = serde_json::from_str(PUBLISHED).unwrap_or_default();
    let rate = |path: &str, pinned: bool| {
        let table = tables.iter().find(|table| table.load == Load::Tcp)?;
        let row = table.rows.iter().find(|row| row.name == path)?;
        let side = if pinned { &row.pinned } else { &row.unpinned };
        Some(side.as_ref()?.rate.mean).filter(|mean| *mean > 0.0)
    };
    let here =
        |published: &PublishedRow| {
            let own = rate(&published.path, published.pinned)?;
            let wire = published.share_of_host.and_then(|_| rate(WIRE, published.pinned));
            Some(wire.map_or_else(
                || small_digits(own / 1e9),
                |wire| format!("{} % of {WIRE}'s", digits(own / wire * 100.0)),
            ))
        };
    let (mut rows, mut sources) = (Vec::new(), Vec::new());
    for publication in &publications {
        let before = rows.len();
        for row in &publication.rows {
            let Some(here) = here(row) else { continue };
            rows.push(vec![row.path.clone(), row.what.clone(), here, row.figure(), publication.hardware.clone()]);
        }
        if rows.len() > before {
            let source = publication.source.as_deref().unwrap_or("its page is not known any more");
            let text = format!("{}: {}", publication.hardware, publication.system);
            sources.push(ListItem { text, aside: source.to_owned() });
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = ["PATH", "PUBLISHED AS", ">HERE", ">PUBLISHED", "HARDWARE"];
    vec![
        Block::Heading("Published by others, for scale".to_owned()),
        Block::Table(ReportTable::new("TCP, Gbit/s", &columns, rows)),
        Block::List(sources),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shipped_can_be_read_and_names_paths_that_there_are() {
        let publications: Vec<Publication> = serde_json::from_str(PUBLISHED).expect("the shipped file");
        assert!(publications.len() >= 3);
        for row in publications.iter().flat_map(|publication| &publication.rows) {
            assert!(
                crate::networks::NetworkKind::named(&row.path).is_some(),
                "{} is a path of vnettop compare",
                row.path
            );
            assert_ne!(row.figure(), "–", "{} has a figure", row.what);
        }
    }
}
