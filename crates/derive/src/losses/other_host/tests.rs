//! A frame for another MAC address is the packet itself, or a copy for everybody.

use crate::losses::tests::{FAR, NEAR, ROUTER, after, before, key, lost, metrics, said};
use crate::{Metrics, drops};
use std::sync::Arc;
use vnettop_sample::{
    DropCount, DropFlow, Drops, HopBy, KernelCounts, Kind, LinkFacts, LinkKey, NextHop, Proto, Sample,
};

const STALE: &str = "02:00:00:00:77:77";
/// A third container's, behind another port of whatever joins them.
const OTHER: u64 = 14;

fn own(link: LinkKey) -> String {
    format!("02:00:00:00:{:02x}:{:02x}", link.netns, link.ifindex.0)
}

/// 900 datagrams reach a link with another MAC address; the router's table says for whom they are.
fn discarded(at: LinkKey, addressed: &str, change: impl Fn(&mut Sample)) -> Metrics {
    let count = |packets| DropCount {
        site: 1,
        flow: Some(DropFlow {
            proto: Proto::Udp,
            from: "198.18.1.1:43210".parse().expect("an address"),
            to: "198.18.2.1:5201".parse().expect("an address"),
        }),
        netns: Some(at.netns),
        ifindex: Some(at.ifindex),
        reason: Some("OTHERHOST".into()),
        function: Some("ip_rcv_core".into()),
        untracked: false,
        packets,
    };
    let reported = |sample: &mut Sample, packets| {
        let mut links: Vec<LinkFacts> = sample.facts.links.iter().map(|link| LinkFacts::clone(link)).collect();
        links.push(LinkFacts::new(key(OTHER, 2), "c0", Kind::Veth));
        for link in &mut links {
            link.mac = Some(own(link.key()));
        }
        let facts = sample.facts_mut();
        facts.links = Arc::new(links.into_iter().map(Arc::new).collect());
        let next = |link, ip: &str, mac: &str| NextHop { link, ip: ip.parse().expect("an address"), mac: mac.into() };
        Arc::make_mut(&mut facts.paths)[0].neighbours = vec![
            next(key(NEAR, 2), "198.18.1.254", &own(key(ROUTER, 2))),
            next(key(ROUTER, 3), "198.18.2.1", addressed),
        ];
        let drops = Drops { flows: vec![count(packets)], ..Drops::default() };
        sample.kernel = Some(Arc::new(KernelCounts { drops: Some(drops), ..KernelCounts::default() }));
        change(sample);
    };
    let mut first = before();
    reported(&mut first, 100);
    metrics(first, after(|sample| reported(sample, 1_000)))
}

#[test]
fn datagrams_to_a_stale_neighbour_are_lost_where_they_are_discarded() {
    let metrics = discarded(key(FAR, 2), STALE, |_| ());
    assert_eq!(lost(&metrics), [("mac_address", Some("b0".to_owned()), 900.0)], "they arrive, and nobody takes them");
    let text = said(&metrics);
    assert!(text.contains("because they are for a MAC address other than that of b0 in netns c2 (OTHERHOST"), "{text}");
    assert!(text.contains(&format!("sends to 198.18.2.1 as {STALE}, b0 has {}", own(key(FAR, 2)))), "{text}");
    assert!(text.ends_with("there: ip neigh del 198.18.2.1 dev r1"), "{text}");
    let list = drops::list(&metrics.subject).expect("the kernel is asked");
    assert_eq!(<&str>::from(list[0].verdict), "lost", "the list of drops calls it no other name");
}

#[test]
fn a_copy_that_a_bridge_gives_to_everybody_is_no_loss() {
    let metrics = discarded(key(OTHER, 2), &own(key(FAR, 2)), |_| ());
    assert_eq!(lost(&metrics), [], "the path gets to the one whose address it is");
    let list = drops::list(&metrics.subject).expect("the kernel is asked");
    assert_eq!(<&str>::from(list[0].verdict), "harmless", "so the list says");
    assert_eq!(
        lost(&discarded(key(OTHER, 2), STALE, |_| ())),
        [],
        "nor is the copy of what is lost at its own receiver"
    );
}

#[test]
fn frames_behind_the_wrong_port_are_lost_there() {
    let astray = |sample: &mut Sample| {
        let path = &mut Arc::make_mut(&mut sample.facts_mut().paths)[0];
        path.hops[2].by = HopBy::Fdb;
        path.hops[3].link = key(OTHER, 2);
        path.gap = Some("there is no route to 198.18.2.1".into());
    };
    let metrics = discarded(key(OTHER, 2), &own(key(FAR, 2)), astray);
    assert_eq!(lost(&metrics), [("mac_address", Some("c0".to_owned()), 900.0)], "whom they are for gets none");
    assert!(said(&metrics).contains("they are for b0 (c2)"), "{}", said(&metrics));
}

#[test]
fn what_a_switch_in_user_space_takes_is_no_loss() {
    let to_switch = |sample: &mut Sample| {
        let path = &mut Arc::make_mut(&mut sample.facts_mut().paths)[0];
        path.hops[3].link = key(OTHER, 2);
        path.gap = Some("there is no route to 198.18.2.1".into());
    };
    assert_eq!(lost(&discarded(key(OTHER, 2), &own(key(FAR, 2)), to_switch)), [], "its packet socket has them too");
}

#[test]
fn a_guest_s_frames_are_no_loss_of_those_that_hear_them_too() {
    let to_guest = |sample: &mut Sample| {
        let facts = sample.facts_mut();
        let mut links: Vec<LinkFacts> = facts.links.iter().map(|link| LinkFacts::clone(link)).collect();
        links[3].kind = Kind::Tap;
        facts.links = Arc::new(links.into_iter().map(Arc::new).collect());
        Arc::make_mut(&mut facts.paths)[0].gap = Some("the packets exit through b0, to the guest".into());
    };
    assert_eq!(lost(&discarded(key(OTHER, 2), STALE, to_guest)), [], "the guest's own link is not seen");
}

#[test]
fn without_a_neighbour_what_arrives_decides() {
    let unknown = |came: u64| {
        move |sample: &mut Sample| {
            let facts = sample.facts_mut();
            Arc::make_mut(&mut facts.paths)[0].neighbours.clear();
            let at_ns = sample.at_ns;
            let far = sample.protocols.iter_mut().find(|row| row.netns == FAR).expect("it is read");
            far.udp_in_datagrams = if at_ns > before().at_ns { came } else { 0 };
        }
    };
    assert_eq!(lost(&discarded(key(FAR, 2), STALE, unknown(0))).len(), 1, "nothing arrives: they are the packets");
    assert_eq!(lost(&discarded(key(FAR, 2), STALE, unknown(900))), [], "all arrive: they are copies");
}
