//! Whose turn it is, unpinned or pinned: decides from what was derived and sets nothing itself. Without `compare` it
//! never wishes for anything.

use crate::derive::Metrics;
use crate::derive::before_after::side_of;
use crate::derive::placement::{BUSY, Proposal, found_for, propose, propose_class};
use crate::effect::PinRequest;
use crate::sample::{FoundPlacement, PlacementClass, StretchSide, ThreadId, Word};
use crate::update::requests;
use std::collections::BTreeSet;

/// How long a busy thread is looked at before it is pinned at the start of a pinned run, ns.
const LOOK_NS: u64 = 1_000_000_000;

/// How turns are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Nobody is ever pinned.
    Never,
    /// Within a run, one phase of this many ns after the other.
    Phases(u64),
    /// This whole run is pinned.
    Pinned,
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
    /// Nothing can be pinned, for this reason.
    Refuse(String),
}

/// Where a run stands.
#[derive(Debug)]
pub(super) struct PinSchedule<'a> {
    rule: Rule,
    /// What searches have found: the rule's placement gives way to it, as for the key `p`.
    found: &'a [FoundPlacement],
    /// That what a search found is compared, a sentence.
    pub(super) measured: Option<String>,
    /// Since when this turn lasts; none before the first busy thread.
    since_ns: Option<u64>,
    /// When a placement was looked for in vain, ns.
    refused_ns: Option<u64>,
    /// The phase that lasts, and the one that was wished for.
    phase: u32,
    wished: u32,
    /// The placement that is compared: the same in every pinned stretch, as long as it covers the busy threads.
    placement: Vec<PinRequest>,
    /// Busy threads that have no place in what a search found: it places the ends of streams.
    placeless: BTreeSet<ThreadId>,
}

impl<'a> PinSchedule<'a> {
    pub(super) fn new(rule: Rule, found: &'a [FoundPlacement]) -> Self {
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
        }
    }

    /// What to do after this sample.
    pub(super) fn next(&mut self, metrics: &Metrics) -> Option<Wish> {
        let busy = busy(metrics);
        let length_ns = match self.rule {
            Rule::Never => return None,
            Rule::Phases(length_ns) => length_ns,
            Rule::Pinned => LOOK_NS,
        };
        if busy.is_empty() {
            return None;
        }
        let lasted_ns = metrics.machine.at_ns.saturating_sub(*self.since_ns.get_or_insert(metrics.machine.at_ns));
        self.wished = match self.rule {
            _ if lasted_ns < length_ns => self.phase,
            Rule::Pinned => PINNED,
            _ => self.phase + 1,
        };
        match (side_of(self.phase), side_of(self.wished)) {
            (StretchSide::Unpinned, StretchSide::Pinned) => Some(self.pin(metrics, &busy)),
            // A worker that was born after the others were pinned.
            (StretchSide::Pinned, StretchSide::Pinned)
                if !self.covers(&busy) && self.may_look(metrics.machine.at_ns) =>
            {
                Some(self.pin(metrics, &busy))
            }
            (_, side) => (self.wished != self.phase).then_some(Wish::GoOn(side)),
        }
    }

    /// A wish was fulfilled: a turn begins.
    pub(super) fn begin(&mut self, at_ns: u64) {
        (self.since_ns, self.refused_ns, self.phase) = (Some(at_ns), None, self.wished);
    }

    /// Nobody could be pinned: unpinned, the turn begins again; pinned, it goes on as it is.
    pub(super) fn refused(&mut self, at_ns: u64) {
        self.refused_ns = Some(at_ns);
        if side_of(self.phase) == StretchSide::Unpinned {
            self.since_ns = Some(at_ns);
        }
    }

    fn may_look(&self, at_ns: u64) -> bool {
        self.refused_ns.is_none_or(|refused_ns| at_ns.saturating_sub(refused_ns) >= LOOK_NS)
    }

    /// Nobody is pinned from here on, whatever comes.
    pub(super) fn stop(&mut self) {
        self.rule = Rule::Never;
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
        let found = found_for(&metrics.subject, self.found).filter(|found| found.class != PlacementClass::Unpinned);
        let Some((found, proposal)) =
            found.and_then(|found| Some((found, propose_class(&metrics.subject, found.class).ok()?)))
        else {
            return propose(&metrics.subject);
        };
        let class = found.class.word();
        self.measured = Some(format!("pinned as vnettop run --pin search found best on {}: {class}", found.day));
        Ok(proposal)
    }
}

/// The watched threads that are busy.
pub(super) fn busy(metrics: &Metrics) -> BTreeSet<ThreadId> {
    let ids = metrics.subject.threads.iter().map(|thread| thread.sample.id);
    ids.filter(|id| metrics.subject.recent.thread_cpu(*id).is_some_and(|cpu| cpu > BUSY)).collect()
}
