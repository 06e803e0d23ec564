//! From samples to metrics: every everyday event that must not become a wrong number.
#![allow(clippy::float_cmp, reason = "the inputs are chosen so that the results are exact")]

mod extremes;
mod moves;
use std::sync::Arc;
use vnettop::derive::links::{Basis, basis};
use vnettop::derive::{Derivation, Evidence, Metrics, MoveClass, MovesByClass};
use vnettop::sample::{
    CoreCounters, CoreId, CorePlace, CoreSet, Duty, Event, Facts, Host, Ifindex, Item, Kind, LinkCounters, LinkFacts,
    LinkKey, Move, OwnCost, Sample, Softnet, ThreadId, ThreadSample, Topology, Trace, TraceSource,
};

const SECOND: u64 = 1_000_000_000;

fn facts(ifindex: u32, born: u64, kind: Kind, speed_mbps: Option<u32>) -> LinkFacts {
    LinkFacts {
        born,
        speed_mbps,
        ..LinkFacts::new(LinkKey { netns: 1, ifindex: Ifindex(ifindex) }, &format!("l{ifindex}"), kind)
    }
}

fn counters(ifindex: u32, at_ns: u64, bytes: u64) -> LinkCounters {
    LinkCounters {
        rx_bytes: bytes,
        tx_bytes: bytes / 10,
        rx_packets: bytes / 1000,
        tx_packets: bytes / 10_000,
        ..LinkCounters::zero(LinkKey { netns: 1, ifindex: Ifindex(ifindex) }, at_ns)
    }
}

fn core(core: CoreId, softirq: u64, idle: u64) -> CoreCounters {
    CoreCounters {
        core,
        softirq,
        idle,
        softirqs: [Some(softirq * 10); 10],
        softnet: Some(Softnet::default()),
        ..CoreCounters::default()
    }
}

fn thread(tid: u32, start: u64, at_ns: u64, core: CoreId, migrations: Option<u64>) -> ThreadSample {
    ThreadSample {
        id: ThreadId { pid: 100, tid, start },
        at_ns,
        name: "iperf3".into(),
        core,
        allowed: Some(CoreSet::from_words(&[3])),
        cpu_ns: at_ns / 2,
        wait_ns: Some(0),
        migrations,
        voluntary: Some(0),
        involuntary: Some(0),
        ..ThreadSample::default()
    }
}

/// Cores of one socket after the other: SMT pairs, clusters of 4, a cache and node of 8, sockets of 16.
fn topology(cores: u32) -> Topology {
    let place = |core| CorePlace {
        core,
        online: true,
        physical: Some(core / 2 * 2),
        cluster: Some(core / 4),
        llc: Some(core / 8),
        node: Some(core / 8),
        socket: Some(core / 16),
        capacity: None,
    };
    Topology { cores: (0..cores).map(place).collect(), isolated: CoreSet::new(), nodes: cores.div_ceil(8) }
}

fn sample(at_ns: u64) -> Sample {
    let host = Host { name: "h".into(), kernel: "6.18.0".into(), arch: "x86_64".into(), ..Host::default() };
    let facts = Facts { host: Arc::new(host), topology: Arc::new(topology(2)), ..Facts::default() };
    let own = OwnCost { interval_ns: SECOND, ..OwnCost::default() };
    Sample { at_ns, netns: 1, cores_at_ns: at_ns, own, facts: Arc::new(facts), ..Sample::default() }
}

fn with_link(at_ns: u64, born: u64, counters: Option<LinkCounters>) -> Sample {
    let mut with = Sample { counters: counters.into_iter().collect(), ..sample(at_ns) };
    with.facts_mut().links = Arc::new(vec![Arc::new(facts(4, born, Kind::Veth, Some(10_000)))]);
    with
}

#[test]
fn a_thread_of_a_switch_is_shown_and_is_no_part_of_the_benchmark() {
    let with = |at_ns: u64, moves: u64| {
        let switch = ThreadSample { duty: Duty::Carrier, side: None, ..thread(99, 1, at_ns, 1, Some(moves)) };
        let trace =
            Trace { source: TraceSource::Perf, moves: Vec::new(), lost: 0, partly: Vec::new(), short_lived: None };
        Sample { threads: vec![switch, thread(101, 1, at_ns, 0, Some(7))], trace: Some(trace), ..sample(at_ns) }
    };
    let metrics = last(vec![with(SECOND, 1), with(2 * SECOND, 4), with(3 * SECOND, 8)]);
    let [switch, worker] = &metrics.threads[..] else { panic!("both are shown: {:?}", metrics.threads) };
    assert_eq!((switch.sample.role(), switch.cpu, switch.moves_per_s), ("switch", Some(0.5), Some(4.0)));
    assert_eq!(switch.evidence, Evidence::Counted, "its moves are counted: nobody traces them");
    assert_eq!(worker.evidence, Evidence::Traced);
    let benchmark: Vec<u32> = metrics.subject.threads.iter().map(|thread| thread.sample.id.tid).collect();
    assert_eq!(benchmark, [101], "the benchmark is the others");
}

fn last(samples: Vec<Sample>) -> Metrics {
    let mut derivation = Derivation::default();
    let metrics = samples.into_iter().filter_map(|sample| derivation.advance(Item::Sample(Box::new(sample))));
    metrics.last().expect("samples give metrics")
}

#[test]
fn a_link_that_was_not_read_again_stands_still_and_one_that_starts_has_the_mean_of_its_whole_time() {
    let row = |at_ns, bytes| Some(counters(4, at_ns, bytes));
    let rx = |samples| last(samples).machine.links[0].rates.and_then(|rates| rates.rx_bits_per_s);
    let first = with_link(SECOND, 0, row(SECOND, 1_000));
    let skipped = with_link(2 * SECOND, 0, row(SECOND, 1_000));
    assert_eq!(rx(vec![first.clone(), skipped.clone()]), Some(0.0), "it stood still, or it would have been read");
    let started = with_link(3 * SECOND, 0, row(3 * SECOND, 2_000));
    assert_eq!(rx(vec![first.clone(), skipped, started]), Some(4_000.0), "1,000 bytes in two seconds");
    assert_eq!(rx(vec![first.clone(), first]), None, "the same sample twice has no rate");
}

#[test]
fn a_rate_is_over_the_true_time_of_the_row_not_of_the_tick() {
    // The tick says one second, but the row of this link was written 1.5 s after the last.
    let metrics = last(vec![
        with_link(SECOND, 0, Some(counters(4, SECOND, 0))),
        with_link(2 * SECOND, 0, Some(counters(4, SECOND * 5 / 2, 3_000_000))),
    ]);
    let rates = metrics.machine.links[0].rates.expect("two readings give a rate");
    assert_eq!(rates.rx_bits_per_s, Some(16_000_000.0), "3 MB in 1.5 s are 16 Mbit/s");
    assert_eq!(rates.mean_packet_bytes(), Some(1000.0), "the mean packet is bytes over packets");
    assert_eq!(metrics.machine.elapsed_s, Some(1.0), "the tick's own time is the tick's");
}

#[test]
fn the_first_sample_of_a_link_has_no_rate() {
    let first = last(vec![with_link(SECOND, 0, Some(counters(4, SECOND, 5_000_000)))]);
    assert_eq!(first.machine.links[0].rates, None, "its lifetime total is no rate");
    let created = last(vec![sample(SECOND), with_link(2 * SECOND, 0, Some(counters(4, 2 * SECOND, 5_000_000)))]);
    assert_eq!(created.machine.links[0].rates, None, "nor for a link that appeared since");
}

#[test]
fn a_counter_that_went_backwards_is_unknown() {
    let metrics = last(vec![
        with_link(SECOND, 0, Some(counters(4, SECOND, 9_000_000))),
        with_link(2 * SECOND, 0, Some(counters(4, 2 * SECOND, 1000))),
    ]);
    assert_eq!(metrics.machine.links[0].rates, None, "a reset is unknown, neither 0 nor the raw value");
}

#[test]
fn a_reused_ifindex_is_another_link() {
    let metrics = last(vec![
        with_link(SECOND, 0, Some(counters(4, SECOND, 1000))),
        with_link(2 * SECOND, 1, Some(counters(4, 2 * SECOND, 9_000_000_000))),
    ]);
    assert_eq!(metrics.machine.links[0].rates, None, "the old link's counters do not make the new one's rate");
}

#[test]
fn a_link_without_counters_yet_is_shown_without_rates() {
    let metrics = last(vec![sample(SECOND), with_link(2 * SECOND, 0, None)]);
    assert_eq!(
        (metrics.machine.links.len(), metrics.machine.links[0].rates),
        (1, None),
        "it is there, its rate is not known"
    );
}

#[test]
fn a_label_is_only_exceeded_where_it_is_no_limit() {
    let times = |kind: Kind| {
        let sample = |at: u64, bytes| {
            let mut sample = Sample { counters: vec![counters(4, at, bytes)], ..sample(at) };
            sample.facts_mut().links = Arc::new(vec![Arc::new(facts(4, 0, kind.clone(), Some(10_000)))]);
            sample
        };
        last(vec![sample(SECOND, 0), sample(2 * SECOND, 4_375_000_000)]).machine.links[0].times_label()
    };
    assert_eq!(times(Kind::Veth), Some(3.5), "35 Gbit/s are 3.5 times a veth's 10000");
    assert_eq!(times(Kind::Physical), None, "a real claim is never told to be exceeded");
}

#[test]
fn bases_are_what_the_drivers_do() {
    let of = |kind: Kind, speed, kernel: &str| basis(&facts(4, 0, kind, speed), kernel);
    assert_eq!(of(Kind::Veth, Some(10_000), "6.18.0"), Basis::Constant);
    assert_eq!(of(Kind::Tun, Some(10), "6.1.0-44-arm64"), Basis::Constant, "tun said 10 before 6.2");
    assert_eq!(of(Kind::Tap, Some(10_000), "6.18.44-x"), Basis::Constant, "and says 10000 since");
    assert_eq!(of(Kind::Tap, Some(25_000), "6.18.44"), Basis::UserSet);
    assert_eq!(of(Kind::Bridge, Some(10_000), "6.18.0"), Basis::MaxOfPorts);
    assert_eq!(of(Kind::Bridge, None, "6.18.0"), Basis::None);
    assert_eq!(of(Kind::Macvlan, Some(10_000), "6.18.0"), Basis::Inherited);
    assert_eq!(of(Kind::Bond, Some(20_000), "6.18.0"), Basis::SumOfPorts);
    let active_backup = LinkFacts { bond_mode: Some(1), ..facts(4, 0, Kind::Bond, Some(10_000)) };
    assert_eq!(basis(&active_backup, "6.18.0"), Basis::Inherited);
    let broadcast = LinkFacts { bond_mode: Some(3), ..facts(4, 0, Kind::Bond, Some(10_000)) };
    assert_eq!(basis(&broadcast, "6.18.0"), Basis::Inherited, "its slowest port's");
    assert_eq!(of(Kind::Team, Some(20_000), "6.1.0"), Basis::SumOfPorts);
    assert_eq!(of(Kind::Wireguard, None, "6.1.0"), Basis::None);
    assert_eq!(of(Kind::OpenVSwitch, None, "6.1.0"), Basis::None);
    assert_eq!(of(Kind::Virtio, None, "6.1.0"), Basis::None);
    assert_eq!(of(Kind::Physical, Some(1000), "6.1.0"), Basis::Real);
    let set = LinkFacts { speed_was_set: true, ..facts(4, 0, Kind::Tap, Some(10_000)) };
    assert_eq!(basis(&set, "6.18.0"), Basis::UserSet, "also when it was set to what it was");
}

#[test]
fn shares_sum_to_one_and_an_idle_step_back_is_none() {
    let at = |at_ns, cores| Sample { cores, ..sample(at_ns) };
    let metrics = last(vec![
        at(SECOND, vec![core(0, 10, 100), core(1, 0, 100)]),
        at(2 * SECOND, vec![core(0, 35, 175), core(1, 50, 99)]),
    ]);
    let shares = metrics.machine.cores[0].shares().expect("a share");
    assert_eq!((shares.softirq, shares.idle), (0.25, 0.75), "shares are of the ticks the core counted");
    assert_eq!(
        metrics.machine.cores[1].shares().expect("a share").softirq,
        1.0,
        "an estimate that steps back is no time"
    );
    assert_eq!(metrics.machine.cores[0].load.expect("load").softirqs_per_s[3], Some(250.0), "softirqs a second");
}

#[test]
fn an_offline_core_has_no_load_and_shifts_no_other() {
    let mut places = topology(3);
    places.cores[1].online = false;
    let places = Arc::new(places);
    let at = |at_ns, cores| {
        let mut sample = Sample { cores, ..sample(at_ns) };
        sample.facts_mut().topology = Arc::clone(&places);
        sample
    };
    let metrics = last(vec![
        at(SECOND, vec![core(0, 0, 0), core(2, 0, 0)]),
        at(2 * SECOND, vec![core(0, 0, 100), core(2, 100, 0)]),
    ]);
    assert_eq!(metrics.machine.cores.len(), 3, "an offline core is still shown");
    assert_eq!(metrics.machine.cores[1].load, None, "without a load");
    assert_eq!(metrics.machine.cores[2].shares().expect("a share").softirq, 1.0, "core 2 keeps its own row");
}

#[test]
fn a_core_that_comes_online_has_no_load_for_one_interval() {
    let at = |at_ns, cores| Sample { cores, ..sample(at_ns) };
    let metrics = last(vec![at(SECOND, vec![core(0, 0, 0)]), at(2 * SECOND, vec![core(0, 0, 100), core(1, 7, 7)])]);
    assert_eq!(metrics.machine.cores[1].load, None, "its counters since boot are no load");
}

#[test]
fn softnet_counters_of_32_bits_wrap() {
    let row =
        |processed| CoreCounters { softnet: Some(Softnet { processed, dropped: 0, squeezed: 0 }), ..core(0, 0, 0) };
    let at = |at_ns, cores| Sample { cores, ..sample(at_ns) };
    let metrics = last(vec![at(SECOND, vec![row(u32::MAX - 9)]), at(2 * SECOND, vec![row(90)])]);
    assert_eq!(
        metrics.machine.cores[0].load.expect("load").softnet_processed_per_s,
        Some(100.0),
        "a wrap is a hundred packets"
    );
}

#[test]
fn strips_have_a_bin_a_second_and_know_what_was_before_the_link() {
    let mut derivation = Derivation::default();
    for tick in 0..8u64 {
        let at_ns = SECOND + tick * SECOND / 2;
        // 1 MB each half second from 2.5 s on: 16 Mbit/s.
        let bytes = 1_000_000 * tick.saturating_sub(2);
        derivation.advance(Item::Sample(Box::new(with_link(at_ns, 0, Some(counters(4, at_ns, bytes))))));
    }
    let strip = derivation.history().link_strip(LinkKey { netns: 1, ifindex: Ifindex(4) }, 0, 5);
    assert_eq!(strip.len(), 5, "as many as asked for");
    assert_eq!(strip[4], Some(16e6), "the last whole second");
    assert_eq!(strip[0], None, "before the link was seen nothing is known");
    assert_eq!(
        derivation.history().link_strip(LinkKey { netns: 1, ifindex: Ifindex(4) }, 1, 3),
        [None; 3],
        "another link of that index has no past"
    );
}
