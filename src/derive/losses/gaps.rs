//! What is missing in one tick: what the flows miss, and where fewer packets leave than came.
//!
//! IP of one namespace is held against itself, because its counters are read at one instant and count a packet that was put
//! together (GRO) or is still to be cut (TSO) as one everywhere. On Linux 6.18 `ForwDatagrams` rises before the FORWARD hook,
//! on older kernels after it; the sum is right with both. Counters of links are compared only where TCP is not on the way,
//! because there one counts what the next has put together, and only over a second, because they are read one after another.

use super::counted::Step;
use super::missing::{Between, Gap};
use super::route::Route;
use super::{Loss, LossPlace, Span, total};
use crate::sample::{FlowPath, HopBy, HopWay, IpCounters, LinkKey, Proto, ProtocolCounters};
use std::collections::{BTreeMap, BTreeSet};

/// Datagrams are the whole traffic where there are fewer TCP segments than this share of them, and are others' where fewer
/// than this share arrives.
const LITTLE: f64 = 0.05;

/// A path starts in that namespace or goes through it.
fn crosses(path: &FlowPath, netns: u64) -> bool {
    path.netns == netns || path.hops.iter().any(|hop| hop.link.netns == netns)
}

/// What the flows miss that no place of `told` has, or only those that go `through` a namespace: datagrams that did
/// not arrive. What TCP sends again is none: much of it is only late. None where it is not known what arrived.
pub(super) fn missed(read: &Read<'_>, through: Option<u64>, route: &Route, told: &[Loss]) -> Option<f64> {
    let (paths, spans) = (read.paths, read.spans);
    let of = |netns: u64| spans.iter().find(|span| span.now.netns == netns);
    let meant = || paths.iter().filter(|path| through.is_none_or(|netns| crosses(path, netns)));
    let datagrams = || meant().filter(|path| carries_datagrams(path, spans));
    let ends = |path: &FlowPath| path.hops.last().map(|hop| hop.link.netns);
    let (mut missed, mut pieces) = (0.0, 1.0_f64);
    for netns in datagrams().map(|path| path.netns).collect::<BTreeSet<_>>() {
        let span = of(netns)?;
        missed += span.rise(|of| total([of.udp_out_datagrams, of.udp_sndbuf_errors]))?;
        let whole = span.ip(|of| of.frag_oks).filter(|&whole| whole > 0.0);
        // One datagram that is missing may be several packets.
        pieces = pieces.max(span.ip(|of| of.frag_creates)? / whole.unwrap_or(f64::INFINITY));
    }
    for netns in datagrams().filter_map(ends).collect::<BTreeSet<_>>() {
        missed -= of(netns)?.rise(|of| total([of.udp_in_datagrams, of.udp_in_errors, of.udp_no_ports]))?;
    }
    if !route.is_whole {
        return None;
    }
    let is_theirs = |loss: &&Loss| loss.netns.is_none_or(|netns| meant().any(|path| crosses(path, netns)));
    // What came damaged and what the receiver's socket dropped did arrive.
    let arrived = |loss: &&Loss| matches!(loss.place, LossPlace::Checksum | LossPlace::ReceiveBuffer);
    let elsewhere = told.iter().filter(is_theirs).filter(|loss| !arrived(loss));
    let sent = |path: &FlowPath| path.hops.iter().filter(|hop| hop.way == HopWay::Sent).map(|hop| hop.link).collect();
    let links: BTreeSet<LinkKey> = datagrams().flat_map(|path| -> Vec<LinkKey> { sent(path) }).collect();
    let waiting = links.iter().filter_map(|link| read.filling.get(link).copied()).sum::<Option<f64>>()?;
    Some(missed * pieces - waiting - elsewhere.map(|loss| loss.packets).sum::<f64>())
}

/// Datagrams go this way. Two sockets that know each other make a way each; one on which hardly any arrive of what its
/// sender's namespace sends is not the flow's direction, and what is sent there is others'.
fn carries_datagrams(path: &FlowPath, spans: &[Span<'_>]) -> bool {
    let of = |netns: u64| spans.iter().find(|span| span.now.netns == netns);
    let sent = of(path.netns).map_or(0.0, |span| span.lost(|of| of.udp_out_datagrams));
    let receiver = path.hops.last().and_then(|hop| of(hop.link.netns));
    let arrived = receiver.map_or(0.0, |span| span.lost(|of| total([of.udp_in_datagrams, of.udp_in_errors])));
    path.proto == Proto::Udp && arrived > LITTLE * sent
}

/// Where packets go missing in this tick, the most first.
pub(super) fn gaps(read: &Read<'_>, route: &Route, told: &[Loss]) -> Vec<Gap> {
    let (paths, spans) = (read.paths, read.spans);
    let view = View { read, told, only_datagrams: only_datagrams(paths, spans) };
    let mut gaps: Vec<Gap> = Vec::new();
    for span in spans {
        gaps.extend(view.in_ip(paths, span));
    }
    for path in paths.iter().filter(|path| carries_datagrams(path, spans)) {
        for hops in path.hops.windows(3).filter(|hops| hops[1].way == HopWay::Passed && hops[2].by == HopBy::Fdb) {
            gaps.extend(view.in_bridge(hops[0].link, hops[1].link, hops[2].link));
        }
    }
    gaps.sort_by(|one, other| other.packets.total_cmp(&one.packets).then(one.at.cmp(&other.at)));
    // Two directions through one bridge are one gap.
    let ends = |gap: &Gap| (gap.is_exact, gap.at.netns, gap.at.link.min(gap.at.to), gap.at.link.max(gap.at.to));
    let mut seen = BTreeSet::new();
    gaps.retain(|gap| seen.insert(ends(gap)));
    for gap in &mut gaps {
        gap.missed = missed(read, Some(gap.at.netns), route, told);
    }
    gaps
}

/// Whether hardly any TCP is sent where the flows start.
fn only_datagrams(paths: &[FlowPath], spans: &[Span<'_>]) -> bool {
    let senders = spans.iter().filter(|span| paths.iter().any(|path| path.netns == span.now.netns));
    let (mut datagrams, mut segments) = (0.0, 0.0);
    for span in senders {
        datagrams += span.lost(|of| of.udp_out_datagrams);
        segments += span.lost(|of| of.tcp_out_segs);
    }
    datagrams > 0.0 && segments < LITTLE * datagrams
}

/// What the flows miss is known of their datagrams, and hardly anything else is on the way. It is not while next to nothing
/// arrives.
pub(super) fn is_of_datagrams(paths: &[FlowPath], spans: &[Span<'_>]) -> bool {
    only_datagrams(paths, spans) && paths.iter().any(|path| carries_datagrams(path, spans))
}

/// What was read of a tick.
pub(super) struct Read<'a> {
    pub paths: &'a [FlowPath],
    pub step: Step<'a>,
    pub spans: &'a [Span<'a>],
    /// What `qdiscs::filling` tells.
    pub filling: &'a BTreeMap<LinkKey, Option<f64>>,
}

/// What the gaps of a tick are made of.
struct View<'a> {
    read: &'a Read<'a>,
    told: &'a [Loss],
    only_datagrams: bool,
}

impl View<'_> {
    /// What IP of a namespace took and neither delivered, passed on nor counted as refused, and what it never saw of what a
    /// link received.
    fn in_ip(&self, paths: &[FlowPath], span: &Span<'_>) -> Vec<Gap> {
        let netns = span.now.netns;
        let ways = paths.iter().filter(|path| !self.only_datagrams || carries_datagrams(path, self.read.spans));
        let ways = ways.flat_map(|path| ways_through(path, netns));
        let way = ways.max_by(|one, other| self.difference(*one).total_cmp(&self.difference(*other)));
        let Some((link, to)) = way else { return Vec::new() };
        let at = Between { netns, link, to };
        let most = link.and(to).filter(|_| self.only_datagrams).map(|_| self.difference((link, to)));
        // A datagram that is being taken apart or put together counts before and after it at different instants.
        let is_exact = span.ip(|of| total([of.reasm_reqds, of.frag_creates])) == Some(0.0);
        let within = vanished(span).map(|packets| Gap { at, packets, most, missed: None, is_exact });
        let ahead = link.filter(|_| self.only_datagrams).and_then(|link| self.before_ip(link, span));
        let ahead = ahead.map(|packets| Gap { at, packets, most, missed: None, is_exact: false });
        match (within, ahead) {
            // One place is one gap.
            (Some(within), Some(ahead)) if !is_exact => {
                vec![Gap { packets: within.packets + ahead.packets, ..within }]
            }
            (within, ahead) => within.into_iter().chain(ahead).collect(),
        }
    }

    /// What a link received and IP never saw (a rule at ingress, XDP).
    fn before_ip(&self, link: LinkKey, span: &Span<'_>) -> Option<f64> {
        let (came, _) = self.counted(link)?;
        let dropped = |loss: &&Loss| loss.link == Some(link) && loss.place != LossPlace::Between;
        let known: f64 = self.told.iter().filter(dropped).map(|loss| loss.packets).sum();
        Some(came - known - span.rise(|of| of.ip_in_receives)?)
    }

    /// How many packets less leave than came, as their links count them.
    fn difference(&self, (link, to): (Option<LinkKey>, Option<LinkKey>)) -> f64 {
        let packets = |key: Option<LinkKey>| key.and_then(|key| self.counted(key)).unwrap_or((0.0, 0.0));
        packets(link).0 - packets(to).1
    }

    /// What the ports of a bridge and the bridge itself gave to it and did not get from it.
    fn in_bridge(&self, link: LinkKey, bridge: LinkKey, to: LinkKey) -> Option<Gap> {
        self.only_datagrams.then_some(())?;
        let own = self.read.step.counted(self.read.step.link(bridge)?)?;
        let mut kept = own.sent? - own.received?;
        for port in self
            .read
            .step
            .links
            .iter()
            .filter(|port| port.facts.master.map(|master| port.facts.beside(master)) == Some(bridge))
        {
            let counted = self.read.step.counted(port)?;
            let dropped = counted.rx_dropped? + counted.tx_dropped?;
            kept += counted.received? - counted.sent? - dropped;
            let queued =
                self.told.iter().filter(|loss| loss.place == LossPlace::Qdisc && loss.link == Some(port.facts.key()));
            kept -= queued.map(|loss| loss.packets).sum::<f64>();
            kept -= self.read.filling.get(&port.facts.key()).copied().unwrap_or(Some(0.0))?;
        }
        let most = Some(self.difference((Some(link), Some(to))));
        let at = Between { netns: link.netns, link: Some(link), to: Some(to) };
        Some(Gap { at, packets: kept, most, missed: None, is_exact: false })
    }

    /// Packets that a link received and sent, over the time of its namespace's protocols: they are read a little later, and
    /// how much later changes.
    fn counted(&self, link: LinkKey) -> Option<(f64, f64)> {
        let metrics = self.read.step.link(link)?;
        let counted = self.read.step.counted(metrics)?;
        let span = self.read.spans.iter().find(|span| span.now.netns == link.netns);
        let own = self.read.step.seconds_of(metrics);
        let longer = span.filter(|_| own > 0.0).map_or(1.0, |span| span.seconds / own);
        Some((counted.received? * longer, counted.sent? * longer))
    }
}

/// Through which links a path enters and leaves IP of a namespace; nothing where only a bridge of it is crossed.
fn ways_through(path: &FlowPath, netns: u64) -> Vec<(Option<LinkKey>, Option<LinkKey>)> {
    let mut ways = Vec::new();
    let mut came = None;
    let mut is_inside = path.netns == netns;
    for hop in &path.hops {
        if hop.link.netns != netns {
            is_inside = false;
            came = None;
        } else if hop.way == HopWay::Received {
            (came, is_inside) = (Some(hop.link), true);
        } else if hop.way == HopWay::Sent && hop.by == HopBy::Route && is_inside {
            ways.push((came, Some(hop.link)));
            is_inside = false;
        } else if hop.way == HopWay::Sent {
            is_inside = false;
        }
    }
    let ends_here = path.gap.is_none() && is_inside && came.is_some();
    ways.extend(ends_here.then_some((came, None)));
    ways
}

/// Packets that IP took and neither delivered, handed to a link nor counted as refused. None where it does not count enough.
fn vanished(span: &Span<'_>) -> Option<f64> {
    let refused = |of: &ProtocolCounters| {
        let ip = of.ip.unwrap_or_default();
        let conntrack = of.conntrack.map_or(0, |conntrack| total([conntrack.drop, conntrack.insert_failed]));
        total([
            of.ip_in_discards,
            of.ip_in_hdr_errors,
            of.ip_frag_fails,
            conntrack,
            super::ends::refused_in(&ip),
            ip.reverse_path_filter,
        ])
    };
    let took = span.rise(|of| of.ip_in_receives)? + span.ip(|of| of.reasm_oks)? - span.ip(|of| of.reasm_reqds)?;
    let left = took - span.ip(|of| of.in_delivers)? - span.rise(refused)?;
    let handed = |of: &IpCounters| of.out_transmits.unwrap_or(0);
    if span.now.ip?.out_transmits.is_none() {
        return Some(left - span.rise(|of| of.ip_forwarded)?);
    }
    // Of a packet that is taken apart its pieces are handed on.
    let cut = span.ip(|of| of.frag_creates)? - span.ip(|of| of.frag_oks)?;
    Some(left + span.ip(|of| of.out_requests)? + cut - span.ip(handed)?)
}
