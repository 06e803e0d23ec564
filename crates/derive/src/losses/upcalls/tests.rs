//! Datapaths that cannot ask ovs-vswitchd: told once, whosever packets they are, with the switch and what mends it.

use crate::losses::tests::{FAR, NEAR, ROUTER, SECOND, before, key, link, lost, protocols, said};
use crate::{Derivation, Metrics};
use std::sync::Arc;
use vnettop_sample::{
    Hop, HopBy, HopWay, IpCounters, Item, Kind, LinkCounters, LinkFacts, OvsBridge, OvsDatapath, OvsPort, OvsSwitch,
    Sample,
};

const SENT: u64 = 10_000;
const SOCKET: &str = "/run/openvswitch/db.sock";

/// The same line as elsewhere, with a bridge of Open vSwitch in the place of the router.
fn switched() -> Sample {
    let mut sample = before();
    let bridge = key(ROUTER, 9);
    let facts = LinkFacts::new(bridge, "br0", Kind::OpenVSwitch);
    Arc::make_mut(&mut sample.facts_mut().links).push(Arc::new(facts));
    Arc::make_mut(&mut sample.facts_mut().links).sort_by_key(|link| link.key());
    sample.counters.push(LinkCounters::zero(bridge, 5));
    sample.counters.sort_by_key(LinkCounters::key);
    let path = &mut Arc::make_mut(&mut sample.facts_mut().paths)[0];
    path.hops[2].by = HopBy::Ovs;
    path.hops.insert(2, Hop { link: bridge, way: HopWay::Passed, by: HopBy::Bridge });
    let port = |name: &str, at| OvsPort::new(name, "system", Some(key(ROUTER, at)));
    let ports = vec![OvsPort::new("br0", "internal", Some(bridge)), port("r0", 2), port("r1", 3)];
    let bridges = vec![OvsBridge { name: "br0".to_owned(), datapath: "system".into(), fail_mode: None, ports }];
    sample.facts_mut().ovs =
        Arc::new(vec![OvsSwitch { socket: SOCKET.to_owned(), netns: ROUTER, version: None, pid: None, bridges }]);
    sample.datapaths = vec![datapath(0)];
    sample
}

fn datapath(lost: u64) -> OvsDatapath {
    OvsDatapath {
        socket: SOCKET.to_owned(),
        netns: ROUTER,
        kind: "system".into(),
        name: "ovs-system".to_owned(),
        born: 4,
        at_ns: 5,
        hit: 0,
        missed: lost,
        lost,
        flows: 2,
    }
}

/// Three samples a second apart, in each of which so many datagrams arrive and the datapath has lost so many.
fn run(arrive: u64, loses: u64, change: impl Fn(&mut Sample, u64)) -> Metrics {
    let mut derivation = Derivation::default();
    let mut last = None;
    for seconds in 0..=2 {
        let mut sample = switched();
        sample.at_ns += seconds * SECOND;
        sample.cores_at_ns += seconds * SECOND;
        sample.counters.iter_mut().for_each(|row| row.at_ns += seconds * SECOND);
        sample.protocols.iter_mut().for_each(|row| row.at_ns += seconds * SECOND);
        let (sent, arrived) = (SENT * seconds, arrive * seconds);
        let ip = |delivers, sent| IpCounters {
            in_delivers: delivers,
            out_requests: sent,
            out_transmits: Some(sent),
            ..IpCounters::default()
        };
        protocols(&mut sample, NEAR).udp_out_datagrams = sent;
        protocols(&mut sample, NEAR).ip = Some(ip(0, sent));
        protocols(&mut sample, ROUTER).ip = Some(ip(0, 0));
        (protocols(&mut sample, FAR).udp_in_datagrams, protocols(&mut sample, FAR).ip_in_receives) = (arrived, arrived);
        protocols(&mut sample, FAR).ip = Some(ip(arrived, 0));
        link(&mut sample, key(NEAR, 2)).tx_packets = sent;
        link(&mut sample, key(ROUTER, 2)).rx_packets = sent;
        link(&mut sample, key(ROUTER, 3)).tx_packets = arrived;
        link(&mut sample, key(FAR, 2)).rx_packets = arrived;
        sample.datapaths = vec![OvsDatapath { at_ns: 5 + seconds * SECOND, ..datapath(loses * seconds) }];
        change(&mut sample, seconds);
        last = derivation.advance(Item::Sample(Box::new(sample)));
    }
    last.expect("samples give metrics")
}

fn upcalls(packets: f64) -> Vec<(&'static str, Option<String>, f64)> {
    vec![("ovs_upcall", Some("system@ovs-system".to_owned()), packets)]
}

#[test]
fn what_ovs_vswitchd_could_not_be_asked_about_is_told_once_with_its_datapath() {
    let metrics = run(6_000, 4_000, |_, _| ());
    assert_eq!(lost(&metrics), upcalls(4_000.0), "once, and nothing between");
    let text = said(&metrics);
    assert!(
        text.starts_with(
            "4000 packets/s lost in upcalls of Open vSwitch's datapath system@ovs-system in the namespace of process \
             812: 4000 upcalls/s dropped, because ovs-vswitchd is too slow: it hangs"
        ),
        "{text}"
    );
}

#[test]
fn while_nothing_at_all_arrives_it_is_told_too() {
    assert_eq!(lost(&run(0, 9_990, |_, _| ())), upcalls(9_990.0), "then nobody else can tell what is missed");
}

#[test]
fn whose_they_are_is_not_known_and_no_share_is_guessed() {
    let metrics = run(SENT, 4_000, |_, _| ());
    assert_eq!(lost(&metrics), upcalls(4_000.0), "the datapath loses them, whosever they are");
    assert_eq!(metrics.subject.losses.places[0].share, None, "which share of the flow's they are is not known");
    assert_eq!(metrics.subject.losses.of_upcalls(key(ROUTER, 9)), Some(4_000.0), "the hop drops them all the same");
}

#[test]
fn a_datapath_that_others_made_and_one_that_was_made_anew_blame_nobody() {
    let others = run(6_000, 4_000, |sample, _| sample.datapaths[0].name = "other0".to_owned());
    assert!(lost(&others).iter().all(|(place, ..)| *place != "ovs_upcall"), "no bridge on the way is its");
    let anew = run(6_000, 4_000, |sample, seconds| sample.datapaths[0].born = seconds);
    assert!(lost(&anew).iter().all(|(place, ..)| *place != "ovs_upcall"), "its counters began again");
    assert_eq!(anew.subject.losses.of_upcalls(key(ROUTER, 9)), None, "what it loses is not known");
}
