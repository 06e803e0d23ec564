//! Packets that vanish between a counter that saw them and the next one, where no counter tells why: a firewall's rule, policing
//! or a program on the way in. What is missing behind a hop is told only as far as the flows themselves miss it: what a
//! firewall drops of others is no loss of theirs.
//!
//! IP of one namespace is held against itself, because its counters are read at one instant and count a packet that was put
//! together (GRO) or is still to be cut (TSO) as one everywhere. On Linux 6.18 `ForwDatagrams` rises before the FORWARD hook,
//! on older kernels after it; the sum is right with both. Counters of links are compared only where TCP is not on the way,
//! because there one counts what the next has put together, and only over a second, because they are read one after another.

use super::route::Route;
use super::{Loss, LossPlace, Span, total};
use crate::derive::links::LinkMetrics;
use crate::sample::{FlowPath, HopBy, HopWay, IpCounters, LinkKey, Proto, ProtocolCounters};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What is missing is held against what the flows miss over this time, ns: they are read one after another.
const WINDOW_NS: u64 = 2_000_000_000;
/// What rests on counters that are not read at one instant must stand for so long, ns.
pub const STANDS_NS: u64 = 1_000_000_000;
/// Fewer packets, and a smaller share of those sent, are no loss.
const LEAST_PACKETS: f64 = 5.0;
const LEAST_SHARE: f64 = 0.001;
/// The same of what rests on counters that are not read at one instant.
const LEAST_SHARE_OF_LINKS: f64 = 0.01;
/// What the flows miss of a place's packets must be so much of them; else others are dropped there.
const LEAST_OWN: f64 = 0.2;
/// From this share on they are clearly the flows'; below, what is only read late must be told from it over a second.
const CLEARLY_OWN: f64 = 0.8;
/// From this share on, what is sent and neither arrives nor is lost on the way is somebody else's.
const OTHERS: f64 = 0.1;
/// Datagrams are the whole traffic where there are fewer TCP segments than this share of them, and are others' where fewer
/// than this share arrives.
const LITTLE: f64 = 0.05;

/// Between which two counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Between {
    netns: u64,
    /// The link they came in through; none where they started.
    link: Option<LinkKey>,
    /// The link they should have left through; none where a socket should have had them.
    to: Option<LinkKey>,
}

/// A place, and how many packets/s are missing there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gap {
    at: Between,
    /// Signed: what is early in one tick is late in the next.
    packets_per_s: f64,
    /// How many less leave than came, as the links count them; none where that does not compare.
    most_per_s: Option<f64>,
    /// What the flows that go through here miss; none where that is not known.
    missed_per_s: Option<f64>,
    /// Both sides were read at one instant.
    is_exact: bool,
}

impl Gap {
    fn is_same(&self, other: &Self) -> bool {
        (self.at, self.is_exact) == (other.at, other.is_exact)
    }
}

/// The last ticks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Missing {
    ticks: VecDeque<Tick>,
    /// Since when a place has been told without a pause.
    since: BTreeMap<Between, u64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Tick {
    at_ns: u64,
    seconds: f64,
    /// What the flows miss that no other place has, packets/s.
    missed: f64,
    sent: f64,
    gaps: Vec<Gap>,
    /// What was told of it, packets/s.
    found: f64,
}

impl Missing {
    /// Takes the gaps of a tick; none of `missed` where it is not known what arrived.
    pub fn observe(
        &mut self,
        (from_ns, at_ns): (u64, u64),
        missed: Option<f64>,
        sent: Option<f64>,
        gaps: Vec<Gap>,
    ) -> Vec<Loss> {
        let (Some(missed), Some(seconds)) = (missed, crate::derive::seconds(from_ns, at_ns)) else {
            *self = Self::default();
            return Vec::new();
        };
        self.ticks.push_back(Tick { at_ns, seconds, missed, sent: sent.unwrap_or(0.0), gaps, found: 0.0 });
        while self.ticks.front().is_some_and(|tick| tick.at_ns.saturating_add(WINDOW_NS) <= at_ns) {
            self.ticks.pop_front();
        }
        let told = self.told();
        self.since.retain(|at, _| told.iter().any(|(gap, _)| gap.at == *at));
        let mut places: BTreeMap<Between, f64> = BTreeMap::new();
        for (gap, packets_per_s) in told {
            if let Some(now) = self.ticks.back_mut() {
                now.found += packets_per_s;
            }
            *places.entry(gap.at).or_default() += packets_per_s;
        }
        places.into_iter().map(|(at, packets_per_s)| self.loss(at, packets_per_s, at_ns)).collect()
    }

    /// Whether what a namespace sends is what the flows send: datagrams that neither arrive where the flows end nor are lost
    /// on their way are others'.
    pub fn is_theirs(&self) -> bool {
        self.sum(|tick| tick.missed - tick.found) <= OTHERS * self.sum(|tick| tick.sent)
    }

    fn loss(&mut self, at: Between, packets_per_s: f64, now_ns: u64) -> Loss {
        let since = *self.since.entry(at).or_insert(now_ns);
        Loss {
            link: at.link,
            to: at.to,
            stands: now_ns.saturating_sub(since) >= STANDS_NS,
            ..Loss::in_space(LossPlace::Between, at.netns, packets_per_s)
        }
    }

    /// The gaps of the newest tick that the flows' own packets are missing in, with what is missing of them, packets/s.
    fn told(&self) -> Vec<(Gap, f64)> {
        let Some(now) = self.ticks.back() else { return Vec::new() };
        let mut open = self.sum(|tick| tick.missed);
        let mut told = Vec::new();
        for gap in &now.gaps {
            let whole = self.sum(|tick| tick.of(gap).map_or(0.0, |one| one.packets_per_s));
            let most =
                gap.most_per_s.map(|_| self.sum(|tick| tick.of(gap).and_then(|one| one.most_per_s).unwrap_or(0.0)));
            // What other flows miss is not missing here.
            let missed = self.sum(|tick| tick.of(gap).and_then(|one| one.missed_per_s).unwrap_or(0.0));
            let own = (open.min(missed).min(most.unwrap_or(open)) / whole).min(1.0);
            if own < LEAST_OWN || !self.is_enough(whole * own, gap.is_exact && own >= CLEARLY_OWN) {
                continue;
            }
            open -= whole * own;
            // Counters that are not read at one instant are right in the mean.
            let rate = if gap.is_exact { gap.packets_per_s.max(0.0) } else { whole / self.sum(|_| 1.0) };
            told.push((*gap, rate * own));
        }
        told
    }

    /// So many packets missing are no accident of reading.
    fn is_enough(&self, whole: f64, is_exact: bool) -> bool {
        let share = if is_exact { LEAST_SHARE } else { LEAST_SHARE_OF_LINKS };
        let has_lasted = is_exact || self.sum(|_| 1.0) * 1.05 >= STANDS_NS as f64 / 1e9;
        has_lasted && whole >= LEAST_PACKETS.max(share * self.sum(|tick| tick.sent))
    }

    /// A rate times its time, over the last ticks.
    fn sum(&self, of: impl Fn(&Tick) -> f64) -> f64 {
        self.ticks.iter().map(|tick| of(tick) * tick.seconds).sum()
    }
}

impl Tick {
    fn of(&self, gap: &Gap) -> Option<&Gap> {
        self.gaps.iter().find(|one| one.is_same(gap))
    }
}

/// A path starts in that namespace or goes through it.
fn crosses(path: &FlowPath, netns: u64) -> bool {
    path.netns == netns || path.hops.iter().any(|hop| hop.link.netns == netns)
}

/// What the flows miss a second that no place of `told` has, or only those that go `through` a namespace: datagrams that did
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
    Some(missed * pieces - waiting - elsewhere.map(|loss| loss.packets_per_s).sum::<f64>())
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
    gaps.sort_by(|one, other| other.packets_per_s.total_cmp(&one.packets_per_s).then(one.at.cmp(&other.at)));
    // Two directions through one bridge are one gap.
    let ends = |gap: &Gap| (gap.is_exact, gap.at.netns, gap.at.link.min(gap.at.to), gap.at.link.max(gap.at.to));
    let mut seen = BTreeSet::new();
    gaps.retain(|gap| seen.insert(ends(gap)));
    for gap in &mut gaps {
        gap.missed_per_s = missed(read, Some(gap.at.netns), route, told);
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
    pub links: &'a [LinkMetrics],
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
        let most_per_s = link.and(to).filter(|_| self.only_datagrams).map(|_| self.difference((link, to)));
        // A datagram that is being taken apart or put together counts before and after it at different instants.
        let is_exact = span.ip(|of| total([of.reasm_reqds, of.frag_creates])) == Some(0.0);
        let within =
            vanished(span).map(|packets_per_s| Gap { at, packets_per_s, most_per_s, missed_per_s: None, is_exact });
        let ahead = link.filter(|_| self.only_datagrams).and_then(|link| self.before_ip(link, span));
        let ahead =
            ahead.map(|packets_per_s| Gap { at, packets_per_s, most_per_s, missed_per_s: None, is_exact: false });
        match (within, ahead) {
            // One place is one gap.
            (Some(within), Some(ahead)) if !is_exact => {
                vec![Gap { packets_per_s: within.packets_per_s + ahead.packets_per_s, ..within }]
            }
            (within, ahead) => within.into_iter().chain(ahead).collect(),
        }
    }

    /// What a link received and IP never saw (a rule at ingress, XDP).
    fn before_ip(&self, link: LinkKey, span: &Span<'_>) -> Option<f64> {
        let (came, _) = self.rates(link)?;
        let dropped = |loss: &&Loss| loss.link == Some(link) && loss.place != LossPlace::Between;
        let known: f64 = self.told.iter().filter(dropped).map(|loss| loss.packets_per_s).sum();
        Some(came - known - span.rise(|of| of.ip_in_receives)?)
    }

    /// How many packets/s less leave than came, as their links count them.
    fn difference(&self, (link, to): (Option<LinkKey>, Option<LinkKey>)) -> f64 {
        let packets = |key: Option<LinkKey>| key.and_then(|key| self.rates(key)).unwrap_or((0.0, 0.0));
        packets(link).0 - packets(to).1
    }

    /// What the ports of a bridge and the bridge itself gave to it and did not get from it.
    fn in_bridge(&self, link: LinkKey, bridge: LinkKey, to: LinkKey) -> Option<Gap> {
        self.only_datagrams.then_some(())?;
        let (bridge_received, bridge_sent) = self.rates(bridge)?;
        let mut kept = bridge_sent - bridge_received;
        for port in self
            .read
            .links
            .iter()
            .filter(|port| port.facts.master.map(|master| port.facts.beside(master)) == Some(bridge))
        {
            let rates = port.rates?;
            let dropped = rates.dropped_per_s()?;
            kept += rates.rx_packets_per_s? - rates.tx_packets_per_s? - dropped;
            let queued =
                self.told.iter().filter(|loss| loss.place == LossPlace::Qdisc && loss.link == Some(port.facts.key()));
            kept -= queued.map(|loss| loss.packets_per_s).sum::<f64>();
            kept -= self.read.filling.get(&port.facts.key()).copied().unwrap_or(Some(0.0))?;
        }
        let most_per_s = Some(self.difference((Some(link), Some(to))));
        let at = Between { netns: link.netns, link: Some(link), to: Some(to) };
        Some(Gap { at, packets_per_s: kept, most_per_s, missed_per_s: None, is_exact: false })
    }

    /// Packets/s that a link received and sent.
    fn rates(&self, link: LinkKey) -> Option<(f64, f64)> {
        let at = self.read.links.binary_search_by_key(&link, |one| one.facts.key()).ok()?;
        let rates = self.read.links[at].rates?;
        Some((rates.rx_packets_per_s?, rates.tx_packets_per_s?))
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

/// Packets/s that IP took and neither delivered, handed to a link nor counted as refused. None where it does not count enough.
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
