//! Unpinned and pinned in turn: what the schedule wishes for is done, and told as events.

use super::super::pin_schedule::Wish;
use super::RunSession;
use crate::derive::Metrics;
use crate::effect::Outcome;
use crate::sample::{Event, StretchSide};
use crate::source::now_ns;

impl RunSession<'_> {
    pub(super) fn turn(&mut self, metrics: &Metrics) {
        if !self.run.may_pin() {
            return;
        }
        self.search_on(metrics);
        match self.turns.next(metrics) {
            None => {}
            Some(Wish::GoOn(side)) => {
                if side == StretchSide::Unpinned {
                    self.restore();
                }
                self.stretch(Some(side));
                self.turns.begin(metrics.machine.at_ns);
            }
            Some(Wish::Pin(requests)) => {
                // What was being compared ends before the first mask is set.
                let ended_ns = now_ns();
                let outcome = self.controller.pin(&requests);
                let (pinned, taken) = (!outcome.events.is_empty(), outcome.taken);
                if pinned {
                    self.report(Event::Stretch { at_ns: ended_ns, side: None });
                } else if let Some(why) = outcome.first() {
                    self.report(Event::NotPinned { at_ns: ended_ns, why: why.to_owned() });
                }
                self.outcome(outcome);
                if taken {
                    self.end_comparison();
                } else if pinned {
                    if let Some(measured) = self.turns.measured.clone() {
                        self.note(measured);
                    }
                    self.far.pin(&metrics.subject).into_iter().for_each(|sentence| self.note(sentence));
                    self.stretch(Some(StretchSide::Pinned));
                    self.turns.begin(metrics.machine.at_ns);
                } else {
                    self.turns.refused(metrics.machine.at_ns);
                }
            }
            Some(Wish::Refuse(why)) => {
                self.refused_because(metrics, why);
                self.turns.refused(metrics.machine.at_ns);
            }
        }
    }

    /// Nothing is pinned for this reason, or because another vnettop has some of the threads: then nothing will be. What
    /// another one has pinned may look as if there were nothing to choose.
    pub(super) fn refused_because(&mut self, metrics: &Metrics, why: String) {
        let taken = self.controller.taken(metrics.subject.threads.iter().map(|thread| thread.sample.id));
        let (is_taken, why) = (taken.is_some(), taken.unwrap_or(why));
        self.refused = Some(Event::nothing_was_pinned(&why));
        self.report(Event::NotPinned { at_ns: metrics.machine.at_ns, why });
        if is_taken {
            self.end_comparison();
        }
    }

    /// Another vnettop pins some of the threads: what is measured from here on is neither unpinned nor pinned.
    pub(super) fn end_comparison(&mut self) {
        self.taken = true;
        self.stop_turns();
        self.stretch(None);
        self.restore();
    }

    /// Nothing is pinned from here on, whatever comes.
    pub(super) fn stop_turns(&mut self) {
        self.turns.stop();
        self.search.stop();
    }

    pub(super) fn stretch(&mut self, side: Option<StretchSide>) {
        self.report(Event::Stretch { at_ns: now_ns(), side });
    }

    /// Puts every mask back that is pinned now.
    pub(super) fn restore(&mut self) {
        self.far.restore();
        if self.controller.pins() > 0 {
            self.stretch(None);
            let outcome = self.controller.restore();
            self.outcome(outcome);
        }
    }

    pub(super) fn outcome(&mut self, outcome: Outcome) {
        for event in outcome.events {
            self.report(event);
        }
        for line in outcome.lines.into_iter().filter(|line| line.warning) {
            self.note(line.text);
        }
    }
}
