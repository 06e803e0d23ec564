//! What Prometheus scrapes: totals and the newest figures as metric families. Names, labels and base units follow Prometheus'
//! conventions and are the contract of docs/export.md; what `node_exporter` has already is not repeated.

mod family;
mod links;
mod machine;
mod tests_of;

use crate::derive::{Metrics, Totals};
use family::{Families, MetricFamily};
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;

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
        let weight = |wanted: &str| {
            let kinds = accept.unwrap_or_default().split(',').map(|kind| kind.trim().split(';'));
            let weight = |mut words: std::str::Split<'_, char>| {
                words.next().filter(|kind| kind.trim() == wanted)?;
                let given = words.find_map(|word| word.trim().strip_prefix("q=")?.parse::<f64>().ok());
                Some(given.unwrap_or(1.0))
            };
            kinds.filter_map(weight).fold(0.0, f64::max)
        };
        let open = weight("application/openmetrics-text");
        if open > 0.0 && open >= weight("text/plain") { Self::OpenMetrics } else { Self::Text }
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
    let mut own = machine::of_process(metrics);
    let mut families = machine::families(totals, metrics);
    families.extend(links::families(totals, metrics));
    families.extend(tests_of::families(totals, metrics));
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

#[cfg(test)]
mod tests {
    use super::ExpositionFormat::{self, OpenMetrics, Text};

    #[test]
    fn the_form_is_the_one_that_is_wanted_most() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1";
        let cases = [
            (None, Text),
            (Some("*/*"), Text),
            (Some(prometheus), OpenMetrics),
            (Some("application/openmetrics-text"), OpenMetrics),
            (Some("application/openmetrics-text;q=0"), Text),
            (Some("application/openmetrics-text;q=0.3, text/plain;version=0.0.4;q=0.7"), Text),
        ];
        for (accept, format) in cases {
            assert_eq!(ExpositionFormat::accepted(accept), format, "{accept:?}");
        }
    }
}
