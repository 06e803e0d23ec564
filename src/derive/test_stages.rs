//! What is derived of a benchmark, stage by stage: each takes what those before it have returned. It runs once for everything
//! that is watched, and once for each test.

use super::before_after::{MOST_AFTER_NS, Others, PinTrial, Verdict};
use super::diagnosis::RateDiagnosis;
use super::flow::FlowTrack;
use super::history::History;
use super::jitter::Jitter;
use super::limit::LimitTrack;
use super::losses::LossTrack;
use super::placement::RecentLoad;
use super::timeline::TimelineTrack;
use super::{Metrics, benchmarks, finding};
use crate::sample::Sample;
use std::sync::Arc;

/// The second stage, in its order: the flows, what of them was lost, what a pin brought, what the rate follows, what is to be
/// said, what holds the test back.
#[derive(Debug, Clone, Default)]
pub(super) struct TestStages {
    pub flow: FlowTrack,
    losses: LossTrack,
    heard: benchmarks::LastInterval,
    trial: PinTrial,
    others: Others,
    recent: Arc<RecentLoad>,
    diagnosis: RateDiagnosis,
    limit: LimitTrack,
    timeline: TimelineTrack,
}

impl TestStages {
    /// Fills in what the first stage has left empty.
    pub fn observe(&mut self, previous: Option<&Sample>, next: &Sample, metrics: &mut Metrics, history: &History) {
        for event in &metrics.events {
            self.diagnosis.event(event);
            self.heard.event(event);
            self.timeline.event(event);
        }
        self.flow.observe(previous, next, &metrics.links);
        metrics.flow = self.flow.metrics();
        metrics.benchmarks = benchmarks::all(&next.facts.benchmarks, &metrics.flow.connections, &self.heard);
        metrics.losses = self.losses.observe(previous, next, metrics);
        metrics.jitter = Jitter::of(&self.diagnosis.window(&self.flow.bins, next.at_ns));
        Arc::make_mut(&mut self.recent).observe(metrics);
        metrics.recent = Arc::clone(&self.recent);
        self.others.observe(metrics);
        self.others.forget(next.at_ns.saturating_sub(3 * MOST_AFTER_NS));
        let before_ns = previous.map_or(next.at_ns, |previous| previous.at_ns);
        metrics.timeline = self.timeline.observe(before_ns, next.at_ns, &metrics.losses, &self.flow.bins);
        self.trial.tick(&metrics.events, before_ns, next.at_ns, &self.flow.bins, &self.others);
        metrics.card.clone_from(&self.trial.card);
        self.diagnosis.observe(next, metrics, &self.flow.bins, self.flow.basis.as_ref());
        // What a measurement has contradicted is not proposed again.
        let is_worse = metrics.card.as_ref().is_some_and(|card| card.verdict == Verdict::Worse);
        metrics.placement_may_help = self.diagnosis.conclusion.placement_may_help && !is_worse;
        metrics.limit = self.limit.observe(previous, next, metrics, &self.flow);
        metrics.findings = finding::all(metrics, history, &self.diagnosis);
    }
}
