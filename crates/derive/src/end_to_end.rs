//! One test as two hosts see it: the sender's end on one, the receiver's on the other. Each host has a clock of its own, so
//! what both say stands side by side, and no number is computed of both.

mod findings;
mod journey;
mod pairing;

use super::flow::Connection;
use super::paths::HopMetrics;
use super::{Jitter, Loss, Metrics, Test, TestMetrics, ThreadMetrics};
use journey::Journey;
use pairing::{EndPair, EndSighting};
use std::net::SocketAddr;
use std::sync::Arc;

/// A host and what was derived of its newest sample.
#[derive(Debug, Clone, Copy)]
pub struct HostMetrics<'a> {
    /// What the host is called.
    pub name: &'a str,
    /// Of all its tests.
    pub metrics: &'a Metrics,
}

/// One test of which two hosts each see an end. Hosts are named by their place in the list that was given.
#[derive(Debug, Clone, PartialEq)]
pub struct EndToEnd<'a> {
    /// The end that the data comes from.
    pub sender: HostEnd<'a>,
    /// The end that the data goes to.
    pub receiver: HostEnd<'a>,
    /// Hop by hop: on the sender's host up to its last link, then on the receiver's from its first.
    pub hops: Vec<HostHop<'a>>,
    /// Why the path is not known on one side, by host. A path that leaves one machine and enters the other has no gap there.
    pub gaps: Vec<(usize, &'a str)>,
    /// Where packets were lost on both hosts, most first.
    pub losses: Vec<HostLoss<'a>>,
    /// Sentences that need both ends, most important first.
    pub findings: Vec<String>,
}

/// One end, on its host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostEnd<'a> {
    /// The host.
    pub host: usize,
    /// The test there.
    pub test: &'a Test,
    /// The first of its connections that the other host has too. Of UDP the host of one end may take the other one for the
    /// sender: then it is written the other way round.
    pub connection: &'a Connection,
    /// The end's own address, as its host has it: NAT may give it another one outside.
    pub address: SocketAddr,
    /// Its process there.
    pub pid: Option<u32>,
    /// Inode of its network namespace there.
    pub netns: Option<u64>,
    /// The threads of that process that work for the test.
    pub threads: Vec<&'a ThreadMetrics>,
    /// Payload in this direction over the newest tick, as that host measures it, bits/s: what was acknowledged, or given to the
    /// kernel (UDP), at the sender, and what arrived at the receiver.
    pub bits_per_s: Option<f64>,
    /// Segments that it sends again a second; none of the receiver.
    pub retransmits_per_s: Option<f64>,
    /// Spread of the rate as that host measures it.
    pub jitter: Option<Jitter>,
    /// Connections of that process that carry the test's data in this direction.
    pub streams: usize,
}

/// One link of the path, as one host sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct HostHop<'a> {
    /// On whose part of the path it is.
    pub host: usize,
    /// The link.
    pub hop: HopMetrics<'a>,
}

/// One place where packets of the test were lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostLoss<'a> {
    /// On whose part of the path it is.
    pub host: usize,
    /// The place.
    pub loss: &'a Loss,
    /// Packets lost there a second; none where that is not known.
    pub packets_per_s: Option<f64>,
}

/// The running tests of which two of these hosts each see an end, each test once: by the sender's host and number.
#[must_use]
pub fn end_to_end<'a>(hosts: &[HostMetrics<'a>]) -> Vec<EndToEnd<'a>> {
    pairing::pairs(hosts).into_iter().map(|pair| EndToEnd::of(hosts, &pair)).collect()
}

/// What another host measures of the test that has its other end among these flows; `None` when that host sees no such test.
#[must_use]
pub fn other_end(own: &TestMetrics, there: &Metrics) -> Option<Arc<TestMetrics>> {
    let mut running = there.tests.iter().filter(|test| test.ended_ns.is_none());
    let test = running.find(|test| pairing::share_connection(own, &test.metrics))?;
    Some(Arc::clone(&test.metrics))
}

impl<'a> EndToEnd<'a> {
    fn of(hosts: &[HostMetrics<'a>], pair: &EndPair<'a>) -> Self {
        let Journey { hops, gaps, losses } = Journey::of(hosts, pair);
        let (sender, receiver) = (HostEnd::of(&pair.sender, true), HostEnd::of(&pair.receiver, false));
        let mut whole = Self { sender, receiver, hops, gaps, losses, findings: Vec::new() };
        whole.findings = findings::all(hosts, &whole, pair.reported_by.is_some());
        whole
    }
}

impl<'a> HostEnd<'a> {
    fn of(seen: &EndSighting<'a>, sends: bool) -> Self {
        let own = if sends { seen.from } else { seen.to };
        let (metrics, shown) = (&*seen.test.metrics, seen.connection);
        let same = |one: &&Connection| {
            let is_from = sends != seen.turned;
            let end = if is_from { one.from } else { one.to };
            one.carries && (one.proto(), one.relayed) == (shown.proto(), shown.relayed) && end.pid == own.pid
        };
        let streams = metrics.flow.connections.iter().filter(same);
        // What the sender gave to the kernel, and what arrived where that is known; of TCP both are what the end's own host has seen.
        let rate = |one: &Connection| {
            one.udp().and_then(|udp| udp.sent).filter(|_| sends).map(|sent| sent.bits_per_s).or(one.bits_per_s)
        };
        let bits_per_s = streams.clone().filter_map(rate).reduce(|sum, one| sum + one);
        let again = streams.clone().filter_map(|one| one.tcp()?.retransmits_per_s).reduce(|sum, one| sum + one);
        Self {
            host: seen.host,
            test: seen.test,
            connection: shown,
            address: own.address,
            pid: own.pid,
            netns: own.netns,
            threads: metrics.threads.iter().filter(|thread| Some(thread.sample.id.pid) == own.pid).collect(),
            bits_per_s: bits_per_s.or(metrics.flow.bits_per_s),
            retransmits_per_s: again.filter(|_| sends),
            jitter: metrics.jitter,
            streams: streams.count(),
        }
    }
}

#[cfg(test)]
mod tests;
