//! What the kernel says it dropped, as losses of the flows and as the list of all: each packet once, by its place and reason.

use super::*;
use crate::losses::tests::{FAR, NEAR, ROUTER, after, before, key, lost, metrics, protocols, said};
use vnettop_sample::{Conntrack, DropFlow, Drops, KernelCounts, Proto, QdiscCounters, Sample, Word};

/// The flow of the samples, on its way to its receiver.
fn forward() -> DropFlow {
    let address = |text: &str| text.parse().expect("an address");
    DropFlow { proto: Proto::Udp, from: address("198.18.1.1:43210"), to: address("198.18.2.1:5201") }
}

fn count(site: u32, at: (u64, u32), why: (&str, &str), packets: u64) -> DropCount {
    DropCount {
        site,
        flow: Some(forward()),
        netns: Some(at.0).filter(|&netns| netns != 0),
        ifindex: Some(Ifindex(at.1)).filter(|_| at.1 != 0),
        reason: Some(Arc::from(why.0)),
        function: Some(Arc::from(why.1)),
        untracked: false,
        packets,
    }
}

/// The kernel's counts in a sample, sorted as they are read.
fn reported(sample: &mut Sample, mut flows: Vec<DropCount>, mut others: Vec<DropCount>) {
    for row in &mut others {
        row.flow = None;
    }
    for rows in [&mut flows, &mut others] {
        rows.sort_by(|one, other| one.key().cmp(&other.key()));
    }
    let drops = Drops { flows, others, everywhere: true, ..Drops::default() };
    sample.kernel = Some(Arc::new(KernelCounts { drops: Some(drops), ..KernelCounts::default() }));
}

const RULE: (&str, &str) = ("NETFILTER_DROP", "nf_hook_slow");
const FULL: (&str, &str) = ("SOCKET_RCVBUFF", "udp_queue_rcv_one_skb");

#[test]
fn the_kernels_own_word_is_the_loss_and_no_counter_adds_to_it() {
    let mut first = before();
    let met = [count(1, (ROUTER, 2), RULE, 0), count(2, (0, 2), FULL, 0), count(3, (FAR, 2), FULL, 0)];
    reported(&mut first, [vec![count(0, (ROUTER, 2), RULE, 100)], met.into()].concat(), Vec::new());
    let then = after(|sample| {
        // The receiver's namespace and its link count what the socket dropped as well.
        protocols(sample, FAR).udp_rcvbuf_errors = 40;
        protocols(sample, NEAR).udp_out_datagrams = 10_000;
        let rows = vec![
            count(0, (ROUTER, 2), RULE, 1_300),
            count(1, (ROUTER, 2), RULE, 38),
            count(2, (0, 2), FULL, 40),
            count(3, (FAR, 2), ("QUEUE_PURGE", "skb_queue_purge"), 12),
        ];
        reported(sample, rows, Vec::new());
    });
    let metrics = metrics(first, then);
    let expected = [("firewall", Some("r0".to_owned()), 1_238.0), ("receive_buffer", Some("b0".to_owned()), 40.0)];
    assert_eq!(lost(&metrics), expected, "two lines of one function are one loss; what a closed socket had is none");
    assert_eq!(
        metrics.subject.losses.places[1].netns,
        Some(FAR),
        "a datagram that waits has lost its device: it is the receiver's"
    );
    let share = metrics.subject.losses.places[0].share.expect("known");
    assert!((share - 0.1238).abs() < 1e-9, "of what the sender's namespace sent: {share}");
    let text = said(&metrics);
    assert!(text.contains("by a firewall rule at r0") && text.contains("(NETFILTER_DROP in nf_hook_slow)"), "{text}");
    assert!(text.contains("nft list ruleset"), "and what shows the rule: {text}");
}

#[test]
fn a_full_table_of_connections_is_told_from_a_rule_by_its_own_counter() {
    let tracked = |drop| Some(Conntrack { drop, count: 9, max: 9, ..Conntrack::default() });
    let mut first = before();
    protocols(&mut first, ROUTER).conntrack = tracked(0);
    reported(&mut first, Vec::new(), Vec::new());
    let then = after(|sample| {
        protocols(sample, ROUTER).conntrack = tracked(30);
        let untracked = |netns, packets| DropCount { untracked: true, ..count(0, (netns, 2), RULE, packets) };
        let rows = vec![untracked(NEAR, 3), count(0, (ROUTER, 2), RULE, 50), untracked(ROUTER, 35)];
        reported(sample, rows, Vec::new());
    });
    let metrics = metrics(first, then);
    let (router, near) = (Some("r0".to_owned()), Some("a0".to_owned()));
    let expected = [("firewall", router.clone(), 55.0), ("conntrack", router, 30.0), ("firewall", near, 3.0)];
    assert_eq!(lost(&metrics), expected, "the kernel has one reason for both: a rule had packets that were tracked");
}

#[test]
fn a_queue_is_named_with_its_qdisc_and_a_reason_of_tomorrow_by_itself() {
    let root = |drops| QdiscCounters {
        link: key(ROUTER, 3),
        kind: "tbf".into(),
        handle: 1,
        parent: u32::MAX,
        at_ns: 1,
        bytes: 0,
        packets: 0,
        drops,
        backlog_packets: 0,
        overlimits: None,
        setting: None,
    };
    let mut first = before();
    first.qdiscs = vec![root(0)];
    reported(&mut first, Vec::new(), Vec::new());
    let then = after(|sample| {
        sample.qdiscs = vec![root(887)];
        let rows = vec![
            count(0, (ROUTER, 3), ("QDISC_DROP", "__dev_queue_xmit"), 887),
            count(1, (FAR, 2), ("NEW_ONE", "novel"), 5),
        ];
        reported(sample, rows, Vec::new());
    });
    let metrics = metrics(first, then);
    let expected = [("qdisc", Some("tbf on r1".to_owned()), 887.0), ("kernel", Some("b0".to_owned()), 5.0)];
    assert_eq!(lost(&metrics), expected, "once, though tc counts it too");
}

#[test]
fn the_list_has_everybodys_drops_the_busiest_first() {
    let mut first = before();
    reported(&mut first, Vec::new(), vec![count(0, (NEAR, 2), ("UNHANDLED_PROTO", "__netif_receive_skb_core"), 900)]);
    let then = after(|sample| {
        let others = vec![
            count(0, (NEAR, 2), ("UNHANDLED_PROTO", "__netif_receive_skb_core"), 901),
            count(1, (0, 0), ("NO_SOCKET", "__udp4_lib_rcv"), 3),
        ];
        reported(sample, vec![count(2, (ROUTER, 2), RULE, 7)], others);
    });
    let list = list(&metrics(first, then).subject).expect("the kernel is asked");
    let rows: Vec<_> =
        list.iter().map(|row| (row.reason.as_deref(), row.verdict.word(), row.of_flows, row.packets)).collect();
    let expected = [
        (Some("NETFILTER_DROP"), "refused", true, 7),
        (Some("NO_SOCKET"), "lost", false, 3),
        (Some("UNHANDLED_PROTO"), "harmless", false, 901),
    ];
    assert_eq!(rows, expected, "what is dropped most now comes first");
    assert_eq!(list[0].packets_per_s, Some(7.0), "a kind that is new has been dropped since the sample before");
    let mut first = before();
    reported(&mut first, Vec::new(), vec![count(0, (ROUTER, 2), RULE, 60)]);
    let then =
        after(|sample| reported(sample, vec![count(0, (ROUTER, 2), RULE, 25)], vec![count(0, (ROUTER, 2), RULE, 35)]));
    let list = super::list(&metrics(first, then).subject).expect("the kernel is asked");
    let others = list.iter().find(|row| !row.of_flows).expect("a row of others");
    assert_eq!(others.packets_per_s, Some(0.0), "what turns out to be a watched flow's was not dropped anew");
}

#[test]
fn without_the_kernels_word_there_is_no_list() {
    assert_eq!(list(&metrics(before(), after(|_| ())).subject), None, "nobody was asked");
}

#[test]
fn of_two_reasons_at_a_place_the_greater_is_named_and_the_next_place_beside_it() {
    let mut first = before();
    reported(&mut first, Vec::new(), Vec::new());
    let then = after(|sample| {
        let rows = vec![
            count(0, (ROUTER, 3), ("QDISC_DROP", "__dev_queue_xmit"), 184),
            count(1, (ROUTER, 3), ("NOT_SPECIFIED", "tbf_enqueue"), 15),
            count(2, (ROUTER, 2), ("IP_INNOROUTES", "ip_rcv_finish"), 70),
        ];
        reported(sample, rows, Vec::new());
    });
    let text = said(&metrics(first, then));
    assert!(
        text.contains("199 packets/s lost (269 in total)") && text.contains("(QDISC_DROP in __dev_queue_xmit)"),
        "{text}"
    );
    assert!(text.contains("; 70 packets/s by IP at r0") && text.contains("(IP_INNOROUTES in ip_rcv_finish)"), "{text}");
}

#[test]
fn a_drop_of_which_neither_reason_nor_function_is_told_is_no_loss() {
    let mut first = before();
    reported(&mut first, Vec::new(), Vec::new());
    let unnamed = DropCount { function: None, ..count(0, (FAR, 2), ("NOT_SPECIFIED", ""), 2) };
    let metrics = metrics(first, after(|sample| reported(sample, vec![unnamed.clone()], Vec::new())));
    assert_eq!(lost(&metrics), [], "what a closed socket had looks the same");
    assert_eq!(list(&metrics.subject).expect("the kernel is asked")[0].verdict.word(), "unknown");
}

#[test]
fn what_a_flow_lost_stays_in_the_list_when_it_has_ended() {
    let mut first = before();
    reported(&mut first, vec![count(0, (ROUTER, 2), RULE, 60)], Vec::new());
    let then = after(|sample| {
        reported(sample, Vec::new(), Vec::new());
        let mut counts = KernelCounts::clone(sample.kernel.as_ref().expect("told"));
        let ended = DropCount { flow: None, ..count(0, (ROUTER, 2), RULE, 60) };
        counts.drops.as_mut().expect("told").ended.push(ended);
        sample.kernel = Some(Arc::new(counts));
    });
    let list = list(&metrics(first, then).subject).expect("the kernel is asked");
    let rows: Vec<_> = list.iter().map(|row| (row.of_flows, row.packets, row.packets_per_s)).collect();
    assert_eq!(rows, [(true, 60, Some(0.0))], "with all its packets, none of them now");
}

#[test]
fn in_anothers_namespace_a_port_alone_is_nobodys() {
    let mut anybody = forward();
    anybody.from = "0.0.0.0:0".parse().expect("an address");
    let stranger = DropCount { flow: Some(anybody), ..count(0, (77, 9), RULE, 5) };
    let mut first = before();
    reported(&mut first, Vec::new(), Vec::new());
    let list = list(&metrics(first, after(|sample| reported(sample, vec![stranger.clone()], Vec::new()))).subject);
    assert!(!list.expect("the kernel is asked")[0].of_flows, "somebody else's packets to the same port");
}

#[test]
fn the_same_addresses_in_a_namespace_off_the_way_are_somebody_elses() {
    let mut first = before();
    reported(&mut first, Vec::new(), Vec::new());
    let then = after(|sample| {
        reported(sample, vec![count(0, (77, 9), RULE, 640), count(1, (ROUTER, 2), RULE, 4)], Vec::new());
    });
    let known = metrics(first.clone(), then.clone());
    assert_eq!(lost(&known), [("firewall", Some("r0".to_owned()), 4.0)], "the way is known, and does not cross it");
    let marks: Vec<_> =
        list(&known.subject).expect("the kernel is asked").iter().map(|row| (row.packets, row.of_flows)).collect();
    assert_eq!(marks, [(640, false), (4, true)], "the list has both");
    let part = |mut sample: Sample| {
        let mut path = sample.facts.paths[0].clone();
        path.gap = Some("the rest is not known".to_owned());
        sample.facts_mut().paths = Arc::new(vec![path]);
        sample
    };
    let unknown = lost(&metrics(part(first), part(then)));
    let packets: Vec<_> = unknown.iter().map(|(.., packets)| *packets).collect();
    assert_eq!(packets, [640.0, 4.0], "where the way is not, it may be theirs");
}
