//! The bins of a rate, all of them as long as there is room, then two in one. Time, payload and migrations stay exact.

use crate::ledger::{Bin, Ledger};
use crate::moves::MovesByClass;
use crate::{FlowBasis, Jitter};

/// A rate over its whole time.
#[derive(Debug, Clone, PartialEq)]
pub struct RateSummary {
    /// What it is the rate of.
    pub basis: Option<FlowBasis>,
    /// Oldest first; longer than 100 ms where the time was longer than there was room for.
    pub bins: Vec<Bin>,
    /// Its spread over all bins; none of fewer than ten.
    pub jitter: Option<Jitter>,
    /// Migrations of the threads within these bins, a second; none without bins.
    pub moves_per_s: Option<f64>,
    /// Migrations within these bins whose class is known.
    pub moves_by_class: MovesByClass,
}

#[derive(Debug, Clone)]
pub(super) struct RateTrack {
    most: usize,
    basis: Option<FlowBasis>,
    /// Bins of the source in one of `settled`, and how many the last one has.
    merged: u32,
    in_last: u32,
    settled: Vec<Bin>,
    /// Bins that may still change.
    recent: Ledger<Bin>,
}

impl RateTrack {
    pub fn new(most: usize) -> Self {
        Self { most: most.max(2), basis: None, merged: 1, in_last: 1, settled: Vec::new(), recent: Ledger::new() }
    }

    /// Takes the bins as they are known now, of the last minute.
    pub fn follow(&mut self, bins: &[Bin], basis: Option<&FlowBasis>) {
        if bins.is_empty() {
            return;
        }
        self.basis = basis.cloned().or(self.basis.take());
        let settled_ns = self.settled.last().map_or(0, |bin| bin.to_ns);
        self.recent.follow(bins.iter(), settled_ns);
        let over: Vec<Bin> = self.recent.take_settled().collect();
        for bin in over {
            self.settle(bin);
        }
    }

    fn settle(&mut self, bin: Bin) {
        match self.settled.last_mut() {
            Some(last) if self.in_last < self.merged && last.to_ns == bin.from_ns => {
                merge(last, &bin);
                self.in_last += 1;
            }
            _ => {
                self.settled.push(bin);
                self.in_last = 1;
            }
        }
        if self.settled.len() > self.most {
            self.merged *= 2;
            self.in_last = self.merged;
            let mut halved: Vec<Bin> = Vec::with_capacity(self.most);
            let mut pairs = self.settled.drain(..).peekable();
            while let Some(mut one) = pairs.next() {
                if let Some(other) = pairs.next_if(|other| other.from_ns == one.to_ns) {
                    merge(&mut one, &other);
                }
                halved.push(one);
            }
            drop(pairs);
            self.settled = halved;
            if self.settled.len() > self.most {
                // Gaps everywhere: the oldest are forgotten, so that there is an end to it.
                self.settled.drain(..self.settled.len() - self.most);
            }
        }
    }

    /// Bits that the bins carried, to tell a large test from a small one.
    pub fn bits(&self) -> f64 {
        self.settled.iter().chain(&self.recent).filter_map(Bin::bits).sum()
    }

    pub fn summary(&self) -> RateSummary {
        let bins: Vec<Bin> = self.settled.iter().chain(&self.recent).copied().collect();
        let mut moves_by_class = MovesByClass::default();
        for (class, count) in bins.iter().flat_map(|bin| bin.moves.seen()) {
            moves_by_class.add(class, count);
        }
        let seconds: f64 = bins.iter().map(Bin::length_s).sum();
        let moves = moves_by_class.all() as f64 + bins.iter().map(|bin| bin.unclassed).sum::<f64>();
        RateSummary {
            basis: self.basis.clone(),
            jitter: Jitter::of(&bins),
            moves_per_s: (seconds > 0.0).then(|| moves / seconds),
            moves_by_class,
            bins,
        }
    }
}

/// Adds a bin that follows at once.
fn merge(one: &mut Bin, other: &Bin) {
    let known = |bin: &Bin| Some((bin.bits()?, bin.length_s()));
    one.bits_per_s = match (known(one), known(other)) {
        (Some((bits, seconds)), Some((more, longer))) if seconds + longer > 0.0 => {
            Some((bits + more) / (seconds + longer))
        }
        (one, other) => one.or(other).map(|(bits, seconds)| if seconds > 0.0 { bits / seconds } else { 0.0 }),
    };
    one.to_ns = other.to_ns;
    other.moves.seen().for_each(|(class, count)| one.moves.add(class, count));
    one.unclassed += other.unclassed;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::BIN_NS;

    fn bins(from: u64, to: u64) -> Vec<Bin> {
        let bin = |n: u64| Bin {
            from_ns: n * BIN_NS,
            to_ns: (n + 1) * BIN_NS,
            bits_per_s: Some((n % 10) as f64),
            moves: MovesByClass { node: 1, ..MovesByClass::default() },
            unclassed: 0.5,
        };
        (from..to).map(bin).collect()
    }

    /// A minute of bins a second, as the timeline has them.
    fn followed(most: usize, seconds: u64) -> RateSummary {
        let mut track = RateTrack::new(most);
        for second in 1..=seconds {
            track.follow(&bins((second * 10).saturating_sub(600), second * 10), None);
        }
        track.summary()
    }

    #[test]
    fn every_bin_is_kept_once_as_long_as_there_is_room() {
        let whole = followed(6000, 300);
        assert_eq!(whole.bins, bins(0, 3000));
        let per_s = whole.moves_per_s.expect("there are bins");
        assert!((per_s - 15.0).abs() < 1e-9, "one and a half in every bin of 100 ms: {per_s}");
    }

    #[test]
    fn a_day_takes_no_more_room_and_has_the_same_mean_and_migrations() {
        let day = followed(1200, 20_000);
        assert!(day.bins.len() <= 1200 + 200, "{} bins", day.bins.len());
        let jitter = day.jitter.expect("enough bins");
        assert!((jitter.mean - 4.5).abs() < 0.01, "{jitter:?}");
        assert!((jitter.window_s - 20_000.0).abs() < 1e-6, "no second is lost: {jitter:?}");
        assert_eq!(day.moves_by_class.node, 200_000, "nor a migration");
    }
}
