//! By how much counters rose from one sample to the next, in packets.

use crate::links::LinkMetrics;
use crate::ovs::DatapathMetrics;
use vnettop_sample::{DropCount, Drops, KernelCounts, LinkCounters, LinkKey, OvsDatapathKind, Sample, row_of};

/// Two samples, one after the other, and the links as derived of the newer one, sorted by key.
#[derive(Clone, Copy)]
pub(super) struct SampleStep<'a> {
    pub previous: &'a Sample,
    pub next: &'a Sample,
    pub links: &'a [LinkMetrics],
    pub seconds: f64,
}

/// What a link counted, packets; a field is none when its own counter went backwards, or is not kept.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    pub rx_dropped: Option<f64>,
    pub tx_dropped: Option<f64>,
    pub rx_errors: Option<f64>,
    pub tx_errors: Option<f64>,
}

/// By how much a counter rose; none where it was reset.
pub(super) fn rise(from: u64, to: u64) -> Option<f64> {
    to.checked_sub(from).map(|rise| rise as f64)
}

/// The counts of drops in a sample; none where the kernel is not asked.
pub(super) fn drops(sample: &Sample) -> Option<&Drops> {
    sample.kernel.as_deref().and_then(|kernel: &KernelCounts| kernel.drops.as_ref())
}

/// Each count with its rise, packets; `None` when it fell: the row was dropped meanwhile, or counted something else.
pub(crate) fn rises<'a>(
    before: &'a [DropCount],
    now: &'a [DropCount],
) -> impl Iterator<Item = (&'a DropCount, Option<f64>)> {
    now.iter().map(|row| {
        (row, rise(row_of(before, &row.key(), DropCount::key).map_or(0, |before| before.packets), row.packets))
    })
}

/// Rows whose packet count rose, with the rise. A row whose counter started anew counts in full.
pub(super) fn risen<'a>(before: &'a [DropCount], now: &'a [DropCount]) -> impl Iterator<Item = (&'a DropCount, f64)> {
    let risen = |(row, rise): (&'a DropCount, Option<f64>)| (row, rise.unwrap_or(row.packets as f64));
    rises(before, now).map(risen).filter(|(_, packets)| *packets > 0.0)
}

impl<'a> SampleStep<'a> {
    pub fn of(previous: &'a Sample, next: &'a Sample, links: &'a [LinkMetrics]) -> Option<Self> {
        Some(Self { previous, next, links, seconds: crate::rate::seconds(previous.at_ns, next.at_ns)? })
    }

    pub fn link(&self, key: LinkKey) -> Option<&'a LinkMetrics> {
        row_of(self.links, &key, |link| link.facts.key())
    }

    /// What people call it.
    pub fn name(&self, key: LinkKey) -> Option<String> {
        self.link(key).map(|link| link.facts.name.clone())
    }

    /// What a link counted; none where that is not known, as in its first sample.
    pub fn counted(&self, link: &LinkMetrics) -> Option<Counted> {
        let rates = link.rates?;
        if link.facts.ifindex.kernel().is_none() {
            // Open vSwitch tells the counters of its own links every few seconds, and a rate holds for so long.
            let of = |rate: Option<f64>| rate.map(|rate| rate * self.seconds);
            return Some(Counted {
                rx_dropped: of(rates.rx_dropped_per_s),
                tx_dropped: of(rates.tx_dropped_per_s),
                rx_errors: of(rates.rx_errors_per_s),
                tx_errors: of(rates.tx_errors_per_s),
            });
        }
        let (from, to) = (self.before(link.facts.key())?, link.counters?);
        Some(Counted {
            rx_dropped: rise(from.rx_dropped, to.rx_dropped),
            tx_dropped: rise(from.tx_dropped, to.tx_dropped),
            rx_errors: rise(from.rx_errors, to.rx_errors),
            tx_errors: rise(from.tx_errors, to.tx_errors),
        })
    }

    /// Between the two reads of a link's counters; 0 where they were not read again, or are not known.
    pub fn seconds_of(&self, link: &LinkMetrics) -> f64 {
        let before = self.before(link.facts.key()).filter(|_| link.rates.is_some());
        let seconds = before.zip(link.counters).and_then(|(from, to)| crate::rate::seconds(from.at_ns, to.at_ns));
        seconds.unwrap_or(0.0)
    }

    fn before(&self, key: LinkKey) -> Option<&LinkCounters> {
        row_of(&self.previous.counters, &key, LinkCounters::key)
    }

    /// Packets that a datapath lost; none where that is not known.
    pub fn lost_in(&self, datapath: &DatapathMetrics) -> Option<f64> {
        let rates = datapath.rates?;
        let now = &datapath.counters;
        if now.kind != OvsDatapathKind::System {
            // ovs-vswitchd is asked at a pace of its own, and a rate holds for so long.
            return Some(rates.lost_per_s * self.seconds);
        }
        let before = self.previous.datapaths.iter().find(|before| before.key() == now.key())?;
        rise(before.lost, now.lost)
    }
}
