//! The tests: their rates, what they lost, what was found.

use super::family::{MetricFamily, Value, labels, with_pod};
use crate::derive::totals::{LATENCY_BOUNDS_NS, LatencyTotal};
use crate::derive::{Metrics, Totals};
use crate::sample::Word;

pub(super) fn families(totals: &Totals, metrics: &Metrics) -> Vec<MetricFamily> {
    let begun = MetricFamily::counter("tests", "Tests started since vnettop started").of(Value::Count(totals.begun));
    let mut all = vec![begun];
    all.extend(of_each_test(totals));
    all.extend([latency(totals), losses(totals), findings(metrics)]);
    all
}

fn of_each_test(totals: &Totals) -> [MetricFamily; 6] {
    let mut running = MetricFamily::gauge("tests_running", "Tests that run, by program and ends");
    let mut bytes =
        MetricFamily::counter("test_bytes", "Payload of tests: what arrived, or where that is not known what was sent");
    let mut retransmits = MetricFamily::counter("test_retransmits", "TCP segments that tests sent again");
    let mut lost =
        MetricFamily::counter("test_lost_packets", "Packets of tests that did not arrive, wherever they were lost");
    let mut spread = MetricFamily::gauge(
        "test_rate_variation_ratio",
        "Deviation over mean of a running test's rate, over half a minute",
    );
    let mut percentiles = MetricFamily::gauge(
        "test_rate_bytes_per_second",
        "Percentiles of a running test's rate in bins of 100 ms, over the same window",
    );
    for (group, counts) in totals.tests() {
        let ends = [
            ("program", &*group.program),
            ("protocol", group.protocol),
            ("client", &*group.client),
            ("server", &*group.server),
        ];
        let own = labels(ends);
        running.add(&own, Value::Now(counts.running as f64));
        bytes.add(&own, Value::Sum(counts.bytes));
        retransmits.add(&own, Value::Sum(counts.retransmits));
        lost.add(&own, Value::Sum(counts.lost));
        let Some(jitter) = counts.jitter else { continue };
        if let Some(cv) = jitter.cv {
            spread.add(&own, Value::Now(cv));
        }
        for (percentile, rate) in [("p5", jitter.p5), ("p50", jitter.p50), ("p95", jitter.p95)] {
            let [program, protocol, client, server] = ends;
            percentiles
                .add(&labels([program, protocol, client, server, ("percentile", percentile)]), Value::Now(rate / 8.0));
        }
    }
    [running, bytes, retransmits, lost, spread, percentiles]
}

/// Bounded: six stages of thirteen buckets for each group of tests.
fn latency(totals: &Totals) -> MetricFamily {
    let mut family = MetricFamily::histogram(
        "test_latency_seconds",
        "How long packets and threads of tests waited, by stage; of the packets that were followed",
    );
    for (group, counts) in totals.tests() {
        for (stage, times) in &counts.latency {
            let own = labels([
                ("program", &group.program),
                ("protocol", group.protocol),
                ("client", &group.client),
                ("server", &group.server),
                ("stage", stage),
            ]);
            family.add(&own, Value::Times(times.sum_s, buckets(times)));
        }
    }
    family
}

fn buckets(times: &LatencyTotal) -> Vec<(f64, u64)> {
    let ends = LATENCY_BOUNDS_NS.iter().map(|bound| *bound as f64 / 1e9).chain([f64::INFINITY]);
    ends.zip(times.buckets).collect()
}

fn losses(totals: &Totals) -> MetricFamily {
    let mut lost = MetricFamily::counter(
        "lost_packets",
        "Packets lost, by place and reason; of all that is watched while no test runs",
    );
    for (group, packets) in totals.losses() {
        let own = labels([("netns", &group.netns), ("place", group.place.word()), ("reason", &group.reason)]);
        let pod = group.pod.as_ref().map(|(namespace, name)| (&**namespace, &**name));
        lost.add(&with_pod(own, pod), Value::Sum(*packets));
    }
    lost
}

fn findings(metrics: &Metrics) -> MetricFamily {
    let mut findings = MetricFamily::gauge("findings", "What vnettop finds now, by the id it has in JSON");
    let mut ids: Vec<&str> = metrics.conclusions.findings.iter().map(|finding| finding.id.word()).collect();
    ids.sort_unstable();
    for same in ids.chunk_by(|one, other| one == other) {
        findings.add(&labels([("id", same[0])]), Value::Now(same.len() as f64));
    }
    findings
}
