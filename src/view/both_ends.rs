//! A test of which two hosts each see an end: its two ends one below the other, its path hop by hop over the wire, and what was lost
//! on either side.

use super::canvas::fitted;
use super::format::{Count, Percent, Rate, UNKNOWN};
use super::host_graph::{self, ROWS};
use super::host_row::HostRow;
use super::lines::{Line, sentences};
use super::text::namespace;
use super::{Tone, path};
use crate::derive::end_to_end::{EndToEnd, HostEnd, HostHop, HostLoss};
use crate::sample::Word;
use std::collections::BTreeSet;

/// The columns of the ends: title and cells.
const COLUMNS: [(&str, usize); 8] =
    [("END", 8), ("HOST", 9), ("RATE", 12), ("CORE", 7), ("CPU%", 5), ("MIGR/s", 6), ("RETR/s", 6), ("PROCESS", 15)];
/// Columns of words; figures stand to the right.
const OF_WORDS: [usize; 3] = [0, 1, 7];
/// A thread that takes at least this share of a core works for the test, whatever the others do.
const BUSY: f64 = 0.05;
/// Cells of the host's name before a hop.
const HOST: usize = 9;
/// Threads and cores of each end that are shown beside those of the other.
const MOST_THREADS: usize = 8;
const MOST_CORES: usize = 8;
/// Cells of a column: narrower ones stand one below the other.
const COLUMN: usize = 46;
/// Cells of a thread's name and numbers.
const THREAD: usize = 20;
/// Cells of a graph: narrower ones stand one below the other.
const GRAPH: usize = 34;
/// With fewer rows there is no graph.
const SMALL: u16 = 10;
/// From so many rows on the path is a table; below them a line a host.
const TALL: u16 = 22;

/// Every such test; rows that would be left are its graphs'.
pub(super) fn lines(hosts: &[HostRow<'_>], tests: &[EndToEnd<'_>], (width, height): (u16, u16)) -> Vec<Line> {
    let without = listed(hosts, tests, (width, height), 0);
    let left = height.saturating_sub(u16::try_from(without.len()).unwrap_or(u16::MAX));
    // Each has a head, and an empty line below it.
    let each = left / u16::try_from(tests.len()).unwrap_or(u16::MAX).max(1);
    let rows =
        if is_beside(usize::from(width)) { each.saturating_sub(2) } else { each.saturating_sub(4) / 2 }.min(ROWS.1);
    // A small screen has the curve before the rest of the path, which is a key away.
    let least = if (SMALL..TALL).contains(&height) && tests.len() == 1 { ROWS.0 } else { 0 };
    let rows = if rows < ROWS.0 { least } else { rows };
    if rows == 0 { without } else { listed(hosts, tests, (width, height), rows) }
}

/// With graphs of so many rows; without any where that is 0.
fn listed(hosts: &[HostRow<'_>], tests: &[EndToEnd<'_>], (width, height): (u16, u16), rows: u16) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let gap = || (height >= TALL).then(Line::new);
    for test in tests {
        if !lines.is_empty() {
            lines.push(Line::new());
            lines.extend(sentences(Tone::Title, &test.sender.test.words(), width));
        }
        let unit = host_graph::unit(hosts[test.sender.host].state.settings().units);
        let title = |title: &str| if title == "RATE" { format!("RATE {unit}") } else { title.to_owned() };
        lines.push(row(COLUMNS.map(|(name, _)| (Tone::Header, title(name)))));
        lines.push(end(hosts, "sender", &test.sender));
        lines.push(end(hosts, "receiver", &test.receiver));
        lines.push(spread(hosts, test));
        lines.extend(gap());
        if rows > 0 {
            lines.extend(graphs(hosts, test, usize::from(width), rows));
            lines.extend(gap());
        }
        if height >= TALL {
            lines.extend(table(hosts, &test.hops, width));
        } else {
            lines.extend(short(hosts, &test.hops, width));
        }
        for (host, gap) in &test.gaps {
            lines.extend(sentences(Tone::Warning, &format!("… cut off on {}: {gap}", hosts[*host].name), width));
        }
        lines.extend(test.losses.iter().flat_map(|loss| lost(hosts, loss, width)));
        lines.push(Line::new());
        let ends = [&test.sender, &test.receiver];
        let (half, whole) = (usize::from(width / 2).saturating_sub(1), usize::from(width));
        for columns in [ends.map(|end| threads(hosts, end)), ends.map(|end| cores(hosts, end))] {
            if half >= COLUMN {
                lines.extend(beside(columns, half));
            } else {
                let [sender, receiver] = columns;
                lines.extend(sender.into_iter().chain(receiver).map(|(tone, text)| vec![(tone, fitted(&text, whole))]));
            }
            lines.push(Line::new());
        }
        lines.pop();
    }
    lines
}

fn half(width: usize) -> usize {
    (width / 2).saturating_sub(1)
}

/// Both graphs have room beside each other.
fn is_beside(width: usize) -> bool {
    half(width) >= GRAPH
}

/// The rate at each end, beside each other where there is room.
fn graphs(hosts: &[HostRow<'_>], test: &EndToEnd<'_>, width: usize, rows: u16) -> Vec<Line> {
    let is_beside = is_beside(width);
    let cells = if is_beside { half(width) } else { width };
    let [sender, receiver] = [&test.sender, &test.receiver].map(|end| {
        let HostRow { name, state } = &hosts[end.host];
        let units = state.settings().units;
        let head = vec![host_graph::head(name, units, cells)];
        let curve = host_graph::lines(&end.test.metrics, units, (cells, rows));
        std::iter::once(head).chain(curve).collect::<Vec<Line>>()
    });
    if !is_beside {
        return sender.into_iter().chain(receiver).collect();
    }
    let gap = || std::iter::once((Tone::Normal, "  ".to_owned()));
    sender.into_iter().zip(receiver).map(|(left, right)| left.into_iter().chain(gap()).chain(right).collect()).collect()
}

/// Two columns of lines, each of so many cells.
fn beside([left, right]: [Vec<(Tone, String)>; 2], half: usize) -> Vec<Line> {
    let rows = left.len().max(right.len());
    let cell = |column: &[(Tone, String)], at: usize| {
        let (tone, text) = column.get(at).cloned().unwrap_or((Tone::Normal, String::new()));
        (tone, fitted(&text, half))
    };
    let gap = || (Tone::Normal, "  ".to_owned());
    (0..rows).map(|at| vec![cell(&left, at), gap(), cell(&right, at)]).collect()
}

/// The busiest threads of an end, with where they run.
fn threads(hosts: &[HostRow<'_>], end: &HostEnd<'_>) -> Vec<(Tone, String)> {
    let mut threads = end.threads.clone();
    threads.sort_by(|one, other| other.cpu.unwrap_or(0.0).total_cmp(&one.cpu.unwrap_or(0.0)));
    let head = fitted(&format!("THREADS {}", hosts[end.host].name), THREAD);
    let mut lines = vec![(Tone::Header, format!("{head} CORE  CPU% MIGR/s WAIT%"))];
    lines.extend(threads.iter().take(MOST_THREADS).map(|thread| {
        let name = fitted(&format!("{} {}", thread.sample.name, thread.sample.id.tid), THREAD);
        let pin = if thread.pinned { '*' } else { ' ' };
        let (core, cpu) = (thread.sample.core, Percent(thread.cpu).to_string());
        let (migrates, wait) = (Count(thread.moves_per_s).to_string(), Percent(thread.wait).to_string());
        let tone = if thread.moves_per_s.is_some_and(|rate| rate >= 1.0) { Tone::Warning } else { Tone::Normal };
        (tone, format!("{name} {core:>4}{pin} {cpu:>4} {migrates:>6} {wait:>5}"))
    }));
    lines
}

/// The busiest cores of an end's host; `t` where threads of the test run.
fn cores(hosts: &[HostRow<'_>], end: &HostEnd<'_>) -> Vec<(Tone, String)> {
    let name = hosts[end.host].name;
    let mut lines = vec![(Tone::Header, format!("{} BUSY% SOFTIRQ%", fitted(&format!("CORES {name}"), THREAD)))];
    let Some(metrics) = hosts[end.host].state.metrics() else { return lines };
    let mut cores: Vec<_> =
        metrics.machine.cores.iter().filter_map(|core| Some((core.shares()?, core.place.core))).collect();
    cores.sort_by(|one, other| other.0.busy().total_cmp(&one.0.busy()));
    lines.extend(cores.into_iter().take(MOST_CORES).map(|(shares, core)| {
        let is_own = end.threads.iter().any(|thread| thread.sample.core == core);
        let name = fitted(&format!("{core}{}", if is_own { " t" } else { "" }), THREAD);
        let (busy, softirq) = (Percent(Some(shares.busy())).to_string(), Percent(Some(shares.softirq)).to_string());
        (if is_own { Tone::Watched } else { Tone::Normal }, format!("{name} {busy:>5} {softirq:>8}"))
    }));
    lines
}

fn row(texts: [(Tone, String); 8]) -> Line {
    let each = COLUMNS.iter().zip(texts).enumerate();
    each.map(|(at, ((_, cells), (tone, text)))| {
        let text =
            if OF_WORDS.contains(&at) { format!("{} ", fitted(&text, *cells)) } else { format!("{text:>cells$} ") };
        (tone, text)
    })
    .collect()
}

fn end(hosts: &[HostRow<'_>], word: &str, end: &HostEnd<'_>) -> Line {
    let host = &hosts[end.host];
    let process = end.threads.first().map_or_else(
        || end.pid.map_or_else(|| UNKNOWN.to_owned(), |pid| format!("pid {pid}")),
        |thread| format!("{} {}", thread.sample.name, thread.sample.id.pid),
    );
    // Of threads that all wait, where the one that has run most is.
    let most = end.threads.iter().filter_map(|thread| thread.cpu).fold(0.0, f64::max).min(BUSY);
    let busy = || end.threads.iter().filter(|thread| thread.cpu.is_some_and(|cpu| cpu >= most));
    let cores: BTreeSet<u32> = busy().map(|thread| thread.sample.core).collect();
    let pinned = busy().count() > 0 && busy().all(|thread| thread.pinned);
    let cores: Vec<String> = cores.iter().map(ToString::to_string).collect();
    let cores = if cores.is_empty() { UNKNOWN.to_owned() } else { cores.join(",") };
    let sum = |each: fn(&crate::derive::ThreadMetrics) -> Option<f64>| {
        end.threads.iter().filter_map(|thread| each(thread)).reduce(|one, other| one + other)
    };
    let migrates = sum(|thread| thread.moves_per_s);
    let retransmits = if word == "sender" { Count(end.retransmits_per_s).to_string() } else { String::new() };
    row([
        (Tone::Muted, word.to_owned()),
        (Tone::Title, host.name.to_owned()),
        (Tone::Accent, Rate(end.bits_per_s, host.state.settings().units).to_string()),
        (if pinned { Tone::Good } else { Tone::Watched }, if pinned { format!("{cores} pin") } else { cores }),
        (Tone::Normal, Percent(sum(|thread| thread.cpu)).to_string()),
        (
            if migrates.is_some_and(|rate| rate >= 1.0) { Tone::Warning } else { Tone::Normal },
            Count(migrates).to_string(),
        ),
        (if end.retransmits_per_s.is_some_and(|rate| rate > 0.0) { Tone::Warning } else { Tone::Normal }, retransmits),
        (Tone::Normal, process),
    ])
}

/// How steady the rate is at each end, by that host's own clock.
fn spread(hosts: &[HostRow<'_>], test: &EndToEnd<'_>) -> Line {
    let of =
        |end: &HostEnd<'_>| format!("{} {} %", hosts[end.host].name, Percent(end.jitter.and_then(|jitter| jitter.cv)));
    vec![(Tone::Muted, format!("CV of the rate: {} · {}", of(&test.sender), of(&test.receiver)))]
}

fn table(hosts: &[HostRow<'_>], hops: &[HostHop<'_>], width: u16) -> Vec<Line> {
    let widths = path::widths(usize::from(width).saturating_sub(HOST + 1));
    let with_host = |host: (Tone, &str), line: Line| -> Line {
        let mut whole = vec![(host.0, format!("{} ", fitted(host.1, HOST)))];
        whole.extend(line);
        whole
    };
    let head = path::row(&widths, path::COLUMNS.map(|column| (Tone::Header, column.title.to_owned())));
    let mut lines = vec![with_host((Tone::Header, "HOST"), head)];
    let (mut host, mut netns) = (None, None);
    for HostHop { host: at, hop } in hops {
        let Some(metrics) = hosts[*at].state.metrics() else { continue };
        if host.is_some_and(|before| before != *at) {
            lines.push(vec![(Tone::Muted, "~ wire ~".to_owned())]);
        }
        let name = if host.replace(*at) == Some(*at) { "" } else { hosts[*at].name };
        let here = (*at, hop.hop.link.netns);
        let space =
            if netns.replace(here) == Some(here) { String::new() } else { namespace(metrics, hop.hop.link.netns) };
        let line = path::line(metrics, hop, space, false, hosts[*at].state.settings().units);
        lines.push(with_host((Tone::Title, name), path::row(&widths, line)));
    }
    lines
}

/// `kp1  eth0 → docker0 → wire0`
fn short(hosts: &[HostRow<'_>], hops: &[HostHop<'_>], width: u16) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for part in hops.chunk_by(|one, other| one.host == other.host) {
        let Some(first) = part.first() else { continue };
        let name = |hop: &HostHop<'_>| {
            hop.hop.link.map_or_else(|| format!("link {}", hop.hop.hop.link.ifindex.0), |link| link.facts.name.clone())
        };
        let names: Vec<String> = part.iter().map(name).collect();
        let wire = if lines.is_empty() { "" } else { "~ wire ~ → " };
        let text = format!("{}  {wire}{}", hosts[first.host].name, names.join(" → "));
        lines.extend(sentences(Tone::Normal, &text, width));
    }
    lines
}

fn lost(hosts: &[HostRow<'_>], at_host: &HostLoss<'_>, width: u16) -> Vec<Line> {
    let loss = at_host.loss;
    let what = if loss.refused { "refused" } else { "lost" };
    let words =
        [loss.reason.as_deref(), loss.function.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" in ");
    let words = if words.is_empty() { String::new() } else { format!(": {words}") };
    let at = loss.name.as_deref().map_or_else(String::new, |name| format!(" {name}"));
    let place = loss.place.word();
    let rate = Count(at_host.packets_per_s);
    let text = format!("{}  {rate} packets/s {what}, {place}{at}{words}", hosts[at_host.host].name);
    sentences(Tone::Bad, &text, width)
}
