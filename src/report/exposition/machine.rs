//! Cores and threads, what vnettop itself costs, and what it can see.

use super::family::{MetricFamily, Value, labels};
use crate::derive::{Metrics, Totals};
use crate::sample::{ProblemSource, SOFTIRQ_KINDS, Word};
use std::collections::BTreeMap;
use strum::IntoEnumIterator;

pub(super) fn families(totals: &Totals, metrics: &Metrics) -> Vec<MetricFamily> {
    let mut all = vec![softirqs(metrics)];
    all.extend(threads(totals));
    all.extend(own(totals, metrics));
    all
}

/// The names that every exporter uses for itself.
pub(super) fn of_process(metrics: &Metrics) -> Vec<MetricFamily> {
    let seconds = metrics.machine.own.cpu_ns as f64 / 1e9;
    vec![MetricFamily::counter("process_cpu_seconds", "CPU time of vnettop itself").of(Value::Sum(seconds))]
}

fn softirqs(metrics: &Metrics) -> MetricFamily {
    let mut family = MetricFamily::counter(
        "core_softirq_seconds",
        "Time in softirqs by core and kind, measured from entry to exit (BPF)",
    );
    let measured = metrics.machine.kernel.as_ref().and_then(|kernel| kernel.softirqs.as_ref());
    for time in measured.into_iter().flatten() {
        let core = time.core.to_string();
        for (kind, ns) in SOFTIRQ_KINDS.iter().zip(time.ns).filter(|(kind, ns)| *ns > 0 || kind.is_of_network()) {
            let kind = kind.word().to_lowercase();
            family.add(&labels([("core", &core), ("kind", &kind)]), Value::Sum(ns as f64 / 1e9));
        }
    }
    family
}

fn threads(totals: &Totals) -> Vec<MetricFamily> {
    let mut now = MetricFamily::gauge("threads", "Watched threads by program and role");
    let mut moves = MetricFamily::counter(
        "thread_migrations",
        "Migrations of watched threads between cores; class is the innermost level crossed",
    );
    let mut cpu = MetricFamily::counter("thread_cpu_seconds", "CPU time of watched threads");
    let mut wait =
        MetricFamily::counter("thread_wait_seconds", "Time in which watched threads were runnable without a core");
    for (group, counts) in totals.threads() {
        let own = labels([("program", &group.program), ("role", group.role)]);
        now.add(&own, Value::Now(counts.threads as f64));
        cpu.add(&own, Value::Sum(counts.cpu_s));
        wait.add(&own, Value::Sum(counts.wait_s));
        for (class, count) in counts.by_class() {
            let class = class.map_or("unknown", |class| class.word());
            let with_class = labels([("program", &group.program), ("role", group.role), ("class", class)]);
            moves.add(&with_class, Value::Count(count));
        }
    }
    vec![now, moves, cpu, wait]
}

fn own(totals: &Totals, metrics: &Metrics) -> Vec<MetricFamily> {
    let mut build = MetricFamily::gauge("build_info", "The version of vnettop, and the kernel it watches; always 1");
    let host = &metrics.machine.facts.host;
    let version = env!("CARGO_PKG_VERSION");
    build.add(&labels([("version", version), ("kernel", &host.kernel), ("arch", &host.arch)]), Value::Now(1.0));
    let mut sources = MetricFamily::gauge(
        "source_available",
        "Whether this can be known here: 1 yes, 0 no (then vnettop doctor says why)",
    );
    let can = |known| Value::Now(if known { 1.0 } else { 0.0 });
    // Nothing is traced while nothing is watched.
    if !metrics.threads.is_empty() {
        sources.add(&labels([("source", "traced_migrations")]), can(metrics.machine.trace.is_some()));
    }
    sources.add(&labels([("source", "kernel_drops")]), can(metrics.machine.asks_kernel()));
    let softirqs = metrics.machine.kernel.as_ref().is_some_and(|kernel| kernel.softirqs.is_some());
    sources.add(&labels([("source", "softirq_time")]), can(softirqs));
    let mut problems = MetricFamily::gauge("problems", "What could not be read, by source; --json has each in words");
    let mut by_source: BTreeMap<String, f64> = ProblemSource::iter()
        .map(|source| (source.to_string(), 0.0))
        .filter(|(source, _)| !source.is_empty())
        .collect();
    for problem in metrics.machine.facts.problems.iter() {
        *by_source.entry(problem.source.to_string()).or_default() += 1.0;
    }
    for (source, count) in &by_source {
        problems.add(&labels([("source", source)]), Value::Now(*count));
    }
    let mut left_out =
        MetricFamily::gauge("left_out", "Links omitted from these metrics now, and groups of other series");
    for (kind, count) in totals.left_out() {
        left_out.add(&labels([("what", kind)]), Value::Now(count as f64));
    }
    let mut saved = MetricFamily::counter("saved_recordings", "Recordings saved because something happened (--on)");
    for (kind, count) in totals.saves.each() {
        saved.add(&labels([("event", kind.word())]), Value::Count(count));
    }
    vec![
        build,
        sources,
        problems,
        left_out,
        saved,
        MetricFamily::counter("late_ticks", "Samples that were late or left out")
            .of(Value::Count(metrics.machine.own.late_ticks + metrics.machine.own.left_out)),
        MetricFamily::gauge("sample_timestamp_seconds", "When the newest sample was taken, since 1970")
            .of(Value::Now(metrics.machine.wall_ms as f64 / 1e3)),
    ]
}
