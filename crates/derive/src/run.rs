//! A benchmark under observation: folds the items of a run into its card. Live or from a recording the same items give
//! the same card, because nothing but them goes in. It watches; who is pinned when is decided elsewhere and comes here
//! as events.

mod card;
mod drops;
mod observer;
mod reported;
mod round_trips;
#[cfg(test)]
mod tests;
mod tracks;
mod tried;

pub use card::{CardLimit, Measured, MovesSeen, PinComparison, RunCard, WatchedThreads};
pub use drops::{DroppedOnPath, RunDrops};
pub use observer::Run;
pub use reported::{MeasuredRate, OwnFigures};
pub use round_trips::DataRoundTrips;
pub use tried::{BestTreatment, SearchResult, SearchedPlacement};

use super::experiment::{OtherLoad, PhaseLog, PhaseMeans};
use super::flow::FlowTrack;
use super::ledger::Ledger;
use super::moves::Evidence;
use super::placement::{self, BUSY};
use super::{Finding, Metrics, ThreadMetrics};
use compact_str::CompactString;
use round_trips::TripReadings;
use std::collections::BTreeMap;
use std::sync::Arc;
use tracks::BinStore;
use tried::SearchEvents;
use vnettop_sample::{CoreSet, Event, PinMode, ProblemSource, Report, RunAsked, Sample, StretchSide, ThreadId};

/// How often a proposal is made anew, ns: it takes longer than everything else here.
const PROPOSE_EVERY_NS: u64 = 2_000_000_000;

/// One start of the command.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CommandRun {
    /// `CLOCK_MONOTONIC` at which it was started, ns.
    pub from_ns: u64,
    /// `CLOCK_MONOTONIC` at which it ended, ns; `None` while it runs, and where a recording stops before.
    pub to_ns: Option<u64>,
    /// Its exit code, 128 + the signal that ended it.
    pub code: Option<i32>,
}

impl CommandRun {
    /// From its start to its end, or for ever.
    pub(super) fn span(&self) -> (u64, u64) {
        (self.from_ns, self.to_ns.unwrap_or(u64::MAX))
    }
}

/// A finding and how long it was there while the benchmark was busy.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// As it was last.
    pub finding: Finding,
    /// Seconds it was there.
    pub seconds: f64,
    /// The sample that its figures are of, monotonic ns.
    pub at_ns: u64,
}

/// Everything a card is made of, collected item by item. Takes 80 bytes for every bin of 100 ms.
#[derive(Debug, Default)]
struct Observation {
    asked: Option<RunAsked>,
    /// Fields of the card that are collected as they come; `card::of` computes the rest.
    known: RunCard,
    phases: PhaseLog<StretchSide>,
    tracks: BinStore,
    search: SearchEvents,
    /// Watched threads that were seen, and those of them that were busy: name, role.
    watched: BTreeMap<ThreadId, (CompactString, &'static str)>,
    busy: BTreeMap<ThreadId, (CompactString, &'static str)>,
    /// The weakest that the moves of a busy thread rest on.
    evidence: Option<Evidence>,
    /// Some of them were traced.
    traced: bool,
    drops: RunDrops,
    trips: TripReadings,
    others: Ledger<OtherLoad>,
    proposed_at_ns: u64,
    pins: BTreeMap<ThreadId, CoreSet>,
    /// Files of links' settings that were changed so far.
    steered: usize,
    /// Why nobody was pinned when it was time to, as it was last.
    not_pinned: Option<String>,
}

impl Observation {
    /// Takes a sample, as far as it was derived from, and what was derived from it.
    fn observe(&mut self, sample: &Sample, metrics: &Metrics, flow: &FlowTrack) {
        self.drops.observe(sample, self.runs());
        self.tracks.follow(&flow.bins, flow.basis.as_ref());
        self.others.extend(OtherLoad::of(&metrics.machine, metrics.subject.recent.others));
        self.known.host = Arc::clone(&metrics.machine.facts.host);
        self.known.cores = metrics.machine.cores.len();
        if !self.runs() {
            return;
        }
        self.trips.observe(metrics);
        self.drops.observe_way(&metrics.subject.losses);
        self.search.observe(metrics, self.asked.as_ref().map_or(0, |asked| asked.settle_ns));
        self.look_for_reason(metrics);
        for thread in metrics.subject.threads.iter() {
            let id = thread.sample.id;
            name(&mut self.watched, thread);
            if is_busy(metrics, id) {
                name(&mut self.busy, thread);
                self.traced |= thread.evidence == Evidence::Traced;
                self.evidence = self.evidence.max(Some(thread.evidence));
            }
        }
        if metrics.subject.threads.iter().any(|thread| is_busy(metrics, thread.sample.id)) {
            self.known.busy_s += metrics.machine.elapsed_s.unwrap_or(0.0);
            // What a search tries is no fault of the benchmark's.
            if self.asked.as_ref().is_none_or(|asked| !asked.is_search()) {
                self.findings(metrics);
            }
            self.propose(metrics);
        }
    }

    /// The card as of now.
    fn card(&self) -> Option<RunCard> {
        self.asked.as_ref().map(|asked| card::of(self, asked))
    }

    /// The means of the phases of a search.
    fn search_means(&self) -> PhaseMeans {
        let settle_ns = self.asked.as_ref().map_or(0, |asked| asked.settle_ns);
        self.search.means(&self.known.runs, self.tracks.best(), settle_ns)
    }

    /// A UDP test without a rate says why; where no socket could be read, the source does.
    fn look_for_reason(&mut self, metrics: &Metrics) {
        let of_test = metrics.subject.flow.tests.iter().filter(|test| !test.is_new()).find_map(|test| test.gap);
        let of_test = of_test.map(|gap| gap.to_string());
        let of_source = || metrics.machine.facts.problems.iter().find(|problem| problem.source == ProblemSource::Flows);
        if let Some(reason) = of_test.or_else(|| of_source().map(|problem| problem.text.clone())) {
            self.known.why_link = Some(reason);
        }
    }

    /// The command runs.
    fn runs(&self) -> bool {
        self.known.runs.last().is_some_and(|run| run.to_ns.is_none())
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::RunAsked(asked) => self.asked = Some(asked.clone()),
            Event::RunStarted { at_ns, .. } => {
                self.known.runs.push(CommandRun { from_ns: *at_ns, to_ns: None, code: None });
            }
            Event::Stretch { at_ns, side } => self.stretch(*at_ns, *side),
            Event::RunEnded { at_ns, code } => {
                self.stretch(*at_ns, None);
                if let Some(run) = self.known.runs.last_mut() {
                    (run.to_ns, run.code) = (Some(*at_ns), Some(*code));
                }
            }
            Event::Pinned { thread, got, .. } => {
                self.pins.insert(*thread, got.clone());
            }
            Event::Search { at_ns, step } => self.search.step(*at_ns, step),
            Event::NotPinned { why, .. } => self.not_pinned = Some(why.clone()),
            Event::Reported { pid, side, report, .. } if self.runs() => match *report {
                Report::Interval(_) => {}
                Report::Unread(why) => self.known.unread = Some(why),
                Report::Whole(whole) => {
                    let run = self.known.runs.len() - 1;
                    self.known.reported.push(OwnFigures { run, pid: *pid, side: *side, whole, measured: None });
                }
            },
            Event::Steered { .. } => self.steered += 1,
            Event::Reported { .. }
            | Event::Restored { .. }
            | Event::Unsteered { .. }
            | Event::Mark { .. }
            | Event::Profiled(_)
            | Event::Saved { .. } => {}
        }
    }

    fn stretch(&mut self, at_ns: u64, side: Option<StretchSide>) {
        self.phases.end(at_ns);
        self.search.end_phase(at_ns);
        if let Some(side) = side {
            self.phases.begin(at_ns, side);
        }
    }

    fn findings(&mut self, metrics: &Metrics) {
        let (elapsed_s, at_ns) = (metrics.machine.elapsed_s.unwrap_or(0.0), metrics.machine.at_ns);
        for finding in &metrics.conclusions.findings {
            match self.known.findings.iter_mut().find(|seen| seen.finding.id == finding.id) {
                Some(seen) => {
                    seen.seconds += elapsed_s;
                    (seen.finding, seen.at_ns) = (finding.clone(), at_ns);
                }
                None => self.known.findings.push(Seen { finding: finding.clone(), seconds: elapsed_s, at_ns }),
            }
        }
    }

    /// The newest proposal is the one that rests on most; one that was possible is not lost to a later refusal.
    fn propose(&mut self, metrics: &Metrics) {
        let asked = self.asked.as_ref().is_some_and(|asked| asked.pin == PinMode::Propose);
        if !asked || metrics.machine.at_ns.saturating_sub(self.proposed_at_ns) < PROPOSE_EVERY_NS {
            return;
        }
        self.proposed_at_ns = metrics.machine.at_ns;
        let proposal = placement::propose(&metrics.subject);
        if proposal.is_ok() || !matches!(self.known.proposal, Some(Ok(_))) {
            self.known.proposal = Some(proposal);
        }
    }
}

fn is_busy(metrics: &Metrics, thread: ThreadId) -> bool {
    metrics.subject.recent.thread_need(thread).is_some_and(|need| need > BUSY)
}

/// Who a thread is now: a command takes its own name and role a moment after it was started (`ip netns exec`).
fn name(threads: &mut BTreeMap<ThreadId, (CompactString, &'static str)>, thread: &ThreadMetrics) {
    let (name, role) = threads.entry(thread.sample.id).or_default();
    if *name != thread.sample.name {
        name.clone_from(&thread.sample.name);
    }
    *role = thread.sample.role();
}
