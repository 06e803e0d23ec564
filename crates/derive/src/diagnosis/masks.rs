//! The affinity masks of the watched threads over time, and which of them something other than vnettop changed. A change is
//! reported, never fought. Differences in cores that go offline or come online count for nothing.

use crate::TestMetrics;
use compact_str::CompactString;
use std::collections::HashMap;
use std::sync::Arc;
use vnettop_sample::{CoreSet, Event, Side, ThreadId, Topology};

/// How long a change is reported, ns.
const REPORTED_NS: u64 = 30_000_000_000;

/// Masks of threads that no sample has had yet, at most.
const MOST_UNSEEN: usize = 4096;

/// Most time from a sample that shows a mask to the event that vnettop set it, ns.
const NEWS_NS: u64 = 2_000_000_000;

/// A mask that something else changed.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskChange {
    /// When it was noticed, `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// The thread whose mask changed.
    pub thread: ThreadId,
    /// Its name.
    pub name: CompactString,
    /// Which end of the benchmark.
    pub side: Option<Side>,
    /// The mask before.
    pub from: CoreSet,
    /// Now.
    pub to: CoreSet,
    /// The mask before was a pin of vnettop.
    pub was_pin: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Masks {
    threads: HashMap<ThreadId, Mask>,
    /// Set by vnettop, not yet seen: a sample may be older than the pin it follows.
    pending: HashMap<ThreadId, (CoreSet, bool)>,
    /// Since when the mask that vnettop set last is in force, ns.
    set_at_ns: HashMap<ThreadId, u64>,
    /// Made within the last half minute.
    pub(crate) changes: Vec<MaskChange>,
    observed_at_ns: u64,
    topology: Arc<Topology>,
    online: CoreSet,
}

#[derive(Debug, Clone)]
struct Mask {
    allowed: CoreSet,
    is_pin: bool,
    seen_at_ns: u64,
}

impl Masks {
    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Pinned { thread, got, at_ns, .. } => self.set(*thread, got, true, *at_ns),
            Event::Restored { thread, got, at_ns } => self.set(*thread, got, false, *at_ns),
            _ => {}
        }
    }

    /// vnettop set this mask. A sample may have seen the mask before the event came, and then what looked like somebody else's
    /// change was this one; or it may be older than the event.
    fn set(&mut self, thread: ThreadId, got: &CoreSet, is_pin: bool, at_ns: u64) {
        if self.set_at_ns.len() >= self.threads.len() + MOST_UNSEEN {
            self.forget_unseen();
        }
        self.set_at_ns.insert(thread, at_ns);
        let newest_ns = self.observed_at_ns;
        let is_this = |change: &MaskChange| {
            change.thread == thread && change.to == *got && newest_ns.saturating_sub(change.at_ns) < NEWS_NS
        };
        let changes = self.changes.len();
        self.changes.retain(|change| !is_this(change));
        match self.threads.get_mut(&thread) {
            Some(known) if self.changes.len() < changes && known.allowed == *got => known.is_pin = is_pin,
            _ => drop(self.pending.insert(thread, (got.clone(), is_pin))),
        }
    }

    pub(super) fn observe(&mut self, metrics: &TestMetrics) {
        let at_ns = metrics.machine.at_ns;
        self.observed_at_ns = at_ns;
        let stayed = self.stayed_online(&metrics.machine.facts.topology);
        for thread in metrics.threads.iter() {
            let (id, Some(allowed)) = (thread.sample.id, &thread.sample.allowed) else { continue };
            // Read before vnettop set the mask: it says nothing, however late it comes.
            if self.set_at_ns.get(&id).is_some_and(|&set_ns| thread.sample.at_ns < set_ns) {
                self.threads.entry(id).and_modify(|known| known.seen_at_ns = at_ns);
                continue;
            }
            let pending = self
                .pending
                .get(&id)
                .filter(|(mask, _)| mask.equals_within(allowed, &self.online))
                .map(|(_, is_pin)| *is_pin);
            let known = self.threads.entry(id).or_insert_with(|| Mask {
                allowed: allowed.clone(),
                is_pin: pending.unwrap_or(false),
                seen_at_ns: at_ns,
            });
            known.seen_at_ns = at_ns;
            if let Some(is_pin) = pending {
                self.pending.remove(&id);
                (known.allowed, known.is_pin) = (allowed.clone(), is_pin);
            } else if known.allowed.equals_within(allowed, &stayed) {
                known.allowed.clone_from(allowed);
            } else {
                let from = std::mem::replace(&mut known.allowed, allowed.clone());
                let was_pin = std::mem::take(&mut known.is_pin);
                let (name, side) = (thread.sample.name.clone(), thread.sample.side);
                self.changes.push(MaskChange { at_ns, thread: id, name, side, from, to: allowed.clone(), was_pin });
            }
        }
        self.take_undone(metrics);
        if self.threads.len() > metrics.threads.len() {
            self.threads.retain(|_, mask| mask.seen_at_ns == at_ns);
            self.forget_unseen();
        }
        self.changes.retain(|change| at_ns.saturating_sub(change.at_ns) < REPORTED_NS);
    }

    fn forget_unseen(&mut self) {
        self.pending.retain(|id, _| self.threads.contains_key(id));
        self.set_at_ns.retain(|id, _| self.threads.contains_key(id));
    }

    /// Cores that are online and were online before: only for these can two masks be compared.
    fn stayed_online(&mut self, topology: &Arc<Topology>) -> CoreSet {
        if Arc::ptr_eq(&self.topology, topology) {
            return self.online.clone();
        }
        let online = topology.online();
        let stayed = if self.topology.cores.is_empty() { online.clone() } else { self.online.intersection(&online) };
        (self.topology, self.online) = (Arc::clone(topology), online);
        stayed
    }

    /// A pin that was undone before any sample saw it leaves no change of masks to be seen.
    fn take_undone(&mut self, metrics: &TestMetrics) {
        for undone in &metrics.undone {
            let is_known = |change: &MaskChange| change.was_pin && change.thread == undone.thread;
            if self.changes.iter().any(is_known) {
                continue;
            }
            let Some(thread) = metrics.threads.iter().find(|thread| thread.sample.id == undone.thread) else {
                continue;
            };
            self.pending.remove(&undone.thread);
            self.changes.push(MaskChange {
                at_ns: metrics.machine.at_ns,
                thread: undone.thread,
                name: thread.sample.name.clone(),
                side: thread.sample.side,
                from: undone.gave.clone(),
                to: undone.now.clone(),
                was_pin: true,
            });
        }
    }
}
