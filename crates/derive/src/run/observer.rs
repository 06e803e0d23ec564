//! A run from its items: what is the command's own, and beside it everything watched, as long as nothing of the command's
//! own is found. A benchmark that the command only asks for (`docker exec`, `ssh`) is a process of somebody else.

use super::card::Measured;
use super::{Observation, RunCard};
use crate::experiment::PhaseMeans;
use crate::scope::Scope;
use crate::{Derivation, Metrics};
use vnettop_sample::{Event, Item, Measure, PinMode, RunAsked, Sample};

/// A command's processes are known within so many samples since its start, if they can be.
const SEEN_WITHIN: u32 = 5;

/// Why no thread is pinned when everything watched stands for the command's own.
const NO_TEST: &str =
    "the command has no benchmark connection; if the benchmark runs elsewhere (docker exec, ssh), name it with --watch";

/// A run, live or replayed.
#[derive(Debug, Default)]
pub struct Run {
    /// What belongs to the command; `None` when only everything watched was asked for.
    own: Option<ObservedItems>,
    /// Everything watched; `None` once something of the command's own is found.
    all: Option<ObservedItems>,
    measure: Option<Measure>,
    /// The command is iperf itself: what it cannot do is not done by others.
    is_iperf: bool,
    /// The command's processes are known.
    knows_family: bool,
    /// Samples since it was started; none before that.
    looks: Option<u32>,
}

/// The items as far as they are looked at, folded.
#[derive(Debug)]
struct ObservedItems {
    derivation: Derivation,
    observation: Observation,
    /// The command's process: what it says may come before the first sample that knows it.
    command: Option<u32>,
}

impl Run {
    /// Takes the next item; a sample gives the metrics of what is measured.
    pub fn item(&mut self, item: Item) -> Option<Metrics> {
        match &item {
            Item::Event(Event::RunAsked(asked)) => self.begin(asked),
            Item::Event(Event::RunStarted { .. }) => self.looks = self.looks.or(Some(0)),
            Item::Event(_) => {}
            Item::Sample(sample) => self.look(sample),
        }
        let Some(own) = &mut self.own else {
            return self.all.get_or_insert_with(|| ObservedItems::of(Derivation::of_everything())).take(item);
        };
        let Some(all) = &mut self.all else { return own.take(item) };
        let metrics = own.take(item.clone());
        let has_own = own.derivation.scope.as_ref().is_some_and(|scope| scope.has_benchmark);
        if has_own || (self.is_iperf && self.knows_family) {
            self.all = None;
            return metrics;
        }
        all.take(item)
    }

    /// Whether the measured threads may be pinned: they are the command's own, or were named. When everything watched stands
    /// for the command's own, threads may be anybody's.
    #[must_use]
    pub fn may_pin(&self) -> bool {
        self.own.is_none() || self.all.is_none()
    }

    /// The card as of now.
    #[must_use]
    pub fn card(&self) -> Option<RunCard> {
        let card = self.view()?.observation.card()?;
        let card = RunCard { measured: self.measured(), ..card };
        Some(if matches!(card.measured, Some(Measured::Everything { .. })) { without_pins(card) } else { card })
    }

    /// The means of the phases of a search so far, by placement and round.
    #[must_use]
    pub fn search_means(&self) -> PhaseMeans {
        self.view().map(|items| items.observation.search_means()).unwrap_or_default()
    }

    fn view(&self) -> Option<&ObservedItems> {
        let own = self.own.as_ref();
        if self.was_over_at_once() { own } else { self.all.as_ref().or(own) }
    }

    /// It ended before its processes could be seen: what others did meanwhile is not what it did.
    fn was_over_at_once(&self) -> bool {
        self.own.is_some()
            && self.all.is_some()
            && !self.knows_family
            && self.looks.is_none_or(|looks| looks < SEEN_WITHIN)
    }

    fn begin(&mut self, asked: &RunAsked) {
        self.measure = asked.measure;
        let program = asked.command.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
        self.is_iperf = ["iperf3", "iperf"].contains(&program);
        if self.measure == Some(Measure::Command) {
            let derivation = Derivation::of_command();
            self.own = Some(ObservedItems::of(derivation));
        }
        self.all = Some(ObservedItems::of(Derivation::of_everything()));
    }

    fn look(&mut self, sample: &Sample) {
        self.knows_family |= sample.facts.family.as_ref().is_some_and(|family| !family.is_empty());
        self.looks = self.looks.map(|looks| looks + 1);
    }

    fn measured(&self) -> Option<Measured> {
        Some(match self.measure? {
            Measure::Named => Measured::Named,
            Measure::Command if self.may_pin() || self.was_over_at_once() => {
                let scope = self.own.as_ref().and_then(|own| own.derivation.scope.as_ref());
                Measured::Command { shared: scope.and_then(|scope| scope.shared) }
            }
            Measure::Command => Measured::Everything { knows_command: self.knows_family },
        })
    }
}

/// No pins and no proposals for threads that may have nothing to do with the command.
fn without_pins(card: RunCard) -> RunCard {
    match card.asked.pin {
        PinMode::Never if !card.asked.takes_turns() => card,
        PinMode::Propose => RunCard { proposal: Some(Err(format!("nothing is proposed: {NO_TEST}"))), ..card },
        PinMode::Never | PinMode::Compare | PinMode::Search => {
            RunCard { missing: vec![Event::nothing_was_pinned(NO_TEST)], ..card }
        }
    }
}

impl ObservedItems {
    fn of(derivation: Derivation) -> Self {
        Self { derivation, observation: Observation::default(), command: None }
    }

    /// What an iperf3 says of itself that has nothing to do with the command.
    fn is_foreign(&self, event: &Event) -> bool {
        let Event::Reported { pid, .. } = event else { return false };
        let concerns = |scope: &Scope| self.command == Some(*pid) || scope.concerns(*pid);
        !self.derivation.scope.as_ref().is_none_or(concerns)
    }

    fn take(&mut self, item: Item) -> Option<Metrics> {
        if let Item::Event(event) = &item {
            if self.is_foreign(event) {
                return None;
            }
            if let Event::RunStarted { pid, .. } = event {
                self.command = Some(*pid);
            }
            self.observation.event(event);
        }
        let metrics = self.derivation.advance(item)?;
        self.observation.observe(self.derivation.latest()?, &metrics, &self.derivation.stages_without_test.flow);
        Some(metrics)
    }
}
