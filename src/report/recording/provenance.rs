//! Where the figures of a report are from, in a few lines that stand on paper too: the machine, its kernel, when and how it was
//! measured, and which file that is.

use super::ReportedRecording;
use super::words::{count, length, when};
use crate::derive::{RecordingSummary, plural};
use crate::report::document::Block;
use crate::report::page::{Fact, fact};
use crate::sample::TraceSource;

pub(super) fn blocks(recording: &ReportedRecording, summary: &RecordingSummary) -> Vec<Block> {
    let (host, cores) = (&summary.facts.host, summary.facts.topology.cores.len());
    let by = recording.recorded_by.as_ref().map_or_else(|| "vnettop".to_owned(), |by| format!("vnettop {by}"));
    let interval = length(summary.interval_ns as f64 / 1e9);
    let samples = plural(usize::try_from(summary.samples).unwrap_or(usize::MAX), "sample");
    let late = format!("{} late, {} left out", count(summary.late_ticks as f64), count(summary.left_out as f64));
    let dated = format!("{}, {} long", when(summary.begin_wall_ms), length(summary.seconds()));
    let mut facts = vec![
        fact("machine", format!("{}, {}", host.name, plural(cores, "core"))),
        fact("kernel", format!("Linux {} {}", host.kernel, host.arch)),
    ];
    if summary.origin.is_some() {
        facts.push(fact("dated", dated));
        facts.push(fact("rebuilt as of", format!("{by}: {samples}, one every {interval}")));
    } else {
        facts.push(fact("recorded", dated));
        facts.push(fact("recorded by", format!("{by}: {samples}, one every {interval} ({late})")));
        facts.push(fact("migrations", traced(summary)));
    }
    facts.extend(file(recording));
    let title = if summary.origin.is_some() { "How it was made" } else { "How it was measured" };
    vec![Block::Heading(title.to_owned()), Block::Facts(facts)]
}

/// The file with its fingerprint: whoever has it can tell that the figures are of it (`sha256sum`).
fn file(recording: &ReportedRecording) -> Vec<Fact> {
    let Some(file) = &recording.file else { return Vec::new() };
    vec![
        fact("file", format!("{}, {} bytes", recording.name, count(file.bytes as f64))),
        fact("SHA-256", file.sha256.clone()),
    ]
}

/// Where the migrations come from, and how many of them are only counted.
fn traced(summary: &RecordingSummary) -> String {
    let how = match summary.trace {
        Some(TraceSource::Bpf) => "traced by BPF",
        Some(TraceSource::Ftrace) => "traced by ftrace",
        Some(TraceSource::Perf) => return "sampled by perf, which misses some".to_owned(),
        None => return "counted by the kernel, without their instants".to_owned(),
    };
    match summary.only_counted() {
        (0, _) => format!("{how}, every one"),
        (some, all) => format!("{how}; {} of {} only counted", count(some as f64), count(all as f64)),
    }
}
