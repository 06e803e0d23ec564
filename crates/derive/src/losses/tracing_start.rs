//! Where the kernel's programs take over from counters. In the tick in which they were attached a place with a counter is told by
//! that, over the whole time; from then on by the programs. Both are read one after the other: what is lost between the two
//! readings of that tick is in the counter already, and in the next rows of the programs once more. Looked at are qdiscs, whose
//! counters have every packet at once; those of sockets and links have others' packets too, and come late.

use super::{Loss, LossPlace};
use vnettop_sample::LinkKey;

/// Most that can have been lost between two readings of one tick: share of what was lost in it, and some packets.
const MOST_SHARE: f64 = 0.05;
const MOST_PACKETS: f64 = 2.0;

/// What of the rows was counted before.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TracingStart {
    places: Vec<HandedOver>,
}

/// One place, in packets since the tick in which the programs were attached.
#[derive(Debug, Clone, PartialEq)]
struct HandedOver {
    at: (LossPlace, Option<u64>, Option<LinkKey>),
    counted: f64,
    reported: f64,
    /// What has been taken from its losses, and what may be.
    taken: f64,
    most: f64,
}

impl TracingStart {
    /// Takes what counters tell of the tick in which the programs were attached.
    pub fn begin(&mut self, counted: &[Loss]) {
        let place = |loss: &Loss| HandedOver {
            at: spot(loss),
            counted: 0.0,
            reported: 0.0,
            taken: 0.0,
            most: MOST_SHARE * loss.packets + MOST_PACKETS,
        };
        let has_counter = |loss: &&Loss| loss.place == LossPlace::Qdisc && loss.packets > 0.0;
        self.places = counted.iter().filter(has_counter).map(place).collect();
    }

    /// Whether there is anything to be taken.
    pub fn is_open(&self) -> bool {
        !self.places.is_empty()
    }

    /// Takes from later rows what counters had counted before: as much as the rows have risen more than the counters since.
    pub fn settle(&mut self, counted: &[Loss], reported: &mut [Loss]) {
        for place in &mut self.places {
            let sum = |losses: &[Loss]| -> f64 {
                losses.iter().filter(|loss| spot(loss) == place.at).map(|loss| loss.packets).sum()
            };
            place.counted += sum(counted);
            place.reported += sum(reported);
            let mut twice = place.reported - place.counted - place.taken;
            if twice + place.taken > place.most {
                // The difference is more than two readings explain: the rows and the counter do not count the same packets.
                place.most = 0.0;
                continue;
            }
            for loss in reported.iter_mut().filter(|loss| spot(loss) == place.at) {
                let packets = twice.clamp(0.0, loss.packets.max(0.0));
                loss.packets -= packets;
                place.taken += packets;
                twice -= packets;
            }
        }
        self.places.retain(|place| place.most > 0.0);
    }
}

fn spot(loss: &Loss) -> (LossPlace, Option<u64>, Option<LinkKey>) {
    (loss.place, loss.netns, loss.link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_between_two_readings_is_counted_once() {
        let lost = |packets| Loss::in_space(LossPlace::Qdisc, 1, packets);
        // By the counter and by the rows, in each tick after the first: 2 were lost between the readings of the first one, 3
        // between those of the second, and none in the end.
        let ticks: [(f64, f64); 4] = [(501.0, 500.0), (500.0, 503.0), (100.0, 100.0), (0.0, 0.0)];
        let mut takeover = TracingStart::default();
        takeover.begin(&[lost(1000.0)]);
        let mut sum = 1000.0;
        for (counted, rows) in ticks {
            let mut reported = [lost(rows)];
            takeover.settle(&[lost(counted)], &mut reported);
            assert!(reported[0].packets >= 0.0);
            sum += reported[0].packets;
        }
        assert!((sum - 2101.0).abs() < 1e-9, "as the counter has it: {sum}");
    }

    #[test]
    fn what_no_counter_has_is_lost_all_the_same() {
        let lost = |packets| Loss::in_space(LossPlace::Qdisc, 1, packets);
        let mut takeover = TracingStart::default();
        takeover.begin(&[lost(100.0)]);
        let mut reported = [lost(500.0)];
        takeover.settle(&[], &mut reported);
        assert_eq!(reported, [lost(500.0)], "more than can be lost between two readings");
        assert!(!takeover.is_open(), "the counter says nothing of these");
    }
}
