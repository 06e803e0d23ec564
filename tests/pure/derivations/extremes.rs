//! Whatever two samples hold, a rate is unknown or a number that can be true.

use super::{SECOND, core, counters, facts, last, sample, thread};
use proptest::prelude::*;
use std::sync::Arc;
use vnettop::sample::{CoreCounters, Kind, LinkCounters, Sample, Softnet, ThreadSample};

#[test]
fn a_thread_whose_counters_fell_has_no_rates() {
    let at = |at_ns, threads| Sample { threads, ..sample(at_ns) };
    let before = ThreadSample {
        cpu_ns: 9 * SECOND,
        wait_ns: Some(9),
        voluntary: Some(9),
        involuntary: Some(9),
        ..thread(7, 1, SECOND, 0, Some(9))
    };
    let now = ThreadSample { cpu_ns: 8 * SECOND, ..thread(7, 1, 2 * SECOND, 0, Some(3)) };
    let metrics = last(vec![at(SECOND, vec![before]), at(2 * SECOND, vec![now])]);
    let thread = &metrics.threads[0];
    let rates = [thread.cpu, thread.wait, thread.moves_per_s, thread.voluntary_per_s, thread.involuntary_per_s];
    assert_eq!(rates, [None; 5], "a counter that went backwards is unknown, not 0");
}

/// A link, a core and a thread whose counters are these.
fn with_counters(at_ns: u64, n: [u64; 6]) -> Sample {
    let link = LinkCounters {
        rx_bytes: n[0],
        tx_bytes: n[1],
        rx_packets: n[2],
        tx_packets: n[3],
        rx_dropped: n[4],
        tx_errors: n[5],
        ..counters(4, at_ns, 0)
    };
    let [processed, dropped, squeezed] = [n[2], n[3], n[4]].map(|count| (count >> 32) as u32);
    let softnet = Softnet { processed, dropped, squeezed };
    let core = CoreCounters {
        softnet: Some(softnet),
        softirqs: [Some(n[5]); 10],
        user: n[4],
        softirq: n[0],
        idle: n[1],
        ..core(0, 0, 0)
    };
    let thread = ThreadSample {
        cpu_ns: n[0],
        wait_ns: Some(n[1]),
        voluntary: Some(n[2]),
        involuntary: Some(n[3]),
        ..thread(7, 1, at_ns, 0, Some(n[4]))
    };
    let mut sample = Sample { counters: vec![link], cores: vec![core], threads: vec![thread], ..sample(at_ns) };
    sample.facts_mut().links = Arc::new(vec![Arc::new(facts(4, 0, Kind::Veth, Some(10_000)))]);
    sample
}

proptest! {
    #[test]
    fn any_two_samples_make_rates_that_are_unknown_or_can_be_true(
        before in any::<[u64; 6]>(), now in any::<[u64; 6]>(), began in 0..u64::MAX / 2, took in 0..u64::MAX / 2,
    ) {
        let metrics = last(vec![with_counters(began, before), with_counters(began + took, now)]);
        let (link, core, thread) = (&metrics.machine.links[0], &metrics.machine.cores[0], &metrics.threads[0]);
        let mut rates = vec![thread.cpu, thread.wait, thread.moves_per_s, thread.voluntary_per_s, thread.involuntary_per_s];
        rates.extend(link.rates.iter().flat_map(|rates| [
            rates.rx_bits_per_s, rates.tx_bits_per_s, rates.rx_packets_per_s, rates.tx_packets_per_s, rates.rx_dropped_per_s,
            rates.tx_dropped_per_s, rates.rx_errors_per_s, rates.tx_errors_per_s, rates.mean_packet_bytes(),
        ]));
        rates.extend(core.load.iter().flat_map(|load| load.softirqs_per_s));
        rates.extend(core.load.iter().flat_map(|load| {
            [load.softnet_processed_per_s, load.softnet_dropped_per_s, load.softnet_squeezed_per_s]
        }));
        rates.extend(core.shares().iter().flat_map(|shares| {
            [shares.user, shares.system, shares.irq, shares.softirq, shares.steal, shares.idle].map(Some)
        }));
        for rate in rates.into_iter().flatten() {
            prop_assert!(rate.is_finite() && rate >= 0.0, "{rate} is no rate");
        }
    }
}
