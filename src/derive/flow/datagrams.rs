//! How fast UDP tests run. A socket counts no datagrams, but the protocols of its namespace do (`Udp:` of `/proc/net/snmp` and
//! `snmp6`): `OutDatagrams` and `SndbufErrors` are what the sender was taken off its hands, as iperf counts it, and `InDatagrams`
//! is what the receiver has read. Times the length of a datagram that is payload, as iperf reports it.
//!
//! The length is `-l`, or what the program takes without it: iperf 3 the segment size of its control connection, iperf 2
//! 1,470 bytes (1,450 over IPv6). Measured against iperf 3.12's own report: within 0.1 % at 64 to 1,470 bytes. What does not
//! hold: `/proc/PID/io` counts `read` and `write` on sockets, but not `recv` and `sendmsg`, which newer iperf 3 uses.
//!
//! Other UDP of the same namespace is counted too; two tests in one namespace are told apart by nothing, so both are unknown.

use crate::derive::seconds;
use crate::sample::{Benchmark, Direction, Program, Proto, ProtocolCounters, Sample, row_of};

/// What iperf 2 sends without `-l`, over IPv4 and over IPv6.
const IPERF_LENGTH: [u64; 2] = [1470, 1450];

/// A rate of datagrams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DatagramRate {
    /// Payload, bits/s.
    pub bits_per_s: f64,
    /// Datagrams a second.
    pub packets_per_s: f64,
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
    /// Payload of a datagram, bytes.
    pub length_bytes: Option<u64>,
    /// What the sender gave to UDP.
    pub sent: Option<DatagramRate>,
    /// What the receiver read.
    pub received: Option<DatagramRate>,
    /// Why a rate is not known; none where all that can be known is.
    pub gap: Option<&'static str>,
}

/// Where the rates of a test come from.
pub const SOURCE: &str = "udp_datagrams";

/// One of several streams.
pub const SHARED: &str = "the kernel counts datagrams by namespace: this test has one rate, not one a stream";
const TOO_MANY: &str = "several UDP tests share a namespace: their datagrams are counted together";
const BOTH_WAYS: &str = "datagrams go in both directions, and UDP does not show which socket sends";
const BATCHED: &str = "--gsro gives several datagrams to the kernel at once, which counts them as one";
const NO_LENGTH: &str = "length of datagrams unknown: the client is not a watched iperf3 or iperf";
const NO_CONTROL: &str = "datagram length unknown (control connection unreadable): use iperf3 -l";
const FIRST: &str = "only one reading so far; a rate needs two readings";
const UNREAD: &str = "the UDP counters of its namespace cannot be read";

impl DatagramTest {
    /// The rate of the test, as for every flow: what arrived, or where that is not known what was sent.
    #[must_use]
    pub fn rate(&self) -> Option<DatagramRate> {
        self.received.or(self.sent)
    }

    /// Share of the datagrams sent that the receiver did not read; none where one of both is not known, and where more
    /// arrived than was sent, because the namespace has other UDP then.
    #[must_use]
    pub fn lost(&self) -> Option<f64> {
        let (sent, received) = (self.sent?.packets_per_s, self.received?.packets_per_s);
        // Read at slightly different instants.
        (sent > 0.0 && received <= sent * 1.05).then(|| (1.0 - received / sent).max(0.0))
    }

    /// It may have a rate in the next tick.
    pub(in crate::derive) fn is_new(&self) -> bool {
        self.gap == Some(FIRST)
    }

    /// Fills in what the counters and the command line of the client tell; `all` are the tests of this tick.
    pub(super) fn measured(self, all: &[Self], previous: Option<&Sample>, next: &Sample) -> Self {
        let client = client(self, next);
        let length_bytes = client.and_then(|client| length(client, next));
        let known = Self { length_bytes, ..self };
        let why = match client {
            Some(client) if client.direction == Some(Direction::Both) => Some(BOTH_WAYS),
            Some(client) if client.batched => Some(BATCHED),
            Some(_) if length_bytes.is_none() => Some(NO_CONTROL),
            None => Some(NO_LENGTH),
            _ => None,
        };
        if why.is_some() {
            return Self { gap: why, ..known };
        }
        let alone = |end: fn(&Self) -> Option<(u32, u64)>| {
            let netns = end(&self)?.1;
            Some((netns, all.iter().filter(|test| end(test).is_some_and(|there| there.1 == netns)).count() == 1))
        };
        let (from, to) = (alone(|test| test.from), alone(|test| test.to));
        let rate = |end: Option<(u64, bool)>, of: fn(&ProtocolCounters) -> u64| {
            let (netns, _) = end.filter(|end| end.1)?;
            let packets_per_s = risen(previous?, next, netns, of)?;
            Some(DatagramRate { packets_per_s, bits_per_s: packets_per_s * 8.0 * length_bytes? as f64 })
        };
        let sent = rate(from, |of| of.udp_out_datagrams.saturating_add(of.udp_sndbuf_errors));
        let received = rate(to, |of| of.udp_in_datagrams);
        let ends = [from, to];
        let gap = if ends.into_iter().flatten().count() == usize::from(sent.is_some()) + usize::from(received.is_some())
        {
            None
        } else if ends.into_iter().flatten().any(|(_, alone)| !alone) {
            Some(TOO_MANY)
        } else if next.protocols.is_empty() {
            Some(UNREAD)
        } else {
            Some(FIRST)
        };
        Self { sent, received, gap, ..known }
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
            let is_v4 = socket.remote.is_ipv4() || matches!(socket.remote.ip().to_canonical(), std::net::IpAddr::V4(_));
            Some(IPERF_LENGTH[usize::from(!is_v4)])
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
    use crate::derive::finding::tests::sample;
    use crate::derive::placement::tests::machine::Machine;
    use crate::sample::Side;
    use std::sync::Arc;

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
        all[0].measured(all, Some(&before), &after)
    }

    const CLIENT: Option<(u32, u64)> = Some((7, 1));
    const SERVER: Option<(u32, u64)> = Some((8, 2));

    #[test]
    fn a_test_has_a_rate_at_both_ends_and_what_was_lost_between() {
        let one = measured(client(), &[test(CLIENT, SERVER)]);
        let rate = |packets_per_s: f64| Some(DatagramRate { packets_per_s, bits_per_s: packets_per_s * 800.0 });
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
        assert_eq!(why(both, &alone), (None, Some(BOTH_WAYS)));
        assert_eq!(why(Benchmark { batched: true, ..client() }, &alone), (None, Some(BATCHED)));
        assert_eq!(
            why(Benchmark { length_bytes: None, ..client() }, &alone),
            (None, Some(NO_CONTROL)),
            "no connection tells it"
        );
        assert_eq!(why(Benchmark { pid: 99, ..client() }, &alone), (None, Some(NO_LENGTH)), "the client is elsewhere");
        let shared = measured(client(), &[test(CLIENT, SERVER), test(Some((9, 1)), Some((10, 3)))]);
        assert_eq!((shared.sent, shared.gap), (None, Some(TOO_MANY)), "two tests leave one namespace");
        assert!(shared.received.is_some(), "each arrives in its own");
        let (_, after) = samples(client());
        assert!(alone[0].measured(&alone, None, &after).is_new(), "the first reading has no rate yet");
    }
}
