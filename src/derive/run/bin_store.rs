//! The bins of a whole run, kept apart by what they are the rate of: before the first byte and after the last one a link
//! may stand for the flow, and its bins must not mix with those of the connections.

use crate::derive::flow::{Bin, FlowBasis};
use std::collections::VecDeque;

/// A bin that is over may still turn out to be unknown, for so long, ns.
const MAY_CHANGE_NS: u64 = 10_000_000_000;

/// One track for each basis.
#[derive(Debug, Default)]
pub(super) struct BinStore(Vec<Track>);

#[derive(Debug)]
struct Track {
    basis: FlowBasis,
    bins: Vec<Bin>,
}

impl BinStore {
    /// Takes what is new or has changed of the flow's bins; all of them rest on this basis.
    pub(super) fn follow(&mut self, bins: &VecDeque<Bin>, basis: Option<&FlowBasis>) {
        let (Some(basis), Some(newest)) = (basis, bins.back()) else { return };
        let at = self.0.iter().position(|track| track.basis.goes_on_as(basis)).unwrap_or_else(|| {
            self.0.push(Track { basis: basis.clone(), bins: Vec::new() });
            self.0.len() - 1
        });
        self.0[at].follow(bins, newest.from_ns, basis);
    }

    /// The run's bins and what they rest on: connections or datagrams where there are any, otherwise the link that carried most.
    pub(super) fn best(&self) -> (&[Bin], Option<&FlowBasis>) {
        let carried = |track: &Track| {
            let bits = |bin: &Bin| bin.bits_per_s.unwrap_or(0.0) * bin.length_ns() as f64;
            (!matches!(track.basis, FlowBasis::Link(_)), track.bins.iter().map(bits).sum::<f64>())
        };
        let best = self
            .0
            .iter()
            .map(|track| (carried(track), track))
            .max_by(|((a, x), _), ((b, y), _)| a.cmp(b).then(x.total_cmp(y)));
        best.map_or((&[], None), |(_, track)| (&track.bins, Some(&track.basis)))
    }
}

impl Track {
    fn follow(&mut self, bins: &VecDeque<Bin>, newest_ns: u64, basis: &FlowBasis) {
        let known_ns = self.bins.last().map_or(0, |bin| bin.from_ns).min(newest_ns);
        let first = bins.partition_point(|bin| bin.from_ns < known_ns.saturating_sub(MAY_CHANGE_NS));
        let from_ns = bins.get(first).map_or(u64::MAX, |bin| bin.from_ns);
        self.bins.truncate(self.bins.partition_point(|bin| bin.from_ns < from_ns));
        self.bins.extend(bins.range(first..));
        // The most connections that there were at a time.
        if let (FlowBasis::Sockets(known), FlowBasis::Sockets(now))
        | (FlowBasis::Datagrams(known), FlowBasis::Datagrams(now)) = (&mut self.basis, basis)
        {
            *known = (*known).max(*now);
        }
    }
}
