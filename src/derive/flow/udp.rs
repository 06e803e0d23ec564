//! UDP from its sockets: both ends of one test put together, what is dropped at the receiver's. UDP counts no bytes, so
//! which end sends is told by the benchmark's command line, else by whose queues fill, else by who calls whom.

use super::Bin;
use super::connection::{Connection, End};
use super::datagrams::{self, DatagramTest};
use super::join::{self, EndPlace, Translated};
use crate::derive::seconds;
use crate::sample::{Benchmark, Direction, FlowPath, Proto, Sample, Side, SocketKey, UdpState, row_of};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Every UDP socket that is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Datagrams {
    /// Sorted by key.
    ends: Vec<Socket>,
    /// Both ends, or the one that is known; indices into `ends`.
    pairs: Vec<(usize, Option<usize>)>,
    /// Which way they went at last.
    paths: Arc<Vec<FlowPath>>,
    /// Of the newest tick; none for the first.
    elapsed_s: Option<f64>,
    /// Processes with a socket that was not there a tick ago.
    began: BTreeSet<u32>,
    /// The tests of this tick.
    pub tests: Vec<DatagramTest>,
}

#[derive(Debug, Clone, PartialEq)]
struct Socket {
    key: SocketKey,
    pid: u32,
    place: EndPlace,
    state: Option<UdpState>,
    before: Option<UdpState>,
    /// What its benchmark says: it sends, or it does not.
    sends: Option<bool>,
    /// What was seen waiting to be sent, and waiting to be read or dropped, summed up over the ticks.
    seen_sent: u64,
    seen_received: u64,
}

impl Datagrams {
    /// Takes the UDP sockets of a sample; others send or receive datagrams in these namespaces.
    pub fn observe(&mut self, previous: Option<&Sample>, next: &Sample, others: &BTreeSet<u64>) {
        self.elapsed_s = previous.and_then(|previous| seconds(previous.at_ns, next.at_ns));
        let flows = || next.flows.iter().filter(|flow| flow.proto == Proto::Udp);
        if self.ends.is_empty() && flows().next().is_none() {
            self.tests.clear();
            return;
        }
        let known = std::mem::take(&mut self.ends);
        let places = |ends: &[Socket]| ends.iter().map(|end| end.place).collect::<Vec<_>>();
        let (before, names) = (places(&known), Translated::on(&next.facts.paths));
        self.began.clear();
        for flow in flows() {
            let old = row_of(&known, &flow.key(), |end| end.key);
            self.began.extend(old.is_none().then_some(flow.pid));
            let mut end = Socket {
                key: flow.key(),
                pid: flow.pid,
                place: names.place(flow).or_as(old.map(|old| old.place)),
                state: flow.udp,
                before: old.and_then(|old| old.state),
                sends: sends(&next.facts.benchmarks, flow.pid),
                seen_sent: old.map_or(0, |old| old.seen_sent),
                seen_received: old.map_or(0, |old| old.seen_received),
            };
            end.look();
            self.ends.push(end);
        }
        let now = places(&self.ends);
        if now != before || self.paths != next.facts.paths {
            self.paths = Arc::clone(&next.facts.paths);
            self.pairs = join::pairs(&now, &self.paths);
        }
        self.group(previous, next, others);
    }

    /// The rate of all tests together since the sample before, unknown where one of them is new; none where there is none, or one
    /// of them has no rate.
    pub fn bin(&self, previous: &Sample, next: &Sample) -> Option<(usize, Bin)> {
        let first = self.tests.first()?;
        let netns = first.to.filter(|_| first.received.is_some()).or(first.from).or(first.to)?.1;
        if self.tests.iter().any(|test| test.rate().is_none() && !test.is_new()) {
            return None;
        }
        let bits_per_s = self.tests.iter().map(|test| test.rate().map(|rate| rate.bits_per_s)).sum();
        let at_ns = |sample| datagrams::counters(sample, netns).map(|counters| counters.at_ns);
        let (from_ns, to_ns) = (at_ns(previous)?, at_ns(next)?);
        let streams = self.tests.iter().map(|test| test.streams).sum();
        Some((streams, Bin { from_ns, to_ns, bits_per_s, ..Bin::default() }))
    }

    /// Puts the flows of the same two processes together, and measures them.
    fn group(&mut self, previous: Option<&Sample>, next: &Sample, others: &BTreeSet<u64>) {
        let mut tests: Vec<DatagramTest> = Vec::new();
        for flow in self.list() {
            let (from, to) = (process(&flow.from), process(&flow.to));
            match tests.iter_mut().find(|test| (test.from, test.to) == (from, to)) {
                Some(test) => test.streams += 1,
                None => tests.push(DatagramTest { from, to, streams: 1, ..DatagramTest::default() }),
            }
        }
        // Another test of the same namespace, of which nothing is known but that it is there.
        let other = |&netns: &u64| {
            let process = Some((0, netns));
            DatagramTest { from: process, to: process, ..DatagramTest::default() }
        };
        let all: Vec<DatagramTest> = tests.iter().copied().chain(others.iter().map(other)).collect();
        // The time before a test is none of it: where nothing ran, the counters are a second old, and it would begin with a dip.
        let began =
            |test: &DatagramTest| [test.from, test.to].into_iter().flatten().any(|(pid, _)| self.began.contains(&pid));
        let before = |test: &DatagramTest| previous.filter(|_| !began(test));
        self.tests = tests.iter().map(|test| test.measured(&all, before(test), next)).collect();
    }

    /// Every pair of ends, and every end alone that is connected or was seen to carry something.
    pub fn list(&self) -> impl Iterator<Item = Connection> {
        let is_flow = |end: &Socket| end.place.is_connected() || end.seen_sent > 0 || end.seen_received > 0;
        let pairs = self.pairs.iter().map(|&(one, other)| (&self.ends[one], other.map(|other| &self.ends[other])));
        pairs.filter(move |(one, other)| other.is_some() || is_flow(one)).map(|(one, other)| self.flow(one, other))
    }

    fn flow(&self, one: &Socket, other: Option<&Socket>) -> Connection {
        let (from, to) = if is_sender(one, other) { (Some(one), other) } else { (other, Some(one)) };
        let end = |own: Option<&Socket>, faced: Option<&Socket>| {
            // A server that listens on any address is called by one of them.
            let called = faced.map(|faced| faced.place.remote).filter(|called| called.port() != 0);
            let own_address = own.map(|own| own.place.local).filter(|own| !own.ip().is_unspecified());
            let address = own_address.or(called).or(own.map(|own| own.place.local)).unwrap_or(one.place.remote);
            End { netns: own.map(|own| own.place.netns), address, pid: own.map(|own| own.pid) }
        };
        let (sender, receiver) = (from.and_then(|from| from.state), to.and_then(|to| to.state));
        let (from_end, to_end) = (end(from, to), end(to, from));
        let test = self.tests.iter().find(|test| (test.from, test.to) == (process(&from_end), process(&to_end)));
        let alone = test.filter(|test| test.streams == 1);
        Connection {
            proto: Proto::Udp,
            carries: true,
            bits_per_s: alone.and_then(DatagramTest::rate).map(|rate| rate.bits_per_s),
            packets_per_s: alone.and_then(DatagramTest::rate).map(|rate| rate.packets_per_s),
            sent: alone.and_then(|test| test.sent),
            rate_gap: test.and_then(|test| test.gap.or((test.streams > 1).then_some(datagrams::SHARED))),
            tx_queue_bytes: sender.map(|state| u64::from(state.tx_queue)),
            rx_queue_bytes: receiver.map(|state| u64::from(state.rx_queue)),
            rx_buffer_bytes: receiver.map(|state| u64::from(state.rcvbuf)),
            drops_per_s: to.and_then(|to| Some(f64::from(to.dropped()?) / self.elapsed_s?)),
            ..Connection::between(from_end, to_end)
        }
    }
}

impl Socket {
    /// Datagrams dropped since the tick before.
    fn dropped(&self) -> Option<u32> {
        Some(self.state?.drops.wrapping_sub(self.before?.drops))
    }

    fn look(&mut self) {
        let Some(state) = self.state else { return };
        let dropped = u64::from(self.dropped().unwrap_or(0));
        self.seen_sent = self.seen_sent.saturating_add(u64::from(state.tx_queue));
        self.seen_received = self.seen_received.saturating_add(u64::from(state.rx_queue)).saturating_add(dropped);
    }
}

/// Whose end it is, and where.
fn process(end: &End) -> Option<(u32, u64)> {
    end.pid.zip(end.netns)
}

/// Whether a process sends, as its own command line says.
fn sends(benchmarks: &[Benchmark], pid: u32) -> Option<bool> {
    let is_client = |test: &&Benchmark| test.side == Side::Client && test.proto == Some(Proto::Udp);
    match row_of(benchmarks, &pid, |test| test.pid).filter(is_client)?.direction? {
        Direction::Forward => Some(true),
        Direction::Reverse => Some(false),
        Direction::Both => None,
    }
}

fn is_sender(one: &Socket, other: Option<&Socket>) -> bool {
    if let Some(sends) = one.sends.or_else(|| other?.sends.map(|sends| !sends)) {
        return sends;
    }
    let of_other = other.map_or((0, 0), |other| (other.seen_sent, other.seen_received));
    let there = one.seen_sent.saturating_add(of_other.1);
    let back = one.seen_received.saturating_add(of_other.0);
    if there != back {
        return there > back;
    }
    // Who calls sends: one that waits is not connected, and its port is a low one.
    let other_port = other.map_or(one.place.remote.port(), |other| other.place.local.port());
    one.place.is_connected() && one.place.local.port() >= other_port
}
