//! Before Linux 5.4 each network namespace counts its sockets' cookies by itself.

use super::*;

#[test]
fn connections_of_equal_cookies_in_different_namespaces_keep_their_own_rates() {
    let (client, server) = (("10.0.1.2:4000", "10.0.1.1:5201"), ("10.0.1.1:5201", "10.0.1.2:4000"));
    let track = run(0..8, |tick, sample| {
        let start = tick_ns(0) - TICK;
        for (netns, ends, times, sends) in
            [(11, CLIENT, 1, true), (12, SERVER, 1, false), (13, client, 10, true), (14, server, 10, false)]
        {
            let moved = |at| if sends { (steady(start, at) * times, 0) } else { (0, steady(start, at) * times) };
            let end = end(tick, 1, ends, |at| Some(moved(at)));
            sample.flows.extend(end.map(|end| FlowSample { netns, ..end }));
        }
    });
    let one = BYTES_PER_MS as f64 * 8000.0;
    let reported: Vec<_> = track
        .metrics()
        .connections
        .iter()
        .map(|connection| {
            let ends = (connection.from.netns, connection.to.netns);
            (ends, connection.bits_per_s.map(|rate| (rate / one * 100.0).round()))
        })
        .collect();
    let wanted = [((Some(11), Some(12)), Some(100.0)), ((Some(13), Some(14)), Some(1000.0))];
    assert_eq!(reported, wanted, "each has both its ends and its own rate, in hundredths");
    assert_eq!(track.basis.as_ref(), Some(&FlowBasis::Sockets(2)), "they are two");
    let mean = rates(&track).iter().sum::<f64>() / rates(&track).len() as f64;
    assert!((mean / one - 11.0).abs() < 0.01, "and the whole is both: {mean}");
}
