//! When something has happened that a recording is to be saved for: a pure function over a scene of plain figures, and what keeps the
//! scene. What it goes by is derived already: bins, losses, latencies, limits, migrations.

mod scene;
#[cfg(test)]
mod tests;
mod threshold;

use super::{Metrics, TestMetrics};
use scene::{TriggerScene, TriggerTrack};
use std::collections::BTreeMap;
use std::time::Duration;

pub use threshold::TriggerError;
pub use vnettop_sample::TriggerKind;

/// What is waited for, and from where on it counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trigger {
    /// What.
    pub kind: TriggerKind,
    /// A dip's share of the median; packets lost within a second; p99 of a second, s; how long the limit before has held, s;
    /// migrations within a second.
    pub threshold: f64,
}

/// What is saved when.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerPlan {
    /// What is waited for; empty where nothing is.
    pub triggers: Vec<Trigger>,
    /// Time before it that is saved.
    pub before: Duration,
    /// Time after it that is saved; what else happens meanwhile belongs to it.
    pub after: Duration,
    /// Files that are left of those that were saved so.
    pub most_files: usize,
    /// Bytes that they have together at most, but for the newest.
    pub most_bytes: u64,
}

impl Default for TriggerPlan {
    fn default() -> Self {
        Self {
            triggers: Vec::new(),
            before: Duration::from_secs(10),
            after: Duration::from_secs(5),
            most_files: 10,
            most_bytes: 100_000_000,
        }
    }
}

/// It has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TriggeredEvent {
    /// What.
    pub kind: TriggerKind,
    /// When it began, as far as that is known, `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
}

/// Looks at every sample for what is waited for.
#[derive(Debug, Clone, Default)]
pub struct TriggerWatch {
    triggers: Vec<Trigger>,
    /// By number of the test; 0 is everything watched, where that counts as one.
    tests: BTreeMap<u32, TriggerTrack>,
}

impl TriggerWatch {
    /// Waits for these.
    #[must_use]
    pub fn new(triggers: Vec<Trigger>) -> Self {
        Self { triggers, tests: BTreeMap::new() }
    }

    /// The first of what this sample shows to have happened; none mostly.
    pub fn observe(&mut self, metrics: &Metrics) -> Option<TriggeredEvent> {
        if self.triggers.is_empty() {
            return None;
        }
        let running = metrics.tests.iter().filter(|test| test.ended_ns.is_none());
        let mut all: Vec<(u32, &TestMetrics, _)> =
            running.map(|test| (test.number, &*test.metrics, test.conclusions.limit.as_ref())).collect();
        if metrics.tests.is_empty() {
            all.push((0, &metrics.subject, metrics.conclusions.limit.as_ref()));
        }
        self.tests.retain(|number, _| all.iter().any(|(other, ..)| other == number));
        let mut first: Option<TriggeredEvent> = None;
        for (number, test, limit) in all {
            let scene = self.tests.entry(number).or_default().observe(test, limit);
            let found = self.triggers.iter().filter_map(|trigger| happened(*trigger, &scene));
            first = first.into_iter().chain(found).min_by_key(|event| event.at_ns);
        }
        first
    }
}

/// Whether what is waited for has begun in this scene.
fn happened(trigger: Trigger, scene: &TriggerScene) -> Option<TriggeredEvent> {
    let Trigger { kind, threshold } = trigger;
    let rises = |[before, now]: [f64; 2]| (now >= threshold && before < threshold).then_some(scene.now_ns);
    let at_ns = match kind {
        TriggerKind::Dip => scene.dip(threshold),
        TriggerKind::Loss => rises(scene.lost),
        TriggerKind::Latency => rises(scene.p99_s),
        TriggerKind::MigrationBurst => rises(scene.migrations),
        TriggerKind::LimitChange => scene.held_s.filter(|held_s| *held_s >= threshold).map(|_| scene.now_ns),
    };
    at_ns.map(|at_ns| TriggeredEvent { kind, at_ns })
}
