//! The first stage: a sample → the machine, whatever is tested on it.

use super::history::History;
use super::machine::MachineMetrics;
use super::owners::Owners;
use super::pins::Pins;
use super::profile::ProfileTrack;
use super::rate::{per_second, seconds};
use super::saved::SavedFor;
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
    saved: Option<SavedFor>,
    /// That is told as an event once its moment is there.
    is_saved_due: bool,
    /// As of the sample before.
    datapaths: Vec<ovs::DatapathMetrics>,
    /// What happened since the last sample.
    pub events: Vec<Event>,
}

impl MachineStage {
    pub fn observe(&mut self, previous: Option<&Sample>, next: &Sample) -> MachineMetrics {
        self.history.observe_threads(previous, next);
        self.await_saved(next.at_ns);
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
            saved: self.saved,
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

    /// Why a recording was saved stands before its first sample, and is told when it happens.
    fn await_saved(&mut self, at_ns: u64) {
        let is_one = |event: &mut Event| matches!(event, Event::Saved { .. });
        for event in self.events.extract_if(.., is_one) {
            if let Event::Saved { at_ns: since_ns, trigger } = event {
                self.saved = Some(SavedFor::new(trigger, since_ns, at_ns));
                self.is_saved_due = true;
            }
        }
        if let Some(saved) = self.saved.filter(|saved| self.is_saved_due && saved.at_ns <= at_ns) {
            self.events.push(Event::Saved { at_ns: saved.at_ns, trigger: saved.trigger });
            self.is_saved_due = false;
        }
    }
}
