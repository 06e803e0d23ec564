//! The search for the best placement: the phase that is due is pinned, and told as events.

use super::super::pin_search::SearchWish;
use super::RunSession;
use crate::derive::Metrics;
use crate::derive::run::SearchTurn;
use crate::effect::PinRequest;
use crate::sample::{CoreSet, Event, PlacementClass, SearchStep, StretchSide, TriedPlacement};
use crate::source::now_ns;

impl RunSession<'_> {
    /// What the search does after this sample.
    pub(super) fn search_on(&mut self, metrics: &Metrics) {
        match self.search.next(metrics) {
            None => {}
            Some(SearchWish::Refuse(why)) => {
                self.refused_because(metrics, why);
                self.search.refused(metrics.machine.at_ns);
            }
            Some(SearchWish::Start(found, test)) => {
                let seed = now_ns() ^ u64::from(std::process::id()).rotate_left(32);
                let (placements, left_out) = (found.placements.clone(), found.left_out);
                self.refused = None;
                self.search_step(SearchStep::Started { seed, placements, left_out, test });
                self.search.start(seed, found.placements);
                self.next_phase(metrics);
            }
            Some(SearchWish::NextPhase) => self.next_phase(metrics),
        }
    }

    /// Gives the threads the placement that is due; one that cannot be had gives way to the next.
    fn next_phase(&mut self, metrics: &Metrics) {
        let means = self.run.search_means();
        loop {
            let (SearchTurn { dropped, next }, rounds) = self.search.turn(&means);
            for placement in dropped {
                self.search_step(SearchStep::Dropped { placement: number(placement), rounds });
            }
            let Some((placement, round)) = next else { break };
            let Some(tried) = self.search.placement(placement) else { break };
            match self.place(metrics, &tried) {
                Ok(()) => {
                    self.search_step(SearchStep::Phase { placement: number(placement), round });
                    return self.search.began(metrics.machine.at_ns);
                }
                Err(why) => {
                    self.search.exclude(placement);
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
        self.search.stop();
    }

    /// Pins the threads of a placement that are there, or puts every mask back where it has none.
    fn place(&mut self, metrics: &Metrics, tried: &TriedPlacement) -> Result<(), String> {
        if tried.class == PlacementClass::Unpinned {
            self.restore();
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
        // What was measured before ends before the first mask is set.
        self.stretch(None);
        let outcome = self.controller.pin(&requests);
        let (taken, failed) =
            (outcome.taken, outcome.lines.iter().find(|line| line.warning).map(|line| line.text.clone()));
        self.outcome(outcome);
        if taken {
            self.end_comparison();
        }
        if let Some(why) = failed {
            return Err(why);
        }
        self.stretch(Some(StretchSide::Pinned));
        Ok(())
    }

    fn search_step(&mut self, step: SearchStep) {
        self.report(Event::Search { at_ns: now_ns(), step });
    }
}

fn number(placement: usize) -> u32 {
    u32::try_from(placement).unwrap_or(u32::MAX)
}
