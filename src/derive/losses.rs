//! Where the packets of the watched flows were lost between two samples, each packet once.
//!
//! Where the kernel is asked (`kernel`, by BPF), it says of each dropped packet the place, the reason and the function; only
//! what never was a buffer of the kernel's comes from counters: errors of devices, ports and upcalls of Open vSwitch.
//! Elsewhere losses are what counters of drops say, and nothing is concluded from differences between other counters.
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
pub(in crate::derive) mod kernel;
mod qdiscs;
pub mod reasons;
mod route;
mod upcalls;

use super::links::LinkMetrics;
use super::ovs::DatapathMetrics;
use crate::sample::{CoreId, FlowPath, IpCounters, LinkKey, Proto, ProtocolCounters, Sample};
use counted::{Step, rise};
pub use fragments::Fragments;
use route::Route;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is left of one counter after another has taken its share is believed from this share of the other on: they are read
/// at slightly different instants.
const BELIEVED: f64 = 0.2;
/// From this share of a namespace's datagrams on others send there.
const OTHERS: f64 = 0.1;

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
    /// A rule of the firewall (nftables, iptables).
    Firewall,
    /// A filter of traffic control (`tc filter`), as policing is.
    TrafficControl,
    /// Another rule: XDP, a cgroup's or a socket's program, a security module.
    Policy,
    /// A bridge: a VLAN that a port does not let in, a port that does not forward.
    Bridge,
    /// No answer to whose address it was, or too many packets waiting for one (ARP, neighbour discovery).
    Neighbour,
    /// No socket took it.
    NoSocket,
    /// TCP itself.
    Tcp,
    /// Somewhere in the kernel: a reason that vnettop does not know.
    Kernel,
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
            Self::Firewall => "firewall",
            Self::TrafficControl => "tc",
            Self::Policy => "policy",
            Self::Bridge => "bridge",
            Self::Neighbour => "neighbour",
            Self::NoSocket => "no_socket",
            Self::Tcp => "tcp",
            Self::Kernel => "kernel",
            Self::Checksum => "checksum",
            Self::ReceiveBuffer => "receive_buffer",
            Self::SendBuffer => "send_buffer",
            Self::Conntrack => "conntrack",
            Self::Ovs => "ovs",
            Self::Upcall => "ovs_upcall",
        }
    }
}

impl LossPlace {
    /// Some counter of drops has what is lost there.
    fn is_counted(self) -> bool {
        let uncounted = [Self::Firewall, Self::TrafficControl, Self::Policy, Self::Bridge, Self::Neighbour];
        !uncounted.contains(&self) && ![Self::NoSocket, Self::Tcp, Self::Kernel].contains(&self)
    }
}

/// What was lost at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// What kind of place.
    pub place: LossPlace,
    /// Inode of the namespace it is in.
    pub netns: Option<u64>,
    /// The link, of a qdisc, a link or a backlog, and wherever the kernel says at which one a packet was; of a datapath that
    /// of its bridge, or its first port on the way.
    pub link: Option<LinkKey>,
    /// What people call it: the link; the qdisc's kind and the link; the datapath.
    pub name: Option<String>,
    /// Kind and handle of a qdisc.
    pub qdisc: Option<(String, u32)>,
    /// The core, of a backlog.
    pub core: Option<CoreId>,
    /// Packets lost between the two samples. No whole number where only a share of what is lost there is the flows'.
    pub packets: f64,
    /// Share of the packets sent; none where it is not known how many were sent.
    pub share: Option<f64>,
    /// The kernel's reason, `enum skb_drop_reason` without its prefix (Linux 5.17); none where counters tell.
    pub reason: Option<Arc<str>>,
    /// The kernel's function that dropped it; none where it does not name it.
    pub function: Option<Arc<str>>,
    /// A rule that somebody set refused it.
    pub refused: bool,
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
    tracked: kernel::Tracked,
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
        let told = kernel::drops(next);
        let route = match Route::of(previous, next, links, &spans) {
            Some(route) if told.is_some() || !next.protocols.is_empty() => route,
            // What the kernel tells late of a flow that has ended counts too.
            None if told.is_some() => Route::default(),
            _ => return None,
        };
        let paths = if next.flows.is_empty() { &previous.paths } else { &next.paths };
        let mut places = Vec::new();
        match told {
            Some(told) => {
                let is_new = kernel::drops(previous).is_none();
                if is_new {
                    // They were attached in between: before that only counters know.
                    self.counted(&step, &route, &spans, &mut places);
                }
                self.tracked.lost(&step, &spans, told, is_new, &mut places);
                if !is_new {
                    backlog::of_devices(&step, &route, told, &mut places);
                }
            }
            None => self.counted(&step, &route, &spans, &mut places),
        }
        let crossed = upcalls::crossed(datapaths, &next.ovs, paths);
        places.extend(upcalls::lost(&step, &crossed));
        places.retain(|loss| loss.packets > 0.0);
        places.sort_by(|one, other| other.packets.total_cmp(&one.packets));
        let is_theirs = !others_send(paths, &spans, places.iter().map(|loss| loss.packets).sum());
        for loss in places.iter_mut().filter(|loss| loss.place != LossPlace::Upcall && is_theirs) {
            let sent = sent_through(loss, paths, &spans).filter(|&sent| sent > 0.0);
            // Packets under way when a tick ends are lost in the next one.
            loss.share = sent.map(|sent| (loss.packets / sent).min(1.0));
        }
        let invalid = spans.iter().map(|span| span.lost(|of| of.conntrack.map_or(0, |conntrack| conntrack.invalid)));
        Some(Losses {
            seconds,
            places,
            sent: route.sum(&spans, Span::sent),
            conntrack: fullest(next),
            invalid: invalid.fold(0.0, f64::max),
            retransmits: route.sum(&spans, |span| span.rise(|of| of.tcp_retrans_segs)),
            qdiscs: qdiscs::drops(previous, next),
            upcalls: crossed.iter().filter_map(|at| Some((at.link, at.lost_per_s()?))).collect(),
            fragments: Fragments::of(paths, links, &spans),
        })
    }

    /// What counters of drops say, each packet where it was lost first.
    fn counted(&mut self, step: &Step<'_>, route: &Route, spans: &[Span<'_>], places: &mut Vec<Loss>) {
        let queued = qdiscs::lost(step, route);
        let refused = backlog::links(step, route, spans, places);
        for span in spans {
            ends::sender(span, route, &queued, &refused, places);
            ends::receiver(step, span, self.receivers.entry(span.now.netns).or_default(), places);
            ends::between(span, &queued, &refused, places);
        }
        places.extend(queued);
        let told = places.iter().map(|loss| loss.packets).sum();
        for span in spans {
            ends::not_put_together(span, told, places);
        }
    }
}

/// Whether many of the datagrams that the senders' namespaces sent neither arrived where the flows end nor were lost on their
/// way: those are others', and what share of the flows' a loss is cannot be told.
fn others_send(paths: &[FlowPath], spans: &[Span<'_>], lost: f64) -> bool {
    let datagrams = || paths.iter().filter(|path| path.proto == Proto::Udp);
    let of = |netns: &u64| spans.iter().find(|span| span.now.netns == *netns && span.now.ip.is_some());
    let sum = |ends: BTreeSet<u64>, of_one: fn(&Span<'_>) -> f64| ends.iter().filter_map(of).map(of_one).sum::<f64>();
    let given = |span: &Span<'_>| span.lost(|of| total([of.udp_out_datagrams, of.udp_sndbuf_errors]));
    let sent = sum(datagrams().map(|path| path.netns).collect(), given);
    let ends = datagrams().filter_map(|path| path.hops.last()).map(|hop| hop.link.netns).collect();
    let arrived = sum(ends, |span| span.lost(|of| total([of.udp_in_datagrams, of.udp_in_errors, of.udp_no_ports])));
    // While next to nothing arrives, that is the flows' own trouble.
    arrived > OTHERS * sent && sent - arrived - lost > OTHERS * sent
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
        Self::somewhere(place, Some(netns), packets)
    }

    fn somewhere(place: LossPlace, netns: Option<u64>, packets: f64) -> Self {
        Self {
            place,
            netns,
            link: None,
            name: None,
            qdisc: None,
            core: None,
            packets,
            share: None,
            reason: None,
            function: None,
            refused: false,
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
pub(in crate::derive) mod tests;
