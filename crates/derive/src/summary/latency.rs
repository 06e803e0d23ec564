//! How long a test's packets and threads waited, stage by stage, as it was last.

use crate::TestMetrics;
use crate::latency::{Histogram, StageKey, StageLatency, UnknownLatency};
use std::sync::Arc;

/// Stages that are kept.
const MOST_STAGES: usize = 64;

/// Times of one stage since it was measured first.
#[derive(Debug, Clone, PartialEq)]
pub struct StageSummary {
    /// Which.
    pub key: StageKey,
    /// Where time passes, in a few words.
    pub place: String,
    /// All of them.
    pub times: Histogram,
}

/// The newest metrics that have latency: names of links and threads are those of then.
#[derive(Debug, Clone, Default)]
pub(super) struct StagesTrack {
    last: Option<Arc<TestMetrics>>,
}

impl StagesTrack {
    pub fn observe(&mut self, own: &Arc<TestMetrics>) {
        if own.latency.is_some() {
            self.last = Some(Arc::clone(own));
        }
    }

    /// What was not measured, as it was last.
    pub fn unknown(&self) -> Vec<UnknownLatency> {
        let latency = self.last.as_ref().and_then(|own| own.latency.as_deref());
        latency.map_or_else(Vec::new, |latency| latency.unknown.clone())
    }

    /// The whole path, then stage by stage; empty where it was not measured.
    pub fn summaries(&self) -> Vec<StageSummary> {
        let Some((metrics, latency)) = self.last.as_ref().and_then(|own| Some((own, own.latency.as_deref()?))) else {
            return Vec::new();
        };
        let stage = |one: &StageLatency| StageSummary {
            key: one.key,
            place: latency.place(metrics.latency_ground(), &one.key),
            times: one.so_far.clone(),
        };
        latency.whole.iter().chain(&latency.stages).take(MOST_STAGES).map(stage).collect()
    }
}
