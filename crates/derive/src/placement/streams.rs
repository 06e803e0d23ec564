//! Which busy threads are the two ends of one stream, and what kind of test they make: tests of one kind have the same best
//! placement.

use super::busy_threads::{BusyThread, busy_threads};
use crate::TestMetrics;
use crate::plural;
use std::collections::BTreeSet;
use std::hash::Hash;
use vnettop_sample::{CorePlace, TestKind, Topology};

/// Streams of busy threads, by the numbers that the threads have.
pub(super) struct Streams {
    /// Sender and receiver of each stream that has both ends on this machine.
    pub(super) pairs: Vec<(usize, usize)>,
}

impl Streams {
    /// The threads that are an end of a stream.
    pub(super) fn ends(&self) -> BTreeSet<usize> {
        self.pairs.iter().flat_map(|&(sender, receiver)| [sender, receiver]).collect()
    }
}

/// The streams that have both ends among these threads: of iperf the nth client and the nth server thread; of other programs the
/// nth threads of two processes that a connection joins.
pub(super) fn streams(metrics: &TestMetrics, threads: &[BusyThread<'_>]) -> Streams {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (at, one) in threads.iter().enumerate() {
        let other = threads[at + 1..].iter().position(|other| one.is_partner_of(other)).map(|nth| at + 1 + nth);
        if let Some(other) = other {
            pairs.push(if one.sender || !threads[other].sender { (at, other) } else { (other, at) });
        }
    }
    let mut paired: BTreeSet<usize> = pairs.iter().flat_map(|&(one, other)| [one, other]).collect();
    for connection in metrics.flow.connections.iter().filter(|connection| connection.carries) {
        let free = |pid: Option<u32>| {
            let is_end = |at: &usize| !paired.contains(at) && Some(threads[*at].thread.sample.id.pid) == pid;
            (0..threads.len()).find(is_end)
        };
        let ends = free(connection.from.pid).zip(free(connection.to.pid));
        if let Some((sender, receiver)) = ends.filter(|(sender, receiver)| sender != receiver) {
            paired.extend([sender, receiver]);
            pairs.push((sender, receiver));
        }
    }
    Streams { pairs }
}

/// What kind of test the busy watched threads make.
#[must_use]
pub fn test_kind(metrics: &TestMetrics) -> TestKind {
    let threads = busy_threads(metrics).map_or_else(|_| Vec::new(), |(threads, _)| threads);
    let streams = streams(metrics, &threads);
    let placed = if streams.pairs.is_empty() { threads.len() } else { streams.ends().len() };
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    TestKind {
        machine: machine(&metrics.machine.facts.topology),
        links: links(metrics),
        streams: count(streams.pairs.len()),
        threads: count(placed),
    }
}

/// `16 cores, 4 clusters, 4 caches, 4 nodes, 1 socket`; levels that are not reported are left out.
fn machine(topology: &Topology) -> String {
    let online = || topology.cores.iter().filter(|place| place.online);
    let different = |of: &dyn Fn(&CorePlace) -> Option<u32>| distinct(online().filter_map(of));
    let levels = [
        (online().count(), "core"),
        (different(&|place| place.physical), "physical core"),
        (distinct(online().filter_map(|place| Some((place.cluster?, place.node)))), "cluster"),
        (distinct(online().filter_map(|place| Some((place.llc?, place.node)))), "cache"),
        (different(&|place| place.node), "node"),
        (different(&|place| place.socket), "socket"),
    ];
    let known = levels.into_iter().filter(|(count, _)| *count > 0);
    known.map(|(count, level)| plural(count, level)).collect::<Vec<_>>().join(", ")
}

fn distinct<K: Hash + Eq + Ord>(keys: impl Iterator<Item = K>) -> usize {
    keys.collect::<BTreeSet<K>>().len()
}

/// The kinds of the links that the data cross, in this order; empty where the path is not known.
fn links(metrics: &TestMetrics) -> Vec<String> {
    let carrying = metrics.flow.connections.iter().find(|connection| connection.carries && !connection.relayed);
    let is_its = |from, to| carrying.is_some_and(|one| one.from.address == from && one.to.address == to);
    let own = metrics.paths.iter().find(|path| is_its(path.from, path.to));
    let path = own.or_else(|| metrics.paths.iter().find(|path| !path.hops.is_empty()));
    let kinds = path.into_iter().flat_map(|path| &path.hops).filter_map(|hop| metrics.machine.link(hop.link));
    kinds.map(|link| link.facts.kind.as_ref().to_owned()).collect()
}
