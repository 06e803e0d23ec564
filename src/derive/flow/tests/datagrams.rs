//! UDP: whose datagrams they are, and where they are lost.

use super::*;
use crate::derive::Jitter;
use crate::sample::ProtocolCounters;

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
            let state = UdpState { rx_queue: u32::from(full) * 9, tx_queue: 0, rcvbuf: 100, drops };
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
        assert_eq!((one.drops_per_s, one.rx_queue_bytes, one.rx_buffer_bytes), (Some(100.0), Some(9), Some(100)));
        assert_eq!(
            (one.bits_per_s, one.retransmits_per_s, one.cwnd_bytes),
            (None, None, None),
            "UDP has none of these"
        );
    }
    let reversed = flow(Some(Direction::Reverse), SERVER, true);
    assert_eq!((reversed.from.pid, reversed.to.pid), (Some(2), Some(1)), "the server sends");
    assert_eq!(reversed.drops_per_s, Some(0.0), "nothing is lost at the client's socket");
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
