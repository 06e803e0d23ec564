//! The time of a test in which none of its threads was pinned by vnettop, and the time in which some were, each by itself: a mean of
//! both is the mean of neither.

use super::TestSummary;
use crate::Jitter;
use crate::ledger::{Bin, Mean};
use crate::timeline::{Incident, IncidentKind};

/// The rate of a test in its pinned or in its unpinned time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreatedTime {
    /// How long its bins with a known rate are together, seconds.
    pub seconds: f64,
    /// Mean payload, bits/s.
    pub mean_bits_per_s: f64,
    /// The spread; none of too few bins.
    pub jitter: Option<Jitter>,
    /// Migrations of its threads a second.
    pub moves_per_s: f64,
}

impl TestSummary {
    /// Its unpinned and its pinned time; `None` where it has no bin of one of them. A bin that reaches from one into the other is in neither.
    #[must_use]
    pub fn treated(&self) -> Option<[TreatedTime; 2]> {
        let pinned = pinned_times(&self.incidents);
        if pinned.is_empty() {
            return None;
        }
        let ends = || pinned.iter().map(|&(from_ns, to_ns)| (from_ns, to_ns.unwrap_or(u64::MAX)));
        let bins = || self.rate.bins.iter();
        let is_in = |bin: &&Bin| ends().any(|(from_ns, to_ns)| bin.from_ns >= from_ns && bin.to_ns <= to_ns);
        let is_out = |bin: &&Bin| ends().all(|(from_ns, to_ns)| bin.to_ns <= from_ns || bin.from_ns >= to_ns);
        let unpinned = TreatedTime::of(&bins().filter(is_out).copied().collect::<Vec<Bin>>())?;
        Some([unpinned, TreatedTime::of(&bins().filter(is_in).copied().collect::<Vec<Bin>>())?])
    }
}

impl TestSummary {
    /// Its whole time, for a test in which nothing was pinned.
    #[must_use]
    pub fn untreated(&self) -> Option<TreatedTime> {
        let whole = TreatedTime::of(&self.rate.bins)?;
        Some(TreatedTime { mean_bits_per_s: self.mean_bits_per_s.unwrap_or(whole.mean_bits_per_s), ..whole })
    }
}

impl TreatedTime {
    fn of(bins: &[Bin]) -> Option<Self> {
        let mut mean = Mean::default();
        let (mut seconds, mut moves, mut length_s) = (0.0, 0.0, 0.0);
        for bin in bins {
            mean.add(bin.bits_per_s, bin.length_ns() as f64);
            moves += bin.moves.all() as f64 + bin.unclassed;
            length_s += bin.length_s();
            seconds += bin.bits_per_s.map_or(0.0, |_| bin.length_s());
        }
        let mean_bits_per_s = mean.value()?;
        Some(Self { seconds, mean_bits_per_s, jitter: Jitter::of(bins), moves_per_s: moves / length_s })
    }
}

/// When any thread was pinned: from, and to where that is known, monotonic ns. It ends when as many are restored as were pinned
/// at once; fewer leave others pinned.
#[must_use]
pub fn pinned_times(incidents: &[Incident]) -> Vec<(u64, Option<u64>)> {
    let (mut times, mut threads): (Vec<(u64, Option<u64>)>, usize) = (Vec::new(), 0);
    for incident in incidents {
        match incident.kind {
            IncidentKind::Pin => {
                if threads == 0 {
                    times.push((incident.at_ns, None));
                }
                threads = threads.max(incident.count);
            }
            IncidentKind::Restore => {
                threads = threads.saturating_sub(incident.count);
                if let (0, Some((_, to_ns @ None))) = (threads, times.last_mut()) {
                    *to_ns = Some(incident.at_ns);
                }
            }
            IncidentKind::Mark | IncidentKind::Saved => {}
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::BIN_NS;
    use crate::moves::MovesByClass;

    fn incident(at: u64, kind: IncidentKind, count: usize) -> Incident {
        Incident { at_ns: at * BIN_NS, kind, count }
    }

    #[test]
    fn pinned_time_ends_when_as_many_are_restored_as_were_pinned() {
        let done = [
            incident(10, IncidentKind::Pin, 2),
            incident(15, IncidentKind::Restore, 1),
            incident(20, IncidentKind::Restore, 1),
            incident(25, IncidentKind::Mark, 1),
            incident(30, IncidentKind::Pin, 1),
        ];
        assert_eq!(pinned_times(&done), [(10 * BIN_NS, Some(20 * BIN_NS)), (30 * BIN_NS, None)]);
        assert_eq!(pinned_times(&done[3..4]), []);
    }

    #[test]
    fn a_mean_is_over_the_bins_that_are_known_and_migrations_over_all() {
        let bin = |n: u64, bits_per_s| Bin {
            from_ns: n * BIN_NS,
            to_ns: (n + 1) * BIN_NS,
            bits_per_s,
            moves: MovesByClass { node: 1, ..MovesByClass::default() },
            unclassed: 1.0,
        };
        let time =
            TreatedTime::of(&[bin(0, Some(2e9)), bin(1, None), bin(2, Some(4e9)), bin(3, None)]).expect("a mean");
        assert!((time.mean_bits_per_s - 3e9).abs() < 1.0 && (time.seconds - 0.2).abs() < 1e-9, "{time:?}");
        assert!((time.moves_per_s - 20.0).abs() < 1e-9 && time.jitter.is_none(), "{time:?}");
        assert_eq!(TreatedTime::of(&[bin(0, None)]), None, "no rate is known");
    }
}
