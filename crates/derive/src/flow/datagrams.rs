//! How fast UDP tests run. Where the kernel can be asked (BPF), each socket itself says what its program has sent and read: that
//! is what the benchmark counts.
//!
//! Elsewhere the counters of its namespace stand for it, where nothing else can be in them: `Udp:` of `/proc/net/snmp` and
//! `snmp6`. `OutDatagrams` and `SndbufErrors` are what the sender was taken off its hands, as iperf counts it, and `InDatagrams`
//! is what the receiver has read; times the length of a datagram that is payload. The length is `-l`, or what the program takes
//! without it: iperf 3 the segment size of its control connection, iperf 2 1,470 bytes (1,450 over IPv6). Measured against iperf
//! 3.12's own report: within 0.1 % at 64 to 1,470 bytes. Another socket of the namespace is in these counters too, a tunnel's as
//! well, so beside one the rate is unknown. What does not hold: `/proc/PID/io` counts `read` and `write` on sockets, but not
//! `recv` and `sendmsg`, which newer iperf 3 uses.

use super::moved::{DatagramNumbers, Moved, SocketReading};
use super::rate_gap::RateGap;
use crate::rate::seconds;
use crate::share::share;
use vnettop_sample::{Benchmark, Direction, Program, Proto, ProtocolCounters, Sample, row_of};

/// What iperf 2 sends without `-l`, over IPv4 and over IPv6.
const IPERF_LENGTH: [u64; 2] = [1470, 1450];

/// A rate of datagrams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DatagramRate {
    /// Payload, bits/s.
    pub bits_per_s: f64,
    /// Datagrams a second; none where reads may have been of several (`UDP_GRO`) and their length is not known.
    pub packets_per_s: Option<f64>,
}

/// One UDP test: the sockets of the same two processes in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DatagramTest {
    /// The sender's process, and its namespace; none where it is not a watched one.
    pub from: Option<(u32, u64)>,
    /// The receiver's.
    pub to: Option<(u32, u64)>,
    /// Pairs of sockets.
    pub streams: usize,
    /// Payload of a datagram, bytes: what was asked for, else the mean of what was sent in the tick.
    pub length_bytes: Option<u64>,
    /// What the sender gave to UDP.
    pub sent: Option<DatagramRate>,
    /// What the receiver read.
    pub received: Option<DatagramRate>,
    /// The figures are from its sockets, not from the counters of its namespaces.
    pub by_socket: bool,
    /// Datagrams that its sockets sent in the tick; `None` when they cannot be asked, or that is not known.
    pub sent_datagrams: Option<f64>,
    /// Datagrams that its sockets read in the tick; `None` when they cannot be asked, or that is not known.
    pub received_datagrams: Option<f64>,
    /// How many more wait to be read than before the tick; they are not lost.
    pub unread_datagrams: f64,
    /// Datagrams missing at the receiver that were not in flight at the reading; `None` when that cannot be told apart.
    pub lost_datagrams: Option<f64>,
    /// The time that the rates cover, `CLOCK_MONOTONIC`, ns; none where no rate is known.
    pub window_ns: Option<(u64, u64)>,
    /// Why a rate is not known; none where all that can be known is.
    pub gap: Option<RateGap>,
}

/// Where the rates of a test come from: its sockets, or the counters of its namespaces.
pub const SOURCE: [&str; 2] = ["udp_sockets", "udp_datagrams"];

impl DatagramTest {
    /// The rate of the test, as for every flow: what arrived, or where that is not known what was sent.
    #[must_use]
    pub fn rate(&self) -> Option<DatagramRate> {
        self.received.or(self.sent)
    }

    /// Share of the datagrams sent that the receiver did not read and that do not wait to be read; `None` when either number is
    /// not known, or namespaces count more datagrams received than sent.
    #[must_use]
    pub fn lost(&self) -> Option<f64> {
        let (sent, received) = (self.sent?, self.received?);
        let of_rates = || match (sent.packets_per_s, received.packets_per_s) {
            (Some(sent), Some(received)) => (sent, received),
            // For datagrams of equal length, rates of payload give the same share.
            _ => (sent.bits_per_s, received.bits_per_s),
        };
        let (sent, received) = self.sent_datagrams.zip(self.received_datagrams).unwrap_or_else(of_rates);
        // Read at slightly different instants.
        let is_possible = sent > 0.0 && (self.by_socket || received <= sent * 1.05);
        let missing = || (sent - received - self.unread_datagrams).max(0.0);
        if is_possible { share(self.lost_datagrams.unwrap_or_else(missing), sent) } else { None }
    }

    /// Datagrams that its sockets sent in the tick and that were neither read nor wait to be read: lost, or still in flight;
    /// below 0 when some were in flight before. `None` when they cannot be counted.
    pub(super) fn missing(&self) -> Option<f64> {
        Some(self.sent_datagrams? - self.received_datagrams? - self.unread_datagrams)
    }

    /// Where its rates come from.
    #[must_use]
    pub fn source(&self) -> &'static str {
        SOURCE[usize::from(!self.by_socket)]
    }

    /// It may have a rate in the next tick.
    pub(crate) fn is_new(&self) -> bool {
        self.gap == Some(RateGap::First)
    }

    /// Fills in what its sockets tell, each stream's sender and receiver; where they cannot be asked, what the counters and the
    /// command line of the client tell. `all` are the tests of this tick.
    pub(super) fn measured(
        self,
        (streams, mtu): (&[[SocketReading; 2]], Option<u32>),
        all: &[Self],
        previous: Option<&Sample>,
        next: &Sample,
    ) -> Self {
        let client = client(self, next);
        let length_bytes = client.and_then(|client| length(client, next));
        let known = Self { length_bytes, ..self };
        if streams.iter().flatten().any(|reading| *reading == SocketReading::Uncounted) {
            return known.by_namespace(client, all, previous, next);
        }
        known.measured_by(streams, mtu)
    }

    /// Fills in what these sockets tell; `mtu` is of the link that their datagrams leave through.
    pub(super) fn measured_by(self, streams: &[[SocketReading; 2]], mtu: Option<u32>) -> Self {
        let of = |end: usize| Moved::total(streams.iter().map(|ends| ends[end]));
        let (from, to) = (of(0), of(1));
        let datagrams = DatagramNumbers::between(from.as_ref(), to.as_ref(), mtu);
        let rate = |bytes: u64, datagrams: Option<f64>, seconds: f64| DatagramRate {
            bits_per_s: bytes as f64 * 8.0 / seconds,
            packets_per_s: datagrams.map(|datagrams| datagrams / seconds),
        };
        let sent = from.map(|from| rate(from.sent_bytes, datagrams.sent, from.seconds));
        let received = to.map(|to| rate(to.received_bytes, datagrams.received, to.seconds));
        let is_first = streams.iter().flatten().any(|reading| *reading == SocketReading::First);
        let each = || to.and_then(|to| to.read_bytes()).or_else(|| from?.sent_bytes_each());
        Self {
            length_bytes: self.length_bytes.or_else(each),
            sent,
            received,
            by_socket: true,
            sent_datagrams: datagrams.sent,
            received_datagrams: datagrams.received,
            unread_datagrams: datagrams.unread,
            window_ns: to.or(from).map(|moved| (moved.from_ns, moved.to_ns)),
            gap: (sent.is_none() && received.is_none() && is_first).then_some(RateGap::First),
            ..self
        }
    }

    fn by_namespace(self, client: Option<&Benchmark>, all: &[Self], previous: Option<&Sample>, next: &Sample) -> Self {
        let why = match client {
            Some(client) if client.direction == Some(Direction::Both) => Some(RateGap::BothWays),
            Some(client) if client.batched => Some(RateGap::Batched),
            Some(_) if self.length_bytes.is_none() => Some(RateGap::NoControl),
            None => Some(RateGap::NoLength),
            _ => self.others(next),
        };
        let Some(length_bytes) = self.length_bytes.filter(|_| why.is_none()) else {
            return Self { gap: why, ..self };
        };
        let alone = |end: fn(&Self) -> Option<(u32, u64)>| {
            let netns = end(&self)?.1;
            Some((netns, all.iter().filter(|test| end(test).is_some_and(|there| there.1 == netns)).count() == 1))
        };
        let (from, to) = (alone(|test| test.from), alone(|test| test.to));
        let rate = |end: Option<(u64, bool)>, of: fn(&ProtocolCounters) -> u64| {
            let (netns, _) = end.filter(|end| end.1)?;
            let packets_per_s = risen(previous?, next, netns, of)?;
            let bits_per_s = packets_per_s * 8.0 * length_bytes as f64;
            Some(DatagramRate { packets_per_s: Some(packets_per_s), bits_per_s })
        };
        let sent = rate(from, |of| of.udp_out_datagrams.saturating_add(of.udp_sndbuf_errors));
        let received = rate(to, |of| of.udp_in_datagrams);
        let ends = [from, to];
        let gap = if ends.into_iter().flatten().count() == usize::from(sent.is_some()) + usize::from(received.is_some())
        {
            None
        } else if ends.into_iter().flatten().any(|(_, alone)| !alone) {
            Some(RateGap::TooManyTests)
        } else if next.protocols.is_empty() && previous.is_some() {
            Some(RateGap::Unread)
        } else {
            Some(RateGap::First)
        };
        let netns = to.filter(|_| received.is_some()).or(from).map(|(netns, _)| netns);
        let window_ns = netns.and_then(|netns| Some((counters(previous?, netns)?.at_ns, counters(next, netns)?.at_ns)));
        Self { sent, received, window_ns, gap, ..self }
    }

    /// What else is in the counters of its namespaces.
    fn others(&self, next: &Sample) -> Option<RateGap> {
        let here = [self.from, self.to].into_iter().flatten().filter_map(|(_, netns)| counters(next, netns));
        here.filter_map(|one| one.other_udp).find(|others| others.sockets > 0).map(RateGap::Others)
    }
}

/// The client of a test, which knows what was asked for.
fn client(test: DatagramTest, next: &Sample) -> Option<&Benchmark> {
    let of = |end: Option<(u32, u64)>| {
        let benchmark = row_of(&next.facts.benchmarks, &end?.0, |one| one.pid);
        benchmark.filter(|one| one.proto == Some(Proto::Udp) && one.streams.is_some())
    };
    of(test.from).or_else(|| of(test.to))
}

/// Payload of its datagrams, bytes.
fn length(client: &Benchmark, next: &Sample) -> Option<u64> {
    if let Some(asked) = client.length_bytes.filter(|&asked| asked > 0) {
        return Some(asked);
    }
    let pid = client.pid;
    let flows = || next.flows.iter().filter(move |flow| flow.pid == pid);
    match client.program {
        Program::Iperf3 => {
            let mut control = flows().filter(|flow| flow.remote.port() == client.port);
            control.find_map(|flow| flow.tcp).map(|tcp| u64::from(tcp.mss)).filter(|&mss| mss > 0)
        }
        Program::Iperf => {
            let socket = flows().find(|flow| flow.proto == Proto::Udp)?;
            Some(IPERF_LENGTH[usize::from(!socket.remote.ip().to_canonical().is_ipv4())])
        }
    }
}

/// How much a counter of a namespace rose a second.
fn risen(previous: &Sample, next: &Sample, netns: u64, of: fn(&ProtocolCounters) -> u64) -> Option<f64> {
    let (before, now) = (counters(previous, netns)?, counters(next, netns)?);
    let rise = of(now).checked_sub(of(before))?;
    Some(rise as f64 / seconds(before.at_ns, now.at_ns)?)
}

/// What the protocols of a namespace have counted.
pub(super) fn counters(sample: &Sample, netns: u64) -> Option<&ProtocolCounters> {
    row_of(&sample.protocols, &netns, |one| one.netns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::tests::sample;
    use crate::placement::tests::machine::Machine;
    use std::sync::Arc;
    use vnettop_sample::{OtherUdp, Side};

    /// Namespaces 1 to 3 a second later; namespace 1 has sent 1,000 datagrams, 2 and 3 have read 900 each.
    fn samples(client: Benchmark) -> (Sample, Sample) {
        let mut before = sample(&Machine::small(2).metrics());
        let counters = |netns| ProtocolCounters { netns, at_ns: 5_000_000_000, ..ProtocolCounters::default() };
        before.protocols = (1..=3).map(counters).collect();
        before.facts_mut().benchmarks = Arc::new(vec![client]);
        let mut after = before.clone();
        for one in &mut after.protocols {
            one.at_ns += 1_000_000_000;
            (one.udp_out_datagrams, one.udp_sndbuf_errors) = if one.netns == 1 { (990, 10) } else { (0, 0) };
            one.udp_in_datagrams = if one.netns == 1 { 0 } else { 900 };
        }
        (before, after)
    }

    fn client() -> Benchmark {
        let plain = Benchmark::new(7, Program::Iperf3, Side::Client, 5201);
        Benchmark { proto: Some(Proto::Udp), streams: Some(1), length_bytes: Some(100), ..plain }
    }

    fn test(from: Option<(u32, u64)>, to: Option<(u32, u64)>) -> DatagramTest {
        DatagramTest { from, to, streams: 1, ..DatagramTest::default() }
    }

    fn measured(client: Benchmark, all: &[DatagramTest]) -> DatagramTest {
        let (before, after) = samples(client);
        all[0].measured((&UNCOUNTED, None), all, Some(&before), &after)
    }

    const UNCOUNTED: [[SocketReading; 2]; 1] = [[SocketReading::Uncounted; 2]];
    const CLIENT: Option<(u32, u64)> = Some((7, 1));
    const SERVER: Option<(u32, u64)> = Some((8, 2));

    #[test]
    fn a_test_has_a_rate_at_both_ends_and_what_was_lost_between() {
        let one = measured(client(), &[test(CLIENT, SERVER)]);
        let rate = |packets_per_s: f64| {
            Some(DatagramRate { packets_per_s: Some(packets_per_s), bits_per_s: packets_per_s * 800.0 })
        };
        assert_eq!((one.sent, one.received), (rate(1000.0), rate(900.0)), "what a qdisc refused was sent too");
        assert_eq!((one.rate(), one.gap), (rate(900.0), None), "the rate of the test is what arrived");
        assert!(one.lost().is_some_and(|lost| (lost - 0.1).abs() < 1e-9), "a tenth is lost: {one:?}");
        let away = measured(client(), &[test(CLIENT, None)]);
        assert_eq!(
            (away.rate(), away.lost(), away.gap),
            (rate(1000.0), None, None),
            "a server elsewhere tells nothing"
        );
        let reverse = measured(client(), &[test(Some((8, 1)), Some((7, 2)))]);
        assert_eq!(reverse.lost().map(|lost| (lost * 10.0).round()), Some(1.0), "the client of iperf3 -R receives");
    }

    #[test]
    fn what_nobody_can_know_has_a_reason_instead_of_a_rate() {
        let why = |client, all: &[DatagramTest]| {
            let one = measured(client, all);
            (one.rate(), one.gap)
        };
        let alone = [test(CLIENT, SERVER)];
        let both = Benchmark { direction: Some(Direction::Both), ..client() };
        assert_eq!(why(both, &alone), (None, Some(RateGap::BothWays)));
        assert_eq!(why(Benchmark { batched: true, ..client() }, &alone), (None, Some(RateGap::Batched)));
        assert_eq!(
            why(Benchmark { length_bytes: None, ..client() }, &alone),
            (None, Some(RateGap::NoControl)),
            "no connection tells it"
        );
        assert_eq!(
            why(Benchmark { pid: 99, ..client() }, &alone),
            (None, Some(RateGap::NoLength)),
            "the client is elsewhere"
        );
        let shared = measured(client(), &[test(CLIENT, SERVER), test(Some((9, 1)), Some((10, 3)))]);
        assert_eq!((shared.sent, shared.gap), (None, Some(RateGap::TooManyTests)), "two tests leave one namespace");
        assert!(shared.received.is_some(), "each arrives in its own");
        let (_, after) = samples(client());
        assert!(
            alone[0].measured((&UNCOUNTED, None), &alone, None, &after).is_new(),
            "the first reading has no rate yet"
        );
    }

    #[test]
    fn a_tunnels_socket_in_the_namespace_leaves_the_rate_unknown_and_is_named() {
        let (before, mut after) = samples(client());
        after.protocols[1].other_udp = Some(OtherUdp { sockets: 1, port: 8472 });
        let alone = [test(CLIENT, SERVER)];
        let one = alone[0].measured((&UNCOUNTED, None), &alone, Some(&before), &after);
        assert_eq!((one.rate(), one.lost()), (None, None), "its datagrams are counted twice there");
        let gap = one.gap.expect("a reason").to_string();
        assert!(gap.starts_with("1 other UDP socket (port 8472) in its namespace"), "{gap}");
    }

    #[test]
    fn what_the_sockets_say_is_the_rate_whatever_else_the_namespaces_count() {
        let (before, mut after) = samples(Benchmark { batched: true, direction: Some(Direction::Both), ..client() });
        after.protocols[1].other_udp = Some(OtherUdp { sockets: 3, port: 9 });
        let moved = |sent, received| {
            let bytes = |datagrams| datagrams * 1_200;
            let (sent_bytes, received_bytes) = (bytes(sent), bytes(received));
            let plain = Moved { from_ns: 5_000_000_000, to_ns: 7_000_000_000, seconds: 2.0, ..Moved::default() };
            SocketReading::Moved(Moved { sent_bytes, received_bytes, sent, received, ..plain })
        };
        let alone = [test(CLIENT, SERVER)];
        let one = alone[0].measured((&[[moved(2_000, 1), moved(1, 1_500)]], None), &alone, Some(&before), &after);
        assert_eq!(one.sent.map(|rate| (rate.bits_per_s, rate.packets_per_s)), Some((9_600_000.0, Some(1_000.0))));
        assert_eq!(one.received.map(|rate| rate.packets_per_s), Some(Some(750.0)), "what was read");
        assert_eq!((one.lost(), one.gap, one.source()), (Some(0.25), None, "udp_sockets"));
        let first = alone[0].measured((&[[SocketReading::First, SocketReading::First]], None), &alone, None, &after);
        assert!(first.is_new() && first.rate().is_none(), "one reading is no rate");
        let shared =
            alone[0].measured((&[[moved(2_000, 1), SocketReading::Absent]], None), &alone, Some(&before), &after);
        assert_eq!((shared.received, shared.lost(), shared.gap), (None, None, None), "a server of several clients");
        assert!(shared.rate().is_some(), "what its client sent is its own");
    }
}
