//! The pins of vnettop that stand, by the events of a run, and which of them something else has undone: irqbalance, tuned,
//! numad, taskset, the benchmark itself. It is told once; nobody fights over a mask here.

use crate::sample::{CoreSet, Event, ThreadId, ThreadSample, Topology};
use std::collections::HashMap;

/// A pin that something else undid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverriddenPin {
    /// The thread.
    pub thread: ThreadId,
    /// Its name and role, for people.
    pub label: String,
    /// The mask that vnettop gave it.
    pub gave: CoreSet,
    /// The mask it has now.
    pub now: CoreSet,
}

impl OverriddenPin {
    /// One sentence: what happened, that it is left alone, what can be done.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { thread, label, gave, now } = self;
        format!(
            "{label} {}: another process changed its pin {gave} to {now}; find what sets affinities (tuned, numad, taskset, iperf3 -A), then press p",
            thread.tid
        )
    }
}

/// What vnettop's pin gave a thread, and what it replaced.
#[derive(Debug, Clone)]
pub(super) struct Pin {
    pub(super) gave: CoreSet,
    /// The mask from before vnettop touched the thread first, or that someone else had set since.
    pub(super) old: CoreSet,
    /// What was read of the thread before this instant says nothing of the pin, `CLOCK_MONOTONIC`, ns.
    at_ns: u64,
    /// It was seen in force. A sample may be older than the pin it is received after.
    is_seen: bool,
    /// Samples in a row that saw another mask.
    others: u32,
}

/// Every pin that was not put back.
#[derive(Debug, Clone, Default)]
pub(super) struct Pins(HashMap<ThreadId, Pin>);

impl Pins {
    pub(super) fn of(&self, thread: ThreadId) -> Option<&Pin> {
        self.0.get(&thread)
    }

    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Pinned { thread, old, got, at_ns, .. } => {
                let before = self.0.remove(thread).filter(|pin| pin.gave == *old);
                let old = before.map_or_else(|| old.clone(), |pin| pin.old);
                self.0.insert(*thread, Pin { gave: got.clone(), old, at_ns: *at_ns, is_seen: false, others: 0 });
            }
            Event::Restored { thread, .. } => {
                self.0.remove(thread);
            }
            _ => {}
        }
    }

    /// Those that were found undone now and not before. A pin that came back by itself can be undone again. What a mask says
    /// of cores that are not online undoes no pin.
    pub(super) fn undone<'a>(
        &mut self,
        threads: impl Iterator<Item = &'a ThreadSample>,
        topology: &Topology,
    ) -> Vec<OverriddenPin> {
        let mut undone = Vec::new();
        if self.0.is_empty() {
            return undone;
        }
        for thread in threads {
            let Some(pin) = self.0.get_mut(&thread.id) else { continue };
            // A mask that cannot be read, or was read before the pin, says nothing.
            let mask = thread.allowed.as_ref().filter(|_| thread.at_ns >= pin.at_ns);
            let Some(now) = mask else { continue };
            if *now == pin.gave || now.equals_within(&pin.gave, &topology.online()) {
                (pin.is_seen, pin.others) = (true, 0);
                continue;
            }
            pin.others = pin.others.saturating_add(1);
            if pin.others == if pin.is_seen { 1 } else { 2 } {
                undone.push(OverriddenPin {
                    thread: thread.id,
                    label: format!("{} {}", thread.name, thread.role()),
                    gave: pin.gave.clone(),
                    now: now.clone(),
                });
            }
        }
        undone
    }
}
