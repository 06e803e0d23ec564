//! Rates of Open vSwitch's datapaths. ovs-vswitchd is asked about once a second, whatever the tick: a rate holds from one of
//! its answers to the next. A datapath that was made anew has none until it was read twice.

use crate::rate::{per_second, seconds};
use vnettop_sample::{OvsDatapath, row_of};

/// One datapath, and what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct DatapathMetrics {
    /// What it has counted.
    pub counters: OvsDatapath,
    /// Its rates; `None` at its first reading.
    pub rates: Option<DatapathRates>,
}

/// What a datapath counts in packets/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DatapathRates {
    /// Packets that matched a flow.
    pub hit_per_s: f64,
    /// Packets that ovs-vswitchd had to be asked about, also those lost.
    pub missed_per_s: f64,
    /// Packets lost because it could not be asked.
    pub lost_per_s: f64,
}

/// Takes the counters of a sample, sorted by key; `known` is what was made of the sample before.
pub(crate) fn between(known: &[DatapathMetrics], now: &[OvsDatapath]) -> Vec<DatapathMetrics> {
    let metrics = |counters: &OvsDatapath| {
        let before = row_of(known, &counters.key(), |before| before.counters.key());
        let rates = before.filter(|before| before.counters.born == counters.born).and_then(|before| {
            let is_same = before.counters.at_ns == counters.at_ns;
            if is_same { before.rates } else { rates(&before.counters, counters) }
        });
        DatapathMetrics { counters: counters.clone(), rates }
    };
    now.iter().map(metrics).collect()
}

fn rates(before: &OvsDatapath, now: &OvsDatapath) -> Option<DatapathRates> {
    let seconds = seconds(before.at_ns, now.at_ns)?;
    Some(DatapathRates {
        hit_per_s: per_second(before.hit, now.hit, seconds)?,
        missed_per_s: per_second(before.missed, now.missed, seconds)?,
        lost_per_s: per_second(before.lost, now.lost, seconds)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(at_s: u64, counted: u64) -> OvsDatapath {
        OvsDatapath {
            socket: "/run/openvswitch/db.sock".to_owned(),
            netns: 1,
            kind: "system".into(),
            name: "ovs-system".to_owned(),
            born: 4,
            at_ns: at_s * 1_000_000_000,
            hit: 10 * counted,
            missed: 2 * counted,
            lost: counted,
            flows: 1,
        }
    }

    /// What is lost after the next reading.
    fn lost(datapaths: &mut Vec<DatapathMetrics>, now: &[OvsDatapath]) -> Vec<Option<f64>> {
        *datapaths = between(datapaths, now);
        datapaths.iter().map(|one| one.rates.map(|rates| rates.lost_per_s)).collect()
    }

    #[test]
    fn a_rate_holds_until_the_counters_are_read_again() {
        let mut datapaths = Vec::new();
        assert_eq!(lost(&mut datapaths, &[read(1, 5)]), [None], "one reading is no rate");
        assert_eq!(lost(&mut datapaths, &[read(3, 9)]), [Some(2.0)]);
        assert_eq!(lost(&mut datapaths, &[read(3, 9)]), [Some(2.0)], "it was not read anew");
        assert_eq!(lost(&mut datapaths, &[read(4, 9)]), [Some(0.0)], "nothing more was lost");
    }

    #[test]
    fn a_datapath_that_is_made_anew_has_no_rate_and_none_below_zero() {
        let mut datapaths = Vec::new();
        lost(&mut datapaths, &[read(1, 5)]);
        assert_eq!(lost(&mut datapaths, &[read(2, 3)]), [None], "its counters began again");
        let other = OvsDatapath { born: 9, ..read(3, 70) };
        assert_eq!(lost(&mut datapaths, std::slice::from_ref(&other)), [None], "another one of that name");
        let next = OvsDatapath { born: 9, ..read(4, 71) };
        assert_eq!(lost(&mut datapaths, &[next]), [Some(1.0)]);
    }

    #[test]
    fn two_switches_have_rates_of_their_own() {
        let mut datapaths = Vec::new();
        let far = |at_s, counted| OvsDatapath { netns: 2, ..read(at_s, counted) };
        lost(&mut datapaths, &[read(1, 5), far(1, 100)]);
        assert_eq!(lost(&mut datapaths, &[read(2, 6), far(2, 107)]), [Some(1.0), Some(7.0)]);
    }
}
