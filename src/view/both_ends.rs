//! A test of which two hosts each see an end: its two ends one below the other, its path hop by hop over the wire, and what was lost
//! on either side.

use super::canvas::fitted;
use super::format::{Count, Percent, Rate, UNKNOWN};
use super::lines::{Line, sentences};
use super::text::namespace;
use super::{HostRow, Tone, path};
use crate::derive::end_to_end::{EndToEnd, HostEnd, HostHop, HostLoss};
use crate::sample::Word;
use std::collections::BTreeSet;

/// The columns of the ends: title and cells.
const COLUMNS: [(&str, usize); 8] = [
    ("END", 9),
    ("HOST", 10),
    ("PROCESS", 18),
    ("CORE", 9),
    ("CPU%", 5),
    ("MIGR/s", 7),
    ("RATE", 7),
    ("RETR/s", 7),
];
/// Cells of the host's name before a hop.
const HOST: usize = 9;
/// From so many rows on the path is a table; below them a line a host.
const TALL: u16 = 22;

/// Every such test.
pub(super) fn lines(hosts: &[HostRow<'_>], tests: &[EndToEnd<'_>], (width, height): (u16, u16)) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for test in tests {
        if !lines.is_empty() {
            lines.push(Line::new());
            lines.extend(sentences(Tone::Title, &test.sender.test.words(), width));
        }
        lines.push(row(COLUMNS.map(|(title, _)| (Tone::Header, title.to_owned()))));
        lines.push(end(hosts, "sender", &test.sender));
        lines.push(end(hosts, "receiver", &test.receiver));
        lines.push(spread(hosts, test));
        lines.push(Line::new());
        if height >= TALL {
            lines.extend(table(hosts, &test.hops, width));
        } else {
            lines.extend(short(hosts, &test.hops, width));
        }
        for (host, gap) in &test.gaps {
            lines.extend(sentences(Tone::Warning, &format!("… cut off on {}: {gap}", hosts[*host].name), width));
        }
        lines.extend(test.losses.iter().flat_map(|loss| lost(hosts, loss, width)));
    }
    lines
}

fn row(texts: [(Tone, String); 8]) -> Line {
    let each = COLUMNS.iter().zip(texts).enumerate();
    each.map(|(at, ((_, cells), (tone, text)))| {
        let text = if at < 3 { format!("{} ", fitted(&text, *cells)) } else { format!("{text:>cells$} ") };
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
    let busy = || end.threads.iter().filter(|thread| thread.cpu.is_some_and(|cpu| cpu > 0.01));
    let cores: BTreeSet<u32> = busy().map(|thread| u32::from(thread.sample.core)).collect();
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
        (Tone::Normal, process),
        (if pinned { Tone::Good } else { Tone::Watched }, if pinned { format!("{cores} pin") } else { cores }),
        (Tone::Normal, Percent(sum(|thread| thread.cpu)).to_string()),
        (if migrates.is_some_and(|rate| rate >= 1.0) { Tone::Warning } else { Tone::Normal }, Count(migrates).to_string()),
        (Tone::Accent, Rate(end.bits_per_s, host.state.settings().units).to_string()),
        (if end.retransmits_per_s.is_some_and(|rate| rate > 0.0) { Tone::Warning } else { Tone::Normal }, retransmits),
    ])
}

/// How steady the rate is at each end, by that host's own clock.
fn spread(hosts: &[HostRow<'_>], test: &EndToEnd<'_>) -> Line {
    let of = |end: &HostEnd<'_>| format!("{} {} %", hosts[end.host].name, Percent(end.jitter.and_then(|jitter| jitter.cv)));
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
        let space = if netns.replace(here) == Some(here) { String::new() } else { namespace(metrics, hop.hop.link.netns) };
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

fn lost(hosts: &[HostRow<'_>], lost: &HostLoss<'_>, width: u16) -> Vec<Line> {
    let loss = lost.loss;
    let what = if loss.refused { "refused" } else { "lost" };
    let words = [loss.reason.as_deref(), loss.function.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" in ");
    let words = if words.is_empty() { String::new() } else { format!(": {words}") };
    let at = loss.name.as_deref().map_or_else(String::new, |name| format!(" {name}"));
    let place = loss.place.word();
    let rate = Count(lost.packets_per_s);
    let text = format!("{}  {rate} packets/s {what}, {place}{at}{words}", hosts[lost.host].name);
    sentences(Tone::Bad, &text, width)
}
