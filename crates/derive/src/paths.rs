//! Paths joined with the links' rates: what each hop moves in the flow's direction, what it claims, and which of them is
//! the narrowest. Made when a face asks for it; a tick without faces costs nothing.

mod flow_cores;
pub(crate) mod softirq;

use super::{Basis, LinkMetrics, Loss, LossPlace, TestMetrics, Worker};
use crate::flow::Connection;
use crate::links::passed_packets;
use vnettop_sample::{Carrier, FlowPath, Holder, Hop, HopWay, Kind, LinkKey, Offloads, row_of};

pub use flow_cores::FlowAtHop;
pub(crate) use flow_cores::at as flow_at;
pub use softirq::{Softirq, SoftirqBy, UnknownCores};

/// The path of one connection, with what each of its links does now.
#[derive(Debug, Clone, PartialEq)]
pub struct PathMetrics<'a> {
    /// Its links, in the order of the packets.
    pub hops: Vec<HopMetrics<'a>>,
    /// Why it ends before the receiver; none where it is whole.
    pub gap: Option<&'a str>,
    /// Which packets take this path, where routing rules look at firewall marks; `None` when none does.
    pub note: Option<&'a str>,
    /// The programs that take the packets over between two links, in the order of the path.
    pub carriers: Vec<CarrierMetrics<'a>>,
}

/// A program on a path: what goes into it and comes out, and the threads that carry it.
#[derive(Debug, Clone, PartialEq)]
pub struct CarrierMetrics<'a> {
    /// Which program, and where.
    pub carrier: &'a Carrier,
    /// What the link before it gave it: packets so far and packets/s; `None` where no link is before it, or its counters do not
    /// count that.
    pub went_in: Option<PassedPackets>,
    /// What it gave to the link behind it.
    pub came_out: Option<PassedPackets>,
    /// Its threads, the busiest first.
    pub workers: Vec<&'a Worker>,
}

/// What a link counts in the direction of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassedPackets {
    /// Since the link was made.
    pub packets: u64,
    /// Now; `None` after one sample.
    pub per_s: Option<f64>,
}

impl PassedPackets {
    fn at(hop: Option<&HopMetrics<'_>>) -> Option<Self> {
        let hop = hop?;
        let (link, counters) = (hop.link?, hop.link?.counters?);
        let packets = passed_packets(&link.facts.kind, &counters, hop.hop.way)?;
        Some(Self { packets, per_s: hop.packets_per_s })
    }
}

/// One link of a path, in the flow's direction.
#[derive(Debug, Clone, PartialEq)]
pub struct HopMetrics<'a> {
    /// Which link, and why it is the next.
    pub hop: &'a Hop,
    /// The link; none where it has gone since.
    pub link: Option<&'a LinkMetrics>,
    /// Everything that the link moves in that direction, bits/s; none also where its counters do not count what crosses
    /// it.
    pub bits_per_s: Option<f64>,
    /// Everything that the link moves in that direction, packets/s.
    pub packets_per_s: Option<f64>,
    /// Packets dropped there in that direction a second.
    pub dropped_per_s: Option<f64>,
    /// What it puts together or checks instead of packet by packet; none where its driver or the kernel does not say.
    pub offloads: Option<&'a Offloads>,
    /// On which cores the flow's packets are handled there, or why that is not known.
    pub softirq: Result<Softirq, UnknownCores>,
    /// The flow's own packets there by core, as counted last; none where that was not asked for, or none came by.
    pub flow: Option<FlowAtHop>,
    /// Packets that its qdisc drops in that direction a second, which is in no counter of the link; none where none is read.
    pub qdisc_drops_per_s: Option<f64>,
    /// Packets a second that the datapath of Open vSwitch loses there because it cannot ask ovs-vswitchd; none where the link
    /// stands for no datapath that is read.
    pub upcalls_lost_per_s: Option<f64>,
    /// What the kernel says that the flows lost there, and how many packets a second these are; none where it is not asked.
    pub losses: Vec<&'a Loss>,
    /// Sum of `losses`, packets/s; `None` when the kernel is not asked.
    pub lost_per_s: Option<f64>,
}

impl<'a> HopMetrics<'a> {
    fn of(
        metrics: &'a TestMetrics,
        (path, hop): (&FlowPath, &'a Hop),
        is_first: bool,
        softirq: Result<Softirq, UnknownCores>,
    ) -> Self {
        let link = metrics.machine.link(hop.link);
        let (bits_per_s, packets_per_s, dropped_per_s) = match (link.and_then(|link| link.rates), hop.way) {
            (Some(rates), HopWay::Sent) => (rates.tx_bits_per_s, rates.tx_packets_per_s, rates.tx_dropped_per_s),
            (Some(rates), HopWay::Received) => (rates.rx_bits_per_s, rates.rx_packets_per_s, rates.rx_dropped_per_s),
            (None, _) | (_, HopWay::Passed) => (None, None, None),
        };
        let drops = metrics.losses.of_qdiscs(hop.link);
        let qdisc_drops_per_s = match hop.way {
            HopWay::Sent => drops.and_then(|drops| drops.sent_per_s),
            HopWay::Received => drops.and_then(|drops| drops.received_per_s),
            HopWay::Passed => None,
        };
        let losses = losses_at(metrics, hop, is_first);
        let lost = || losses.iter().fold(0.0, |sum, loss| sum + metrics.losses.per_second(loss.packets));
        Self {
            hop,
            link,
            bits_per_s,
            packets_per_s,
            dropped_per_s,
            offloads: offloads(metrics, hop.link),
            softirq,
            flow: flow_at(metrics, path, hop),
            qdisc_drops_per_s,
            upcalls_lost_per_s: metrics.losses.of_upcalls(hop.link),
            lost_per_s: metrics.machine.elapsed_s.filter(|_| metrics.machine.asks_kernel()).map(|_| lost()),
            losses,
        }
    }

    /// Packets a second dropped at the hop, and by the datapath that it stands for: the flows' own when the kernel is asked,
    /// else what the link and its qdisc drop in that direction.
    #[must_use]
    pub fn all_drops_per_s(&self) -> Option<f64> {
        let counted = || self.dropped_per_s.map(|dropped| dropped + self.qdisc_drops_per_s.unwrap_or(0.0));
        let own = self.lost_per_s.or_else(counted);
        match (own, self.upcalls_lost_per_s) {
            (Some(own), Some(lost)) => Some(own + lost),
            (own, lost) => own.or(lost),
        }
    }

    /// `IFLA_MTU`, bytes; none also where Open vSwitch tells none of a port that is no device.
    #[must_use]
    pub fn mtu(&self) -> Option<u32> {
        self.link.filter(|link| link.facts.tells_mtu()).map(|link| link.facts.mtu)
    }
}

impl PathMetrics<'_> {
    /// The first of the hops with the smallest MTU, where not all have the same.
    #[must_use]
    pub fn smallest_mtu(&self) -> Option<usize> {
        let known = || self.hops.iter().enumerate().filter_map(|(at, hop)| Some((hop.mtu()?, at)));
        let (smallest, at) = known().min()?;
        known().any(|(mtu, _)| mtu > smallest).then_some(at)
    }

    /// The hop whose claim is the lowest real limit.
    #[must_use]
    pub fn narrowest(&self) -> Option<usize> {
        let real = self.hops.iter().enumerate().filter_map(|(at, hop)| {
            let link = hop.link.filter(|link| link.basis == Basis::Real)?;
            Some((link.facts.speed_mbps?, at))
        });
        real.min().map(|(_, at)| at)
    }
}

/// What the flows lost at a hop in its direction: a link that two flows cross in turn has separate losses for each.
fn losses_at<'a>(metrics: &'a TestMetrics, hop: &Hop, is_first: bool) -> Vec<&'a Loss> {
    let leaves = |place| matches!(place, LossPlace::Qdisc | LossPlace::Link | LossPlace::Neighbour);
    let is_here = |loss: &&Loss| {
        let fits = match hop.way {
            HopWay::Passed => true,
            HopWay::Received => !leaves(loss.place),
            // A rule in the sender's own namespace sees where its packets would leave.
            HopWay::Sent => leaves(loss.place) || is_first,
        };
        loss.link == Some(hop.link) && loss.place != LossPlace::Upcall && fits
    };
    if metrics.machine.asks_kernel() { metrics.losses.places.iter().filter(is_here).collect() } else { Vec::new() }
}

/// The path of a connection; none where none is known.
#[must_use]
pub fn of<'a>(metrics: &'a TestMetrics, connection: &Connection) -> Option<PathMetrics<'a>> {
    let path = found(&metrics.paths, connection)?;
    let softirqs = softirq::all(metrics, connection, path);
    let of = |(at, (hop, softirq))| HopMetrics::of(metrics, (path, hop), at == 0, softirq);
    let hops: Vec<HopMetrics<'_>> = path.hops.iter().zip(softirqs).enumerate().map(of).collect();
    let carrier = |carrier: &'a Carrier| {
        let (before, after) = (carrier.at.checked_sub(1).and_then(|at| hops.get(at)), hops.get(carrier.at));
        let workers = metrics.workers.iter().filter(|worker| worker.is_of(carrier)).collect();
        CarrierMetrics { carrier, went_in: PassedPackets::at(before), came_out: PassedPackets::at(after), workers }
    };
    let carriers = path.carriers.iter().map(carrier).collect();
    Some(PathMetrics { hops, gap: path.gap.as_deref(), note: path.note.as_deref(), carriers })
}

/// The offloads of a link on a path.
pub(crate) fn offloads(metrics: &TestMetrics, link: LinkKey) -> Option<&Offloads> {
    row_of(&metrics.machine.facts.offloads, &link, |reported| reported.link)
}

/// The bridge that a link is a port of.
pub(crate) fn bridge_of<'a>(metrics: &'a TestMetrics, port: &LinkMetrics) -> Option<&'a LinkMetrics> {
    let bridge = metrics.machine.link(port.facts.beside(port.facts.master?))?;
    (bridge.facts.kind == Kind::Bridge).then_some(bridge)
}

/// A process that holds an end of a connection and is not watched.
#[must_use]
pub fn holder(metrics: &TestMetrics, pid: u32) -> Option<&Holder> {
    let ends = metrics.paths.iter().filter_map(|path| path.ends.as_ref());
    ends.flat_map(|ends| &ends.holders).find(|holder| holder.pid == pid)
}

/// The path with the connection's ends. NAT gives the receiver another name than its sender uses.
pub(crate) fn found<'a>(paths: &'a [FlowPath], connection: &Connection) -> Option<&'a FlowPath> {
    let (from, to) = (&connection.from, &connection.to);
    let from_here = |path: &&FlowPath| {
        let same_netns = from.netns.is_none_or(|netns| path.netns == netns);
        path.proto == connection.proto() && path.from == from.address && same_netns
    };
    let to_there = |path: &&FlowPath| path.to == to.address;
    let exact = paths.iter().filter(from_here).find(to_there);
    exact.or_else(|| paths.iter().find(from_here))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::End;
    use vnettop_sample::{HopBy, Ifindex, LinkKey, Proto};

    fn path(netns: u64, from: &str, to: &str) -> FlowPath {
        let hop = Hop { link: LinkKey { netns, ifindex: Ifindex(2) }, way: HopWay::Sent, by: HopBy::Route };
        let at = |text: &str| text.parse().expect("an address");
        let (from, to) = (at(from), at(to));
        FlowPath {
            netns,
            proto: Proto::Tcp,
            from,
            to,
            hops: vec![hop],
            gap: None,
            note: None,
            ends: None,
            outside: None,
            silent: None,
            neighbours: Vec::new(),
            carriers: Vec::new(),
        }
    }

    fn connection(netns: Option<u64>, from: &str, to: &str) -> Connection {
        let end = |netns, text: &str| End { netns, address: text.parse().expect("an address"), pid: None };
        Connection::between(end(netns, from), end(None, to))
    }

    #[test]
    fn a_connection_finds_its_own_path() {
        let paths = [
            path(1, "198.18.0.1:1", "198.18.0.9:5201"),
            path(2, "198.18.0.1:1", "198.18.0.9:5201"),
            path(3, "198.18.0.3:1", "198.18.0.8:80"),
        ];
        let netns = |connection: &Connection| found(&paths, connection).map(|path| path.netns);
        let same = connection(Some(2), "198.18.0.1:1", "198.18.0.9:5201");
        assert_eq!(netns(&same), Some(2), "two namespaces may use the same addresses");
        let published = connection(Some(3), "198.18.0.3:1", "172.17.0.2:5201");
        assert_eq!(netns(&published), Some(3), "the server behind a published port has another address");
        assert_eq!(netns(&connection(Some(9), "198.18.0.7:1", "198.18.0.6:1")), None, "no path is not another's");
    }
}
