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
pub(crate) mod counted;
mod early_rows;
mod ends;
mod forwarder;
mod fragments;
pub(crate) mod kernel;
mod known_qdisc;
mod loss;
pub(crate) mod other_host;
mod packet_sockets;
pub mod place_of_drop;
pub(crate) mod qdiscs;
mod route;
pub(crate) mod same_ends;
mod sent;
mod tracing_start;
mod upcalls;
mod vpn;

use super::flow::FlowMetrics;
use super::machine::MachineMetrics;
use super::share::share;
use counted::{SampleStep, rise};
pub use fragments::Fragments;
pub use known_qdisc::KnownQdisc;
pub(crate) use known_qdisc::QdiscLoad;
pub use loss::{Loss, LossPlace, Losses, QdiscDrops};
use route::Route;
use sent::SentPackets;
use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{FlowPath, IpCounters, LinkKey, Proto, ProtocolCounters, Sample, row_of};

/// Least remainder of a counter that is believed, share of what another counter already explains: both are read at different
/// instants.
const BELIEVED: f64 = 0.2;
/// From this share of a namespace's datagrams on others send there.
const OTHERS: f64 = 0.1;

/// What needs more than two samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LossTrack {
    /// By namespace.
    receivers: BTreeMap<u64, ends::CounterSkew>,
    tracked: kernel::ConntrackDrops,
    tracing_start: tracing_start::TracingStart,
    early_rows: early_rows::EarlyRows,
    /// Counters told what was lost in the tick before, while the programs were there already.
    is_counted: bool,
    forwarders: forwarder::Forwarders,
    /// Since packets were lost last, s.
    quiet_s: Option<f64>,
    /// The worst place then.
    last: Option<Loss>,
}

impl LossTrack {
    /// What was lost between two samples; `machine` and `flow` are what was derived of the newer one.
    pub fn observe(
        &mut self,
        previous: Option<&Sample>,
        next: &Sample,
        machine: &MachineMetrics,
        flow: &FlowMetrics,
    ) -> Losses {
        let losses =
            previous.and_then(|previous| self.between(SampleStep::of(previous, next, &machine.links)?, machine, flow));
        losses.unwrap_or_else(|| {
            *self = Self::default();
            Losses::default()
        })
    }

    fn between(&mut self, step: SampleStep<'_>, machine: &MachineMetrics, flow: &FlowMetrics) -> Option<Losses> {
        let SampleStep { previous, next, links, seconds } = step;
        let mut spans: Vec<ProtocolSpan<'_>> =
            next.protocols.iter().filter_map(|now| ProtocolSpan::of(previous, now)).collect();
        self.tracked.count(&step, &spans);
        // While no path is known, namespaces without flows are read too.
        spans.retain(|span| is_on_way(span.now.netns, previous) || is_on_way(span.now.netns, next));
        let reported = counted::drops(next);
        let route = match Route::of(previous, next, links, &spans) {
            Some(route) if reported.is_some() || !next.protocols.is_empty() => route,
            // Drops that the kernel reports after a flow has ended count too.
            None if reported.is_some() => Route::default(),
            _ => return None,
        };
        let paths = if next.flows.is_empty() { &previous.facts.paths } else { &next.facts.paths };
        let crossed = upcalls::crossed(&machine.datapaths, &next.facts.ovs, paths);
        let is_early = self.early_rows.observe(&step);
        // Until the programs were attached only counters know; rows that come late have that time as well.
        let is_new = reported.is_none() || counted::drops(previous).is_none() || (is_early && self.is_counted);
        self.is_counted = is_new && reported.is_some();
        let mut places = self.all(&step, is_new, &route, &spans, paths);
        let unasked = upcalls::lost(&step, &crossed);
        if !unasked.is_empty() {
            places.retain(|loss| loss.function.as_deref() != Some(upcalls::UNHEARD));
        }
        places.extend(unasked);
        places.retain(|loss| loss.packets > 0.0);
        places.sort_by(|one, other| other.packets.total_cmp(&one.packets));
        self.quiet_s = if places.is_empty() { self.quiet_s.map(|quiet_s| quiet_s + seconds) } else { Some(0.0) };
        let sent = SentPackets::of(previous, next, &flow.connections, &spans);
        if is_new || !is_early {
            add_shares(&mut places, paths, &spans, &sent);
        }
        if self.is_counted {
            // What was sent in the whole time says nothing of what was lost since the programs were attached.
            places.iter_mut().filter(|loss| !loss.place.is_counted()).for_each(|loss| loss.share = None);
        }
        self.last = places.first().cloned().or_else(|| self.last.take());
        let invalid =
            spans.iter().map(|span| span.rise_or_zero(|of| of.conntrack.map_or(0, |conntrack| conntrack.invalid)));
        Some(Losses {
            seconds,
            places,
            sent: route.sent(&sent),
            quiet_s: self.quiet_s,
            last: self.last.clone(),
            conntrack: fullest(next),
            invalid: invalid.fold(0.0, f64::max),
            retransmits: route.sum(&spans, |span| span.rise(|of| of.tcp_retrans_segs)),
            qdiscs: qdiscs::drops(previous, next),
            upcalls: crossed.iter().filter_map(|(link, datapath)| Some((*link, datapath.rates?.lost_per_s))).collect(),
            fragments: Fragments::of(paths, links, &spans),
        })
    }

    /// Every loss but those of upcalls, in no order; `is_new`: counters tell what they know, over the whole time.
    fn all(
        &mut self,
        step: &SampleStep<'_>,
        is_new: bool,
        route: &Route,
        spans: &[ProtocolSpan<'_>],
        paths: &[FlowPath],
    ) -> Vec<Loss> {
        let mut places = Vec::new();
        let reported = counted::drops(step.next);
        if is_new {
            self.counted(step, route, spans, &mut places);
            self.tracing_start.begin(&places);
        }
        if let Some(reported) = reported {
            self.tracked.add_kernel_losses(step, reported, is_new, &mut places);
            if !is_new {
                if self.tracing_start.is_open() {
                    self.tracing_start.settle(&qdiscs::lost(step, route), &mut places);
                }
                backlog::of_devices(step, route, reported, &mut places);
            }
        }
        vpn::lost(step, paths, spans, &mut places);
        packet_sockets::lost(step, paths, &mut places);
        self.forwarders.add(step, paths, &mut places);
        places
    }

    /// What counters of drops say, each packet where it was lost first.
    fn counted(&mut self, step: &SampleStep<'_>, route: &Route, spans: &[ProtocolSpan<'_>], places: &mut Vec<Loss>) {
        let queued = qdiscs::lost(step, route);
        let refused = backlog::links(step, route, spans, places);
        for span in spans {
            let netns = span.now.netns;
            let queued: f64 = queued.iter().filter(|loss| loss.netns == Some(netns)).map(|loss| loss.packets).sum();
            let refused = queued + refused.get(&netns).copied().unwrap_or(0.0);
            if route.senders.contains(&netns) {
                ends::sender(span, refused, places);
            }
            ends::receiver(step, span, self.receivers.entry(netns).or_default(), places);
            ends::between(span, refused, places);
        }
        places.extend(queued);
        let reported = places.iter().map(|loss| loss.packets).sum();
        for span in spans {
            ends::not_put_together(span, reported, places);
        }
    }
}

/// Whether a flow ends in a namespace or crosses it.
fn is_on_way(netns: u64, sample: &Sample) -> bool {
    let crosses = |path: &FlowPath| path.hops.iter().any(|hop| hop.link.netns == netns);
    sample.flows.iter().any(|flow| flow.netns == netns) || sample.facts.paths.iter().any(crosses)
}

/// Whether many of the datagrams that the senders' namespaces sent neither arrived where the flows end nor were lost on their
/// path: they are others', and the flows' lost share is not known.
fn others_send(paths: &[FlowPath], spans: &[ProtocolSpan<'_>], lost: f64) -> bool {
    let datagrams = || paths.iter().filter(|path| path.proto == Proto::Udp);
    let of = |netns: &u64| spans.iter().find(|span| span.now.netns == *netns && span.now.ip.is_some());
    let sum =
        |ends: BTreeSet<u64>, of_one: fn(&ProtocolSpan<'_>) -> f64| ends.iter().filter_map(of).map(of_one).sum::<f64>();
    let given = |span: &ProtocolSpan<'_>| span.rise_or_zero(|of| total([of.udp_out_datagrams, of.udp_sndbuf_errors]));
    let sent = sum(datagrams().map(|path| path.netns).collect(), given);
    let ends = datagrams().filter_map(|path| path.hops.last()).map(|hop| hop.link.netns).collect();
    let arrived =
        sum(ends, |span| span.rise_or_zero(|of| total([of.udp_in_datagrams, of.udp_in_errors, of.udp_no_ports])));
    // While next to nothing arrives, that is the flows' own trouble.
    arrived > OTHERS * sent && sent - arrived - lost > OTHERS * sent
}

/// Adds to each loss its share of the packets sent, when that is known.
fn add_shares(places: &mut [Loss], paths: &[FlowPath], spans: &[ProtocolSpan<'_>], sent: &SentPackets) {
    let says_itself = |path: &FlowPath| sent.itself(path.netns).is_some();
    if !paths.iter().all(says_itself) && others_send(paths, spans, places.iter().map(|loss| loss.packets).sum()) {
        return;
    }
    for loss in places.iter_mut().filter(|loss| loss.place != LossPlace::Upcall && loss.share.is_none()) {
        let sent = sent_through(loss, paths, sent).filter(|&sent| sent > 0.0);
        loss.share = sent.and_then(|sent| share(loss.packets, sent));
    }
}

/// Packets sent by flows of the namespaces that send through the place of a loss; `None` when one of them is not known.
fn sent_through(loss: &Loss, paths: &[FlowPath], sent: &SentPackets) -> Option<f64> {
    let is_there = |link: LinkKey| match loss.link {
        Some(place) => place == link,
        None => loss.netns == Some(link.netns),
    };
    let goes_through = |path: &&FlowPath| {
        path.hops.iter().any(|hop| is_there(hop.link)) || (loss.link.is_none() && loss.netns == Some(path.netns))
    };
    let through: BTreeSet<u64> = paths.iter().filter(goes_through).map(|path| path.netns).collect();
    // A place on no link of a path, such as a queue below one, counts as crossed by all paths.
    let all = || paths.iter().map(|path| path.netns).collect();
    let senders: BTreeSet<u64> = if through.is_empty() { all() } else { through };
    senders.iter().map(|netns| sent.from(*netns)).sum()
}

/// Entries that connection tracking has and may have, where it is fullest.
fn fullest(next: &Sample) -> Option<(u64, u64)> {
    let tables = next.protocols.iter().filter_map(|now| now.conntrack).filter(|table| table.max > 0);
    let fullest = tables.max_by_key(|table| u128::from(table.count) * 1000 / u128::from(table.max));
    fullest.map(|table| (table.count, table.max))
}

/// The protocols of one namespace in both samples.
struct ProtocolSpan<'a> {
    before: &'a ProtocolCounters,
    now: &'a ProtocolCounters,
    /// Between the two reads of them.
    seconds: f64,
}

impl<'a> ProtocolSpan<'a> {
    fn of(previous: &'a Sample, now: &'a ProtocolCounters) -> Option<Self> {
        let before = row_of(&previous.protocols, &now.netns, |before| before.netns)?;
        Some(Self { before, now, seconds: super::rate::seconds(before.at_ns, now.at_ns)? })
    }

    /// By how much a counter rose; none where it was reset.
    fn rise(&self, of: impl Fn(&ProtocolCounters) -> u64) -> Option<f64> {
        rise(of(self.before), of(self.now))
    }

    /// By how much a counter rose; 0 where that is not known.
    fn rise_or_zero(&self, of: impl Fn(&ProtocolCounters) -> u64) -> f64 {
        self.rise(of).unwrap_or(0.0)
    }

    /// By how much a counter of IP rose; none where it is not told.
    fn ip(&self, of: impl Fn(&IpCounters) -> u64) -> Option<f64> {
        rise(of(self.before.ip.as_ref()?), of(self.now.ip.as_ref()?))
    }

    /// Rise of a counter of IP a second; `None` when it is not told.
    fn ip_per_s(&self, of: impl Fn(&IpCounters) -> u64) -> Option<f64> {
        self.ip(of).map(|packets| packets / self.seconds)
    }

    /// What UDP and TCP sent, packets: a datagram that was refused is only a `SndbufErrors`, and a segment that is sent again
    /// is no `OutSegs`.
    fn sent(&self) -> Option<f64> {
        self.rise(|of| total([of.udp_out_datagrams, of.udp_sndbuf_errors, of.tcp_out_segs, of.tcp_retrans_segs]))
    }
}

/// Whether the loss is in a watched namespace: the kernel reports a flow's losses everywhere, and those in other namespaces are
/// not shown here.
pub(crate) fn is_here(machine: &MachineMetrics, loss: &Loss) -> bool {
    loss.netns.is_none_or(|netns| netns == machine.netns || machine.space(netns).is_some())
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
pub(crate) mod tests;
