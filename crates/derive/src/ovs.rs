//! What Open vSwitch says of a link, put beside it; and the rates of links that only it knows. Their counters change every
//! few seconds, whatever the tick: a rate holds from one of its times to the next.

mod datapaths;

use super::LinkMetrics;
use super::links::{LinkRates, OvsPlace, rates};
use std::collections::BTreeMap;
use std::sync::Arc;
use vnettop_sample::{LinkCounters, LinkKey, OvsBridge, OvsPort, OvsSwitch};

pub(crate) use datapaths::between;
pub use datapaths::{DatapathMetrics, DatapathRates};

/// Keeps what needs more than one sample.
#[derive(Debug, Clone, Default)]
pub(super) struct Switches {
    known: Arc<Vec<OvsSwitch>>,
    /// Sorted by link.
    places: Vec<(LinkKey, Arc<OvsPlace>)>,
    paced: BTreeMap<LinkKey, Paced>,
}

/// The last counters of a link that only Open vSwitch knows.
#[derive(Debug, Clone)]
struct Paced {
    born: u64,
    row: LinkCounters,
    /// The row is not the first one seen, whose true time is not known.
    is_timed: bool,
    rates: Option<LinkRates>,
}

impl Switches {
    /// Adds to the links of a sample what these switches say of them.
    pub fn join(&mut self, switches: &Arc<Vec<OvsSwitch>>, links: &mut [LinkMetrics]) {
        if !Arc::ptr_eq(&self.known, switches) {
            self.known = Arc::clone(switches);
            self.places = places(switches);
        }
        for (key, place) in &self.places {
            if let Ok(at) = links.binary_search_by_key(key, |link| link.facts.key()) {
                links[at].ovs = Some(Arc::clone(place));
            }
        }
        if self.places.is_empty() && self.paced.is_empty() {
            return;
        }
        let mut paced = std::mem::take(&mut self.paced);
        for link in links.iter_mut().filter(|link| link.facts.ifindex.kernel().is_none()) {
            let now = link.counters.map(|row| {
                paced.remove(&link.facts.key()).map_or_else(
                    || Paced { born: link.facts.born, row, is_timed: false, rates: None },
                    |old| old.followed_by(row, link.facts.born),
                )
            });
            link.rates = now.as_ref().and_then(|now| now.rates).map(|rates| link.counted(rates));
            if let Some(now) = now {
                self.paced.insert(link.facts.key(), now);
            }
        }
    }
}

impl Paced {
    fn followed_by(self, row: LinkCounters, born: u64) -> Self {
        if self.born != born {
            return Self { born, row, is_timed: false, rates: None };
        }
        if self.row.at_ns == row.at_ns {
            return Self { row, ..self };
        }
        let rates = if self.is_timed { rates(&self.row, &row) } else { None };
        Self { born, row, is_timed: true, rates }
    }
}

impl LinkMetrics {
    /// Its drops and errors are counted.
    #[must_use]
    pub fn counts_drops(&self) -> bool {
        self.facts.ifindex.kernel().is_some() || self.ovs.as_ref().is_some_and(|place| place.port.counts_drops)
    }

    /// These rates without what is not counted.
    fn counted(&self, rates: LinkRates) -> LinkRates {
        if self.counts_drops() {
            return rates;
        }
        LinkRates {
            rx_dropped_per_s: None,
            tx_dropped_per_s: None,
            rx_errors_per_s: None,
            tx_errors_per_s: None,
            ..rates
        }
    }
}

fn places(switches: &[OvsSwitch]) -> Vec<(LinkKey, Arc<OvsPlace>)> {
    let of = |bridge: &OvsBridge| {
        let bridge_link = bridge.ports.iter().find(|port| port.name == bridge.name).and_then(|port| port.link);
        let place = |port: &OvsPort| {
            let (bridge, datapath) = (bridge.name.clone(), bridge.datapath.clone());
            Some((port.link?, Arc::new(OvsPlace { bridge, bridge_link, datapath, port: port.clone() })))
        };
        bridge.ports.iter().filter_map(place).collect::<Vec<_>>()
    };
    let mut places: Vec<_> = switches.iter().flat_map(|switch| &switch.bridges).flat_map(of).collect();
    places.sort_by_key(|(key, _)| *key);
    places
}

#[cfg(test)]
mod tests;
