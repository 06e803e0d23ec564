//! What Prometheus scrapes: totals and the newest figures as metric families. Names, labels and base units follow Prometheus'
//! conventions and are the contract of docs/export.md; what `node_exporter` has already is not repeated.

mod family;
mod links;
mod machine;
mod space_names;
mod tests_of;

use crate::derive::{Metrics, Totals};
use family::{Families, MetricFamily};
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;
use space_names::SpaceNames;

/// The two forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpositionFormat {
    /// `OpenMetrics` 1.0, which Prometheus asks for.
    OpenMetrics,
    /// Prometheus' text format 0.0.4, for everybody else.
    Text,
}

impl ExpositionFormat {
    /// What of both an `Accept` header asks for.
    #[must_use]
    pub fn accepted(accept: Option<&str>) -> Self {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => Self::OpenMetrics,
            _ => Self::Text,
        }
    }

    /// Its `Content-Type`.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// A whole scrape. `metrics` are those that `totals` has observed last.
#[must_use]
pub fn exposition(totals: &Totals, metrics: &Metrics, format: ExpositionFormat) -> String {
    let spaces = metrics.links.iter().map(|link| link.facts.netns);
    let losses = totals.losses().filter_map(|(group, _)| group.netns);
    let names = SpaceNames::of(metrics, spaces.chain(losses));
    let mut own = machine::of_process(metrics);
    let mut families = machine::families(totals, metrics);
    families.extend(links::families(totals, metrics, &names));
    families.extend(tests_of::families(totals, metrics, &names));
    let with_samples = |families: &mut Vec<MetricFamily>| families.retain(|family| !family.samples.is_empty());
    with_samples(&mut families);
    with_samples(&mut own);
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(own)));
    registry.sub_registry_with_prefix("vnettop").register_collector(Box::new(Families(families)));
    let mut written = String::new();
    let done = match format {
        ExpositionFormat::OpenMetrics => text::encode(&mut written, &registry),
        ExpositionFormat::Text => prometheus_text::encode(&mut written, &registry),
    };
    // To write into a string does not fail.
    done.map(|()| written).unwrap_or_default()
}
