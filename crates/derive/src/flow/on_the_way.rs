//! Datagrams sent but not yet read when both ends were read: they are in flight, not lost.

use super::datagrams::DatagramTest;
use std::collections::BTreeMap;

/// Most datagrams in flight at a reading. They count as lost if they are still missing at the next one.
const ON_THE_WAY: f64 = 2.0;

/// A sender's and a receiver's process, each with its namespace.
type EndProcesses = ((u32, u64), (u32, u64));

/// What each test's receiver lacked at the last reading and was not counted as lost; below 0 where it had read more than was known to be sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OnTheWay(BTreeMap<EndProcesses, f64>);

impl OnTheWay {
    /// Sets what each test lost in a tick. Over any time that is what its receiver lacks, except for datagrams in flight.
    pub fn settle(&mut self, tests: &mut [DatagramTest]) {
        let before = std::mem::take(&mut self.0);
        for test in tests {
            let (Some(missing), Some(from), Some(to)) = (test.missing(), test.from, test.to) else { continue };
            let owed = before.get(&(from, to)).copied().unwrap_or(0.0);
            let missing = owed + missing;
            let lost = if missing > ON_THE_WAY { missing } else { missing.min(owed).max(0.0) };
            self.0.insert((from, to), (missing - lost).max(-ON_THE_WAY));
            test.lost_datagrams = Some(lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(ticks: &[[f64; 2]]) -> Vec<f64> {
        let mut way = OnTheWay::default();
        let tick = |&[sent, received]: &[f64; 2]| {
            let test = DatagramTest {
                from: Some((1, 1)),
                to: Some((2, 2)),
                sent_datagrams: Some(sent),
                received_datagrams: Some(received),
                ..DatagramTest::default()
            };
            let mut tests = [test];
            way.settle(&mut tests);
            tests[0].lost_datagrams.expect("both ends are counted")
        };
        ticks.iter().map(tick).collect()
    }

    #[test]
    fn a_datagram_on_the_way_at_a_reading_is_not_lost_and_one_that_never_comes_is() {
        assert_eq!(lost(&[[100.0, 99.0], [100.0, 101.0], [100.0, 100.0]]), [0.0; 3], "it comes with the next reading");
        assert_eq!(lost(&[[100.0, 99.0], [100.0, 100.0]]), [0.0, 1.0], "it does not");
        assert_eq!(lost(&[[100.0, 101.0], [100.0, 99.0]]), [0.0; 2], "the receiver was read a moment later");
        assert_eq!(lost(&[[100.0, 80.0], [100.0, 79.0], [100.0, 81.0]]), [20.0, 21.0, 19.0], "many are lost at once");
        let doubled = [[100.0, 200.0], [100.0, 90.0]];
        assert_eq!(lost(&doubled), [0.0, 8.0], "what came twice hides no more than two");
    }

    #[test]
    fn over_any_time_what_was_lost_is_what_is_missing() {
        let received = |tick: usize| [100.0, 99.0, 97.0, 101.0, 99.0, 60.0, 100.0][tick * 5 % 7];
        let ticks: Vec<[f64; 2]> = (0..70).map(|tick| [100.0, received(tick)]).collect();
        let missing: f64 = ticks.iter().map(|[sent, received]| sent - received).sum();
        let lost: f64 = lost(&ticks).iter().sum();
        assert!((lost - missing).abs() <= ON_THE_WAY, "{lost} of {missing}");
    }
}
