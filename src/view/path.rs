//! The paths of the watched flows: a hop a line, in the order of the packets, with what the link claims and moves in that
//! direction. Flows with the same path are drawn once; what is not known is said, not left out.

use super::Tone;
use super::canvas::fitted;
use super::format::{Claim, Count, Elapsed, Percent, Rate, Share, UNKNOWN};
use super::latency;
use super::lines::{Line, sentences};
use super::text::{namespace, plural};
use crate::derive::flow::{Connection, DatagramRate, DatagramTest};
use crate::derive::latency::{Spread, StageLatency};
use crate::derive::paths::{self, CarrierMetrics, FlowAtHop, HopMetrics, PassedPackets, PathMetrics, SoftirqBy};
use crate::derive::{Loss, Metrics, Worker};
use crate::sample::{HopWay, Offload, Offloads, Word};
use crate::state::{Mode, State, Units};

/// A column: its title, its least cells, and the rank by which it goes when there is no room (the highest first).
pub(super) struct PathColumn {
    pub title: &'static str,
    cells: usize,
    rank: u8,
}

/// In the order they stand.
pub(super) const COLUMNS: [PathColumn; 10] = [
    PathColumn { title: "NETNS", cells: 10, rank: 1 },
    PathColumn { title: "LINK", cells: 13, rank: 0 },
    PathColumn { title: "KIND", cells: 8, rank: 3 },
    PathColumn { title: "SPEED", cells: 11, rank: 4 },
    PathColumn { title: "RATE", cells: 6, rank: 0 },
    PathColumn { title: "DROP/s", cells: 6, rank: 1 },
    PathColumn { title: "MTU", cells: 5, rank: 2 },
    PathColumn { title: "HOP BY", cells: 6, rank: 2 },
    PathColumn { title: "CORES", cells: 6, rank: 5 },
    PathColumn { title: "OFFLOADS OFF", cells: 12, rank: 6 },
];

/// Where CORES stands.
const CORES: usize = 8;

/// Cells that NETNS and LINK may have more where there is room: names of links have 15 characters at most.
const MORE: [(usize, usize); 2] = [(1, 3), (0, 10)];

/// A path and how many connections take it.
pub(super) struct SameWay<'a> {
    pub connection: &'a Connection,
    pub path: Option<PathMetrics<'a>>,
    /// The UDP test that all of them belong to.
    test: Option<&'a DatagramTest>,
    count: usize,
    bits_per_s: Option<f64>,
}

/// Every path, busiest first.
pub(super) fn lines(state: &State, width: u16) -> Vec<Line> {
    let Some(metrics) = state.metrics() else { return sentences(Tone::Muted, "nothing is known yet", width) };
    let groups = groups(metrics);
    if groups.is_empty() {
        let text = "no connection of a watched program. Start a benchmark, or watch another program: vnettop --watch \
                    NAME";
        return sentences(Tone::Muted, text, width);
    }
    let widths = widths(usize::from(width));
    let mut lines: Vec<Line> = Vec::new();
    for group in &groups {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        lines.extend(way(state, metrics, group, &widths, width));
    }
    lines
}

/// The connections by their path; those that only control a test are left out when others carry data.
pub(super) fn groups(metrics: &Metrics) -> Vec<SameWay<'_>> {
    let mut groups: Vec<SameWay<'_>> = Vec::new();
    let moves = |connection: &Connection| connection.carries || connection.bits_per_s.is_some_and(|bits| bits > LITTLE);
    let some_move = metrics.subject.flow.connections.iter().any(moves);
    for connection in metrics.subject.flow.connections.iter().filter(|connection| !some_move || moves(connection)) {
        let (path, test) = (paths::of(&metrics.subject, connection), metrics.subject.flow.test_of(connection));
        let known = groups.iter_mut().find(|group| group.test == test && same_way(group.path.as_ref(), path.as_ref()));
        let Some(group) = known else {
            let rate = test.and_then(DatagramTest::rate).map(|rate| rate.bits_per_s);
            groups.push(SameWay { connection, path, test, count: 1, bits_per_s: rate.or(connection.bits_per_s) });
            continue;
        };
        group.count += 1;
        if test.is_some() {
            continue;
        }
        let more = connection.bits_per_s.unwrap_or(0.0);
        if more > group.connection.bits_per_s.unwrap_or(0.0) {
            group.connection = connection;
        }
        group.bits_per_s = group.bits_per_s.or(connection.bits_per_s).map(|_| group.bits_per_s.unwrap_or(0.0) + more);
    }
    groups.sort_by(|one, other| other.bits_per_s.unwrap_or(0.0).total_cmp(&one.bits_per_s.unwrap_or(0.0)));
    groups
}

/// Whether both go through the same links, as far as they are known.
fn same_way(one: Option<&PathMetrics<'_>>, other: Option<&PathMetrics<'_>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            (one.gap, one.note) == (other.gap, other.note)
                && one.hops.iter().map(|hop| hop.hop).eq(other.hops.iter().map(|hop| hop.hop))
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// What a connection that only controls a test stays below, bits/s.
const LITTLE: f64 = 20_000.0;

/// A rate in the unit chosen; what has no packets is in bits, and says so.
fn rate(bits_per_s: Option<f64>, packets_per_s: Option<f64>, units: Units) -> String {
    match units {
        Units::Packets if packets_per_s.is_some() => Count(packets_per_s).to_string(),
        Units::Packets => format!("{} bits/s", Rate(bits_per_s, Units::Bits)),
        units => Rate(bits_per_s, units).to_string(),
    }
}

/// `UDP 20.0M sent, 19.9M received, 0.3 % lost`, or why that is not known.
fn datagrams(test: &DatagramTest, units: Units) -> String {
    if let (Some(gap), None) = (test.gap, test.rate()) {
        return format!("UDP, rate not known: {gap}");
    }
    let figure = |of: Option<DatagramRate>| of.map(|of| rate(Some(of.bits_per_s), of.packets_per_s, units));
    let end = |of, word: &str| format!("{} {word}", figure(of).unwrap_or_else(|| "–".to_owned()));
    let lost = test.lost().map_or_else(String::new, |lost| format!(", {} lost", Share(lost)));
    format!("UDP {}, {}{lost}", end(test.sent, "sent"), end(test.received, "received"))
}

fn title(metrics: &Metrics, group: &SameWay<'_>, units: Units) -> String {
    let Connection { from, to, relay, relayed, .. } = group.connection;
    let name = relay.and_then(|pid| paths::holder(&metrics.subject, pid)).map(|holder| &holder.name);
    let through = match name {
        Some(name) if *relayed => format!(", the same data behind {name}"),
        Some(name) => format!(" through {name}"),
        None => String::new(),
    };
    let more = match (group.count, group.test) {
        (1, _) => String::new(),
        (streams, Some(_)) => format!(", {streams} streams"),
        (count, None) => format!(" with {}", plural(count - 1, "other connection")),
    };
    let moved = group.test.map_or_else(|| rate(group.bits_per_s, None, units), |test| datagrams(test, units));
    format!("{} → {}{through} · {moved}{more}", from.address, to.address)
}

fn way(state: &State, metrics: &Metrics, group: &SameWay<'_>, widths: &[usize; 10], width: u16) -> Vec<Line> {
    let units = state.settings().units;
    let mut lines = sentences(Tone::Title, &title(metrics, group, units), width);
    let Some(path) = &group.path else {
        let why = match (state.settings().mode, metrics.ended_test()) {
            (Mode::Replay, _) => "… path not in this recording at this time",
            (_, Some(_)) => "… path not resolved while it ran",
            _ => "… path not resolved yet",
        };
        lines.extend(sentences(Tone::Muted, why, width));
        return lines;
    };
    lines.push(row(widths, COLUMNS.map(|column| (Tone::Header, column.title.to_owned()))));
    let smallest = path.smallest_mtu();
    let mut above = None;
    for (at, hop) in path.hops.iter().enumerate() {
        let carriers = path.carriers.iter().filter(|carrier| carrier.carrier.at == at);
        lines.extend(carriers.flat_map(|carrier| sentences(Tone::Normal, &carrier_text(carrier), width)));
        let netns = (above != Some(hop.hop.link.netns)).then(|| namespace(metrics, hop.hop.link.netns));
        above = Some(hop.hop.link.netns);
        lines.push(row(widths, line(metrics, hop, netns.unwrap_or_default(), smallest == Some(at), units)));
        lines.extend(
            hop.flow
                .iter()
                .filter(|flow| flow.switches_per_s >= 1.0)
                .flat_map(|flow| sentences(Tone::Warning, &switches_text(flow), width)),
        );
        lines.extend(latency_lines(metrics, hop, width));
        lines.extend(hop.losses.iter().flat_map(|loss| sentences(Tone::Bad, &loss_text(metrics, loss), width)));
        let napi = metrics.subject.workers.iter().filter(|worker| worker.napi_of() == Some(hop.hop.link));
        lines.extend(napi.flat_map(|worker| sentences(Tone::Normal, &format!("  {}", worker_text(worker)), width)));
    }
    let last = path.carriers.iter().filter(|carrier| carrier.carrier.at >= path.hops.len());
    lines.extend(last.flat_map(|carrier| sentences(Tone::Normal, &carrier_text(carrier), width)));
    let by_counting =
        |hop: &HopMetrics<'_>| hop.softirq.as_ref().is_ok_and(|softirq| softirq.by == SoftirqBy::Measured);
    if path.hops.iter().any(by_counting) && widths[CORES] > 0 {
        let text = "CORES: measured, packets counted on the cores that handle them";
        lines.extend(sentences(Tone::Muted, text, width));
    }
    if let Some(gap) = path.gap {
        lines.extend(sentences(Tone::Warning, &format!("… cut off: {gap}"), width));
    }
    if let Some(note) = path.note {
        lines.extend(sentences(Tone::Muted, note, width));
    }
    lines
}

/// `  the guest web1: 12.3k/s in, 4.5k/s out · vCPU 4711 on core 1, CPU 98 %`: a program between two links.
fn carrier_text(one: &CarrierMetrics<'_>) -> String {
    let figure = |passed: Option<PassedPackets>| Count(passed.and_then(|passed| passed.per_s));
    let passed = match (one.went_in, one.came_out) {
        (None, None) => String::new(),
        (went_in, came_out) => format!(": {} packets/s in, {} out", figure(went_in), figure(came_out)),
    };
    let workers: Vec<String> = one.workers.iter().map(|worker| worker_text(worker)).collect();
    let workers = if workers.is_empty() { "threads idle or not known".to_owned() } else { workers.join("; ") };
    format!("  {}{passed} · {workers}", one.carrier.name)
}

/// `vCPU 4711 on core 1, CPU 21 %, waits 67 %, 12 migrations/s`.
fn worker_text(worker: &Worker) -> String {
    let thread = &worker.thread;
    let mut parts = vec![
        format!("{} {} on core {}", worker.noun(), thread.sample.id.tid, thread.sample.core),
        format!("CPU {} %", Percent(thread.cpu)),
    ];
    parts.extend(thread.wait.filter(|wait| *wait >= 0.01).map(|wait| format!("waits {} %", Percent(Some(wait)))));
    let migrates = thread.moves_per_s.filter(|moves| *moves > 0.0);
    parts.extend(migrates.map(|moves| format!("{} migrations/s", Count(Some(moves)))));
    parts.extend(worker.unplaceable().map(|fixed| fixed.why));
    parts.join(", ")
}

/// `  l1 → l2: 1.6us (p50), 4.4us (p99)`: how long the data's packets took to the hop, while that is measured.
fn latency_lines(metrics: &Metrics, hop: &HopMetrics<'_>, width: u16) -> Vec<Line> {
    let latency = metrics.subject.latency.as_deref().filter(|latency| latency.measured_ago_s.is_none());
    let Some(latency) = latency else { return Vec::new() };
    let stages = latency.until(hop.hop.link, hop.hop.way).filter_map(|one| Some((one, one.now?)));
    let line = |(one, now): (&StageLatency, Spread)| {
        let place = latency.place(metrics.subject.latency_ground(), &one.key);
        let text = format!("  {place}: {} (p50), {} (p99)", Elapsed(now.p50_s), Elapsed(now.p99_s));
        sentences(latency::tone(now.p99_s), &text, width)
    };
    stages.flat_map(line).collect()
}

/// `  911 changes of core/s: core 0 54 %, core 1 46 %`: where the flow's own packets are handled.
fn switches_text(flow: &FlowAtHop) -> String {
    const MOST: usize = 4;
    let shares: Vec<String> =
        flow.shares.iter().take(MOST).map(|(core, share)| format!("core {core} {}", Share(*share))).collect();
    let more = if flow.shares.len() > MOST { format!(" and {} more", flow.shares.len() - MOST) } else { String::new() };
    format!("  {} changes of core/s: {}{more}", Count(Some(flow.switches_per_s)), shares.join(", "))
}

/// `  ▸ 708/s refused by nft_do_chain: NETFILTER_DROP`: what the kernel says of a loss.
pub(super) fn loss_text(metrics: &Metrics, loss: &Loss) -> String {
    let what = if loss.refused { "refused" } else { "lost" };
    let rate = Count(Some(metrics.subject.losses.per_second(loss.packets)));
    let words = [loss.reason.as_deref(), loss.function.as_deref()].into_iter().flatten().collect::<Vec<_>>();
    let words = if words.is_empty() { loss.place.word().to_owned() } else { words.join(" in ") };
    format!("  {rate}/s {what}: {words}")
}

pub(super) fn line(
    metrics: &Metrics,
    hop: &HopMetrics<'_>,
    netns: String,
    narrow: bool,
    units: Units,
) -> [(Tone, String); 10] {
    let facts = hop.link.map(|link| &link.facts);
    let arrow = match hop.hop.way {
        HopWay::Sent => '↑',
        HopWay::Received => '↓',
        HopWay::Passed => '·',
    };
    let rate = match (hop.hop.way, hop.link) {
        (HopWay::Passed, _) => "· –".to_owned(),
        _ if units == Units::Packets => format!("{arrow}{}", Count(hop.packets_per_s)),
        _ => format!("{arrow}{}", Rate(hop.bits_per_s, units)),
    };
    let claim = hop.link.map_or_else(String::new, |link| Claim::of(metrics, link, units).to_string());
    let mtu = hop.mtu().map(|mtu| mtu.to_string());
    let dropped = hop.all_drops_per_s();
    let drops = if dropped.is_some_and(|drops| drops > 0.0) { Tone::Bad } else { Tone::Muted };
    [
        (Tone::Muted, netns),
        (
            Tone::Normal,
            facts.map_or_else(|| format!("link {} (not listed)", hop.hop.link.ifindex.0), |facts| facts.name.clone()),
        ),
        (Tone::Muted, facts.map_or_else(String::new, |facts| facts.kind.word().to_owned())),
        (Tone::Muted, claim),
        (if hop.bits_per_s.is_some() { Tone::Normal } else { Tone::Muted }, rate),
        (drops, Count(dropped).to_string()),
        (
            if narrow { Tone::Warning } else { Tone::Muted },
            mtu.unwrap_or_else(|| hop.link.map_or_else(String::new, |_| UNKNOWN.to_string())),
        ),
        (Tone::Muted, hop.hop.by.word().to_owned()),
        (Tone::Muted, hop.softirq.as_ref().map_or_else(|_| "–".to_owned(), |softirq| softirq.cores.to_string())),
        (Tone::Muted, hop.offloads.map_or_else(|| "–".to_owned(), off)),
    ]
}

/// What is off, in the words of `ethtool -K`.
fn off(set: &Offloads) -> String {
    let off: Vec<&str> = Offload::EACH.into_iter().filter(|&of| !set.has(of)).map(Into::into).collect();
    off.join(" ")
}

/// Cells of each column; 0 where there is no room for it.
pub(super) fn widths(room: usize) -> [usize; 10] {
    let mut widths = COLUMNS.map(|column| column.cells);
    let used =
        |widths: &[usize; 10]| widths.iter().filter(|&&cells| cells > 0).map(|cells| cells + 1).sum::<usize>() - 1;
    while used(&widths) > room {
        let shown = (0..10).filter(|&at| widths[at] > 0 && COLUMNS[at].rank > 0);
        let Some(last) = shown.max_by_key(|&at| COLUMNS[at].rank) else { break };
        widths[last] = 0;
    }
    for (at, most) in MORE {
        widths[at] += if widths[at] > 0 { most.min(room.saturating_sub(used(&widths))) } else { 0 };
    }
    widths
}

pub(super) fn row(widths: &[usize; 10], texts: [(Tone, String); 10]) -> Line {
    let shown = widths.iter().zip(texts).filter(|(width, _)| **width > 0);
    shown.map(|(&width, (tone, text))| (tone, format!("{} ", fitted(&text, width)))).collect()
}
