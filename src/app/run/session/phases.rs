//! What the experiment wishes for is done, and told as events.

use super::RunSession;
use crate::app::phase_schedule::Wish;
use crate::derive::Metrics;
use crate::derive::experiment::Turn;
use crate::derive::placement::ClassPlacements;
use crate::effect::{Outcome, PinRequest};
use crate::sample::{CoreSet, Event, PlacementClass, SearchStep, SteerRequest, StretchSide, TestKind, TriedPlacement};
use crate::source::now_ns;

/// What became of a wish to pin.
struct PinResult {
    /// Some mask was set.
    pinned: bool,
    /// What went otherwise than asked.
    warning: Option<String>,
}

impl RunSession<'_> {
    pub(super) fn turn(&mut self, metrics: &Metrics) {
        if !self.run.may_pin() {
            return;
        }
        let at_ns = metrics.machine.at_ns;
        match self.schedule.next(metrics) {
            None => {}
            Some(Wish::GoOn(side)) => {
                if side == StretchSide::Unpinned {
                    self.restore();
                }
                self.stretch(Some(side));
                self.schedule.begin(at_ns);
            }
            Some(Wish::Pin(requests)) => {
                let PinResult { pinned, .. } = self.pin(&requests);
                if self.taken {
                    return;
                }
                if !pinned {
                    return self.schedule.refused(at_ns);
                }
                if let Some(measured) = self.schedule.measured.clone() {
                    self.note(measured);
                }
                self.far.pin(&metrics.subject).into_iter().for_each(|sentence| self.note(sentence));
                self.stretch(Some(StretchSide::Pinned));
                self.schedule.begin(at_ns);
            }
            Some(Wish::Search(found, test)) => self.start_search(metrics, found, test),
            Some(Wish::NextPlacement) => self.next_placement(metrics),
            Some(Wish::Refuse(why)) => {
                self.refused_because(metrics, why);
                self.schedule.refused(at_ns);
            }
        }
    }

    fn start_search(&mut self, metrics: &Metrics, found: ClassPlacements, test: TestKind) {
        let seed = now_ns() ^ u64::from(std::process::id()).rotate_left(32);
        let (placements, left_out) = (found.placements.clone(), found.left_out);
        self.refused = None;
        self.search_step(SearchStep::Started { seed, placements, left_out, test });
        self.schedule.search(seed, found.placements);
        self.next_placement(metrics);
    }

    /// Gives the threads the placement that is due; one that cannot be had gives way to the next.
    fn next_placement(&mut self, metrics: &Metrics) {
        let means = self.run.search_means();
        loop {
            let (Turn { dropped, next }, rounds) = self.schedule.turn(&means);
            for placement in dropped {
                self.search_step(SearchStep::Dropped { placement: number(placement), rounds });
            }
            let Some((placement, round)) = next else { break };
            let Some(tried) = self.schedule.placement(placement) else { break };
            match self.place(metrics, &tried) {
                Ok(()) => {
                    self.search_step(SearchStep::Phase { placement: number(placement), round });
                    return self.schedule.begin(metrics.machine.at_ns);
                }
                Err(why) => {
                    self.schedule.exclude(placement);
                    self.search_step(SearchStep::Failed { placement: number(placement), why });
                }
            }
            if self.taken {
                return;
            }
        }
        self.stretch(None);
        self.restore();
        self.search_step(SearchStep::Ended);
        self.schedule.stop();
    }

    /// Pins the threads of a placement that are there, or puts every mask back where it has none.
    fn place(&mut self, metrics: &Metrics, tried: &TriedPlacement) -> Result<(), String> {
        if tried.is_untouched() {
            self.restore();
            self.is_steered_by_none()?;
            self.stretch(Some(StretchSide::Unpinned));
            return Ok(());
        }
        // What the phase before has steered is not this one's.
        if self.controller.steers() > 0 || tried.class == PlacementClass::Unpinned {
            self.restore();
        }
        self.is_steered_by_none()?;
        self.steer(tried)?;
        if tried.class == PlacementClass::Unpinned {
            self.stretch(Some(StretchSide::Unpinned));
            return Ok(());
        }
        let is_there = |id| metrics.threads.iter().any(|thread| thread.sample.id == id);
        let there = tried.threads.iter().filter(|at| is_there(at.thread));
        let requests: Vec<PinRequest> = there
            .map(|at| PinRequest { thread: at.thread, label: at.label.clone(), cores: CoreSet::single(at.core) })
            .collect();
        if requests.is_empty() {
            return Err("its threads have exited".to_owned());
        }
        if let PinResult { warning: Some(why), .. } = self.pin(&requests) {
            return Err(why);
        }
        self.stretch(Some(StretchSide::Pinned));
        Ok(())
    }

    /// Whether every setting of the phase before is restored: else this one would be measured with it.
    fn is_steered_by_none(&self) -> Result<(), String> {
        let why = "a setting of the previous phase could not be restored";
        if self.controller.steers() == 0 { Ok(()) } else { Err(why.to_owned()) }
    }

    /// Steers the packets of a placement; nothing where it leaves them alone.
    fn steer(&mut self, tried: &TriedPlacement) -> Result<(), String> {
        if tried.steers.is_empty() {
            return Ok(());
        }
        let ended_ns = now_ns();
        let requests: Vec<SteerRequest> = tried.steers.iter().map(|steer| steer.request.clone()).collect();
        let outcome = self.controller.steer(&requests);
        let taken = outcome.taken;
        let warning = outcome.lines.iter().find(|line| line.warning).map(|line| line.text.clone());
        // A phase in which nothing changed is none of this treatment.
        let nothing = outcome.events.is_empty().then(|| "it is set so already".to_owned());
        self.report(Event::Stretch { at_ns: ended_ns, side: None });
        self.outcome(outcome);
        if taken {
            self.end_comparison();
        }
        warning.or(nothing).map_or(Ok(()), Err)
    }

    /// Pins these threads. What was measured until then ends before the first mask is set.
    fn pin(&mut self, requests: &[PinRequest]) -> PinResult {
        let ended_ns = now_ns();
        let outcome = self.controller.pin(requests);
        let (pinned, taken) = (!outcome.events.is_empty(), outcome.taken);
        let warning = outcome.lines.iter().find(|line| line.warning).map(|line| line.text.clone());
        if pinned {
            self.report(Event::Stretch { at_ns: ended_ns, side: None });
        } else if let Some(why) = outcome.first() {
            self.report(Event::NotPinned { at_ns: ended_ns, why: why.to_owned() });
        }
        self.outcome(outcome);
        if taken {
            self.end_comparison();
        }
        PinResult { pinned, warning }
    }

    fn search_step(&mut self, step: SearchStep) {
        self.report(Event::Search { at_ns: now_ns(), step });
    }

    /// Nothing is pinned for this reason, or because another vnettop has some of the threads: then nothing will be. What
    /// another one has pinned may look as if there were nothing to choose.
    fn refused_because(&mut self, metrics: &Metrics, why: String) {
        let taken = self.controller.taken(metrics.subject.threads.iter().map(|thread| thread.sample.id));
        let (is_taken, why) = (taken.is_some(), taken.unwrap_or(why));
        self.refused = Some(Event::nothing_was_pinned(&why));
        self.report(Event::NotPinned { at_ns: metrics.machine.at_ns, why });
        if is_taken {
            self.end_comparison();
        }
    }

    /// Another vnettop pins some of the threads: what is measured from here on is neither unpinned nor pinned.
    fn end_comparison(&mut self) {
        self.taken = true;
        self.schedule.stop();
        self.stretch(None);
        self.restore();
    }

    pub(super) fn stretch(&mut self, side: Option<StretchSide>) {
        self.report(Event::Stretch { at_ns: now_ns(), side });
    }

    /// Puts every mask back that is pinned now.
    pub(super) fn restore(&mut self) {
        self.far.restore();
        if self.controller.pins() + self.controller.steers() > 0 {
            self.stretch(None);
            let outcome = self.controller.restore();
            self.outcome(outcome);
        }
    }

    fn outcome(&mut self, outcome: Outcome) {
        for event in outcome.events {
            self.report(event);
        }
        for line in outcome.lines.into_iter().filter(|line| line.warning) {
            self.note(line.text);
        }
    }
}

fn number(placement: usize) -> u32 {
    u32::try_from(placement).unwrap_or(u32::MAX)
}
