//! Rates of links that only Open vSwitch knows, and the join of links with its ports.

use super::*;
use crate::links::Basis;
use vnettop_sample::{Ifindex, Kind, LinkFacts};

const PATCH: LinkKey = LinkKey { netns: 1, ifindex: Ifindex(Ifindex::OVS + 1) };

fn port(name: &str, link: LinkKey, counts_drops: bool) -> OvsPort {
    OvsPort { ofport: Some(1), counts_drops, ..OvsPort::new(name, "patch", Some(link)) }
}

fn link(at_ns: u64, bytes: u64) -> LinkMetrics {
    let facts = LinkFacts { mtu: 0, ..LinkFacts::new(PATCH, "pa", Kind::Other("patch".to_owned())) };
    let row =
        LinkCounters { rx_bytes: bytes, rx_packets: bytes / 100, ..LinkCounters::zero(PATCH, at_ns * 1_000_000_000) };
    LinkMetrics { facts: Arc::new(facts), basis: Basis::None, counters: Some(row), rates: None, ovs: None }
}

fn switch(counts_drops: bool) -> Arc<Vec<OvsSwitch>> {
    let br0 = LinkKey { netns: 1, ifindex: Ifindex(3) };
    let ports = vec![port("br0", br0, false), port("pa", PATCH, counts_drops)];
    let bridge = OvsBridge { name: "br0".to_owned(), datapath: "netdev".into(), fail_mode: None, ports };
    Arc::new(vec![OvsSwitch { socket: "s".to_owned(), netns: 1, version: None, pid: None, bridges: vec![bridge] }])
}

/// The rates, after each of these times and counts.
fn rates_of(rows: &[Option<(u64, u64)>]) -> Vec<Option<LinkRates>> {
    let (mut switches, known) = (Switches::default(), switch(false));
    let after = |row: &Option<(u64, u64)>| {
        let mut links = [link(row.map_or(0, |row| row.0), row.map_or(0, |row| row.1))];
        if row.is_none() {
            links[0].counters = None;
        }
        switches.join(&known, &mut links);
        links[0].rates
    };
    rows.iter().map(after).collect()
}

fn bits(rates: &[Option<LinkRates>]) -> Vec<Option<f64>> {
    rates.iter().map(|rates| rates.and_then(|rates| rates.rx_bits_per_s)).collect()
}

#[test]
fn a_rate_holds_from_one_writing_to_the_next_and_starts_with_the_third() {
    let rates = rates_of(&[
        Some((1, 0)),
        Some((1, 0)),
        Some((2, 900)),
        Some((2, 900)),
        Some((7, 1400)),
        Some((7, 1400)),
        Some((12, 1400)),
    ]);
    let expected = [None, None, None, None, Some(800.0), Some(800.0), Some(0.0)];
    assert_eq!(bits(&rates), expected, "the first counters are of an age nobody knows; no spike, no gap");
    let last = rates[5].expect("a rate");
    assert_eq!((last.rx_dropped_per_s, last.tx_errors_per_s), (None, None), "what is not counted is not 0");
}

#[test]
fn a_switch_that_was_away_starts_anew() {
    let rates = rates_of(&[
        Some((1, 0)),
        Some((2, 0)),
        Some((3, 100)),
        None,
        Some((9, 9000)),
        Some((10, 9000)),
        Some((15, 9000)),
    ]);
    assert_eq!(bits(&rates), [None, None, Some(800.0), None, None, None, Some(0.0)]);
}

#[test]
fn a_link_knows_its_bridge_and_the_bridges_own_link() {
    let mut links = [link(1, 0)];
    Switches::default().join(&switch(true), &mut links);
    let place = links[0].ovs.as_deref().expect("it is a port");
    assert_eq!((place.bridge.as_str(), place.datapath.as_ref()), ("br0", "netdev"));
    assert_eq!(place.bridge_link.map(|key| key.ifindex.0), Some(3));
    assert!(links[0].counts_drops(), "this one counts drops");
}
