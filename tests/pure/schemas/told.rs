//! What fields are, in the words of docs/json.md and docs/recordings.md: their tables say it once, and the schemas repeat them.

use super::described::descriptions;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where the fields of a definition are described.
const HEADINGS: &[(&str, &str)] = &[
    ("Metrics", "## The object"),
    ("OfHost", "## The object"),
    ("EndToEndObject", "### end_to_end"),
    ("OwnCost", "### own"),
    ("Tracer", "### tracer"),
    ("OvsSwitch", "### ovs"),
    ("StandingSteer", "### steers"),
    ("Card", "### card"),
    ("LinkMetrics", "### links"),
    ("CoreMetrics", "### cores"),
    ("ThreadRow", "### threads"),
    ("HopMetrics", "### a hop of path"),
    ("HopMetricsOfHost", "### a hop of path"),
    ("DatagramTest", "### datagrams"),
    ("Benchmark", "### benchmarks"),
    ("Drop", "### drops"),
    ("CoreActivity", "### profile"),
    ("StageOfCore", "### profile"),
    ("LostPackets", "### losses"),
    ("Loss", "### losses"),
    ("Test", "### tests"),
    ("Connection", "### flows"),
    ("TestLatency", "### latency"),
    ("StageLatency", "### latency"),
    ("LatencyCause", "### latency"),
    ("Limit", "### limit"),
];

/// Longer ones are cut after a part of a sentence: the page has the rest.
const LONGEST: usize = 200;

/// What a page says.
pub struct Page {
    /// Heading and field → its row.
    rows: BTreeMap<(String, String), String>,
    /// The page of recordings, where each definition has a heading of its name.
    is_of_recordings: bool,
}

impl Page {
    pub fn of_json() -> Self {
        Self { rows: rows("docs/json.md"), is_of_recordings: false }
    }

    pub fn of_recordings() -> Self {
        let rows = rows("docs/recordings.md").into_iter().filter_map(|((heading, field), row)| {
            let told = row.split_once(" | ")?.1.to_owned();
            Some(((heading.trim_start_matches(['#', ' ']).to_owned(), field), told))
        });
        Self { rows: rows.collect(), is_of_recordings: true }
    }

    /// What a field of a definition is; none where nobody says more than its name does.
    pub fn told(&self, definition: &str, field: &str) -> Option<String> {
        if self.is_of_recordings {
            return self.rows.get(&(definition.to_owned(), field.to_owned())).map(|row| short(row));
        }
        let described = descriptions();
        if let Some(fields) = described.get(definition) {
            let told = fields.iter().find(|[name, ..]| *name == field)?[2];
            return (!told.is_empty()).then(|| told.to_owned());
        }
        let heading = HEADINGS.iter().find(|(name, _)| *name == definition)?.1;
        let told = self.rows.get(&(heading.to_owned(), field.to_owned()))?;
        (!told.starts_with("see below") && *told != "the same").then(|| short(told))
    }
}

/// The rows of a page's tables by heading and field.
fn rows(page: &str) -> BTreeMap<(String, String), String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let (mut rows, mut heading) = (BTreeMap::new(), String::new());
    for line in fs::read_to_string(file).expect("the page").lines() {
        if line.starts_with('#') {
            line.clone_into(&mut heading);
        }
        let Some((names, told)) = line.strip_prefix("| `").and_then(|row| row.split_once("` | ")) else { continue };
        for name in names.split("`, `") {
            let name = name.trim_end_matches("[]").to_owned();
            rows.insert((heading.clone(), name), told.trim_end_matches(" |").to_owned());
        }
    }
    rows
}

/// Without marks, and no longer than a line or two.
fn short(told: &str) -> String {
    let plain = told.replace('`', "");
    let plain = plain.split(", see below").next().unwrap_or_default();
    if plain.chars().count() <= LONGEST {
        return plain.to_owned();
    }
    let part = plain.char_indices().nth(LONGEST).map_or(plain, |(end, _)| &plain[..end]);
    let end = ["; ", ". ", ": "].iter().filter_map(|mark| part.rfind(mark)).max();
    end.map_or_else(String::new, |end| part[..end].to_owned())
}
