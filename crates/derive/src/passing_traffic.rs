//! What passes a machine on which no test runs: by which link, where it goes on, what drops of it are counted, and which core is full.
//! Whoever looks at a router, a bridge or a guest comes for that.

mod drops;
mod full_core;
mod words;

use super::busiest_link::{BusiestLink, of_own_namespace};
use super::jitter::Jitter;
use super::ledger::{Bin, Ledger, MOST_BINS};
use super::links::{LinkMetrics, LinkRates};
use super::losses::QdiscDrops;
use super::machine::MachineMetrics;
use super::timeline::{KEPT_NS, LostPart, LostTime, Timeline};
use drops::DropTrack;
use std::sync::Arc;
use vnettop_sample::{Kind, LinkKey, Sample};

pub use drops::{DropPlace, DropSearch, TrafficDrop};
pub use full_core::FullCore;
pub use words::TrafficState;

/// It is shown for so long after the last busy second, ns: what stops and goes takes nothing off the screen.
const HELD_NS: u64 = 10_000_000_000;
/// The spread is of so much time, ns, as that of a test.
const SPREAD_NS: u64 = 30_000_000_000;
/// Two links carry the same packets where their rates, packets/s, differ by no more than this.
const SAME: f64 = 0.1;
/// The other way of a link is the busier one from so many times its rate on: two as fast as each other would take turns.
const FASTER: f64 = 1.25;
/// Links of vnettop's own namespace come first where they carry at least this part of the most that any carries.
const OWN: f64 = 0.5;

/// What passes, as of the newest sample.
#[derive(Debug, Clone, PartialEq)]
pub struct PassingTraffic {
    /// The link it is measured at, and its name.
    pub link: LinkKey,
    /// See `link`.
    pub name: String,
    /// It comes in there; else it goes out.
    pub comes_in: bool,
    /// Another link of the namespace that as many packets pass the other way; none where no link does.
    pub other: Option<OtherLink>,
    /// In the busier direction of `link`, bits/s.
    pub bits_per_s: f64,
    /// The same in packets/s.
    pub packets_per_s: f64,
    /// Packets dropped, most first; empty where none were counted.
    pub drops: Vec<TrafficDrop>,
    /// What was looked at for drops.
    pub looked_at: DropSearch,
    /// Cores that are full, the one with most softirqs first.
    pub full: Vec<FullCore>,
    /// The spread of the rate; none in the first seconds.
    pub spread: Option<Jitter>,
    /// Its rate and its losses over the last minute.
    pub timeline: Arc<Timeline>,
}

/// The other link that the same packets pass.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherLink {
    /// The link.
    pub link: LinkKey,
    /// Its name.
    pub name: String,
    /// What passes there, bits/s, without what is dropped before.
    pub bits_per_s: Option<f64>,
}

impl PassingTraffic {
    /// What the root qdisc of each link drops, sorted by link.
    pub(super) fn qdiscs(&self) -> Vec<QdiscDrops> {
        let drops = self.drops.iter().filter_map(|drop| match drop.place {
            DropPlace::Qdisc(link, ..) => {
                let sent_per_s = Some(drop.packets_per_s);
                Some(QdiscDrops { link, sent_per_s, received_per_s: None, queues_nothing: false })
            }
            _ => None,
        });
        let mut all: Vec<QdiscDrops> = drops.collect();
        all.sort_by_key(|drops| drops.link);
        all
    }

    /// The links in the order in which the packets pass them.
    #[must_use]
    pub fn route(&self) -> Vec<&str> {
        let own = (self.comes_in, self.name.as_str());
        let mut route: Vec<(bool, &str)> =
            self.other.iter().map(|other| (!self.comes_in, other.name.as_str())).chain([own]).collect();
        route.sort_by_key(|(comes_in, _)| !comes_in);
        route.into_iter().map(|(_, name)| name).collect()
    }

    /// The link that the packets come in by; none where that is not known.
    #[must_use]
    pub fn way_in(&self) -> Option<(LinkKey, &str)> {
        let own = self.comes_in.then_some((self.link, self.name.as_str()));
        own.or_else(|| self.other.as_ref().map(|other| (other.link, other.name.as_str())))
    }

    /// Packets/s that came to the place that drops most: what a queue drops has not left by its link.
    fn before_the_worst(&self) -> Option<f64> {
        let worst = self.drops.first()?;
        let beside = if worst.is_before(self.link, self.comes_in) { worst.packets_per_s } else { 0.0 };
        Some((self.packets_per_s + beside).max(worst.packets_per_s))
    }

    /// What is dropped there was on its way: at its two links, in the queue of the one that it leaves by, or in the backlogs, which all
    /// links share.
    pub(crate) fn is_on_the_way(&self, drop: &TrafficDrop) -> bool {
        let other = || self.other.as_ref().map(|other| other.link);
        match &drop.place {
            // What comes in by a link does not pass the queue of what goes out there.
            DropPlace::Qdisc(at, ..) => Some(*at) == if self.comes_in { other() } else { Some(self.link) },
            DropPlace::Link(at, _) => *at == self.link || Some(*at) == other(),
            DropPlace::Backlog(_) => true,
        }
    }

    /// Share of the packets that is dropped in the place that drops most; none where nothing is dropped.
    #[must_use]
    pub fn dropped(&self) -> Option<f64> {
        super::share::share(self.drops.first()?.packets_per_s, self.before_the_worst()?)
    }

    /// Bytes of a packet, the mean; none without packets.
    #[must_use]
    pub fn packet_bytes(&self) -> Option<f64> {
        (self.packets_per_s > 0.0).then(|| self.bits_per_s / 8.0 / self.packets_per_s)
    }
}

/// What needs more than two samples.
#[derive(Debug, Clone, Default)]
pub(super) struct TrafficTrack {
    busiest: BusiestLink,
    /// The link that the bins are of.
    of: Option<LinkKey>,
    bins: Ledger<Bin>,
    losses: Ledger<LostTime>,
    drops: DropTrack,
    busy_at_ns: Option<u64>,
    /// As of then: more came in by that link than went out.
    comes_in: bool,
}

impl TrafficTrack {
    /// What passes between two samples; none where hardly anything does.
    pub fn observe(
        &mut self,
        previous: Option<&Sample>,
        next: &Sample,
        machine: &MachineMetrics,
    ) -> Option<Arc<PassingTraffic>> {
        let previous = previous.filter(|previous| previous.at_ns < next.at_ns)?;
        let links = looked_at(next, &machine.links);
        let (link, bin) = self.busiest.observe(previous, next, links)?;
        let rates = link.rates;
        let before = self.comes_in;
        if self.busiest.is_busy() {
            // Where nothing passes any more, and where both ways are as fast, it stays as it was.
            self.comes_in = rates.and_then(|rates| self.comes_in(rates)).unwrap_or(self.comes_in);
            self.busy_at_ns = Some(next.at_ns);
        }
        let key = link.facts.key();
        if self.of.replace(key) != Some(key) || self.comes_in != before {
            self.bins.clear();
            self.losses.clear();
        }
        // The graph is of the way that the figures beside it are of, though the other may be a little faster at times.
        let bits_per_s = rates.and_then(|rates| self.one_way(rates)).or(bin.bits_per_s);
        self.bins.add(Bin { bits_per_s, ..bin });
        let since_ns = next.at_ns.saturating_sub(KEPT_NS);
        self.bins.forget(since_ns);
        self.losses.forget(since_ns);
        // Samples of a hostile stream may be any time apart.
        self.bins.keep_newest(MOST_BINS);
        self.losses.keep_newest(MOST_BINS);
        self.busy_at_ns.filter(|at_ns| next.at_ns.saturating_sub(*at_ns) < HELD_NS)?;
        let (drops, looked_at) = self.drops.observe(machine, next, key.netns);
        let (rates, comes_in) = (rates?, self.comes_in);
        let packets_per_s = if comes_in { rates.rx_packets_per_s } else { rates.tx_packets_per_s }?;
        let spread = Jitter::of(self.bins.since(next.at_ns.saturating_sub(SPREAD_NS)));
        let mut traffic = PassingTraffic {
            link: key,
            name: link.facts.name.clone(),
            comes_in,
            other: other_link(links, (key, link), (comes_in, packets_per_s), &drops),
            bits_per_s: self.one_way(rates)?,
            packets_per_s,
            drops,
            looked_at,
            full: full_core::list(machine),
            spread,
            timeline: Arc::default(),
        };
        self.add_loss(&traffic, (previous.at_ns, next.at_ns), machine);
        traffic.timeline = Arc::new(Timeline {
            bins: self.bins.iter().copied().collect(),
            losses: self.losses.iter().cloned().collect(),
            incidents: Vec::new(),
        });
        Some(Arc::new(traffic))
    }

    /// Takes what is dropped where most is, and what that is of the rate.
    fn add_loss(&mut self, traffic: &PassingTraffic, (from_ns, to_ns): (u64, u64), machine: &MachineMetrics) {
        let Some(worst) = traffic.drops.first() else { return };
        let packets = worst.packets_per_s * machine.elapsed_s.unwrap_or(0.0);
        // Drivers differ in whether they count what they drop on the way in.
        let is_counted = !(traffic.comes_in && matches!(&worst.place, DropPlace::Link(at, _) if *at == traffic.link));
        let bytes = traffic.packet_bytes().filter(|_| is_counted && traffic.is_on_the_way(worst));
        let within = !worst.is_before(traffic.link, traffic.comes_in);
        let part = bytes.map(|bytes| LostPart { bits_per_s: worst.packets_per_s * bytes * 8.0, within });
        self.losses.add(LostTime { from_ns, to_ns, packets, part, place: worst.place_word().into() });
    }

    /// The rate of the busier way, bits/s.
    fn one_way(&self, rates: LinkRates) -> Option<f64> {
        if self.comes_in { rates.rx_bits_per_s } else { rates.tx_bits_per_s }
    }

    /// More comes in by the link; of the way that was the busier one, the other has to be faster by a part.
    fn comes_in(&self, rates: LinkRates) -> Option<bool> {
        let (rx, tx) = (rates.rx_bits_per_s?, rates.tx_bits_per_s?);
        Some(match (self.busy_at_ns, self.comes_in) {
            (None, _) => rx >= tx,
            (Some(_), true) => tx < FASTER * rx,
            (Some(_), false) => rx >= FASTER * tx,
        })
    }
}

/// The links of vnettop's own namespace, unless those of another one carry much more.
fn looked_at<'a>(next: &Sample, links: &'a [LinkMetrics]) -> &'a [LinkMetrics] {
    let most =
        |links: &[LinkMetrics]| links.iter().filter_map(|link| link.rates?.peak_bits_per_s()).fold(0.0, f64::max);
    let own = of_own_namespace(next, links);
    if most(own) >= OWN * most(links) { own } else { links }
}

/// The link of the same namespace that as many packets pass the other way, with those that it drops; a bridge is what its ports are
/// of, and none itself.
fn other_link(
    links: &[LinkMetrics],
    (key, link): (LinkKey, &LinkMetrics),
    (comes_in, packets_per_s): (bool, f64),
    drops: &[TrafficDrop],
) -> Option<OtherLink> {
    let off = |other: &LinkMetrics| {
        let rates = other.rates?;
        let packets = if comes_in { rates.tx_packets_per_s } else { rates.rx_packets_per_s }?;
        let here = drops.iter().filter(|drop| drop.is_before(other.facts.key(), !comes_in));
        let dropped: f64 = here.map(|drop| drop.packets_per_s).sum();
        Some((packets + dropped - packets_per_s).abs())
    };
    let is_other = |other: &&LinkMetrics| {
        let is_same = other.facts.key() == key || other.facts.kind == Kind::Bridge;
        !is_same && other.facts.netns == link.facts.netns && other.facts.kind != Kind::Loopback
    };
    let known = links.iter().filter(is_other).filter_map(|other| Some((off(other)?, other)));
    let nearest = known.min_by(|one, two| one.0.total_cmp(&two.0)).filter(|(off, _)| *off <= SAME * packets_per_s);
    nearest.map(|(_, other)| {
        let bits = |rates: LinkRates| if comes_in { rates.tx_bits_per_s } else { rates.rx_bits_per_s };
        OtherLink { link: other.facts.key(), name: other.facts.name.clone(), bits_per_s: other.rates.and_then(bits) }
    })
}

#[cfg(test)]
mod tests;
