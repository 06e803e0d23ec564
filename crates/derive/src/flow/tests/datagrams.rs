//! UDP: whose datagrams they are, and where they are lost.

use super::*;
use crate::Jitter;
use vnettop_sample::{DatagramCounts, ProtocolCounters};

/// A UDP socket.
fn datagrams(cookie: u64, ends: (&str, &str), udp: UdpState) -> FlowSample {
    let address = |text: &str| text.parse().expect("an address");
    let (pid, netns) = (u32::try_from(cookie).expect("small"), cookie);
    let (local, remote) = (address(ends.0), address(ends.1));
    FlowSample { udp: Some(udp), proto: Proto::Udp, ..FlowSample::new(cookie, (netns, pid), (local, remote)) }
}

#[test]
fn datagrams_go_from_whose_command_line_says_so_and_are_lost_where_they_arrive() {
    let flow = |direction: Option<Direction>, ends: (&str, &str), full: bool| {
        let track = run(0..3, |tick, sample| {
            let drops = u32::try_from(tick).expect("small") * 50;
            let state =
                UdpState { rx_queue: u32::from(full) * 9, tx_queue: 0, rcvbuf: 100, drops, ..UdpState::default() };
            sample.flows.extend([datagrams(1, CLIENT, UdpState::default()), datagrams(2, ends, state)]);
            let test = direction.map(|direction| Benchmark { direction: Some(direction), ..client(1) });
            sample.facts_mut().benchmarks = Arc::new(test.into_iter().collect());
        });
        assert!(track.bins.is_empty() && track.basis.as_ref().is_none(), "it counts no bytes");
        let connections = track.metrics().connections;
        let [one] = connections[..] else { panic!("one flow: {connections:?}") };
        one
    };
    for direction in [Some(Direction::Forward), Some(Direction::Both), None] {
        let one = flow(direction, SERVER, true);
        assert_eq!((one.from.pid, one.to.pid), (Some(1), Some(2)), "{direction:?}: from the client, {one:?}");
        let lost = one.udp().expect("datagrams").drops_per_s;
        assert_eq!((lost, one.rx_queue_bytes, one.rx_buffer_bytes), (Some(100.0), Some(9), Some(100)));
        assert_eq!(one.bits_per_s, None, "{one:?}");
    }
    let reversed = flow(Some(Direction::Reverse), SERVER, true);
    assert_eq!((reversed.from.pid, reversed.to.pid), (Some(2), Some(1)), "the server sends");
    assert_eq!(reversed.udp().expect("datagrams").drops_per_s, Some(0.0), "nothing is lost at the client's socket");
    let waiting = flow(None, ("0.0.0.0:5201", "0.0.0.0:0"), false);
    assert_eq!((waiting.from.pid, waiting.to.pid), (Some(1), Some(2)), "a server that is not connected is joined");
    assert_eq!(waiting.to.address, CLIENT.1.parse().expect("an address"), "by the address it is called");
}

fn client(pid: u32) -> Benchmark {
    Benchmark { proto: Some(Proto::Udp), streams: Some(1), ..Benchmark::new(pid, Program::Iperf3, Side::Client, 5201) }
}

#[test]
fn a_udp_test_does_not_begin_with_a_dip_where_nothing_ran_before_it() {
    // While no flow is there, the counters are read now and then; the test begins right before tick 4, a second after that.
    let counted =
        |tick: u64| ProtocolCounters { at_ns: tick_ns(if tick < 4 { 2 } else { tick }), ..ProtocolCounters::default() };
    let track = run(2..24, |tick, sample| {
        let sent = (tick.saturating_sub(3) * 500).saturating_sub(450);
        let sender = ProtocolCounters { netns: 1, udp_out_datagrams: sent, ..counted(tick) };
        sample.protocols = vec![sender, ProtocolCounters { netns: 2, udp_in_datagrams: sent, ..counted(tick) }];
        if tick >= 4 {
            let ends = [(1, CLIENT), (2, SERVER)];
            sample.flows.extend(ends.map(|(cookie, ends)| datagrams(cookie, ends, UdpState::default())));
        }
        let direction = Some(Direction::Forward);
        sample.facts_mut().benchmarks = Arc::new(vec![Benchmark { direction, length_bytes: Some(1000), ..client(1) }]);
    });
    assert_eq!(track.basis, Some(FlowBasis::Datagrams(1)));
    let known: Vec<_> = track.bins.iter().filter_map(|bin| Some((bin.from_ns, bin.bits_per_s?))).collect();
    assert_eq!(known.first(), Some(&(tick_ns(4), 8e6)), "it begins where it is known to run, at its rate");
    let jitter = Jitter::of(&track.bins).expect("enough bins");
    assert!(jitter.longest_dip_s == 0.0 && jitter.window_s <= 20.0 * TICK as f64 / 1e9, "{jitter:?}");
}

/// A socket that sends and reads so much a tick, of half a second.
fn counted(sample: &Sample, tick: u64, (cookie, ends): (u64, (&str, &str)), [sent, received]: [u64; 2]) -> FlowSample {
    let counts = DatagramCounts {
        at_ns: sample.at_ns,
        since_ns: 1,
        sent_bytes: sent * tick * 1_000,
        sent: sent * tick,
        received_bytes: received * tick * 1_000,
        received: received * tick,
        merged: 0,
    };
    datagrams(cookie, ends, UdpState { counts: Some(counts), ..UdpState::default() })
}

#[test]
fn a_server_of_several_clients_has_each_ones_own_rate_and_counts_once() {
    let others = [("10.0.0.2:4000", SERVER.0), ("10.0.0.3:4001", SERVER.0)];
    let track = run(0..3, |tick, sample| {
        let all = [
            counted(sample, tick, (1, others[0]), [100, 1]),
            counted(sample, tick, (2, others[1]), [300, 1]),
            counted(sample, tick, (3, (SERVER.0, "0.0.0.0:0")), [2, 390]),
        ];
        sample.flows.extend(all);
    });
    let flows = track.metrics().connections;
    let rates: Vec<_> = flows
        .iter()
        .map(|flow| (flow.from.pid, flow.to.pid, flow.udp().expect("datagrams").packets_per_s.map(f64::round)))
        .collect();
    assert_eq!(rates, [(Some(1), Some(3), Some(200.0)), (Some(2), Some(3), Some(600.0))], "each sends its own");
    assert!(track.metrics().tests.iter().all(|test| test.lost().is_none()), "whose are lost nobody knows");
    assert_eq!(track.bits_per_s().map(f64::round), Some(6_400_000.0), "the server's are the same ones");
}

#[test]
fn a_flow_goes_from_who_sends_more_whoever_has_called() {
    let track = run(0..3, |tick, sample| {
        let all = [counted(sample, tick, (1, CLIENT), [5, 500]), counted(sample, tick, (2, SERVER), [510, 5])];
        sample.flows.extend(all);
    });
    let flow = track.metrics().connections[0];
    assert_eq!((flow.from.pid, flow.to.pid), (Some(2), Some(1)), "a download");
    assert_eq!(flow.udp().expect("datagrams").packets_per_s.map(f64::round), Some(1_000.0), "what arrived");
    let lost = track.metrics().tests[0].lost().expect("both ends are known");
    assert!((lost - 10.0 / 510.0).abs() < 1e-9, "{lost}");
}
