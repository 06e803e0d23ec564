//! Where the packets of the watched flows were lost between two samples, each packet once.
//!
//! The kernel counts one lost packet in several places (each of these measured on Linux 6.18):
//! - a packet that the sender's qdisc or a veth refuses is also an `OutDiscards` of IP and a `SndbufErrors` of UDP, and it
//!   is no `OutDatagrams`;
//! - a packet that a full backlog drops is a drop of the core (`softnet_stat`), an `rx_dropped` of the link it came in
//!   through and, where that is one end of a veth, a `tx_dropped` of the other end;
//! - a qdisc's drops are in no counter of its link, and those of its children are in its own;
//! - a datagram that the receiver's socket drops is a drop of that socket, `RcvbufErrors` and `InErrors`.
//!
//! So a counter further from the cause gives up what the nearer one has. It computes no cause beyond the place.

mod backlog;
mod ends;
mod route;

use super::links::LinkMetrics;
use super::per_second;
use crate::sample::{CoreId, LinkKey, ProtocolCounters, QdiscCounters, Sample};
use route::Route;

/// What is left of one counter after another has taken its share is believed from this share of the other on: they are read
/// at slightly different instants.
const BELIEVED: f64 = 0.2;

/// Where packets can be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossPlace {
    /// A qdisc: its queue is full, or it is there to drop.
    Qdisc,
    /// A link refused to send or dropped on receipt.
    Link,
    /// A core's queue of received packets was full (`net.core.netdev_max_backlog`).
    Backlog,
    /// IP of one namespace: no route, no memory, a fragment missing.
    Ip,
    /// The receiver's socket had no room.
    ReceiveBuffer,
    /// The sender's socket had no room.
    SendBuffer,
    /// Connection tracking refused it.
    Conntrack,
    /// A link that only Open vSwitch knows.
    Ovs,
}

impl LossPlace {
    /// The word written to JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Qdisc => "qdisc",
            Self::Link => "link",
            Self::Backlog => "backlog",
            Self::Ip => "ip",
            Self::ReceiveBuffer => "receive_buffer",
            Self::SendBuffer => "send_buffer",
            Self::Conntrack => "conntrack",
            Self::Ovs => "ovs",
        }
    }
}

/// What was lost at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// What kind of place.
    pub place: LossPlace,
    /// Inode of the namespace it is in.
    pub netns: Option<u64>,
    /// The link, of a qdisc, a link or a backlog.
    pub link: Option<LinkKey>,
    /// What it is called: the link; the qdisc's kind and the link.
    pub name: Option<String>,
    /// The core, of a backlog.
    pub core: Option<CoreId>,
    /// Packets lost a second.
    pub packets_per_s: f64,
    /// Share of the packets sent; none where it is not known how many were sent.
    pub share: Option<f64>,
}

/// Everything lost on the way of the watched flows between two samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Losses {
    /// The places, the worst first; empty where nothing is lost or nothing is known.
    pub places: Vec<Loss>,
    /// Packets that the senders' protocols were given to send, a second: datagrams and TCP segments of their namespaces; none
    /// without flows.
    pub sent_per_s: Option<f64>,
    /// TCP segments sent again a second, in the senders' namespaces.
    pub retransmits_per_s: Option<f64>,
    /// Entries that connection tracking has and may have, where it is fullest.
    pub conntrack: Option<(u64, u64)>,
}

impl Losses {
    /// Packets lost a second, in all places together.
    #[must_use]
    pub fn packets_per_s(&self) -> f64 {
        self.places.iter().map(|loss| loss.packets_per_s).sum()
    }
}

/// What was lost between two samples; `links` are what was derived of the newer one.
#[must_use]
pub fn between(previous: Option<&Sample>, next: &Sample, links: &[LinkMetrics]) -> Losses {
    let Some(previous) = previous.filter(|_| !next.protocols.is_empty()) else { return Losses::default() };
    let spans: Vec<Span<'_>> = next.protocols.iter().filter_map(|now| Span::of(previous, now)).collect();
    let Some(route) = Route::of(previous, next, links, &spans) else { return Losses::default() };
    let mut losses = Vec::new();
    let queued = qdiscs(previous, next, &route, links);
    let refused = backlog::links(previous, next, &route, links, &mut losses);
    for span in &spans {
        ends::sender(span, &route, &queued, &refused, &mut losses);
        ends::receiver(previous, next, span, &mut losses);
        ends::between(span, &mut losses);
    }
    losses.extend(queued);
    losses.retain(|loss| loss.packets_per_s > 0.0);
    losses.sort_by(|one, other| other.packets_per_s.total_cmp(&one.packets_per_s));
    let senders: Vec<&Span<'_>> = spans.iter().filter(|span| route.senders.contains(&span.now.netns)).collect();
    let sent_per_s = senders.iter().map(|span| span.sent()).sum::<Option<f64>>().filter(|_| !senders.is_empty());
    for loss in &mut losses {
        // Packets under way when a tick ends are lost in the next one.
        let share = sent_per_s.filter(|&sent| sent > 0.0).map(|sent| loss.packets_per_s / sent);
        loss.share = share.map(|share| share.min(1.0));
    }
    let again = senders.iter().map(|span| span.rise(|of| of.tcp_retrans_segs)).sum::<Option<f64>>();
    let tables = next.protocols.iter().filter_map(|now| now.conntrack).filter(|table| table.max > 0);
    let conntrack = tables.max_by_key(|table| table.count * 1000 / table.max).map(|table| (table.count, table.max));
    Losses { places: losses, sent_per_s, conntrack, retransmits_per_s: again.filter(|_| !senders.is_empty()) }
}

/// The protocols of one namespace in both samples.
struct Span<'a> {
    before: &'a ProtocolCounters,
    now: &'a ProtocolCounters,
    seconds: f64,
}

impl<'a> Span<'a> {
    fn of(previous: &'a Sample, now: &'a ProtocolCounters) -> Option<Self> {
        let at = previous.protocols.binary_search_by_key(&now.netns, |before| before.netns).ok()?;
        let before = &previous.protocols[at];
        Some(Self { before, now, seconds: super::seconds(before.at_ns, now.at_ns)? })
    }

    /// How much a counter rose a second.
    fn rise(&self, of: impl Fn(&ProtocolCounters) -> u64) -> Option<f64> {
        per_second(of(self.before), of(self.now), self.seconds)
    }

    /// The same, nothing where it is not known.
    fn lost(&self, of: impl Fn(&ProtocolCounters) -> u64) -> f64 {
        self.rise(of).unwrap_or(0.0)
    }

    /// What was given to UDP and to TCP to send, packets/s: a datagram that was refused is only a `SndbufErrors`.
    fn sent(&self) -> Option<f64> {
        self.rise(|of| of.udp_out_datagrams + of.udp_sndbuf_errors + of.tcp_out_segs)
    }
}

impl Loss {
    fn in_space(place: LossPlace, netns: u64, packets_per_s: f64) -> Self {
        Self { place, netns: Some(netns), link: None, name: None, core: None, packets_per_s, share: None }
    }

    fn on_link(place: LossPlace, link: LinkKey, name: String, packets_per_s: f64) -> Self {
        Self { link: Some(link), name: Some(name), ..Self::in_space(place, link.netns, packets_per_s) }
    }
}

/// What is left of `whole` when `taken` of it belongs elsewhere.
fn left(whole: f64, taken: f64) -> f64 {
    let rest = whole - taken.min(whole);
    if rest < BELIEVED * taken.min(whole) { 0.0 } else { rest }
}

/// Drops of the root qdiscs that the flows' packets leave through, and of what stands before a link (`clsact`, `ingress`).
fn qdiscs(previous: &Sample, next: &Sample, route: &Route, links: &[LinkMetrics]) -> Vec<Loss> {
    let lost = |now: &QdiscCounters| {
        let stands =
            if now.parent == ROOT { route.sent(now.link) } else { now.parent == INGRESS && route.has(now.link) };
        let at = previous.qdiscs.binary_search_by_key(&(now.link, now.handle), |one| (one.link, one.handle)).ok()?;
        let before = previous.qdiscs.get(at).filter(|before| stands && before.kind == now.kind)?;
        let seconds = super::seconds(before.at_ns, now.at_ns)?;
        let packets = wrapping_rise(before.drops, now.drops)?;
        let name = format!("{} on {}", now.kind, route::name(links, now.link)?);
        Some(Loss::on_link(LossPlace::Qdisc, now.link, name, packets as f64 / seconds))
    };
    next.qdiscs.iter().filter_map(lost).collect()
}

/// `TC_H_ROOT`, and `TC_H_INGRESS`, which `clsact` has too.
const ROOT: u32 = u32::MAX;
const INGRESS: u32 = 0xffff_fff1;

/// How much a counter of 32 bits rose; none where it was reset.
fn wrapping_rise(from: u64, to: u64) -> Option<u64> {
    const WRAP: u64 = 1 << 32;
    match to.checked_sub(from) {
        Some(rise) => Some(rise),
        // It went once around, if it was near the end.
        None if from < WRAP && from > WRAP / 2 && to < WRAP / 2 => Some(to + WRAP - from),
        None => None,
    }
}

#[cfg(test)]
mod tests;
