//! A metric family: what stands under one name.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use std::fmt;
use std::sync::Arc;

/// Name and value of each label.
pub(super) type SeriesLabels = Arc<[(&'static str, String)]>;

/// A value; those of counters rise.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Count(u64),
    Sum(f64),
    Now(f64),
    /// Sum, and how many in each bucket by its upper end; the last is endless.
    Times(f64, Vec<(f64, u64)>),
}

/// One family. Its name is without the prefix, and of a counter without `_total`.
#[derive(Debug, Clone)]
pub(super) struct MetricFamily {
    name: &'static str,
    /// What it is, without a full stop: the encoder sets it.
    help: &'static str,
    kind: MetricType,
    pub samples: Vec<(SeriesLabels, Value)>,
}

impl MetricFamily {
    pub fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: MetricType::Counter, samples: Vec::new() }
    }

    pub fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { kind: MetricType::Gauge, ..Self::counter(name, help) }
    }

    pub fn histogram(name: &'static str, help: &'static str) -> Self {
        Self { kind: MetricType::Histogram, ..Self::counter(name, help) }
    }

    pub fn add(&mut self, labels: &SeriesLabels, value: Value) {
        self.samples.push((Arc::clone(labels), value));
    }

    /// With the one sample that it has.
    pub fn of(mut self, value: Value) -> Self {
        self.add(&labels([]), value);
        self
    }
}

/// Beside these the Kubernetes namespace and name of a pod; nothing more where it is no pod's.
pub(super) fn with_pod(own: SeriesLabels, pod: Option<(&str, &str)>) -> SeriesLabels {
    let Some((namespace, name)) = pod else { return own };
    own.iter().cloned().chain([("namespace", namespace.to_owned()), ("pod", name.to_owned())]).collect()
}

/// Labels with their values; one without a value is left away by Prometheus.
pub(super) fn labels<const N: usize>(of: [(&'static str, &str); N]) -> SeriesLabels {
    of.into_iter().map(|(name, value)| (name, value.to_owned())).collect()
}

/// What is written together.
#[derive(Debug)]
pub(super) struct Families(pub Vec<MetricFamily>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for family in &self.0 {
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, family.kind)?;
            for (labels, value) in &family.samples {
                let labels = &**labels;
                let mut one = metric.encode_family(&labels)?;
                match value {
                    Value::Count(count) => one.encode_counter::<NoLabelSet, _, u64>(count, None)?,
                    Value::Sum(sum) => one.encode_counter::<NoLabelSet, _, u64>(sum, None)?,
                    Value::Now(now) => one.encode_gauge(now)?,
                    Value::Times(sum, buckets) => {
                        let count = buckets.iter().map(|(_, count)| count).sum();
                        one.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)?;
                    }
                }
            }
        }
        Ok(())
    }
}
