//! The bins of a whole run, kept apart by what they are the rate of: before the first byte and after the last one a link may stand for
//! the flow, and its bins must not mix with those of the connections.

use crate::ledger::{Bin, FlowBasis, Ledger};

/// One track for each basis.
#[derive(Debug, Default)]
pub(super) struct BinStore(Vec<Track>);

#[derive(Debug)]
struct Track {
    basis: FlowBasis,
    bins: Ledger<Bin>,
}

impl BinStore {
    /// Takes what is new or has changed of the flow's bins; all of them rest on this basis.
    pub(super) fn follow(&mut self, bins: &Ledger<Bin>, basis: Option<&FlowBasis>) {
        let Some(basis) = basis.filter(|_| !bins.is_empty()) else { return };
        let at = self.0.iter().position(|track| track.basis.goes_on_as(basis)).unwrap_or_else(|| {
            self.0.push(Track { basis: basis.clone(), bins: Ledger::new() });
            self.0.len() - 1
        });
        self.0[at].follow(bins, basis);
    }

    /// The run's bins and what they rest on: connections or datagrams where there are any, otherwise the link that carried most.
    pub(super) fn best(&self) -> (&Ledger<Bin>, Option<&FlowBasis>) {
        static NONE: Ledger<Bin> = Ledger::new();
        let carried = |track: &Track| {
            (!matches!(track.basis, FlowBasis::Link(_)), track.bins.iter().filter_map(Bin::bits).sum::<f64>())
        };
        let best = self
            .0
            .iter()
            .map(|track| (carried(track), track))
            .max_by(|((a, x), _), ((b, y), _)| a.cmp(b).then(x.total_cmp(y)));
        best.map_or((&NONE, None), |(_, track)| (&track.bins, Some(&track.basis)))
    }
}

impl Track {
    fn follow(&mut self, bins: &Ledger<Bin>, basis: &FlowBasis) {
        self.bins.follow(bins.iter(), 0);
        // The most connections that there were at a time.
        if let (FlowBasis::Sockets(known), FlowBasis::Sockets(now))
        | (FlowBasis::Datagrams(known), FlowBasis::Datagrams(now)) = (&mut self.basis, basis)
        {
            *known = (*known).max(*now);
        }
    }
}
