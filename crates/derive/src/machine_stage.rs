//! The first stage: a sample → the machine, whatever is tested on it.

use super::history::History;
use super::machine::MachineMetrics;
use super::owners::Owners;
use super::pins::Pins;
use super::profile::ProfileTrack;
use super::rate::{per_second, seconds};
use super::short_lives::ShortLives;
use super::steers::Steers;
use super::{cores, links, moves, ovs, threads};
use std::sync::Arc;
use vnettop_sample::{Event, Sample, row_of};

/// What the machine's figures need beyond two samples.
#[derive(Debug, Clone, Default)]
pub(super) struct MachineStage {
    owners: Owners,
    pub history: History,
    /// The pins of vnettop that stand.
    pins: Pins,
    /// Its steers.
    steers: Steers,
    switches: ovs::Switches,
    short_lives: ShortLives,
    profile: ProfileTrack,
    /// As of the sample before.
    datapaths: Vec<ovs::DatapathMetrics>,
    /// What happened since the last sample.
    pub events: Vec<Event>,
}

impl MachineStage {
    pub fn observe(&mut self, previous: Option<&Sample>, next: &Sample) -> MachineMetrics {
        self.history.observe_threads(previous, next);
        for event in &self.events {
            self.pins.event(event);
            self.steers.event(event);
            self.profile.event(event);
        }
        let mut links = links::between(previous, next);
        let facts = &next.facts;
        self.switches.join(&facts.ovs, &mut links);
        self.datapaths = ovs::between(&self.datapaths, &next.datapaths);
        let threads = threads::between(previous, next, &self.history, &self.pins);
        let undone = self.pins.undone(threads.iter().map(|thread| &thread.sample), &facts.topology);
        let elapsed_s = previous.and_then(|prev| seconds(prev.at_ns, next.at_ns));
        let own_ns_per_s = previous
            .zip(elapsed_s)
            .and_then(|(prev, elapsed_s)| per_second(prev.own.cpu_ns, next.own.cpu_ns, elapsed_s));
        self.history.observe_links(next, elapsed_s, &links);
        let cores = cores::between(previous, next);
        let own = next.threads.iter().map(|thread| thread.id.pid).collect();
        let idle = |core| row_of(&cores, &core, |row| row.place.core)?.load?.shares.map(|shares| shares.idle);
        let profile = self.profile.observe(next, &own, idle);
        MachineMetrics {
            wall_ms: next.wall_ms,
            at_ns: next.at_ns,
            elapsed_s,
            facts: Arc::clone(facts),
            netns: next.netns,
            kernel: next.kernel.clone(),
            kernel_before: previous.and_then(|previous| previous.kernel.clone()),
            datapaths: self.datapaths.clone(),
            links: Arc::new(links),
            owners: self.owners.join(&facts.owners, &facts.ovs),
            cores,
            profile,
            undone,
            steers: self.steers.observe(next),
            threads: Arc::new(threads),
            moves: Arc::new(moves::traced(previous, next)),
            short_lives: self.short_lives.observe(next),
            own_cpu: own_ns_per_s.map(|ns| ns / 1e9),
            own: next.own,
            tracer: next.tracer,
            trace: next.trace.as_ref().map(|trace| (trace.source, trace.lost)),
            events: std::mem::take(&mut self.events),
        }
    }
}
