//! Which test of one host and which of another are one: by the names that their packets have on the wire between them. Where
//! both are namespaces of one kernel and see the whole path, the path itself says whose each end is.

use super::HostMetrics;
use crate::flow::{Connection, End};
use crate::paths;
use crate::{Test, TestMetrics};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use vnettop_sample::{Direction, FlowPath, Proto, Side};

/// Protocol, sender, receiver: of packets between two machines.
type WireKey = (Proto, SocketAddr, SocketAddr);

/// A connection of a running test as one host sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndSighting<'a> {
    pub host: usize,
    pub test: &'a Test,
    pub connection: &'a Connection,
    /// Where the data comes from and goes to.
    pub from: End,
    pub to: End,
    /// Against what that host takes for the direction: of UDP it knows that only where the client is.
    pub turned: bool,
    path: Option<&'a FlowPath>,
}

/// The two ends of one test.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndPair<'a> {
    pub sender: EndSighting<'a>,
    pub receiver: EndSighting<'a>,
    /// For two namespaces of one kernel: the sighting with the whole path, and how many of its hops are the sender's.
    pub reported_by: Option<(EndSighting<'a>, usize)>,
}

/// Every pair, each test of a host in one at most.
pub(super) fn pairs<'a>(hosts: &[HostMetrics<'a>]) -> Vec<EndPair<'a>> {
    let mut by_wire: BTreeMap<WireKey, Vec<EndSighting<'a>>> = BTreeMap::new();
    for seen in hosts.iter().enumerate().flat_map(|(host, of)| sightings(host, of)) {
        by_wire.entry(seen.wire()).or_default().push(seen);
    }
    by_wire.retain(|(_, from, to), _| [from, to].iter().all(|end| end.port() != 0 && !end.ip().is_unspecified()));
    let all = by_wire.iter().flat_map(|(wire, group)| group.iter().map(move |sender| (wire, group, sender)));
    let mut senders: Vec<_> = all.filter(|(.., sender)| sender.from.pid.is_some()).collect();
    // The same order at each sample, so that a test which goes both ways does not turn round.
    senders.sort_by_key(|(wire, _, sender)| {
        (sender.turned, sender.connection.relayed, sender.host, sender.test.number, **wire)
    });
    let (mut taken, mut pairs) = (BTreeSet::new(), Vec::new());
    for (_, group, sender) in senders {
        let is_free = |seen: &EndSighting<'_>| !taken.contains(&seen.test_key());
        if let Some(pair) = is_free(sender).then(|| sender.paired(hosts, group, is_free)).flatten() {
            taken.extend([pair.sender.test_key(), pair.receiver.test_key()]);
            pairs.push(pair);
        }
    }
    pairs.sort_by_key(|pair| pair.sender.test_key());
    pairs
}

/// What a host sees of running tests, where one of the ends is a process there.
fn sightings<'a>(host: usize, of: &HostMetrics<'a>) -> impl Iterator<Item = EndSighting<'a>> + use<'a> {
    let running = of.metrics.tests.iter().map(|test| &**test).filter(|test| test.ended_ns.is_none());
    running.flat_map(move |test| {
        let carrying = test.metrics.flow.connections.iter().filter(|connection| connection.carries);
        carrying.flat_map(move |connection| {
            let straight = EndSighting::of(host, test, connection, false);
            let turned = may_turn(test, connection).then(|| EndSighting::of(host, test, connection, true));
            [Some(straight), turned].into_iter().flatten()
        })
    })
}

/// Only the client of a UDP test says on its command line which end sends; who has the other end alone guesses.
fn may_turn(test: &Test, connection: &Connection) -> bool {
    let alone = match (connection.from.pid, connection.to.pid) {
        (Some(pid), None) | (None, Some(pid)) => Some(pid),
        _ => None,
    };
    let says = |pid| {
        let own = test.metrics.benchmarks.iter().filter(|own| own.pid == pid && own.side == Side::Client);
        own.filter_map(|own| own.direction).any(|direction| direction != Direction::Both)
    };
    connection.udp().is_some() && alone.is_some_and(|pid| !says(pid))
}

impl<'a> EndSighting<'a> {
    fn of(host: usize, test: &'a Test, connection: &'a Connection, turned: bool) -> Self {
        let (from, to) = if turned { (connection.to, connection.from) } else { (connection.from, connection.to) };
        let directed = Connection { from, to, ..*connection };
        let path = paths::found(&test.metrics.paths, &directed);
        Self { host, test, connection, from, to, turned, path }
    }

    /// The connection in the direction of the data.
    pub fn directed(&self) -> Connection {
        Connection { from: self.from, to: self.to, ..*self.connection }
    }

    /// How its packets are named outside this machine; where they never leave it, by the two ends' own addresses.
    fn wire(&self) -> WireKey {
        wire(self.path, &self.directed())
    }

    fn test_key(&self) -> (usize, u32) {
        (self.host, self.test.number)
    }

    /// Both ends are on one machine.
    fn sees_all(&self) -> bool {
        let has_both = self.from.pid.is_some() && self.to.pid.is_some();
        has_both || self.path_to_end().is_some()
    }

    fn path_to_end(&self) -> Option<&'a FlowPath> {
        self.path.filter(|path| path.gap.is_none())
    }

    /// This sender with its receiver, found among sightings that have the same wire key.
    fn paired(
        &self,
        hosts: &[HostMetrics<'a>],
        group: &[Self],
        is_free: impl Fn(&Self) -> bool,
    ) -> Option<EndPair<'a>> {
        let is_other_end = |seen: &&Self| seen.host != self.host && seen.to.pid.is_some() && is_free(seen);
        if !group.iter().any(Self::sees_all) {
            let receiver = *group.iter().find(is_other_end)?;
            return Some(EndPair { sender: *self, receiver, reported_by: None });
        }
        let by = [self].into_iter().chain(group).find(|seen| seen.path_to_end().is_some())?;
        let hops = &by.path_to_end()?.hops;
        // Namespaces have numbers of their own on each machine: a number that two of them have names neither.
        let whose = |netns: u64| {
            let of: BTreeSet<usize> =
                group.iter().map(|seen| seen.host).filter(|&host| hosts[host].metrics.machine.netns == netns).collect();
            of.first().copied().filter(|_| of.len() == 1)
        };
        let first = hops.iter().find_map(|hop| whose(hop.link.netns))?;
        let last = hops.iter().rev().find_map(|hop| whose(hop.link.netns))?;
        let own = hops.iter().rposition(|hop| hop.link.netns == hosts[self.host].metrics.machine.netns)? + 1;
        let receiver = *group.iter().find(|seen| seen.host == last && is_other_end(seen))?;
        (first == self.host).then_some(EndPair { sender: *self, receiver, reported_by: Some((*by, own)) })
    }
}

/// How the packets of a connection with this path are named outside this machine, else by the two ends' own addresses.
fn wire(path: Option<&FlowPath>, connection: &Connection) -> WireKey {
    let outside = || path?.outside.map(|out| (out.from, out.to));
    let inside = || {
        let path = path.filter(|path| path.gap.is_none())?;
        let ends = path.ends.as_ref()?;
        let [near, far] = [ends.near.local, ends.far.local];
        // The path of the receiver alone was found backwards.
        Some(if near == path.from { (near, far) } else { (far, near) })
    };
    let (from, to) = outside().or_else(inside).unwrap_or((connection.from.address, connection.to.address));
    let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    (connection.proto(), plain(from), plain(to))
}

/// Whether what one host sees and what another one does have a connection in common, whichever end each takes for the sender.
pub(super) fn share_connection(one: &TestMetrics, other: &TestMetrics) -> bool {
    let names = |metrics: &TestMetrics| -> BTreeSet<WireKey> {
        let carrying = metrics.flow.connections.iter().filter(|connection| connection.carries);
        carrying.map(|connection| wire(paths::found(&metrics.paths, connection), connection)).collect()
    };
    let (one, other) = (names(one), names(other));
    one.iter().any(|&(proto, from, to)| other.contains(&(proto, from, to)) || other.contains(&(proto, to, from)))
}
