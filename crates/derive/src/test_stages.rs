//! What is derived of a benchmark, stage by stage: each takes what those before it have returned. It runs once for everything
//! that is watched, and once for each test.

use super::conclusions::Conclusions;
use super::diagnosis::RateDiagnosis;
use super::experiment::{LatencyChange, MOST_AFTER_NS, OtherLoad, PinTrial, Verdict};
use super::flow::FlowTrack;
use super::history::History;
use super::jitter::{self, Jitter};
use super::latency::LatencyTrack;
use super::ledger::Ledger;
use super::limit::{Limit, LimitTrack};
use super::losses::LossTrack;
use super::machine::MachineMetrics;
use super::moves::TracedMove;
use super::pins::OverriddenPin;
use super::recent_load::RecentLoad;
use super::scope::kept;
use super::test_metrics::TestMetrics;
use super::threads::ThreadMetrics;
use super::timeline::TimelineTrack;
use super::{benchmarks, finding, workers};
use std::sync::Arc;
use vnettop_sample::{Duty, Event, Sample};

/// What of the machine's figures is a test's own, or of everything that is watched.
pub(super) struct OwnPart {
    pub machine: Arc<MachineMetrics>,
    /// Threads without those of switches.
    pub threads: Arc<Vec<ThreadMetrics>>,
    pub moves: Arc<Vec<TracedMove>>,
    pub undone: Vec<OverriddenPin>,
    pub events: Vec<Event>,
}

impl OwnPart {
    pub fn of_everything(machine: &Arc<MachineMetrics>) -> Self {
        let is_watched = |thread: &ThreadMetrics| thread.sample.duty != Duty::Carrier;
        Self {
            threads: kept(&machine.threads, is_watched),
            moves: Arc::clone(&machine.moves),
            undone: machine.undone.clone(),
            events: machine.events.clone(),
            machine: Arc::clone(machine),
        }
    }
}

/// The second stage, in its order: the flows, what of them was lost, what a pin brought, what the rate follows, what is to be
/// said, what holds the test back.
#[derive(Debug, Clone, Default)]
pub(super) struct TestStages {
    pub flow: FlowTrack,
    losses: LossTrack,
    received: benchmarks::LastInterval,
    trial: PinTrial,
    others: Ledger<OtherLoad>,
    recent: Arc<RecentLoad>,
    diagnosis: RateDiagnosis,
    limit: LimitTrack,
    timeline: TimelineTrack,
    latency: LatencyTrack,
}

impl TestStages {
    /// What is measured of the test, and what is concluded from that.
    pub fn observe(
        &mut self,
        previous: Option<&Sample>,
        next: &Sample,
        own: OwnPart,
        history: &History,
    ) -> (TestMetrics, Conclusions) {
        for event in &own.events {
            self.diagnosis.event(event);
            self.received.event(event);
            self.timeline.event(event);
        }
        let metrics = self.measure(previous, next, own);
        let conclusions = self.conclude(previous, next, &metrics, history);
        (metrics, conclusions)
    }

    fn measure(&mut self, previous: Option<&Sample>, next: &Sample, own: OwnPart) -> TestMetrics {
        let OwnPart { machine, threads, moves, undone, events } = own;
        self.flow.observe(previous, next, &machine.links);
        let flow = self.flow.metrics();
        let losses = self.losses.observe(previous, next, &machine, &flow);
        let benchmarks = benchmarks::all(&next.facts.benchmarks, &flow.connections, &self.received);
        let workers = Arc::new(workers::on(&machine, &next.facts.paths, &flow));
        let own = workers::with_ends(&threads, &workers);
        Arc::make_mut(&mut self.recent).observe(&machine, &own, &benchmarks);
        self.others.extend(OtherLoad::of(&machine, self.recent.others));
        self.others.forget(next.at_ns.saturating_sub(3 * MOST_AFTER_NS));
        let before_ns = previous.map_or(next.at_ns, |previous| previous.at_ns);
        let timeline = self.timeline.observe((before_ns, next.at_ns), &losses, &flow, &self.flow.bins);
        self.trial.tick(&events, before_ns, next.at_ns, &self.flow.bins, &self.others);
        let window = self.diagnosis.window(&self.flow.bins, next.at_ns);
        let mut metrics = TestMetrics {
            jitter: Jitter::of(&window),
            steady_s: jitter::steady_s(&window),
            recent: Arc::clone(&self.recent),
            card: self.trial.card.clone(),
            benchmarks,
            machine,
            threads,
            workers,
            moves,
            undone,
            paths: Arc::clone(&next.facts.paths),
            flow,
            losses,
            timeline,
            latency: None,
        };
        metrics.latency = self.latency.observe(next, metrics.latency_ground());
        if let (Some(card), Some(latency)) = (&mut metrics.card, &metrics.latency) {
            let phases: Vec<_> = card.phases.iter().map(|phase| (phase.side, phase.from_ns, phase.to_ns)).collect();
            card.latency = LatencyChange::of(&phases, &latency.seconds);
        }
        metrics
    }

    fn conclude(
        &mut self,
        previous: Option<&Sample>,
        next: &Sample,
        metrics: &TestMetrics,
        history: &History,
    ) -> Conclusions {
        self.diagnosis.observe(next, metrics, &self.flow.bins, self.flow.basis.as_ref());
        // What a measurement has contradicted is not proposed again.
        let is_worse = metrics.card.as_ref().is_some_and(|card| card.verdict == Verdict::Worse);
        let placement_may_help = self.diagnosis.conclusion.placement_may_help && !is_worse;
        let placeable = |tid| self.diagnosis.conclusion.placeable.iter().any(|thread| thread.tid == tid);
        let limit = self.limit.observe(previous, next, metrics, &self.flow).map(|limit| Limit {
            key: limit.tid.filter(|&tid| placement_may_help && placeable(tid)).map(|_| 'p'),
            ..limit
        });
        let (findings, limit_leads) =
            finding::all(metrics, limit.as_ref(), placement_may_help, history, &self.diagnosis);
        let offered = placement_may_help.then(|| self.diagnosis.conclusion.proposed.clone());
        let no_free_core = placement_may_help && self.diagnosis.conclusion.others_everywhere;
        let proposed = offered.unwrap_or_default();
        Conclusions { limit, findings, limit_leads, placement_may_help, proposed, no_free_core }
    }
}
