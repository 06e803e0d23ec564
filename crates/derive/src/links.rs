//! Link facts and counters of two samples → what each link claims, moves, drops; and what the speed that a driver reports is
//! worth, as measured kind by kind of link.

use super::rate::{per_second, seconds};
use std::sync::Arc;
use vnettop_sample::{HopWay, Kind, LinkCounters, LinkFacts, LinkKey, OvsDatapathKind, OvsPort, Sample};

/// One link: what it is, what it claims, what it moved between two samples.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkMetrics {
    /// What it is, and its `speed_mbps` claim.
    pub facts: Arc<LinkFacts>,
    /// What the claim is worth.
    pub basis: Basis,
    /// Absolute counters; none in the tick a link is created.
    pub counters: Option<LinkCounters>,
    /// Rates; none for a link seen for the first time, or whose counters went backwards.
    pub rates: Option<LinkRates>,
    /// What it is to Open vSwitch; none where it is no port of it.
    pub ovs: Option<Arc<OvsPlace>>,
}

/// A link as a port of Open vSwitch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OvsPlace {
    /// The name of its bridge.
    pub bridge: String,
    /// The link that is the bridge's own port.
    pub bridge_link: Option<LinkKey>,
    /// The bridge's datapath.
    pub datapath: OvsDatapathKind,
    /// What the database says of the port.
    pub port: OvsPort,
}

/// What a link moved a second. A field is none when its own counter went backwards.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[allow(missing_docs, reason = "the unit is in each name")]
pub struct LinkRates {
    pub rx_bits_per_s: Option<f64>,
    pub tx_bits_per_s: Option<f64>,
    pub rx_packets_per_s: Option<f64>,
    pub tx_packets_per_s: Option<f64>,
    pub rx_dropped_per_s: Option<f64>,
    pub tx_dropped_per_s: Option<f64>,
    pub rx_errors_per_s: Option<f64>,
    pub tx_errors_per_s: Option<f64>,
}

impl LinkRates {
    /// The larger direction, bits/s.
    #[must_use]
    pub fn peak_bits_per_s(&self) -> Option<f64> {
        match (self.rx_bits_per_s, self.tx_bits_per_s) {
            (Some(rx), Some(tx)) => Some(rx.max(tx)),
            _ => None,
        }
    }

    /// Packets in both directions a second.
    #[must_use]
    pub fn packets_per_s(&self) -> Option<f64> {
        Some(self.rx_packets_per_s? + self.tx_packets_per_s?)
    }

    /// Packets dropped in both directions a second.
    #[must_use]
    pub fn dropped_per_s(&self) -> Option<f64> {
        Some(self.rx_dropped_per_s? + self.tx_dropped_per_s?)
    }

    /// Mean packet size over both directions, bytes; none without packets.
    #[must_use]
    pub fn mean_packet_bytes(&self) -> Option<f64> {
        let packets = self.packets_per_s().filter(|&packets| packets > 0.0)?;
        Some((self.rx_bits_per_s? + self.tx_bits_per_s?) / 8.0 / packets)
    }
}

impl LinkMetrics {
    /// How many times its label the link moves; only where the claim is no real limit and is exceeded.
    #[must_use]
    pub fn times_label(&self) -> Option<f64> {
        let claim = f64::from(self.facts.speed_mbps.filter(|_| self.has_times_label())?) * 1e6;
        let times = self.rates?.peak_bits_per_s()? / claim;
        (times > 1.0).then_some(times)
    }

    /// Whether it may move more than its label, which is no real limit.
    #[must_use]
    pub fn has_times_label(&self) -> bool {
        self.basis != Basis::Real && self.facts.speed_mbps.is_some_and(|mbps| mbps > 0)
    }
}

/// A frame is padded to this, without its checksum (FCS), bytes.
const LEAST_FRAME: f64 = 60.0;
/// Bytes of a frame on the wire that the kernel does not count: checksum 4, preamble and start 8, gap 12.
const BESIDE_FRAME: f64 = 24.0;
/// What a frame may have beyond its MTU in the kernel's counters: Ethernet's header 14, a tag 4, bytes.
const AROUND_MTU: f64 = 18.0;

impl LinkMetrics {
    /// What a mean packet takes on an Ethernet wire, bytes: 84 for the smallest. The kernel's counters hold the Ethernet header
    /// and neither the checksum nor what lies between two frames. None where the link has no Ethernet frames (lo and tun count
    /// from the IP header on), and where segments are counted before they are cut (a mean above the MTU).
    #[must_use]
    pub fn wire_packet_bytes(&self) -> Option<f64> {
        self.wire_bytes(self.rates?.mean_packet_bytes()?)
    }

    /// Share of the packets that the wire could carry at this size, in the busier direction; only of a claim that is real.
    #[must_use]
    pub fn wire_share(&self) -> Option<f64> {
        let claim = f64::from(self.facts.speed_mbps.filter(|_| self.basis == Basis::Real)?) * 1e6;
        let rates = self.rates.as_ref()?;
        let share = |bits: Option<f64>, packets: Option<f64>| {
            let (bits, packets) = (bits?, packets?);
            let wire = if packets > 0.0 { self.wire_bytes(bits / 8.0 / packets)? } else { 0.0 };
            Some(packets * wire * 8.0 / claim)
        };
        let rx = share(rates.rx_bits_per_s, rates.rx_packets_per_s)?;
        Some(rx.max(share(rates.tx_bits_per_s, rates.tx_packets_per_s)?))
    }

    fn wire_bytes(&self, mean: f64) -> Option<f64> {
        let whole = mean <= f64::from(self.facts.mtu) + AROUND_MTU;
        (whole && self.facts.kind.has_frames()).then(|| mean.max(LEAST_FRAME) + BESIDE_FRAME)
    }
}

/// Every link of the newer sample, with rates over its own time between the two reads.
#[must_use]
pub fn between(previous: Option<&Sample>, next: &Sample) -> Vec<LinkMetrics> {
    let mut before = previous.map(Previous::of);
    let ticked = previous.is_some_and(|previous| previous.at_ns < next.at_ns);
    let mut counters = next.counters.iter().peekable();
    let link = |facts: &Arc<LinkFacts>| {
        while counters.next_if(|row| row.key() < facts.key()).is_some() {}
        let counters = counters.next_if(|row| row.key() == facts.key()).copied();
        let old = before.as_mut().and_then(|before| before.counters_of(facts));
        LinkMetrics {
            basis: basis(facts, &next.facts.host.kernel),
            counters,
            rates: old
                .zip(counters)
                .and_then(|(old, new)| if ticked && old == new { Some(LinkRates::still()) } else { rates(&old, &new) }),
            facts: Arc::clone(facts),
            ovs: None,
        }
    };
    next.facts.links.iter().map(link).collect()
}

impl LinkRates {
    /// Rates of zero; also of an idle link that was not read again in this tick (`source::links`).
    pub(crate) fn still() -> Self {
        Self::of(|_| Some(0.0))
    }

    /// Each by its counter's rate a second.
    fn of(rate: impl Fn(fn(&LinkCounters) -> u64) -> Option<f64>) -> Self {
        Self {
            rx_bits_per_s: rate(|row| row.rx_bytes).map(|bytes| bytes * 8.0),
            tx_bits_per_s: rate(|row| row.tx_bytes).map(|bytes| bytes * 8.0),
            rx_packets_per_s: rate(|row| row.rx_packets),
            tx_packets_per_s: rate(|row| row.tx_packets),
            rx_dropped_per_s: rate(|row| row.rx_dropped),
            tx_dropped_per_s: rate(|row| row.tx_dropped),
            rx_errors_per_s: rate(|row| row.rx_errors),
            tx_errors_per_s: rate(|row| row.tx_errors),
        }
    }
}

/// The older sample, walked in step with the newer one: both are sorted by key.
struct Previous<'a> {
    facts: std::iter::Peekable<std::slice::Iter<'a, Arc<LinkFacts>>>,
    counters: std::iter::Peekable<std::slice::Iter<'a, LinkCounters>>,
}

impl<'a> Previous<'a> {
    fn of(sample: &'a Sample) -> Self {
        Self { facts: sample.facts.links.iter().peekable(), counters: sample.counters.iter().peekable() }
    }

    /// The older counters of the same link: same ifindex, and not created anew since.
    fn counters_of(&mut self, link: &LinkFacts) -> Option<LinkCounters> {
        while self.facts.next_if(|old| old.key() < link.key()).is_some() {}
        while self.counters.next_if(|old| old.key() < link.key()).is_some() {}
        self.facts.next_if(|old| old.key() == link.key()).filter(|old| old.born == link.born)?;
        self.counters.next_if(|old| old.key() == link.key()).copied()
    }
}

/// Rates between two readings; `None` when time did not advance, or bytes or packets went backwards: the device was reset.
pub(super) fn rates(old: &LinkCounters, new: &LinkCounters) -> Option<LinkRates> {
    let seconds = seconds(old.at_ns, new.at_ns)?;
    let rates = LinkRates::of(|field| per_second(field(old), field(new), seconds));
    (rates.rx_bits_per_s.is_some() && rates.tx_bits_per_s.is_some()).then_some(rates)
}

/// Where a claimed speed comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Basis {
    /// Hardware, or a host that says so: the only claim that can limit anything.
    Real,
    /// A constant in the driver's source.
    Constant,
    /// What the link below says.
    Inherited,
    /// The largest of a bridge's ports.
    MaxOfPorts,
    /// The sum of the ports of a bond or team.
    SumOfPorts,
    /// Someone set it with ethtool.
    UserSet,
    /// The driver says nothing.
    None,
}

/// `BOND_MODE_ACTIVEBACKUP` and `BOND_MODE_BROADCAST`: the bond modes whose speed is a single port's, of the one in use
/// and of the slowest.
const BOND_OF_ONE_PORT: [u8; 2] = [1, 3];

/// The basis of a link's claim. `kernel` is the release, because tun's constant changed from 10 to 10000 in Linux 6.2.
#[must_use]
pub fn basis(link: &LinkFacts, kernel: &str) -> Basis {
    let Some(mbps) = link.speed_mbps else { return Basis::None };
    match &link.kind {
        Kind::Physical | Kind::Virtio => Basis::Real,
        Kind::Tun | Kind::Tap if link.speed_was_set || mbps != tun_constant(kernel) => Basis::UserSet,
        Kind::Bridge => Basis::MaxOfPorts,
        Kind::Bond if link.bond_mode.is_some_and(|mode| BOND_OF_ONE_PORT.contains(&mode)) => Basis::Inherited,
        Kind::Bond | Kind::Team => Basis::SumOfPorts,
        Kind::Macvlan | Kind::Macvtap | Kind::Ipvlan | Kind::Vlan | Kind::Vxlan => Basis::Inherited,
        _ if link.speed_was_set => Basis::UserSet,
        _ if link.lower.is_some() => Basis::Inherited,
        _ => Basis::Constant,
    }
}

/// What tun and tap say when nobody set anything: 10 Mb/s before Linux 6.2 (commit 598d2982b115), 10000 from then on.
fn tun_constant(kernel: &str) -> u32 {
    let mut numbers = kernel.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= (6, 2) { 10_000 } else { 10 }
}
/// Packets that a link of this kind has passed on in the direction of a path; `None` where its counters do not count that. A
/// macvtap has counted as received what it then had no room for.
pub(crate) fn passed_packets(kind: &Kind, counters: &LinkCounters, way: HopWay) -> Option<u64> {
    match way {
        HopWay::Sent => Some(counters.tx_packets),
        HopWay::Received if matches!(kind, Kind::Macvtap | Kind::Ipvtap) => {
            counters.rx_packets.checked_sub(counters.rx_dropped)
        }
        HopWay::Received => Some(counters.rx_packets),
        HopWay::Passed => None,
    }
}
