//! Which way the watched flows go: a hop a line, in the order of the packets, with what the link claims and moves in
//! that direction. Flows that go the same way are drawn once; what is not known is said, not left out.

use super::Tone;
use super::canvas::cells;
use super::format::{Claim, Count, Rate};
use super::overlay::{Line, sentences};
use super::text::plural;
use crate::derive::Metrics;
use crate::derive::flow::Connection;
use crate::derive::paths::{self, HopMetrics, PathMetrics};
use crate::sample::HopWay;
use crate::state::{State, Units};

/// A column: its title, its least cells, and the rank by which it goes when there is no room (the highest first).
struct Column {
    title: &'static str,
    cells: usize,
    rank: u8,
}

/// In the order they stand.
const COLUMNS: [Column; 8] = [
    Column { title: "NETNS", cells: 10, rank: 1 },
    Column { title: "LINK", cells: 13, rank: 0 },
    Column { title: "KIND", cells: 8, rank: 3 },
    Column { title: "CLAIMS", cells: 11, rank: 4 },
    Column { title: "RATE", cells: 6, rank: 0 },
    Column { title: "DROP/s", cells: 6, rank: 1 },
    Column { title: "MTU", cells: 5, rank: 2 },
    Column { title: "BY", cells: 6, rank: 2 },
];

/// Cells that NETNS and LINK may have more where there is room: names of links have 15 characters at most.
const MORE: [(usize, usize); 2] = [(1, 3), (0, 10)];

/// A way and how many connections go it.
struct Group<'a> {
    connection: &'a Connection,
    path: Option<PathMetrics<'a>>,
    count: usize,
    bits_per_s: Option<f64>,
}

/// Every way, busiest first.
pub(super) fn lines(state: &State, width: u16) -> Vec<Line> {
    let Some(metrics) = state.metrics() else { return sentences(Tone::Muted, "nothing is known yet", width) };
    let groups = groups(metrics);
    if groups.is_empty() {
        let text = "no connection of a watched process is known: start a benchmark, or name its program with --watch";
        return sentences(Tone::Muted, text, width);
    }
    let widths = widths(usize::from(width));
    let mut lines: Vec<Line> = Vec::new();
    for group in &groups {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        lines.extend(way(metrics, group, &widths, state.settings().units, width));
    }
    lines
}

/// The connections by their way; those that carry nothing are left out where others do.
fn groups(metrics: &Metrics) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for connection in &metrics.flow.connections {
        let path = paths::of(metrics, connection);
        let hops = |path: &Option<PathMetrics<'_>>| {
            path.as_ref().map(|path| {
                (path.hops.iter().map(|hop| hop.hop.clone()).collect::<Vec<_>>(), path.gap.map(str::to_owned))
            })
        };
        let known = groups.iter_mut().find(|group| hops(&group.path) == hops(&path));
        let Some(group) = known else {
            groups.push(Group { connection, path, count: 1, bits_per_s: connection.bits_per_s });
            continue;
        };
        group.count += 1;
        let more = connection.bits_per_s.unwrap_or(0.0);
        if more > group.connection.bits_per_s.unwrap_or(0.0) {
            group.connection = connection;
        }
        group.bits_per_s = group.bits_per_s.or(connection.bits_per_s).map(|_| group.bits_per_s.unwrap_or(0.0) + more);
    }
    groups.sort_by(|one, other| other.bits_per_s.unwrap_or(0.0).total_cmp(&one.bits_per_s.unwrap_or(0.0)));
    let carries = groups.iter().any(|group| group.bits_per_s.is_some_and(|bits| bits > LITTLE));
    groups.retain(|group| !carries || group.bits_per_s.is_some_and(|bits| bits > LITTLE));
    groups
}

/// What a connection that only controls a test stays below, bits/s.
const LITTLE: f64 = 20_000.0;

fn way(metrics: &Metrics, group: &Group<'_>, widths: &[usize; 8], units: Units, width: u16) -> Vec<Line> {
    let Connection { from, to, .. } = group.connection;
    let more =
        if group.count > 1 { format!(" with {}", plural(group.count - 1, "other connection")) } else { String::new() };
    let title = format!("{} → {} · {}{more}", from.address, to.address, Rate(group.bits_per_s, units));
    let mut lines = sentences(Tone::Title, &title, width);
    let Some(path) = &group.path else {
        lines.extend(sentences(Tone::Muted, "… not known: its way was not asked for yet", width));
        return lines;
    };
    lines.push(row(widths, COLUMNS.map(|column| (Tone::Header, column.title.to_owned()))));
    let smallest = path.smallest_mtu();
    let mut above = None;
    for (at, hop) in path.hops.iter().enumerate() {
        let netns = (above != Some(hop.hop.link.netns)).then(|| namespace(metrics, hop.hop.link.netns));
        above = Some(hop.hop.link.netns);
        lines.push(row(widths, line(metrics, hop, netns.unwrap_or_default(), smallest == Some(at), units)));
    }
    if let Some(gap) = path.gap {
        lines.extend(sentences(Tone::Warning, &format!("… not known: {gap}"), width));
    }
    lines
}

/// What the namespace is called.
fn namespace(metrics: &Metrics, netns: u64) -> String {
    if netns == metrics.netns {
        return "here".to_owned();
    }
    metrics.space(netns).map_or_else(|| netns.to_string(), crate::sample::Space::label)
}

fn line(metrics: &Metrics, hop: &HopMetrics<'_>, netns: String, narrow: bool, units: Units) -> [(Tone, String); 8] {
    let facts = hop.link.map(|link| &link.facts);
    let arrow = match hop.hop.way {
        HopWay::Sent => '↑',
        HopWay::Received => '↓',
        HopWay::Passed => '·',
    };
    let rate = match (hop.hop.way, hop.link) {
        (HopWay::Passed, _) => "· –".to_owned(),
        _ => format!("{arrow}{}", Rate(hop.bits_per_s, units)),
    };
    let ports = || {
        metrics
            .links
            .iter()
            .filter(|port| port.facts.master.map(|master| port.facts.beside(master)) == Some(hop.hop.link))
    };
    let claim = hop.link.map_or_else(String::new, |link| {
        let ports = u32::try_from(ports().count()).unwrap_or(u32::MAX);
        Claim { mbps: link.facts.speed_mbps, basis: link.basis, ports, units }.to_string()
    });
    let drops = if hop.all_drops_per_s().is_some_and(|drops| drops > 0.0) { Tone::Bad } else { Tone::Muted };
    [
        (Tone::Muted, netns),
        (
            Tone::Normal,
            facts.map_or_else(|| format!("link {} (gone)", hop.hop.link.ifindex.0), |facts| facts.name.clone()),
        ),
        (Tone::Muted, facts.map_or_else(String::new, |facts| facts.kind.word().to_owned())),
        (Tone::Muted, claim),
        (if hop.bits_per_s.is_some() { Tone::Normal } else { Tone::Muted }, rate),
        (drops, Count(hop.all_drops_per_s().filter(|_| hop.hop.way != HopWay::Passed)).to_string()),
        (if narrow { Tone::Warning } else { Tone::Muted }, hop.mtu().map_or_else(String::new, |mtu| mtu.to_string())),
        (Tone::Muted, hop.hop.by.word().to_owned()),
    ]
}

/// Cells of each column; 0 where there is no room for it.
fn widths(room: usize) -> [usize; 8] {
    let mut widths = COLUMNS.map(|column| column.cells);
    let used =
        |widths: &[usize; 8]| widths.iter().filter(|&&cells| cells > 0).map(|cells| cells + 1).sum::<usize>() - 1;
    while used(&widths) > room {
        let shown = (0..8).filter(|&at| widths[at] > 0 && COLUMNS[at].rank > 0);
        let Some(last) = shown.max_by_key(|&at| COLUMNS[at].rank) else { break };
        widths[last] = 0;
    }
    for (at, most) in MORE {
        widths[at] += if widths[at] > 0 { most.min(room.saturating_sub(used(&widths))) } else { 0 };
    }
    widths
}

fn row(widths: &[usize; 8], texts: [(Tone, String); 8]) -> Line {
    let shown = widths.iter().zip(texts).filter(|(width, _)| **width > 0);
    shown.map(|(&width, (tone, text))| (tone, format!("{} ", padded(&text, width)))).collect()
}

/// A text in so many cells; what does not fit is cut and marked.
fn padded(text: &str, width: usize) -> String {
    if cells(text) <= width {
        return format!("{text}{}", " ".repeat(width - cells(text)));
    }
    let mut cut = String::new();
    for c in text.chars() {
        if cells(&cut) + cells(c.encode_utf8(&mut [0; 4])) + 1 > width {
            break;
        }
        cut.push(c);
    }
    let gap = width - 1 - cells(&cut);
    format!("{cut}…{}", " ".repeat(gap))
}
