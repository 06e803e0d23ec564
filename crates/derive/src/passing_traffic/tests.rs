//! Packets of nobody that is watched, through the router of the losses' tests.

use super::*;
use crate::losses::tests::{NEAR, ROUTER, SECOND, after, before, key, link, qdisc};
use crate::{Derivation, Metrics};
use vnettop_sample::{CoreCounters, Item, LinkFacts, QdiscSetting, Runner};

/// Seconds that the traffic lasts.
const SECONDS: u64 = 12;

/// The router's own view: in a second so many packets of 1,000 bytes come in by `r0` and leave by `r1`, while its qdisc drops some; a core
/// spends so many of its hundred ticks in softirqs and in programs.
struct Passing {
    packets: [u64; 2],
    dropped: u64,
    ticks: [u64; 2],
}

fn sample(of: &Passing, second: u64) -> Sample {
    let mut sample = if second == 0 { before() } else { after(|_| ()) };
    let at_ns = before().at_ns + second * SECOND;
    (sample.at_ns, sample.cores_at_ns, sample.netns) = (at_ns, at_ns, ROUTER);
    sample.flows.clear();
    sample.threads.clear();
    sample.facts_mut().paths = Arc::default();
    sample.counters.iter_mut().for_each(|row| row.at_ns = 5 + second * SECOND);
    let [way_in, way_out] = of.packets.map(|packets| packets * second);
    let row = link(&mut sample, key(ROUTER, 2));
    (row.rx_packets, row.rx_bytes) = (way_in, way_in * 1000);
    let row = link(&mut sample, key(ROUTER, 3));
    (row.tx_packets, row.tx_bytes) = (way_out, way_out * 1000);
    sample.qdiscs = vec![qdisc(key(ROUTER, 3), crate::losses::qdiscs::ROOT, at_ns, of.dropped * second)];
    let [softirq, user] = of.ticks;
    let full = CoreCounters {
        softirq: softirq * second,
        user: user * second,
        idle: 100_u64.saturating_sub(softirq + user) * second,
        ..sample.cores[0]
    };
    let idle = CoreCounters { idle: 100 * second, ..sample.cores[1] };
    sample.cores = vec![full, idle];
    sample
}

fn metrics(of: &Passing, change: impl Fn(&mut Sample)) -> Metrics {
    each(of, change).pop().expect("a sample gives metrics")
}

/// Of every second.
fn each(of: &Passing, change: impl Fn(&mut Sample)) -> Vec<Metrics> {
    let mut derivation = Derivation::default();
    let metrics = (0..SECONDS).filter_map(|second| {
        let mut sample = sample(of, second);
        change(&mut sample);
        derivation.advance(Item::Sample(Box::new(sample)))
    });
    metrics.collect()
}

/// The sentence, and what to do.
fn said_of(of: &Passing, change: impl Fn(&mut Sample)) -> (String, String) {
    let metrics = metrics(of, change);
    let traffic = metrics.traffic.as_ref().expect("something passes");
    (traffic.sentence(&metrics.machine), traffic.parts(&metrics.machine).fix)
}

const QUIET: Passing = Passing { packets: [10_000, 10_000], dropped: 0, ticks: [20, 5] };

#[test]
fn what_a_router_forwards_is_said_with_what_was_looked_at_for_drops() {
    let (said, fix) = said_of(&QUIET, |_| ());
    let wanted = "r0 → r1: 80 Mbit/s, 10k packets/s. 0 packets/s dropped, counted by 2 links, 1 qdisc and 2 backlogs";
    assert_eq!((said.as_str(), fix.as_str()), (wanted, ""));
    let from_outside = |sample: &mut Sample| sample.netns = NEAR - 1;
    let (said, _) = said_of(&QUIET, from_outside);
    let place = said.split_once(':').map(|(place, _)| place.to_owned()).expect("a place");
    let there = place.split_once(" in ").expect("the namespace is named").1;
    assert!(
        said.ends_with(&format!(" and 2 backlogs in {there}")),
        "and it is said that nothing else was looked at: {said}"
    );
    let traffic = metrics(&QUIET, |_| ()).traffic.expect("something passes");
    assert_eq!(traffic.state(), TrafficState::Forwarding);
    assert_eq!(traffic.spread.map(|spread| spread.mean), Some(8e7));
    assert_eq!(traffic.timeline.bins.len(), 11, "a bin between two samples each");
}

#[test]
fn a_qdisc_that_drops_is_named_with_its_share_of_what_came_in() {
    let dropping = Passing { packets: [10_000, 6_000], dropped: 4_000, ..QUIET };
    let (said, fix) = said_of(&dropping, |_| ());
    let wanted = "r0 → r1: 80 Mbit/s, 10k packets/s. tbf on r1 drops 4k packets/s. 80 Mbit/s come in, \
                  more than its rate; 48 Mbit/s go out. 32 Mbit/s: 4k of 10k packets/s dropped";
    assert_eq!(said, wanted);
    assert_eq!(fix, "send less, or raise its rate above what comes (tc -s qdisc show dev r1)");
    let slow = |sample: &mut Sample| {
        // Read once in two seconds, as on a tick between two readings.
        let second = (sample.at_ns - before().at_ns) / SECOND / 2 * 2;
        (sample.qdiscs[0].at_ns, sample.qdiscs[0].drops) = (before().at_ns + second * SECOND, 4_000 * second);
    };
    assert_eq!(said_of(&dropping, slow).0, wanted, "it stands between two readings of the qdisc");
    let set = |sample: &mut Sample| {
        let (rate_bytes_per_s, burst_bytes, limit_bytes) = (Some(6_000_000), Some(20_000), Some(20_000));
        let setting = QdiscSetting { rate_bytes_per_s, burst_bytes, limit_bytes, ..QdiscSetting::default() };
        sample.qdiscs[0].setting = Some(setting);
    };
    let (said, fix) = said_of(&dropping, set);
    assert!(said.contains(". 80 Mbit/s come in, more than the 48 Mbit/s that it is set to. "), "{said}");
    let command = "tc qdisc change dev r1 root tbf rate 88mbit burst 37000 limit 37000";
    assert_eq!(fix, format!("send less, or raise its rate above what comes ({command})"), "what comes in, and a tenth");
}

#[test]
fn two_ways_as_fast_as_each_other_do_not_take_turns() {
    let back = |sample: &mut Sample| {
        let second = (sample.at_ns - before().at_ns) / SECOND;
        // 11.5 and 9.5 MB in turn, beside 10 MB the other way.
        let row = link(sample, key(ROUTER, 3));
        (row.rx_packets, row.rx_bytes) = (10_500 * second, 10_500_000 * second + second % 2 * 1_000_000);
    };
    let all: Vec<_> = each(&QUIET, back).into_iter().filter_map(|metrics| metrics.traffic).collect();
    let first = all.first().expect("something passes").comes_in;
    assert!(all.len() > 5 && all.iter().all(|traffic| traffic.comes_in == first), "one way");
    let newest = all.last().expect("there is one");
    assert_eq!(newest.timeline.bins.last().and_then(|bin| bin.bits_per_s), Some(newest.bits_per_s), "and one rate");
}

#[test]
fn a_queue_of_the_other_way_drops_other_packets() {
    let dropping = Passing { dropped: 50, ..QUIET };
    let of_way_in = |sample: &mut Sample| sample.qdiscs[0].link = key(ROUTER, 2);
    let traffic = metrics(&dropping, of_way_in).traffic.expect("something passes");
    assert!(traffic.other.is_some() && traffic.drops.len() == 1, "{traffic:?}");
    assert!(
        !traffic.is_on_the_way(&traffic.drops[0]),
        "what comes in by r0 does not pass the queue of what goes out there"
    );
    assert_eq!(traffic.state(), TrafficState::Dropping(None));
}

#[test]
fn a_whole_recording_has_each_rate_that_a_place_was_set_to_and_no_odd_sample_ends_it() {
    let dropping = Passing { packets: [10_000, 6_000], dropped: 4_000, ..QUIET };
    let halfway = before().at_ns + SECONDS / 2 * SECOND;
    let raised = |sample: &mut Sample| {
        let rate = if sample.at_ns < halfway { 5_000_000 } else { 6_000_000 };
        sample.qdiscs[0].setting = Some(QdiscSetting { rate_bytes_per_s: Some(rate), ..QdiscSetting::default() });
    };
    let mut track = crate::summary::PassingTrack::default();
    let all = each(&dropping, raised);
    for (nth, metrics) in all.iter().enumerate() {
        let mut metrics = metrics.clone();
        let traffic = metrics.traffic.as_mut().map(Arc::make_mut);
        // In one second it is not seen where it goes on, and at the end it has stopped.
        match (nth, traffic) {
            (4, Some(traffic)) => traffic.other = None,
            (11, Some(traffic)) => (traffic.bits_per_s, traffic.other) = (10.0, None),
            _ => {}
        }
        track.observe(&metrics, &[(nth, 1.0)]);
    }
    let summary = track.summary().expect("something passed");
    assert_eq!(summary.place, "r0 → r1");
    let known: Vec<bool> = summary.other_columns.iter().map(Option::is_some).collect();
    assert_eq!(known.iter().filter(|known| !**known).count(), 1 + known.iter().take_while(|known| !**known).count());
    assert_eq!(summary.bits_per_s, Some(8e7), "the second in which nothing passed is none of it");
    let rates: Vec<Option<f64>> = summary.places.iter().map(|place| place.rate_bits_per_s).collect();
    assert!(rates.len() == 2 && rates.contains(&Some(4e7)) && rates.contains(&Some(4.8e7)), "{:?}", summary.places);
    let sum: f64 = summary.places.iter().map(|place| place.packets).sum();
    assert!((sum - summary.dropped).abs() < 1e-6 && sum > 30_000.0, "{sum} of {}", summary.dropped);
}

#[test]
fn a_full_core_has_its_programs_and_a_remedy() {
    let full = |ticks| Passing { ticks, ..QUIET };
    let runner = |sample: &mut Sample| {
        let name = "rustc".to_owned();
        let one = Runner { pid: 591, tid: 591, name, core: 0, cpu_ns: 50, over_ns: 100, kernel: None };
        sample.facts_mut().runners = Arc::new(vec![one]);
    };
    let (said, fix) = said_of(&full([30, 70]), runner);
    assert!(
        said.contains(". core 0 is 100 % busy: 50 % rustc (pid 591), 30 % softirqs, 20 % others. 0 packets"),
        "{said}"
    );
    assert_eq!(fix, "give rustc (pid 591) another core: core 1 has room");
    let (_, fix) = said_of(&full([30, 70]), |_| ());
    assert_eq!(fix, "give the programs on core 0 another one: core 1 has room", "nobody is named");
    let (said, fix) = said_of(&full([97, 0]), |_| ());
    assert!(said.contains(". core 0 is 97 % busy: 97 % softirqs. 0 packets"), "{said}");
    assert_eq!(fix, "let core 1 handle packets of r0 (echo 2 | tee /sys/class/net/r0/queues/rx-*/rps_cpus)");
    assert_eq!(metrics(&full([5, 95]), |_| ()).traffic.map(|traffic| traffic.state()), Some(TrafficState::Forwarding));
}

#[test]
fn a_program_called_as_a_thread_of_the_kernels_is_named() {
    let full = Passing { ticks: [30, 70], ..QUIET };
    let called = |kernel| {
        move |sample: &mut Sample| {
            let name = "ksoftirqd/0".to_owned();
            let one = Runner { pid: 591, tid: 591, name, core: 0, cpu_ns: 50, over_ns: 100, kernel };
            sample.facts_mut().runners = Arc::new(vec![one]);
        }
    };
    assert!(said_of(&full, called(Some(false))).0.contains("50 % ksoftirqd/0 (pid 591)"), "its name is its own affair");
    for kernel in [Some(true), None] {
        let said = said_of(&full, called(kernel)).0;
        assert!(!said.contains("ksoftirqd"), "what it does is counted as softirqs: {said}");
    }
}

#[test]
fn what_hardly_moves_or_is_watched_is_no_traffic() {
    let little = Passing { packets: [100, 100], ..QUIET };
    assert_eq!(metrics(&little, |_| ()).traffic, None);
    let one_way = Passing { packets: [10_000, 0], ..QUIET };
    let traffic = metrics(&one_way, |_| ()).traffic.expect("something comes in");
    assert_eq!((traffic.route(), traffic.state()), (vec!["r0"], TrafficState::Carrying));
    let shown = metrics(&QUIET, |_| ()).with_traffic();
    assert_eq!(shown.subject.timeline.bins.len(), 11, "the screen has its graph");
    assert_eq!(shown.subject.jitter, None, "and no test");
    let dropping = Passing { packets: [10_000, 6_000], dropped: 4_000, ..QUIET };
    let shown = metrics(&dropping, |_| ()).with_traffic();
    let drops = shown.subject.losses.of_qdiscs(key(ROUTER, 3)).and_then(|drops| drops.sent_per_s);
    assert_eq!(drops, Some(4_000.0), "the column of drops has those of the queue");
}

#[test]
fn a_link_may_be_called_anything() {
    let hostile = |sample: &mut Sample| {
        let facts = sample.facts_mut();
        let named = |link: &Arc<LinkFacts>| {
            let name = if link.key() == key(ROUTER, 3) { "x;reboot" } else { "r$(id)" };
            Arc::new(LinkFacts { name: name.to_owned(), ..(**link).clone() })
        };
        facts.links = Arc::new(facts.links.iter().map(named).collect());
    };
    let (_, fix) = said_of(&Passing { packets: [10_000, 6_000], dropped: 4_000, ..QUIET }, hostile);
    assert_eq!(fix, "send less, or raise its rate above what comes (tc -s qdisc show dev 'x;reboot')");
    let (_, fix) = said_of(&Passing { ticks: [97, 0], ..QUIET }, hostile);
    assert!(fix.contains("'r$(id)'") || fix.contains("'/sys/class/net/r$(id)/"), "{fix}");
}

#[test]
fn samples_that_are_no_time_apart_are_bounded() {
    let mut derivation = Derivation::default();
    let mut newest = None;
    for nth in 0..2 * MOST_BINS as u64 {
        // Traffic of some seconds, then samples a nanosecond apart.
        let mut sample = sample(&QUIET, nth.min(SECONDS));
        let nth = nth.saturating_sub(SECONDS);
        sample.at_ns += nth;
        sample.counters.iter_mut().for_each(|row| (row.at_ns, row.rx_bytes) = (row.at_ns + nth, row.rx_bytes + nth));
        newest = derivation.advance(Item::Sample(Box::new(sample)));
    }
    let traffic = newest.and_then(|metrics| metrics.traffic).expect("a byte each ns is much");
    assert_eq!(traffic.timeline.bins.len(), MOST_BINS);
}
