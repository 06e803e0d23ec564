//! How fast the watched threads' own traffic runs, in bins of 100 ms with the moves that fell into each: what jitter,
//! its cause and the proof of a pin are computed from. Where no connection can be read, the busiest link stands for it.

mod connection;
mod connections;
mod counted;
mod datagrams;
mod disorder;
mod end_track;
mod fallback_link;
pub(super) mod join;
mod move_binning;
pub(super) mod moved;
mod on_the_way;
pub(super) mod proxied;
mod rate_gap;
mod udp;

use super::ledger::{BIN_NS, Bin, FlowBasis, Ledger, MOST_BINS, TimeSpan};
use super::links::LinkMetrics;
use connections::Connections;
use fallback_link::FallbackLink;
use move_binning::MoveBinning;
use std::collections::BTreeSet;
use udp::Datagrams;
use vnettop_sample::{Sample, SocketKey};

pub use connection::{BusyShares, Connection, End, Speaks, TcpFigures, UdpFigures};
pub(super) use connection::{CARRIES, connections};
pub(super) use counted::CountedConnections;
pub use datagrams::{DatagramRate, DatagramTest, SOURCE as DATAGRAM_SOURCE};
pub use disorder::DisorderRates;
pub use rate_gap::RateGap;

/// A link may stand for the flow from so long after the last connection that carried anything, ns.
const SOCKETS_KEPT_NS: u64 = 3_000_000_000;

/// What others do beside the watched flow, where not all of it is looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OtherTraffic {
    /// Some of them have a benchmark: the busiest link may be theirs.
    pub flows: bool,
    /// Namespaces in which they send or receive datagrams, which are counted together.
    pub datagrams: BTreeSet<u64>,
    /// Sockets that they call as well as the watched flow does.
    pub servers: BTreeSet<SocketKey>,
}

/// The watched flow in one tick.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowMetrics {
    /// The connections of the watched processes, and their UDP sockets, both ends in one; those that carry next to nothing
    /// come last.
    pub connections: Vec<Connection>,
    /// The UDP tests that these sockets belong to.
    pub tests: Vec<DatagramTest>,
    /// What the bins are the rate of; none before there is a benchmark.
    pub basis: Option<FlowBasis>,
    /// Rate of the newest bin, bits/s; none where that is not known, or nothing runs.
    pub bits_per_s: Option<f64>,
    /// Data was carried, now or before.
    pub has_carried: bool,
}

impl FlowMetrics {
    /// The connection that ends at a program which copies data; of several such programs on the path, the one at the program
    /// that the client calls.
    #[must_use]
    pub fn copied(&self) -> Option<&Connection> {
        self.connections.iter().filter(|connection| connection.relay.is_some()).min_by_key(|one| one.relayed)
    }

    /// The UDP test that a connection belongs to.
    #[must_use]
    pub fn test_of(&self, connection: &Connection) -> Option<&DatagramTest> {
        let process = |end: &End| end.pid.zip(end.netns);
        let ends = (process(&connection.from), process(&connection.to));
        self.tests.iter().find(|test| connection.udp().is_some() && (test.from, test.to) == ends)
    }
}

/// The watched flow as of the newest sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowTrack {
    /// Every one is over.
    pub bins: Ledger<Bin>,
    /// What their rate is the rate of; none before the first bin.
    pub basis: Option<FlowBasis>,
    connections: Connections,
    datagrams: Datagrams,
    busiest: FallbackLink,
    /// What others do in the next sample, from which their rows have been taken out.
    pub(super) beside: OtherTraffic,
    scatter: MoveBinning,
    /// Where the next bin of connections begins.
    next_ns: u64,
    /// When a connection carried data last.
    carried_at_ns: Option<u64>,
    /// Time of the newest sample.
    now_ns: u64,
}

impl FlowTrack {
    /// The mean rate of so much time up to the end of the newest bin, bits/s; none where nothing of it is known.
    #[must_use]
    pub fn mean_of_last(&self, window_ns: u64) -> Option<f64> {
        let span = TimeSpan::until(self.bins.last()?.to_ns, window_ns);
        span.mean(self.bins.reaching_in(span), |bin| bin.bits_per_s)
    }

    /// Rate of the newest bin, bits/s; none where it is not known, or none ended within the last second.
    #[must_use]
    pub fn bits_per_s(&self) -> Option<f64> {
        let newest = self.bins.last()?;
        let is_old = self.now_ns.saturating_sub(newest.to_ns) > newest.length_ns().max(10 * BIN_NS);
        newest.bits_per_s.filter(|_| !is_old)
    }

    /// The newest tick.
    #[must_use]
    pub fn metrics(&self) -> FlowMetrics {
        let mut connections: Vec<Connection> = self.connections.list().chain(self.datagrams.list()).collect();
        // Connections that only control a test come last.
        connections.sort_by_key(|connection| (!connection.carries, connection.tcp().is_some_and(|tcp| tcp.joined)));
        let tests = self.datagrams.tests.clone();
        // Nothing has ever arrived: the rate is known to be 0, and no link stands for it.
        let is_nothing = self.basis.is_none() && tests.is_empty() && connections.iter().any(Connection::is_stuck);
        let bits_per_s = self.bits_per_s().or(is_nothing.then_some(0.0));
        let has_carried = self.carried_at_ns.is_some();
        FlowMetrics { connections, tests, basis: self.basis.clone(), bits_per_s, has_carried }
    }

    /// Takes the next sample; `links` are what was derived of it.
    pub(super) fn observe(&mut self, previous: Option<&Sample>, next: &Sample, links: &[LinkMetrics]) {
        // Another stream, or a clock that was set back: nothing of before belongs to it.
        let Some(previous) = previous.filter(|previous| previous.at_ns < next.at_ns) else {
            *self = Self::default();
            self.connections.observe(None, next);
            self.datagrams.observe(None, next, &self.beside);
            (self.now_ns, self.next_ns) = (next.at_ns, next_edge(next.at_ns));
            return;
        };
        self.now_ns = next.at_ns;
        self.scatter.observe(previous, next, &mut self.bins);
        self.datagrams.observe(Some(previous), next, &self.beside);
        for (from_ns, to_ns) in self.connections.observe(Some(previous.at_ns), next) {
            let unknown = self.bins.iter_mut().rev().take_while(|bin| bin.to_ns > from_ns);
            unknown.filter(|bin| bin.from_ns < to_ns).for_each(|bin| bin.bits_per_s = None);
        }
        let carrying = self.connections.carrying();
        if carrying > 0 {
            self.carried_at_ns = Some(next.at_ns);
            self.take_basis(FlowBasis::Sockets(carrying));
        } else if let Some((streams, bin)) = self.datagrams.bin() {
            self.carried_at_ns = Some(next.at_ns);
            self.take_basis(FlowBasis::Datagrams(streams));
            self.push(bin);
        }
        let waits = self.carried_at_ns.is_some_and(|at_ns| next.at_ns.saturating_sub(at_ns) < SOCKETS_KEPT_NS);
        if matches!(self.basis, Some(FlowBasis::Sockets(_))) {
            self.close_bins();
        }
        self.connections.forget(self.next_ns);
        // A link has everybody's packets: where there are tests of UDP, it is not their rate.
        if waits || self.beside.flows || !self.datagrams.tests.is_empty() {
            self.busiest = FallbackLink::default();
        } else if let Some((link, bin)) = self.busiest.observe(previous, next, links) {
            self.take_basis(FlowBasis::Link(link));
            self.push(bin);
        }
        self.scatter.forget(self.pending_from());
    }

    /// Another kind of rate, or another link's: the bins of before cannot stand beside it.
    fn take_basis(&mut self, basis: FlowBasis) {
        if !self.basis.as_ref().is_some_and(|was| was.goes_on_as(&basis)) {
            self.bins.clear();
            self.next_ns = self.next_ns.max(next_edge(self.now_ns.saturating_sub(SOCKETS_KEPT_NS)));
        }
        self.basis = Some(basis);
    }

    /// Closes the bins that every living connection has been read beyond.
    fn close_bins(&mut self) {
        let until_ns = self.connections.read_to_ns();
        let most_ns = BIN_NS * MOST_BINS as u64;
        self.next_ns = self.next_ns.max(next_edge(until_ns.saturating_sub(most_ns)));
        while let Some(to_ns) = self.next_ns.checked_add(BIN_NS).filter(|&to_ns| to_ns <= until_ns) {
            let to_ns = self.connections.bin_until(self.next_ns, to_ns);
            if to_ns > until_ns {
                break;
            }
            let from_ns = std::mem::replace(&mut self.next_ns, to_ns);
            if self.connections.exist_in(from_ns, to_ns) {
                let bits_per_s =
                    self.connections.bytes(from_ns, to_ns).map(|bytes| bytes * 8e9 / (to_ns - from_ns) as f64);
                self.push(Bin { from_ns, to_ns, bits_per_s, ..Bin::default() });
            }
        }
    }

    fn push(&mut self, mut bin: Bin) {
        self.scatter.fill(&mut bin);
        self.bins.add(bin);
        self.bins.keep_newest(MOST_BINS);
    }

    /// Moves from before this belong to no bin that is still to come.
    fn pending_from(&self) -> u64 {
        match self.basis {
            Some(FlowBasis::Link(_) | FlowBasis::Datagrams(_)) => self.bins.last().map_or(0, |bin| bin.to_ns),
            _ => self.next_ns.max(self.now_ns.saturating_sub(SOCKETS_KEPT_NS)),
        }
    }
}

/// The first edge of bins not before an instant.
fn next_edge(at_ns: u64) -> u64 {
    at_ns.div_ceil(BIN_NS).saturating_mul(BIN_NS)
}

#[cfg(test)]
mod tests;
