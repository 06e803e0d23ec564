//! Ticks of half a second with pulses every tenth, made by hand: what a user would see as a dip must be one.

mod cookies;
mod datagrams;
mod moves;
mod standstill;

use super::*;
use crate::links;
use std::sync::Arc;
use vnettop_sample::{
    Benchmark, Busy, Congestion, CorePlace, CoreSet, Direction, Facts, FlowProgress, FlowSample, Ifindex, Kind,
    LinkCounters, LinkFacts, LinkKey, Move, Program, Proto, Side, TcpState, ThreadId, ThreadSample, Topology, Trace,
    TraceSource, UdpState,
};

const MS: u64 = 1_000_000;
/// Ticks do not fall onto edges of bins.
const PHASE: u64 = 37 * MS;
const TICK: u64 = 500 * MS;
/// 100 Mbit/s.
const BYTES_PER_MS: u64 = 12_500;

/// The instant of a tick, counted from 10 s.
fn tick_ns(tick: u64) -> u64 {
    10_000 * MS + PHASE + tick * TICK
}

fn sample(tick: u64) -> Sample {
    let place = |core| CorePlace {
        core,
        online: true,
        physical: Some(core),
        llc: Some(core / 2),
        node: Some(core / 2),
        socket: Some(0),
        ..CorePlace::default()
    };
    let topology = Topology { cores: (0..4).map(place).collect(), isolated: CoreSet::new(), nodes: 2 };
    let facts = Facts { topology: Arc::new(topology), ..Facts::default() };
    Sample { at_ns: tick_ns(tick), netns: 1, cores_at_ns: tick_ns(tick), facts: Arc::new(facts), ..Sample::default() }
}

/// The instants at which the connections are read from one tick (without it) to the next: whole tenths, then the tick.
fn pulses(tick: u64) -> Vec<u64> {
    let first = (tick_ns(tick) - TICK) / BIN_NS + 1;
    (first..=tick_ns(tick) / BIN_NS).map(|edge| edge * BIN_NS).chain([tick_ns(tick)]).collect()
}

/// An end: `moved` says how many bytes it has acknowledged and received at an instant; none where it does not exist.
fn end(tick: u64, cookie: u64, ends: (&str, &str), moved: impl Fn(u64) -> Option<(u64, u64)>) -> Option<FlowSample> {
    let pulse = |at_ns| moved(at_ns).map(|(acked, received)| FlowProgress { at_ns, acked, received });
    let pulses: Vec<FlowProgress> = pulses(tick).into_iter().filter_map(pulse).collect();
    let address = |text: &str| text.parse().expect("an address");
    let (local, remote) = (address(ends.0), address(ends.1));
    let pid = u32::try_from(cookie).expect("small");
    (!pulses.is_empty()).then_some(FlowSample { pulses, ..FlowSample::new(cookie, (cookie, pid), (local, remote)) })
}

const CLIENT: (&str, &str) = ("10.0.0.2:4000", "10.0.0.1:5201");
const SERVER: (&str, &str) = ("10.0.0.1:5201", "10.0.0.2:4000");

/// Bytes at a steady rate since an instant, above what makes it a benchmark.
fn steady(since_ns: u64, at_ns: u64) -> u64 {
    1_000_000 + at_ns.saturating_sub(since_ns) / MS * BYTES_PER_MS
}

/// Folds ticks into a track; `change` makes the tick.
fn run(ticks: std::ops::Range<u64>, change: impl Fn(u64, &mut Sample)) -> FlowTrack {
    let (mut track, mut previous) = (FlowTrack::default(), None);
    for tick in ticks {
        let mut next = sample(tick);
        change(tick, &mut next);
        next.flows.sort_by_key(FlowSample::key);
        track.observe(previous.as_ref(), &next, &links::between(previous.as_ref(), &next));
        previous = Some(next);
    }
    track
}

#[test]
fn what_a_program_copies_counts_once() {
    // The client faces the proxy on loopback, the server in another namespace sees the proxy's address.
    let (client, server) = (("127.0.0.1:4000", "127.0.0.1:5301"), ("172.17.0.2:5201", "172.17.0.1:46864"));
    let track = |is_known: bool, most: u64| {
        run(0..8, move |tick, sample| {
            let start = tick_ns(0) - TICK;
            sample.flows.extend(end(tick, 1, client, |at| Some((steady(start, at), 100))));
            sample.flows.extend(end(tick, 2, server, |at| Some((100, steady(start, at) * most))));
            let path =
                |(local, remote), cookie, accepts| proxied::tests::path((cookie, local, remote), &[(70, accepts)]);
            let known = [path(client, 1, true), path(server, 2, false)];
            sample.facts_mut().paths = Arc::new(known.into_iter().filter(|_| is_known).collect());
        })
    };
    let mean = |track: &FlowTrack| rates(track).iter().sum::<f64>() / rates(track).len() as f64;
    let one = BYTES_PER_MS as f64 * 8000.0;
    let copied = track(true, 1);
    assert!((mean(&copied) / one - 1.0).abs() < 0.01, "the data of one benchmark: {}", mean(&copied));
    let metrics = copied.metrics();
    assert_eq!(metrics.basis, Some(FlowBasis::Sockets(1)), "is one connection's");
    let legs: Vec<_> = metrics.connections.iter().map(|leg| (leg.relayed, leg.relay)).collect();
    assert_eq!(legs, [(false, Some(70)), (true, Some(70))], "both are told, with the program between them");
    let apart = track(false, 1);
    assert!((mean(&apart) / one - 2.0).abs() < 0.01, "where nobody knows they are two: {}", mean(&apart));
    let other = track(true, 9);
    let legs: Vec<_> = other.metrics().connections.iter().map(|leg| leg.relayed).collect();
    assert_eq!(legs, [false, false], "what carries other data is no copy");
}

fn rates(track: &FlowTrack) -> Vec<f64> {
    track.bins.iter().filter_map(|bin| bin.bits_per_s).collect()
}

fn assert_steady(track: &FlowTrack, least: usize, bits_per_s: f64) {
    let rates = rates(track);
    assert!(rates.len() >= least, "there are {least} bins at least: {rates:?}");
    let off = |rate: &&f64| (**rate / bits_per_s - 1.0).abs() > 1e-3;
    assert_eq!(rates.iter().find(off), None, "every known bin has the one rate {bits_per_s}: {rates:?}");
}

#[test]
fn both_ends_on_this_machine_count_once_and_bins_are_finer_than_ticks() {
    let track = run(0..9, |tick, sample| {
        sample.flows.extend(end(tick, 1, CLIENT, |at| Some((steady(0, at) / 2, 0))));
        sample.flows.extend(end(tick, 2, SERVER, |at| Some((0, steady(0, at)))));
    });
    assert_eq!(track.basis.as_ref(), Some(&FlowBasis::Sockets(1)), "one connection");
    assert_steady(&track, 39, 1e8);
    assert!(track.bins.iter().all(|bin| bin.from_ns % BIN_NS == 0 && bin.to_ns - bin.from_ns == BIN_NS), "aligned");
    assert!(track.bins.iter().zip(track.bins.iter().skip(1)).all(|(a, b)| a.to_ns == b.from_ns), "no gap");
    let metrics = track.metrics();
    let [one] = metrics.connections[..] else { panic!("one connection: {metrics:?}") };
    assert_eq!((one.from.pid, one.to.pid), (Some(1), Some(2)), "from the sender to the receiver");
    assert!((one.bits_per_s.expect("a rate") / 1e8 - 1.0).abs() < 1e-3, "rate of the tick: {one:?}");
    assert!(metrics.bits_per_s.is_some(), "the newest rate is told");
    let newest: Vec<f64> = track.bins.iter().rev().take(10).filter_map(|bin| bin.bits_per_s).collect();
    let mean = newest.iter().sum::<f64>() / newest.len() as f64;
    assert!(track.mean_of_last(10 * BIN_NS).is_some_and(|last| (last - mean).abs() < 1e-6), "a second of bins");
    let from = track.bins.iter().nth(5).map_or(0, |bin| bin.from_ns);
    assert_eq!(track.bins.within(from + 1, from + 3 * BIN_NS).count(), 2, "only bins that lie wholly between");
}

#[test]
fn a_sender_alone_counts_what_was_acknowledged() {
    let track = run(0..6, |tick, sample| sample.flows.extend(end(tick, 1, CLIENT, |at| Some((steady(0, at), 60)))));
    assert_steady(&track, 24, 1e8);
    let connection = track.metrics().connections[0];
    assert_eq!((connection.from.pid, connection.to.pid), (Some(1), None), "whose the other end is, is not known");
}

#[test]
fn a_published_port_makes_no_second_connection_of_it() {
    let behind = ("172.17.0.2:5201", "10.0.0.2:4000");
    let track = run(0..6, |tick, sample| {
        sample.flows.extend(end(tick, 1, CLIENT, |at| Some((steady(0, at), 60))));
        sample.flows.extend(end(tick, 2, behind, |at| Some((60, steady(0, at)))));
    });
    assert_steady(&track, 24, 1e8);
}

#[test]
fn streams_that_begin_and_end_leave_no_dips() {
    // A control connection, and two streams of 100 Mbit/s each that last from 10.6 s to 13.05 s and to 14.05 s.
    let (born, first_over, over) = (10_612 * MS, 13_050 * MS, 14_050 * MS);
    let lives = |at: u64, until: u64| (born..until).contains(&at);
    let second = ("10.0.0.1:5201", "10.0.0.2:4001");
    let control = ("10.0.0.1:5201", "10.0.0.2:3999");
    let track = run(0..12, |tick, sample| {
        let stream = |at: u64| at.saturating_sub(born) / MS * BYTES_PER_MS;
        sample.flows.extend(end(tick, 1, control, |at| (at < over + 40 * MS).then_some((100, 200))));
        sample.flows.extend(end(tick, 2, SERVER, |at| lives(at, first_over).then(|| (0, stream(at)))));
        sample.flows.extend(end(tick, 3, second, |at| lives(at, over).then(|| (0, stream(at)))));
    });
    let known: Vec<(u64, f64)> =
        track.bins.iter().filter_map(|bin| Some((bin.from_ns / MS, bin.bits_per_s? / 1e6))).collect();
    let right = |ms: u64| if ms < 13_000 { 200.0 } else { 100.0 };
    let wrong = known.iter().find(|&&(ms, rate)| (rate - right(ms)).abs() > 0.5);
    assert_eq!(wrong, None, "two streams, then one, nothing in between: {known:?}");
    assert!(known.first().is_some_and(|&(ms, _)| ms <= 11_100), "known soon after its birth: {known:?}");
    assert!(known.last().is_some_and(|&(ms, _)| (13_800..14_050).contains(&ms)), "and nearly to its end: {known:?}");
    assert!(known.len() >= 28, "most bins are known: {known:?}");
}

#[test]
fn a_stall_is_a_dip_and_a_starved_reader_is_not() {
    let stalls = |at: u64| at.min(12_000 * MS) + at.saturating_sub(12_400 * MS);
    let track = run(0..8, |tick, sample| {
        sample.flows.extend(end(tick, 1, SERVER, |at| Some((0, steady(0, stalls(at))))));
    });
    let still = track.bins.iter().filter(|bin| bin.bits_per_s.is_some_and(|rate| rate < 1.0)).count();
    assert_eq!(still, 4, "400 ms without a byte are four bins of 0: {:?}", rates(&track));
    let starved = run(0..8, |tick, sample| {
        let read = |at: u64| !(12_000 * MS..12_900 * MS).contains(&at);
        sample.flows.extend(end(tick, 1, SERVER, |at| read(at).then(|| (0, steady(0, at)))));
    });
    assert_steady(&starved, 20, 1e8);
}

#[test]
fn a_clock_that_was_set_back_begins_anew() {
    let mut track = run(0..6, |tick, sample| sample.flows.extend(end(tick, 1, SERVER, |at| Some((0, steady(0, at))))));
    assert!(!track.bins.is_empty());
    let (late, early) = (sample(5), sample(2));
    track.observe(Some(&late), &early, &[]);
    assert!(track.bins.is_empty() && track.basis.as_ref().is_none(), "nothing of before belongs to it");
}

fn thread(cpu_ns: u64, at_ns: u64, migrations: Option<u64>, core: u32) -> ThreadSample {
    ThreadSample {
        id: ThreadId { pid: 7, tid: 7, start: 1 },
        at_ns,
        name: "t".into(),
        core,
        cpu_ns,
        migrations,
        ..ThreadSample::default()
    }
}

/// A link that has moved so many bytes.
fn add_link(sample: &mut Sample, ifindex: u32, rx_bytes: u64) {
    let facts = LinkFacts::new(LinkKey { netns: 1, ifindex: Ifindex(ifindex) }, &format!("v{ifindex}"), Kind::Veth);
    Arc::make_mut(&mut sample.facts_mut().links).push(Arc::new(facts));
    sample.counters.push(LinkCounters {
        rx_bytes,
        rx_packets: rx_bytes / 1000,
        ..LinkCounters::zero(LinkKey { netns: 1, ifindex: Ifindex(ifindex) }, sample.at_ns + MS)
    });
}

#[test]
fn without_a_connection_that_carries_anything_the_busiest_link_stands_for_it() {
    // UDP: iperf3 has a control connection, the data are elsewhere. v2 is faster for a moment only.
    let track = run(0..20, |tick, sample| {
        sample.flows.extend(end(tick, 1, SERVER, |_| Some((300, 400))));
        sample.threads.push(thread(tick * 100 * MS, tick_ns(tick), Some(0), 0));
        add_link(sample, 1, tick * 6_250_000);
        add_link(sample, 2, tick * 5_000_000 + if tick > 10 { 9_000_000 } else { 0 });
    });
    assert_eq!(track.basis.as_ref(), Some(&FlowBasis::Link("v1".to_owned())), "the basis names the link, and stays");
    assert_eq!(track.basis.as_ref().map(FlowBasis::word).as_deref(), Some("link:v1"));
    assert_steady(&track, 15, 1e8);
    assert!(track.bins.iter().all(|bin| bin.to_ns - bin.from_ns == TICK), "bins are the ticks");
}

#[test]
fn another_basis_begins_anew_and_idle_threads_drive_no_link() {
    let track = run(0..24, |tick, sample| {
        sample.threads.push(thread(tick * 100 * MS, tick_ns(tick), Some(0), 0));
        add_link(sample, 1, tick * 6_250_000);
        if tick >= 12 {
            sample.flows.extend(end(tick, 1, SERVER, |at| Some((0, steady(0, at)))));
        }
    });
    assert_eq!(track.basis.as_ref(), Some(&FlowBasis::Sockets(1)), "connections go before a link");
    assert!(track.bins.iter().all(|bin| bin.to_ns - bin.from_ns == BIN_NS), "no bin of the link is left");
    let idle = run(0..12, |tick, sample| {
        sample.threads.push(thread(5, tick_ns(tick), Some(0), 0));
        add_link(sample, 1, tick * 6_250_000);
    });
    assert_eq!((idle.basis.as_ref(), idle.bins.len()), (None, 0), "somebody else's traffic is not the watched flow");
}

#[test]
fn between_two_tests_the_bins_of_the_first_stay() {
    let track = run(0..30, |tick, sample| {
        sample.threads.push(thread(tick * MS / 10, tick_ns(tick), Some(0), 0));
        add_link(sample, 1, tick * 6_250_000);
        let lives = |at: u64| !(13_000 * MS..22_000 * MS).contains(&at);
        let cookie = if tick < 15 { 1 } else { 2 };
        sample.flows.extend(end(tick, cookie, SERVER, |at| lives(at).then(|| (0, steady(0, at)))));
    });
    assert_steady(&track, 40, 1e8);
    let gap = track.bins.iter().zip(track.bins.iter().skip(1)).any(|(a, b)| b.from_ns - a.to_ns > 5 * TICK);
    assert!(gap, "and the time between them has none: {:?}", track.bins.len());
}

#[test]
fn a_recording_with_impossible_times_is_survived() {
    let (mut track, mut previous) = (FlowTrack::default(), None);
    for at_ns in [0, 1, 5, u64::MAX - 1, u64::MAX, 7, 7] {
        let mut next = sample(0);
        let pulse = FlowProgress { at_ns, acked: u64::MAX, received: at_ns };
        next.flows.extend(end(0, 1, SERVER, |_| Some((0, 1_000_000))));
        next.flows[0].pulses.push(pulse);
        (next.at_ns, next.cores_at_ns) = (at_ns, at_ns);
        track.observe(previous.as_ref(), &next, &[]);
        previous = Some(next);
    }
    assert!(track.bins.len() <= MOST_BINS, "it neither ends nor grows");
}

#[test]
fn memory_is_bounded() {
    let track = run(0..1400, |tick, sample| sample.flows.extend(end(tick, 1, SERVER, |at| Some((0, steady(0, at))))));
    assert_eq!(track.bins.len(), MOST_BINS, "ten minutes of bins");
}

#[test]
fn how_a_connection_stands_is_told_of_its_sender() {
    let state = |tick: u64, queue| TcpState {
        mss: 1000,
        cwnd: 20,
        rtt_us: 41,
        min_rtt_us: Some(12),
        retransmits: u32::MAX.wrapping_add(u32::try_from(tick).expect("small") * 10),
        pacing: Some(125),
        rx_queue: queue,
        tx_queue: queue,
        congestion: Some(Congestion::new(b"bbr")),
        unacked: Some(15),
        pacing_allowed: Some(250),
        app_limited: Some(false),
        busy: Some(Busy { all_us: tick * 400_000, rwnd_us: tick * 100_000, sndbuf_us: 0 }),
        data_out: u32::try_from(tick * 50).ok(),
        data_in: u32::try_from(tick * 20).ok(),
        rcvbuf: Some(queue * 100),
        ..TcpState::default()
    };
    let track = run(0..4, |tick, sample| {
        sample.flows.extend(end(tick, 1, CLIENT, |at| Some((steady(0, at), 0))));
        sample.flows.extend(end(tick, 2, SERVER, |at| Some((0, steady(0, at)))));
        (sample.flows[0].tcp, sample.flows[1].tcp) = (Some(state(tick, 5)), Some(state(0, 7)));
    });
    let one = track.metrics().connections[0];
    let tcp = one.tcp().expect("TCP");
    assert!(
        (tcp.retransmits_per_s.expect("a rate") - 20.0).abs() < 0.1,
        "ten in half a second, over the wrap: {one:?}"
    );
    let (bytes, trips) = ((tcp.cwnd_bytes, tcp.mss_bytes), (tcp.rtt_us, tcp.min_rtt_us));
    assert_eq!((bytes, trips), ((Some(20_000), Some(1000)), (Some(41), Some(12))), "in bytes, and in us");
    assert_eq!((tcp.pacing_bits_per_s, tcp.delivery_bits_per_s), (Some(1000.0), None), "what is not known is none");
    assert_eq!((one.tx_queue_bytes, one.rx_queue_bytes), (Some(5), Some(7)), "the sender's and the receiver's queue");
    assert_eq!(one.rx_buffer_bytes, Some(700), "the receiver's");
    let waited = tcp.busy.expect("told");
    let near = |share: f64, reported: f64| (share - reported).abs() < 0.001;
    assert!(
        near(0.8, waited.all) && near(0.2, waited.rwnd) && near(0.0, waited.sndbuf),
        "shares of the tick: {waited:?}"
    );
    let segments = tcp.segments_per_s.expect("told");
    assert!((segments[0] - 100.0).abs() < 0.1 && (segments[1] - 40.0).abs() < 0.1, "both ways: {segments:?}");
    assert_eq!((tcp.under_way, tcp.allowed_bits_per_s, tcp.app_limited), (Some(0.75), Some(2000.0), Some(false)));
    assert_eq!((tcp.congestion.expect("named").word(), one.proto(), one.carries), ("bbr", Proto::Tcp, true));
}

#[test]
fn of_two_programs_that_copy_the_one_that_the_client_calls_is_named() {
    let end = |port: u16| connection::End { netns: None, address: ([10, 0, 0, 1], port).into(), pid: None };
    let by = |relay, relayed| Connection { relayed, relay, ..Connection::between(end(1), end(2)) };
    let [plain, first, second] = [by(None, false), by(Some(7), false), by(Some(8), true)];
    for connections in [vec![second, first, plain], vec![plain, first, second]] {
        let flow = FlowMetrics { connections, ..FlowMetrics::default() };
        assert_eq!(flow.copied().and_then(|one| one.relay), Some(7), "whichever is read first");
    }
    let alone = FlowMetrics { connections: vec![plain, second], ..FlowMetrics::default() };
    assert_eq!(alone.copied().and_then(|one| one.relay), Some(8), "where no other is known");
}

/// An end that has been greeted, and from which nothing leaves any more.
fn stuck(tick: u64, ends: (&str, &str), greeting: (u64, u64), waiting: u32) -> Option<FlowSample> {
    let cookie = if ends == CLIENT { 1 } else { 2 };
    let flow = end(tick, cookie, ends, |_| Some(greeting))?;
    Some(FlowSample { tcp: Some(TcpState { tx_queue: waiting, ..TcpState::default() }), ..flow })
}

#[test]
fn a_connection_that_gets_nothing_through_has_a_rate_of_nothing_and_is_the_senders() {
    for (sender, receiver) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
        let track = run(0..8, |tick, sample| {
            // What a client of iperf3 says first is received by the server, whoever sends later.
            let greeting = |ends: (&str, &str)| if ends == CLIENT { (38, 0) } else { (1, 37) };
            sample.flows.extend(stuck(tick, sender, greeting(sender), 80_000));
            sample.flows.extend(stuck(tick, receiver, greeting(receiver), 0));
        });
        let metrics = track.metrics();
        assert_eq!(metrics.bits_per_s, Some(0.0), "nothing arrives");
        let one = &metrics.connections[0];
        assert_eq!(one.from.address.to_string(), sender.0, "who has something to send sends");
        assert!(!one.controls() && one.is_stuck() && one.silent_s() >= Some(3.0), "{one:?}");
    }
}

#[test]
fn a_connection_that_nobody_answers_is_known_and_one_that_stands_idle_is_no_test() {
    let track = |connecting: bool, waiting: u32| {
        run(0..5, move |tick, sample| {
            let flow = stuck(tick, CLIENT, (0, 0), waiting);
            sample.flows.extend(flow.map(|flow| FlowSample { connecting, ..flow }));
        })
        .metrics()
    };
    let asking = track(true, 1);
    assert!(asking.connections[0].is_connecting() && !asking.connections[0].controls(), "{asking:?}");
    assert_eq!(asking.bits_per_s, Some(0.0), "nothing arrives, which is known");
    let idle = track(false, 0);
    assert!(idle.connections[0].controls() && idle.bits_per_s.is_none(), "{idle:?}");
}
