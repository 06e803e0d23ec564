//! What a source has handed over and nobody has taken yet: how many, how old, how many bytes. A source that cannot wait for its
//! reader looks here before it reads, so that a reader who stands still costs memory up to a bound and no more.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vnettop_sample::{Event, FactVisitor, Facts, Item, Sample};

/// How many items may wait: a benchmark can keep the showing thread off every core for seconds, and nothing is to be lost then.
const MOST: usize = 1024;
/// How many bytes may wait, about: three seconds of 5,000 links at ten ticks a second.
const MOST_BYTES: usize = 32 << 20;
/// How old the oldest may be, ns.
const OLDEST_NS: u64 = 60_000_000_000;
/// While fewer items than this wait, another one may be handed over, whatever their size and age.
const LEAST: usize = 2;
/// What is no sample, about.
const EVENT: usize = size_of::<Item>() + 256;

/// What waits.
#[derive(Debug)]
pub(crate) struct QueueRoom {
    /// How many the receiver has taken since the start.
    taken: Arc<AtomicU64>,
    /// How many of these are struck off here.
    struck: u64,
    /// When each that waits was handed over, monotonic ns, and its bytes; the oldest first.
    waiting: VecDeque<(u64, usize)>,
    bytes: usize,
    /// The facts of the last sample: the same ones again take no memory.
    facts: Facts,
}

impl QueueRoom {
    pub fn new(taken: Arc<AtomicU64>) -> Self {
        Self { taken, struck: 0, waiting: VecDeque::new(), bytes: 0, facts: Facts::default() }
    }

    /// Another one waits.
    pub fn add(&mut self, item: Option<&Item>, now_ns: u64) {
        let bytes = match item {
            Some(Item::Sample(sample)) => self.weigh(sample),
            Some(Item::Event(Event::Profiled(profile))) => EVENT + profile.bytes(),
            Some(Item::Event(_)) | None => EVENT,
        };
        self.waiting.push_back((now_ns, bytes));
        self.bytes += bytes;
    }

    /// Whether another sample may be handed over now.
    pub fn is_left(&mut self, now_ns: u64) -> bool {
        let taken = self.taken.load(Ordering::Acquire);
        while self.struck < taken
            && let Some((_, bytes)) = self.waiting.pop_front()
        {
            (self.struck, self.bytes) = (self.struck + 1, self.bytes - bytes);
        }
        let Some(&(oldest_ns, _)) = self.waiting.front() else { return true };
        let is_young = now_ns.saturating_sub(oldest_ns) < OLDEST_NS;
        self.waiting.len() < LEAST || is_young && self.waiting.len() < MOST && self.bytes < MOST_BYTES
    }

    /// About how many bytes a sample keeps that the one before does not keep as well.
    fn weigh(&mut self, sample: &Sample) -> usize {
        fn rows<T>(rows: &[T]) -> usize {
            size_of_val(rows)
        }
        let mut new = NewFacts(0);
        let Ok(()) = self.facts.visit(&sample.facts, &mut new);
        let NewFacts(new) = new;
        let pulses: usize = sample.flows.iter().map(|flow| rows(&flow.pulses)).sum();
        let moves = sample.trace.as_ref().map_or(0, |trace| rows(&trace.moves));
        let read = rows(&sample.counters) + rows(&sample.cores) + rows(&sample.threads) + rows(&sample.flows);
        let also = rows(&sample.qdiscs) + rows(&sample.protocols) + rows(&sample.datapaths);
        size_of::<Sample>() + new + pulses + moves + read + also
    }
}

/// About how many bytes of facts there are that were not there before.
struct NewFacts(usize);

impl FactVisitor for NewFacts {
    type Error = Infallible;

    fn fact<T: Clone + PartialEq>(&mut self, _name: &str, was: &mut T, is: &T, bytes: usize) -> Result<(), Infallible> {
        if was != is {
            self.0 += bytes;
        }
        was.clone_from(is);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::clock::SECOND_NS;

    fn event() -> Item {
        Item::Event(Event::Mark { at_ns: 0 })
    }

    #[test]
    fn what_nobody_takes_is_bound_by_number_and_age_and_what_is_taken_makes_room() {
        let taken = Arc::new(AtomicU64::new(0));
        let mut room = QueueRoom::new(Arc::clone(&taken));
        let mut waits = 0;
        while room.is_left(SECOND_NS) {
            room.add(Some(&event()), SECOND_NS);
            waits += 1;
            assert!(waits <= MOST, "it ends somewhere");
        }
        taken.fetch_add(10, Ordering::Release);
        assert!(room.is_left(SECOND_NS), "ten were taken: there is room again");
        assert!(!room.is_left(2 * SECOND_NS + OLDEST_NS), "but not once the oldest is a minute old");
        taken.fetch_add(waits as u64 - 11, Ordering::Release);
        assert!(room.is_left(2 * SECOND_NS + OLDEST_NS), "one that waits is no queue, however old it is");
    }

    #[test]
    fn what_weighs_too_much_waits_for_its_reader() {
        let mut room = QueueRoom::new(Arc::default());
        room.waiting.extend([(SECOND_NS, MOST_BYTES), (SECOND_NS, 1)]);
        room.bytes = MOST_BYTES + 1;
        assert!(!room.is_left(SECOND_NS), "two samples of 16 MiB are enough");
        room.taken.fetch_add(1, Ordering::Release);
        assert!(room.is_left(SECOND_NS) && room.bytes == 1, "the heavy one was taken");
    }
}
