//! Where the packets of the watched flows were lost between two samples, each packet once.
//!
//! The kernel counts one lost packet in several places (each of these measured on Linux 6.18):
//! - a packet that the sender's qdisc or a veth refuses is also an `OutDiscards` of IP and a `SndbufErrors` of UDP, and it
//!   is no `OutDatagrams`;
//! - a packet that a full backlog drops is a drop of the core (`softnet_stat`), an `rx_dropped` of the link it came in
//!   through and, where that is one end of a veth, a `tx_dropped` of the other end;
//! - a qdisc's drops are in no counter of its link, and those of its children are in its own;
//! - a datagram that the receiver's socket drops is a drop of that socket, `RcvbufErrors` and `InErrors`;
//! - one that arrives damaged is a drop of that socket, `InCsumErrors` and `InErrors`.
//!
//! So a counter further from the cause gives up what the nearer one has. It computes no cause beyond the place.
//!
//! Everything is in packets, each counter's rise since it was read before. The counters of one sample are read one after
//! another, and where that takes long a rate would be over a time of its own for each: rates over different times neither
//! subtract nor sum to the packets that were lost.

mod backlog;
mod counted;
mod ends;
mod fragments;
mod gaps;
mod missing;
mod qdiscs;
mod route;
mod upcalls;

use super::links::LinkMetrics;
use super::ovs::DatapathMetrics;
use crate::sample::{CoreId, FlowPath, IpCounters, LinkKey, ProtocolCounters, Sample};
use counted::{Step, rise};
pub use fragments::Fragments;
use route::Route;
use std::collections::{BTreeMap, BTreeSet};

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
    /// IP of one namespace: no route, no memory, a broken header.
    Ip,
    /// Datagrams of which a fragment was missing.
    Reassembly,
    /// The check of the source address (`rp_filter`).
    ReversePath,
    /// Between two counters of one namespace, and none tells why.
    Between,
    /// It arrived damaged: the checksum of UDP or TCP is wrong.
    Checksum,
    /// The receiver's socket had no room.
    ReceiveBuffer,
    /// The sender's socket had no room.
    SendBuffer,
    /// Connection tracking refused it.
    Conntrack,
    /// A link that only Open vSwitch knows.
    Ovs,
    /// A datapath of Open vSwitch that could not ask ovs-vswitchd what becomes of them.
    Upcall,
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
            Self::Reassembly => "reassembly",
            Self::ReversePath => "rp_filter",
            Self::Between => "between",
            Self::Checksum => "checksum",
            Self::ReceiveBuffer => "receive_buffer",
            Self::SendBuffer => "send_buffer",
            Self::Conntrack => "conntrack",
            Self::Ovs => "ovs",
            Self::Upcall => "ovs_upcall",
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
    /// The link, of a qdisc, a link or a backlog; of a datapath that of its bridge, or its first port on the way; the one that packets came in through, of a place between.
    pub link: Option<LinkKey>,
    /// Of a place between: the link that they should have left through; none where a socket should have had them.
    pub to: Option<LinkKey>,
    /// What people call it: the link; the qdisc's kind and the link; the datapath; both links.
    pub name: Option<String>,
    /// Kind and handle of a qdisc.
    pub qdisc: Option<(String, u32)>,
    /// The core, of a backlog.
    pub core: Option<CoreId>,
    /// Packets lost between the two samples. No whole number where only a share of what is lost there is the flows'.
    pub packets: f64,
    /// Share of the packets sent; none where it is not known how many were sent.
    pub share: Option<f64>,
    /// It has been so for a second at least, or its own counter says so.
    pub stands: bool,
}

/// Everything lost on the way of the watched flows between two samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Losses {
    /// Between the two samples; 0 where there are none.
    pub seconds: f64,
    /// The places, the worst first; empty where nothing is lost or nothing is known.
    pub places: Vec<Loss>,
    /// Packets that the senders' protocols were given to send: datagrams and TCP segments of their namespaces; none without
    /// flows.
    pub sent: Option<f64>,
    /// TCP segments sent again, in the senders' namespaces.
    pub retransmits: Option<f64>,
    /// Entries that connection tracking has and may have, where it is fullest.
    pub conntrack: Option<(u64, u64)>,
    /// Packets that connection tracking calls invalid, where it does so most.
    pub invalid: f64,
    /// What the qdiscs on the way drop, sorted by link.
    pub qdiscs: Vec<QdiscDrops>,
    /// What the datapaths of Open vSwitch on the way lose because they cannot ask ovs-vswitchd, packets/s, whosever they are:
    /// by the link that stands for each.
    pub upcalls: Vec<(LinkKey, f64)>,
    /// Datagrams that are taken apart on the way.
    pub fragments: Option<Fragments>,
}

impl QdiscDrops {
    /// In both directions.
    #[must_use]
    pub fn packets_per_s(self) -> Option<f64> {
        let known = self.sent_per_s.is_some() || self.received_per_s.is_some();
        known.then(|| self.sent_per_s.unwrap_or(0.0) + self.received_per_s.unwrap_or(0.0))
    }
}

/// What the qdiscs of one link drop a second; none where it has none that is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QdiscDrops {
    /// The link.
    pub link: LinkKey,
    /// The root qdisc's, on the way out.
    pub sent_per_s: Option<f64>,
    /// Those of `ingress` or `clsact`.
    pub received_per_s: Option<f64>,
}

impl Losses {
    /// Packets lost, in all places together.
    #[must_use]
    pub fn packets(&self) -> f64 {
        self.places.iter().map(|loss| loss.packets).sum()
    }

    /// So many of these packets are how many a second.
    #[must_use]
    pub fn a_second(&self, packets: f64) -> f64 {
        if self.seconds > 0.0 { packets / self.seconds } else { 0.0 }
    }

    /// What the qdiscs of a link drop.
    #[must_use]
    pub fn of_qdiscs(&self, link: LinkKey) -> Option<QdiscDrops> {
        let at = self.qdiscs.binary_search_by_key(&link, |drops| drops.link).ok()?;
        Some(self.qdiscs[at])
    }

    /// What the datapath loses that this link stands for, packets/s.
    #[must_use]
    pub fn of_upcalls(&self, link: LinkKey) -> Option<f64> {
        let here = || self.upcalls.iter().filter(|(at, _)| *at == link).map(|(_, lost)| lost);
        here().next().map(|_| here().sum())
    }
}

/// What needs more than two samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LossTrack {
    /// By namespace.
    receivers: BTreeMap<u64, ends::Ahead>,
    missing: missing::Missing,
    upcalls: upcalls::Upcalls,
}

impl LossTrack {
    /// What was lost between two samples; `links` and `datapaths` are what was derived of the newer one.
    pub fn observe(
        &mut self,
        previous: Option<&Sample>,
        next: &Sample,
        links: &[LinkMetrics],
        datapaths: &[DatapathMetrics],
    ) -> Losses {
        let losses = previous.and_then(|previous| self.between(Step::of(previous, next, links)?, datapaths));
        losses.unwrap_or_else(|| {
            *self = Self::default();
            Losses::default()
        })
    }

    fn between(&mut self, step: Step<'_>, datapaths: &[DatapathMetrics]) -> Option<Losses> {
        let Step { previous, next, links, seconds } = step;
        let spans: Vec<Span<'_>> = next.protocols.iter().filter_map(|now| Span::of(previous, now)).collect();
        let route = Route::of(previous, next, links, &spans).filter(|_| !next.protocols.is_empty())?;
        let paths = if next.flows.is_empty() { &previous.paths } else { &next.paths };
        let mut places = Vec::new();
        let queued = qdiscs::lost(&step, &route);
        let refused = backlog::links(&step, &route, &spans, &mut places);
        for span in &spans {
            ends::sender(span, &route, &queued, &refused, &mut places);
            ends::receiver(&step, span, self.receivers.entry(span.now.netns).or_default(), &mut places);
            ends::between(span, &mut places);
        }
        places.extend(queued);
        let read = gaps::Read { paths, step, spans: &spans, filling: &qdiscs::filling(previous, next) };
        // While nobody sent, protocols were read less often than links: those of a flow's first sample do not compare.
        let is_uneven = previous.flows.is_empty() && spans.iter().any(|span| span.seconds > backlog::LONGER * seconds);
        let missed = gaps::missed(&read, None, &route, &places).filter(|_| !is_uneven);
        let crossed = upcalls::crossed(datapaths, &next.ovs, paths);
        let compares = missed.filter(|_| gaps::is_of_datagrams(paths, &spans));
        let unasked = self.upcalls.observe(&step, &crossed, compares);
        let missed = missed.map(|missed| missed - unasked.iter().map(|loss| loss.packets).sum::<f64>());
        places.extend(unasked);
        let sent = route.sum(&spans, Span::sent);
        let gaps = gaps::gaps(&read, &route, &places);
        places.extend(self.missing.observe((next.at_ns, seconds), missed, sent, gaps));
        let told = places.iter().map(|loss| loss.packets).sum();
        for span in &spans {
            ends::not_put_together(span, told, &mut places);
        }
        places.retain(|loss| loss.packets > 0.0);
        places.sort_by(|one, other| other.packets.total_cmp(&one.packets));
        let is_theirs = self.missing.is_theirs();
        for loss in &mut places {
            let sent = sent_through(loss, paths, &spans).filter(|&sent| sent > 0.0 && is_theirs);
            // Packets under way when a tick ends are lost in the next one.
            loss.share = sent.map(|sent| (loss.packets / sent).min(1.0));
        }
        name(&mut places, &step);
        let invalid = spans.iter().map(|span| span.lost(|of| of.conntrack.map_or(0, |conntrack| conntrack.invalid)));
        Some(Losses {
            seconds,
            places,
            sent,
            conntrack: fullest(next),
            invalid: invalid.fold(0.0, f64::max),
            retransmits: route.sum(&spans, |span| span.rise(|of| of.tcp_retrans_segs)),
            qdiscs: qdiscs::drops(previous, next),
            upcalls: crossed.iter().filter_map(|at| Some((at.link, at.lost_per_s()?))).collect(),
            fragments: Fragments::of(paths, links, &spans),
        })
    }
}

/// What those namespaces send whose flows go through the place of a loss; none where one is not known.
fn sent_through(loss: &Loss, paths: &[FlowPath], spans: &[Span<'_>]) -> Option<f64> {
    let is_there = |link: LinkKey| match loss.link {
        Some(place) => place == link,
        None => loss.netns == Some(link.netns),
    };
    let goes_through = |path: &&FlowPath| {
        path.hops.iter().any(|hop| is_there(hop.link)) || (loss.link.is_none() && loss.netns == Some(path.netns))
    };
    let through: BTreeSet<u64> = paths.iter().filter(goes_through).map(|path| path.netns).collect();
    // A place on no link of a path, as a queue below one, is on the way of all.
    let all = || paths.iter().map(|path| path.netns).collect();
    let senders: BTreeSet<u64> = if through.is_empty() { all() } else { through };
    let sent = |netns: &u64| spans.iter().find(|span| span.now.netns == *netns)?.sent();
    senders.iter().map(sent).sum()
}

/// Calls the places between by their links.
fn name(places: &mut [Loss], step: &Step<'_>) {
    for loss in places.iter_mut().filter(|loss| loss.place == LossPlace::Between) {
        let name = |key: Option<LinkKey>| key.and_then(|key| step.name(key));
        let end = |key| name(key).unwrap_or_else(|| "the socket".to_owned());
        loss.name = Some(format!("{} → {}", end(loss.link), end(loss.to)));
    }
}

/// Entries that connection tracking has and may have, where it is fullest.
fn fullest(next: &Sample) -> Option<(u64, u64)> {
    let tables = next.protocols.iter().filter_map(|now| now.conntrack).filter(|table| table.max > 0);
    tables
        .max_by_key(|table| u128::from(table.count) * 1000 / u128::from(table.max))
        .map(|table| (table.count, table.max))
}

/// The protocols of one namespace in both samples.
struct Span<'a> {
    before: &'a ProtocolCounters,
    now: &'a ProtocolCounters,
    /// Between the two reads of them.
    seconds: f64,
}

impl<'a> Span<'a> {
    fn of(previous: &'a Sample, now: &'a ProtocolCounters) -> Option<Self> {
        let at = previous.protocols.binary_search_by_key(&now.netns, |before| before.netns).ok()?;
        let before = &previous.protocols[at];
        Some(Self { before, now, seconds: super::seconds(before.at_ns, now.at_ns)? })
    }

    /// By how much a counter rose; none where it was reset.
    fn rise(&self, of: impl Fn(&ProtocolCounters) -> u64) -> Option<f64> {
        rise(of(self.before), of(self.now))
    }

    /// The same, nothing where it is not known.
    fn lost(&self, of: impl Fn(&ProtocolCounters) -> u64) -> f64 {
        self.rise(of).unwrap_or(0.0)
    }

    /// By how much a counter of IP rose; none where it is not told.
    fn ip(&self, of: impl Fn(&IpCounters) -> u64) -> Option<f64> {
        rise(of(self.before.ip.as_ref()?), of(self.now.ip.as_ref()?))
    }

    /// The same a second.
    fn ip_per_s(&self, of: impl Fn(&IpCounters) -> u64) -> Option<f64> {
        self.ip(of).map(|packets| packets / self.seconds)
    }

    /// What UDP and TCP sent, packets: a datagram that was refused is only a `SndbufErrors`, and a segment that is sent again
    /// is no `OutSegs`.
    fn sent(&self) -> Option<f64> {
        self.rise(|of| total([of.udp_out_datagrams, of.udp_sndbuf_errors, of.tcp_out_segs, of.tcp_retrans_segs]))
    }
}

impl Loss {
    fn in_space(place: LossPlace, netns: u64, packets: f64) -> Self {
        Self {
            place,
            netns: Some(netns),
            link: None,
            to: None,
            name: None,
            qdisc: None,
            core: None,
            packets,
            share: None,
            stands: true,
        }
    }

    fn on_link(place: LossPlace, link: LinkKey, name: String, packets: f64) -> Self {
        Self { link: Some(link), name: Some(name), ..Self::in_space(place, link.netns, packets) }
    }
}

/// A sum of counters; a recording may hold any number.
fn total<const N: usize>(counters: [u64; N]) -> u64 {
    counters.into_iter().fold(0, u64::saturating_add)
}

/// What is left of `whole` when `taken` of it belongs elsewhere.
fn left(whole: f64, taken: f64) -> f64 {
    let rest = whole - taken.min(whole);
    if rest < BELIEVED * taken.min(whole) { 0.0 } else { rest }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_missing;
