//! What vanishes between two counters, with the counters of Linux 6.18 and of an older kernel: told once, only of the flows,
//! and not where it is not known.

use super::tests::{FAR, NEAR, ROUTER, SECOND, before, key, link, lost, protocols, qdisc, said};
use super::*;
use crate::derive::{Derivation, Metrics};
use crate::sample::{Hop, HopBy, HopWay, Item, Kind, LinkCounters, LinkFacts, QdiscCounters, Sample};

/// Packets a tick of a test.
const SENT: u64 = 10_000;

/// What IP of a namespace counts.
fn ip(sample: &mut Sample, netns: u64) -> &mut IpCounters {
    protocols(sample, netns).ip.get_or_insert_default()
}

/// Three samples a second apart; `change` is told how many seconds have passed.
fn run(change: impl Fn(&mut Sample, u64)) -> Vec<Metrics> {
    run_for(2, change)
}

fn run_for(last: u64, change: impl Fn(&mut Sample, u64)) -> Vec<Metrics> {
    let sample = |seconds: u64| {
        let mut sample = before();
        sample.at_ns += seconds * SECOND;
        sample.cores_at_ns += seconds * SECOND;
        sample.counters.iter_mut().for_each(|row| row.at_ns += seconds * SECOND);
        sample.protocols.iter_mut().for_each(|row| row.at_ns += seconds * SECOND);
        change(&mut sample, seconds);
        Item::Sample(Box::new(sample))
    };
    let mut derivation = Derivation::default();
    (0..=last).filter_map(|seconds| derivation.advance(sample(seconds))).collect()
}

/// `sent` datagrams leave the sender, `routed` the router's IP, and `received` reach a socket, as Linux 6.18 counts them.
fn passed(sample: &mut Sample, sent: u64, routed: u64, received: u64) {
    protocols(sample, NEAR).udp_out_datagrams = sent;
    (ip(sample, NEAR).out_requests, ip(sample, NEAR).out_transmits) = (sent, Some(sent));
    protocols(sample, ROUTER).ip_in_receives = sent;
    // Before the FORWARD hook.
    protocols(sample, ROUTER).ip_forwarded = sent;
    ip(sample, ROUTER).out_transmits = Some(routed);
    protocols(sample, FAR).ip_in_receives = routed;
    protocols(sample, FAR).udp_in_datagrams = received;
    (ip(sample, FAR).in_delivers, ip(sample, FAR).out_transmits) = (received, Some(0));
    (link(sample, key(NEAR, 2)).tx_packets, link(sample, key(ROUTER, 2)).rx_packets) = (sent, sent);
    (link(sample, key(ROUTER, 3)).tx_packets, link(sample, key(FAR, 2)).rx_packets) = (routed, routed);
}

#[test]
fn what_a_firewall_drops_between_two_links_is_told_once_and_said_after_a_second() {
    let metrics = run(|sample, seconds| passed(sample, SENT * seconds, 7_000 * seconds, 7_000 * seconds));
    let expected = [("between", Some("r0 → r1".to_owned()), 3_000.0)];
    assert_eq!(lost(&metrics[1]), expected, "one read of one file is right at once");
    assert_eq!(said(&metrics[1]), "no finding", "what has only just begun is not advice yet");
    assert_eq!(lost(&metrics[2]), expected, "and so it goes on");
    assert!(
        said(&metrics[2]).starts_with(
            "30 % of the packets are lost between r0 (in) and r1 (out) in the namespace of process 812: no counter"
        ),
        "{}",
        said(&metrics[2])
    );
}

#[test]
fn an_older_kernel_counts_what_it_forwards_after_its_rules() {
    let metrics = run(|sample, seconds| {
        passed(sample, SENT * seconds, 7_000 * seconds, 7_000 * seconds);
        protocols(sample, ROUTER).ip_forwarded = 7_000 * seconds;
        for netns in [NEAR, ROUTER, FAR] {
            ip(sample, netns).out_transmits = None;
        }
    });
    assert_eq!(lost(&metrics[2]), [("between", Some("r0 → r1".to_owned()), 3_000.0)], "the difference is the same");
}

#[test]
fn what_the_receivers_own_rules_drop_vanishes_before_its_socket() {
    let metrics = run(|sample, seconds| passed(sample, SENT * seconds, SENT * seconds, 6_000 * seconds));
    assert_eq!(lost(&metrics[2]), [("between", Some("b0 → the socket".to_owned()), 4_000.0)], "there");
    assert!(said(&metrics[2]).contains("between b0 (in) and the socket on c2"), "{}", said(&metrics[2]));
}

#[test]
fn what_is_held_up_again_and_again_is_missed_once() {
    // A machine that is stopped at times: 200 packets are on their way for two seconds of every four, and none is lost.
    let metrics = run_for(40, |sample, seconds| {
        let late = if seconds % 4 >= 2 { 200 } else { 0 };
        passed(sample, SENT * seconds, SENT * seconds, SENT * seconds - late);
    });
    let told = metrics.iter().flat_map(|one| &one.losses.places).map(|loss| loss.packets).sum::<f64>();
    assert!(told <= 200.0, "not once more each time: {told}");
}

#[test]
fn what_is_dropped_before_ip_is_believed_after_a_second() {
    let metrics = run(|sample, seconds| {
        passed(sample, 8_000 * seconds, 8_000 * seconds, 8_000 * seconds);
        protocols(sample, NEAR).udp_out_datagrams = SENT * seconds;
        link(sample, key(ROUTER, 2)).rx_packets = SENT * seconds;
    });
    assert_eq!(lost(&metrics[2]), [("between", Some("r0 → r1".to_owned()), 2_000.0)], "IP never saw them");
}

#[test]
fn what_is_dropped_of_others_or_not_known_is_no_loss() {
    let others = run(|sample, seconds| {
        passed(sample, SENT * seconds, SENT * seconds, SENT * seconds);
        protocols(sample, ROUTER).ip_in_receives += 5_000 * seconds;
    });
    assert_eq!(lost(&others[2]), [], "the flow misses nothing");
    let old = run(|sample, seconds| {
        passed(sample, SENT * seconds, 7_000 * seconds, 7_000 * seconds);
        sample.protocols.iter_mut().for_each(|row| row.ip = None);
    });
    assert_eq!(lost(&old[2]), [], "a recording that does not tell enough is no loss");
    let open = run(|sample, seconds| {
        passed(sample, SENT * seconds, 7_000 * seconds, 7_000 * seconds);
        std::sync::Arc::make_mut(&mut sample.paths)[0].gap = Some("it leaves the machine".to_owned());
    });
    assert_eq!(lost(&open[2]), [], "nobody knows what arrived");
}

#[test]
fn what_a_bridges_port_delays_waits_and_is_not_lost() {
    let delayed = |is_read: fn(u64) -> bool| {
        run(move |sample, seconds| {
            bridge(sample);
            let through = (SENT * seconds).saturating_sub(1_000);
            passed(sample, SENT * seconds, through, through);
            ip(sample, ROUTER).out_transmits = Some(0);
            protocols(sample, ROUTER).ip_in_receives = 0;
            let waiting = if seconds == 0 { 0 } else { 1_000 };
            let netem = qdisc(key(ROUTER, 3), super::qdiscs::ROOT, 1 + seconds * SECOND, 0);
            let netem = QdiscCounters { kind: "netem".to_owned(), backlog_packets: waiting, ..netem };
            sample.qdiscs = Some(netem).into_iter().filter(|_| is_read(seconds)).collect();
        })
    };
    let metrics = delayed(|_| true);
    assert_eq!(lost(&metrics[1]), [], "what has only just gone into the queue comes out again");
    assert_eq!(lost(&metrics[2]), [], "and so it goes on");
    let metrics = delayed(|seconds| seconds > 0);
    assert_eq!(lost(&metrics[1]), [], "how many waited before is not known");
    assert_eq!(lost(&metrics[2]), [], "and then it is");
}

/// The router's links are ports of its bridge br0.
fn bridge(sample: &mut Sample) {
    let br0 = key(ROUTER, 4);
    let links = std::sync::Arc::make_mut(&mut sample.links);
    for link in links.iter_mut().filter(|link| link.netns == ROUTER) {
        std::sync::Arc::make_mut(link).master = Some(br0.ifindex);
    }
    links.push(std::sync::Arc::new(LinkFacts::plain(br0, "br0", Kind::Bridge)));
    links.sort_by_key(|link| link.key());
    sample.counters.push(LinkCounters::zero(br0, sample.counters[0].at_ns));
    sample.counters.sort_by_key(LinkCounters::key);
    let hops = &mut std::sync::Arc::make_mut(&mut sample.paths)[0].hops;
    hops[2].by = HopBy::Fdb;
    hops.insert(2, Hop { link: br0, way: HopWay::Passed, by: HopBy::Bridge });
}

#[test]
fn what_another_counter_has_is_not_told_again() {
    let metrics = run(|sample, seconds| {
        passed(sample, SENT * seconds, 7_000 * seconds, 7_000 * seconds);
        ip(sample, ROUTER).reverse_path_filter = 3_000 * seconds;
    });
    assert_eq!(lost(&metrics[2]), [("rp_filter", None, 3_000.0)], "by its name");
    assert!(said(&metrics[2]).contains("are lost by rp_filter"), "{}", said(&metrics[2]));
}

#[test]
fn segments_that_are_sent_again_blame_no_place() {
    let tcp = |again: u64| {
        run(move |sample, seconds| {
            passed(sample, SENT * seconds, 9_000 * seconds, 9_000 * seconds);
            let near = protocols(sample, NEAR);
            (near.udp_out_datagrams, near.tcp_out_segs, near.tcp_retrans_segs) = (0, SENT * seconds, again * seconds);
            protocols(sample, FAR).udp_in_datagrams = 0;
        })
    };
    assert_eq!(lost(&tcp(1_000)[2]), [], "they may only be late, and what vanishes may be others'");
    assert_eq!(tcp(1_000)[2].losses.retransmits, Some(1_000.0), "but they are counted");
}

#[test]
fn a_filter_before_a_link_counts_in_its_qdisc() {
    let metrics = run(|sample, seconds| {
        passed(sample, SENT * seconds, 9_000 * seconds, 9_000 * seconds);
        protocols(sample, ROUTER).ip_in_receives = 9_000 * seconds;
        protocols(sample, ROUTER).ip_forwarded = 9_000 * seconds;
        let clsact = qdisc(key(ROUTER, 2), 0xffff_fff1, 1 + seconds * SECOND, 1_000 * seconds);
        sample.qdiscs = vec![QdiscCounters { kind: "clsact".to_owned(), handle: 0xffff_0000, ..clsact }];
    });
    assert_eq!(lost(&metrics[2]), [("qdisc", Some("clsact on r0".to_owned()), 1_000.0)], "once");
    let drops = metrics[2].losses.of_qdiscs(key(ROUTER, 2)).expect("it is read");
    assert_eq!((drops.sent_per_s, drops.received_per_s), (None, Some(1_000.0)), "on the way in");
}

#[test]
fn a_share_is_unknown_where_others_send_too() {
    let metrics = run(|sample, seconds| {
        passed(sample, SENT * seconds, SENT * seconds, SENT * seconds);
        protocols(sample, NEAR).udp_out_datagrams += 4_000 * seconds;
        link(sample, key(NEAR, 2)).tx_errors = 100 * seconds;
    });
    assert_eq!(lost(&metrics[2]), [("link", Some("a0".to_owned()), 100.0)], "packets are packets");
    assert_eq!(metrics[2].losses.places[0].share, None, "4,000 of 14,000 went elsewhere");
    assert!(said(&metrics[2]).starts_with("100 packets/s are lost by link a0"), "{}", said(&metrics[2]));
}

#[test]
fn datagrams_in_pieces_are_told_with_their_size() {
    let metrics = run(|sample, seconds| {
        passed(sample, 6_000 * seconds, 6_000 * seconds, 1_000 * seconds);
        let near = ip(sample, NEAR);
        (near.frag_oks, near.frag_creates, near.out_requests) = (1_000 * seconds, 6_000 * seconds, 1_000 * seconds);
        protocols(sample, NEAR).udp_out_datagrams = 1_000 * seconds;
        let far = ip(sample, FAR);
        (far.reasm_reqds, far.reasm_oks) = (6_000 * seconds, 1_000 * seconds);
        // Six times IP's header and Ethernet's, once UDP's.
        link(sample, key(NEAR, 2)).tx_bytes = (8_000 + 8 + 6 * 34) * 1_000 * seconds;
    });
    assert_eq!(lost(&metrics[2]), [], "nothing is lost by that alone");
    let text =
        metrics[2].findings.iter().find(|finding| finding.id == "fragments").map(|finding| finding.text.as_str());
    let expected = "1000 datagrams/s of 8000 bytes leave as 6 fragments each (MTU 1500 on a0): one lost fragment loses all of a datagram (iperf3 -l 1472 sends whole ones)";
    assert_eq!(text, Some(expected), "with what fits");
}

#[test]
fn what_was_counted_before_a_flow_was_seen_compares_with_no_link() {
    // While there was no flow yet, the links were read 0.4 s after the protocols; three of ten are lost in the router.
    let metrics = run_for(4, |sample, seconds| {
        let tenths = if seconds == 0 { 4 } else { 10 * seconds };
        passed(sample, SENT * seconds, 7_000 * seconds, 7_000 * seconds);
        for (link, packets) in [(key(ROUTER, 2), SENT), (key(FAR, 2), 7_000)] {
            self::link(sample, link).rx_packets = packets * tenths / 10;
        }
        for (link, packets) in [(key(NEAR, 2), SENT), (key(ROUTER, 3), 7_000)] {
            self::link(sample, link).tx_packets = packets * tenths / 10;
        }
        // With fragments on the way the counters of a namespace are not exact.
        (ip(sample, ROUTER).frag_oks, ip(sample, ROUTER).frag_creates) = (seconds, seconds);
        if seconds == 0 {
            (sample.flows, sample.paths) = (Vec::new(), std::sync::Arc::default());
            sample.at_ns += 4 * SECOND / 10;
            sample.counters.iter_mut().for_each(|row| row.at_ns += 4 * SECOND / 10);
        }
    });
    let told = metrics.iter().skip(1).map(|one| lost(one).iter().map(|one| one.2).sum()).collect::<Vec<f64>>();
    assert_eq!(
        told,
        [0.0, 0.0, 3_000.0, 3_000.0],
        "not less, because links had counted less: from the second on, after 1 s"
    );
}
