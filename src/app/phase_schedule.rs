//! An experiment while a benchmark runs: when its threads get which treatment, unpinned, pinned, or placement after placement. It decides
//! from what was derived and sets nothing itself; order and verdict are those of `derive::experiment`. Used by `run` and by `compare`.

use crate::derive::Metrics;
use crate::derive::experiment::{PhaseMeans, Rounds, Turn, side_of};
use crate::derive::placement::{self, BUSY, ClassPlacements, Proposal};
use crate::effect::PinRequest;
use crate::sample::{FoundPlacement, PlacementClass, RunAsked, StretchSide, TestKind, ThreadId, TriedPlacement, Word};
use crate::update::requests;
use std::collections::BTreeSet;

/// How long busy threads are looked at before they are placed, ns: the load of the cores has to be known.
pub(super) const LOOK_NS: u64 = 1_000_000_000;

/// How treatments take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule<'a> {
    /// Nobody is ever pinned.
    Never,
    /// Unpinned and pinned, one phase of so many ns after the other.
    Turns(u64),
    /// Pinned to the end, once busy threads were looked at for so many ns.
    Pinned(u64),
    /// Treatment after treatment, those that were asked for. Threads that start later stay as they are.
    Search(&'a RunAsked),
}

/// The phase of a run that is pinned as a whole.
const PINNED: u32 = 1;

/// What should be done now.
#[derive(Debug, PartialEq)]
pub(super) enum Wish {
    /// Pin these.
    Pin(Vec<PinRequest>),
    /// Another phase begins: pinned, masks stay; unpinned, every mask is put back.
    GoOn(StretchSide),
    /// Start a search with these placements, for this kind of test.
    Search(ClassPlacements, TestKind),
    /// The phase of a placement is over.
    NextPlacement,
    /// Nothing can be pinned, for this reason.
    Refuse(String),
}

/// Where it stands.
#[derive(Debug)]
pub(super) struct PhaseSchedule<'a> {
    rule: Rule<'a>,
    /// What searches have found: the rule's placement gives way to it, as for the key `p`.
    found: &'a [FoundPlacement],
    /// That what a search found is compared, a sentence.
    pub(super) measured: Option<String>,
    /// Since when this phase lasts; none before the first busy thread.
    since_ns: Option<u64>,
    /// When a placement was looked for in vain, ns.
    refused_ns: Option<u64>,
    /// The phase that lasts, and the one that was wished for.
    phase: u32,
    wished: u32,
    /// The placement that is compared: the same in every pinned phase, as long as it covers the busy threads.
    placement: Vec<PinRequest>,
    /// Busy threads that have no place in what a search found: it places the ends of streams.
    placeless: BTreeSet<ThreadId>,
    /// The search that has started.
    search: Option<(Rounds, Vec<TriedPlacement>)>,
    /// The threads between the ends stay as they are.
    ends_only: bool,
}

impl<'a> PhaseSchedule<'a> {
    pub(super) fn new(rule: Rule<'a>, found: &'a [FoundPlacement]) -> Self {
        Self {
            rule,
            found,
            measured: None,
            since_ns: None,
            refused_ns: None,
            phase: 0,
            wished: 0,
            placement: Vec::new(),
            placeless: BTreeSet::new(),
            search: None,
            ends_only: false,
        }
    }

    /// The same with the ends alone, or with the threads between them.
    pub(super) fn ends_only(self, ends_only: bool) -> Self {
        Self { ends_only, ..self }
    }

    /// What to do after this sample.
    pub(super) fn next(&mut self, metrics: &Metrics) -> Option<Wish> {
        if self.rule == Rule::Never {
            return None;
        }
        let busy = busy(metrics);
        // A test that is over while its command goes on is not placed any more.
        let is_there = |id| metrics.threads.iter().any(|thread| thread.sample.id == id);
        let concerns = match &self.search {
            // A search that pins nobody goes on as long as somebody works.
            Some((_, placements)) if placements.iter().all(|tried| tried.threads.is_empty()) => !busy.is_empty(),
            Some((_, placements)) => placements.iter().flat_map(|tried| &tried.threads).any(|at| is_there(at.thread)),
            None => !busy.is_empty(),
        };
        if !concerns {
            return None;
        }
        let at_ns = metrics.machine.at_ns;
        let lasted_ns = at_ns.saturating_sub(*self.since_ns.get_or_insert(at_ns));
        self.wished = match self.rule {
            Rule::Search(asked) => return self.next_of_search(metrics, lasted_ns, asked),
            Rule::Turns(length_ns) | Rule::Pinned(length_ns) if lasted_ns < length_ns => self.phase,
            Rule::Pinned(_) => PINNED,
            Rule::Turns(_) | Rule::Never => self.phase + 1,
        };
        match (side_of(self.phase), side_of(self.wished)) {
            (StretchSide::Unpinned, StretchSide::Pinned) => Some(self.pin(metrics, &busy)),
            // A worker that was born after the others were pinned.
            (StretchSide::Pinned, StretchSide::Pinned) if !self.covers(&busy) && self.may_look(at_ns) => {
                Some(self.pin(metrics, &busy))
            }
            (_, side) => (self.wished != self.phase).then_some(Wish::GoOn(side)),
        }
    }

    fn next_of_search(&self, metrics: &Metrics, lasted_ns: u64, asked: &RunAsked) -> Option<Wish> {
        if self.search.is_some() {
            return (lasted_ns >= asked.stretch_ns).then_some(Wish::NextPlacement);
        }
        (lasted_ns >= LOOK_NS).then(|| match placement::treatments(&placement::ends(&metrics.subject), asked) {
            Ok(found) => Wish::Search(found, placement::test_kind(&metrics.subject)),
            Err(why) => Wish::Refuse(why),
        })
    }

    /// A wish was fulfilled: a phase begins.
    pub(super) fn begin(&mut self, at_ns: u64) {
        (self.since_ns, self.refused_ns, self.phase) = (Some(at_ns), None, self.wished);
    }

    /// Nobody could be pinned: unpinned, the phase begins again; pinned, it goes on as it is.
    pub(super) fn refused(&mut self, at_ns: u64) {
        self.refused_ns = Some(at_ns);
        if side_of(self.phase) == StretchSide::Unpinned {
            self.since_ns = Some(at_ns);
        }
    }

    /// Nobody is pinned from here on, whatever comes.
    pub(super) fn stop(&mut self) {
        (self.rule, self.search) = (Rule::Never, None);
    }

    /// Starts a search with these placements.
    pub(super) fn search(&mut self, seed: u64, placements: Vec<TriedPlacement>) {
        self.search = Some((Rounds::new(seed, placements.len()), placements));
    }

    /// Whose phase is due by these means, and how many rounds are over.
    pub(super) fn turn(&mut self, means: &PhaseMeans) -> (Turn, u32) {
        let Some((order, _)) = &mut self.search else { return (Turn::default(), 0) };
        let rounds = order.rounds();
        (order.next(means), rounds)
    }

    /// A placement by its number.
    pub(super) fn placement(&self, number: usize) -> Option<TriedPlacement> {
        self.search.as_ref()?.1.get(number).cloned()
    }

    /// A placement that cannot be had.
    pub(super) fn exclude(&mut self, number: usize) {
        if let Some((order, _)) = &mut self.search {
            order.exclude(number);
        }
    }

    fn may_look(&self, at_ns: u64) -> bool {
        self.refused_ns.is_none_or(|refused_ns| at_ns.saturating_sub(refused_ns) >= LOOK_NS)
    }

    fn covers(&self, busy: &BTreeSet<ThreadId>) -> bool {
        let is_placed = |id: &ThreadId| self.placement.iter().any(|request| request.thread == *id);
        busy.iter().all(|id| is_placed(id) || self.placeless.contains(id))
    }

    fn pin(&mut self, metrics: &Metrics, busy: &BTreeSet<ThreadId>) -> Wish {
        if !self.covers(busy) {
            match self.proposed(metrics) {
                Ok(proposal) => {
                    self.placement = requests(&proposal);
                    if self.measured.is_some() {
                        self.placeless.clone_from(busy);
                    }
                }
                Err(sentence) => return Wish::Refuse(sentence),
            }
        }
        let there = |request: &&PinRequest| metrics.threads.iter().any(|thread| thread.sample.id == request.thread);
        Wish::Pin(self.placement.iter().filter(there).cloned().collect())
    }

    /// What a search has found for this kind of test, else what the rule says. Where it found that no pin helps, the rule's is
    /// compared all the same: that is what was asked for.
    fn proposed(&mut self, metrics: &Metrics) -> Result<Proposal, String> {
        self.measured = None;
        let found = placement::found_for(&metrics.subject, self.found);
        let found = found.filter(|found| found.class != PlacementClass::Unpinned);
        let Some((found, proposal)) = found.and_then(|found| {
            Some((found, placement::propose_class(&placement::ends(&metrics.subject), found.class).ok()?))
        }) else {
            let ends = self.ends_only.then(|| placement::ends(&metrics.subject));
            return placement::propose(ends.as_ref().unwrap_or(&metrics.subject));
        };
        let class = found.class.word();
        self.measured = Some(format!("pinned as vnettop run --pin search found best on {}: {class}", found.day));
        Ok(proposal)
    }
}

/// The watched threads that are busy.
fn busy(metrics: &Metrics) -> BTreeSet<ThreadId> {
    let ids = metrics.subject.threads.iter().map(|thread| thread.sample.id);
    ids.filter(|id| metrics.subject.recent.thread_need(*id).is_some_and(|need| need > BUSY)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::MachineMetrics;
    use crate::sample::PinMode;

    fn at(at_ns: u64) -> Metrics {
        Metrics::of_machine(MachineMetrics { at_ns, ..MachineMetrics::default() })
    }

    #[test]
    fn a_search_that_was_stopped_wishes_for_nothing_whatever_comes() {
        let asked = RunAsked { stretch_ns: 1, pin: PinMode::Search, ..RunAsked::default() };
        let mut search = PhaseSchedule::new(Rule::Search(&asked), &[]);
        assert_eq!(search.next(&at(10 * LOOK_NS)), None, "no thread is busy, so there is nothing to place");
        let untouched =
            TriedPlacement { class: PlacementClass::Unpinned, is_rule: false, threads: Vec::new(), steers: Vec::new() };
        search.search(7, vec![untouched]);
        search.stop();
        search.refused(20 * LOOK_NS);
        assert_eq!(search.next(&at(40 * LOOK_NS)), None, "a refusal that comes late does not begin it again");
        assert_eq!(search.turn(&PhaseMeans::none(1)), (Turn::default(), 0), "and no phase is due");
    }
}
