//! The pins of vnettop that stand, by the events of a run, and which of them something else has undone: irqbalance, tuned,
//! numad, taskset, the benchmark itself. It is told once; nobody fights over a mask here.

use std::collections::HashMap;
use vnettop_sample::{CoreSet, Duty, Event, ThreadId, ThreadSample, Topology};

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
    /// Samples in a row without the thread.
    missing: u32,
    /// It carries packets between the ends, and is read only while a test does.
    carries: bool,
}

/// A thread that so many samples in a row do not have has ended.
const ENDED: u32 = 8;
/// More pins at once are no host's: what an agent says of ever new threads is not kept.
const MOST: usize = 4096;

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
                if self.0.len() < MOST {
                    let (gave, at_ns) = (got.clone(), *at_ns);
                    self.0.insert(
                        *thread,
                        Pin { gave, old, at_ns, is_seen: false, others: 0, missing: 0, carries: false },
                    );
                }
            }
            Event::Restored { thread, .. } => {
                self.0.remove(thread);
            }
            _ => {}
        }
    }

    /// Pins that were found undone now and not before. A pin that came back by itself can be undone again. What a mask says of
    /// cores that are not online undoes no pin.
    pub(super) fn undone<'a>(
        &mut self,
        threads: impl Iterator<Item = &'a ThreadSample>,
        topology: &Topology,
    ) -> Vec<OverriddenPin> {
        let mut undone = Vec::new();
        if self.0.is_empty() {
            return undone;
        }
        self.0.values_mut().for_each(|pin| pin.missing += 1);
        for thread in threads {
            let Some(pin) = self.0.get_mut(&thread.id) else { continue };
            pin.missing = 0;
            pin.carries = thread.duty == Duty::Carrier;
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
        self.0.retain(|_, pin| pin.carries || pin.missing < ENDED);
        undone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_of_ever_new_threads_are_forgotten() {
        let mut pins = Pins::default();
        let pin = |pins: &mut Pins, tid: u32| {
            let (thread, one) = (ThreadId { pid: 5, tid, start: 1 }, CoreSet::single(1));
            pins.event(&Event::Pinned { thread, old: CoreSet::single(0), asked: one.clone(), got: one, at_ns: 1 });
        };
        for sample in 0..20 {
            (0..30_000).for_each(|nth| pin(&mut pins, sample * 30_000 + nth));
            assert!(pins.0.len() <= MOST, "{} after {sample} samples", pins.0.len());
            pins.undone(std::iter::empty(), &Topology::default());
        }
        (0..ENDED).for_each(|_| drop(pins.undone(std::iter::empty(), &Topology::default())));
        assert!(pins.0.is_empty(), "none of those threads is there");
    }
}
