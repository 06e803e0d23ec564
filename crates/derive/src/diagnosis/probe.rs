//! What BBR does to measure the round trip: every ten seconds (five from version 3 on) it lets no more than four segments be under
//! way for 0.2 s (`PROBE_RTT`), and the rate dips. That is told by the dips' own clock.

use crate::ledger::Bin;

/// The dips of a window that are a sender's probes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundTripProbes {
    /// How many.
    pub dips: usize,
    /// Mean time from one to the next, seconds.
    pub every_s: f64,
    /// Mean length, seconds.
    pub lasts_s: f64,
    /// Share of the variance that they explain.
    pub explained: f64,
}

/// Bins longer than this hide the dips, s.
const LONGEST_BIN_S: f64 = 0.25;
/// A bin is in a dip below this share of the median.
const LOW: f64 = 0.5;
/// The longest dip: 0.2 s, a round trip, and the time to fill the path again, s.
const LONGEST_S: f64 = 0.8;
/// Times from one dip to the next, s: what the kernel waits, and the probe itself.
const EVERY_S: [(f64, f64); 2] = [(9.6, 11.2), (4.8, 5.8)];
/// Least share of the deviations that the dips explain.
const EXPLAINED: f64 = 0.5;

impl RoundTripProbes {
    /// The dips as probes; `None` when they are not as regular, or explain too little.
    pub fn of(bins: &[Bin]) -> Option<Self> {
        let known: Vec<(&Bin, f64)> = bins.iter().filter_map(|bin| Some((bin, bin.bits_per_s?))).collect();
        if known.iter().any(|(bin, _)| bin.length_s() > LONGEST_BIN_S) {
            return None;
        }
        let mut sorted: Vec<f64> = known.iter().map(|(_, rate)| *rate).collect();
        sorted.sort_by(f64::total_cmp);
        let low = LOW * sorted.get(sorted.len() / 2)?;
        let dips = dips(&known, low);
        let chain =
            EVERY_S.iter().map(|&every| chain(&dips, every)).max_by_key(Vec::len).filter(|all| all.len() > 1)?;
        let within = |bin: &Bin| chain.iter().any(|(from, to)| bin.to_ns > *from && bin.from_ns < *to);
        let steady: Vec<f64> = known.iter().filter(|(bin, _)| !within(bin)).map(|(_, rate)| *rate).collect();
        let explained = 1.0 - deviations(&steady) / deviations(&sorted);
        let length_s = |(from, to): &(u64, u64)| (to - from) as f64 / 1e9;
        let (first, last) = (chain.first()?.0, chain.last()?.0);
        (explained >= EXPLAINED).then(|| Self {
            dips: chain.len(),
            every_s: (last - first) as f64 / 1e9 / (chain.len() - 1) as f64,
            lasts_s: chain.iter().map(length_s).sum::<f64>() / chain.len() as f64,
            explained,
        })
    }
}

/// Sum of the squares of what differs from the mean.
fn deviations(rates: &[f64]) -> f64 {
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    rates.iter().map(|rate| (rate - mean).powi(2)).sum()
}

/// Short times below a rate: from, to.
fn dips(known: &[(&Bin, f64)], low: f64) -> Vec<(u64, u64)> {
    let mut dips: Vec<(u64, u64)> = Vec::new();
    for (bin, _) in known.iter().filter(|(_, rate)| *rate < low) {
        match dips.last_mut().filter(|(_, to)| *to == bin.from_ns) {
            Some((_, to)) => *to = bin.to_ns,
            None => dips.push((bin.from_ns, bin.to_ns)),
        }
    }
    dips.retain(|(from, to)| (to - from) as f64 / 1e9 <= LONGEST_S);
    dips
}

/// The longest row of dips of which each comes so long after the one before.
fn chain(dips: &[(u64, u64)], (least_s, most_s): (f64, f64)) -> Vec<(u64, u64)> {
    let mut longest = Vec::new();
    for (at, first) in dips.iter().enumerate() {
        let mut row = vec![*first];
        for dip in &dips[at + 1..] {
            let since_s = row.last().map_or(0.0, |last: &(u64, u64)| (dip.0 - last.0) as f64 / 1e9);
            if (least_s..=most_s).contains(&since_s) {
                row.push(*dip);
            }
        }
        if row.len() > longest.len() {
            longest = row;
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::BIN_NS;
    use crate::migration_cost::chance::Chance;
    use crate::moves::MovesByClass;

    /// Half a minute at about 100 Mbit/s, of which these bins are at a fiftieth.
    fn bins(low: impl Fn(u64) -> bool) -> Vec<Bin> {
        let mut chance = Chance::seeded(3);
        let bin = |at: u64| Bin {
            from_ns: at * BIN_NS,
            to_ns: (at + 1) * BIN_NS,
            bits_per_s: Some(if low(at) { 2e6 } else { 1e8 * (1.0 + 0.02 * chance.normal()) }),
            moves: MovesByClass::default(),
            unclassed: 0.0,
        };
        (0..300).map(bin).collect()
    }

    #[test]
    fn dips_of_a_fifth_of_a_second_every_ten_are_probes_and_others_are_not() {
        let reported =
            RoundTripProbes::of(&bins(|at| [37, 38, 139, 140, 141, 241, 242].contains(&at))).expect("regular");
        assert_eq!(reported.dips, 3);
        assert!(
            (reported.every_s - 10.2).abs() < 0.01 && reported.lasts_s < 0.3 && reported.explained > 0.9,
            "{reported:?}"
        );
        assert_eq!(RoundTripProbes::of(&bins(|at| at % 70 == 3)), None, "every seven seconds");
        assert_eq!(RoundTripProbes::of(&bins(|at| [37, 38].contains(&at))), None, "once");
        let long = |at: u64| (37..57).contains(&at) || (139..159).contains(&at) || (241..261).contains(&at);
        assert_eq!(RoundTripProbes::of(&bins(long)), None, "two seconds each");
        let more = |at: u64| [37, 139, 241].contains(&at) || at.is_multiple_of(9);
        assert_eq!(RoundTripProbes::of(&bins(more)), None, "where most dips are others");
        assert_eq!(RoundTripProbes::of(&bins(|_| false)), None, "no dip");
    }
}
