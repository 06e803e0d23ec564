//! UDP from its sockets: both ends of one test put together, what each has sent and read, what is dropped at the receiver's.
//! Bytes in each direction show which end sends; when they are not counted, the benchmark's command line, else whose queues
//! fill, else who calls whom.

use super::connection::{CARRIES, Connection, End, Speaks, UdpFigures};
use super::datagrams::DatagramTest;
use super::join::{self, EndPlace, Translated};
use super::moved::SocketReading;
use super::on_the_way::OnTheWay;
use super::rate_gap::RateGap;
use super::{Bin, OtherTraffic};
use crate::rate::seconds;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vnettop_sample::{
    Benchmark, DatagramCounts, Direction, FlowPath, LinkFacts, Proto, Sample, Side, SocketKey, UdpState, row_of,
};

/// Every UDP socket that is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Datagrams {
    /// Sorted by key.
    ends: Vec<Socket>,
    /// Both ends, or the one that is known; indices into `ends`.
    pairs: Vec<(usize, Option<usize>)>,
    /// The one socket that several of these call, by caller; indices into `ends`.
    servers: BTreeMap<usize, usize>,
    /// The sockets that are called from elsewhere as well.
    shared: BTreeSet<SocketKey>,
    /// Their paths in the newest sample.
    paths: Arc<Vec<FlowPath>>,
    links: Arc<Vec<Arc<LinkFacts>>>,
    /// Of the newest tick; none for the first.
    elapsed_s: Option<f64>,
    /// Processes with a socket that was not there a tick ago.
    began: BTreeSet<u32>,
    on_the_way: OnTheWay,
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
    /// Takes the UDP sockets of a sample; others do this beside them.
    pub fn observe(&mut self, previous: Option<&Sample>, next: &Sample, others: &OtherTraffic) {
        self.elapsed_s = previous.and_then(|previous| seconds(previous.at_ns, next.at_ns));
        let flows = || next.flows.iter().filter(|flow| flow.proto == Proto::Udp);
        if self.ends.is_empty() && flows().next().is_none() {
            self.tests.clear();
            return;
        }
        self.links = Arc::clone(&next.facts.links);
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
        if now != before || self.paths != next.facts.paths || self.shared != others.servers {
            self.paths = Arc::clone(&next.facts.paths);
            self.shared.clone_from(&others.servers);
            self.pairs = self.pairs(&now);
            self.servers = join::shared_servers(&now, &self.pairs);
        }
        self.group(previous, next, &others.datagrams);
    }

    /// Both ends of each flow, or the one that is known. A socket that is also called from elsewhere is paired with no single
    /// caller.
    fn pairs(&self, places: &[EndPlace]) -> Vec<(usize, Option<usize>)> {
        let is_shared = |end: usize| self.shared.contains(&self.ends[end].key);
        let apart = |(one, other): (usize, Option<usize>)| match other {
            Some(other) if is_shared(one) || is_shared(other) => [Some((one, None)), Some((other, None))],
            _ => [Some((one, other)), None],
        };
        join::pairs(places, &self.paths).into_iter().flat_map(apart).flatten().collect()
    }

    /// The rate of all tests together since the sample before, unknown where one of them is new; none where there is none, or one
    /// of them has no rate.
    pub fn bin(&self) -> Option<(usize, Bin)> {
        if self.tests.iter().any(|test| test.rate().is_none() && !test.is_new()) {
            return None;
        }
        let bits_per_s = self.tests.iter().map(|test| test.rate().map(|rate| rate.bits_per_s)).sum();
        let windows = || self.tests.iter().filter_map(|test| test.window_ns);
        let from_ns = windows().map(|(from_ns, _)| from_ns).min()?;
        let to_ns = windows().map(|(_, to_ns)| to_ns).max()?;
        let streams = self.tests.iter().map(|test| test.streams).sum();
        Some((streams, Bin { from_ns, to_ns, bits_per_s, ..Bin::default() }))
    }

    /// Puts the flows of the same two processes together, and measures them.
    fn group(&mut self, previous: Option<&Sample>, next: &Sample, others: &BTreeSet<u64>) {
        let mut tests: Vec<DatagramTest> = Vec::new();
        let mut readings: Vec<(Vec<[SocketReading; 2]>, Option<u32>)> = Vec::new();
        for (one, other) in self.flows() {
            let flow = self.flow(one, other);
            let (from, to) = (process(&flow.from), process(&flow.to));
            let reading = self.readings(one, other);
            if let Some(at) = tests.iter().position(|test| (test.from, test.to) == (from, to)) {
                tests[at].streams += 1;
                readings[at].0.push(reading);
            } else {
                tests.push(DatagramTest { from, to, streams: 1, ..DatagramTest::default() });
                readings.push((vec![reading], self.mtu(one, other)));
            }
        }
        // Another test of the same namespace, of which only its existence is known.
        let other = |&netns: &u64| {
            let process = Some((0, netns));
            DatagramTest { from: process, to: process, ..DatagramTest::default() }
        };
        let all: Vec<DatagramTest> = tests.iter().copied().chain(others.iter().map(other)).collect();
        // The time before a test does not count: without traffic the counters are a second old, and the test would begin with a
        // dip.
        let began =
            |test: &DatagramTest| [test.from, test.to].into_iter().flatten().any(|(pid, _)| self.began.contains(&pid));
        let before = |test: &DatagramTest| previous.filter(|_| !began(test));
        let both = tests.iter().zip(&readings);
        let measured = |(test, (streams, mtu)): (&DatagramTest, &(Vec<_>, _))| {
            self.reported(test.measured((streams, *mtu), &all, before(test), next))
        };
        self.tests = both.map(measured).collect();
        self.on_the_way.settle(&mut self.tests);
    }

    /// The test with `SharedServer` as its gap, where one end is not known because it serves other clients as well.
    fn reported(&self, test: DatagramTest) -> DatagramTest {
        let serves =
            |end: &(u32, u64)| self.servers.values().any(|&at| (self.ends[at].pid, self.ends[at].place.netns) == *end);
        let is_half = test.sent.is_none() || test.received.is_none();
        let is_shared = is_half && [test.from, test.to].iter().flatten().any(serves);
        DatagramTest { gap: test.gap.or(is_shared.then_some(RateGap::SharedServer)), ..test }
    }

    /// Every pair of ends, and every end alone that is connected or was seen to carry something.
    pub fn list(&self) -> impl Iterator<Item = Connection> {
        self.flows().map(|(one, other)| self.flow(one, other))
    }

    /// Indices of every pair of ends, and of every end alone that is connected or has carried something. A server that several
    /// clients call is at the other end of each of them and no flow of its own.
    fn flows(&self) -> impl Iterator<Item = (usize, Option<usize>)> {
        let serves = |one: usize| self.servers.values().any(|&server| server == one);
        let is_flow = move |one: usize| self.ends[one].place.is_connected() || self.ends[one].has_carried();
        self.pairs.iter().copied().filter(move |&(one, other)| other.is_some() || (is_flow(one) && !serves(one)))
    }

    /// The sender and the receiver; the server of several clients stands for the other end of each.
    fn ordered(&self, one: usize, other: Option<usize>) -> [Option<usize>; 2] {
        let faced = other.or_else(|| self.servers.get(&one).copied());
        // What a server of several has moved says nothing of one of them.
        let sends = is_sender(&self.ends[one], other.map(|other| &self.ends[other]));
        if sends { [Some(one), faced] } else { [faced, Some(one)] }
    }

    /// What its sender and its receiver have moved in this tick.
    fn readings(&self, one: usize, other: Option<usize>) -> [SocketReading; 2] {
        let shared = other.is_none().then(|| self.servers.get(&one).copied()).flatten();
        self.ordered(one, other).map(|end| match end {
            Some(end) if Some(end) != shared => {
                SocketReading::of(self.ends[end].before.as_ref(), self.ends[end].state.as_ref())
            }
            _ => SocketReading::Absent,
        })
    }

    fn flow(&self, one: usize, other: Option<usize>) -> Connection {
        let [from, to] = self.ordered(one, other).map(|end| end.map(|end| &self.ends[end]));
        let end = |own: Option<&Socket>, faced: Option<&Socket>| {
            // A server that listens on any address is called by one of them.
            let called = faced.map(|faced| faced.place.remote).filter(|called| called.port() != 0);
            let own_address = own.map(|own| own.place.local).filter(|own| !own.ip().is_unspecified());
            let known = own_address.or(called).or(own.map(|own| own.place.local));
            let address = known.unwrap_or(self.ends[one].place.remote);
            End { netns: own.map(|own| own.place.netns), address, pid: own.map(|own| own.pid) }
        };
        let (sender, receiver) = (from.and_then(|from| from.state), to.and_then(|to| to.state));
        let (from_end, to_end) = (end(from, to), end(to, from));
        let test = self.tests.iter().find(|test| (test.from, test.to) == (process(&from_end), process(&to_end)));
        let rates = self.rates((one, other), test);
        let is_shared = other.is_none() && self.servers.contains_key(&one);
        let udp = UdpFigures {
            packets_per_s: rates.rate().and_then(|rate| rate.packets_per_s),
            sent: rates.sent,
            sent_datagrams: rates.sent_datagrams,
            by_socket: rates.by_socket,
            rate_gap: rates.gap,
            drops_per_s: to.filter(|_| !is_shared).and_then(|to| Some(f64::from(to.dropped()?) / self.elapsed_s?)),
        };
        Connection {
            speaks: Speaks::Udp(udp),
            carries: true,
            bits_per_s: rates.rate().map(|rate| rate.bits_per_s),
            tx_queue_bytes: sender.map(|state| u64::from(state.tx_queue)),
            rx_queue_bytes: receiver.map(|state| u64::from(state.rx_queue)),
            rx_buffer_bytes: receiver.map(|state| u64::from(state.rcvbuf)),
            ..Connection::between(from_end, to_end)
        }
    }

    /// What one flow of a test moves. Where its sockets cannot be asked, the test's rates are its own if it is the only stream.
    fn rates(&self, (one, other): (usize, Option<usize>), test: Option<&DatagramTest>) -> DatagramTest {
        let Some(test) = test else { return DatagramTest::default() };
        if test.by_socket {
            return DatagramTest::default().measured_by(&[self.readings(one, other)], self.mtu(one, other));
        }
        if test.streams == 1 {
            return *test;
        }
        DatagramTest { gap: test.gap.or(Some(RateGap::OneOfSeveral)), ..DatagramTest::default() }
    }

    /// MTU of the link that its datagrams leave through; `None` when that is not known.
    fn mtu(&self, one: usize, other: Option<usize>) -> Option<u32> {
        let [from, _] = self.ordered(one, other);
        let Socket { place, .. } = &self.ends[from?];
        let is_path =
            |path: &&FlowPath| path.proto == Proto::Udp && (path.netns, path.from) == (place.netns, place.local);
        let first = self.paths.iter().find(is_path)?.hops.first()?.link;
        row_of(&self.links, &first, |link| link.key()).map(|link| link.mtu)
    }
}

impl Socket {
    /// Datagrams dropped since the tick before.
    fn dropped(&self) -> Option<u32> {
        Some(self.state?.drops.wrapping_sub(self.before?.drops))
    }

    /// What it has sent and read since it was counted first.
    fn counts(&self) -> DatagramCounts {
        self.state.and_then(|state| state.counts).unwrap_or_default()
    }

    /// It was seen to carry something: of a socket that waits for anybody more than what a test begins with.
    fn has_carried(&self) -> bool {
        let counts = self.counts();
        let counted = counts.sent_bytes.max(counts.received_bytes) >= CARRIES;
        counted || self.seen_sent > 0 || self.seen_received > 0
    }

    fn look(&mut self) {
        let Some(state) = self.state else { return };
        let dropped = u64::from(self.dropped().unwrap_or(0));
        self.seen_sent = self.seen_sent.saturating_add(u64::from(state.tx_queue));
        self.seen_received = self.seen_received.saturating_add(u64::from(state.rx_queue)).saturating_add(dropped);
    }
}

/// The process and namespace of an end.
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
    let (own, faced) = (one.counts(), other.map_or_else(DatagramCounts::default, Socket::counts));
    let there = own.sent_bytes.max(faced.received_bytes);
    let back = own.received_bytes.max(faced.sent_bytes);
    // Requests and answers of about the same size have no direction, and the first bytes of a test say nothing.
    if there.abs_diff(back) > there.max(back) / 4 && there.max(back) >= CARRIES {
        return there > back;
    }
    if let Some(sends) = one.sends.or_else(|| other?.sends.map(|sends| !sends)) {
        return sends;
    }
    let of_other = other.map_or((0, 0), |other| (other.seen_sent, other.seen_received));
    let there = one.seen_sent.saturating_add(of_other.1);
    let back = one.seen_received.saturating_add(of_other.0);
    if there != back {
        return there > back;
    }
    // The calling end sends: a waiting socket is not connected, and its port is a low one.
    let other_port = other.map_or(one.place.remote.port(), |other| other.place.local.port());
    one.place.is_connected() && one.place.local.port() >= other_port
}
