//! The links.

use super::family::{MetricFamily, SeriesLabels, Value, labels, with_pod};
use crate::derive::totals::{LinkName, LinkTotal, SpaceLabels};
use crate::derive::{Metrics, Totals};
use crate::sample::Word;
use std::collections::BTreeSet;

pub(super) fn families(totals: &Totals, metrics: &Metrics) -> Vec<MetricFamily> {
    let links = totals.links.of(metrics);
    let names = SpaceLabels::of(metrics);
    let mut seen = BTreeSet::new();
    let mut rows: Vec<(SeriesLabels, &LinkTotal)> = Vec::with_capacity(links.len());
    for link in &links {
        let own = labels_of(link, &names);
        // Two with the same labels would make the whole scrape invalid.
        if seen.insert(SeriesLabels::clone(&own)) {
            rows.push((own, link));
        }
    }
    let counter = |name, help, of: fn(&LinkTotal) -> Option<u64>| {
        let mut family = MetricFamily::counter(name, help);
        rows.iter().filter_map(|(labels, link)| Some((labels, of(link)?))).for_each(|(labels, count)| {
            family.add(labels, Value::Count(count));
        });
        family
    };
    let mut claims = MetricFamily::gauge(
        "link_claim_bytes_per_second",
        "Speed that the driver reports through ethtool; basis says whether it is a real limit",
    );
    for (labels, link) in &rows {
        if let Some((claim, basis)) = link.claim {
            let with_basis = labels.iter().cloned().chain([("basis", basis.word().to_owned())]).collect();
            claims.add(&with_basis, Value::Now(claim as f64 / 8.0));
        }
    }
    let mut all = MetricFamily::gauge("links", "Links that are watched");
    all.add(&labels([]), Value::Now(metrics.machine.links.len() as f64));
    vec![
        counter("link_receive_bytes", "Bytes received", |link| Some(link.counts.rx_bytes)),
        counter("link_transmit_bytes", "Bytes sent", |link| Some(link.counts.tx_bytes)),
        counter("link_receive_packets", "Packets received", |link| Some(link.counts.rx_packets)),
        counter("link_transmit_packets", "Packets sent", |link| Some(link.counts.tx_packets)),
        counter("link_receive_drops", "Received packets dropped", |link| Some(link.counts.faults?[0])),
        counter("link_transmit_drops", "Packets dropped before they were sent", |link| Some(link.counts.faults?[1])),
        counter("link_receive_errors", "Received packets with errors", |link| Some(link.counts.faults?[2])),
        counter("link_transmit_errors", "Packets that could not be sent", |link| Some(link.counts.faults?[3])),
        claims,
        all,
    ]
}

fn labels_of(link: &LinkTotal, names: &SpaceLabels) -> SeriesLabels {
    let name = match &link.name {
        LinkName::Own(name) => name,
        LinkName::OfOwner => "",
    };
    let own = [("netns", names.label(link.netns)), ("link", name), ("kind", link.kind.word()), ("owner", &link.owner)];
    with_pod(labels(own), link.pod_namespace.as_deref().map(|namespace| (namespace, &*link.owner)))
}
